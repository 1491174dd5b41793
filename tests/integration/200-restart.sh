#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# The upstream is killed and started again, three times, under reads, writes and changes of names.
# Clients see a pause: no error, no stale handle, and every byte and every name as it must be.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

SECONDS_OF_LOAD=10
MIB=1048576

start_upstream up "$(addr 11)"
# Nobody is told to come back, however slow the machine: libnfs 4.0.0 cannot repeat an OPEN of v4.0.
start_reexport re "$(addr 12)" "$(ssc_block up "Upstream_Timeout_Ms = 30000;")"
check "a file to read" c3 re write /read 0 $((8 * MIB)) 5

# Each job goes on for the whole time and checks what it does; PASS counts rounds.
read_job() {
	local end=$(($(now_ms) + SECONDS_OF_LOAD * 1000)) n=0
	while [ "$(now_ms)" -lt "$end" ]; do
		"c$1" re verify /read 0 $((8 * MIB)) 5 || return 1
		n=$((n + 1))
	done
	echo "rounds=$n"
}

# Written and committed; what the upstream's folder has in the end is looked at below.
write_job() {
	local end=$(($(now_ms) + SECONDS_OF_LOAD * 1000)) n=0
	while [ "$(now_ms)" -lt "$end" ]; do
		n=$((n + 1))
		"c$1" re write "/write$1" 0 $((4 * MIB)) $((100 * $1 + n)) || return 1
	done
	echo "rounds=$n"
}

declare -A JOB=()
c3 re mkdir /names3
c3 re mkdir /names4
for v in 3 4; do
	for kind in read write; do
		"${kind}_job" $v >"$T/$kind$v" 2>&1 &
		JOB[$kind$v]=$!
	done
	# In a folder of its own: the names are the same for both versions.
	"$CLIENT" "$("url$v" re)" churn "/names$v" $SECONDS_OF_LOAD $v >"$T/names$v" 2>&1 &
	JOB[names$v]=$!
done
for pause in 1.5 0.3 1.5; do
	sleep 1.8
	kill9 up
	sleep "$pause"
	start up
done

passed() {
	cat "$T/$1"
	[ "$2" = 0 ]
}
for name in "${!JOB[@]}"; do
	rc=0
	wait "${JOB[$name]}" || rc=$?
	check "$name: $(tail -n 1 "$T/$name")" passed "$name" "$rc"
done
for v in 3 4; do
	n=$(sed -n 's/^rounds=//p' "$T/write$v")
	"$CLIENT" pattern $((4 * MIB)) $((100 * v + ${n:-0})) >"$T/want"
	check "v$v: the upstream has what was written" cmp "$T/want" "$T/up/exp/write$v"
done
check "the re-export is still the process that was started" is_running re
refuse_log re ':CRIT :.*SSC'
expect_log re 'upstream .* is away'
expect_log re 'upstream .* is there'
check "ends when asked" stop re 5
