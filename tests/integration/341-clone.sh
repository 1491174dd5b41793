#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# CLONE: shared blocks where the file system below has them, NOTSUPP elsewhere. See copyrules.py.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

# mount_xfs NAME: a file system with shared blocks at $T/NAME.
mount_xfs() {
	truncate -s 400M "$T/$1.img"
	mkfs.xfs -q -m reflink=1 "$T/$1.img" || die "mkfs.xfs failed"
	mkdir "$T/$1"
	mount -o loop "$T/$1.img" "$T/$1" || die "this kernel cannot mount XFS from a file"
	at_exit umount "$T/$1"
	chmod 0777 "$T/$1"
}

mount_xfs x1
mount_xfs x2
start_upstream up1 "$(addr 11)"
ln -s "$T/up1/exp" "$T/re1"
mkdir -m 0777 "$T/st1"

# export_block ID NAME FSAL
export_block() {
	cat <<-EOF2
		EXPORT {
			Export_Id = $1; Path = "$T/$2"; Pseudo = "/$2"; Access_Type = RW;
			Squash = No_Root_Squash; Attr_Expiration_Time = 0; FSAL { $3 }
		}
	EOF2
}
stack="Name = SSC; FSAL { Name = VFS; }"
start_reexport re "$(addr 12)" "" "
	$(export_block 21 re1 "$(ssc_block up1)")
	$(export_block 23 st1 "$stack")
	$(export_block 24 x1 "$stack")
	$(export_block 25 x2 "$stack")"

while IFS= read -r line; do
	case $line in
	"ok - "*) check "${line#ok - }" true ;;
	*) check "${line#not ok - }" false ;;
	esac
done < <(timeout 120 python3 -B "$SSC_ROOT/tests/integration/copyrules.py" clone "${ADDR[re]}" \
	"$NFS_PORT" "$T" 2>&1 || :)
refuse_log re ':(CRIT|MAJ) :.*(SSC|FSAL)'
check "ends when asked" stop re 5
