#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# What is mended of the server (330-mended.sh) under valgrind: no wrong access and no leak on a path
# through our code, with replies that are kept and sent again. Not with clients that go away meanwhile:
# the server's transport then loses the reply it was sending, of its own READ as well.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

start_upstream up "$(addr 11)"
mkdir -p "$T/stack"
chmod 0777 "$T/stack"
reexport_conf re "$(addr 12)" "$(ssc_block up)" "
	EXPORT { Export_Id = 21; Path = \"$T/stack\"; Pseudo = \"/stack\";
		FSAL { Name = SSC; FSAL { Name = VFS; } } }"
GANESHA_REAL=$(command -v "$GANESHA")
cat >"$T/slow" <<-EOS
	#!/bin/bash
	exec valgrind --tool=memcheck --leak-check=full --show-leak-kinds=definite \
		--xml=yes --xml-file=$T/memcheck.xml --num-callers=40 --main-stacksize=8388608 \
		$GANESHA_REAL "\$@"
EOS
chmod +x "$T/slow"
GANESHA=$T/slow launch re
wait_for 120 is_ready re || die "the server did not start under valgrind"

part() {
	timeout 150 python3 -B "$SSC_ROOT/tests/integration/mended.py" "$1" "${ADDR[re]}" "$NFS_PORT" \
		"$2" "$3"
}
for one in attributes advise read_plus limits; do
	check "/re: $one" part "$one" /re "$T/up/exp"
	check "/stack: $one" part "$one" /stack "$T/stack"
done
check "/re: noseek" part noseek /re "$T/up/exp"
check "/stack: seek" part seek /stack "$T/stack"
check "ends when asked" stop re 60
check "valgrind has nothing against our code" python3 -I "$SSC_ROOT/tests/integration/memcheck.py" \
	"$T/memcheck.xml"
