#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# gx.sh ADDR COMMAND: runs a shell command in a guest that serves 'agent', prints its output and exits
# with its status. Waits for a guest that is still booting (SSC_GX_WAIT seconds, 60); a command that
# says nothing for SSC_GX_TIMEOUT seconds (150) is given up with 254.
addr=$1
shift
trap '' PIPE
until {
	exec 3<>"/dev/tcp/$addr/5000" && echo 'echo gx-ready' >&3 && read -t 10 -r line <&3 && [ "$line" = gx-ready ]
} 2>/dev/null; do
	if [ $SECONDS -ge "${SSC_GX_WAIT:-60}" ]; then
		echo "gx.sh: no agent at $addr" >&2
		exit 255
	fi
	sleep 0.3
done
printf '( %s\n) </dev/null; echo "gx-status=$?"; exit\n' "$*" >&3
rc=254
while IFS= read -t "${SSC_GX_TIMEOUT:-150}" -r line <&3; do
	case $line in
	gx-status=*) rc=${line#*=} ;;
	*) printf '%s\n' "$line" ;;
	esac
done
exit "$rc"
