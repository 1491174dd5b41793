# SPDX-License-Identifier: LGPL-3.0-or-later
# shellcheck shell=bash disable=SC2034 # what is set here is for the scripts that source this
#
# copy-lab.sh - what the scripts share in which a kernel client has files copied by the server; after
# lab.sh. The server "re", 10.77.0.2, has two re-exports, /re and /re2, of two upstreams, and two
# stacked exports of local folders, /vfs and /xfs; the latter is an XFS, which can share blocks.

: "${series:?}" # of the guest's kernel
declare -A FOLDER=()

# nfsv4_of NAME: a server with an identity of its own, which clients tell servers apart by.
nfsv4_of() { echo "Server_Owner = $1; Server_Scope = $1; Lease_Lifetime = 10;"; }

stacked_export() {
	echo "EXPORT { Export_Id = $1; Path = $2; Pseudo = /$3; FSAL { Name = SSC; FSAL { Name = VFS; } } }"
}

# start_copy_server NAME ADDRESS [MORE]: the re-exports and stacked exports.
start_copy_server() {
	NFSV4_EXTRA=$(nfsv4_of "$1") start_reexport "$1" "$2" "$(ssc_block up)" "
		EXPORT { Export_Id = 12; Path = /re2; Pseudo = /re2; FSAL { $(ssc_block up2) } }
		$(stacked_export 13 "$T/vfs" vfs)
		$(stacked_export 14 "$T/xfs" xfs)
		${3:-}"
}

start_upstreams() {
	local a
	for a in 3 4 5; do ip addr add "$(addr $a)/24" dev br0; done
	NFSV4_EXTRA=$(nfsv4_of up) start_upstream up "$(addr 1)"
	NFSV4_EXTRA=$(nfsv4_of up2) start_upstream up2 "$(addr 3)"
	mkdir -m 777 "$T/vfs" "$T/xfs"
	truncate -s 3G "$T/xfs.img"
	mkfs.xfs -q "$T/xfs.img"
	mount -o loop "$T/xfs.img" "$T/xfs"
	at_exit umount -l "$T/xfs" # the servers still run then
	chmod 777 "$T/xfs"
	FOLDER=([re]=$T/up/exp [re2]=$T/up2/exp [vfs]=$T/vfs [xfs]=$T/xfs)
}

# phase NAME [WORD]...: runs it in the guest; shows and counts its results. What it says is in $T/said.
phase() {
	say "$series $1, at $SECONDS s"
	gx 1 "sh /payload $*" >"$T/said" || :
	awk '
		/^ok / { sub(/^ok /, ""); print "ok - " series $0; failed = 0; next }
		/^FAIL / { sub(/^FAIL /, ""); print "not ok - " series $0; failed = 1; next }
		/^= / { failed = 0; next }
		failed { print "    " $0 }' series="$series " "$T/said" | tee "$T/results"
	N_PASSED=$((N_PASSED + $(grep -c '^ok ' "$T/results" || :)))
	N_FAILED=$((N_FAILED + $(grep -c '^not ok ' "$T/results" || :)))
}

# figure NAME: one of the last phase; 0 when there is none.
figure() { sed -n "s/^= $1 //p" "$T/said" | tail -n 1 | grep . || echo 0; }
