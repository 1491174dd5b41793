# SPDX-License-Identifier: LGPL-3.0-or-later
# shellcheck shell=bash
#
# fuzzed.sh - what scripts with random compounds share: a server with a re-export and a stack, and the
# program that fuzzes it. SSC_SEED repeats the random choices. Sourced after functions.sh.

seed=${SSC_SEED:-$RANDOM$RANDOM}
report=$T/fuzz.out

fill() {
	"$CLIENT" pattern 300000 "$2" >"$1/a"
	"$CLIENT" pattern 70000 "$2" >"$1/b"
	: >"$1/empty"
	mkdir "$1/d"
	ln -s a "$1/link"
	chmod 0666 "$1"/{a,b,empty}
}

# fuzzed_conf: an upstream that runs, and the configuration of re.
fuzzed_conf() {
	mkdir -m 0777 "$T/stack"
	start_upstream up "$(addr 11)"
	fill "$T/up/exp" 1
	fill "$T/stack" 2
	# Small enough that some copies go on by themselves.
	reexport_conf re "$(addr 12)" "$(ssc_block up)" "
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
}

# fuzz SECONDS: the report goes to $report.
fuzz() {
	timeout $(($1 + 120)) python3 -B "$SSC_ROOT/tests/integration/compound_fuzz.py" \
		"${ADDR[re]}" "$NFS_PORT" "${PID[re]}" "$seed" "$1" >"$report" 2>&1
}
