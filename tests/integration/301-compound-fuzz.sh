#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Random compounds around COPY and CLONE, whole and damaged, on a re-export and a stack: the server goes
# on, and its memory does not grow. SSC_SEED repeats the random choices, FUZZ_S lasts longer.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

seed=${SSC_SEED:-$RANDOM$RANDOM}
seconds=${FUZZ_S:-20}

fill() {
	"$CLIENT" pattern 300000 "$2" >"$1/a"
	"$CLIENT" pattern 70000 "$2" >"$1/b"
	: >"$1/empty"
	mkdir "$1/d"
	ln -s a "$1/link"
	chmod 0666 "$1"/{a,b,empty}
}

mkdir -m 0777 "$T/stack"
start_upstream up "$(addr 11)"
fill "$T/up/exp" 1
fill "$T/stack" 2
# Small enough that some copies go on by themselves.
start_reexport re "$(addr 12)" "$(ssc_block up)" "
	SSC {
		Copy_Sync_Max_Bytes = 65536;
		Copy_Chunk_Bytes = 65536;
	}
	EXPORT {
		Export_Id = 12;
		Path = $T/stack;
		Pseudo = /stack;
		FSAL { Name = SSC; FSAL { Name = VFS; } }
	}"

say "SSC_SEED=$seed"
report=$T/fuzz.out
fuzz() {
	timeout $((seconds + 120)) python3 -B "$SSC_ROOT/tests/integration/compound_fuzz.py" \
		"${ADDR[re]}" "$NFS_PORT" "${PID[re]}" "$seed" "$seconds" >"$report" 2>&1
}
check "$seconds s of random compounds (seed $seed)" fuzz
sed 's/^/# /' "$report"
check "the server lives" is_running re
check "its memory did not grow" at_most "$(awk '/^grown/ { print $2 }' "$report")" 24576
check "it still serves" c3 re stat /a
refuse_log re ':CRIT :.*SSC'
check "and ends when asked" stop re 15
