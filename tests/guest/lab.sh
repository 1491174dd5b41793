# SPDX-License-Identifier: LGPL-3.0-or-later
# shellcheck shell=bash
#
# lab.sh - what the scripts that boot guests share; sourced after the arguments were seen to.
#
# It runs the script again inside a network namespace of its own, ssc-guest-PID, with the bridge
# 10.77.0.0/24 and the taps t1 to t3, and removes that in the end. In there the servers of
# tests/integration/functions.sh are used: upstream "up" on 10.77.0.1, re-export "re" on 10.77.0.2.
#
# SSC_GUEST_FSAL says what is tested: SSC (the default), or, to test the tests themselves, VFS (the
# upstream's folder by a stock server) or PROXY_V4 (a re-export by the stock server's own proxy).

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

# gx N COMMAND: in guest 10.77.0.1N, which must run the agent.
gx() { "$here/gx.sh" "10.77.0.1$1" "$2"; }
