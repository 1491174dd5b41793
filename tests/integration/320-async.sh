#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Asynchronous copies as a client sees them: answers, progress, callbacks, cancelling, lost
# connections, and what goes while they run. See async.py.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

SIZE=16000000

# Small steps, so that a copy takes long enough to be met in the middle.
SSC="SSC { Copy_Sync_Max_Bytes = 65536; Copy_Chunk_Bytes = 65536; Copy_Inflight_Max = 1;
	Copy_Max = 6; Copy_Max_Per_Client = 4; }"
start_upstream up "$(addr 11)"
"$CLIENT" pattern $SIZE 7 >"$T/up/exp/src"
start_reexport re "$(addr 12)" "$(ssc_block up)" "$SSC"

# copies PART: its checks.
copies() {
	local line
	say "$1"
	while IFS= read -r line; do
		case $line in
		"ok - "*) check "$1: ${line#ok - }" true ;;
		*) check "$1: ${line#not ok - }" false ;;
		esac
	done < <(timeout 150 python3 -B "$SSC_ROOT/tests/integration/async.py" "$1" "${ADDR[re]}" \
		"$NFS_PORT" "${PID[up]}" $SIZE 2>&1 || echo "not ok - async.py $1")
	sigcont up
}

for part in ${PARTS:-once again drop cancel gone many silent}; do
	copies "$part"
	check "$part: the server lives" is_running re
done
for name in once twice again; do
	[ -z "${PARTS-}" ] || break
	check "the copy $name is the source" cmp "$T/up/exp/src" "$T/up/exp/$name"
done
refuse_log re ':CRIT :.*SSC'
check "ends when asked" stop re 5
