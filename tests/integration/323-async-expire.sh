#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# A client vanishes while its copy runs: when its lease is over the copy ends, and its place is free.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

SIZE=16000000
SSC_LOG_LEVEL=INFO
NFSV4_EXTRA="Lease_Lifetime = 8;"
start_upstream up "$(addr 11)"
"$CLIENT" pattern $SIZE 7 >"$T/up/exp/src"
start_reexport re "$(addr 12)" "$(ssc_block up)" "SSC { Copy_Sync_Max_Bytes = 65536;
	Copy_Chunk_Bytes = 65536; Copy_Inflight_Max = 1; Copy_Max = 1; }"

copies() {
	timeout 60 python3 -B "$SSC_ROOT/tests/integration/async.py" "$1" "${ADDR[re]}" "$NFS_PORT" \
		"${PID[up]}" $SIZE 2>&1
}

out=$(copies expire)
check "a copy runs" grep -q '^ok - a copy runs' <<<"$out"
who=$(sed -n 's/^client //p' <<<"$out")
check "the client is known" test -n "$who"
expect_log re "client $who is gone, and its copies with it" 60
sigcont up
sleep 1 # what it had sent is answered
out=$(copies once)
check "the only place is free again" grep -q '^ok - asynchronously' <<<"$out"
check "and the rest as always" not grep -q '^not ok' <<<"$out"
refuse_log re ':CRIT :.*SSC'
check "ends when asked" stop re 5
