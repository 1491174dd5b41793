#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# late.sh - an upstream that carries out what changes names, and answers late. A kernel client is told
# to come back (JUKEBOX, DELAY) and repeats its request, which must succeed, once, with no EXIST or
# NOENT of its own making; and what the client then sees must be what the upstream has.
#
#     late     each operation's reply comes after the answer limit
#     silent   the replies come in time, and then the upstream is silent beyond the answer limit:
#              nothing that the server asks on behalf of the same request may fail the request
#     both     late, and silent again when the repeated request has taken the late reply

# shellcheck source-path=SCRIPTDIR source=lab.sh
. "$(dirname "$0")/lab.sh"
# shellcheck source-path=SCRIPTDIR source=../integration/scripted.sh
. "$root/tests/integration/scripted.sh"

OPS=(mkdir symlink mknod remove rmdir rename move link)
PROCS=(MKDIR SYMLINK MKNOD REMOVE RMDIR RENAME LINK)
declare -A LEFT=(
	[mkdir]=new [symlink]=new [mknod]=new [remove]="" [rmdir]="" [rename]=new [move]="to to/new"
	[link]="new old"
)

# shellcheck disable=SC2016 # the guest expands these
# A folder for each, as the server holds a lock on a folder while an operation in it waits.
prepare='
cd $dir && mkdir mkdir symlink mknod remove rmdir rename move move/to link
for d in remove rename move link; do echo $d >$d/old; done
mkdir rmdir/old
sync
ls -lR >/dev/null'
# shellcheck disable=SC2016
all_ops='
cd $dir
try() {
	name=$1
	shift
	(if "$@" >/tmp/$name.out 2>&1; then echo "$name ok"; else echo "$name $(head -n 1 /tmp/$name.out)"; fi) &
}
try mkdir mkdir mkdir/new
try symlink ln -s nowhere symlink/new
try mknod mkfifo mknod/new
try remove rm remove/old
try rmdir rmdir rmdir/old
try rename mv rename/old rename/new
try move mv move/old move/to/new
try link ln link/old link/new
wait'

# fault_all KIND: for the next operation of each kind; two of them are a RENAME.
fault_all() {
	local proc
	for proc in "${PROCS[@]}"; do
		scripted up fault "$proc" "$1"
	done
	scripted up fault RENAME "$1"
}

# All of them are at the upstream, and held there.
all_held() { [ "$(scripted up held)" -ge ${#OPS[@]} ]; }

# silence SECONDS: nothing is answered any more but what is held now; then all is.
silence() {
	scripted up fault ANY HOLD times=500
	scripted up release
	sleep "$1"
	scripted up faults >/dev/null
	scripted up release
}

run_ops() {
	gx 1 "dir=/m$1/$2; $all_ops" >"$T/$2.out" 2>&1 &
	JOB=$!
}

# end_ops V NAME: each succeeded, and client and upstream agree on the outcome at once.
end_ops() {
	local op seen
	wait "$JOB" || :
	gx 1 "cd /m$1/$2; for d in ${OPS[*]}; do echo \$d \$(cd \$d; find . | sed -n 's|^\./||p' | sort); done" >"$T/$2.seen"
	for op in "${OPS[@]}"; do
		check_same "v$1 $2: $op succeeds" "$(sed -n "s/^$op //p" "$T/$2.out")" ok
		seen=$(sed -n "s/^$op *//p" "$T/$2.seen")
		check_same "v$1 $2: $op is seen" "$seen" "${LEFT[$op]}"
	done
}

start_scripted up "$(addr 1)"
start_reexport re "$(addr 2)" "$(scripted_block up "Upstream_Timeout_Ms = 1000; Upstream_Dead_Ms = 60000;")"
boot client 6.1 1 "$here/agent.payload" "$(addr 2)" /re
for v in 3 4; do
	for name in late silent both; do
		gx 1 "dir=/m$v/$name$v; mkdir \$dir; $prepare"
		case $name in
		silent) fault_all HOLD ;;
		*) fault_all HOLD_EXECUTED ;;
		esac
		run_ops $v $name$v
		check "v$v $name: the operations are at the upstream" wait_for 20 all_held
		case $name in
		late)
			sleep 2
			scripted up release
			;;
		silent) silence 3 ;;
		both)
			sleep 2
			silence 7 # an NFSv3 client comes back after 5 s
			;;
		esac
		end_ops $v $name$v
	done
done
gx 1 'agent quit' || :
