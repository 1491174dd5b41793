#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Two upstreams that name two files by the same handle stay two files; two that would be taken for
# one are refused.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

# Two stock servers over one folder give equal handles. A third sees another folder; what differs
# between the first two is shown by taking one of them away.
start_upstream a "$(addr 11)"
ADDR[b]=$(addr 12)
write_conf b "$(addr 12)"
cat >>"$T/b/conf" <<-EOF
	EXPORT { Export_Id = 1; Path = "$T/a/exp"; Pseudo = "/exp"; FSAL { Name = VFS; } }
EOF
start b

more="EXPORT { Export_Id = 12; Path = /reb; Pseudo = /reb; FSAL { $(ssc_block b) } }"
start_reexport re "$(addr 13)" "$(ssc_block a)" "$more"
check "written through the one" c3 re write /f 0 100000 1
check "read through the other" "$CLIENT" "$(url3 re /reb)" verify /f 0 100000 1

# The upstreams' handles are equal (one folder, one export id), and yet there are two objects: with one
# upstream gone, only its own is away.
kill9 b
check_not "b is gone: its file cannot be read" "$CLIENT" -w 1 "$(url3 re /reb)" verify /f 0 100000 1
check "a's can" c3 re verify /f 0 100000 1
start b
check "b is back" "$CLIENT" "$(url3 re /reb)" verify /f 0 100000 1

# Ids that collide are refused at load, naming the key.
more="EXPORT { Export_Id = 12; Path = /reb; Pseudo = /reb; FSAL { $(ssc_block b "Upstream_Id = 5;") } }"
reexport_conf re2 "$(addr 14)" "$(ssc_block a "Upstream_Id = 5;")" "$more"
launch re2
check "a collision is refused, naming the key" wait_for 10 log_has re2 'Upstream_Id'
expect_log re2 'upstream id 5 is also that of'
