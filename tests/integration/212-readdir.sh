#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# A folder of many names is listed whole, each name once, and in time that grows with its size only;
# also when the upstream restarts between two pages.
# SSC_NAMES: how many (default 100000).
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

n=${SSC_NAMES:-100000}
start_upstream up "$(addr 11)"
mkdir "$T/up/exp/tenth" "$T/up/exp/all"
(cd "$T/up/exp/tenth" && seq -f 'name-%06.0f' $((n / 10)) | xargs touch)
(cd "$T/up/exp/all" && seq -f 'name-%06.0f' "$n" | xargs touch)
start_reexport re "$(addr 12)" "$(ssc_block up)"

# listing V FOLDER: sorted names, as a client sees them.
listing() { "c$1" re ls "/$2" | sort; }
names() { find "$T/up/exp/$1" -mindepth 1 -printf '%f\n' | sort; }
same_names() { cmp <(listing "$1" "$2") <(names "$2"); }

for v in 3 4; do
	begun=$(now_ms)
	check "v$v: all $((n / 10)) names" same_names $v tenth
	tenth=$(($(now_ms) - begun))
	begun=$(now_ms)
	check "v$v: all $n names" same_names $v all
	all=$(($(now_ms) - begun))
	check "v$v: ten times the names in $all ms, against $tenth ms" at_most $all $((tenth * 25 + 8000))
done

# Fresh server, so that nothing is cached; the upstream goes and comes while it is read.
check "ends when asked" stop re 5
start re
c3 re ls /all >"$T/names" &
job=$!
for _ in 1 2 3; do
	sleep 0.3
	kill9 up
	start up
done
rc=0
wait "$job" || rc=$?
check "listed while the upstream restarts three times" [ "$rc" = 0 ]
check "all names, each once" diff <(sort "$T/names") <(names all)
