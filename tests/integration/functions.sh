# SPDX-License-Identifier: LGPL-3.0-or-later
# shellcheck shell=bash
#
# functions.sh - what integration scripts and the demo share: servers, checks, cleaning up.
#
# A script begins with
#     . "$(dirname "$0")/functions.sh"
# and gets $T (an own temporary folder), `set -Eeuo pipefail`, and an exit trap that stops every
# server it started, removes $T and prints how many checks passed. It fails when a check failed or
# a command outside of a check did.
#
# Servers are stock ganesha.nfsd processes, each with a NAME, an address of its own in 127.0.0.0/8,
# and the same ports. Of NAME these exist: $T/NAME/{conf,log,pid,recov}, and for upstreams
# $T/NAME/exp, the exported folder.
#
# From the environment:
#     SSC_BUILD_DIR  build folder with libfsalssc.so, tests/norpcbind.so and tests/client
#     SSC_NET        first three numbers of the addresses (default: from the script's process id,
#                    so that scripts can run side by side)
#     SSC_KEEP       not empty: leave $T behind
#     SSC_LOG_LEVEL  of the re-exporting servers (default EVENT)

set -Eeuo pipefail

SSC_ROOT=${SSC_ROOT:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
SSC_BUILD_DIR=${SSC_BUILD_DIR:-$SSC_ROOT/build/gcc}
SSC_NET=${SSC_NET:-127.$((64 + $$ / 250 % 180)).$((1 + $$ % 250))}
SSC_LOG_LEVEL=${SSC_LOG_LEVEL:-EVENT}
NFS_PORT=${NFS_PORT:-12049}
MNT_PORT=${MNT_PORT:-12050}
GANESHA=${GANESHA:-ganesha.nfsd}
GANESHA_FSAL_DIR=${GANESHA_FSAL_DIR:-/usr/lib/$(uname -m)-linux-gnu/ganesha}
NORPCBIND=$SSC_BUILD_DIR/tests/norpcbind.so
CLIENT=$SSC_BUILD_DIR/tests/client

N_PASSED=0
N_FAILED=0
CLEANUP=()
SERVERS=()
declare -A PID=() ADDR=()
EPOCH=$(date +%s)

# ---- small things ----

say() { printf '# %s\n' "$*"; }

die() {
	printf '# failed: %s\n' "$*" >&2
	exit 1
}

# addr N: an address of our own block.
addr() { echo "$SSC_NET.$1"; }

# at_exit COMMAND...: run it at the end, last one first.
at_exit() { CLEANUP+=("$(printf '%q ' "$@")"); }

# now_ms: milliseconds on the wall clock.
now_ms() { echo $(($(date +%s%N) / 1000000)); }

# wait_for SECONDS COMMAND...: poll until it succeeds; fails when the time is over.
wait_for() {
	local end=$(($(now_ms) + $1 * 1000))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(now_ms)" -lt "$end" ] || return 1
		sleep 0.05
	done
}

# check DESCRIPTION COMMAND...: count and print one check; its output is shown when it fails.
# The command runs in a subshell: start and stop servers outside of it.
check() {
	local what=$1 out
	shift
	if out=$("$@" 2>&1); then
		N_PASSED=$((N_PASSED + 1))
		printf 'ok - %s\n' "$what"
	else
		N_FAILED=$((N_FAILED + 1))
		printf 'not ok - %s\n' "$what"
		printf '    %s\n' "command: $*"
		[ -z "$out" ] || tail -n 20 <<<"$out" | sed 's/^/    /'
	fi
}

# check_not DESCRIPTION COMMAND...: the command must fail.
check_not() {
	local what=$1
	shift
	check "$what" not "$@"
}

not() { ! "$@"; }

# same A B: two strings are equal.
same() {
	[ "$1" = "$2" ] || {
		printf 'have: %s\nwant: %s\n' "$1" "$2"
		return 1
	}
}

# check_same DESCRIPTION HAVE WANT
check_same() { check "$1" same "$2" "$3"; }

# at_least HAVE WANT, at_most HAVE WANT: numbers, fractions allowed.
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { print a, ">=", b, "?"; exit !(a + 0 >= b + 0) }'; }
at_most() { awk -v a="$1" -v b="$2" 'BEGIN { print a, "<=", b, "?"; exit !(a + 0 <= b + 0) }'; }

# free_port ADDRESS [FIRST]: a TCP port that nothing on this machine listens at.
free_port() {
	local p
	for ((p = ${2:-20000 + RANDOM % 10000}; p < 32000; p++)); do
		[ -n "$(ss -Hltn "sport = :$p")" ] || {
			echo "$p"
			return 0
		}
	done
	die "no free port at $1"
}

port_open() { (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; }

# ---- servers ----

# plugins_dir: a folder with the stock modules and ours, for Plugins_Dir.
plugins_dir() {
	local d=$T/plugins m
	if [ ! -d "$d" ]; then
		mkdir "$d"
		for m in "$GANESHA_FSAL_DIR"/libfsal*.so; do
			ln -s "$m" "$d/"
		done
		ln -sf "$SSC_BUILD_DIR/libfsalssc.so" "$d/libfsalssc.so"
	fi
	echo "$d"
}

# write_conf NAME ADDRESS: the server's own blocks, into $T/NAME/conf.
# CORE_EXTRA and NFSV4_EXTRA add lines to the two blocks.
write_conf() {
	local dir=$T/$1
	mkdir -p "$dir/recov"
	cat >"$dir/conf" <<-EOF
		NFS_CORE_PARAM {
			Bind_Addr = $2;
			NFS_Port = $NFS_PORT;
			MNT_Port = $MNT_PORT;
			Protocols = 3, 4;
			Plugins_Dir = "$(plugins_dir)";
			Dbus_Name_Prefix = "$1";
			mount_path_pseudo = true;
			Enable_NLM = false;
			Enable_RQUOTA = false;
			Enable_UDP = false;
			${CORE_EXTRA:-}
		}
		NFSv4 {
			Graceless = true;
			Only_Numeric_Owners = true;
			RecoveryBackend = fs;
			RecoveryRoot = "$dir/recov";
			${NFSV4_EXTRA:-}
		}
		NFS_KRB5 { Active_krb5 = false; }
		EXPORT_DEFAULTS {
			Access_Type = RW;
			Squash = No_Root_Squash;
			SecType = sys;
			Protocols = 3, 4;
			Transports = TCP;
		}
	EOF
}

# launch NAME: start the server of $T/NAME/conf, without waiting.
# Every start gets an epoch of its own: the server's write verifier is made from it, and the start
# second, its default, may be that of the run before.
launch() {
	local name=$1 dir=$T/$1 level=EVENT
	! grep -q 'Name = SSC' "$dir/conf" || level=$SSC_LOG_LEVEL
	EPOCH=$((EPOCH + 1))
	DBUS_SYSTEM_BUS_ADDRESS=unix:path=$T/bus LD_PRELOAD=$NORPCBIND \
		"$GANESHA" -F -f "$dir/conf" -L "$dir/log" -p "$dir/pid" -E "$EPOCH" \
		-N "NIV_$level" >>"$dir/out" 2>&1 &
	PID[$name]=$!
	case " ${SERVERS[*]-} " in
	*" $name "*) ;;
	*) SERVERS+=("$name") ;;
	esac
}

# is_ready NAME: it listens, and its log says so since its last start.
is_ready() {
	kill -0 "${PID[$1]}" 2>/dev/null || return 2
	port_open "${ADDR[$1]}" "$NFS_PORT" && port_open "${ADDR[$1]}" "$MNT_PORT"
}

# start NAME: start it (again) with its configuration and wait until it serves.
start() {
	local name=$1 end=$(($(now_ms) + 20000))
	launch "$name"
	until is_ready "$name"; do
		if ! kill -0 "${PID[$name]}" 2>/dev/null; then
			tail -n 15 "$T/$name/log" >&2 || :
			die "$name ended at start"
		fi
		[ "$(now_ms)" -lt "$end" ] || die "$name was not ready after 20 s"
		sleep 0.05
	done
}

# start_upstream NAME ADDRESS [CONF]: a stock server with VFS on $T/NAME/exp, seen as /exp.
# CONF is appended to its configuration.
start_upstream() {
	local name=$1
	[ -e /etc/mtab ] || die "FSAL VFS reads /etc/mtab; run: ln -s /proc/self/mounts /etc/mtab"
	ADDR[$name]=$2
	write_conf "$name" "$2"
	mkdir -p "$T/$name/exp"
	chmod 0777 "$T/$name/exp"
	cat >>"$T/$name/conf" <<-EOF
		EXPORT {
			Export_Id = 1;
			Path = "$T/$name/exp";
			Pseudo = "/exp";
			FSAL { Name = VFS; }
		}
		${3:-}
	EOF
	start "$name"
	! grep 'Could not create export' "$T/$name/log" || die "$name does not export $T/$name/exp"
}

# ssc_block NAME [KEYS]: the inside of an FSAL block that re-exports /exp of the upstream NAME.
ssc_block() {
	echo "Name = SSC; Server = ${ADDR[$1]}; Port = $NFS_PORT; Mount_Port = $MNT_PORT;" \
		"Remote_Path = /exp; ${2:-}"
}

# reexport_conf NAME ADDRESS FSAL_BLOCK [MORE]: like start_reexport, but only writes the file.
reexport_conf() {
	local name=$1
	ADDR[$name]=$2
	write_conf "$name" "$2"
	if [ -n "$3" ]; then
		cat >>"$T/$name/conf" <<-EOF
			EXPORT {
				Export_Id = 11;
				Path = "${EXPORT_PATH:-/re}";
				Pseudo = "/re";
				${EXPORT_EXTRA:-}
				FSAL { $3 }
			}
		EOF
	fi
	printf '%s\n' "${4:-}" >>"$T/$name/conf"
}

# start_reexport NAME ADDRESS FSAL_BLOCK [MORE]: a stock server with our module, export 11 at /re.
# FSAL_BLOCK is what stands between the braces of FSAL { }; an empty one makes no export. MORE is
# appended to the configuration. EXPORT_PATH and EXPORT_EXTRA change or add keys of the export.
start_reexport() {
	reexport_conf "$@"
	start "$1"
}

# url3 NAME [PATH], url4 NAME [PATH]: for the client; PATH defaults to /re.
url3() { echo "nfs://${ADDR[$1]}${2:-/re}?version=3&nfsport=$NFS_PORT&mountport=$MNT_PORT"; }
url4() { echo "nfs://${ADDR[$1]}${2:-/re}?version=4&nfsport=$NFS_PORT"; }

# c3 NAME COMMAND..., c4 NAME COMMAND...: the test client on /re of a server.
c3() {
	local name=$1
	shift
	"$CLIENT" "$(url3 "$name")" "$@"
}
c4() {
	local name=$1
	shift
	"$CLIENT" "$(url4 "$name")" "$@"
}

is_gone() { ! kill -0 "$1" 2>/dev/null; }

is_running() { kill -0 "${PID[$1]}" 2>/dev/null; }

# stop NAME [SECONDS]: SIGTERM, and wait; fails (after SIGKILL) when that takes too long.
stop() {
	local pid=${PID[$1]-} late=0
	[ -n "$pid" ] || return 0
	kill -TERM "$pid" 2>/dev/null || :
	wait_for "${2:-15}" is_gone "$pid" || late=1
	[ "$late" = 0 ] || kill -KILL "$pid" 2>/dev/null || :
	wait "$pid" 2>/dev/null || :
	unset "PID[$1]"
	return "$late"
}

# kill9 NAME: SIGKILL. start NAME brings it back.
kill9() {
	local pid=${PID[$1]}
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || :
	unset "PID[$1]"
}

# Each thread stops at its own next return to the kernel: some still answer just after kill.
all_stopped() { ! grep -h '^State:' "/proc/$1"/task/*/status | grep -qv 'T (stopped)'; }
sigstop() {
	kill -STOP "${PID[$1]}"
	wait_for 10 all_stopped "${PID[$1]}"
}
sigcont() { kill -CONT "${PID[$1]}"; }

# Figures of a running server.
n_fds() { find "/proc/${PID[$1]}/fd" -mindepth 1 | wc -l; }
n_threads() { find "/proc/${PID[$1]}/task" -mindepth 1 -maxdepth 1 | wc -l; }
rss_kib() { awk '/^VmRSS/ { print $2 }' "/proc/${PID[$1]}/status"; }

# ---- logs ----

# log_mark NAME: remember where the log ends; the two below look only at what came after.
declare -A LOG_MARK=()
log_mark() { LOG_MARK[$1]=$(wc -l <"$T/$1/log"); }

# No pipe: grep ends at the first match, and a long log's tail would then count as failed.
log_has() { grep -Eq -- "$2" < <(tail -n "+$((${LOG_MARK[$1]-0} + 1))" "$T/$1/log"); }

# expect_log NAME PATTERN [SECONDS]: a check that a line shows up.
expect_log() { check "log of $1 says: $2" wait_for "${3:-5}" log_has "$1" "$2"; }

# refuse_log NAME PATTERN: a check that no line of the log matches.
refuse_log() { check "log of $1 does not say: $2" not log_has "$1" "$2"; }

# ---- a private bus, for exports that come and go ----

# start_bus: servers started after this can be driven with dbus_export.
start_bus() {
	cat >"$T/bus.conf" <<-EOF
		<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
		 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
		<busconfig>
			<type>session</type>
			<listen>unix:path=$T/bus</listen>
			<auth>EXTERNAL</auth>
			<policy context="default">
				<allow send_destination="*" eavesdrop="true"/>
				<allow eavesdrop="true"/>
				<allow own="*"/>
				<allow user="*"/>
			</policy>
		</busconfig>
	EOF
	dbus-daemon --config-file="$T/bus.conf" --nofork --nopidfile >"$T/bus.out" 2>&1 &
	BUS_PID=$!
	wait_for 10 test -S "$T/bus" || die "the private bus did not start: $(cat "$T/bus.out")"
}

# dbus_export NAME METHOD ARGUMENT...: call the export manager of a server, e.g.
#     dbus_export re AddExport string:$T/more.conf 'string:EXPORT(Export_Id=7)'
#     dbus_export re RemoveExport uint16:7
dbus_export() {
	local name=$1 method=$2
	shift 2
	dbus-send --bus="unix:path=$T/bus" --print-reply --reply-timeout=60000 \
		--dest="$name.org.ganesha.nfsd" /org/ganesha/nfsd/ExportMgr \
		"org.ganesha.nfsd.exportmgr.$method" "$@"
}

# ---- data ----

# make_tree FOLDER [SEED]: files of many sizes, folders, links, odd names.
make_tree() {
	local d=$1 n seed=${2:-1}
	mkdir -p "$d/a/b/c" "$d/empty" "$d/name with  spaces"
	for n in 0 1 511 4095 4096 4097 65535 1048575 1048577 3500000; do
		"$CLIENT" pattern "$n" "$((seed + n))" >"$d/a/f$n"
	done
	for n in $(seq 40); do
		"$CLIENT" pattern "$((n * 37))" "$((seed + n))" >"$d/a/b/small$n"
	done
	echo text >"$d/name with  spaces/ümlaut é"
	echo long >"$d/a/$(printf 'n%.0s' $(seq 255))"
	ln -s ../f4096 "$d/a/b/link"
	ln -s nowhere "$d/a/b/c/dangling"
	chmod 0640 "$d/a/f511"
	chmod 0755 "$d/a/f4097"
}

# same_tree A B: names, kinds, sizes, modes, link targets and every byte.
same_tree() {
	diff -r --no-dereference "$1" "$2" &&
		diff <(cd "$1" && tree_list) <(cd "$2" && tree_list)
}

tree_list() {
	find . -mindepth 1 \( -type f -printf '%p f %s %m\n' -o -type l -printf '%p l %l\n' \
		-o -printf '%p %y\n' \) | sort
}

# ---- begin and end ----

finish() {
	local status=$? i name pid
	trap - EXIT INT TERM ERR
	set +Ee
	for ((i = ${#CLEANUP[@]} - 1; i >= 0; i--)); do
		eval "${CLEANUP[i]}"
	done
	if [ "$status" != 0 ] || [ "$N_FAILED" != 0 ]; then
		for name in "${SERVERS[@]}"; do
			[ -f "$T/$name/log" ] || continue
			printf '# last lines of the log of %s:\n' "$name"
			tail -n 12 "$T/$name/log" | cut -c 1-300 | sed 's/^/#   /'
		done
	fi
	for name in "${SERVERS[@]}"; do
		pid=${PID[$name]-}
		[ -z "$pid" ] || kill -CONT "$pid" 2>/dev/null
		[ -z "$pid" ] || kill -TERM "$pid" 2>/dev/null
	done
	for name in "${SERVERS[@]}"; do
		stop "$name" 10 || printf '# %s had to be killed\n' "$name"
	done
	[ -z "${BUS_PID-}" ] || kill "$BUS_PID" 2>/dev/null
	if [ -n "${SSC_KEEP:-}" ]; then
		say "kept: $T"
	else
		rm -rf "$T"
	fi
	[ -z "${QUIET_END:-}" ] || exit "$status"
	say "$N_PASSED passed, $N_FAILED failed"
	[ "$status" != 0 ] || [ "$N_FAILED" = 0 ] || status=1
	exit "$status"
}

# The folder must be on a file system with file handles, for VFS: overlayfs often has none.
temp_base() {
	local base=${TMPDIR:-/tmp}
	[ "$(stat -f -c %T "$base")" != overlayfs ] || base=/dev/shm
	echo "$base"
}

T=$(mktemp -d "$(temp_base)/ssc.XXXXXX")
chmod 0755 "$T"
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'printf "# failed at %s line %s: %s\n" "$0" "$LINENO" "$BASH_COMMAND" >&2' ERR
