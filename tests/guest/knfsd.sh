#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# knfsd.sh - the upstream is a Linux kernel's NFS server, in a guest of its own. What is changed there
# behind the re-export is seen by a client that opens the file anew, and the torture of torture.sh
# passes over it by v3 and v4.1, with the same bytes in the end.

# shellcheck source-path=SCRIPTDIR source=lab.sh
. "$(dirname "$0")/lab.sh"

# sees MOUNT TEXT: in the client, opening the file anew.
sees() { gx 1 "cat /m$1/behind" | grep -qx "$2"; }

# changed_behind: the server's folder is written to on the server itself. An open asks the upstream
# (close-to-open), so not even the server's own cache of attributes may hide the change.
changed_behind() {
	local v
	boot client 6.1 1 "$here/agent.payload" "${SOURCE[@]}"
	gx 2 'echo first >/srv/behind'
	for v in 3 4; do check "v$v reads what the server wrote" wait_for 10 sees $v first; done
	gx 2 'echo "second, longer" >/srv/behind'
	for v in 3 4; do check "v$v sees a change made on the server" sees $v "second, longer"; done
	gx 2 'mv /srv/behind /srv/before; echo third >/srv/behind'
	for v in 3 4; do check "v$v sees a file put in its place" wait_for 65 sees $v third; done
	gx 1 'agent quit' || :
	wait "${GUEST_PID[client]}" || :
}

truncate -s 192M "$T/disk"
mkfs.ext4 -q -b 4096 "$T/disk" # smaller blocks would limit symlinks
boot_knfsd nfsd
reexport_knfsd
changed_behind
boot guest 6.1 3 -t "${SSC_GUEST_LIMIT:-240}" "$here/torture.payload" "${SOURCE[@]}" 100 3 4.1
guest_results guest "knfsd v"
check "knfsd: guest came to its end" [ "$GUEST_RC" -le 1 ]
for v in 3 4.1; do
	check "knfsd: v$v upstream has the same bytes" gx 2 \
		"test -s /srv/lists/$v && fsops tree-list /srv/$v | diff /srv/lists/$v -"
done
gx 2 'agent quit' || :
