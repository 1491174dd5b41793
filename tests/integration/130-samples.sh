#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# The sample configurations load and serve, with nothing changed but names, ports and paths.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"

start_upstream up "$(addr 11)"
for sample in "$SSC_ROOT"/config_samples/*.conf; do
	name=$(basename "$sample" .conf)
	reexport_conf "$name" "$(addr 12)" ""
	# Blocks of the server itself come from the test: the last one wins, whole.
	sed -E "s/^([[:space:]]*Server =).*/\\1 ${ADDR[up]};/
		s/^([[:space:]]*)#?[[:space:]]*Port =.*/\\1Port = $NFS_PORT;/
		s/^([[:space:]]*)#?[[:space:]]*Mount_Port =.*/\\1Mount_Port = $MNT_PORT;/
		s/^([[:space:]]*Remote_Path =).*/\\1 \\/exp;/" "$sample" >"$T/$name/sample"
	grep -q Mount_Port "$T/$name/sample" ||
		sed -i -E "s/^([[:space:]]*)Server =/\\1Port = $NFS_PORT; Mount_Port = $MNT_PORT; Server =/" \
			"$T/$name/sample"
	# A local folder instead of an upstream.
	mkdir -p "$T/local"
	sed -i -E "s|^([[:space:]]*Path =) /srv/data;|\\1 $T/local;|" "$T/$name/sample"
	cat "$T/$name/conf" >"$T/$name/server"
	{ cat "$T/$name/sample"; cat "$T/$name/server"; } >"$T/$name/conf"
	start "$name"
	pseudo=$(sed -nE 's/^[[:space:]]*Pseudo = "?([^";]+)"?;.*/\1/p' "$sample" | head -n 1)
	check "$name: its export $pseudo serves over v4" "$CLIENT" "$(url4 "$name" "$pseudo")" mount
	check "$name: and over v3" "$CLIENT" "$(url3 "$name" "$pseudo")" create "/of_$name" plain
	place=$T/up/exp
	! grep -q "FSAL {" <(grep -A 3 "Name = SSC" "$sample") || place=$T/local
	check "$name: where it belongs" test -f "$place/of_$name"
	refuse_log "$name" ':(CRIT|WARN) :.*(CONFIG|SSC)'
	stop "$name"
done
