#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# mkinitrd.sh KDIR GUESTDIR OUT [MODULE | /PATH/PROGRAM]...
# An initramfs of busybox, coreutils' cp (as /sbin/cp: unlike busybox's it makes servers copy), the
# programs in GUESTDIR/bin and the NFS client's modules, plus the named modules and programs (with the
# shared libraries these need). KDIR is getkernel.sh's. Modules load on demand: mount makes the kernel
# ask for nfs and nfsv4. A newer OUT than all it is made of stays.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
kdir=$1 bin=$2/bin out=$3
shift 3
kver=$(basename "$kdir"/lib/modules/*)

if [ -e "$out" ] && [ -z "$(find "$here/mkinitrd.sh" "$here/init" "$here/agent" "$bin/fsops" "$bin/gctl" "$kdir/vmlinux" -newer "$out")" ]; then
	exit 0
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
mkdir -p "$root"/{bin,sbin,dev,proc,sys,tmp,mnt,etc,run,var/lib/nfs,lib/modules/"$kver"}
ln -s ../run "$root/var/run"
ln -s ../bin/busybox "$root/sbin/modprobe" # what the kernel runs for a missing module
cp /bin/busybox "$bin/fsops" "$bin/gctl" "$here/agent" "$root/bin/"
cp /etc/{netconfig,protocols,services,rpc} "$root/etc/" # for libtirpc's programs
install -m 755 "$here/init" "$root/init"

mods=(virtio_pci virtio_net nfs nfsv3 nfsv4 nfs_layout_nfsv41_files nfs_layout_flexfiles)
for a in /bin/cp "$@"; do
	case $a in
	/*)
		install -D "$a" "$root/sbin/${a##*/}"
		if ldd "$a" | grep 'not found' >&2; then exit 1; fi
		ldd "$a" | grep -o '/[^ ]*' | while read -r lib; do install -D "$lib" "$root$lib"; done
		;;
	*) mods+=("$a") ;;
	esac
done

# Each module with those that it needs, unpacked here rather than by the guest's emulated CPU.
for m in "${mods[@]}"; do modprobe -d "$kdir" -S "$kver" --show-depends "$m"; done |
	awk '$1 == "insmod" { print $2 }' | sort -u | while read -r file; do
	to=$root/lib/modules/${file##*/lib/modules/}
	mkdir -p "${to%/*}"
	case $file in
	*.xz) xz -dc "$file" >"${to%.xz}" ;;
	*) cp "$file" "$to" ;;
	esac
done
cp "$kdir/lib/modules/$kver"/modules.{builtin,builtin.modinfo,order} "$root/lib/modules/$kver/"
depmod -b "$root" "$kver"
rm -f "$root/lib/modules/$kver"/modules.*.bin
(cd "$root" && find . | LC_ALL=C sort | cpio -o -H newc -R 0:0 --quiet) >"$out.new"
mv "$out.new" "$out"
