#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Exports of FSAL { Name = SSC; FSAL { Name = VFS; } } that come, change and go over DBus and SIGHUP:
# the same steps on a server with VFS alone give the same results, wrong steps too.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

start_bus
declare -A FSAL=([vfs]="Name = VFS;" [re]="Name = SSC; FSAL { Name = VFS; }")
for s in vfs re; do
	mkdir -p "$T/$s-a" "$T/$s-b" "$T/$s-c"
	chmod 0777 "$T/$s"-?
	EXPORT_PATH=$T/$s-a start_reexport $s "$(addr $((11 + ${#s})))" "${FSAL[$s]}"
done

# export_file SERVER ID FOLDER PSEUDO [KEYS]: into $T/SERVER.conf, for the steps below.
export_file() {
	cat >"$T/$1.conf" <<-EOF
		EXPORT {
			Export_Id = $2; Path = "$T/$1-$3"; Pseudo = "$4"; ${5:-}
			Access_Type = RW; Squash = No_Root_Squash; SecType = sys; Protocols = 3, 4;
			FSAL { ${FSAL[$1]} }
		}
	EOF
}
call() { dbus_export "$1" "$2" "string:$T/$1.conf" "string:EXPORT(Export_Id=$3)"; }
remove() { dbus_export "$1" RemoveExport "uint16:$2"; }
client() { "$CLIENT" -w 1 "$(url3 "$1" "$2")" "${@:3}"; }

# try WORDS COMMAND...: one line with its outcome.
try() {
	local what=$1
	shift
	if "$@" >>"$T/tried" 2>&1; then echo "$what: yes"; else echo "$what: no"; fi
}

steps() {
	local s=$1 i
	export_file "$s" 12 b /b
	try "add" call "$s" AddExport 12
	try "serves" client "$s" /b mkdir /d1
	try "on its folder" test -d "$T/$s-b/d1"
	try "add it again" call "$s" AddExport 12
	export_file "$s" 13 c /b
	try "add another at the same place" call "$s" AddExport 13
	export_file "$s" 13 none /c
	try "add a folder that is not there" call "$s" AddExport 13
	try "the first one serves after all that" client "$s" /b mkdir /d2

	export_file "$s" 12 b /b
	sed -i 's/Access_Type = RW/Access_Type = RO/' "$T/$s.conf"
	try "update to read-only" call "$s" UpdateExport 12
	try "can be written to" client "$s" /b mkdir /d3
	try "can be listed" client "$s" /b ls /
	export_file "$s" 12 b /b
	try "update to read-write" call "$s" UpdateExport 12
	try "can be written to" client "$s" /b mkdir /d4
	try "update with a key given twice, once wrong" call_wrong "$s"
	try "can be written to" client "$s" /b mkdir /d5
	try "update of an id that is not there" call "$s" UpdateExport 99
	try "remove an id that is not there" remove "$s" 99

	# In the middle of writing.
	"$CLIENT" -w 1 "$(url3 "$s" /b)" speed /big 1000 >/dev/null 2>&1 & # itself, so that kill reaches it
	i=$!
	sleep 0.5
	try "remove while it is written to" remove "$s" 12
	kill "$i" 2>/dev/null || :
	wait "$i" 2>/dev/null || :
	try "serves" client "$s" /b mount
	try "the other one serves" client "$s" /re mkdir "/r$(now_ms)"
	try "add it back" call "$s" AddExport 12
	try "what was made is there" client "$s" /b stat /d4
	try "remove it" remove "$s" 12

	# SIGHUP: an export more in the file, then one changed and then one less.
	cp "$T/$s/conf" "$T/$s.kept"
	cat "$T/$s.conf" >>"$T/$s/conf"
	reload "$s" client "$s" /b mount
	try "SIGHUP with a new export: serves" client "$s" /b mkdir /h1
	sed -i 's/Access_Type = RW; Squash/Access_Type = RO; Squash/' "$T/$s/conf"
	reload "$s" not client "$s" /b mkdir "/h2$(now_ms)"
	try "SIGHUP with it read-only: can be written to" client "$s" /b mkdir /h3
	try "can be listed" client "$s" /b ls /
	cp "$T/$s.kept" "$T/$s/conf"
	reload "$s" not client "$s" /b mount
	try "SIGHUP without it: serves" client "$s" /b mount
	try "the other one serves" client "$s" /re mkdir "/r$(now_ms)"
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
		call "$s" AddExport 12 >/dev/null && remove "$s" 12 >/dev/null || echo "round $i failed"
	done
	try "the server lives" is_running "$s"
}

call_wrong() {
	export_file "$1" 12 b /b "Access_Type = MAYBE;"
	call "$1" UpdateExport 12
}

# reload SERVER COMMAND...: SIGHUP, and wait a little for what it should lead to.
reload() {
	kill -HUP "${PID[$1]}"
	wait_for 3 "${@:2}" || :
}

steps vfs >"$T/vfs.steps"
steps re >"$T/re.steps"
while IFS= read -r line <&3 && IFS= read -r want <&4; do
	check_same "as with VFS alone: $line" "$line" "$want"
done 3<"$T/re.steps" 4<"$T/vfs.steps"
check_same "the same number of steps" "$(wc -l <"$T/re.steps")" "$(wc -l <"$T/vfs.steps")"
check "most of them say something" at_least "$(grep -c ': yes' "$T/re.steps")" 18
refuse_log re ':CRIT :.*SSC'
for s in vfs re; do
	rc=0
	stop $s 5 || rc=$?
	check "$s ends when asked" [ "$rc" = 0 ]
done
