#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# An export is removed with I/O in flight, its upstream alive or dead: the call returns, nothing
# crashes, other exports of the same server go on.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

start_bus
start_upstream up "$(addr 11)"
start_upstream other "$(addr 12)"
start_reexport re "$(addr 13)" "$(ssc_block other)"
check "the other export works" c3 re write /f 0 1000000 1

cat >"$T/more.conf" <<-EOF
	EXPORT {
		Export_Id = 77; Path = /more; Pseudo = /more;
		Access_Type = RW; Squash = No_Root_Squash; SecType = sys; Protocols = 3, 4;
		FSAL { $(ssc_block up) }
	}
EOF
add() { dbus_export re AddExport "string:$T/more.conf" 'string:EXPORT(Export_Id=77)'; }
remove() { dbus_export re RemoveExport uint16:77; }

# busy N: clients that write and read for as long as they can.
JOBS=()
busy() {
	local i
	for ((i = 0; i < $1; i++)); do
		"$CLIENT" -w 20 "$(url$((3 + i % 2)) re /more)" write "/busy$i" 0 200000000 $i \
			>/dev/null 2>&1 &
		JOBS+=($!)
	done
	sleep 0.7
}
calm() {
	local j
	for j in "${JOBS[@]}"; do
		kill "$j" 2>/dev/null || :
		wait "$j" 2>/dev/null || :
	done
	JOBS=()
}

for round in 1 2 3; do
	check "round $round: added" add
	busy 4
	begun=$(now_ms)
	check "round $round: removed with writes in flight" remove
	took=$(($(now_ms) - begun))
	check "round $round: in $took ms" at_most $took 5000
	check "round $round: the server lives" is_running re
	check "round $round: the other export serves" c3 re verify /f 0 1000000 1
	calm
done

check "added" add
check "works" "$CLIENT" "$(url3 re /more)" write /g 0 100000 1
busy 4
sigstop up
sleep 1
begun=$(now_ms)
check "removed with a stopped upstream and writes in flight" remove
took=$(($(now_ms) - begun))
check "in $took ms" at_most $took 15000
check "the other export serves" c3 re verify /f 0 1000000 1
sigcont up
calm
check "added again" add
check "and works again" "$CLIENT" "$(url3 re /more)" verify /g 0 100000 1
check "ends when asked" stop re 5
