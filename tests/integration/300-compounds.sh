#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Compounds with COPY, COPY_NOTIFY, OFFLOAD_* and CLONE are taken apart and answered as the RFC has it,
# and all others as by a server without us. See compounds.py.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

mkdir -m 0777 "$T/data" "$T/data/d" "$T/ro"
echo hello >"$T/data/f"
echo hello >"$T/ro/f"
ln -s f "$T/data/link"
"$CLIENT" pattern 1000001 7 >"$T/data/big"
chmod 0644 "$T/data/f" "$T/data/big"

# ro_export FSAL_BLOCK: a second export, read-only.
ro_export() {
	cat <<-EOF
		EXPORT {
			Export_Id = 12;
			Path = $T/ro;
			Pseudo = /ro;
			Access_Type = RO;
			FSAL { $1 }
		}
	EOF
}

# One folder for all of them, and no times that change by being looked at.
EXPORT_PATH=$T/data start_reexport vfs "$(addr 11)" "Name = VFS;" "$(ro_export "Name = VFS;")"
EXPORT_PATH=$T/data start_reexport re "$(addr 12)" "Name = SSC; FSAL { Name = VFS; }" \
	"$(ro_export "Name = SSC; FSAL { Name = VFS; }")"
EXPORT_PATH=$T/data start_reexport off "$(addr 13)" "Name = SSC; FSAL { Name = VFS; }" \
	"SSC { Enable_Copy = false; }"

# compounds PART HOST...: its checks.
compounds() {
	local part=$1 line
	shift
	say "$part" "$@"
	while IFS= read -r line; do
		case $line in
		"ok - "*) check "${line#ok - }" true ;;
		*) check "${line#not ok - }" false ;;
		esac
	done < <(timeout 120 python3 -B "$SSC_ROOT/tests/integration/compounds.py" "$part" \
		"$NFS_PORT" "$@" 2>&1 || echo "not ok - compounds.py $part")
}

compounds ours "${ADDR[re]}" "${PID[re]}"
compounds same "${ADDR[re]}" "${ADDR[vfs]}"
compounds stock "${ADDR[vfs]}"
compounds stock "${ADDR[off]}"
check_same "the read-only file is as it was" "$(stat -c %s "$T/ro/f")" 6
compounds faults "${ADDR[vfs]}"
check_same "so that the read-only file grew" "$(stat -c %s "$T/ro/f")" 4096
expect_log re 'operations of NFSv4 are this module'
refuse_log off 'operations of NFSv4 are this module'
refuse_log re ':CRIT :.*SSC'
for name in re off; do
	check "$name ends when asked" stop "$name" 5
done
