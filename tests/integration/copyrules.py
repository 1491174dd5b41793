# SPDX-License-Identifier: LGPL-3.0-or-later
"""copyrules.py PART HOST PORT T: checks for 340-copy.sh, a line for each. HOST has the exports that the script
sets up; T is the folder that their files lie in. Ends with 1 when one failed."""

import os
import random
import struct
import sys

from copyops import BYPASS, CURRENT, Client, clone_op, copy_op
from nfs41 import ANONYMOUS, BOTH, OK, OP, READ, SIZE, WRITE, bitmap, name_of

FAILED = []
MIB = 1 << 20
CHANGE = 1 << 3


def check(what, have, want):
    good = have == want
    print(f"{'ok' if good else 'not ok'} - {what}" + ("" if good else f": {have}, not {want}"),
          flush=True)
    if not good:
        FAILED.append(what)


def status(what, have, want):
    check(what, name_of(have), want)


class Export:
    """A client in one export, and the folder behind it."""

    def __init__(self, host, port, path, folder, who):
        self.c = Client(host, port, path, who)
        self.folder = folder
        self.path = path

    def put(self, name, data):
        with open(f"{self.folder}/{name}", "wb") as file:
            file.write(data)

    def get(self, name):
        with open(f"{self.folder}/{name}", "rb") as file:
            return file.read()

    def open(self, name, access=BOTH, create=None, **keys):
        got, fh, stateid, _ = self.c.open(self.c.root, name, access=access, create=create, **keys)
        assert got == OK, f"{self.path}/{name}: {name_of(got)}"
        return fh, stateid


def data_of(size, seed=1):
    return random.Random(seed).randbytes(size)


def whole(a, b, what):
    """Contents of all sizes from a to b, over the client of b, which sees both."""
    c = b.c
    for size in (0, 1, 4095, 4096, 65536, 65537, MIB, MIB + 1, 3 * MIB + 17, 9 * MIB + 5):
        a.put(f"w{size}", data_of(size, size))
        src, src_id = open_in(c, a, f"w{size}", READ)
        dst, dst_id = open_in(c, b, f"to{size}", BOTH, create="unchecked")
        got = c.copy_all(src, src_id, dst, dst_id, max(size, 1))
        status(f"{what}: {size} bytes", got[0], "OK")
        check(f"{what}: {size} bytes are all there", got[1], size)
        c.commit(dst)
        check(f"{what}: {size} bytes are the same", b.get(f"to{size}") == a.get(f"w{size}"), True)
        check(f"{what}: {size} bytes are seen at once", c.attribute(dst, SIZE)[1], size)
        c.close(src, src_id)
        c.close(dst, dst_id)


def open_in(c, export, name, access, create=None):
    """Open by the client c, which has its session in another export."""
    root = c.walk(export.path)
    got, fh, stateid, _ = c.open(root, name, access=access, create=create,
                                 owner=f"{export.path}{name}{access}".encode())
    assert got == OK, f"{export.path}/{name}: {name_of(got)}"
    return fh, stateid


def ranges(a, b, what):
    c = b.c
    rng = random.Random(7)
    source = data_of(3 * MIB + 123, 3)
    a.put("r", source)
    src, src_id = open_in(c, a, "r", READ)
    for i in range(12):
        old = data_of(rng.choice([0, 1000, 2 * MIB, 4 * MIB]), i)
        b.put(f"r{i}", old)
        dst, dst_id = open_in(c, b, f"r{i}", WRITE)
        src_offset = rng.choice([0, 1, 4096, rng.randrange(len(source))])
        dst_offset = rng.choice([0, 1, 5000, rng.randrange(5 * MIB)])
        count = rng.choice([0, 1, 4096, rng.randrange(1, 2 * MIB), 10 * MIB])
        want = source[src_offset:][:count or None]
        done = 0
        while done < len(want):
            got = c.copy(src, src_id, dst, dst_id, src_offset + done, dst_offset + done,
                         count - done if count else 0)
            if got.status != OK or got.count == 0:
                break
            done += got.count
        c.commit(dst)
        expected = bytearray(old)
        if want:
            expected += bytes(max(0, dst_offset + len(want) - len(expected)))
            expected[dst_offset:dst_offset + len(want)] = want
        check(f"{what}: range {i}: {src_offset} to {dst_offset}, {count} of {len(source)}, "
              f"over {len(old)}", (done, b.get(f"r{i}") == expected), (len(want), True))
        c.close(dst, dst_id)
    got = c.copy(src, src_id, *open_in(c, b, "r0", WRITE), len(source) + 10, 0, 100)
    check("beyond the end there is nothing", (got.status, got.count), (OK, 0))
    c.close(src, src_id)


def compounds(a):
    """What stands round COPY in a compound."""
    c = a.c
    a.put("c1", b"x" * 10000)
    src, src_id = a.open("c1", READ)
    dst, dst_id = a.open("c2", BOTH, create="unchecked")
    commit = struct.pack(">IQI", OP["COMMIT"], 0, 0)
    getattr_op = struct.pack(">I", OP["GETATTR"]) + bitmap(SIZE)
    got = c.copy(src, src_id, dst, dst_id, 0, 0, 10000, more=(commit, getattr_op))
    check("COPY, COMMIT, GETATTR", (got.status, got.count, got.committed), (OK, 10000, 0))
    check("COPY says it is synchronous", (got.consecutive, got.synchronous, got.stateid),
          (1, 1, None))
    check("COMMIT is read and answered", (got.rest.u32(), got.rest.u32()), (OP["COMMIT"], OK))
    check("with the verifier of COPY", got.rest.fixed(8), got.verifier)
    check("GETATTR too", (got.rest.u32(), got.rest.u32()), (OP["GETATTR"], OK))
    got.rest.fixed(4 * got.rest.u32())
    got.rest.u32()
    check("with the size after the copy", got.rest.u64(), 10000)
    _, _, verifier = c.write(dst, dst_id, b"y")
    check("WRITE has that verifier as well", verifier, got.verifier)
    got = c.copy(src, src_id, dst, dst_id, 0, 0, 5000,
                 more=(copy_op(src_id, dst_id, 5000, 20000, 5000), getattr_op))
    check("two COPYs: the first", (got.status, got.count), (OK, 5000))
    got.rest.u32()
    second = c.copied(got.rest)
    check("two COPYs: the second", (second.status, second.count), (OK, 5000))
    check("the gap between them reads as zeros", a.get("c2")[10000:20000], bytes(10000))
    before = c.attribute(dst, CHANGE)[1]
    c.copy(src, src_id, dst, dst_id, 0, 0, 1)
    check("the change attribute moves", c.attribute(dst, CHANGE)[1] != before, True)


def stateids(a, other):
    c = a.c
    a.put("s1", b"data" * 100)
    src, src_id = a.open("s1", READ)
    dst, dst_id = a.open("s2", BOTH, create="unchecked")
    only_read, only_read_id = open_in(c, a, "s2", READ)
    check("two opens of one owner or not, one file", only_read, dst)
    def one(what, want, src_id_=src_id, dst_id_=dst_id, src_=src, dst_=dst, **keys):
        status(what, c.copy(src_, src_id_, dst_, dst_id_, 0, 0, 400, **keys).status, want)
    def seqid(stateid, n):
        return struct.pack(">I", n) + stateid[4:]
    one("open stateids", "OK")
    one("seqid 0 means the latest", "OK", seqid(src_id, 0), seqid(dst_id, 0))
    one("a seqid to come", "BAD_STATEID", dst_id_=seqid(dst_id, 100))
    one("a seqid to come at the source", "BAD_STATEID", src_id_=seqid(src_id, 100))
    one("anonymous", "OK", ANONYMOUS, ANONYMOUS)
    one("READ bypass", "OK", src_id_=BYPASS)
    one("a stateid of the other file", "BAD_STATEID", dst_id_=src_id)
    one("a stateid of the other file at the source", "BAD_STATEID", src_id_=dst_id)
    one("opened for reading only", "OPENMODE", dst_id_=only_read_id)
    one("garbage", "STALE_STATEID", dst_id_=struct.pack(">I", 1) + b"nosuchstate!")
    one("garbage at the source", "STALE_STATEID", src_id_=struct.pack(">I", 1) + b"nosuchstate!")
    one("of this run, but of nobody", "BAD_STATEID",
        dst_id_=dst_id[:4] + dst_id[4:12] + b"\xee\xee\xee\xee")
    one("current, when there is none", "BAD_STATEID", dst_id_=CURRENT)
    theirs, theirs_id = open_in(other, a, "s2", BOTH)
    check("another client has the same file open", theirs, dst)
    one("another client's stateid", "BAD_STATEID", dst_id_=theirs_id)
    other.close(theirs, theirs_id)
    c.close(dst, dst_id)
    one("a closed one", "BAD_STATEID")


def denies(a, other):
    c = a.c
    a.put("d1", b"data" * 100)
    a.put("d2", b"")
    src, _ = a.open("d1", READ)
    dst, dst_id = a.open("d2", BOTH)
    root = other.walk(a.path)
    got, _, deny_id, _ = other.open(root, "d1", access=READ, deny=READ, owner=b"deny")
    if got == OK:
        status("anonymous reading of what another denies",
               c.copy(src, ANONYMOUS, dst, dst_id, 0, 0, 400).status, "LOCKED")
        status("bypassed",
               c.copy(src, BYPASS, dst, dst_id, 0, 0, 400).status, "OK")
        other.close(src, deny_id)
    else:
        status("another cannot deny what is open", got, "SHARE_DENIED")


def refusals(a, plain, read_only, off):
    c = a.c
    a.put("f1", b"z" * 5000)
    src, src_id = a.open("f1", READ)
    dst, dst_id = a.open("f2", BOTH, create="unchecked")
    def one(what, want, *args, src_=src, dst_=dst, src_id_=src_id, dst_id_=dst_id, **keys):
        status(what, c.copy(src_, src_id_, dst_, dst_id_, *args, **keys).status, want)
    one("a folder as source", "WRONG_TYPE", src_=c.root)
    one("a folder as destination", "WRONG_TYPE", dst_=c.root)
    one("offset and count overflow", "INVAL", 2**64 - 10, 0, 100)
    one("offset and count overflow at the destination", "INVAL", 0, 2**64 - 10, 100)
    one("beyond what a file can hold", "FBIG", 0, 2**63 + 5, 100)
    one("another server's file", "NOTSUPP", 0, 0, 100, sources=[("tcp", "192.0.2.1.8.1")])
    for i in (1, 20):
        one(f"{i} sources", "NOTSUPP", 0, 0, 100, sources=[("tcp", "192.0.2.1.8.1")] * i)
    _, reply = c.compound(c.putfh(dst), copy_op(src_id, dst_id, 0, 0, 1))
    reply.fixed(8 + 4)
    status("no saved handle", reply.u32(), "NOFILEHANDLE")
    _, reply = c.between(src, dst, clone_op(src_id, dst_id))
    reply.u32()
    status("CLONE", reply.u32(), "NOTSUPP")
    for export, want, what in ((plain, "NOTSUPP", "an export without SSC"),
                               (off, "NOTSUPP", "an export that allows no copies")):
        export.put("f3", b"q" * 100)
        fh, stateid = open_in(c, export, "f3", BOTH)
        one(f"to {what}", want, 0, 0, 100, dst_=fh, dst_id_=stateid)
        one(f"from {what}", want, 0, 0, 100, src_=fh, src_id_=stateid)
    read_only.put("f3", b"q" * 100)
    fh, stateid = open_in(c, read_only, "f3", READ)
    one("from a read-only export", "OK", 0, 0, 100, src_=fh, src_id_=stateid)
    one("to a read-only export", "ROFS", 0, 0, 100, dst_=fh, dst_id_=stateid)
    a.put("f4", b"0123456789" * 1000)
    dst2, dst2_id = a.open("f4", BOTH)
    one("onto itself", "INVAL", 0, 100, 200, src_=dst2, src_id_=dst2_id, dst_=dst2,
        dst_id_=dst2_id)
    got = c.copy(dst2, dst2_id, dst2, dst2_id, 0, 10000, 10000)
    check("within one file", (got.status, got.count), (OK, 10000))
    c.commit(dst2)
    check("doubles it", a.get("f4") == b"0123456789" * 2000, True)
    got = c.copy(dst2, dst2_id, dst2, dst2_id, 0, 20000, 0)
    check("to its own end", (got.status, got.count), (OK, 20000))


def squashed(squash, a):
    """The source's export maps root to nobody, who may not read the file."""
    c = a.c
    squash.put("q1", b"secret")
    os.chmod(f"{squash.folder}/q1", 0o644)
    src, src_id = open_in(c, squash, "q1", READ)
    dst, dst_id = a.open("q2", BOTH, create="unchecked")
    status("nobody may read", c.copy(src, src_id, dst, dst_id, 0, 0, 6).status, "OK")
    os.chmod(f"{squash.folder}/q1", 0o600)
    c.attribute(src, CHANGE)
    got = c.copy(src, src_id, dst, dst_id, 0, 0, 6)
    status("nobody may not read", got.status, "ACCESS")
    check("and nothing is told", a.get("q2")[:6] in (b"secret",), True)


def modes(a):
    c = a.c
    a.put("m1", b"program" * 1000)
    a.put("m2", b"")
    os.chmod(f"{a.folder}/m2", 0o6777)
    os.chown(f"{a.folder}/m2", 1234, 1234)
    src, src_id = a.open("m1", READ)
    dst, dst_id = a.open("m2", BOTH)
    written = os.stat(f"{a.folder}/m2")
    c.write(dst, dst_id, b"x")
    by_write = os.stat(f"{a.folder}/m2").st_mode
    os.chmod(f"{a.folder}/m2", written.st_mode & 0o7777)
    status("copy into a setuid file", c.copy(src, src_id, dst, dst_id, 0, 0, 7000).status, "OK")
    check("its set-id bits are what WRITE leaves", os.stat(f"{a.folder}/m2").st_mode, by_write)


def holes(a, b, what, is_known):
    c = b.c
    size = 64 * MIB
    with open(f"{a.folder}/h1", "wb") as file:
        for at in (0, 20 * MIB + 4096, 40 * MIB):
            file.seek(at)
            file.write(data_of(100000, at))
        file.truncate(size)
    b.put("h2", b"")
    src, src_id = open_in(c, a, "h1", READ)
    dst, dst_id = open_in(c, b, "h2", BOTH)
    got = c.copy_all(src, src_id, dst, dst_id, size)
    c.commit(dst)
    check(f"{what}: a file with holes is copied", (got[0], got[1]), (OK, size))
    check(f"{what}: is the same", b.get("h2") == a.get("h1"), True)
    used = os.stat(f"{b.folder}/h2").st_blocks * 512
    check(f"{what}: has holes: {used} bytes", used < 4 * MIB, True)
    b.put("h3", b"\xff" * (30 * MIB))
    dst, dst_id = open_in(c, b, "h3", BOTH)
    c.copy_all(src, src_id, dst, dst_id, size)
    c.commit(dst)
    check(f"{what}: over old data", b.get("h3") == a.get("h1"), True)


def strict(a):
    """Copy_Strict_Range = true: the range must lie within the source."""
    c = a.c
    a.put("t1", b"0123456789" * 100)
    src, src_id = a.open("t1", READ)
    dst, dst_id = a.open("t2", BOTH, create="unchecked")
    def one(what, want, *args):
        got = c.copy(src, src_id, dst, dst_id, *args)
        check(f"{a.path}, strict: {what}", (name_of(got.status), got.count), want)
    one("one byte too many", ("INVAL", 0), 0, 0, 1001)
    one("from beyond the end", ("INVAL", 0), 1001, 0, 1)
    check(f"{a.path}, strict: nothing was written", a.get("t2"), b"")
    one("up to the end", ("OK", 900), 100, 0, 900)
    one("to the end, wherever that is", ("OK", 1000), 0, 0, 0)
    one("nothing, at the end", ("OK", 0), 1000, 0, 0)


def clone_one(c, src, dst, *args):
    """Status of one CLONE; src and dst are (handle, stateid)."""
    got, reply = c.between(src[0], dst[0], clone_op(src[1], dst[1], *args),
                           struct.pack(">I", OP["GETATTR"]) + bitmap(SIZE))
    if got == OK or reply.at < len(reply.data):
        reply.u32()
        one = reply.u32()
        if one == OK:
            assert reply.u32() == OP["GETATTR"]
        return one
    return got


def clone(x1, x2, st1, re1):
    c = x1.c
    size = 8 * MIB
    x1.put("a", data_of(size))
    src = x1.open("a", READ)
    dst = x1.open("b", BOTH, create="unchecked")
    free = os.statvfs(x1.folder).f_bfree
    status("CLONE of a whole file", clone_one(c, src, dst), "OK")
    check("it is the same", x1.get("b") == x1.get("a"), True)
    check("its size is seen at once", c.attribute(dst[0], SIZE)[1], size)
    check("no data was moved", free - os.statvfs(x1.folder).f_bfree < 256, True)
    c.write(*dst, b"changed")
    check("later writes are its own", (x1.get("b")[:7], x1.get("a")[:7] != b"changed"),
          (b"changed", True))
    status("a range", clone_one(c, src, dst, 4096, 16 * MIB, MIB), "OK")
    check("is there", x1.get("b")[16 * MIB:] == x1.get("a")[4096:4096 + MIB], True)
    status("an odd range", clone_one(c, src, dst, 1, 0, 4096), "INVAL")
    status("beyond the end", clone_one(c, src, dst, 0, 0, size + 4096), "INVAL")
    status("from beyond the end", clone_one(c, src, dst, size + 4096, 0, 4096), "INVAL")
    status("within one file", clone_one(c, dst, dst, 0, 32 * MIB, MIB), "OK")
    status("onto itself", clone_one(c, dst, dst, 0, 4096, MIB), "INVAL")
    only_read = x1.open("b", READ, owner=b"reader")
    status("opened for reading only", clone_one(c, src, only_read), "OPENMODE")
    os.chmod(f"{x1.folder}/b", 0o6777)
    os.chown(f"{x1.folder}/b", 1234, 1234)
    x1.put("w", b"")
    os.chmod(f"{x1.folder}/w", 0o6777)
    os.chown(f"{x1.folder}/w", 1234, 1234)
    os.chmod(f"{x1.folder}/w", 0o6777)
    os.chmod(f"{x1.folder}/b", 0o6777)
    written = x1.open("w", BOTH)
    c.write(*written, b"x")
    status("into a setuid file", clone_one(c, src, dst), "OK")
    check("its set-id bits are what WRITE leaves", os.stat(f"{x1.folder}/b").st_mode,
          os.stat(f"{x1.folder}/w").st_mode)
    other = open_in(c, x2, "b", BOTH, create="unchecked")
    status("to another file system", clone_one(c, src, other), "XDEV")
    st1.put("a", b"x" * 8192)
    status("within one that cannot", clone_one(c, open_in(c, st1, "a", READ), open_in(
        c, st1, "b", BOTH, create="unchecked")), "NOTSUPP")
    re1.put("a", b"x" * 8192)
    status("within a re-export", clone_one(c, open_in(c, re1, "a", READ), open_in(
        c, re1, "b", BOTH, create="unchecked")), "NOTSUPP")
    check("which leaves the file alone", re1.get("b"), b"")
    status("anonymous", clone_one(c, (src[0], ANONYMOUS), (dst[0], ANONYMOUS)), "OK")


def main():
    part, host, port, folder = sys.argv[1:5]
    def export(name):
        return Export(host, int(port), f"/{name}", f"{folder}/{name}", f"{part}-{name}")
    re1, st1 = export("re1"), export("st1")
    re2 = export("re2") if part not in ("clone", "strict") else None
    if part == "whole":
        for a, b in ((re1, re1), (re1, re2), (st1, st1), (re1, st1), (st1, re2)):
            whole(a, b, f"{a.path} to {b.path}")
    elif part == "clone":
        clone(export("x1"), export("x2"), st1, re1)
    elif part == "strict":
        strict(re1)
        strict(st1)
    elif part == "ranges":
        for a, b in ((re1, re2), (st1, st1), (st1, re1), (re1, st1)):
            ranges(a, b, f"{a.path} to {b.path}")
    elif part == "holes":
        for a, b in ((re1, re2), (st1, st1), (st1, re1), (re1, st1)):
            holes(a, b, f"{a.path} to {b.path}", a is st1)
    elif part == "rules":
        other = Client(host, int(port), "/re1", "other")
        for a in (re1, st1):
            compounds(a)
            stateids(a, other)
            denies(a, other)
            refusals(a, export("plain"), export("ro"), export("off"))
            modes(a)
        squashed(export("squash"), re1)
    sys.exit(1 if FAILED else 0)


main()
