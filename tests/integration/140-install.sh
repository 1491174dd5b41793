#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# cmake --install puts the module where the stock server looks, with its documents beside.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

check "installs" env DESTDIR="$T/root" cmake --install "$SSC_BUILD_DIR"
so=$T/root$GANESHA_FSAL_DIR/libfsalssc.so
check "the module lies where this system's server has its own" test -f "$so"
for f in README.md LICENSE config_samples/ssc_minimal.conf config_samples/ssc_full.conf; do
	check "$f is there" test -s "$T/root/usr/share/doc/libfsalssc/$f"
done
check_not "nothing else is installed" grep -vE '^\./usr/(lib/[^/]+/ganesha/libfsalssc\.so|share/doc/libfsalssc/)' \
	<(cd "$T/root" && find . -type f)

# The installed file, not the built one, is what a server loads.
rm "$(plugins_dir)/libfsalssc.so"
cp "$so" "$(plugins_dir)/libfsalssc.so"
start_upstream up "$(addr 11)"
start_reexport re "$(addr 12)" "$(ssc_block up)"
check "the installed module serves" c3 re mount
