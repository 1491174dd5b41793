#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# prep.sh [6.1|6.12]...   all that guests need, into build/guest (both series when none is named).
# prep.sh packages        only names the packages that this machine must have.
#
# Makes  bin/fsops, bin/gctl     the static programs that run inside a guest (fsops also outside)
#        SERIES -> k/KVER/       vmlinux, lib/modules, initrd; for 6.1 also initrd-nfsd
# What is there already and newer than its sources is kept. Needs root only to install packages.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${SSC_GUEST_DIR:-$here/../../build/guest}

# The libraries are those of nfs-kernel-server's programs, which are unpacked, never installed:
# installing that package would start an NFS server on this machine.
packages=(qemu-system-x86 busybox-static kmod cpio xz-utils zstd lz4 iproute2 gcc libc6-dev e2fsprogs
	xfsprogs netbase libtirpc3 libblkid1 libuuid1 libkeyutils1 libwrap0 libsystemd0)

if [ "${1:-}" = packages ]; then
	echo "${packages[@]}"
	exit 0
fi

install_packages() {
	local p missing=()
	for p in "${packages[@]}"; do
		dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || missing+=("$p")
	done
	[ ${#missing[@]} -eq 0 ] && return 0
	if [ "$(id -u)" != 0 ]; then
		echo "missing packages; run: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
		return 1
	fi
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
}

# build TARGET COMPILER-ARGUMENT...: made anew when a source is newer than it.
build() {
	local target=$1 a
	shift
	if [ -e "$target" ]; then
		for a in "$@" "$here/fsops.h"; do
			case $a in *.c | *.h) [ "$a" -nt "$target" ] && break ;; esac
			a=
		done
		[ -z "$a" ] && return 0
	fi
	gcc -std=gnu11 -O2 -Wall -Wextra -Werror "$@" -o "$target.new" && mv "$target.new" "$target"
}

# fetch PACKAGE: the .deb's path; lists of packages may be old, so one update is tried.
fetch() {
	local deb
	deb=$("$here/getkernel.sh" deb "$1" "$out/deb") && echo "$deb"
}

prepare_nfsd() {
	local p deb
	[ -x "$out/nfsd/usr/sbin/rpc.nfsd" ] && [ -x "$out/nfsd/sbin/rpcbind" ] && return 0
	rm -rf "$out/nfsd"
	for p in nfs-kernel-server rpcbind; do
		deb=$(fetch "$p")
		dpkg -x "$deb" "$out/nfsd"
	done
	[ -x "$out/nfsd/sbin/rpcbind" ] || { mkdir -p "$out/nfsd/sbin" && cp "$out/nfsd/usr/sbin/rpcbind" "$out/nfsd/sbin/"; }
}

install_packages
mkdir -p "$out/bin" "$out/deb" "$out/k"
build "$out/bin/gctl" -static "$here/gctl.c"
build "$out/bin/fsops" -static "$here"/fsops*.c

[ $# -gt 0 ] || set -- 6.1 6.12
for series; do
	kdir=$("$here/getkernel.sh" kernel "$series" "$out")
	ln -sfn "${kdir#"$out/"}" "$out/$series"
	"$here/mkinitrd.sh" "$kdir" "$out" "$kdir/initrd"
	if [ "$series" = 6.1 ]; then
		prepare_nfsd
		"$here/mkinitrd.sh" "$kdir" "$out" "$kdir/initrd-nfsd" nfsd virtio_blk ext4 \
			"$out"/nfsd/usr/sbin/{exportfs,rpc.mountd,rpc.nfsd} "$out/nfsd/sbin/rpcbind"
	fi
done
