#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# SIGTERM ends the server within 5 s, however its upstream is dead, and with clients waiting for it.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

start_upstream up "$(addr 11)"

# A port that takes connections and never says a word.
cat >"$T/mute.py" <<'PY'
import socket, sys, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[1], int(sys.argv[2])))
s.listen(64)
print("ready", flush=True)
end = time.time() + 120
kept = []
s.settimeout(1)
while time.time() < end:
    try:
        kept.append(s.accept())
    except TimeoutError:
        pass
PY

# ends_in_time NAME WHAT: with two clients in the middle of something.
ends_in_time() {
	local begun took jobs=() j
	"$CLIENT" -w 30 "$(url3 "$1")" write /busy 0 50000000 1 >/dev/null 2>&1 &
	jobs+=($!)
	"$CLIENT" -w 30 "$(url4 "$1")" stat /f >/dev/null 2>&1 &
	jobs+=($!)
	sleep 1
	begun=$(now_ms)
	if stop "$1" 10; then took=$(($(now_ms) - begun)); else took=99999; fi
	check "upstream $2: SIGTERM ends the server in $took ms" at_most "$took" 5000
	for j in "${jobs[@]}"; do
		kill "$j" 2>/dev/null || :
		wait "$j" 2>/dev/null || :
	done
}

start_reexport re "$(addr 12)" "$(ssc_block up)"
check "works" c3 re write /f 0 100000 1
sigstop up
ends_in_time re "stopped"
sigcont up

start re
check "works again" c3 re verify /f 0 100000 1
stop up
ends_in_time re "gone (connection refused)"

python3 "$T/mute.py" "$(addr 14)" "$NFS_PORT" >"$T/mute.out" &
MUTE=$!
at_exit kill "$MUTE"
wait_for 5 grep -q ready "$T/mute.out" || die "the mute server did not start"
ADDR[mute]=$(addr 14)
start_reexport re2 "$(addr 13)" "$(ssc_block mute)"
ends_in_time re2 "mute"

start_reexport re3 "$(addr 15)" "Name = SSC; Server = no-such-host.invalid; Remote_Path = /exp;"
ends_in_time re3 "a name that nobody knows"

# A black hole: packets go nowhere, no reset, no refusal.
ns=ssc-fault-$$
ip netns add "$ns"
at_exit ip netns del "$ns"
ip link add "sscf$$" type veth peer name eth0 netns "$ns"
ip addr add 192.168.78.1/24 dev "sscf$$"
ip link set "sscf$$" up
ip -n "$ns" addr add 192.168.78.2/24 dev eth0
ip -n "$ns" link set eth0 up
ip neigh replace 192.168.78.2 lladdr 02:00:00:00:00:01 dev "sscf$$"
start_reexport re4 "$(addr 16)" "Name = SSC; Server = 192.168.78.2; Remote_Path = /exp;"
ends_in_time re4 "a black hole"
