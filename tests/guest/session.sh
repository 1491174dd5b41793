#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# session.sh - the module's NFSv4.2 session client against a Linux kernel's NFS server, which makes
# asynchronous copies, calls back, and knows COPY_NOTIFY: what the client must get along with.

# shellcheck source-path=SCRIPTDIR source=lab.sh
. "$(dirname "$0")/lab.sh"

NFS42=$SSC_BUILD_DIR/tests/nfs42
n42() { "$NFS42" "$(addr 12)" 2049 "$@"; }
says() { "$@" 2>&1 || :; }
field() { sed -n "s/.*\b$1=\([^ ]*\).*/\1/p"; }

truncate -s 400M "$T/disk"
mkfs.ext4 -q -b 4096 "$T/disk"
boot_knfsd nfsd

info=$(n42 info)
say "$info"
check_same "a back channel" "$(field back_channel <<<"$info")" 1
check_same "nothing is wrong with the session" "$(field flags <<<"$info")" 0
check "slots" at_least "$(field slots <<<"$info")" 2
check "without a back channel too" n42 info --no-back
check "NFSv4.1" n42 info --minor 1

"$CLIENT" pattern 9999999 5 >"$T/in"
check "put" n42 put "$T/in" /srv/f
check "get" n42 get /srv/f "$T/out"
check "every byte is here" cmp "$T/in" "$T/out"
check_same "size" "$(n42 stat /srv/f | field size)" 9999999
check "supported attributes" grep -q 'supported=0,1,2,3,4,' <(says n42 supported /srv/f)

sum=$(n42 sum /srv/f)
copy=$(n42 copy /srv/f /srv/g --sync)
say "$copy"
check_same "a synchronous copy" "$(field bytes <<<"$copy")" 9999999
check_same "its bytes" "$(n42 sum /srv/g)" "$sum"
copy=$(n42 copy /srv/f /srv/h --async)
say "$copy"
check_same "an asynchronous copy is one" "$(field async <<<"$copy")" 1
check_same "that called back with all bytes" "$(field bytes <<<"$copy")" 9999999
check_same "and needs no COMMIT" "$(field committed <<<"$copy")" 1
check_same "its bytes" "$(n42 sum /srv/h)" "$sum"
check "an asynchronous copy of a range" n42 copy /srv/f /srv/r --async --src-off 4096 --count 1000000
check_same "its bytes" "$(n42 sum /srv/r)" "$(n42 sum /srv/f --src-off 4096 --count 1000000)"
check "4 asynchronous copies at once" n42 copies 4 copy /srv/f /srv/c% --async
check_same "the bytes of the last" "$(n42 sum /srv/c3)" "$sum"
check "COPY_NOTIFY names the server" grep -q "first=tcp/10.77.0.12.8.1" \
	<(says n42 notify /srv/f tcp 10.77.0.1.8.1)
check "ext4 does not clone" grep -Eq 'NOTSUPP|INVAL' <(says n42 clone /srv/f /srv/x)

check "a punched hole" n42 punch /srv/h 1M 1M
check_same "is seen as one" "$(says n42 extents /srv/h | head -n 1)" "data=0+1048576"

# The connection breaks again and again. The kernel answers repeated requests in its own way.
check "rwcopy while the connection breaks" n42 rwcopy /srv/f /srv/b --bounce 150 --block 16k
check_same "its bytes" "$(n42 sum /srv/b)" "$sum"
check "4 rwcopies while the connection breaks" \
	n42 copies 4 rwcopy /srv/f /srv/b% --bounce 200 --block 64k --no-back
check_same "the bytes of the last" "$(n42 sum /srv/b3)" "$sum"

# The lease is 10 s.
idle=$(n42 idle 15)
say "$idle"
check_same "an idle client keeps its id" "$(field generation <<<"$idle")" 1
check_same "and its session" "$(field sessions <<<"$idle")" 1
gx 2 'agent quit' || :
