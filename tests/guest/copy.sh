#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# copy.sh SERIES - a guest with that kernel has the server copy files: between two re-exports, within
# one, from and to stacked exports, whole and in parts, alone and many at once. Every copy is compared
# here, in the folders below. The client counts its calls, and the bytes on its link.

series=$1
# shellcheck source-path=SCRIPTDIR source=lab.sh
. "$(dirname "$0")/lab.sh"
# shellcheck source-path=SCRIPTDIR source=copy-lab.sh
. "$here/copy-lab.sh"
MIB=1048576
PAIRS=(re:re2 re2:re re:re re:vfs vfs:re2 vfs:vfs xfs:re vfs:xfs xfs:xfs)
SMALL="f0 f1 f4095 f1m f2m"
N_SMALL=${SSC_GUEST_SMALL:-1000}

make_sources() {
	local d=$1 seed=$2
	"$CLIENT" pattern 1 "$seed" >"$d/f1"
	: >"$d/f0"
	"$CLIENT" pattern 4095 "$seed" >"$d/f4095"
	"$CLIENT" pattern $((MIB + 1)) "$seed" >"$d/f1m"
	"$CLIENT" pattern $((2 * MIB)) "$seed" >"$d/f2m"
	"$CLIENT" pattern 5000001 "$seed" >"$d/f5m"
	"$CLIENT" pattern $((20 * MIB + 7)) "$seed" >"$d/f20m"
	truncate -s 12M "$d/sparse"
	dd if="$d/f1m" of="$d/sparse" bs=64k count=1 conv=notrunc status=none
	dd if="$d/f1m" of="$d/sparse" bs=1000 count=100 oseek=7347 conv=notrunc status=none
	chmod 666 "$d"/*
}

# Each file of FILES by each mode of MODES, as TO/FROM.FILE.MODE.
same_copies() {
	local a=${1%:*} b=${1#*:} f m
	for f in $FILES; do
		for m in $MODES; do
			cmp "${FOLDER[$a]}/$f" "${FOLDER[$b]}/$a.$f.$m" || return 1
		done
	done
}

run_modes() {
	local pair
	MODES=$1 FILES=$2
	phase modes "'$1'" "'$2'" "${PAIRS[@]}"
	for pair in "${PAIRS[@]}"; do
		check "$series $pair: $FILES by cp $MODES" same_copies "$pair"
	done
}

# under_one_percent BYTES: of what was copied went over the client's link.
under_one_percent() { at_most "$(figure link)" $(($1 / 100)); }

# no_data TITLE: went through the client in the last phase.
no_data() {
	check_same "$series $1: nothing is read" "$(($(figure READ) + $(figure READ_PLUS)))" 0
	check_same "$series $1: nothing is written" "$(figure WRITE)" 0
}

whole_files() {
	run_modes "plain never auto range" "$SMALL"
	no_data "small files"
	run_modes range sparse
	no_data "sparse file"
	run_modes "never range" f20m
	local n=$((${#PAIRS[@]} * 2))
	no_data "big files"
	check "$series big files: $(figure link) bytes on the link for $n times 20 MiB" \
		under_one_percent $((n * 20 * MIB))
	# Within the XFS cp clones.
	check_same "$series big files: each is one COPY or CLONE" $(($(figure COPY) + $(figure CLONE))) "$n"
	check_same "$series big files: one is a CLONE" "$(figure CLONE)" 1
	# What has holes cp reads and writes itself, by these modes, as it does all files by --sparse=always.
	run_modes "plain auto never" sparse
	run_modes always "sparse f5m"
}

# Of 5,000,001 bytes; each is NAME FROM_OFFSET TO_OFFSET BYTES.
PARTS=(a 13 4097 1 b 1 0 4999999 c 4096 8191 2097153 d 4999999 70001 2 e 0 3 0 f 2500001 1 2097152
	g 5 5000000001 3000000)
same_parts() {
	local a=${FOLDER[$1]}/f5m b=${FOLDER[$2]} i at to bytes
	for ((i = 0; i < ${#PARTS[@]}; i += 4)); do
		at=${PARTS[i + 1]} to=${PARTS[i + 2]} bytes=${PARTS[i + 3]}
		[ "$bytes" != 0 ] || bytes=$((5000001 - at))
		cmp -n "$bytes" -i "$at:$to" "$a" "$b/$1.${PARTS[i]}" || return 1
		same "$(stat -c %s "$b/$1.${PARTS[i]}")" $((to + bytes)) || return 1
		[ "$to" -gt 100000 ] || cmp -n "$to" /dev/zero "$b/$1.${PARTS[i]}" || return 1
	done
}

parts() {
	local pair a b i words
	for pair in re:re2 re:re vfs:re xfs:vfs; do
		a=${pair%:*} b=${pair#*:} words=()
		for ((i = 0; i < ${#PARTS[@]}; i += 4)); do
			words+=("$a.${PARTS[i]}" "${PARTS[@]:i+1:3}")
		done
		phase at "$a" "$b" "${words[@]}"
		check "$series $pair: parts at odd offsets" same_parts "$a" "$b"
	done
}

same_many() {
	local i
	for ((i = 1; i <= $1; i++)); do
		cmp "${FOLDER[$2]}/f5m" "${FOLDER[$3]}/many.$i" || return 1
	done
}
many_at_once() {
	phase many 20 "$1" "$2"
	check "$series $1 to $2: 20 copies at once" same_many 20 "$1" "$2"
	check "$series $1 to $2: $(figure link) bytes on the link for 20 times 5 MB" under_one_percent 100000000
	no_data "$1 to $2"
}

# COPY is no more calls than READ and WRITE, which a server makes a client do that allows no copies.
many_small() {
	local with m
	mkdir -m 777 "$T/up/exp/small"
	"$CLIENT" pattern $((N_SMALL * 4096)) 3 | split -b 4096 -a 4 - "$T/up/exp/small/f"
	NFSV4_EXTRA=$(nfsv4_of off) start_reexport off "$(addr 4)" "$(ssc_block up "Allow_Copy = false;")" "
		EXPORT { Export_Id = 12; Path = /re2; Pseudo = /re2; FSAL { $(ssc_block up2 "Allow_Copy = false;") } }"
	phase more "$(addr 4)"
	phase tree m re re2
	with=$(figure rpcs)
	say "with COPY: $with calls, $(figure link) bytes on the link, $(figure ms) ms"
	check "$series $N_SMALL files of 4 KiB: each is copied by the server" [ "$(figure COPY)" -ge "$N_SMALL" ]
	phase tree off re re2
	say "without: $(figure rpcs) calls, $(figure link) bytes on the link, $(figure ms) ms"
	check "$series $N_SMALL files of 4 KiB: no more calls than without COPY" at_most "$with" "$(figure rpcs)"
	for m in m off; do
		check "$series $N_SMALL files of 4 KiB are the same ($m)" diff -r "$T/up/exp/small" "$T/up2/exp/small.$m"
	done
}

# Blocks of 1 MiB, far apart or not; the last is behind 4 GiB.
BLOCKS=(0 1 5 300 302 900 1500 1501 1502 2047 2048 3000 4095 4096 4500 5100)
same_blocks() {
	local at
	same "$(stat -c %s "$1")" "$(stat -c %s "$2")" || return 1
	for at in "${BLOCKS[@]}"; do
		cmp -n $MIB -i $((at * MIB)) "$1" "$2" || return 1
	done
	# With all of these there is no room for other data.
	at_most "$(du -k "$2" | cut -f1)" $((17 * 1024))
}
sparse_files() {
	local at dense f
	for at in "${BLOCKS[@]}"; do
		dd if="$T/vfs/f1m" of="$T/vfs/big" bs=1M count=1 oseek="$at" conv=notrunc status=none
	done
	truncate -s 5G "$T/vfs/big"
	"$CLIENT" pattern $((16 * MIB)) 8 >"$T/vfs/dense"
	phase sparse
	dense=$(figure dense_ms)
	say "vfs: 16 MiB took $dense ms, the same in 5 GiB $(figure ms) ms, by cp $(figure cp_ms) ms"
	check "$series vfs: time follows the data" at_most "$(figure ms)" $((dense * 3 + 300))
	for f in big.copy big.cp; do
		check "$series vfs: $f has all data and keeps its holes" same_blocks "$T/vfs/big" "$T/vfs/$f"
	done
}

xfs_used_kib() {
	sync -f "$T/xfs"
	df --output=used -k "$T/xfs" | tail -n 1
}
clones() {
	local used f
	used=$(xfs_used_kib)
	phase clones
	check_same "$series xfs: cp --reflink=always is one CLONE" "$(figure CLONE)" 1
	check "$series xfs: clones share their blocks" at_most $(($(xfs_used_kib) - used)) 8000
	check "$series xfs: clone is the same" cmp "$T/xfs/f20m" "$T/xfs/clone"
	check "$series xfs: second clone is the same" cmp "$T/xfs/f5m" "$T/xfs/clone2"
	for f in xfs vfs re; do
		check "$series $f: cp --reflink=auto gives a full file" cmp "${FOLDER[$f]}/f5m" "${FOLDER[$f]}/clone.auto"
	done
}

start_upstreams
seed=0
for e in re re2 vfs xfs; do make_sources "${FOLDER[$e]}" $((++seed)); done
start_copy_server re "$(addr 2)"
boot client "$series" 1 "$here/copy.payload" start "$(addr 2)" "hard${SSC_GUEST_OPTION:+,$SSC_GUEST_OPTION}" re re2 vfs xfs
check "$series: the guest mounts four exports by v4.2" gx 1 "dmesg -c >/dev/null; test -e /o/xfs/f1"

seed=$((RANDOM * 32768 + RANDOM))
clones
whole_files
parts
for pair in re:re2 re:re vfs:re xfs:vfs; do
	phase seen "${pair%:*}" "${pair#*:}"
	phase ranges "${pair%:*}" "${pair#*:}" 60 $seed
done
phase setid re vfs xfs
phase locked re vfs
check_same "$series locked files: the server copies them" "$(figure WRITE)" 0
for e in re vfs; do check "$series $e: locked file" cmp "${FOLDER[$e]}/f5m" "${FOLDER[$e]}/locked"; done
many_at_once re re2
many_at_once xfs vfs
many_small
sparse_files
phase quiet
check "$series: the server is the process that was started" is_running re
refuse_log re 'FSAL :(CRIT|MAJ|FATAL)'
check "$series: the guest ends" gx 1 'agent quit'
check "$series: the server stops" stop re 15
