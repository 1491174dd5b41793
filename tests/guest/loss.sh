#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# loss.sh - an upstream that really loses what was not committed: a Linux nfsd in a guest of its own,
# whose QEMU is killed with the written data in its page cache, and which comes back with what its
# disk has. Meanwhile a client guest has written through the re-export, UNSTABLE, by v3 and by v4.1;
# its fsync afterwards must bring all bytes to the disk. Only with write=eager does the Linux client
# leave its writes uncommitted for a while instead of asking for a COMMIT when they are answered.

# shellcheck source-path=SCRIPTDIR source=lab.sh
. "$(dirname "$0")/lab.sh"
KIB=8192

# nfsd's own count of a procedure: the fields of this line are in the order of RFC 1813.
n_calls() {
	gx 2 'grep ^proc3 /proc/net/rpc/nfsd' | awk -v which="$1" '{ print $(which + 3) }'
}

job_says() { grep -qx "$2" "$T/job-$1"; }

truncate -s 192M "$T/disk"
mkfs.ext4 -q -b 4096 "$T/disk"
boot_knfsd nfsd1
reexport_knfsd
boot client 6.1 1 "$here/agent.payload" "${SOURCE[@]}" write=eager
check "the guest mounts a kernel server's re-export" gx 1 'touch /m3/f3 /m4/f4 && sync'

declare -A JOB=()
for v in 3 4; do
	gx 1 "fsops unstable /m$v/f$v $v $KIB /tmp/go" >"$T/job-$v" 2>&1 &
	JOB[$v]=$!
done
for v in 3 4; do check "v$v wrote its data" wait_for 60 job_says "$v" written; done
writes=$(n_calls 7) commits=$(n_calls 21)
say "the upstream saw $writes WRITE and $commits COMMIT calls"
check "the upstream was written to" [ "$writes" -ge $((2 * KIB / 1024)) ]
check "and was not asked to commit" [ "$commits" = 0 ]

# These write and commit on and on, so that the failure comes between any two of their calls.
for v in 3 4; do
	gx 1 "fsops stream-write /m$v/s$v $v 0 15" >"$T/stream-$v" 2>&1 &
	JOB[s$v]=$!
done
sleep 3
power_off nfsd1
boot_knfsd nfsd2
for v in 3 4; do
	check_not "v$v data is lost at the upstream" gx 2 "fsops stream-check /srv/f$v $v $KIB"
done
gx 1 'touch /tmp/go'
for v in 3 4; do
	rc=0
	wait "${JOB[$v]}" || rc=$?
	check "v$v fsync succeeds" [ "$rc" = 0 ]
	rc=0
	wait "${JOB[s$v]}" || rc=$?
	check "v$v writes during the failure succeed: $(tail -n 1 "$T/stream-$v")" [ "$rc" = 0 ]
done

# Once more without a warning; the disk itself must have it now.
power_off nfsd2
e2fsck -p "$T/disk" >/dev/null || :
for v in 3 4; do
	debugfs -R "dump /f$v $T/f$v" "$T/disk" 2>/dev/null
	check "v$v data is on the upstream's disk" "$guest/bin/fsops" stream-check "$T/f$v" $v $KIB
	written=$(sed -n 's/^kib=\([0-9]*\) .*/\1/p' "$T/stream-$v")
	debugfs -R "dump /s$v $T/s$v" "$T/disk" 2>/dev/null
	check "v$v data written during the failure is there" "$guest/bin/fsops" stream-check \
		"$T/s$v" $v "${written:-1}"
done
gx 1 'agent quit' || :
