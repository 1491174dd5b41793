#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# copy-fault.sh SERIES - what goes wrong while the server copies for a guest with that kernel: a signal,
# a source that is removed, cut off or written to, errors of an upstream, an upstream that loses data, is
# slow or away, a connection that is cut with the back channel on it, a link that is down, copies killed
# at random, a server that is killed or stopped, a client that dies. Nothing hangs, and cp ends with the
# right bytes, or with an error. The upstream of /held does what it is told to.

series=$1
# shellcheck source-path=SCRIPTDIR source=lab.sh
. "$(dirname "$0")/lab.sh"
# shellcheck source-path=SCRIPTDIR source=copy-lab.sh
. "$here/copy-lab.sh"
# shellcheck source-path=SCRIPTDIR source=../integration/scripted.sh
. "$root/tests/integration/scripted.sh"
MIB=1048576
BYTES=$((12 * MIB + 5)) # asked for asynchronously
MANY=200                # calls: more than a copy makes

held() { [ "$(scripted slow held)" -ge 1 ]; }
no_more_faults() {
	scripted slow faults >/dev/null
	scripted slow release
}
# second COMMAND...: another client of the server, on /held.
second() { "$CLIENT" "$(url4 re /held)" "$@"; }

# begin NAME FROM TO: cp in the guest, until an upstream holds calls.
begin() {
	gx 1 "sh /payload begin $*"
	wait_for 20 held || say "$1: nothing is held"
	gx 1 "test ! -e /tmp/$1.rc" || say "$1: has ended before its time"
}
has_ended() { gx 1 "test -e /tmp/$1.rc"; }
# ends NAME SECONDS: sets RC, and TOOK to milliseconds.
ends() {
	local start
	start=$(now_ms)
	check "$series $1: cp ends" wait_for "$2" has_ended "$1"
	TOOK=$(($(now_ms) - start))
	RC=$(gx 1 "cat /tmp/$1.rc" || :)
	say "$series $1: status $RC after $TOOK ms; $(gx 1 "cat /tmp/$1.out" || :)"
}
same_as_source() { second get "/$1" - | cmp - "$T/source"; }
all_or_error() {
	[ "$RC" != 0 ] || same_as_source "$1"
}

# A copy is ended by a signal; the server is told, and goes on with nothing.
signal() {
	local before
	scripted slow fault WRITE HOLD times=$MANY
	begin "$1" /m/re/source "/m/held/$1"
	before=$(gx 1 "sh /payload n_ops OFFLOAD_CANCEL")
	gx 1 "kill -$1 \$(cat /tmp/$1.pid)"
	ends "$1" 10
	check "$series $1: cp ends soon" [ "$TOOK" -le 4000 ]
	check "$series $1: the copy is cancelled" wait_for 5 gx 1 "test \$(sh /payload n_ops OFFLOAD_CANCEL) -gt $before"
	sleep 0.5
	before=$(scripted slow calls WRITE)
	no_more_faults
	sleep 1
	check_same "$series $1: the server goes on with nothing" "$(scripted slow calls WRITE)" "$before"
	gx 1 "sh /payload begin again$1 /m/re/source /m/held/$1"
	ends "again$1" 20
	check "$series $1: the same copy again" same_as_source "$1"
}

source_removed() {
	scripted slow fault READ HOLD times=$MANY skip=2
	begin removed /m/held/source /m/re2/removed
	second rm /source
	no_more_faults
	ends removed 30
	check "$series removed: cp has all, or fails" [ "$RC" != 0 -o "$(stat -c %s "$T/up2/exp/removed")" = $BYTES ]
	check "$series source for the next ones" second put "$T/source" /source
}

source_cut() {
	scripted slow fault READ HOLD times=$MANY skip=2
	begin cut /m/held/source /m/re2/cut
	second truncate /source 3000001
	no_more_faults
	ends cut 30
	check "$series cut: no longer than the source was" at_most "$(stat -c %s "$T/up2/exp/cut")" $BYTES
	[ "$RC" != 0 ] || check "$series cut: what is left is copied" cmp -n 3000001 "$T/source" "$T/up2/exp/cut"
	check "$series source for the next ones" second put "$T/source" /source
}

# While another client writes to the source, any mix may come out, but the size is the file's.
source_written() {
	local i pid
	cp "$T/source" "$T/up2/exp/busy"
	chmod 666 "$T/up2/exp/busy"
	(
		trap 'exit 0' TERM
		while :; do
			"$CLIENT" "$(url4 re /re2)" write /busy $((RANDOM * 380)) 65536 "$RANDOM" || exit 1
		done
	) >"$T/busy.out" 2>&1 &
	pid=$!
	gx 1 "sh /payload busy 8 /m/re2/busy /m/held/busy"
	check "$series written: another client writes all the time" kill -0 $pid
	kill $pid 2>/dev/null || :
	wait $pid || cat "$T/busy.out"
	for i in 1 2 3 4 5 6 7 8; do
		check_same "$series written: size of copy $i" "$(second stat /busy.$i | grep -o 'size=[0-9]*')" "size=$BYTES"
	done
	check "$series written: and then it is the same" gx 1 \
		"/sbin/cp /m/re2/busy /m/held/busy.last && cmp /o/re2/busy /o/held/busy.last"
}

# fails NAME STATUS TEXT: the upstream answers each WRITE with an error from some point on.
fails() {
	scripted slow fault WRITE STATUS "status=$2" skip=5 times=$MANY
	gx 1 "sh /payload begin $1 /m/re/source /m/held/$1"
	ends "$1" 30
	check "$series $1: cp says so" gx 1 "grep '$3' /tmp/$1.out"
	no_more_faults
}

upstream_loses() {
	scripted slow fault WRITE HOLD times=$MANY skip=6
	begin loses /m/re/source /m/held/loses
	scripted slow faults >/dev/null
	scripted slow crash
	scripted slow release
	ends loses 60
	check_same "$series loses: cp succeeds" "$RC" 0
	check "$series loses: nothing is missing" same_as_source loses
	scripted slow crash
	check "$series loses: and all of it is stable" same_as_source loses
}

# The callback has no way: cp waits until the client has connected again.
cut_off() {
	scripted slow fault WRITE HOLD times=$MANY
	begin cutoff /m/re/source /m/held/cutoff
	ss -n -K -t src "$(addr 2)" sport = :2049 dst "$(addr 11)" >"$T/killed" 2>/dev/null || :
	if ! grep -q 2049 "$T/killed"; then
		say "this kernel cannot cut connections"
		no_more_faults
		return
	fi
	sleep 0.5
	no_more_faults
	ends cutoff 60
	check_same "$series cutoff: cp succeeds" "$RC" 0
	check "$series cutoff: it is the same" same_as_source cutoff
}

# Nobody hears of the end of the copy while the client's link is down.
link_down() {
	scripted slow fault WRITE HOLD times=$MANY
	begin link /m/re/source /m/held/link
	ip link set t1 down
	no_more_faults
	sleep "$1"
	ip link set t1 up
	ends link 60
	check_same "$series link down for $1 s: cp succeeds" "$RC" 0
	check "$series link down for $1 s: it is the same" same_as_source link
}

# delayed FROM NAME SECONDS: an upstream that is slow, or away (with a fourth word). A COPY of the small
# one is answered when it is done, one of the other at once.
delayed() {
	scripted slow fault WRITE HOLD times=$MANY
	begin "$2" "/m/re/$1" "/m/held/$2"
	if [ -n "${4:-}" ]; then
		scripted slow faults >/dev/null
		scripted slow down
		scripted slow release
		sleep "$3"
		scripted slow up
	else
		sleep "$3"
		no_more_faults
	fi
	ends "$2" 40
	check_same "$series $2: cp succeeds" "$RC" 0
	second get "/$2" "$T/$2"
	check "$series $2: it is the same" cmp "$T/$2" "$T/up/exp/$1"
}

listing() { (cd "$T/up2/exp" && stat -c '%n %s %Y' storm.*); }
ended_well() {
	local i
	for ((i = 1; i <= $1; i++)); do
		[ "$(figure $i)" = 0 ] || [ $((i % 2)) = 0 ] || return 1
		[ "$(figure $i)" != 0 ] || cmp "$T/source" "$T/up2/exp/storm.$i" || return 1
	done
}
storm() {
	local n=24 before
	phase storm "$1" $n /m/re/source /m/re2/storm
	say "$series storm: $(grep -c '^= .* 0' "$T/said") of $n copies came to their end"
	check "$series storm, seed $1: who was not killed has a copy" ended_well $n
	before=$(listing)
	sleep 1
	check_same "$series storm: the server goes on with nothing" "$(listing)" "$before"
}

# server_ends NAME COMMAND...: two copies at once, one waits to write, the other to read.
server_ends() {
	local name=$1
	shift
	scripted slow fault WRITE HOLD times=$MANY
	scripted slow fault READ HOLD times=$MANY skip=1
	begin "$name-to" /m/re/source "/m/held/$name-to"
	begin "$name-from" /m/held/source "/m/vfs/$name-from"
	"$@"
	no_more_faults
	start re
	ends "$name-to" 90
	check "$series $name: cp to the upstream has all, or fails" all_or_error "$name-to"
	ends "$name-from" 90
	check "$series $name: cp from the upstream has all, or fails" \
		[ "$RC" != 0 -o "$(cmp "$T/source" "$T/vfs/$name-from" 2>&1)" = "" ]
	gx 1 "sh /payload begin again$name /m/re/source /m/held/again$name"
	ends "again$name" 60
	check "$series $name: afterwards files are copied" same_as_source "again$name"
}

# The server learns it from the lease.
client_gone() {
	local before
	scripted slow fault WRITE HOLD times=$MANY
	begin gone /m/re/source /m/held/gone
	kill -KILL "$(cat "$T/client.qemu")"
	wait "${GUEST_PID[client]}" || :
	sleep 25
	before=$(scripted slow calls WRITE)
	no_more_faults
	sleep 1
	check_same "$series gone: nothing is copied any more for a client whose lease is over" \
		"$(scripted slow calls WRITE)" "$before"
}

stop_re() { check "$series the server stops with copies under way" stop re 20; }

"$CLIENT" pattern $BYTES 5 >"$T/source"
start_upstreams
cp "$T/source" "$T/up/exp/source"
"$CLIENT" pattern 1500000 6 >"$T/up/exp/small"
start_scripted slow "$(addr 5)"
start_copy_server re "$(addr 2)" "EXPORT { Export_Id = 15; Path = /held; Pseudo = /held;
	FSAL { $(scripted_block slow "Upstream_Timeout_Ms = 20000; Upstream_Dead_Ms = 60000;") } }"
check "$series source on /held" second put "$T/source" /source
boot client "$series" 1 -p "$T/client.qemu" "$here/copy.payload" start "$(addr 2)" "hard${SSC_GUEST_OPTION:+,$SSC_GUEST_OPTION}" re re2 vfs held
check "$series: the guest mounts four exports by v4.2" gx 1 "test -e /o/held/source"

signal TERM # background jobs ignore INT
signal KILL
source_removed
source_cut
source_written
fails full 28 "No space left"
fails broken 5 "Input/output error"
upstream_loses
cut_off
link_down 4
delayed source slow-async 3
delayed small slow-sync 3
delayed source away-async 4 down
delayed small away-sync 4 down
for i in 1 2 3; do storm $((RANDOM * 32768 + RANDOM)); done
check "$series: the server is the process that was started" is_running re
refuse_log re 'FSAL :(CRIT|MAJ|FATAL)'
server_ends killed kill9 re
server_ends stopped stop_re
client_gone
check "$series: the server stops" stop re 15
