#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Opens as real clients seldom ask for them, and what NFSv3 cannot do. See open.py.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

start_upstream up "$(addr 11)"
start_reexport re "$(addr 12)" "$(ssc_block up)"
for part in creates shares fresh none; do
	say "$part"
	while IFS= read -r line; do
		case $line in
		"ok - "*) check "${line#ok - }" true ;;
		*) check "${line#not ok - }" false ;;
		esac
	done < <(timeout 60 python3 -B "$SSC_ROOT/tests/integration/open.py" "$part" "${ADDR[re]}" \
		"${ADDR[up]}" "$NFS_PORT" "$T/up/exp" 2>&1 || :)
done
refuse_log re ':CRIT :.*(SSC|FSAL)'
check "ends when asked" stop re 5
