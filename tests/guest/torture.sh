#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# torture.sh SERIES VERSION... - a guest with that kernel mounts the re-export by each NFS version and
# tortures it; afterwards the folder behind the upstream is listed here and must be, byte by byte,
# what the guest saw. SSC_GUEST_MANY: number of files of the largest test (10000).

series=$1
# shellcheck source-path=SCRIPTDIR source=lab.sh
. "$(dirname "$0")/lab.sh"
shift

# The guest's lines "ok ..." and "FAIL ..." become checks as soon as they come; what is no result
# belongs to the failure before it.
show_results() {
	tail -n +1 -F --pid="$1" "$T/guest.log" 2>/dev/null |
		sed -u -e "s|^ok |ok - $series v|" -e "s|^FAIL |not ok - $series v|" -e t -e 's|^|    |' |
		tee "$T/results"
}

start_pair
rc=0
boot guest "$series" 1 -t "${SSC_GUEST_LIMIT:-240}" \
	"$here/torture.payload" "$(addr 2)" "${SSC_GUEST_MANY:-10000}" "$@"
show_results "${GUEST_PID[guest]}" &
shown=$!
wait "${GUEST_PID[guest]}" || rc=$?
wait "$shown" || :
N_PASSED=$((N_PASSED + $(grep -c '^ok ' "$T/results" || :)))
N_FAILED=$((N_FAILED + $(grep -c '^not ok ' "$T/results" || :)))

check "$series guest came to its end" [ "$rc" -le 1 ]
upstream_has() {
	local seen=$T/up/exp/lists/$1
	[ -s "$seen" ] && diff "$seen" <("$guest/bin/fsops" tree-list "$T/up/exp/$1")
}
for v; do check "$series v$v upstream has the same bytes" upstream_has "$v"; done
