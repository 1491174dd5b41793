#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Exports come, change and go while the server runs: nothing is left behind.
# SSC_ROUNDS: how often (default 1000).
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

start_bus
start_upstream up "$(addr 11)"
start_reexport re "$(addr 12)" "$(ssc_block up)"
check "works" c3 re write /f 0 100000 1

export_block() { # KEYS
	cat <<-EOF
		EXPORT {
			Export_Id = 77; Path = /more; Pseudo = /more;
			Access_Type = RW; Squash = No_Root_Squash; SecType = sys; Protocols = 3, 4;
			FSAL { $(ssc_block up "${1:-}") }
		}
	EOF
}
export_block >"$T/more.conf"

add() { dbus_export re AddExport "string:$T/more.conf" 'string:EXPORT(Export_Id=77)' >"$T/dbus.out" 2>&1; }
update() { dbus_export re UpdateExport "string:$T/more.conf" 'string:EXPORT(Export_Id=77)' >"$T/dbus.out" 2>&1; }
remove() { dbus_export re RemoveExport uint16:77 >"$T/dbus.out" 2>&1; }

check "an export is added" add
check "and serves" "$CLIENT" "$(url3 re /more)" verify /f 0 100000 1
check "and over NFSv4" "$CLIENT" "$(url4 re /more)" verify /f 0 100000 1

# Keys that take effect at once, and those that cannot.
export_block "Upstream_Timeout_Ms = 500;" >"$T/more.conf"
check "a timeout is changed" update
sigstop up
begun=$(now_ms)
check_not "a stopped upstream: the client is told to come back" \
	"$CLIENT" -w 0 "$(url3 re /more)" write /f 0 4096 1
took=$(($(now_ms) - begun))
sigcont up
check "after the new time ($took ms)" at_most $took 2500
export_block "Connections = 3;" >"$T/more.conf"
log_mark re
update || :
expect_log re 'Connections'
check "the export goes on with what it had" "$CLIENT" "$(url3 re /more)" verify /f 0 100000 1
export_block >"$T/more.conf"
check "the export is removed" remove
check_not "and serves no more" "$CLIENT" -w 0 "$(url3 re /more)" stat /f

# A reload of the whole file.
log_mark re
kill -HUP "${PID[re]}"
sleep 1
check "SIGHUP: export 11 serves" c3 re verify /f 0 100000 1
check "SIGHUP: the server lives" is_running re

# rounds N: add, sometimes use, remove.
rounds() {
	local i
	for ((i = 0; i < $1; i++)); do
		if ! add || ! remove; then
			cat "$T/dbus.out"
			return 1
		fi
	done
}

rounds=${SSC_ROUNDS:-1000}
check "warm up: 50 rounds of adding and removing" rounds 50
sleep 1
fds=$(n_fds re) threads=$(n_threads re) rss=$(rss_kib re)
check "$rounds rounds" rounds "$rounds"
sleep 2
check "no descriptor is left ($fds before, $(n_fds re) after)" at_most "$(n_fds re)" $((fds + 2))
check "no thread is left ($threads before, $(n_threads re) after)" at_most "$(n_threads re)" \
	$((threads + 3))
# The server itself leaves a few hundred bytes per round: its own part is measured with VFS below.
grown=$(($(rss_kib re) - rss))
cat >"$T/more.conf" <<-EOF
	EXPORT {
		Export_Id = 77; Path = $T/up/exp; Pseudo = /more;
		Access_Type = RW; Squash = No_Root_Squash; SecType = sys; Protocols = 3, 4;
		FSAL { Name = VFS; }
	}
EOF
check "the same with VFS, warm up" rounds 50
rss=$(rss_kib re)
check "a quarter of the rounds with VFS" rounds $((rounds / 4))
stock=$((($(rss_kib re) - rss) * 4))
check "memory: $grown KiB more, with VFS it would be $stock KiB" at_most "$grown" $((stock > 0 ? stock + 4096 : 4096))
check "export 11 serves as before" c3 re verify /f 0 100000 1
check "ends when asked" stop re 5
