#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# run.sh [NAME...] - all tests with real Linux kernels as clients, or those whose name is given, some
# at a time: 6.1-a and 6.1-b (v4.1; v3, v4.0 and v4.2), 6.12 (v3 and v4.1), 6.12-42 and 6.12-stack (v4.2,
# of a re-export and of a stack on VFS), outage, late, loss, knfsd, session (our NFSv4.2 client with a
# Linux server), and server-side copy: copy-6.1, copy-6.12, copy-fault-6.1, copy-fault-6.12.
# Prints each check as "ok - ..." or "not ok - ...", and fails when one failed. Their output in full,
# with the servers' last log lines, is in build/guest/log. Needs root, and what ./run build makes.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${SSC_GUEST_DIR:-$here/../../build/guest}
AT_A_TIME=${SSC_GUEST_AT_A_TIME:-3} # two emulated clients fill two cores; the third mostly waits

run_one() {
	case $1 in
	outage) "$here/outage.sh" ;;
	6.1-a) "$here/torture.sh" 6.1 4.1 ;;
	6.1-b) "$here/torture.sh" 6.1 3 4.0 4.2 ;;
	6.12) SSC_GUEST_MANY=1000 "$here/torture.sh" 6.12 3 4.1 ;;
	6.12-42) SSC_GUEST_MANY=3000 "$here/torture.sh" 6.12 4.2 ;;
	6.12-stack) SSC_GUEST_FSAL=STACK SSC_GUEST_MANY=3000 "$here/torture.sh" 6.12 4.2 ;;
	loss) "$here/loss.sh" ;;
	knfsd) "$here/knfsd.sh" ;;
	session) "$here/session.sh" ;;
	late) "$here/late.sh" ;;
	copy-6.1) "$here/copy.sh" 6.1 ;;
	copy-6.12) SSC_GUEST_SMALL=200 "$here/copy.sh" 6.12 ;;
	copy-fault-*) "$here/copy-fault.sh" "${1#copy-fault-}" ;;
	*)
		echo "run.sh: there is no test $1" >&2
		return 2
		;;
	esac
}

# show NAME: keeps all of the output and passes on the results. A signal to the whole group must not
# end it before its writer, which would then be ended by SIGPIPE in the middle of cleaning up.
show() {
	trap '' TERM INT
	tee "$out/log/$1.log" | grep --line-buffered '^ok \|^not ok \|^    '
}

[ "$(id -u)" = 0 ] || {
	echo "run.sh: guests need a network namespace; run it as root" >&2
	exit 2
}
[ $# -gt 0 ] || set -- 6.1-b 6.1-a copy-6.1 outage late 6.12 copy-6.12 copy-fault-6.1 knfsd 6.12-42 \
	copy-fault-6.12 loss 6.12-stack session
"$here/prep.sh"
mkdir -p "$out/log"
rc=0 pids=()
trap 'kill -TERM "${pids[@]}" 2>/dev/null; wait; exit 143' TERM INT
for name; do
	while [ "$(jobs -rp | wc -l)" -ge "$AT_A_TIME" ]; do wait -n || rc=1; done
	{
		start=$SECONDS status=0
		set +e # a test that fails early prints no check, and grep's failure is not the test's
		run_one "$name" 2>&1 | show "$name"
		status=${PIPESTATUS[0]}
		echo "# $name took $((SECONDS - start)) s, status $status"
		exit "$status"
	} &
	pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || rc=1; done
exit $rc
