#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Handles and listings of clients go on when the re-exporting server restarts, with the upstream's
# address written otherwise or moved; two upstreams with one number are refused.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

start_bus
start_upstream up "$(addr 11)"
start_upstream other "$(addr 13)"
start_reexport re "$(addr 12)" "$(ssc_block up)"
check "a file" c3 re write /file 0 4096 1
check "a folder" c3 re mkdir /dir
check "with 2000 files" c3 re fill /dir 2000

client() { timeout 60 python3 -B "$SSC_ROOT/tests/integration/handles.py" "$1" "${ADDR[re]}" "$NFS_PORT" "$T/held"; }
# goes_on WHAT: the server restarts, and what the client held is good.
goes_on() {
	stop re
	start re
	check_same "$1: handles are good, and the listing goes on where it stopped" "$(client load)" "2000 2000"
}

check "a client holds handles and half of a listing" client save
goes_on "restarted"
id=$(sed -n 's/.*upstream id \([0-9]*\).*/\1/p' "$T/re/log" | tail -n 1)
sed -i "s/Server = ${ADDR[up]};/Server = ::ffff:${ADDR[up]}; Upstream_Id = $id;/" "$T/re/conf"
goes_on "another address with the same Upstream_Id"

# Upstream ids.
cat >"$T/more.conf" <<-END
	EXPORT {
		Export_Id = 12; Path = /re2; Pseudo = /re2; Access_Type = RW; Squash = No_Root_Squash;
		FSAL { $(ssc_block other "Upstream_Id = $id;") }
	}
END
log_mark re
check_not "a second upstream with that id" dbus_export re AddExport "string:$T/more.conf" 'string:EXPORT(Export_Id=12)'
expect_log re "CRIT .*upstream id $id is also that of export 11 .*set Upstream_Id"
check_not "is not exported" "$CLIENT" "$(url4 re /re2)" mount
sed -i "s/Upstream_Id = $id;//" "$T/more.conf"
check "without it, it is" dbus_export re AddExport "string:$T/more.conf" 'string:EXPORT(Export_Id=12)'

# Both upstreams count their handles from the same start: equal names must stay two files.
check "a file on the second one" "$CLIENT" "$(url4 re /re2)" write /file 0 8192 2
check "the first one's is as it was" c4 re verify /file 0 4096 1
check "and so over v3" c3 re verify /file 0 4096 1
check "the second one's, too" "$CLIENT" "$(url3 re /re2)" verify /file 0 8192 2

# Changes at run time: one key can, the others are refused and leave the export as it is.
sed -i 's/Remote_Path/Upstream_Timeout_Ms = 3000; Remote_Path/' "$T/more.conf"
check "a live key" dbus_export re UpdateExport "string:$T/more.conf" 'string:EXPORT(Export_Id=12)'
expect_log re "Upstream_Timeout_Ms is 3000 now"
sed -i 's/Remote_Path/Connections = 3; Remote_Path/' "$T/more.conf"
dbus_export re UpdateExport "string:$T/more.conf" 'string:EXPORT(Export_Id=12)' >/dev/null || :
expect_log re "CRIT .*Connections cannot change .*remove the export and add it again"
check "the export goes on" "$CLIENT" "$(url3 re /re2)" verify /file 0 8192 2
check "ends when asked" stop re 5
