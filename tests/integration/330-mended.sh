#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Operations that the stock server answers wrongly: the faults of a server without our module, and
# their absence with it, in a re-export, in an export over VFS, and in one that is VFS alone.
# See mended.py.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

ulimit -c 0
# part NAME SERVER EXPORT FOLDER: its checks are ours.
part() {
	local line name=$1 server=$2 export=$3 folder=$4
	say "$server $export: $name"
	while IFS= read -r line; do
		case $line in
		"ok - "*) check "$export: ${line#ok - }" true ;;
		"# "*) say "${line#\# }" ;;
		*) check "$export: ${line#not ok - }" false ;;
		esac
	done < <(timeout 120 python3 -B "$SSC_ROOT/tests/integration/mended.py" "$name" \
		"${ADDR[$server]}" "$NFS_PORT" "$export" "$folder" ${SSC_SEED:+"$SSC_SEED"} 2>&1 || :)
}

# vfs_export ID NAME FSAL_BLOCK [KEYS]
vfs_export() {
	mkdir -p "$T/$2"
	chmod 0777 "$T/$2"
	echo "EXPORT { Export_Id = $1; Path = \"$T/$2\"; Pseudo = \"/$2\"; ${4:-} FSAL { $3 } }"
}

start_upstream up "$(addr 11)"
say "the stock server's faults"
for one in stock-attributes stock-read_plus stock-seek; do part "$one" up /exp "$T/up/exp"; done
part crash up /exp "$T/up/exp"
check "stock: the server is gone after IO_ADVISE and CLOSE" wait_for 10 is_gone "${PID[up]}"
start up

start_reexport re "$(addr 12)" "$(ssc_block up)" "
	$(vfs_export 21 stack "Name = SSC; FSAL { Name = VFS; }")
	$(vfs_export 22 plain "Name = VFS;")
	$(vfs_export 23 meta "Name = VFS;" "Access_Type = MDONLY;")"
expect_log re 'NFSv4'
for where in "/re $T/up/exp" "/stack $T/stack" "/plain $T/plain"; do
	read -r export folder <<<"$where"
	for one in attributes advise read_plus limits cut; do part "$one" re "$export" "$folder"; done
	case $export in
	/re) part noseek re "$export" "$folder" ;;
	*) part seek re "$export" "$folder" ;;
	esac
done
part metadata re /meta "$T/meta"
refuse_log re ':CRIT :.*(SSC|FSAL|unsupported)'
check "ends when asked" stop re 5

say "with Enable_Copy = false the server is as it was"
reexport_conf off "$(addr 13)" "$(ssc_block up)" 'SSC { Enable_Copy = false; }'
start off
for one in stock-attributes stock-read_plus; do part "$one" off /re "$T/up/exp"; done
