# SPDX-License-Identifier: LGPL-3.0-or-later
"""compounds.py PART PORT HOST...: checks for 300-compounds.sh, a line for each. Ends with 1 when one
failed.

ours HOST           a server with our operations
stock HOST          one without: it does not read what is ours
faults HOST         one without: what it gets wrong in our neighbourhood; it does not survive
same HOST STOCK     both answer what is not ours with the same bytes; both export one folder"""

import struct
import sys

import nfs41
from nfs41 import ANONYMOUS, OK, OP, bitmap, name_of, opaque
from rawcompound import GARBAGE_ARGS, SUCCESS, TCP, Raw, clone, copy, op

FAILED = []
BAD = struct.pack(">I12s", 1, b"no such copy")
GETSIZE = op("GETATTR", bitmap(nfs41.SIZE))
OWN = ("COPY", "COPY_NOTIFY", "OFFLOAD_CANCEL", "OFFLOAD_STATUS", "CLONE")


def check(what, have, want):
    good = have == want
    print(f"{'ok' if good else 'not ok'} - {what}" + ("" if good else f": {have}, not {want}"))
    if not good:
        FAILED.append(what)


def status(what, have, want):
    check(what, name_of(have), want)


def own_ops(source, destination):
    """One of each, that must fail but must be read to its end: name, bytes."""
    yield "COPY", copy(source, destination, count=5)
    yield "COPY_NOTIFY", op("COPY_NOTIFY", source + TCP)
    yield "OFFLOAD_CANCEL", op("OFFLOAD_CANCEL", source)
    yield "OFFLOAD_STATUS", op("OFFLOAD_STATUS", source)
    yield "CLONE", clone(source, destination)


def accepts(a, what, *ops, n):
    """The compound is taken apart; the results end with an error of the n-th operation."""
    accept, code, have, _ = a.run(*ops)
    check(f"{what}: taken apart", accept, SUCCESS)
    check(f"{what}: answered up to its failure", (have, code != OK), (n, True))
    check(f"{what}: the server lives", a.run(op("PUTROOTFH"))[1], OK)


def cut(a, what, *ops):
    """Every cut, word by word, is refused, and costs the slot nothing."""
    whole = a.arguments(ops, a.slot_seq + 1)
    last = len(ops[-1])
    seen = {a.exchange(whole[:len(whole) - n])[0] for n in range(4, last + 4, 4)}
    check(f"{what}: refused wherever it is cut", seen, {GARBAGE_ARGS})
    check(f"{what}: whole, it is taken", a.run(*ops)[0], SUCCESS)


def reading(a, fh):
    """Arguments of ours are read to their end: what follows them is read too."""
    put = [a.putfh(fh), op("SAVEFH")]
    for name, body in own_ops(BAD, BAD):
        accepts(a, f"{name}, GETATTR", *put, body, GETSIZE, n=4)
        cut(a, name, *put, body)
        cut(a, f"{name}, GETATTR", *put, body, GETSIZE)
    accepts(a, "two COPYs", *put, copy(BAD, BAD), copy(BAD, BAD), n=4)
    cut(a, "two COPYs", *put, copy(BAD, BAD), copy(BAD, BAD))
    accepts(a, "COPY, COMMIT", *put, copy(BAD, BAD), op("COMMIT", bytes(12)), n=4)
    cut(a, "COPY, COMMIT", *put, copy(BAD, BAD), op("COMMIT", bytes(12)))
    accepts(a, "COPY and an unknown operation", *put, copy(BAD, BAD), op(76), n=4)


def lists(a, fh):
    put = [a.putfh(fh), op("SAVEFH")]
    accepts(a, "64 source servers", *put, copy(BAD, BAD, sources=64 * TCP, n_sources=64), GETSIZE,
            n=4)
    for n, sources in ((65, 65 * TCP), (0xffffffff, TCP), (2, TCP)):
        check(f"{n} source servers are refused",
              a.run(*put, copy(BAD, BAD, sources=sources, n_sources=n))[0], GARBAGE_ARGS)
    for what, place in (("kind", struct.pack(">I", 4) + opaque(b"tcp") + opaque(b"1.2.3.4.8.1")),
                        ("netid", struct.pack(">I", 3) + opaque(17 * b"x") + opaque(b"1.2.3.4.8.1")),
                        ("address", struct.pack(">I", 3) + opaque(b"tcp") + opaque(65 * b"1")),
                        ("length", struct.pack(">II", 3, 0xfffffffe)),
                        ("URL", struct.pack(">I", 2) + opaque(1025 * b"x"))):
        check(f"a source server with a bad {what} is refused",
              a.run(*put, copy(BAD, BAD, sources=place, n_sources=1), GETSIZE)[0], GARBAGE_ARGS)
    check("a flag that is neither 0 nor 1 is refused",
          a.run(*put, copy(BAD, BAD, synchronous=2))[0], GARBAGE_ARGS)
    accepts(a, "a server by its name", *put,
            copy(BAD, BAD, sources=struct.pack(">I", 1) + opaque(b"host.example"), n_sources=1), n=4)


def replays(a, fh):
    """The same slot and number again: the same bytes, kept or not."""
    put = [a.putfh(fh), op("SAVEFH")]
    for name, body in own_ops(BAD, BAD):
        for cache in (True, False):
            for before in ([], put):
                ops = [*before, body]
                number = a.slot_seq + 1
                first = a.exchange(a.arguments(ops, number, cache))
                again = [a.exchange(a.arguments(ops, number, cache)) for _ in range(3)]
                a.slot_seq = number
                what = f"{name} after {len(before)}, {'kept' if cache else 'not kept'}"
                check(f"{what}: taken", first[0], SUCCESS)
                if cache or not before:
                    check(f"{what}: sent again, the same answer", again, 3 * [first])
                else:
                    status(f"{what}: sent again", a.results(again[0][1])[0], "RETRY_UNCACHED_REP")
    check("the session goes on", a.run(op("PUTROOTFH"))[1], OK)


def other_minors(a):
    """Before minor version 2 there are no such operations, and nothing of them is read."""
    for minor in (0, 1):
        for name in OWN:
            if minor:
                _, code, n, rest = a.run(op("PUTROOTFH"), op(name), minor=1)
                rest = rest[8:]
            else:
                accept, data = a.exchange(opaque(b"t") + struct.pack(">II", 0, 1) + op(name))
                check(f"{name} in 4.0: taken apart", accept, SUCCESS)
                code, rest = struct.unpack_from(">I", data)[0], data[16:]
            status(f"{name} in 4.{minor}", code, "OP_ILLEGAL")
            check("by its number", struct.unpack(">II", rest), (10044, 10044))


def memory(a, fh, pid):
    """Compounds that break off late free what came before, and so do whole ones."""
    def rss():
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))

    ops = [a.putfh(fh)] + 13 * [copy(BAD, BAD, sources=8 * TCP, n_sources=8)]

    def rounds(n):
        for _ in range(n):
            whole = a.arguments(ops, a.slot_seq + 1)
            assert a.exchange(whole[:-4])[0] == GARBAGE_ARGS
            assert a.run(*ops)[0] == SUCCESS

    rounds(500)
    before = rss()
    rounds(2000)
    grown = rss() - before
    check(f"2000 cut and 2000 whole compounds of 13 COPYs take no memory ({grown} KiB)",
          grown < 8192, True)


def handles(a):
    """Operations of 4.2 that want a file handle, and have none."""
    where = struct.pack(">QQ", 0, 4096)
    for name, args, want in (("ALLOCATE", ANONYMOUS + where, "NOFILEHANDLE"),
                             ("DEALLOCATE", ANONYMOUS + where, "NOFILEHANDLE"),
                             ("SEEK", ANONYMOUS + struct.pack(">QI", 0, 0), "NOFILEHANDLE"),
                             (68, ANONYMOUS + struct.pack(">QI", 0, 100), "NOFILEHANDLE"),
                             ("GETXATTR", opaque(b"a"), None),
                             ("LISTXATTRS", struct.pack(">QI", 0, 100), None)):
        code = a.run(op(name, args))[1]
        status(f"{name} without a file handle", code, want or name_of(code))
    for name, body in own_ops(BAD, BAD):
        check(f"{name} without a file handle fails", a.run(body)[1] != OK, True)
    check("the server lives", a.run(op("PUTROOTFH"))[1], OK)


def copy_result(reply):
    """Behind its number: (status, count, how committed, consecutive, synchronous)"""
    assert reply.u32() == OP["COPY"]
    code = reply.u32()
    if code != OK:
        return (code,)
    assert reply.u32() == 0, "a callback id"
    count, committed = reply.u64(), reply.u32()
    reply.fixed(8)
    return code, count, committed, reply.u32(), reply.u32()


def between(a, fh):
    """COPYs that succeed, among other operations: every result is where it belongs."""
    code, target, dst, _ = a.open(a.root, "copied", create="unchecked")
    status("a file to copy to", code, "OK")
    code, _, src, _ = a.open(fh, access=nfs41.READ)
    status("a file to copy from", code, "OK")
    put = [a.putfh(fh), op("SAVEFH"), a.putfh(target)]
    ops = [*put, copy(src, dst, count=6), GETSIZE, copy(src, dst, dst_offset=6, count=6),
           op("COMMIT", bytes(12)), GETSIZE, op("GETFH")]
    number = a.slot_seq + 1
    first = a.exchange(a.arguments(ops, number, cache=True))
    again = a.exchange(a.arguments(ops, number, cache=True))
    a.slot_seq = number
    check("sent again, the same answer", again, first)
    code, n, rest = a.results(first[1])
    check("two COPYs among others", (name_of(code), n), ("OK", 10))
    reply = nfs41.Reply(rest)
    reply.fixed(24)
    for end in (6, 12):
        check(f"the COPY up to {end}", copy_result(reply), (OK, 6, 0, 1, 1))
        if end == 12:
            check("COMMIT", (reply.u32(), reply.u32()), (OP["COMMIT"], OK))
            reply.fixed(8)
        reply.fixed(8)
        reply.fixed(4 * reply.u32())
        reply.u32()
        check("GETATTR tells the size", reply.u64(), end)
    reply.fixed(8)
    check("GETFH at the end", (reply.opaque(), reply.at), (target, len(rest)))
    check("the bytes are there", a.read(target, ANONYMOUS)[1], b"hello\nhello\n")
    accept, code, n, _ = a.run(*put, copy(src, BAD, count=1), GETSIZE)
    check("a COPY that fails ends the compound", (accept, code != OK, n), (SUCCESS, True, 5))
    a.close(target, dst)


def grow(port, host, name):
    """ALLOCATE on a read-only export, one page."""
    a = Raw(host, port, "/ro", "grow")
    return a.run(a.putfh(a.lookup(a.root, "f")[1]),
                 op(name, ANONYMOUS + struct.pack(">QQ", 0, 4096)))[1]


def ours(port, host, pid):
    a = Raw(host, port, "/re", "ours")
    fh = a.lookup(a.root, "f")[1]
    reading(a, fh)
    lists(a, fh)
    replays(a, fh)
    other_minors(a)
    handles(a)
    between(a, fh)
    for name in ("ALLOCATE", "DEALLOCATE"):
        status(f"{name} on a read-only export", grow(port, host, name), "ROFS")
    memory(a, fh, pid)


def faults(port, host):
    """What the server does there on its own; the last of it is its end."""
    status("a server without us lets ALLOCATE write to a read-only export",
           grow(port, host, "ALLOCATE"), "OK")
    a = Raw(host, port, "/re", "faults")
    try:
        have = a.run(op("DEALLOCATE", ANONYMOUS + struct.pack(">QQ", 0, 4096)))
    except (EOFError, OSError):
        have = "gone"
    check("and ends at DEALLOCATE without a file handle", have, "gone")


def stock(port, host):
    """What the server does on its own: it does not miss arguments that are not there."""
    a = Raw(host, port, "/re", "stock")
    fh = a.lookup(a.root, "f")[1]
    for name, body in own_ops(BAD, BAD):
        accept, code, n, rest = a.run(a.putfh(fh), body[:4])
        check(f"{name} without arguments is taken", (accept, n), (SUCCESS, 3))
        status("and not supported", code, "NOTSUPP")
        check("by its number", struct.unpack(">II", rest[8:]), (OP[name], 10004))


def alike(a):
    """Compounds whose answers tell nothing of time or of who asks: what, operations."""
    put = a.putfh(a.lookup(a.root, "f")[1])
    link = a.putfh(a.lookup(a.root, "link")[1])
    root = a.putfh(a.root)
    big = a.putfh(a.lookup(a.root, "big")[1])
    at = lambda offset, count: op("READ", ANONYMOUS + struct.pack(">QI", offset, count))
    # Types, sizes, owners, modes, limits; not the times, which READ changes, and not the list of what
    # there is, which has clone_blksize with us.
    many = bitmap(0b1100_0000_0000_1111 << 14 << 32 >> 14 | 0x7ff0011e & ~(1 << 8))
    yield "the root's handle and attributes", [op("PUTROOTFH"), op("GETFH"), GETSIZE]
    yield "a file's attributes", [put, op("GETATTR", bitmap(0x0010011a | 0x3a << 32))]
    yield "many attributes", [put, op("GETATTR", many)]
    yield "READ", [put, at(0, 100), at(3, 1), at(3, 2), at(100, 1)]
    yield "READ of 1 MiB", [big, at(0, 1000000)]
    yield "READ between others", [big, op("SAVEFH"), at(1, 99999), put, at(0, 3), op("RESTOREFH"), at(5, 5)]
    yield "READ past the end", [put, at(1 << 40, 5)]
    yield "READ at the largest offset", [put, at((1 << 64) - 1, 5)]
    yield "READDIR", [root, op("READDIR", bytes(16) + struct.pack(">II", 4096, 8192) + bitmap(0x12))]
    yield "READDIR of a file", [put, op("READDIR", bytes(16) + struct.pack(">II", 4096, 8192) + bitmap(0))]
    yield "READLINK", [link, op("READLINK")]
    yield "READLINK of a file", [put, op("READLINK")]
    yield "LOOKUP of nothing", [root, op("LOOKUP", opaque(b"none"))]
    yield "LOOKUP of an empty name", [root, op("LOOKUP", opaque(b""))]
    yield "LOOKUPP", [root, op("LOOKUP", opaque(b"d")), op("LOOKUPP"), op("GETFH")]
    yield "ACCESS", [put, op("ACCESS", struct.pack(">I", 63))]
    yield "VERIFY", [put, op(37, bitmap(nfs41.SIZE) + opaque(struct.pack(">Q", 6))), op("GETFH")]
    yield "NVERIFY", [put, op(17, bitmap(nfs41.SIZE) + opaque(struct.pack(">Q", 6))), op("GETFH")]
    yield "SECINFO", [root, op(33, opaque(b"f"))]
    yield "SECINFO_NO_NAME", [root, op(52, bytes(4))]
    yield "TEST_STATEID", [op(55, struct.pack(">I", 2) + BAD + ANONYMOUS)]
    yield "FREE_STATEID", [op(45, BAD)]
    yield "CLOSE of nothing", [put, op("CLOSE", bytes(4) + BAD)]
    yield "LOCKT", [put, op(13, struct.pack(">IQQQ", 2, 0, 5, 0) + opaque(b"o"))]
    yield "GETXATTR", [put, op("GETXATTR", opaque(b"a")), op("GETFH")]
    yield "SETXATTR", [put, op(73, struct.pack(">I", 0) + opaque(b"a") + opaque(b"v")), op("GETFH")]
    yield "LISTXATTRS", [put, op("LISTXATTRS", struct.pack(">QI", 0, 100)), op("GETFH")]
    yield "REMOVEXATTR", [put, op(75, opaque(b"a")), op("GETFH")]
    yield "WRITE_SAME", [put, op(70, BAD + bytes(4 + 8 + 8 + 8 + 4 + 4 + 4))]
    yield "LAYOUTGET", [put, op(50, struct.pack(">IIIQQQ", 0, 1, 1, 0, 5, 5) + BAD + bytes(4))]
    yield "GETDEVICEINFO", [op(47, bytes(16) + struct.pack(">III", 1, 100, 0))]
    yield "no handle", [op("GETFH")]
    yield "RESTOREFH of nothing", [op("RESTOREFH")]
    yield "a bad handle", [op("PUTFH", opaque(bytes(20)))]
    yield "a SEQUENCE too many", [op("PUTROOTFH"), a.sequence(7)]
    for number in (0, 1, 2, 40, 46, 56, 76, 77, 200, 10044, 0xffffffff):
        yield f"operation {number}", [op("PUTROOTFH"), op(number), op("GETFH")]
    yield "16 operations", 15 * [op("PUTROOTFH")]
    yield "17 operations", 16 * [op("PUTROOTFH")]


def malformed(a):
    """What is mostly not answered with the results of operations: what, bytes of a COMPOUND."""
    put = [op("PUTROOTFH"), op("GETFH")]
    whole = a.arguments(put, a.slot_seq + 1)
    for minor in (3, 4, 0xffffffff):
        yield f"minor version {minor}", a.arguments(put, a.slot_seq + 1, minor=minor)
    yield "no SEQUENCE", opaque(b"") + struct.pack(">II", 2, 2) + b"".join(put)
    for name in OWN:
        yield f"{name} without SEQUENCE", \
            opaque(b"") + struct.pack(">II", 2, 1) + dict(own_ops(BAD, BAD))[name]
    yield "no operation", opaque(b"") + struct.pack(">II", 2, 0)
    yield "101 operations", a.arguments(100 * [op("PUTROOTFH")], a.slot_seq + 1)
    yield "1024 operations", a.arguments(1023 * [op("PUTROOTFH")], a.slot_seq + 1)
    yield "1025 operations", a.arguments(1024 * [op("PUTROOTFH")], a.slot_seq + 1)
    yield "operations that are not there", a.arguments(put, a.slot_seq + 1, n_ops=4)
    yield "more operations than there can be", a.arguments(put, a.slot_seq + 1, n_ops=0xffffffff)
    yield "a tag that is not UTF-8", a.arguments(put, a.slot_seq + 1, tag=b"\xff\xfe")
    yield "a tag without end", struct.pack(">I", 0xfffffff0) + whole
    yield "a handle that is too long", a.arguments([op("PUTFH", opaque(bytes(129)))], a.slot_seq + 1)
    for n in range(0, len(whole), 4):
        yield f"the first {n} bytes", whole[:n]


def writing(a):
    """What changes files: statuses, lengths and results without their times and verifiers."""
    name = a.who.encode()
    code, fh, stateid, _ = a.open(a.root, name.decode(), create="unchecked")
    yield "OPEN", code
    yield "WRITE", a.write(fh, stateid, b"abc")[:2]
    yield "WRITE, stable", a.write(fh, stateid, bytes(70000), stable=2)[:2]
    yield "COMMIT", a.commit(fh)[0]
    yield "SETATTR", a.truncate(fh, stateid, 5)
    yield "ALLOCATE", a.plain(fh, "ALLOCATE", stateid + struct.pack(">QQ", 0, 100))
    yield "DEALLOCATE", a.plain(fh, "DEALLOCATE", stateid + struct.pack(">QQ", 0, 10))
    yield "SEEK", a.run(a.putfh(fh), op("SEEK", stateid + struct.pack(">QI", 0, 0)))
    lock = struct.pack(">IIQQI", 2, 0, 0, 5, 1) + bytes(4) + stateid + bytes(12) + opaque(b"lock")
    accept, code, n, rest = a.run(a.putfh(fh), op(12, lock))
    yield "LOCK", (accept, code, n, len(rest))
    yield "CLOSE with a lock", a.close(fh, stateid)
    yield "CREATE", a.run(a.putfh(a.root), op(6, struct.pack(">I", 2) + opaque(name + b"d") +
                                              nfs41.attributes(mode=0o755)))[:3]
    yield "RENAME", a.run(a.putfh(a.root), op("SAVEFH"),
                          op(29, opaque(name) + opaque(name + b"2")))[:3]
    yield "LINK", a.run(a.putfh(fh), op("SAVEFH"), a.putfh(a.root), op(11, opaque(name)))[:3]
    for end in (b"", b"2", b"d", b"none"):
        yield f"REMOVE {end.decode()}", a.run(a.putfh(a.root), op("REMOVE", opaque(name + end)))[:3]


def answer(a, compound):
    """Of bytes that may be taken or not, without what the session's number differs in."""
    accept, data = a.exchange(compound)
    if accept != SUCCESS:
        return accept, data
    code, n, rest = a.results(data)
    a.slot_seq += n > 1
    return accept, code, n, rest


def same(port, host, other):
    a, b = Raw(host, port, "/re", "one"), Raw(other, port, "/re", "two")
    check("the handles are the same", a.root, b.root)
    for (what, mine), (_, theirs) in zip(alike(a), alike(b)):
        check(f"{what}: as without us", a.run(*mine), b.run(*theirs))
    for (what, mine), (_, theirs) in zip(malformed(a), malformed(b)):
        check(f"{what}: as without us", answer(a, mine), answer(b, theirs))
    for (what, mine), (_, theirs) in zip(writing(a), writing(b)):
        check(f"{what}: as without us", mine, theirs)


def main():
    part, port = sys.argv[1], int(sys.argv[2])
    {"ours": ours, "stock": stock, "same": same, "faults": faults}[part](port, *sys.argv[3:])
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
