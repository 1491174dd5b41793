#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# The upstream's replies are cut, late, for nobody, or break the protocol. A client gets the right
# answer, perhaps after a while, or an error where the upstream gave it nonsense; never wrong data, and
# the server goes on.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"
# shellcheck source=tests/integration/scripted.sh
. "$(dirname "$0")/scripted.sh"

start_scripted fake "$(addr 11)"
EXPORT_EXTRA="Attr_Expiration_Time = 0;" start_reexport re "$(addr 12)" \
	"$(scripted_block fake "Upstream_Timeout_Ms = 400; Upstream_Dead_Ms = 1000;")"
check "a file" c3 re write /f 0 200000 1
check "a link" c3 re symlink target /l

# prepare PROC: what is new at the upstream is in no cache.
N=0
prepare() {
	N=$((N + 1))
	case $1 in
	LOOKUP) scripted fake poke "new$N" "text$N" ;;
	READDIRPLUS) c3 re mkdir "/dir$N" && c3 re create "/dir$N/one" plain && c3 re create "/dir$N/two" plain ;;
	esac
}

# use V PROC: what a client does so that PROC is called, and what it must see.
use() {
	case $2 in
	READ) "c$1" re verify /f 0 200000 1 ;;
	WRITE | COMMIT) "c$1" re write "/w$N" 0 100000 1 && "c$1" re verify "/w$N" 0 100000 1 ;;
	LOOKUP) same "$("c$1" re stat "/new$N" | grep -o 'size=[0-9]*')" "size=$((4 + ${#N}))" ;;
	# After a second, the attributes that came with other replies are too old.
	GETATTR) ! "c$1" re getattrs /f 1.5 1 | grep -Ev '^(OK|JUKEBOX) ' ;;
	READLINK) same "$("c$1" re readlink /l)" target ;;
	READDIRPLUS) same "$("c$1" re ls "/dir$N" | sort | xargs)" "one two" ;;
	esac
}
put_to_the_test() { same "$(scripted fake faults)" 0; }

# survives PROC KIND...: the client does not see the fault at all.
survives() {
	local proc=$1 kind v
	shift
	for kind in "$@"; do
		for v in "${VERSIONS[@]}"; do
			prepare "$proc"
			scripted fake fault "$proc" "$kind"
			check "v$v: $proc $kind: the client gets its answer" use "$v" "$proc"
			check "v$v: and that was put to the test" put_to_the_test
		done
	done
}

# is_harmless PROC KIND...: the reply is nonsense, and the client may be told so, once.
is_harmless() {
	local proc=$1 kind v out
	shift
	for kind in "$@"; do
		for v in "${VERSIONS[@]}"; do
			prepare "$proc"
			scripted fake fault "$proc" "$kind"
			out=$(use "$v" "$proc" 2>&1) || :
			check_not "v$v: $proc $kind: no wrong answer" grep -Eq 'differs|^have: .' <<<"$out"
			check "v$v: and that was put to the test" put_to_the_test
			check "v$v: the next one is right" use "$v" "$proc"
		done
	done
}

VERSIONS=(3 4)
cut=(DROP_BEFORE DROP_EXECUTED DROP_INSIDE DROP_AFTER_REPLY)
# A reply with another transaction's id is for nobody: the right one never comes.
for proc in READ WRITE COMMIT LOOKUP READLINK READDIRPLUS; do
	survives $proc "${cut[@]}" FRAGMENTS WRONG_XID
	is_harmless $proc TRUNCATED GARBAGE SYSTEM_ERR DENIED
done
survives LOOKUP NO_ATTRS
survives READDIRPLUS NO_ATTRS
survives WRITE NO_ATTRS LESS_STABLE
is_harmless READ HUGE_LENGTH DATA_TOO_LONG WRONG_COUNT
is_harmless WRITE WRONG_COUNT
is_harmless READLINK HUGE_LENGTH DATA_TOO_LONG
is_harmless LOOKUP HUGE_LENGTH LONG_FH EMPTY_FH BAD_TYPE
is_harmless READDIRPLUS HUGE_LENGTH LONG_FH EMPTY_FH LONG_NAME SLASH_NAME EMPTY_NAME BAD_TYPE

VERSIONS=(3)
survives GETATTR DROP_INSIDE WRONG_XID
VERSIONS=(4)
is_harmless GETATTR TRUNCATED BAD_TYPE

is_held() { same "$(scripted fake held)" 1; }
# Half a reply, and the rest a little later.
for v in 3 4; do
	scripted fake fault READ HOLD_HALF
	use $v READ >"$T/half" 2>&1 &
	job=$!
	wait_for 10 is_held || :
	sleep 0.2
	scripted fake release
	rc=0
	wait $job || rc=$?
	check "v$v: READ in two halves" [ "$rc" = 0 ]
done

check "it is still the process that was started" is_running re
refuse_log re ':CRIT :.*SSC'
check "ends when asked" stop re 5
