# SPDX-License-Identifier: LGPL-3.0-or-later
"""mended.py PART HOST PORT EXPORT FOLDER [SEED]: checks for 330-mended.sh, a line for each. FOLDER
lies behind EXPORT of HOST. Ends with 1 when one failed.

Parts: attributes, advise, read_plus, limits, cut, seek, noseek, metadata; and stock-attributes,
stock-read_plus, stock-seek, which show that a server without our module has the fault; crash sends what ends it."""

import os
import random
import struct
import sys

import nfs41
from nfs41 import ANONYMOUS, BOTH, OK, READ, WRITE, name_of
from nfs42ops import BYPASS, CURRENT, DATA, HOLE, Nfs42, numbers_of

FAILED = []
GAPS = {77, 78, 79, 81}
SET_ONLY = {48, 54, 63, 70, 72, 74}
USUAL = {1, 3, 4, 8, 20, 33, 36, 45, 53}


def check(what, have, want):
    good = have == want
    print(f"{'ok' if good else 'not ok'} - {what}" +
          ("" if good else f": {str(have)[:300]}, not {str(want)[:300]}"))
    if not good:
        FAILED.append(what)


def status(what, have, want):
    check(what, name_of(have), want)


def bad_stateid(stateid):
    """One of this server that nobody was given."""
    return stateid[:12] + b"\xee\xee\xee\xee"


# ---- attributes ----

def attributes(a, folder):
    with open(f"{folder}/attrs", "wb") as file:
        file.write(b"x" * 100)
    fh = a.lookup(a.root, "attrs")[1]
    plain = a.getattr(fh, USUAL)
    check("GETATTR of what is usual", (name_of(plain[0]), plain[1]), ("OK", USUAL))
    # Where CLONE is served its unit is told.
    given = {77} if a.path == "/stack" else set()
    gaps = GAPS - given
    for number in sorted(gaps) + [83, 84, 95, 96, 127, 1000]:
        check(f"GETATTR with {number} leaves it out", a.getattr(fh, USUAL | {number}), plain)
        check(f"GETATTR of {number} alone answers nothing", a.getattr(fh, {number}),
              (OK, set(), b""))
    check("GETATTR of all gaps at once", a.getattr(fh, USUAL | gaps | {90, 200}), plain)
    if given:
        unit = struct.pack(">I", os.statvfs(folder).f_bsize)
        check("clone_blksize alone", a.getattr(fh, {77}), (OK, {77}, unit))
        check("clone_blksize behind others", a.getattr(fh, USUAL | GAPS),
              (OK, USUAL | {77}, plain[2] + unit))
        last = a.getattr(fh, {82})
        check("clone_blksize before others", a.getattr(fh, USUAL | {77, 80, 82, 83}),
              (OK, USUAL | {77} | last[1], plain[2] + unit + last[2]))
        check("clone_blksize of a folder", a.getattr(a.root, {77}), (OK, {77}, unit))
    done, have, _ = a.getattr(fh, set(range(200)) - SET_ONLY)
    check("GETATTR of all that can be read", name_of(done), "OK")
    check("has what is usual and no gap", (have >= USUAL, have & GAPS), (True, given))
    words = a.getattr(fh, {0})[2]
    check("supported_attrs promises what is given",
          numbers_of(struct.unpack(f">{len(words) // 4}I", words)[1:]) & GAPS, given)
    for number in sorted(SET_ONLY & {48, 54}):
        status(f"GETATTR of {number}, which can only be set", a.getattr(fh, {1, number})[0], "INVAL")
    plain = a.readdir_attrs(a.root, USUAL)
    check("READDIR of what is usual", (name_of(plain[0]), plain[1]["attrs"][0]), ("OK", USUAL))
    for number in sorted(GAPS) + [83, 127]:
        check(f"READDIR with {number} leaves it out", a.readdir_attrs(a.root, USUAL | {number}),
              plain)
    done, names = a.readdir_attrs(a.root, {78})
    check("READDIR of 78 alone", (name_of(done), names["attrs"]), ("OK", (set(), b"")))
    status("READDIR with 48, which can only be set", a.readdir_attrs(a.root, {48})[0], "INVAL")


def stock_attributes(a, folder):
    with open(f"{folder}/attrs", "wb"):
        pass
    fh = a.lookup(a.root, "attrs")[1]
    for number in sorted(GAPS):
        status(f"stock: GETATTR with {number}", a.getattr(fh, USUAL | {number})[0], "INVAL")
        status(f"stock: READDIR with {number}", a.readdir_attrs(a.root, USUAL | {number})[0],
               "INVAL")
    status("stock: GETATTR with 83", a.getattr(fh, USUAL | {83})[0], "OK")


# ---- IO_ADVISE ----

def advise(a, folder):
    host = a.socket.getpeername()
    for name, access in (("adv-r", READ), ("adv-w", WRITE), ("adv-b", BOTH)):
        with open(f"{folder}/{name}", "wb") as file:
            file.write(b"y" * 5000)
        os.chmod(f"{folder}/{name}", 0o666)
        done, fh, stateid, _ = a.open(a.root, name, access=access)
        assert done == OK, name_of(done)
        for hints in ({0}, {1, 4}, set(), {200}):
            check(f"IO_ADVISE {sorted(hints)} on {name}", a.io_advise(fh, stateid, hints, 0, 100),
                  (OK, set()))
        if access != WRITE:
            check("reads on", a.read(fh, stateid, 10, 10), (OK, b"y" * 10))
        status("CLOSE after it", a.close(fh, stateid), "OK")
        status("a closed stateid", a.io_advise(fh, stateid, {1})[0], "BAD_STATEID")
    done, fh, stateid, _ = a.open(a.root, "adv-r", access=READ)
    check("the anonymous stateid", a.io_advise(fh, ANONYMOUS, {1}), (OK, set()))
    check("the bypass stateid", a.io_advise(fh, BYPASS, {1}), (OK, set()))
    status("a stateid nobody has", a.io_advise(fh, bad_stateid(stateid), {1})[0], "BAD_STATEID")
    status("a stateid to come", a.io_advise(fh, struct.pack(">I", 99) + stateid[4:], {1})[0],
           "BAD_STATEID")
    status("of another run", a.io_advise(fh, stateid[:4] + b"\x01" * 12, {1})[0], "STALE_STATEID")
    status("half of zeros", a.io_advise(fh, struct.pack(">I12x", 7), {1})[0], "BAD_STATEID")
    other = Nfs42(*host, a.path, "client advise 2")
    status("another client's stateid", other.io_advise(fh, stateid, {1})[0], "BAD_STATEID")
    status("a folder", a.io_advise(a.root, ANONYMOUS, {1})[0], "ISDIR")
    status("no file handle", a.bare(struct.pack(">I", 63) + ANONYMOUS + bytes(16 + 4)),
           "NOFILEHANDLE")
    status("CLOSE", a.close(fh, stateid), "OK")


def crash(a, folder):
    with open(f"{folder}/adv", "wb"):
        pass
    done, fh, stateid, _ = a.open(a.root, "adv", access=READ)
    assert done == OK, name_of(done)
    for _ in range(3):
        print("#", a.io_advise(fh, stateid, {1, 4}))
    try:
        print("#", a.close(fh, stateid))
    except (EOFError, ConnectionError) as error:
        print("#", error)


# ---- READ_PLUS ----

def as_read(result):
    """What READ would have answered; None when it is no answer of READ_PLUS."""
    done, eof, segments = result
    if done != OK:
        return done, None, None
    if not segments:
        return done, eof, b""
    return (done, eof, segments[0][2]) if len(segments) == 1 and segments[0][0] == DATA else None


def compare(a, what, fh, stateid, offset, count):
    """READ_PLUS says what READ says. True when it does."""
    read, plus = a.read_eof(fh, stateid, offset, count), a.read_plus(fh, stateid, offset, count)
    good = as_read(plus) == read
    if good and plus[0] == OK and plus[2]:
        good = plus[2][0][1] == offset and len(plus[2][0][2]) > 0
    if not good:
        check(f"{what}: READ_PLUS of {count} at {offset}",
              (plus[0], plus[1], [(k, o, d[:16], len(d)) for k, o, d in plus[2] or []]),
              (read[0], read[1], (read[2] or b"")[:16], len(read[2] or b"")))
    return good


def read_plus(a, folder):
    size = 3 * (1 << 20) + 12345
    content = random.randbytes(size)
    with open(f"{folder}/plus", "wb") as file:
        file.write(content)
    done, fh, stateid, _ = a.open(a.root, "plus", access=READ)
    assert done == OK, name_of(done)
    check("READ_PLUS at 0", a.read_plus(fh, stateid, 0, 4096),
          (OK, False, [(DATA, 0, content[:4096])]))
    done, eof, segments = a.read_plus(fh, stateid, 0, 1 << 20)
    check("1 MiB at once", (name_of(done), eof, segments == [(DATA, 0, content[:1 << 20])]),
          ("OK", False, True))
    check("to the end", a.read_plus(fh, stateid, size - 5, 5), (OK, True, [(DATA, size - 5,
                                                                          content[-5:])]))
    check("over the end", a.read_plus(fh, stateid, size - 5, 500),
          (OK, True, [(DATA, size - 5, content[-5:])]))
    check("at the end", a.read_plus(fh, stateid, size, 500), (OK, True, []))
    check("beyond it", a.read_plus(fh, stateid, size + (1 << 40), 500), (OK, True, []))
    check("a count of 0", a.read_plus(fh, stateid, 17, 0), (OK, False, []))
    check("a count of 0 at the last byte", a.read_plus(fh, stateid, size - 1, 0), (OK, False, []))
    check("a count of 0 at the end", a.read_plus(fh, stateid, size, 0), (OK, True, []))
    check("an empty file", a.read_plus(a.open(a.root, "none", create="unchecked")[1], ANONYMOUS),
          (OK, True, []))
    good = 0
    counts = [1, 2, 3, 4, 5, 511, 4095, 4096, 4097, 65536, 1 << 20]
    cases = [(max(0, size + random.randint(-9, 9)), random.choice(counts)) for _ in range(60)]
    cases += [(random.randrange(size), random.choice(counts)) for _ in range(60)]
    cases += [(random.randrange(size), random.randrange(1, 1 << 20)) for _ in range(60)]
    for offset, count in cases:
        for kind in (stateid, ANONYMOUS, BYPASS):
            good += compare(a, "random", fh, kind, offset, count)
    check(f"{3 * len(cases)} random ones answer what READ does", good, 3 * len(cases))
    good = 0
    for offset in (0, 1, 5, size - 1, size):
        for count in (1, 2, 3, 5, 4097):
            status_, reply = a.compound(
                a.putfh(fh), a.read_plus_op(stateid, offset, count),
                a.read_plus_op(ANONYMOUS, offset + 1, count),
                struct.pack(">I", 9) + nfs41.bitmap(nfs41.SIZE))
            reply.fixed(8 + 8)
            one = a.read_plus_result(reply)
            reply.fixed(8)
            two = a.read_plus_result(reply)
            reply.fixed(8 + 8 + 4)  # GETATTR: a bitmap of one word
            want = [content[at:at + count] for at in (offset, offset + 1)]
            good += (status_ == OK and [b"".join(s[2] for s in r[1]) for r in (one, two)] == want
                     and reply.u64() == size and reply.at == len(reply.data))
    check("several operations in a compound", good, 25)
    rest(a, folder, fh, stateid, content)


def rest(a, folder, fh, stateid, content):
    """Errors of READ_PLUS, stateids, and replies that are sent again."""
    status("a folder", a.read_plus(a.root, ANONYMOUS)[0], "ISDIR")
    os.symlink("plus", f"{folder}/plus-link")
    status("a link", a.read_plus(a.lookup(a.root, "plus-link")[1], ANONYMOUS)[0], "INVAL")
    status("no file handle", a.bare(a.read_plus_op(ANONYMOUS, 0, 1)), "NOFILEHANDLE")
    status("a stateid nobody has", a.read_plus(fh, bad_stateid(stateid))[0], "BAD_STATEID")
    status("a stateid to come", a.read_plus(fh, struct.pack(">I", 99) + stateid[4:])[0],
           "BAD_STATEID")
    done, reply = a.compound(a.putfh(a.root), a.open_op("plus", READ, b"cur"),
                             a.read_plus_op(CURRENT, 100, 50))
    status("the current stateid", done, "OK")
    check("reads", content[100:150] in reply.data, True)
    for cache in (1, 0):
        (one, first), (two, again) = a.twice(cache, a.putfh(fh), a.read_plus_op(stateid, 7, 4001))
        check(f"sent once, to be kept: {cache}", (name_of(one), content[7:4008] in first),
              ("OK", True))
        if cache:
            check("sent again it is the same", (two, again == first), (one, True))
        else:
            status("sent again", two, "RETRY_UNCACHED_REP")
    for _ in range(3):
        a.twice(1, a.putfh(fh), a.read_plus_op(stateid, len(content), 10))
        a.twice(1, a.putfh(fh), a.read_plus_op(bad_stateid(stateid), 0, 10))
    status("too large to be kept",
           a.twice(1, a.putfh(fh), a.read_plus_op(stateid, 0, 100000))[0][0], "10067")
    deny = Nfs42(*a.socket.getpeername(), a.path, "client plus 2")
    done, _, denying, _ = deny.open(deny.root, "plus-deny", access=BOTH, deny=READ,
                                    create="unchecked")
    assert done == OK, name_of(done)
    assert deny.write(deny.lookup(deny.root, "plus-deny")[1], denying, b"denied")[0] == OK
    fh2 = a.lookup(a.root, "plus-deny")[1]
    status("the anonymous stateid where reading is denied", a.read_plus(fh2, ANONYMOUS)[0],
           name_of(a.read_eof(fh2, ANONYMOUS, 0, 10)[0]))
    check("the bypass stateid", as_read(a.read_plus(fh2, BYPASS)), a.read_eof(fh2, BYPASS, 0, 10))
    status("CLOSE", a.close(fh, stateid), "OK")
    status("a closed stateid", a.read_plus(fh, stateid)[0], "BAD_STATEID")


class Small(Nfs42):
    """A client whose session takes replies of 8 KiB."""

    MAX_REPLY = 8192


def limits(a, folder):
    """Replies that the session has hardly room for: from far too little to enough."""
    small = Small(*a.socket.getpeername(), a.path, "client small")
    content = random.randbytes(20000)
    with open(f"{folder}/small", "wb") as file:
        file.write(content)
    fh = small.lookup(small.root, "small")[1]
    shortest, n = 9000, 0
    for count in list(range(7900, 8300)) + [9000, 20000, 1 << 20, 0xffffffff]:
        done, eof, segments = small.read_plus(fh, ANONYMOUS, 100, count)
        got = segments[0][2] if segments else b""
        n += (done == OK and not eof and 0 < len(got) <= count and
              got == content[100:100 + len(got)])
        if len(got) < count:
            shortest = min(shortest, len(got))
    ops = [small.putfh(fh)] + [small.read_plus_op(ANONYMOUS, 0, 4000)] * 3
    status("three replies that are too large together", small.compound(*ops)[0], "REP_TOO_BIG")
    check("404 counts around the largest reply are answered, cut where needed", n, 404)
    check("and not cut too much", 8000 < shortest < 8192, True)


def cut(a, folder):
    """Clients that go away before their replies have come, or while they come; some are kept."""
    size = 2 << 20
    with open(f"{folder}/cut", "wb") as file:
        file.write(random.randbytes(size))
    fh = a.lookup(a.root, "cut")[1]
    for n in range(12):
        b = Nfs42(*a.socket.getpeername(), a.path, f"client cut {a.path} {n}")
        ops = [b.putfh(fh), b.read_plus_op(ANONYMOUS, random.randrange(size),
                                           4000 if n % 3 == 0 else 1 << 20)]
        if n % 3 == 0:
            b.twice(1, *ops)
        sequence = struct.pack(">I", 53) + b.session
        sequence += struct.pack(">IIII", b.slot_seq + 1, 0, 0, int(n % 3 == 0))
        b.send([sequence, *ops])
        if n % 2:
            b.receive(random.randrange(1, 4000))
        b.socket.close()
    check("serves on", name_of(a.read_plus(fh, ANONYMOUS)[0]), "OK")


def stock_read_plus(a, folder):
    with open(f"{folder}/stock-plus", "wb") as file:
        file.write(b"full" * 1000)
    done, fh, stateid, _ = a.open(a.root, "stock-plus", access=READ)
    assert done == OK, name_of(done)
    check("stock: READ_PLUS of a full file has no data",
          as_read(a.read_plus(fh, stateid))[::2], (OK, b""))
    status("stock: CLOSE", a.close(fh, stateid), "OK")
    (one, first), (two, again) = a.twice(1, a.putfh(fh), struct.pack(">I", 25) + ANONYMOUS +
                                         struct.pack(">QI", 0, 4000))
    check("stock: READ sent again is not the same", (one, two, first == again), (OK, OK, False))


# ---- SEEK ----

def sparse(path, size):
    """A file of 64 KiB pieces, some of them holes; the last byte is data."""
    with open(path, "wb") as file:
        file.truncate(size)
        for at in range(0, size - 65536, 65536):
            if random.random() < 0.4:
                file.seek(at)
                file.write(random.randbytes(65536))
        file.seek(size - 1)
        file.write(b"!")


def seek(a, folder):
    size = 4 * (1 << 20) + 77
    sparse(f"{folder}/sparse", size)
    sparse(f"{folder}/tail", size)
    os.truncate(f"{folder}/tail", size + (1 << 20))
    for name, length in (("sparse", size), ("tail", size + (1 << 20))):
        done, fh, stateid, _ = a.open(a.root, name, access=READ)
        assert done == OK, name_of(done)
        below = os.open(f"{folder}/{name}", os.O_RDONLY)
        good, cases = 0, 0
        places = [0, length - 1] + [random.randrange(length) for _ in range(50)]
        for place in places:
            for what, whence in ((DATA, os.SEEK_DATA), (HOLE, os.SEEK_HOLE)):
                try:
                    at = os.lseek(below, place, whence)
                    want = (OK, at >= length, at)
                except OSError:  # no data from there on: only the end of file counts
                    want = (OK, True, None)
                for kind in (ANONYMOUS, BYPASS, stateid):
                    have = a.seek(fh, kind, place, what)
                    if want[2] is None:
                        have = (*have[:2], None)
                    cases += 1
                    good += have == want
                    if have != want:
                        check(f"SEEK {what} from {place} of {name}", have, want)
        check(f"{cases} SEEKs with each kind of stateid in {name}", good, cases)
        os.close(below)
        for kind in (ANONYMOUS, BYPASS, stateid):
            for place in (length, length + 1, 1 << 62, (1 << 63) - 1):
                status(f"SEEK from {place}", a.seek(fh, kind, place, DATA)[0], "NXIO")
        for place in (1 << 63, (1 << 64) - 1):
            status(f"SEEK from {place}", a.seek(fh, ANONYMOUS, place, HOLE)[0], "NXIO")
        status("CLOSE", a.close(fh, stateid), "OK")
    errors_of_seek(a, fh)
    deny = Nfs42(*a.socket.getpeername(), a.path, "client seek 2")
    done, _, denying, _ = deny.open(deny.root, "seek-deny", access=BOTH, deny=READ,
                                    create="unchecked")
    fh = deny.lookup(deny.root, "seek-deny")[1]
    assert deny.write(fh, denying, b"denied")[0] == OK
    status("SEEK where reading is denied", a.seek(fh, ANONYMOUS, 0, DATA)[0],
           name_of(a.read_eof(fh, ANONYMOUS, 0, 10)[0]))
    check("SEEK with bypass", a.seek(fh, BYPASS, 1, DATA), (OK, False, 1))


def errors_of_seek(a, fh):
    status("SEEK for neither data nor holes", a.seek(fh, ANONYMOUS, 0, 2)[0], "UNION_NOTSUPP")
    status("SEEK in a folder", a.seek(a.root, ANONYMOUS, 0, DATA)[0], "ISDIR")
    status("SEEK without a file handle",
           a.bare(struct.pack(">I", 69) + ANONYMOUS + struct.pack(">QI", 0, 0)), "NOFILEHANDLE")


def noseek(a, folder):
    with open(f"{folder}/noseek", "wb") as file:
        file.write(b"z" * 100)
    done, fh, stateid, _ = a.open(a.root, "noseek", access=READ)
    assert done == OK, name_of(done)
    for kind in (ANONYMOUS, BYPASS, stateid):
        for what in (DATA, HOLE):
            status("SEEK where holes are not known", a.seek(fh, kind, 10, what)[0], "NOTSUPP")
    status("SEEK from the end", a.seek(fh, ANONYMOUS, 100, DATA)[0], "NXIO")
    errors_of_seek(a, fh)


def metadata(a, folder):
    """An export that shows metadata only: what reads is refused as READ is."""
    with open(f"{folder}/secret", "wb") as file:
        file.write(b"s" * 100)
    fh = a.lookup(a.root, "secret")[1]
    want = name_of(a.read_eof(fh, ANONYMOUS, 0, 10)[0])
    check("READ is refused", want, "ACCESS")
    status("READ_PLUS", a.read_plus(fh, ANONYMOUS)[0], want)
    status("SEEK", a.seek(fh, ANONYMOUS, 0, DATA)[0], want)
    status("IO_ADVISE reads nothing", a.io_advise(fh, ANONYMOUS, {1})[0], "OK")


def stock_seek(a, folder):
    with open(f"{folder}/seek", "wb") as file:
        file.write(b"z" * 100)
    fh = a.lookup(a.root, "seek")[1]
    check("stock: SEEK for data goes backwards", a.seek(fh, ANONYMOUS, 50, DATA), (OK, False, 0))
    status("stock: SEEK from beyond the end", a.seek(fh, ANONYMOUS, 5000, DATA)[0], "OK")


def main():
    part, host, port, export, folder = sys.argv[1:6]
    seed = int(sys.argv[6]) if len(sys.argv) > 6 else random.randrange(1 << 32)
    print(f"# {part} seed {seed}")
    random.seed(seed)
    client = Nfs42(host, int(port), export, f"client {part} {export}")
    client.path = export
    globals()[part.replace("-", "_")](client, folder)
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
