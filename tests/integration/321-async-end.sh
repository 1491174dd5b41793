#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# The export or the server ends while copies run and a callback is not answered, the upstream alive or
# stopped: in time, and without harm to other exports. See part_hold in async.py.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

SIZE=48000000
SSC="SSC { Copy_Sync_Max_Bytes = 65536; Copy_Chunk_Bytes = 65536; Copy_Inflight_Max = 1; }"
start_bus
start_upstream up "$(addr 11)"
start_upstream other "$(addr 13)"
"$CLIENT" pattern $SIZE 7 >"$T/up/exp/src"
cat >"$T/other.conf" <<-EOT
	EXPORT {
		Export_Id = 78; Path = /other; Pseudo = /other;
		Access_Type = RW; Squash = No_Root_Squash; SecType = sys; Protocols = 3, 4;
		FSAL { $(ssc_block other) }
	}
EOT
start_reexport re "$(addr 12)" "$(ssc_block up)" "$SSC
$(<"$T/other.conf")"

# hold: start copies; they run, the upstream is stopped, one callback waits for its answer.
hold() {
	local line
	coproc HOLD { timeout 60 python3 -B "$SSC_ROOT/tests/integration/async.py" hold "${ADDR[re]}" \
		"$NFS_PORT" "${PID[up]}" $SIZE 2>&1; }
	HOLD_IN=${HOLD[1]} HOLD_OUT=${HOLD[0]}
	while IFS= read -r line <&"$HOLD_OUT" && [ "$line" != ready ]; do
		check "held: ${line#*ok - }" test "${line%% *}" = ok
	done
}

# let_go: end that client, and count what it has seen.
let_go() {
	local line
	echo >&"$HOLD_IN" || :
	while IFS= read -r line <&"$HOLD_OUT"; do
		case $line in
		"ok - "*) check "let go: ${line#ok - }" true ;;
		"#"*) echo "$line" ;;
		*) check "let go: ${line#not ok - }" false ;;
		esac
	done
}

# in_time WHAT COMMAND...: it takes 8 s at most.
in_time() {
	local what=$1 begun took=99999
	shift
	begun=$(now_ms)
	! "$@" || took=$(($(now_ms) - begun))
	check "$what in $took ms" at_most "$took" 8000
}

for upstream in alive stopped; do
	hold
	[ $upstream = stopped ] || sigcont up
	in_time "upstream $upstream: the export leaves" dbus_export re RemoveExport uint16:11
	check "the server lives" is_running re
	check "the other export serves" "$CLIENT" "$(url3 re /other)" write /f 0 1000000 1
	let_go
	sigcont up
	check "the server still lives" is_running re
	stop re 8 || die "the server does not end"
	start re

	hold
	[ $upstream = stopped ] || sigcont up
	in_time "upstream $upstream: the server ends" stop re 10
	let_go
	sigcont up
	start re
done
refuse_log re ':CRIT :.*SSC'
check "ends when asked" stop re 5
