#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Each interface header compiles alone, and twice, with no include path but its own.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/../integration/functions.sh"
cd "$SSC_ROOT"

compiles() {
	printf '#include "%s"\n#include "%s"\n' "$1" "$1" |
		"$2" -std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -Iinclude -fsyntax-only -x c -
}

for h in include/ssc/*.h; do
	check "$h compiles alone" compiles "${h#include/}" gcc
done
