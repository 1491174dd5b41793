#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# A wrong value stops the load: nothing is exported, and the log names the key.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

start_upstream up "$(addr 11)"

# named KEY FSAL_BLOCK [MORE]: a server with this configuration names KEY as wrong.
named() {
	local key=$1
	shift
	rm -rf "$T/re"
	start_reexport re "$(addr 12)" "$@"
	expect_log re "CRIT.*\\b$key\\b" 10
}

# refused KEY FSAL_BLOCK [MORE]: and exports nothing.
refused() {
	named "$@"
	check_not "nothing is exported" c3 re mount
	stop re
}

# Every number just outside of its range, and every boolean that is none.
while IFS=$'\t' read -r block key kind min max; do
	case $kind in
	BOOL) wrong=(maybe) ;;
	UI*)
		wrong=("$((max + 1))")
		[ "$min" = 0 ] || wrong+=("$((min - 1))")
		;;
	*) continue ;;
	esac
	for value in "${wrong[@]}"; do
		say "$key = $value"
		if [ "$block" = SSC ]; then
			refused "$key" "$(ssc_block up)" "SSC { $key = $value; }"
		else
			# The block has the ports already; a key given twice is another mistake.
			refused "$key" "$(ssc_block up | sed "s/\\b$key = [^;]*;//") $key = $value;"
		fi
	done
done < <("$SSC_BUILD_DIR/tests/config_table" | cut -f 1,2,3,5,6)

say "no Server"
refused Server "Name = SSC; Remote_Path = /exp;"
say "an unknown key: the server names it, and goes on, as for any FSAL"
start_reexport re "$(addr 12)" "$(ssc_block up "Srever = 1;")"
expect_log re "\\bSrever\\b"
stop re
say "a relative path"
refused Remote_Path "Name = SSC; Server = ${ADDR[up]}; Remote_Path = exp;"

rm -rf "$T/re"
start_reexport re "$(addr 12)" "$(ssc_block up)"
check "and without a mistake it serves" c3 re mount
