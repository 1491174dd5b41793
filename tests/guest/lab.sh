# SPDX-License-Identifier: LGPL-3.0-or-later
# shellcheck shell=bash disable=SC2034 # what is set here is for the scripts that source this
#
# lab.sh - what the scripts that boot guests share; sourced after the arguments were seen to.
#
# It runs the script again inside a network namespace of its own, ssc-guest-PID, with the bridge
# 10.77.0.0/24 and the taps t1 to t3, and removes that in the end. In there the servers of
# tests/integration/functions.sh are used: upstream "up" on 10.77.0.1, re-export "re" on 10.77.0.2.
#
# SSC_GUEST_FSAL says what is tested: SSC (the default), STACK (the upstream's folder by SSC around
# VFS), or, to test the tests themselves, VFS (that folder by a stock server) or PROXY_V4 (a re-export
# by the stock server's own proxy).

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
here=$root/tests/guest
guest=${SSC_GUEST_DIR:-$root/build/guest}

# in_namespace COMMAND...: with its exit status; TERM reaches the command.
in_namespace() {
	local ns=ssc-guest-$$ tap child rc=0
	ip netns add "$ns"
	# shellcheck disable=SC2064 # the name as it is now
	trap "ip netns del $ns" EXIT
	ip -n "$ns" link set lo up
	ip -n "$ns" link add br0 type bridge forward_delay 0
	ip -n "$ns" link set br0 up
	ip -n "$ns" addr add 10.77.0.1/24 dev br0
	ip -n "$ns" addr add 10.77.0.2/24 dev br0
	for tap in t1 t2 t3; do
		ip netns exec "$ns" ip tuntap add "$tap" mode tap
		ip -n "$ns" link set "$tap" master br0 up
	done
	SSC_GUEST_NETNS=$ns ip netns exec "$ns" "$@" &
	child=$!
	trap 'kill -TERM $child; wait $child; exit 143' TERM INT
	wait $child || rc=$?
	exit $rc
}

if [ -z "${SSC_GUEST_NETNS:-}" ]; then
	in_namespace "$0" "$@"
fi

export NFS_PORT=2049 MNT_PORT=20048 SSC_NET=10.77.0
# shellcheck source-path=SCRIPTDIR source=../integration/functions.sh
. "$root/tests/integration/functions.sh"
fsal=${SSC_GUEST_FSAL:-SSC}

# start_pair: the upstream on $T/up/exp, and the re-export of it, /re.
start_pair() {
	start_upstream up "$(addr 1)"
	case $fsal in
	SSC) start_reexport re "$(addr 2)" "$(ssc_block up)" ;;
	STACK)
		EXPORT_PATH=$T/up/exp start_reexport re "$(addr 2)" "Name = SSC; FSAL { Name = VFS; }"
		;;
	VFS) EXPORT_PATH=$T/up/exp start_reexport re "$(addr 2)" "Name = VFS;" ;;
	PROXY_V4)
		EXPORT_PATH=/exp start_reexport re "$(addr 2)" \
			"Name = PROXY_V4; Srv_Addr = $(addr 1); Use_Privileged_Client_Port = false;"
		;;
	*) die "SSC_GUEST_FSAL=$fsal" ;;
	esac
}

# boot NAME SERIES TAP-NUMBER OPTION... PAYLOAD ARGUMENT...: a guest 10.77.0.1N on tap N, in the
# background; its console goes to $T/NAME.log. GUEST_PID[NAME] is the pid of boot.sh.
declare -A GUEST_PID=()
boot() {
	local name=$1 kdir=$guest/$2 n=$3
	shift 3
	"$here/boot.sh" -k "$kdir" -n "t$n" -i "10.77.0.1$n/24" "$@" >"$T/$name.log" 2>&1 &
	GUEST_PID[$name]=$!
	at_exit end_guest "${GUEST_PID[$name]}"
}

end_guest() {
	kill -TERM "$1" 2>/dev/null || return 0
	wait "$1" 2>/dev/null || :
}

# guest_results NAME TITLE: shows and counts the lines "ok ..." and "FAIL ..." of a guest's console as
# soon as they come, until the guest ends; GUEST_RC is its status. What follows a failure belongs to
# it, the rest is not shown.
guest_results() {
	local pid=${GUEST_PID[$1]} shown
	tail -n +1 -F --pid="$pid" "$T/$1.log" 2>/dev/null | awk -v title="$2" '
		/^ok / { sub(/^ok /, ""); print "ok - " title $0; failed = 0; fflush(); next }
		/^FAIL / { sub(/^FAIL /, ""); print "not ok - " title $0; failed = 1; fflush(); next }
		failed { print "    " $0; fflush() }' | tee "$T/$1.results" &
	shown=$!
	GUEST_RC=0
	wait "$pid" || GUEST_RC=$?
	wait "$shown" || :
	N_PASSED=$((N_PASSED + $(grep -c '^ok ' "$T/$1.results" || :)))
	N_FAILED=$((N_FAILED + $(grep -c '^not ok ' "$T/$1.results" || :)))
}

# boot_knfsd NAME: a Linux NFS server in guest 10.77.0.12, on the disk $T/disk, exporting /srv; ready
# on return. power_off NAME ends it as a power failure does.
boot_knfsd() {
	boot "$1" 6.1 2 -I "$guest/6.1/initrd-nfsd" -p "$T/$1.qemu" -d "$T/disk" "$here/nfsd.payload"
	gx 2 true
}
power_off() {
	kill -KILL "$(cat "$T/$1.qemu")"
	wait "${GUEST_PID[$1]}" || : # the next one needs its tap and its disk
}

# reexport_knfsd: sets SOURCE to what a client is to mount, "ADDRESS PATH" as two words.
reexport_knfsd() {
	if [ "$fsal" = SSC ]; then
		start_reexport re "$(addr 2)" "Name = SSC; Server = $(addr 12); Port = 2049;
			Mount_Port = 20048; Remote_Path = /srv;"
		SOURCE=("$(addr 2)" /re)
	else # to test the tests: nothing in between
		SOURCE=("$(addr 12)" /srv)
	fi
}

# gx N COMMAND: in guest 10.77.0.1N, which must run the agent.
gx() { "$here/gx.sh" "10.77.0.1$1" "$2"; }
