#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# COPY between files of one server: contents, ranges, holes, and every rule. See copyrules.py.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

start_upstream up1 "$(addr 11)"
start_upstream up2 "$(addr 13)"
ln -s "$T/up1/exp" "$T/re1"
ln -s "$T/up2/exp" "$T/re2"
mkdir -m 0777 "$T/st1" "$T/plain" "$T/ro" "$T/off" "$T/squash"

# export_block ID NAME FSAL [ACCESS [SQUASH]]
export_block() {
	cat <<-EOF2
		EXPORT {
			Export_Id = $1; Path = "$T/$2"; Pseudo = "/$2"; Access_Type = ${4:-RW};
			Squash = ${5:-No_Root_Squash}; Attr_Expiration_Time = 0;
			FSAL { $3 }
		}
	EOF2
}
stack="Name = SSC; FSAL { Name = VFS; }"
start_reexport re "$(addr 12)" "" "
	$(export_block 21 re1 "$(ssc_block up1)")
	$(export_block 22 re2 "$(ssc_block up2)")
	$(export_block 23 st1 "$stack")
	$(export_block 24 plain "Name = VFS;")
	$(export_block 25 ro "$stack" RO)
	$(export_block 26 off "Name = SSC; Allow_Copy = false; FSAL { Name = VFS; }")
	$(export_block 27 squash "$stack" RW Root_Squash)"

# part NAME SERVER: its checks are ours.
part() {
	local line
	say "$1"
	while IFS= read -r line; do
		case $line in
		"ok - "*) check "${line#ok - }" true ;;
		*) check "${line#not ok - }" false ;;
		esac
	done < <(timeout 120 python3 -B "$SSC_ROOT/tests/integration/copyrules.py" "$1" "${ADDR[$2]}" \
		"$NFS_PORT" "$T" 2>&1 || :)
}

for name in whole ranges holes rules; do part "$name" re; done
refuse_log re ':(CRIT|MAJ) :.*(SSC|FSAL)'
check "ends when asked" stop re 5

start_reexport strict "$(addr 14)" "" "
	SSC { Copy_Strict_Range = true; }
	$(export_block 21 re1 "$(ssc_block up1)")
	$(export_block 23 st1 "$stack")"
part strict strict
check "the strict one ends when asked" stop strict 5
