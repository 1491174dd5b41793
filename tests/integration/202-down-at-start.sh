#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# The upstream is down when the server starts: the export is there, clients are told to come back,
# and all is well as soon as the upstream comes, without a restart of anything else.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

# Set up, so that there is something to see later; then down.
start_upstream up "$(addr 11)"
check "a file at the upstream, directly" "$CLIENT" "$(url3 up /exp)" write /f 0 100000 1
stop up

begun=$(now_ms)
start_reexport re "$(addr 12)" "$(ssc_block up)"
took=$(($(now_ms) - begun))
check "the server starts without its upstream, in $took ms" at_most $took 10000
expect_log re 'export 11 .*upstream .* is away: .*[Rr]efused'

# told_to_come_back V: one attempt without patience fails, and with the error that means "later".
told_to_come_back() {
	local out
	! out=$("$CLIENT" -w 0 "$("url$1" re)" stat /f 2>&1) || return 1
	echo "$out"
	grep -Eq 'EAGAIN|NFS3ERR_JUKEBOX|NFS4ERR_DELAY' <<<"$out"
}
for v in 3 4; do
	begun=$(now_ms)
	check "v$v: a client is told to come back" told_to_come_back $v
	took=$(($(now_ms) - begun))
	check "v$v: at once ($took ms)" at_most $took 3000
done
expect_log re 'does not give its root now'

# Those who are patient get what they asked for.
declare -A JOB=()
for v in 3 4; do
	"c$v" re verify /f 0 100000 1 >"$T/patient$v" 2>&1 &
	JOB[$v]=$!
done
sleep 1
for v in 3 4; do check "v$v: a patient client waits" kill -0 "${JOB[$v]}"; done
log_mark re
begun=$(now_ms)
start up
for v in 3 4; do
	rc=0
	wait "${JOB[$v]}" || rc=$?
	check "v$v: and gets its file: $(tail -n 1 "$T/patient$v")" [ "$rc" = 0 ]
done
took=$(($(now_ms) - begun))
check "soon after the upstream came ($took ms)" at_most $took 10000
expect_log re 'export 11 .*upstream .* is there'

for v in 3 4; do
	check "v$v: everything works: random changes" c$v re churn / 1 $v
	check "v$v: a new file" c$v re write "/new$v" 0 3000000 $v
	check "v$v: is at the upstream" cmp <("$CLIENT" pattern 3000000 $v) "$T/up/exp/new$v"
	check "v$v: the listing" grep -qx f <(c$v re ls /)
done
check "the file system's size is the upstream's" grep -q 'bytes=[1-9]' <(c3 re statfs /)
check "it is still the same process" is_running re

# An upstream that takes connections and says nothing.
sigstop up
begun=$(now_ms)
start_reexport re2 "$(addr 13)" "$(ssc_block up "Connect_Timeout_Ms = 1000;")"
took=$(($(now_ms) - begun))
check "a server starts with a silent upstream, in $took ms" at_most $took 10000
expect_log re2 'export 11 .*upstream .* is away: .*no NFS server answers'
sigcont up
check "and works as soon as that speaks" c3 re2 verify /f 0 100000 1
refuse_log re ':CRIT :.*SSC'
check "ends when asked" stop re 5
