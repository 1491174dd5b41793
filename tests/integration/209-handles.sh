#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# What upstreams may do within the protocol: handles of all lengths, another file system below the
# export's root, handles that another upstream uses for other files, cookies that lose their verifier.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"
# shellcheck source=tests/integration/scripted.sh
. "$(dirname "$0")/scripted.sh"

# NFSv3 leaves 55 bytes for the upstream's handle, see the README.
start_scripted h48 "$(addr 21)"
start_scripted h55 "$(addr 22)"
start_scripted h56 "$(addr 23)"
start_scripted h64 "$(addr 24)"
for n in 48 55 56 64; do scripted h$n fh-bytes $n; done
start_scripted twin "$(addr 25)"
scripted twin fh-bytes 48
start_scripted fs "$(addr 26)"
start_scripted closed "$(addr 27)"
for name in fs closed; do scripted $name filesystem child 4660; done

export_of() { echo "EXPORT { Export_Id = $1; Path = /$2; Pseudo = /$2; ${3:-} FSAL { $(scripted_block "$2") } }"; }
start_reexport re "$(addr 12)" "" "
	$(export_of 21 h48) $(export_of 22 h55) $(export_of 23 h56) $(export_of 24 h64) $(export_of 25 twin)
	$(export_of 26 fs) $(export_of 27 closed "Filesystem_Id = 77.7;")"
on() { "$CLIENT" "$("url$2" re "/$1")" "${@:3}"; }

for n in 48 55; do
	for v in 3 4; do
		check "handles of $n bytes, v$v: a file" on h$n $v write "/f$v" 0 100000 $v
		check "handles of $n bytes, v$v: random changes" on h$n $v churn / 1 $v
	done
	check "handles of $n bytes: v4 reads what v3 wrote" on h$n 4 verify /f3 0 100000 3
done
for n in 56 64; do
	check "handles of $n bytes, v4: a file" on h$n 4 write /f 0 100000 1
	check "handles of $n bytes, v4: random changes" on h$n 4 churn / 1 4
	log_mark re
	check "handles of $n bytes, v3: the root, which has one of ours" on h$n 3 mount
	check_not "handles of $n bytes, v3: a file is refused" on h$n 3 stat /f
	expect_log re "file handles of $n bytes do not fit into those of NFSv3 .*clients must use NFSv4"
	check "handles of $n bytes, v4: goes on" on h$n 4 verify /f 0 100000 1
done

# Two upstreams whose first file has the same handle, the same file id and the same fsid.
check "a file of one" on h48 3 write /same 0 50000 1
check "a file of the other" on twin 3 write /f3 0 50000 2
for v in 3 4; do
	check "v$v: the first file of one" on h48 $v verify /f3 0 100000 3
	check "v$v: the first file of the other" on twin $v verify /f3 0 50000 2
done
# libnfs asks for the fsid over v3 only.
check "they show different file systems" not same \
	"$(on h48 3 stat /f3 | grep -Eo 'fsid=[0-9]+')" "$(on twin 3 stat /f3 | grep -Eo 'fsid=[0-9]+')"
check_same "with the same file id" \
	"$(on h48 3 stat /f3 | grep -Eo 'fileid=[0-9]+')" "$(on twin 3 stat /f3 | grep -Eo 'fileid=[0-9]+')"

# A file system below the root, in which file ids repeat.
root=$(on fs 3 stat / | grep -Eo '(fsid|fileid)=[0-9]+' | xargs)
child=$(on fs 3 stat /child | grep -Eo '(fsid|fileid)=[0-9]+' | xargs)
check_same "a child file system: its root has the file id of the root" "${child%% *}" "${root%% *}"
check "and another fsid ($root, $child)" [ "${root##* }" != "${child##* }" ]
for v in 3 4; do
	check "v$v: a file there" on fs $v write "/child/f$v" 0 100000 $v
	check_same "v$v: it is of the child" "$(on fs 3 stat "/child/f$v" | grep -Eo 'fsid=[0-9]+')" "${child##* }"
	check "v$v: listed" grep -qx "f$v" <(on fs $v ls /child)
	check "v$v: random changes there" on fs $v churn /child 1 $v
	check_same "v$v: the root keeps its identity" "$(on fs 3 stat / | grep -Eo '(fsid|fileid)=[0-9]+' | xargs)" "$root"
	log_mark re
	check_not "v$v: with Filesystem_Id it is not served" on closed $v stat /child
	expect_log re "'child' is another file system .*Filesystem_Id"
	check_not "v$v: nor listed" grep -qx child <(on closed $v ls /)
	check "v$v: what is of the root's file system is" on closed $v write "/g$v" 0 1000 $v
done

# A directory whose cookies lose their verifier while it is listed: it is fetched again, and no name
# is lost or doubled.
check "a folder of 1500 names" on twin 3 mkdir /many
check "in it" on twin 3 fill /many 1500
scripted twin cookie-verifier 1
for v in 3 4; do
	# A fresh server has nothing of the folder in its cache.
	stop re
	start re
	before=$(scripted twin calls READDIRPLUS)
	scripted twin fault READDIRPLUS HOLD skip=2
	on twin $v ls /many >"$T/names" &
	job=$!
	scripted twin wait READDIRPLUS $((before + 3))
	scripted twin cookie-verifier $((v + 1))
	scripted twin release
	rc=0
	wait $job || rc=$?
	check "v$v: listed while the verifier changes" [ "$rc" = 0 ]
	check_same "v$v: 1500 names, each once" "$(sort -u "$T/names" | wc -l) $(wc -l <"$T/names")" "1500 1500"
done
refuse_log re ':CRIT :.*SSC'
check "ends when asked" stop re 5
