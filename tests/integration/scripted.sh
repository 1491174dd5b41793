# SPDX-License-Identifier: LGPL-3.0-or-later
# shellcheck shell=bash
#
# scripted.sh - an upstream that fails on request (nfs3d.c), for integration scripts; after functions.sh.
#
#     start_scripted NAME ADDRESS       serves /export at ADDRESS, NFS and MOUNT on one port
#     scripted NAME COMMAND...          tell it something; its answer is on stdout
#     scripted_block NAME [KEYS]        the inside of an FSAL block that re-exports it
#     stop_scripted NAME                end it; also done at exit
#
# Commands: fault PROC KIND [times=N] [skip=N] [status=N], faults (forget them), release, held, down,
# up, crash, freeze, thaw, calls PROC, executed PROC, connections, wait PROC N, verifier N, flips N,
# writes FILE, cookie-verifier N, fh-bytes N, reply-cache 0|1, limits READ WRITE, filesystem NAME FSID,
# poke NAME TEXT, peek NAME FILE. What they do is in tests/fakes/nfs3_server.h.

declare -A PID ADDR # those of functions.sh
declare -A SCRIPTED_IN=() SCRIPTED_OUT=() SCRIPTED_PORT=()

start_scripted() {
	local name=$1 dir=$T/$1 in out port
	mkdir -p "$dir"
	mkfifo "$dir/in" "$dir/out"
	# Opened for both directions, so that neither waits for the other here.
	exec {in}<>"$dir/in" {out}<>"$dir/out"
	"$SSC_BUILD_DIR/tests/nfs3d" "$2" <"$dir/in" >"$dir/out" {in}>&- {out}>&- &
	PID[$name]=$!
	ADDR[$name]=$2
	SCRIPTED_IN[$name]=$in SCRIPTED_OUT[$name]=$out
	read -r -t 20 port <&"$out" || die "$name did not start"
	SCRIPTED_PORT[$name]=$port
	at_exit stop_scripted "$name"
}

scripted() {
	local name=$1 answer
	shift
	echo "$*" >&"${SCRIPTED_IN[$name]}"
	read -r -t 30 answer <&"${SCRIPTED_OUT[$name]}" || die "$name: no answer to: $*"
	case $answer in
	ok) ;;
	error*) die "$name: $*: $answer" ;;
	*) echo "$answer" ;;
	esac
}

scripted_block() {
	echo "Name = SSC; Server = ${ADDR[$1]}; Port = ${SCRIPTED_PORT[$1]};" \
		"Mount_Port = ${SCRIPTED_PORT[$1]}; Remote_Path = /export; ${2:-}"
}

stop_scripted() {
	local pid=${PID[$1]-}
	[ -n "$pid" ] || return 0
	kill "$pid" 2>/dev/null || :
	wait "$pid" 2>/dev/null || :
	unset "PID[$1]"
}
