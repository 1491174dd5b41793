#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# No include points the wrong way, and nobody below the glue knows the server's operation context.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/../integration/functions.sh"
cd "$SSC_ROOT"

# includes FOLDER...: "file:header" for every include below them.
includes() {
	find "$@" -name '*.[ch]' -exec grep -HoE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"][^>"]+' {} + |
		sed -E 's/:[[:space:]]*#.*[<"]/:/'
}

# none PATTERN FOLDER...: no include below them matches; prints those that do.
none() {
	local pattern=$1
	shift
	! includes "$@" | grep -E ":($pattern)"
}

# only PATTERN FOLDER...: every include below them matches.
only() {
	local pattern=$1
	shift
	! includes "$@" | grep -Ev ":($pattern)\$"
}

# Headers of the C library, the kernel and liburcu that any layer may use. A quoted header without
# a folder is one beside the file, and the folders below hold none of another layer.
system='std(arg|atomic|bool|def|int|io|lib)\.h|string\.h|strings\.h|errno\.h|limits\.h|inttypes\.h|ctype\.h'
system+='|assert\.h|(link|elf|dlfcn)\.h|time\.h|pthread\.h|sched\.h|unistd\.h|fcntl\.h|poll\.h|netdb\.h|signal\.h|semaphore\.h|malloc\.h'
system+='|endian\.h|(sys|netinet|arpa|linux|sanitizer)/[a-z_]+\.h|urcu.*\.h'

local_headers() { (cd "$1" && find . -maxdepth 1 -name '*.h' | sed 's|^\./||; s/\./\\./' | paste -sd '|'); }

check "include/ssc uses only itself and the C library" only "ssc/[a-z0-9_]+\.h|$system" include
for layer in base core upstream; do
	allowed="ssc/[a-z0-9_]+\.h|$system|$(local_headers FSAL_SSC/$layer)"
	[ $layer != upstream ] || allowed+='|nfsc/[a-z0-9-]+\.h'
	check "$layer uses only the interfaces, itself and what it may" only "${allowed%|}" FSAL_SSC/$layer
done
check "base does not use interfaces of upper layers" \
	none 'ssc/(sync_call|source_cache|writeback|copy_engine)\.h' FSAL_SSC/base
check "upstream does not use the core's interfaces" \
	none 'ssc/(sync_call|source_cache|writeback|copy_engine|copy_state)\.h' FSAL_SSC/upstream

glue=$(find FSAL_SSC -maxdepth 1 -name '*.[ch]')
# shellcheck disable=SC2086
check "the glue does not use libnfs or a layer's private headers" \
	none '(nfsc/|(base|core|upstream)/|\.\./)' $glue
check "only the glue knows op_ctx" not grep -rnw op_ctx FSAL_SSC/base FSAL_SSC/core FSAL_SSC/upstream include
