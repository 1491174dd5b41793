#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# A server whose structures are not those we were compiled for does not get our module.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

start_upstream up "$(addr 11)"

mkdir "$T/lib"
cp "$(readlink -f /usr/lib/ganesha/libganesha_nfsd.so)" "$T/lib/"
lib=$(echo "$T"/lib/libganesha_nfsd.so.*)
check "a server library that was built otherwise" "$SSC_BUILD_DIR/tests/symsize" "$lib" nfs_param 472

reexport_conf re "$(addr 12)" "$(ssc_block up)"
LD_LIBRARY_PATH=$T/lib launch re
# With its only export refused the server may end, or go on without it: either is the server's way.
expect_log re 'CRIT.*SSC: not loaded: the size of nfs_param is 472 .*512' 10
check_not "nothing is exported" c3 re mount
stop re

LOG_MARK[re]=$(wc -l <"$T/re/log")
start re
refuse_log re 'SSC: not loaded'
check "the stock library is accepted" c3 re mount
