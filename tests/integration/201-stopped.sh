#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# One of two upstreams stops answering (SIGSTOP) with more calls on their way to it than the server
# has threads, and more data than the module's memory bound. Its clients are told to come back, each
# within the answer limit; the re-export of the other one goes on at its own speed; and all is as
# before when the first one goes on. SSC_LONG=1: stopped for 30 s.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

STOP_S=12
[ -z "${SSC_LONG:-}" ] || STOP_S=30
TIMEOUT_MS=1500
MIB=1048576
N_GETATTRS=150
N_WRITERS=20

start_upstream up "$(addr 11)"
start_upstream other "$(addr 13)"
# Attributes are asked for each time, so that every GETATTR needs the upstream.
EXPORT_EXTRA="Attr_Expiration_Time = 0;" start_reexport re "$(addr 12)" \
	"$(ssc_block up "Upstream_Timeout_Ms = $TIMEOUT_MS;")" "
	EXPORT {
		Export_Id = 12; Path = /re2; Pseudo = /re2; Attr_Expiration_Time = 0;
		FSAL { $(ssc_block other) }
	}
	SSC { Memory_Max_Bytes = $((16 * MIB)); }"
on_other() { "$CLIENT" "$("url$1" re /re2)" "${@:2}"; }

check "a file on the first one" c3 re write /f 0 $((4 * MIB)) 1
check "a file on the other" on_other 3 write /f 0 $((8 * MIB)) 2

slices() { on_other 3 slices /f $((8 * MIB)) 0.5 "$1"; }
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# What many clients do. libnfs 4.0.0 cannot repeat an OPEN of v4.0 that was delayed, so over v4 files
# are opened before.
JOBS=()
start_job() {
	local name=$1
	shift
	"$@" >"$T/$name" 2>&1 &
	JOBS+=($!)
	NAMES+=("$name")
}
NAMES=()
start_jobs() {
	local i
	# These two come first, and end when they are told to.
	start_job attrs3 "$CLIENT" "$(url3 re)" getattrs /f 90 $N_GETATTRS
	start_job attrs4 "$CLIENT" "$(url4 re)" getattrs /f 90 $N_GETATTRS
	start_job names3 c3 re churn / $((STOP_S + 4)) 3
	start_job reads4 c4 re rate /f $((4 * MIB)) $((STOP_S + 4))
	for ((i = 0; i < N_WRITERS; i++)); do
		start_job "write$i" c3 re speed "/s$i" 12
	done
}

say "the other one alone"
slices 5 >"$T/alone"
start_jobs
sleep 1
log_mark re
sigstop up
slices $((STOP_S * 2 - 5)) >"$T/beside"
check "v3: a new client of the other is served" on_other 3 churn / 1 3
check "v4: a new client of the other is served" on_other 4 churn / 1 3
sigcont up
begun=$(now_ms)
check "the first one answers again" c3 re verify /f 0 $((4 * MIB)) 1
took=$(($(now_ms) - begun))
check "soon ($took ms)" at_most "$took" 3000
sleep 1
kill -TERM "${JOBS[0]}" "${JOBS[1]}"
for i in "${!JOBS[@]}"; do
	rc=0
	wait_for 30 is_gone "${JOBS[i]}" || kill "${JOBS[i]}" 2>/dev/null || :
	wait "${JOBS[i]}" || rc=$?
	check "${NAMES[i]}: $(grep -v '^#' "$T/${NAMES[i]}" | xargs)" [ "$rc" = 0 ]
done
slices 5 >>"$T/alone"

alone=$(median "$T/alone") beside=$(median "$T/beside")
say "MiB/s alone: $(xargs <"$T/alone")"
say "MiB/s beside: $(xargs <"$T/beside")"
check "the other one: $beside MiB/s beside the stopped one, $alone alone" \
	at_least "$beside" "$(awk -v a="$alone" 'BEGIN { print 0.8 * a }')"
for v in 3 4; do
	check "v$v: clients of the stopped one were told to come back" grep -q '^JUKEBOX' "$T/attrs$v"
	check_not "v$v: and nothing worse" grep -Ev '^(OK|JUKEBOX) ' "$T/attrs$v"
	longest=$(sed -n 's/^JUKEBOX .*longest_ms=//p' "$T/attrs$v" | sort -n | tail -n 1)
	# Those that queue for the file behind one that was sent just before and after the stop.
	check "v$v: within the answer limit, or twice that ($longest ms)" at_most "$longest" $((TIMEOUT_MS * 3))
	check "v$v: and were served in the end" grep -q '^OK' <(tail -n 1 "$T/attrs$v")
done
expect_log re 'export 11 .*does not answer'
expect_log re 'export 11 .*answers again'
check "it is still the same process" is_running re
refuse_log re ':CRIT :.*SSC'
check "ends when asked" stop re 5
