#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# getsource.sh PACKAGE FOLDER - unpack the upstream source of an installed Debian package.
#
# The version is that of the installed package, exactly. The source comes from where apt-cache
# policy says the package comes from, by a private apt configuration below FOLDER that asks those
# places for deb-src; the system's own configuration and lists are not changed. FOLDER/src then
# holds the upstream tarball's content. Nothing is done when it does already.

set -euo pipefail

[ $# = 2 ] || {
	echo "usage: getsource.sh PACKAGE FOLDER" >&2
	exit 2
}
package=$1
mkdir -p "$2"
dir=$(cd "$2" && pwd)
etc=${SSC_APT_DIR:-/etc/apt}

fail() {
	echo "getsource.sh: $*" >&2
	exit 1
}

what=$(dpkg-query -W -f '${source:Package}=${source:Version}' "$package" 2>/dev/null) ||
	fail "$package is not installed: apt-get install $package"
[ "$(cat "$dir/version" 2>/dev/null)" != "$what" ] || exit 0

# The places that offer the package, one URI a line; empty when it was installed by hand.
sites=$(apt-cache policy "$package" |
	awk '$1 ~ /^[0-9]+$/ && $2 ~ /^[a-z+]+:/ { sub(/\/$/, "", $2); print $2 }' | sort -u)

# from_list, from_deb822: entries of those places, as deb-src. All entries when none is known.
from_list() {
	awk -v sites="$sites" '
		BEGIN { n = split(sites, s, "\n") }
		$1 == "deb" || $1 == "deb-src" {
			uri = $0
			sub(/^deb(-src)?[ \t]+(\[[^]]*\][ \t]+)?/, "", uri)
			sub(/[ \t].*/, "", uri)
			sub(/\/$/, "", uri)
			want = n == 0
			for (i = 1; i <= n; i++)
				want = want || uri == s[i]
			if (want) {
				sub(/^[ \t]*deb(-src)?/, "deb-src")
				print
			}
		}' "$@" | sort -u
}

from_deb822() {
	awk -v sites="$sites" '
		BEGIN { RS = ""; n = split(sites, s, "\n") }
		{
			count = split($0, line, "\n")
			out = ""
			want = n == 0
			for (l = 1; l <= count; l++) {
				low = tolower(line[l])
				if (line[l] ~ /^#/)
					continue
				if (low ~ /^enabled:[ \t]*(no|false|off|0)/)
					next
				if (low ~ /^types:/)
					line[l] = "Types: deb-src"
				if (low ~ /^uris:/ || line[l] ~ /^[ \t]/) {
					k = split(line[l], word, /[ \t]+/)
					for (w = 1; w <= k; w++) {
						sub(/\/$/, "", word[w])
						for (i = 1; i <= n; i++)
							want = want || word[w] == s[i]
					}
				}
				out = out line[l] "\n"
			}
			if (want && out ~ /Types: deb-src/)
				print out
		}' "$@"
}

rm -rf "$dir/apt" "$dir/src" "$dir/src.new" "$dir/version"
mkdir -p "$dir/apt/parts" "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" "$dir/src.new"
for f in "$etc/sources.list" "$etc"/sources.list.d/*.list; do
	[ ! -f "$f" ] || from_list "$f" >>"$dir/apt/parts/ssc.list"
done
for f in "$etc"/sources.list.d/*.sources; do
	[ ! -f "$f" ] || from_deb822 "$f" >>"$dir/apt/parts/ssc.sources"
done
cat >"$dir/apt/conf" <<-EOF
	Dir::Etc::SourceList "/dev/null";
	Dir::Etc::SourceParts "$dir/apt/parts";
	Dir::State::Lists "$dir/apt/lists";
	Dir::Cache "$dir/apt/cache";
	APT::Sandbox::User "$(id -un)";
	#clear APT::Update::Post-Invoke-Success;
	#clear APT::Update::Post-Invoke;
EOF

grep -qs deb-src "$dir"/apt/parts/* || fail "$etc names no place to get $what from"
echo "Fetching the source of $what"
apt-get -qq -c "$dir/apt/conf" update ||
	fail "the lists of sources could not be fetched (is there a network?)"
(cd "$dir/apt" && apt-get -qq -c "$dir/apt/conf" source --download-only --tar-only --only-source \
	"$what") || fail "no source of $what where the package came from ($(tr '\n' ' ' <<<"$sites"))"
for f in "$dir"/apt/*.orig.tar.*; do
	case $f in
	*.asc) ;;
	*) tar -xf "$f" -C "$dir/src.new" --strip-components=1 ;;
	esac
done
mv "$dir/src.new" "$dir/src"
rm -rf "$dir/apt"
echo "$what" >"$dir/version"
