#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# The NFSv4.2 session client against a stock server: all its operations, lost connections, a restart.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

# A lease that is short enough to be seen renewed.
NFSV4_EXTRA="Lease_Lifetime = 6;"
NFS42=$SSC_BUILD_DIR/tests/nfs42

start_upstream up "$(addr 11)"
n42() { "$NFS42" "${ADDR[up]}" "$NFS_PORT" "$@"; }
# says COMMAND...: what it says, whatever its end.
says() { "$@" 2>&1 || :; }
# part FILE SKIP COUNT: that part of its bytes.
part() { dd if="$1" skip="$2" count="$3" bs=64k iflag=skip_bytes,count_bytes status=none; }
field() { sed -n "s/.*\b$1=\([^ ]*\).*/\1/p"; }

info=$(n42 info)
say "$info"
check_same "as many slots as the server has" "$(field slots <<<"$info")" 64
check_same "1 MiB in one READ or WRITE" "$(field io_max <<<"$info")" 1048576
check_same "a back channel" "$(field back_channel <<<"$info")" 1
check_same "nothing is wrong with the session" "$(field flags <<<"$info")" 0
check "without a back channel too" n42 info --no-back
check "NFSv4.1" n42 info --minor 1

"$CLIENT" pattern 9999999 5 >"$T/in"
check "put" n42 put "$T/in" /exp/f
check "every byte is there" cmp "$T/in" "$T/up/exp/f"
check "get" n42 get /exp/f "$T/out"
check "every byte is here" cmp "$T/in" "$T/out"
check "get in small odd blocks" n42 get /exp/f "$T/out2" --block 40001 --depth 30
check "every byte is here" cmp "$T/in" "$T/out2"
check "rwcopy" n42 rwcopy /exp/f /exp/g --block 100k --depth 64
check "every byte is there" cmp "$T/in" "$T/up/exp/g"
check "rwcopy of a range" n42 rwcopy /exp/f /exp/r --src-off 12345 --count 1000001 --dst-off 77
check "its bytes" cmp <(part "$T/in" 12345 1000001) <(part "$T/up/exp/r" 77 2000000)
check_same "sums agree" "$(n42 sum /exp/f)" "$(n42 sum /exp/g)"
check "8 copies at once" n42 copies 8 rwcopy /exp/f /exp/c%
for i in 0 3 7; do
	check "every byte of copy $i" cmp "$T/in" "$T/up/exp/c$i"
done

n42 stat /exp/f >"$T/stat"
check_same "size" "$(field size <"$T/stat")" 9999999
check_same "type" "$(field type <"$T/stat")" 1
check_same "fileid" "$(field fileid <"$T/stat")" "$(stat -c %i "$T/up/exp/f")"
check_same "mtime" "$(field mtime <"$T/stat" | cut -d. -f1)" "$(stat -c %Y "$T/up/exp/f")"
check "chmod" n42 chmod /exp/f 0640
check_same "its mode" "$(stat -c %a "$T/up/exp/f")" 640
check "truncate" n42 truncate /exp/g 4096
check_same "its size" "$(stat -c %s "$T/up/exp/g")" 4096
check "remove" n42 rm /exp/g
check_not "gone" test -e "$T/up/exp/g"
check_not "a name that is not there" n42 stat /exp/g
check_not "no rights, no data" n42 get /exp/f "$T/none" --uid 4711 --gid 4711
check "supported attributes" grep -q 'supported=0,1,2,3,4,' <(n42 supported /exp/f)

# What the stock server lacks is told by its name.
check "COPY is not supported" grep -q NOTSUPP <(says n42 copy /exp/f /exp/x)
check "CLONE is not supported" grep -q NOTSUPP <(says n42 clone /exp/f /exp/x)
check "COPY_NOTIFY is not supported" grep -q NOTSUPP <(says n42 notify /exp/f tcp 127.0.0.1.8.1)
check "DEALLOCATE" n42 punch /exp/f 1M 1M
check "the hole reads as zeros" cmp <(part /dev/zero 0 1048576) <(part "$T/up/exp/f" 1048576 1048576)

# The connection breaks again and again: nothing is lost, nothing is done twice.
check "fill" n42 fill /exp/big 64M
sum=$(n42 sum /exp/big)
for back in "" --no-back; do
	rm -f "$T/up/exp/big2"
	check "rwcopy while the connection breaks $back" n42 rwcopy /exp/big /exp/big2 --bounce 60 $back
	check_same "every byte is there" "$(n42 sum /exp/big2)" "$sum"
done
check "8 copies while the connection breaks" n42 copies 8 rwcopy /exp/f /exp/c% --bounce 100
check "every byte of copy 7" cmp "$T/up/exp/f" "$T/up/exp/c7"

# The server stops for a while: calls wait, and none is lost.
says n42 rwcopy /exp/big /exp/big3 >"$T/stopped" &
pid=$!
sleep 0.1
sigstop up
sleep 2
sigcont up
check "rwcopy over a server that stopped for 2 s ends" wait_for 20 is_gone "$pid"
check "and well" grep -q 'bytes=67108864' "$T/stopped"
check_same "every byte is there" "$(n42 sum /exp/big3)" "$sum"

# The server is killed and comes back with an open file's state gone: the copy ends soon, and says so.
says n42 rwcopy /exp/big /exp/big4 --block 4k --depth 1 >"$T/killed" &
pid=$!
sleep 0.3
kill9 up
start up
check "a copy whose server was restarted ends" wait_for 20 is_gone "$pid"
check "and says why" grep -Eq 'STALE|BAD_STATEID|EXPIRED|CONN' "$T/killed"
check "the server serves on" n42 sum /exp/big

n42 getattr-loop /exp/f 1 >"$T/loop"
check "latency" at_most "$(field p50_ms <"$T/loop")" 20
say "$(cat "$T/loop")"

idle=$(n42 idle 9)
check "the lease is renewed" at_least "$(field renewals <<<"$idle")" 3
check_same "by the same client id" "$(field generation <<<"$idle")" 1
check_same "and session" "$(field sessions <<<"$idle")" 1

# Two clients of one host are two clients.
n42 info >"$T/a"
n42 info >"$T/b"
check_not "client ids differ" cmp "$T/a" "$T/b"
check "ends when asked" stop up 5
