#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# The loaded module under valgrind: no wrong access and no leak on a path that goes through our code.
# The stock server has faults of its own; they do not count.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

start_bus
start_upstream up "$(addr 11)"
reexport_conf re "$(addr 12)" "$(ssc_block up)"
GANESHA_REAL=$(command -v "$GANESHA")
cat >"$T/slow" <<-EOF
	#!/bin/bash
	exec valgrind --tool=memcheck --leak-check=full --show-leak-kinds=definite \
		--xml=yes --xml-file=$T/memcheck.xml --num-callers=40 --main-stacksize=8388608 \
		$GANESHA_REAL "\$@"
EOF
chmod +x "$T/slow"
GANESHA=$T/slow launch re
wait_for 120 is_ready re || die "the server did not start under valgrind"

patient() { "$CLIENT" -w 60 "$@"; }
check "works" patient "$(url3 re)" write /f 0 3000000 1
check "reads" patient "$(url4 re)" verify /f 0 3000000 1
make_tree "$T/tree"
rm -f "$T/tree/a/f3500000"
check "a tree in" patient "$(url3 re)" treein "$T/tree" /
check "a tree out" patient "$(url4 re)" treeout / "$T/out"
check "random changes over v3" patient "$(url3 re)" churn / 3 1
check "random changes over v4" patient "$(url4 re)" churn / 3 2

# The upstream restarts in the middle of something, and stops for a while.
patient "$(url3 re)" write /g 0 20000000 2 >/dev/null 2>&1 &
job=$!
sleep 1
kill9 up
start up
rc=0
wait "$job" || rc=$?
check "a restart of the upstream" [ "$rc" = 0 ]
sigstop up
check_not "a stopped upstream: one attempt" "$CLIENT" -w 0 "$(url3 re)" write /f 0 4096 1
sigcont up

cat >"$T/more.conf" <<-EOF
	EXPORT {
		Export_Id = 77; Path = /more; Pseudo = /more;
		Access_Type = RW; Squash = No_Root_Squash; SecType = sys; Protocols = 3, 4;
		FSAL { $(ssc_block up) }
	}
EOF
for _ in 1 2 3; do
	check "an export comes" dbus_export re AddExport "string:$T/more.conf" 'string:EXPORT(Export_Id=77)'
	check "serves" patient "$(url3 re /more)" verify /f 0 3000000 1
	check "and goes" dbus_export re RemoveExport uint16:77
done
check "ends when asked" stop re 60

check "valgrind has nothing against our code" python3 -I "$SSC_ROOT/tests/integration/memcheck.py" \
	"$T/memcheck.xml"
