#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# A server whose tables are not those that we know keeps them: one line says so, and what does not need
# that table goes on. The two protocols are bound each for itself.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

# other_library FOLDER OLD NEW: the server's library with one name in it changed.
other_library() {
	mkdir "$1"
	python3 - "$(readlink -f /usr/lib/ganesha/libganesha_nfsd.so)" "$1" "$2" "$3" <<-'END'
		import os, sys
		source, folder, old, new = sys.argv[1:]
		data = open(source, "rb").read()
		old, new = b"\0" + old.encode() + b"\0", b"\0" + new.encode() + b"\0"
		assert data.count(old) == 1 and len(old) == len(new)
		open(f"{folder}/{os.path.basename(source)}", "wb").write(data.replace(old, new))
	END
}

# with_library FOLDER: start re with it.
with_library() {
	log_mark re
	LD_LIBRARY_PATH=$1 launch re
	check "the server starts" wait_for 20 is_ready re
}

stock_answers() {
	python3 -B "$SSC_ROOT/tests/integration/compounds.py" stock "$NFS_PORT" "${ADDR[re]}"
}

lines() { tail -n "+$((LOG_MARK[re] + 1))" "$T/re/log" | grep -c ':CRIT :.*SSC' || :; }

mkdir -m 0777 "$T/data"
echo hello >"$T/data/f"
SSC_LOG_LEVEL=INFO
EXPORT_PATH=$T/data reexport_conf re "$(addr 12)" "Name = SSC; FSAL { Name = VFS; }"
: >"$T/re/log"

other_library "$T/op" OP_CLONE OP_CLONX
with_library "$T/op"
expect_log re 'CRIT.*of NFSv4 operations is not where or what .*goes on without server-side copy'
check_same "that is all that is said" "$(lines)" 1
expect_log re 'NFSv3 WRITE and COMMIT carry'
check "the server's own operations answer" stock_answers
check "v3 serves" c3 re stat /f
stop re

other_library "$T/compound" NFS4_COMP NFS4_COMQ
with_library "$T/compound"
expect_log re 'CRIT.*of NFSv4 is not where or what .*goes on without server-side copy'
check_same "that is all that is said" "$(lines)" 1
check "the server's own operations answer" stock_answers
stop re

other_library "$T/v3" NFS3_PATHCONF NFS3_PATHCONG
with_library "$T/v3"
expect_log re 'CRIT.*of NFSv3 is not where or what'
check_same "that is all that is said" "$(lines)" 1
expect_log re 'operations of NFSv4 are this module'
check_not "the server's own operations do not answer" stock_answers
check "v3 serves" c3 re stat /f
stop re

log_mark re
start re
refuse_log re ':CRIT :.*SSC'
expect_log re 'operations of NFSv4 are this module'
expect_log re 'NFSv3 WRITE and COMMIT carry'
stop re
