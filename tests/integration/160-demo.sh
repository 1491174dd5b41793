#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# The demo runs, checks what it made, and leaves nothing behind; also against a server it is given.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

left() { pgrep -f "$T/ssc\." || find "$T" -mindepth 1 -maxdepth 1 -name 'ssc.*' | grep . ; }

check "the demo with its own upstream" env TMPDIR="$T" "$SSC_ROOT/tests/demo.sh" --once --listen "$(addr 21)"
check_not "leaves no process and no folder" left

start_upstream up "$(addr 11)"
check "the demo of a given server" env TMPDIR="$T" "$SSC_ROOT/tests/demo.sh" --once --listen "$(addr 22)" \
	--server "${ADDR[up]}" --path /exp --port "$NFS_PORT" --mount-port "$MNT_PORT"
check_same "leaves that server as it was" "$(find "$T/up/exp" -mindepth 1)" ""

TMPDIR=$T "$SSC_ROOT/tests/demo.sh" --listen "$(addr 23)" >"$T/demo.out" 2>&1 &
demo=$!
at_exit eval "kill $demo 2>/dev/null"
check "it serves" wait_for 60 grep -q 'Serving until' "$T/demo.out"
check "and prints the block to copy" grep -q 'Remote_Path = /exp;' "$T/demo.out"
check "and the command to mount it" grep -q '^mount -t nfs -o vers=4.2,port=' "$T/demo.out"
check "and shows a copy by the server" grep -Eq '^by the server +[0-9.]+ s' "$T/demo.out"
kill -TERM "$demo"
check "it ends when asked" wait_for 20 is_gone "$demo"
check_not "leaves no process and no folder" left
check_not "refuses half a server" "$SSC_ROOT/tests/demo.sh" --server 127.0.0.1
