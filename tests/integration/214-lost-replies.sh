#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Calls that must not be carried out twice, whose reply is lost, never comes, or comes when the client
# has asked again. The upstream has no reply cache, so that every repetition fails with EXIST or NOENT.
# The client must hear of none of that: the operation succeeds, once. Nothing is cached for long, so that
# a retry finds the names as the first sending left them.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"
# shellcheck source=tests/integration/scripted.sh
. "$(dirname "$0")/scripted.sh"

start_scripted fake "$(addr 11)"
EXPORT_EXTRA="Attr_Expiration_Time = 0;" start_reexport re "$(addr 12)" \
	"$(scripted_block fake "Upstream_Timeout_Ms = 500; Upstream_Dead_Ms = 1500;")"

OPS=(CREATE MKDIR SYMLINK MKNOD REMOVE RMDIR RENAME LINK)

# prepare DIR: what the operations below need, in a folder for each, since the server above holds a
# lock on a folder while one of them waits.
prepare() {
	local op
	c3 re mkdir "$1"
	for op in "${OPS[@]}"; do
		c3 re mkdir "$1/$op"
		case $op in
		REMOVE | RENAME | LINK) c3 re create "$1/$op/old" plain ;;
		RMDIR) c3 re mkdir "$1/$op/old" ;;
		esac
	done
}

# do_it V OP DIR: an operation, as a client sees it.
do_it() {
	case $2 in
	CREATE) "c$1" re create "$3/new" excl ;;
	MKDIR) "c$1" re mkdir "$3/new" ;;
	SYMLINK) "c$1" re symlink "to/nowhere" "$3/new" ;;
	MKNOD) "c$1" re mknod "$3/new" fifo 0 0 ;;
	REMOVE) "c$1" re rm "$3/old" ;;
	RMDIR) "c$1" re rmdir "$3/old" ;;
	RENAME) "c$1" re mv "$3/old" "$3/new" ;;
	LINK) "c$1" re ln "$3/old" "$3/new" ;;
	esac
}

declare -A LEFT=([CREATE]=new [MKDIR]=new [SYMLINK]=new [MKNOD]=new [REMOVE]="" [RMDIR]="" [RENAME]=new [LINK]="new old")

# all_at_once V NAME: every operation meets its fault; held replies go on when clients have come back.
all_at_once() {
	local v=$1 dir=/$2 op rc
	local -A job=()
	for op in "${OPS[@]}"; do
		do_it "$v" "$op" "$dir/$op" >"$T/$op" 2>&1 &
		job[$op]=$!
	done
	[[ $2 != *HOLD* ]] || sleep 1.6
	scripted fake release
	for op in "${OPS[@]}"; do
		rc=0
		wait "${job[$op]}" || rc=$?
		check "$2: $op succeeds: $(sed '/^#/d' "$T/$op" | xargs)" [ "$rc" = 0 ]
		check_same "$2: and has done what it should, once" "$(c3 re ls "$dir/$op" | sort | xargs)" "${LEFT[$op]}"
	done
	check_same "$2: all faults were met" "$(scripted fake faults)" 0
}

for v in 3 4; do
	# libnfs 4.0.0 cannot repeat an OPEN of v4.0 that was delayed, and its v4 has no MKNOD for users.
	[ $v = 3 ] || OPS=(MKDIR SYMLINK REMOVE RMDIR RENAME LINK)
	for kind in DROP_EXECUTED DROP_INSIDE HOLD_EXECUTED WRONG_XID; do
		name=v$v-$kind
		check "$name" prepare "/$name"
		for op in "${OPS[@]}"; do scripted fake fault "$op" $kind; done
		all_at_once $v "$name"
	done
done

# With a connection cut, no v4 client is told to come back.
check "exclusive create over v4" c4 re mkdir /excl
for kind in DROP_BEFORE DROP_EXECUTED DROP_INSIDE; do
	scripted fake fault CREATE $kind
	check "v4: CREATE $kind" c4 re create /excl/$kind excl
	check_same "v4: the fault was met" "$(scripted fake faults)" 0
	check_not "v4: it exists now, and that is told" c4 re create /excl/$kind excl
done

# What is there already stays an error, also when the reply that says so is lost.
for v in 3 4; do
	for kind in DROP_EXECUTED WRONG_XID; do
		scripted fake fault MKDIR $kind
		check_not "v$v: MKDIR of what is there, $kind: still an error" c$v re mkdir /v3-DROP_INSIDE
		scripted fake fault RMDIR $kind
		check_not "v$v: RMDIR of what is not empty, $kind: still an error" c$v re rmdir /v3-DROP_INSIDE
		scripted fake fault REMOVE $kind
		check_not "v$v: REMOVE of a folder, $kind: still an error" c$v re rm /v3-DROP_INSIDE
		scripted fake faults >/dev/null
	done
done
check "it is still the process that was started" is_running re
refuse_log re ':CRIT :.*SSC'
check "ends when asked" stop re 5
