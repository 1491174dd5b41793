#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Data that was written and not committed when the upstream restarts: COMMIT is answered with another
# verifier than the WRITE had, so that the client writes again. Also for WRITEs that are answered
# while it restarts: no verifier that a client sees may stand for two of the upstream's.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"
# shellcheck source=tests/integration/scripted.sh
. "$(dirname "$0")/scripted.sh"

start_upstream up "$(addr 11)"
start_scripted fake "$(addr 13)"
start_reexport re "$(addr 12)" "$(ssc_block up)" "
	EXPORT {
		Export_Id = 12; Path = /re2; Pseudo = /re2;
		FSAL { $(scripted_block fake "Connections = 4;") }
	}"
on_fake() { "$CLIENT" "$("url$1" re /re2)" "${@:2}"; }

verifier_of() { sed -n "s/^$2 //p" "$1"; }
wrote() { grep -q '^write ' "$1"; }

# start_writer NAME COMMAND...: WRITE with it; end_writer NAME: COMMIT. What it saw is in $T/NAME.
declare -A WRITER=()
start_writer() {
	local name=$1
	shift
	rm -f "$T/go-$name"
	"$@" "$T/go-$name" >"$T/$name" 2>&1 &
	WRITER[$name]=$!
}
# check runs in a subshell, which cannot wait for our children.
end_writer() {
	local rc=0
	touch "$T/go-$1"
	wait "${WRITER[$1]}" || rc=$?
	check "$1: COMMIT succeeds" [ "$rc" = 0 ]
}
differ() { [ -n "$(verifier_of "$T/$1" write)" ] && [ "$(verifier_of "$T/$1" write)" != "$(verifier_of "$T/$1" commit)" ]; }
equal() { [ -n "$(verifier_of "$T/$1" write)" ] && [ "$(verifier_of "$T/$1" write)" = "$(verifier_of "$T/$1" commit)" ]; }

for v in 3 4; do
	start_writer quiet$v c$v re verifiers /quiet$v
	start_writer crash$v on_fake $v verifiers /crash$v
	start_writer kill$v c$v re verifiers /kill$v
done
for name in "${!WRITER[@]}"; do
	check "$name: WRITE is answered" wait_for 20 wrote "$T/$name"
done
for v in 3 4; do
	end_writer quiet$v
	check "v$v: without a restart COMMIT has the WRITE's verifier" equal quiet$v
done

kill9 up
start up
for v in 3 4; do
	end_writer kill$v
	check "v$v: after a restart COMMIT has another one" differ kill$v
	start_writer after$v c$v re verifiers /kill$v
	check "v$v: WRITE again" wait_for 20 wrote "$T/after$v"
	end_writer after$v
	check "v$v: now they agree" equal after$v
	check "v$v: a third one, never seen before" \
		[ "$(sort -u <(verifier_of "$T/kill$v" write) <(verifier_of "$T/after$v" write) | wc -l)" = 2 ]
done

# This upstream really loses it.
scripted fake crash
for v in 3 4; do
	end_writer crash$v
	check "v$v: after a loss COMMIT has another one" differ crash$v
	scripted fake peek crash$v "$T/lost"
	check "v$v: the data is gone" [ ! -s "$T/lost" ]
	check "v$v: written again" on_fake $v write /crash$v 0 10000 7
	scripted fake crash
	check "v$v: and committed, it stays" on_fake $v verify /crash$v 0 10000 7
	start_writer calm$v c$v re verifiers /calm$v
	check "v$v: WRITE to the other export" wait_for 20 wrote "$T/calm$v"
	scripted fake crash
	check "v$v: a WRITE after that restart" on_fake $v write /other$v 0 1000 1
	end_writer calm$v
	check "v$v: the other export's verifier is not concerned" equal calm$v
done

# A WRITE whose reply was sent before a restart and arrives after it, when others know of it already.
for v in 3 4; do
	n_writes=$(scripted fake calls WRITE)
	scripted fake fault WRITE HOLD_EXECUTED
	start_writer held$v on_fake $v verifiers /held$v
	scripted fake wait WRITE $((n_writes + 1))
	scripted fake verifier "$((1000 + v))"
	check "v$v: a WRITE after the restart" on_fake $v write /other$v 0 1000 2
	scripted fake release
	check "v$v: the earlier one is answered" wait_for 20 wrote "$T/held$v"
	end_writer held$v
	check "v$v: and its COMMIT has another verifier" differ held$v
done

# The same by numbers: the upstream changes its verifier after each third WRITE, with 48 under way.
for v in 3 4; do
	scripted fake flips 3
	on_fake $v writes "/flips$v" 3000 48 | sort >"$T/clients$v"
	scripted fake flips 0
	scripted fake writes "$T/all"
	# The last 3000 are these.
	tail -n 3000 "$T/all" | sort >"$T/upstreams$v"
	check_same "v$v: each one was seen by both" "$(join "$T/clients$v" "$T/upstreams$v" | wc -l)" 3000
	check_same "v$v: no verifier stands for two of the upstream's" \
		"$(join -o 1.2,2.2 "$T/clients$v" "$T/upstreams$v" | sort -u | cut -d ' ' -f 1 | uniq -d | wc -l)" 0
	say "v$v: $(cut -d ' ' -f 2 "$T/clients$v" | sort -u | wc -l) verifiers for" \
		"$(cut -d ' ' -f 2 "$T/upstreams$v" | sort -u | wc -l) of the upstream's"
done
refuse_log re ':CRIT :.*SSC'
check "ends when asked" stop re 5
