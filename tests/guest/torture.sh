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

start_pair
boot guest "$series" 1 -t "${SSC_GUEST_LIMIT:-420}" \
	"$here/torture.payload" "$(addr 2)" /re "${SSC_GUEST_MANY:-10000}" "$@"
guest_results guest "$series v"
check "$series guest came to its end" [ "$GUEST_RC" -le 1 ]
upstream_has() {
	local seen=$T/up/exp/lists/$1
	[ -s "$seen" ] && diff "$seen" <("$guest/bin/fsops" tree-list "$T/up/exp/$1")
}
for v; do check "$series v$v upstream has the same bytes" upstream_has "$v"; done
