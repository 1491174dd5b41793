# SPDX-License-Identifier: LGPL-3.0-or-later
"""open.py PART HOST UPSTREAM PORT FOLDER: checks for 180-open.sh, a line for each. HOST re-exports
UPSTREAM's /exp as /re; FOLDER is what lies behind that. Ends with 1 when one failed."""

import os
import struct
import sys

import nfs41
from nfs41 import ANONYMOUS, BOTH, CHANGE, READ, SIZE, WRITE, name_of

FAILED = []


def check(what, have, want):
    good = have == want
    print(f"{'ok' if good else 'not ok'} - {what}" + ("" if good else f": {have}, not {want}"))
    if not good:
        FAILED.append(what)


def status(what, have, want):
    check(what, name_of(have), want)


def creates(a, direct, folder):
    status("unchecked makes a file", a.open(a.root, "u", create="unchecked", mode=0o640)[0], "OK")
    check("with its mode", os.stat(f"{folder}/u").st_mode & 0o7777, 0o640)
    direct.replace("u", b"x" * 100)
    result = a.open(a.root, "u", create="unchecked", owner=b"2")
    status("unchecked takes one that is there", result[0], "OK")
    check("and leaves it as it is", os.stat(f"{folder}/u").st_size, 100)
    check("and tells its size", result[3], 100)
    result = a.open(a.root, "u", create="unchecked", size=0, owner=b"3")
    status("unchecked with size 0", result[0], "OK")
    check("cuts it off", os.stat(f"{folder}/u").st_size, 0)
    check("and tells that size", result[3], 0)
    status("guarded refuses one that is there", a.open(a.root, "u", create="guarded")[0], "EXIST")
    status("guarded makes a file", a.open(a.root, "g", create="guarded")[0], "OK")
    os.mkdir(f"{folder}/dir")
    os.symlink("u", f"{folder}/sym")
    status("a folder is no file", a.open(a.root, "dir", access=READ)[0], "ISDIR")
    status("a link is no file", a.open(a.root, "sym", access=READ)[0], "SYMLINK")
    status("nothing is no file", a.open(a.root, "none", access=READ)[0], "NOENT")
    for how in ("exclusive", "exclusive41"):
        # All bits set: a time that most file systems cannot store.
        one, two = b"\xff" * 8, b"\x01\x02\x03\x04\x05\x06\x07\x08"
        made = a.open(a.root, how, create=how, verifier=one)
        status(f"{how} makes a file", made[0], "OK")
        again = a.open(a.root, how, create=how, verifier=one)
        status(f"{how} again with its verifier", again[0], "OK")
        check("gives the same file", again[1], made[1])
        status(f"{how} with another verifier",
               a.open(a.root, how, create=how, verifier=two)[0], "EXIST")


def shares(a, b, folder):
    for name in ("s", "t"):
        with open(f"{folder}/{name}", "wb") as file:
            file.write(b"data")
    done, fh, mine, _ = a.open(a.root, "s", access=READ, deny=WRITE)
    status("open for reading, deny writing", done, "OK")
    status("another cannot open for writing", b.open(b.root, "s", access=WRITE)[0], "SHARE_DENIED")
    status("nor by handle", b.open(fh, access=WRITE)[0], "SHARE_DENIED")
    status("nor deny reading", b.open(b.root, "s", access=READ, deny=READ)[0], "SHARE_DENIED")
    other = b.open(b.root, "s", access=READ)
    status("but open for reading", other[0], "OK")
    status("nor write without opening", b.write(fh, ANONYMOUS, b"x")[0], "LOCKED")
    status("nor cut off without opening", b.truncate(fh, ANONYMOUS, 0), "LOCKED")
    status("but read without opening", b.read(fh, ANONYMOUS)[0], "OK")
    check("nothing was written", open(f"{folder}/s", "rb").read(), b"data")
    status("who opened for reading cannot write", b.write(fh, other[2], b"x")[0], "OPENMODE")
    status("close", a.close(fh, mine), "OK")
    theirs = b.open(b.root, "s", access=BOTH, owner=b"w")
    status("then another can open for writing", theirs[0], "OK")
    status("and write", b.write(fh, theirs[2], b"DATA")[0], "OK")
    status("and nobody can deny that", a.open(a.root, "s", access=READ, deny=WRITE)[0],
           "SHARE_DENIED")

    # One owner's opens add up, and are taken back by OPEN_DOWNGRADE.
    done, fh, mine, _ = a.open(a.root, "t", access=READ)
    status("open for reading", done, "OK")
    done, fh, mine, _ = a.open(a.root, "t", access=WRITE, deny=WRITE)
    status("the same owner also for writing, deny writing", done, "OK")
    status("it can write", a.write(fh, mine, b"mine")[0], "OK")
    status("and read", a.read(fh, mine)[0], "OK")
    status("another cannot write", b.open(b.root, "t", access=WRITE)[0], "SHARE_DENIED")
    done, mine = a.downgrade(fh, mine, READ, 0)
    status("downgrade", done, "OK")
    theirs = b.open(b.root, "t", access=WRITE, owner=b"w")
    status("now another can", theirs[0], "OK")
    status("close", a.close(fh, mine), "OK")
    status("close", b.close(fh, theirs[2]), "OK")
    status("and all is free again", a.open(a.root, "t", access=BOTH, deny=BOTH, owner=b"z")[0],
           "OK")


def fresh(a, direct):
    """What others did at the upstream shows at the next open."""
    direct.replace("f", b"1")
    done, fh, stateid, size = a.open(a.root, "f")
    check("the size at the first open", (name_of(done), size), ("OK", 1))
    for n in range(2, 6):
        direct.replace("f", b"x" * n)
        by = "handle" if n % 2 else "name"
        done, _, stateid, size = a.open(fh) if n % 2 else a.open(a.root, "f")
        check(f"another's change shows at an open by {by}", (name_of(done), size), ("OK", n))
    change = a.attribute(fh, CHANGE)[1]
    status("write", a.write(fh, stateid, b"yy", offset=0)[0], "OK")
    check("the change attribute moves", a.attribute(fh, CHANGE)[1] > change, True)
    check("the size after a longer write",
          (a.write(fh, stateid, b"y" * 100, offset=0)[0], a.attribute(fh, SIZE)[1]), (0, 100))


def none_of(a, folder):
    """What NFSv3 has nothing for."""
    with open(f"{folder}/n", "wb") as file:
        file.write(b"12345678")
    done, fh, stateid, _ = a.open(a.root, "n")
    status("open", done, "OK")
    status("ALLOCATE", a.plain(fh, "ALLOCATE", stateid + struct.pack(">QQ", 0, 4096)), "NOTSUPP")
    status("DEALLOCATE", a.plain(fh, "DEALLOCATE", stateid + struct.pack(">QQ", 0, 8)), "NOTSUPP")
    status("SEEK", a.plain(fh, "SEEK", stateid + struct.pack(">QI", 0, 0)), "NOTSUPP")
    status("GETXATTR", a.plain(fh, "GETXATTR", nfs41.opaque(b"user.x")), "NOTSUPP")
    status("LISTXATTRS", a.plain(fh, "LISTXATTRS", struct.pack(">QI", 0, 4096)), "NOTSUPP")


class Direct(nfs41.Nfs):
    """The upstream itself. Its own server must make the changes, or it would not know of them."""

    def replace(self, name, data):
        done, fh, stateid, _ = self.open(self.root, name, create="unchecked", size=0)
        assert done == nfs41.OK, name_of(done)
        assert self.write(fh, stateid, data, stable=2)[0] == nfs41.OK
        assert self.close(fh, stateid) == nfs41.OK


def main():
    part, host, upstream, port, folder = sys.argv[1:]
    port = int(port)
    a = nfs41.Nfs(host, port, "/re", "client a", minor=2 if part == "none" else 1)
    direct = Direct(upstream, port, "/exp", "client d")
    if part == "creates":
        creates(a, direct, folder)
    elif part == "shares":
        shares(a, nfs41.Nfs(host, port, "/re", "client b"), folder)
    elif part == "fresh":
        fresh(a, direct)
    elif part == "none":
        none_of(a, folder)
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
