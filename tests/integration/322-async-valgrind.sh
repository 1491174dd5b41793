#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Asynchronous copies under valgrind: no wrong access and no leak on a path that goes through our code,
# with callbacks answered and not, connections that drop, sessions and clients that go, and a server
# that ends in the middle. See async.py.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

SIZE=6000000
start_upstream up "$(addr 11)"
"$CLIENT" pattern $SIZE 7 >"$T/up/exp/src"
reexport_conf re "$(addr 12)" "$(ssc_block up)" \
	"SSC { Copy_Sync_Max_Bytes = 65536; Copy_Chunk_Bytes = 65536; Copy_Inflight_Max = 1; }"
GANESHA_REAL=$(command -v "$GANESHA")
cat >"$T/slow" <<-EOT
	#!/bin/bash
	exec valgrind --tool=memcheck --leak-check=full --show-leak-kinds=definite \
		--xml=yes --xml-file=$T/memcheck.xml --num-callers=40 --main-stacksize=8388608 \
		$GANESHA_REAL "\$@"
EOT
chmod +x "$T/slow"
GANESHA=$T/slow launch re
wait_for 120 is_ready re || die "the server did not start under valgrind"

# run PART: what it checks is checked elsewhere, and times are not what they are without valgrind.
run() {
	timeout 150 python3 -B "$SSC_ROOT/tests/integration/async.py" "$1" "${ADDR[re]}" "$NFS_PORT" \
		"${PID[up]}" $SIZE 2>&1 || :
	sigcont up
}
for part in once drop cancel gone silent; do
	out=$(run $part)
	check "$part: $(grep -c '^ok' <<<"$out") checks, of which failed" at_most \
		"$(grep -c '^not ok' <<<"$out" || :)" 3
	check "$part: the server lives" is_running re
done

coproc HOLD { timeout 100 python3 -B "$SSC_ROOT/tests/integration/async.py" hold "${ADDR[re]}" \
	"$NFS_PORT" "${PID[up]}" $SIZE 2>&1 || :; }
while IFS= read -r line <&"${HOLD[0]}" && [ "$line" != ready ]; do
	echo "# $line"
done
check "ends while copies run and a callback is not answered" stop re 60
sigcont up
check "valgrind has nothing against our code" python3 -I "$SSC_ROOT/tests/integration/memcheck.py" \
	"$T/memcheck.xml"
