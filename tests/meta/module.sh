#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# What the built module shows to the dynamic linker.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/../integration/functions.sh"
so=$SSC_BUILD_DIR/libfsalssc.so

exports() { nm -D --defined-only "$so" | awk '{ print $3 }'; }
needed() { readelf -d "$so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }

# before A B: A is needed earlier than B, so its names win.
before() {
	needed | awk -v a="^$1[.]so" -v b="^$2[.]so" '
		$0 ~ a { ga = NR } $0 ~ b { gb = NR } { print } END { exit !(ga && gb && ga < gb) }'
}

has_flag() { readelf -dlW "$so" | grep -q -- "$1"; }

check_same "no symbol leaves the module" "$(exports)" ""
check "libnfs comes before ntirpc" before libnfs libntirpc
check "ntirpc comes before the C library, which has old functions of the same names" \
	before libntirpc libc
check "the server's library is named" before libganesha_nfsd libc
check "bound at load: a missing symbol is known at once" has_flag BIND_NOW
check "read-only after relocation" has_flag GNU_RELRO
check "never unmapped" has_flag NODELETE
check "finds the server's library where Debian puts it" has_flag 'RUNPATH.*\[/usr/lib/ganesha\]'
check_not "no text relocations" has_flag TEXTREL
check "stack protector" grep -q __stack_chk_fail <(nm -D --undefined-only "$so")
