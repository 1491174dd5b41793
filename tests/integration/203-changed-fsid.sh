#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# The upstream comes back with another file system under the same path: none of its handles is good
# any more. The root is found again and keeps the identity that clients know; what was below it is
# STALE for good; nothing crashes, nothing hangs.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

swap_folder() {
	umount "$T/up/exp" 2>/dev/null || :
	mount -t tmpfs -o size=512m ssc-test "$T/up/exp"
	chmod 0777 "$T/up/exp"
}
at_exit umount -l "$T/up/exp"

mkdir -p "$T/up/exp"
swap_folder
start_upstream up "$(addr 11)"
EXPORT_EXTRA="Attr_Expiration_Time = 0;" start_reexport re "$(addr 12)" "$(ssc_block up)"
check "a file" c3 re write /old 0 100000 1
check "a folder" c3 re mkdir /olddir
check "a file in it" c3 re write /olddir/f 0 1000 1
declare -A BEFORE=()
JOBS=()
for v in 3 4; do
	BEFORE[$v]=$(c$v re stat / | grep -Eo '(fileid|fsid)=[0-9]+')
	# Clients of before: one that knows a file, one that knows the root, one in the middle of writing.
	c$v re getattrs /old 7 1 >"$T/file$v" 2>&1 &
	JOBS+=($!)
	c$v re getattrs / 7 1 >"$T/root$v" 2>&1 &
	JOBS+=($!)
	c$v re writes "/writes$v" 10000000 4 >"$T/writes$v" 2>&1 &
	JOBS+=($!)
done
sleep 1.5
kill9 up
swap_folder
echo new >"$T/up/exp/newfile"
mkdir "$T/up/exp/newdir"
EPOCH=$((EPOCH + 100))
start up

for v in 3 4; do
	check_same "v$v: a new client sees the new folder" "$(c$v re ls / | sort | xargs)" "newdir newfile"
done
for v in 3 4; do
	check_same "v$v: and its file" "$(c$v re get /newfile -)" new
	check_same "v$v: the root shows the identity that it showed before" \
		"$(c$v re stat / | grep -Eo '(fileid|fsid)=[0-9]+')" "${BEFORE[$v]}"
	check "v$v: it can be written to" c$v re write "/made$v" 0 300000 $v
	check "v$v: the upstream has it" cmp <("$CLIENT" pattern 300000 $v) "$T/up/exp/made$v"
	check "v$v: random changes" c$v re churn / 1 $v
	check_not "v$v: what was there is gone" c$v re stat /old
done
for pid in "${JOBS[@]}"; do
	check "a client of before ends" wait_for 15 is_gone "$pid"
done
for v in 3 4; do
	sed "s/^/#   v$v file: /" "$T/file$v"
	sed "s/^/#   v$v root: /" "$T/root$v"
	check_same "v$v: a file's handle of before is stale in the end" \
		"$(tail -n 1 "$T/file$v" | cut -d ' ' -f 1)" STALE
	check_not "v$v: and never anything worse" grep -Ev '^(OK|JUKEBOX|STALE) ' "$T/file$v"
	check_same "v$v: the root's handle of before is good in the end" \
		"$(tail -n 1 "$T/root$v" | cut -d ' ' -f 1)" OK
	check_not "v$v: and never anything worse than a delay" grep -Ev '^(OK|JUKEBOX) ' "$T/root$v"
	check "v$v: the writer was told" grep -qx 'write: STALE' "$T/writes$v"
done
expect_log re 'came back with other file handles'
check "it is still the same process" is_running re
refuse_log re ':CRIT :.*SSC'
check "ends when asked" stop re 5
