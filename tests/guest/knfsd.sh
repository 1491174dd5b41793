#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# knfsd.sh - the upstream is a Linux kernel's NFS server, in a guest of its own. What is changed there
# behind the re-export is seen by clients, and the torture of torture.sh
# passes over it by v4.1, with the same bytes in the end.

# shellcheck source-path=SCRIPTDIR source=lab.sh
. "$(dirname "$0")/lab.sh"

# sees MOUNT TEXT: in the client, opening the file anew.
sees() { gx 1 "cat /m$1/behind" | grep -qx "$2"; }

# changed_behind: the server's folder is written to on the server itself. NFSv4 tells us of an open,
# which asks the upstream at once. An open by NFSv3 cannot be told from any other question for
# attributes, so such a client sees the change after Attr_Expiration_Time, 5 s here.
changed_behind() {
	boot client 6.1 1 "$here/agent.payload" "${SOURCE[@]}" actimeo=3
	gx 2 'echo first >/srv/behind'
	check "v3 reads what the server wrote" wait_for 10 sees 3 first
	check "v4 reads what the server wrote" sees 4 first
	gx 2 'echo "second, longer" >/srv/behind'
	check "v4 sees a change made on the server at once" sees 4 "second, longer"
	check "v3 sees it after a while" wait_for 12 sees 3 "second, longer"
	gx 2 'mv /srv/behind /srv/before; echo third >/srv/behind'
	check "v3 sees a file put in its place" wait_for 20 sees 3 third
	check "v4 sees a file put in its place" wait_for 20 sees 4 third
	gx 1 'agent quit' || :
	wait "${GUEST_PID[client]}" || :
}

truncate -s 192M "$T/disk"
mkfs.ext4 -q -b 4096 "$T/disk" # smaller blocks would limit symlinks
boot_knfsd nfsd
EXPORT_EXTRA='Attr_Expiration_Time = 5;' reexport_knfsd
changed_behind
boot guest 6.1 3 -t "${SSC_GUEST_LIMIT:-240}" "$here/torture.payload" "${SOURCE[@]}" 100 4.1
guest_results guest "knfsd v"
check "knfsd: guest came to its end" [ "$GUEST_RC" -le 1 ]
check "knfsd: upstream has the same bytes" gx 2 \
	"test -s /srv/lists/4.1 && fsops tree-list /srv/4.1 | diff /srv/lists/4.1 -"
gx 2 'agent quit' || :
