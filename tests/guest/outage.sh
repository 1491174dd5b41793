#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# outage.sh - the upstream is killed and started again, twice, and later stopped for 15 s, while a
# kernel client reads, writes and changes names through the re-export, by v3 and v4.1 at once. The
# client must see a pause and nothing else: no error, and byte-identical data in the end.

# shellcheck source-path=SCRIPTDIR source=lab.sh
. "$(dirname "$0")/lab.sh"
KIB=3072 # of the files that are read

# start_jobs PHASE SECONDS: three jobs by each version; ops with a seed of its own in each phase.
declare -A JOB=()
start_jobs() {
	local phase=$1 seconds=$2 v
	for v in 3 4; do
		job "$phase read v$v" "fsops stream-read /m$v/read$v 5 $KIB $seconds"
		job "$phase write v$v" "fsops stream-write /m$v/write$v-$phase $v 0 $seconds"
		job "$phase names v$v" "fsops ops /m$v/ops$v-$phase $((v + ${#phase})) 200 $seconds"
	done
	for v in 3 4; do
		check "$phase: v$v jobs are running" wait_for 30 are_running "$phase" $v
	done
}

are_running() { grep -q running "$T/job-$1 read v$2" && grep -q running "$T/job-$1 write v$2"; }

job() {
	gx 1 "$2" >"$T/job-$1" 2>&1 &
	JOB[$1]=$!
}

job_passed() {
	cat "$T/job-$1"
	return "$2"
}

# The longest call of a job; 0 when it does not say.
longest() { sed -n 's/.*longest_ms=//p' "$T/job-$1" | grep . || echo 0; }

# end_jobs PHASE PAUSE_MS: all ended well, the fault was felt, and the data is right on the host.
end_jobs() {
	local phase=$1 name rc v written most=0
	for name in "${!JOB[@]}"; do
		rc=0
		wait "${JOB[$name]}" || rc=$?
		check "$name" job_passed "$name" "$rc"
		[ "$(longest "$name")" -le "$most" ] || most=$(longest "$name")
	done
	JOB=()
	say "$phase: the longest call took $most ms"
	check "$phase: calls waited while the upstream was away" [ "$most" -ge "$2" ]
	check "$phase: calls went on soon afterwards" [ "$most" -le $(($2 + 20000)) ]
	for v in 3 4; do
		written=$(sed -n 's/^kib=\([0-9]*\) .*/\1/p' "$T/job-$phase write v$v")
		check "$phase: v$v upstream has what was written" "$guest/bin/fsops" stream-check \
			"$T/up/exp/write$v-$phase" $v "${written:-1}"
		gx 1 "echo 3 >/proc/sys/vm/drop_caches; fsops tree-list /m$v/ops$v-$phase >/m$v/list$v-$phase" || :
		check "$phase: v$v upstream has the names that the client sees" \
			same_list "$T/up/exp/list$v-$phase" "$T/up/exp/ops$v-$phase"
	done
}

same_list() { [ -s "$1" ] && diff "$1" <("$guest/bin/fsops" tree-list "$2"); }

start_pair
# To test the tests: a stock server alone is the one to fail.
[ "$fsal" = SSC ] && victim=up || victim=re
boot client 6.1 1 "$here/agent.payload" "$(addr 2)" /re
check "the guest mounts by v3 and v4.1" gx 1 \
	"fsops stream-write /m3/read3 5 $KIB 0 && fsops stream-write /m4/read4 5 $KIB 0 && sync"

start_jobs kill 14
sleep 2
kill9 "$victim"
sleep 3
start "$victim"
sleep 4
kill9 "$victim"
sleep 1
start "$victim"
end_jobs kill 2500

start_jobs stop 6
sleep 1
sigstop "$victim"
sleep 15
sigcont "$victim"
end_jobs stop 12000
check "the re-export is still the process that was started" is_running re
gx 1 'agent quit' || :
