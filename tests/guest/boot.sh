#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# boot.sh -k KDIR -n TAP -i ADDR/BITS [option]... PAYLOAD [WORD]...
# Boots a Debian kernel by QEMU's emulation (no KVM needed), runs the shell script PAYLOAD as root in
# it, prints its console, and exits with the payload's status: up to 123 as it is, 124 when the time
# ran out or on TERM, 125 when the guest ended without a status (a panic).
#   -I FILE  initramfs (KDIR/initrd)      -m MIB  memory (512)
#   -d FILE  a raw disk, /dev/vda, whose writes stay
#   -p FILE  writes QEMU's pid there      -t SEC  time limit (240)
# The guest's host name follows its address: a Linux client is known by its name, and a server takes
# a second one of that name for a reboot of the first.
set -euo pipefail
kdir='' initrd='' mem=512 tap='' ip='' limit=240 pidfile='' disk=()
while getopts k:I:m:n:i:d:p:t: o; do
	case $o in
	k) kdir=$OPTARG ;;
	I) initrd=$OPTARG ;;
	m) mem=$OPTARG ;;
	n) tap=$OPTARG ;;
	i) ip=$OPTARG ;;
	d) disk=(-drive "if=virtio,format=raw,cache=writeback,file=$OPTARG") ;;
	p) pidfile=$OPTARG ;;
	t) limit=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
payload=$1
shift
name=guest-${ip%/*}
name=${name//./-}
mac=52:54:$(echo "$ip" | md5sum | sed -E 's/(..)(..)(..)(..).*/\1:\2:\3:\4/')

# The kernel unpacks initramfs archives one after the other: the base, then the payload's.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/add"
cp "$payload" "$tmp/add/payload"
{
	cat "${initrd:-$kdir/initrd}"
	cd "$tmp/add" && find . -mindepth 1 | cpio -o -H newc -R 0:0 --quiet
} >"$tmp/initrd"

# cryptomgr.notests: the crypto self tests take half a second of emulated time.
timeout --foreground "$limit" qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
	-M q35,usb=off,sata=off,smbus=off -accel tcg,thread=multi -cpu max -smp 1 -m "$mem" \
	-kernel "$kdir/vmlinux" -initrd "$tmp/initrd" \
	-append "console=ttyS0 quiet loglevel=4 panic=-1 tsc=reliable mitigations=off nokaslr \
cryptomgr.notests audit=0 IP=$ip NAME=$name ARGS=\"$*\"" \
	-serial stdio -device isa-debug-exit,iobase=0xf4,iosize=1 \
	-netdev "tap,id=n0,script=no,downscript=no,ifname=$tap" \
	-device "virtio-net-pci,netdev=n0,mac=$mac,romfile=" "${disk[@]}" ${pidfile:+-pidfile "$pidfile"} \
	</dev/null > >(sed -u 's/\r//g') &
q=$!
trap 'kill $q; wait $q; rm -rf "$tmp"; exit 124' TERM INT
rc=0
wait $q || rc=$?
wait
# The payload's status N reaches the debug port as N; QEMU exits with 2N+1.
case $rc in
124) exit 124 ;;
*[13579]) exit $(((rc - 1) / 2)) ;;
*) exit 125 ;;
esac
