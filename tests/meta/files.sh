#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Every source file says its licence, and none outgrows what one can read.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/../integration/functions.sh"
cd "$SSC_ROOT"

files() {
	find . \( -path ./.git -o -path ./build \) -prune -o -type f -print |
		grep -E '/(run|CMakeLists\.txt|[^/]+\.(c|h|sh|py))$'
}

without_spdx() {
	files | while IFS= read -r f; do
		head -n 3 "$f" | grep -q 'SPDX-License-Identifier: ' || echo "$f"
	done
}

# The engine for fio includes fio's headers and so shares fio's licence; nothing else may.
with_other_licence() {
	files | grep -v '^\./tests/bench/' | while IFS= read -r f; do
		head -n 3 "$f" | grep -q 'SPDX-License-Identifier: LGPL-3.0-or-later' || echo "$f"
	done
}

too_long() {
	files | while IFS= read -r f; do
		n=$(wc -l <"$f")
		[ "$n" -le 600 ] || echo "$f: $n lines"
	done
}

check_same "every source file has a licence line" "$(without_spdx)" ""
check_same "and outside of tests/bench it is the project's" "$(with_other_licence)" ""
check_same "no source file has more than 600 lines" "$(too_long)" ""
check "the licence text is there" grep -q "GNU LESSER GENERAL PUBLIC LICENSE" LICENSE
