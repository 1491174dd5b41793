#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# The transparent stack, FSAL { Name = SSC; FSAL { Name = VFS; } }, behaves as VFS alone.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

start_bus
mkdir -m 0777 "$T/data" "$T/data2"
# The folder is changed behind the servers' backs below.
EXPORT_EXTRA="Attr_Expiration_Time = 0;"
EXPORT_PATH=$T/data start_reexport vfs "$(addr 11)" "Name = VFS;"
EXPORT_PATH=$T/data start_reexport re "$(addr 12)" "Name = SSC; FSAL { Name = VFS; }"

make_tree "$T/in"
for v in 3 4; do
	check "v$v: make a folder" c$v re mkdir "/t$v"
	check "v$v: a tree goes in" c$v re treein "$T/in" "/t$v"
	check "v$v: the folder has it, byte by byte" same_tree "$T/in" "$T/data/t$v"
	check "v$v: it comes out the same" c$v re treeout "/t$v" "$T/out$v"
	check "v$v: byte by byte" same_tree "$T/in" "$T/out$v"
	check "v$v: 2 s of random changes" c$v re churn / 2 $v
done

# What a client can see of an object is what plain VFS shows of it.
chown 1234:4321 "$T/data/t3/a/f511"
mknod "$T/data/dev" c 4 7
ln -s some/where "$T/data/sym"
for p in / /t3 /t3/a/f511 /t3/a/f4096 /dev /sym; do
	check_same "v3: attributes of $p as from VFS" "$(c3 re stat "$p")" "$(c3 vfs stat "$p")"
	check_same "v4: attributes of $p as from VFS" "$(c4 re stat "$p")" "$(c4 vfs stat "$p")"
done
check_same "the file system's size as from VFS" "$(c3 re statfs / | cut -d ' ' -f 1)" \
	"$(c3 vfs statfs / | cut -d ' ' -f 1)"
errors() { for what in "rm /none" "rmdir /t3" "mkdir /t3" "create /dev excl" "readlink /t3"; do
	# shellcheck disable=SC2086
	{ "c$2" "$1" $what 2>&1 || :; } | sed 's/.*: //'
done; }
for v in 3 4; do
	check_same "v$v: the same errors as from VFS" "$(errors re $v)" "$(errors vfs $v)"
done

# Changes of the configuration at run time.
cat >"$T/more.conf" <<-EOF
	EXPORT {
		Export_Id = 12;
		Path = "$T/data2";
		Pseudo = "/re2";
		Access_Type = RW;
		Squash = No_Root_Squash;
		FSAL { Name = SSC; FSAL { Name = VFS; } }
	}
EOF
check "an export is added" dbus_export re AddExport "string:$T/more.conf" 'string:EXPORT(Export_Id=12)'
check "and serves" "$CLIENT" "$(url3 re /re2)" mkdir /d
check "on its own folder" test -d "$T/data2/d"
sed -i 's/Access_Type = RW/Access_Type = RO/' "$T/more.conf"
check "it is updated" dbus_export re UpdateExport "string:$T/more.conf" 'string:EXPORT(Export_Id=12)'
check_not "to read-only" "$CLIENT" "$(url3 re /re2)" mkdir /e
check "which still lists" "$CLIENT" "$(url3 re /re2)" ls /
check "it is removed" dbus_export re RemoveExport uint16:12
check_not "and is gone" "$CLIENT" "$(url3 re /re2)" mount
check "the first one is not" c3 re mount

log_mark re
sed -i 's/Squash = No_Root_Squash/Squash = All_Squash/' "$T/re/conf"
kill -HUP "${PID[re]}"
squashed() { ! c3 re mkdir "/sq$(now_ms)" || [ "$(stat -c %u "$(find "$T/data" -maxdepth 1 -name 'sq*' | tail -n 1)")" != 0 ]; }
check "SIGHUP reads the changed configuration" wait_for 10 squashed
check "and the export goes on" c3 re treeout /t3/a/b "$T/out5"
check "byte by byte" diff -r --no-dereference "$T/in/a/b" "$T/out5"

check "ends when asked" stop re 5
# "Extra references" is the server's own: it keeps one on any FSAL for each update of an export.
refuse_log re ':CRIT :(.*[^o] FSAL SSC|SSC)'
