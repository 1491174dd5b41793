#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# ./run serve: a configuration as a user has it, with our module though it is not installed.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

start_upstream up "$(addr 11)"

# Without the shim only NFSv4 starts on a machine that has no rpcbind.
reexport_conf re "$(addr 12)" "$(ssc_block up)"
sed -i '/Plugins_Dir/d; s/^NFS_CORE_PARAM {/NFS_Core_Param # ours\n{/; s/Protocols = 3, 4/Protocols = 4/' \
	"$T/re/conf"
sed -n '/^EXPORT {/,$p' "$T/re/conf" >"$T/re/exports.conf"
sed -i '/^EXPORT {/,$d' "$T/re/conf"
echo '%include "exports.conf"' >>"$T/re/conf"
cp "$T/re/conf" "$T/re/conf.before"

"$SSC_ROOT/run" serve "$T/re/conf" -p "$T/re/pid" >"$T/re/log" 2>&1 &
PID[re]=$!
SERVERS+=(re)
check "it serves" wait_for 180 c4 re mount
make_tree "$T/in"
check "a tree goes in" c4 re treein "$T/in" /
check "the upstream has it" same_tree "$T/in" "$T/up/exp"
check "the user's file is as it was" cmp "$T/re/conf" "$T/re/conf.before"
check "it ends when asked" stop re
check_not "a file that is not there is named" "$SSC_ROOT/run" serve "$T/nothing"
