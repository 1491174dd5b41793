#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# The table of keys in the code, the README's tables and the full sample say the same.
# `config.sh --print` prints the rows that the README must have.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/../integration/functions.sh"
cd "$SSC_ROOT"

# One row of the README for each key: key, default, range, unit, when it takes effect, what it does.
rows() {
	"$SSC_BUILD_DIR/tests/config_table" | awk -F '\t' '
		{
			value = $4 == "" ? "none" : "`" $4 "`"
			range = $3 == "BOOL" ? "`true`, `false`" : $3 == "STR" ? "text" : $5 " to " $6
			if ($7 != "") range = range " " $7
			print "| `" $2 "` | " value " | " range " | " $8 " | " $9 " |"
		}'
}

if [ "${1:-}" = --print ]; then
	QUIET_END=1
	rows
	exit 0
fi

in_readme() { grep -qFx -- "$1" README.md; }

# in_sample KEY DEFAULT: the sample has the key, with its default, perhaps commented out; for a text
# without default any value.
in_sample() {
	grep -Eq "^[[:space:]]*#?[[:space:]]*$1 = ${2:-[^;]+};" config_samples/ssc_full.conf
}

while IFS= read -r row; do
	check "README has: $row" in_readme "$row"
done < <(rows)

while IFS=$'\t' read -r key value; do
	check "the full sample has $key = ${value:-...}" in_sample "$key" "$value"
done < <("$SSC_BUILD_DIR/tests/config_table" | cut -f 2,4)

readme_keys() {
	# shellcheck disable=SC2016
	sed -nE 's/^\| `([A-Z][A-Za-z_]+)` \| .* \| (start|export|live) \| .*/\1/p' README.md | sort -u
}
check_same "README has no other key" "$(readme_keys)" \
	"$("$SSC_BUILD_DIR/tests/config_table" | cut -f 2 | sort -u)"
