# SPDX-License-Identifier: LGPL-3.0-or-later
# shellcheck shell=bash
#
# parts.sh - `./run test`: the parts, each counting its checks; sourced by run.
#
# A part reports with pass and fail. What it runs writes to build/test/NAME.log; the last lines are
# shown when it fails. Nothing is skipped: what cannot run here counts as failed.

N_PASSED=0
N_FAILED=0
CHILD=
PROGRESS=
exec 3>&1 # the terminal, also for what runs with its output in a log

pass() {
	N_PASSED=$((N_PASSED + ${2:-1}))
	printf '   ok    %s\n' "$1"
}

fail() {
	N_FAILED=$((N_FAILED + ${2:-1}))
	printf '   FAIL  %s\n' "$1"
}

show_log() { tail -n "${2:-40}" "$1" | cut -c 1-300 | sed 's/^/      | /'; }

# one NAME DESCRIPTION COMMAND...: one check; its output goes to the log of NAME.
one() {
	local name=$1 what=$2
	shift 2
	if "$@" >"$LOGS/$name.log" 2>&1; then
		pass "$what"
	else
		fail "$what"
		show_log "$LOGS/$name.log"
	fi
}

# interruptible SECONDS COMMAND...: so that Ctrl-C and TERM reach what runs, and it can clean up.
# With PROGRESS="NAME LOG" a line every half minute says how far it is.
interruptible() {
	local status=0 start=$SECONDS next=30 name=${PROGRESS% *} log=${PROGRESS#* }
	timeout -k 30 "$@" &
	CHILD=$!
	while [ -n "$name" ] && kill -0 "$CHILD" 2>/dev/null; do
		sleep 0.2
		if [ $((SECONDS - start)) -ge $next ]; then
			printf '   ...   %s: %s checks after %s s\n' "$name" \
				"$(grep -Ec '^(not )?ok ' "$log" || :)" "$next" >&3
			next=$((next + 30))
		fi
	done
	wait "$CHILD" || status=$?
	CHILD=
	return "$status"
}

interrupted() {
	[ -z "$CHILD" ] || {
		kill -TERM "$CHILD" 2>/dev/null || :
		wait "$CHILD" 2>/dev/null || :
	}
	exit 130
}

# script NAME FILE SECONDS: a script that prints "ok - ..." and "not ok - ..." and exits with 0.
script() {
	local name=$1 log=$LOGS/$1.log start=$SECONDS status=0 good bad
	PROGRESS="$name $log" interruptible "$3" "$2" >"$log" 2>&1 || status=$?
	good=$(grep -c '^ok ' "$log" || :)
	bad=$(grep -c '^not ok ' "$log" || :)
	if [ "$status" = 0 ] && [ "$bad" = 0 ] && [ "$good" -gt 0 ]; then
		pass "$name: $good checks in $((SECONDS - start)) s" "$good"
		return
	fi
	[ "$bad" -gt 0 ] || bad=1
	[ "$good" = 0 ] || N_PASSED=$((N_PASSED + good))
	fail "$name: status $status after $((SECONDS - start)) s" "$bad"
	show_log "$log"
}

# count_check NAME: sum up what libcheck's binaries printed, and what ctest knows beyond it.
count_check() {
	local log=$LOGS/$1.log status=$2 sums good bad
	sums=$(grep -Eo '[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+' "$log" |
		awk '{ gsub(/,/, ""); n += $3; bad += $5 + $7 } END { print n - bad + 0, bad + 0 }')
	good=${sums% *} bad=${sums#* }
	[ "$status" = 0 ] || [ "$bad" != 0 ] || bad=1
	if [ "$bad" = 0 ] && [ "$good" -gt 0 ]; then
		pass "$1: $good checks" "$good"
	else
		N_PASSED=$((N_PASSED + good))
		fail "$1: $bad of $((good + bad)) checks" "$((bad ? bad : 1))"
		grep -E ':[FE]:|\*\*\*|SUMMARY|ERROR: ' "$log" | head -n 40 | sed 's/^/      | /' ||
			show_log "$log"
	fi
}

# run_ctest BUILD NAME
run_ctest() {
	local status=0
	interruptible 900 ctest --test-dir "$BUILD/$1" -V -j "$(nproc)" >"$LOGS/$2.log" 2>&1 || status=$?
	count_check "$2" "$status"
}

# files: the project's own, whether git knows them or not.
files() { (cd "$SSC_ROOT" && find . \( -path ./.git -o -path ./build \) -prune -o -type f -print); }

shell_files() {
	files | while IFS= read -r f; do
		case $f in
		*.sh) echo "$f" ;;
		*) ! head -n 1 "$SSC_ROOT/$f" | grep -aqE '^#!.*\b(ba)?sh\b' || echo "$f" ;;
		esac
	done
}

part_format() {
	one clang-format "every .c and .h file as clang-format wants it" format_c
	one shellcheck "shellcheck has nothing to say" format_sh
}

format_c() { files | grep '\.[ch]$' | (cd "$SSC_ROOT" && xargs clang-format --dry-run -Werror); }
format_sh() { shell_files | (cd "$SSC_ROOT" && xargs shellcheck -x); }

part_build() {
	local cc
	for cc in gcc clang; do
		one "build-$cc" "builds with $cc -Wall -Wextra -Werror" cmake_build "$cc-werror" \
			-DCMAKE_C_COMPILER=$cc -DSSC_WERROR=ON -DGANESHA_SRC_DIR="$GANESHA_SRC_DIR"
	done
}

part_unit() { run_ctest gcc unit; }

part_san() {
	local kind
	for kind in address,undefined thread; do
		local dir=san-${kind%,*}
		if cmake_build "$dir" -DSSC_MODULE=OFF -DSSC_SANITIZE=$kind -DCMAKE_C_COMPILER=clang; then
			run_ctest "$dir" "$dir"
		else
			fail "build with sanitizer $kind"
		fi
	done
}

FUZZ_SECONDS=${FUZZ_SECONDS:-20}

part_fuzz() {
	local bin name dir n=0
	cmake_build fuzz -DSSC_MODULE=OFF -DSSC_FUZZ=ON -DCMAKE_C_COMPILER=clang || {
		fail "build of the fuzzers"
		return
	}
	for bin in "$BUILD"/fuzz/tests/fuzz/fuzz_*; do
		[ -x "$bin" ] || continue
		n=$((n + 1))
		name=${bin##*/}
		dir=$BUILD/fuzz/found/$name
		mkdir -p "$dir" "$SSC_ROOT/tests/fuzz/corpus/$name"
		one "$name" "$name: no crash in $FUZZ_SECONDS s" interruptible $((FUZZ_SECONDS + 60)) \
			"$bin" -max_total_time="$FUZZ_SECONDS" -timeout=10 -rss_limit_mb=2048 \
			-artifact_prefix="$dir/" -print_final_stats=1 \
			"$dir" "$SSC_ROOT/tests/fuzz/corpus/$name"
	done
	[ "$n" != 0 ] || fail "no fuzzer was built"
}

part_meta() {
	local f
	for f in "$SSC_ROOT"/tests/meta/[0-9a-z]*.sh; do
		script "meta-$(basename "$f" .sh)" "$f" 120
	done
}

part_integration() {
	local f
	for f in "$SSC_ROOT"/tests/integration/[0-9]*.sh; do
		script "$(basename "$f" .sh)" "$f" 300
	done
}

part_guest() { script guest "$SSC_ROOT/tests/guest/run.sh" 900; }

run_parts() {
	local parts part start
	read -ra parts <<<"${*:-$(all_parts)}"
	for part in "${parts[@]}"; do
		declare -F "part_$part" >/dev/null || die "unknown part: $part (there are: $(all_parts))"
	done
	case " ${parts[*]} " in
	*" integration "* | *" guest "*)
		[ "$(id -u)" = 0 ] || die "ganesha.nfsd needs root; run: sudo ./run test ${parts[*]}"
		;;
	esac
	LOGS=$BUILD/test
	mkdir -p "$LOGS"
	need "$PACKAGES_TEST"
	build
	export SSC_BUILD_DIR=$BUILD/gcc
	trap interrupted INT TERM
	for part in "${parts[@]}"; do
		start=$SECONDS
		say "$part"
		"part_$part"
		printf '   %s took %s s\n' "$part" "$((SECONDS - start))"
	done
	printf '%s passed, %s failed\n' "$N_PASSED" "$N_FAILED"
	[ "$N_FAILED" = 0 ] && [ "$N_PASSED" -gt 0 ]
}
