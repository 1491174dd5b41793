#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Random compounds (301-compound-fuzz.sh) under valgrind: no wrong access and no leak on a path that goes
# through our code.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"
# shellcheck source=tests/integration/fuzzed.sh
. "$(dirname "$0")/fuzzed.sh"

fuzzed_conf
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
seconds=${FUZZ_S:-30}
check "$seconds s of random compounds (SSC_SEED=$seed)" fuzz "$seconds"
sed 's/^/# /' "$report"
check "ends when asked" stop re 60
check "valgrind has nothing against our code" python3 -I "$SSC_ROOT/tests/integration/memcheck.py" \
	"$T/memcheck.xml"
