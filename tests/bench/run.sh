#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# run.sh - build the measuring programs, then measure: `sudo ./run bench --help`, and for server-side copy
# `sudo ./run bench copy --help`.
#
# From the environment:
#     SSC_BUILD_DIR  build folder with libfsalssc.so (default build/gcc)
#     FIO_SRC_DIR    source of the installed fio, instead of fetching it with apt-get source

set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
SSC_BUILD_DIR=${SSC_BUILD_DIR:-$root/build/gcc}
out=$root/build/bench
tools=$out/tools

die() {
	echo "bench: $*" >&2
	exit 1
}

need() {
	local missing=() p
	for p in "$@"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] ||
			missing+=("$p")
	done
	[ ${#missing[@]} = 0 ] || {
		[ "$(id -u)" = 0 ] || die "run: sudo apt-get install -y ${missing[*]}"
		echo "Installing ${missing[*]}"
		apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
			die "failed: apt-get install -y ${missing[*]}"
	}
}

# The engine includes headers of fio and is under fio's licence; it is not part of the build of the
# module, and nothing of it is installed.
build_tools() {
	local nfsraw=("$here"/engine/nfsraw.c "$here"/engine/nfsraw3.c "$here"/engine/nfsraw4.c)
	local flags=(-O2 -g -Wall -Wextra -Werror -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64)
	mkdir -p "$tools"
	gcc "${flags[@]}" -fPIC -shared -include "$here/engine/config-host.h" -isystem "$FIO_SRC_DIR" \
		-o "$tools/fio_nfs.so" "$here/engine/fio_nfs.c" "${nfsraw[@]}" -lnfs
	gcc "${flags[@]}" -o "$tools/meta" "$here/meta.c" "${nfsraw[@]}" -lnfs
	gcc "${flags[@]}" -fPIC -shared -o "$tools/norpcbind.so" "$root/tests/integration/norpcbind.c"
}

if [ "${1:-}" = copy ]; then
	shift
	need nfs-ganesha nfs-ganesha-vfs python3
	exec python3 -B "$here/copies.py" --build "$SSC_BUILD_DIR" --out "$out" "$@"
fi
need nfs-ganesha nfs-ganesha-vfs nfs-ganesha-proxy-v4 fio libnfs-dev gcc libc6-dev python3
if [ -z "${FIO_SRC_DIR:-}" ]; then
	"$root/FSAL_SSC/build/getsource.sh" fio "$root/build/fio" ||
		die "no source of fio. Unpack that of the installed version and set FIO_SRC_DIR=<its folder>"
	FIO_SRC_DIR=$root/build/fio/src
fi
[ -f "$FIO_SRC_DIR/ioengines.h" ] || die "there is no ioengines.h in FIO_SRC_DIR=$FIO_SRC_DIR"
build_tools
exec python3 -B "$here/run.py" --tools "$tools" --module "$SSC_BUILD_DIR/libfsalssc.so" \
	--out "$out" "$@"
