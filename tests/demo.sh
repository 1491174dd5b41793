#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# demo.sh - one re-export on this machine, tried out and then served; called by `./run demo`.
#
# Without --server, the upstream too is a stock ganesha.nfsd here, with VFS on a temporary folder.
# Both listen on loopback, at ports nobody else uses, and neither needs rpcbind or a message bus.
# On Ctrl-C, and at the end, both are stopped and the folder is removed.

QUIET_END=1
HERE=$(dirname "$0")
# shellcheck source=tests/integration/functions.sh
. "$HERE/integration/functions.sh"

usage() {
	echo "usage: ./run demo [--once] [--server HOST --path /EXPORT [--port N] [--mount-port N]]" \
		"[--listen ADDRESS]" >&2
	exit 2
}

once='' server='' path='' port='' mount_port='' listen=127.0.0.1
while [ $# -gt 0 ]; do
	case $1 in
	--once) once=1 ;;
	--server | --path | --port | --mount-port | --listen)
		[ $# -ge 2 ] || usage
		name=${1#--}
		printf -v "${name//-/_}" %s "$2"
		shift
		;;
	*) usage ;;
	esac
	shift
done
[ -z "$server" ] || [ -n "$path" ] || usage

step() { printf '\n== %s\n' "$*"; }

# query KEY=VALUE...: the part of a URL after "?", without the keys that have no value.
query() {
	local all='' pair
	for pair in "$@"; do
		[ -z "${pair#*=}" ] || all+="&$pair"
	done
	echo "${all#&}"
}

start_servers() {
	NFS_PORT=$(free_port "$listen")
	MNT_PORT=$(free_port "$listen" $((NFS_PORT + 1)))
	if [ -z "$server" ]; then
		step "Starting an upstream: ganesha.nfsd with VFS on $T/up/exp"
		start_upstream up "$(addr 1)"
		server=${ADDR[up]} port=$NFS_PORT mount_port=$MNT_PORT path=/exp
		say "listens on $server, port $port"
	fi
	keys=("Name = SSC" "Server = $server")
	[ -z "$port" ] || keys+=("Port = $port")
	[ -z "$mount_port" ] || keys+=("Mount_Port = $mount_port")
	keys+=("Remote_Path = $path")
	step "Starting the re-export: ganesha.nfsd with libfsalssc.so, of $server:$path"
	start_reexport re "$listen" "$(printf '%s; ' "${keys[@]}")"
	say "listens on $listen, port $NFS_PORT; its log is $T/re/log"
	direct="nfs://$server$path?$(query version=3 "nfsport=$port" "mountport=$mount_port")"
}

# A folder of our own, so that a real server keeps what it has.
folder=/ssc-demo.$$

check_tree() {
	step "Copying a tree in over NFSv3, and out again over NFSv4 and directly from the upstream"
	make_tree "$T/in" $$
	say "$(find "$T/in" -type f | wc -l) files, $(du -sk "$T/in" | cut -f 1) KiB"
	check "in, through the re-export, NFSv3" c3 re treein "$T/in" "$folder"
	check "out, directly from the upstream" "$CLIENT" "$direct" treeout "$folder" "$T/direct"
	check "every byte, name and mode is there" same_tree "$T/in" "$T/direct"
	check "out, through the re-export, NFSv3" c3 re treeout "$folder" "$T/out3"
	check "every byte, name and mode is the same" same_tree "$T/in" "$T/out3"
	check "out, through the re-export, NFSv4" c4 re treeout "$folder" "$T/out4"
	check "every byte, name and mode is the same" same_tree "$T/in" "$T/out4"
	check "nfs-cp of libnfs-utils, in" nfs-cp "$T/in/a/f1048577" "$(url3 re "/re$folder/copy")"
	nfs-cat "$(url3 re "/re$folder/copy")" >"$T/copy" || :
	check "nfs-cat of libnfs-utils, the same bytes" cmp "$T/in/a/f1048577" "$T/copy"
}

# median COLUMN FILE
median() { cut -d ' ' -f "$1" "$2" | sort -n | sed -n 2p; }

# Three rounds of both in turn, each on a file of its own, and the median: the first one pays for
# cold caches, and one of three may be disturbed.
show_speed() {
	local mib=64 round
	step "Throughput of one client with one request of 1 MiB at a time, $mib MiB, MiB/s"
	for round in 1 2 3; do
		"$CLIENT" "$direct" speed "$folder/direct$round" $mib >>"$T/speed.direct"
		c3 re speed "$folder/speed$round" $mib >>"$T/speed.re"
	done
	printf '%-14s %8s %8s\n' '' write read \
		directly "$(median 1 "$T/speed.direct")" "$(median 2 "$T/speed.direct")" \
		re-exported "$(median 1 "$T/speed.re")" "$(median 2 "$T/speed.re")"
	say "./run bench measures with fio, several requests at a time, and compares"
}

# Three rounds of both in turn, onto new files, and the median of the seconds.
show_copy() {
	local nfs42=("$SSC_BUILD_DIR/tests/nfs42" "$listen" "$NFS_PORT") mib=128 round at=/re$folder
	step "A copy within the re-export, $mib MiB: by the server (NFSv4.2 COPY), and through the client"
	check "a file of $mib MiB" "${nfs42[@]}" fill "$at/whole" "${mib}M"
	for round in 1 2 3; do
		"${nfs42[@]}" copy "$at/whole" "$at/copied$round" --async >>"$T/copies" || :
		"${nfs42[@]}" rwcopy "$at/whole" "$at/moved$round" >>"$T/moves" || :
	done
	check_same "the server's copy is the same" \
		"$("${nfs42[@]}" sum "$at/copied3" | grep -o 'sum=[^ ]*')" \
		"$("${nfs42[@]}" sum "$at/whole" | grep -o 'sum=[^ ]*')"
	for how in copies moves; do
		sed -nE 's/.*seconds=([0-9.]+).*/\1/p' "$T/$how" >"$T/$how.s"
	done
	printf '%-34s %8s s\n' 'by the server' "$(median 1 "$T/copies.s")" \
		'through the client, 8 x 1 MiB' "$(median 1 "$T/moves.s")"
}

remove_folder() {
	[ -z "${have_folder:-}" ] || timeout 60 "$CLIENT" -w 20 "$direct" rmtree "$folder" || :
	have_folder=
}

show_use() {
	step "To use it: this block in /etc/ganesha/ganesha.conf, after cmake --install $SSC_BUILD_DIR"
	echo 'EXPORT {'
	printf '\t%s;\n' 'Export_Id = 11' 'Path = /re' 'Pseudo = /re' 'Access_Type = RW' \
		'Squash = No_Root_Squash'
	printf '\tFSAL {\n'
	printf '\t\t%s;\n' "${keys[@]}"
	printf '\t}\n}\n'
	step "To mount this one, as root, on this machine"
	echo "mount -t nfs -o vers=4.2,port=$NFS_PORT $listen:/re /mnt"
	echo "mount -t nfs -o vers=3,nolock,tcp,port=$NFS_PORT,mountproto=tcp,mountport=$MNT_PORT" \
		"$listen:/re /mnt"
}

start_servers
at_exit remove_folder
if c3 re mkdir "$folder"; then
	have_folder=1
	check_tree
	show_speed
	show_copy
	remove_folder
else
	say "$server does not let root write to $path: only reading is tried"
	check "NFSv3 lists the re-export" nfs-ls "$(url3 re)"
	check "NFSv4 lists the re-export" nfs-ls "$(url4 re)"
fi
show_use
[ "$N_FAILED" = 0 ] || die "$N_FAILED checks failed, $N_PASSED passed"
step "$N_PASSED checks passed"
if [ -z "$once" ]; then
	trap 'exit 0' INT
	say "Serving until Ctrl-C"
	while is_running re; do
		sleep 1
	done
	die "the re-export ended by itself; see its log above"
fi
