#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# What a user does first: a tree goes in and comes out through the re-export, over v3 and v4.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

start_upstream up "$(addr 11)"
start_reexport re "$(addr 12)" "$(ssc_block up)"
make_tree "$T/in"
for v in 3 4; do
	check "v$v: make a folder" c$v re mkdir "/t$v"
	check "v$v: a tree goes in" c$v re treein "$T/in" "/t$v"
	check "v$v: the upstream has it, byte by byte" same_tree "$T/in" "$T/up/exp/t$v"
	check "v$v: it comes out" c$v re treeout "/t$v" "$T/out$v"
	check "v$v: the same, byte by byte" same_tree "$T/in" "$T/out$v"
done
check "v4 sees what v3 wrote" c4 re treeout /t3 "$T/out34"
check "the same, byte by byte" same_tree "$T/in" "$T/out34"
check "the inner folders count right, v3" same "$(c3 re count /t3/a/b)" 42
check "the inner folders count right, v4" same "$(c4 re count /t3/a/b)" 42

check "nfs-ls lists" nfs-ls "$(url3 re /re/t3)"
check "nfs-cp copies in" nfs-cp "$T/in/a/f1048577" "$(url3 re /re/cp)"
nfs-cat "$(url3 re /re/cp)" >"$T/cat" || :
check "nfs-cat gives it back" cmp "$T/in/a/f1048577" "$T/cat"

# Names move, and the upstream agrees at once.
check "rename" c3 re mv /cp /moved
check "hard link" c3 re ln /moved /linked
check "two names now" grep -q 'nlink=2' <(c4 re stat /linked)
check "symbolic link" c3 re symlink some/where /sym
check_same "its target" "$(c4 re readlink /sym)" some/where
check "the upstream's is the same" same "$(readlink "$T/up/exp/sym")" some/where
check "fifo" c3 re mknod /fifo fifo 0 0
check "device" c3 re mknod /dev chr 4 7
check_same "the upstream has that device" "$(stat -c '%F %t %T' "$T/up/exp/dev")" "character special file 4 7"
check "chmod" c3 re chmod 0601 /moved
check_same "the upstream has that mode" "$(stat -c %a "$T/up/exp/moved")" 601
check "chown" c3 re chown 1234 4321 /moved
check_same "the upstream has that owner" "$(stat -c %u:%g "$T/up/exp/moved")" 1234:4321
check "truncate" c4 re truncate /moved 1000
check_same "the upstream has that size" "$(stat -c %s "$T/up/exp/moved")" 1000
check "utimes" c3 re utimes /moved 1000000000 1100000000
check_same "the upstream has those times" "$(stat -c '%X %Y' "$T/up/exp/moved")" "1000000000 1100000000"
check "statfs" grep -q 'bytes=[1-9]' <(c3 re statfs /)
check_not "an exclusive create of what exists fails" c4 re create /moved excl
check_not "a folder that is not empty stays" c3 re rmdir /t3
check "remove" c3 re rm /linked
check_not "it is gone upstream" test -e "$T/up/exp/linked"
check "remove a whole tree" c4 re rmtree /t4
check_not "it is gone upstream" test -e "$T/up/exp/t4"

check "3 s of random changes over v3, every result as it must be" c3 re churn / 3 31
check "3 s of random changes over v4, every result as it must be" c4 re churn / 3 41
check "ends when asked" stop re 5
refuse_log re ':CRIT :.*SSC'
