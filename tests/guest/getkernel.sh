#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# getkernel.sh kernel SERIES DIR   the kernel that Debian's meta package names at this time (6.1 or
#                                  6.12), unpacked into DIR/k/KVER; prints that folder.
# getkernel.sh deb PACKAGE DIR     downloads a package into DIR unless it is there; prints its path.
#
# The packages come from this machine's own apt sources, which are never changed. In bookworm both
# series are offered by the main and security archives (6.12 as linux-image-6.12-cloud-amd64).
# vmlinux is the ELF image lifted out of the bzImage here: QEMU starts it directly, so that the
# guest does not spend seconds of emulated CPU unpacking itself.
set -euo pipefail

die() {
	echo "getkernel.sh: $*" >&2
	exit 1
}

declare -A meta=([6.1]=linux-image-cloud-amd64 [6.12]=linux-image-6.12-cloud-amd64)

candidate() { apt-cache policy "$1" 2>/dev/null | awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }'; }

# Package lists may be missing or old; one update is tried before giving up.
update_once() {
	[ -z "${updated:-}" ] && [ "$(id -u)" = 0 ] || return 1
	updated=1
	apt-get update -qq >&2
}

# deb PACKAGE DIR
deb() {
	local package=$1 dir=$2 version file
	version=$(candidate "$package")
	if [ -z "$version" ] && update_once; then version=$(candidate "$package"); fi
	[ -n "$version" ] || die "no apt source offers $package; run: sudo apt-get update (needs bookworm and bookworm-security)"
	mkdir -p "$dir"
	file=$dir/${package}_${version//:/%3a}_amd64.deb
	if [ ! -s "$file" ]; then
		(cd "$dir" && { apt-get -o APT::Sandbox::User=root download -qq "$package" >&2 || { update_once && apt-get -o APT::Sandbox::User=root download -qq "$package" >&2; }; }) ||
			die "cannot download $package; is the network up? run: apt-get download $package"
		# The version may be a newer one after an update.
		file=$(find "$dir" -name "${package}_*.deb" -newermt '-1 hour' -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2-)
	fi
	[ -s "$file" ] || die "apt-get download $package left no file in $dir"
	echo "$file"
}

# image_name SERIES: the package of the kernel itself.
image_name() {
	local m=${meta[$1]:-} name
	[ -n "$m" ] || die "unknown kernel series $1 (known: ${!meta[*]})"
	name=$(apt-cache depends "$m" 2>/dev/null | awk '$1 == "Depends:" && $2 ~ /^linux-image-/ { print $2; exit }')
	if [ -z "$name" ] && update_once; then
		name=$(apt-cache depends "$m" 2>/dev/null | awk '$1 == "Depends:" && $2 ~ /^linux-image-/ { print $2; exit }')
	fi
	[ -n "$name" ] || die "no apt source offers $m, so there is no Linux $1 for the guest; add bookworm-security and run: sudo apt-get update"
	case $name in
	linux-image-"$1".*) echo "$name" ;;
	*) die "$m names $name here, not a Linux $1: this test wants Debian 12" ;;
	esac
}

# lift_vmlinux BZIMAGE OUT. Boot protocol header: setup_sects u8 at 0x1f1, payload_offset u32 at
# 0x248, payload_length u32 at 0x24c.
lift_vmlinux() {
	local z=$1 off len unpack
	u() { od -An -v -t "u$1" -j "$2" -N "$1" "$z" | tr -d ' '; }
	off=$((($(u 1 0x1f1) + 1) * 512 + $(u 4 0x248)))
	len=$(u 4 0x24c)
	case $(od -An -v -t x1 -j "$off" -N 4 "$z" | tr -d ' ') in
	fd377a58) unpack=(xz -dc --single-stream) ;;
	28b52ffd) unpack=(zstd -dcq) ;;
	02214c18) unpack=(lz4 -dcq) ;;
	*) die "$z: unknown compression" ;;
	esac
	# The payload's last 4 bytes are its unpacked size, which the decompressors do not want.
	dd if="$z" iflag=skip_bytes,count_bytes skip="$off" count=$((len - 4)) bs=64k status=none | "${unpack[@]}" >"$2"
	[ "$(od -An -v -t x1 -N 4 "$2" | tr -d ' ')" = 7f454c46 ] || die "$z: no ELF image inside"
}

# kernel SERIES DIR
tmp= # global, for the trap
kernel() {
	local dir=$2 name kver file
	name=$(image_name "$1")
	kver=${name#linux-image-}
	if [ ! -e "$dir/k/$kver/vmlinux" ]; then
		file=$(deb "$name" "$dir/deb")
		mkdir -p "$dir/k"
		tmp=$(mktemp -d "$dir/k/unpack.XXXXXX")
		trap 'rm -rf "$tmp"' EXIT TERM INT
		dpkg -x "$file" "$tmp/deb"
		mkdir -p "$tmp/$kver/lib"
		mv "$tmp"/deb/lib/modules "$tmp/$kver/lib/" 2>/dev/null || mv "$tmp"/deb/usr/lib/modules "$tmp/$kver/lib/"
		depmod -b "$tmp/$kver" "$kver"
		lift_vmlinux "$tmp/deb/boot/vmlinuz-$kver" "$tmp/$kver/vmlinux"
		rm -rf "${dir:?}/k/$kver"
		mv "$tmp/$kver" "$dir/k/$kver"
	fi
	echo "$dir/k/$kver"
}

case ${1:-} in
deb | kernel) [ $# = 3 ] && "$@" ;;
*) die "usage: getkernel.sh kernel SERIES DIR | deb PACKAGE DIR" ;;
esac
