# SPDX-License-Identifier: LGPL-3.0-or-later
"""Operations of NFSv4.2 beside nfs41.py, attributes by number, and replies sent again."""

import struct

import nfs41
from nfs41 import OK, OP, opaque

OP.update({"IO_ADVISE": 63, "READ_PLUS": 68})
nfs41.NAMES.update({6: "NXIO", 10014: "FHEXPIRED", 10020: "NOFILEHANDLE", 10023: "STALE_STATEID",
                    10024: "OLD_STATEID", 10025: "BAD_STATEID", 10066: "REP_TOO_BIG",
                    10068: "RETRY_UNCACHED_REP", 10090: "UNION_NOTSUPP"})
BYPASS = b"\xff" * 16
CURRENT = struct.pack(">I12s", 1, bytes(12))
DATA, HOLE = 0, 1


def numbers_of(words):
    return {32 * i + bit for i, word in enumerate(words) for bit in range(32) if word >> bit & 1}


def bitmap_of(numbers):
    words = [0] * (max(numbers, default=-1) // 32 + 1)
    for number in numbers:
        words[number // 32] |= 1 << number % 32
    return struct.pack(f">{1 + len(words)}I", len(words), *words)


class Nfs42(nfs41.Nfs):
    """One client with one session of minor version 2, with room for 1 MiB of data in a reply."""

    MAX_REPLY = (1 << 20) + 4096

    def __init__(self, host, port, path, who, minor=2):
        super().__init__(host, port, path, who, minor)

    def read_eof(self, fh, stateid, offset, count):
        """READ: (status, end of file, data)"""
        status, reply = self.compound(self.putfh(fh), struct.pack(">I", OP["READ"]) + stateid +
                                      struct.pack(">QI", offset, count))
        if status != OK:
            return status, None, None
        reply.fixed(8 + 8)
        return status, bool(reply.u32()), reply.opaque()

    @staticmethod
    def read_plus_op(stateid, offset, count):
        return struct.pack(">I", OP["READ_PLUS"]) + stateid + struct.pack(">QI", offset, count)

    @staticmethod
    def read_plus_result(reply):
        """Behind number and status: (end of file, [(kind, offset, data or length of a hole)])"""
        eof, segments = reply.u32(), []
        assert eof in (0, 1), eof
        for _ in range(reply.u32()):
            kind, offset = reply.u32(), reply.u64()
            segments.append((kind, offset, reply.opaque() if kind == DATA else reply.u64()))
        return bool(eof), segments

    def read_plus(self, fh, stateid, offset=0, count=4096):
        """(status, end of file, segments)"""
        status, reply = self.compound(self.putfh(fh), self.read_plus_op(stateid, offset, count))
        if status != OK:
            return status, None, None
        reply.fixed(8 + 8)
        result = self.read_plus_result(reply)
        assert reply.at == len(reply.data), "bytes behind the result"
        return status, *result

    def seek(self, fh, stateid, offset, what):
        """(status, end of file, offset)"""
        status, reply = self.compound(self.putfh(fh), struct.pack(">I", OP["SEEK"]) + stateid +
                                      struct.pack(">QI", offset, what))
        if status != OK:
            return status, None, None
        reply.fixed(8 + 8)
        return status, bool(reply.u32()), reply.u64()

    def io_advise(self, fh, stateid, hints, offset=0, count=0):
        """(status, hints that are followed)"""
        status, reply = self.compound(self.putfh(fh), struct.pack(">I", OP["IO_ADVISE"]) + stateid +
                                      struct.pack(">QQ", offset, count) + bitmap_of(hints))
        if status != OK:
            return status, None
        reply.fixed(8 + 8)
        return status, numbers_of([reply.u32() for _ in range(reply.u32())])

    def getattr(self, fh, numbers):
        """(status, numbers answered, their values as bytes)"""
        status, reply = self.compound(self.putfh(fh),
                                      struct.pack(">I", OP["GETATTR"]) + bitmap_of(numbers))
        if status != OK:
            return status, None, None
        reply.fixed(8 + 8)
        have = numbers_of([reply.u32() for _ in range(reply.u32())])
        return status, have, reply.opaque()

    def readdir_attrs(self, fh, numbers):
        """(status, {name: (numbers answered, their values)}) of the first reply"""
        status, reply = self.compound(
            self.putfh(fh), struct.pack(">IQ8x", OP["READDIR"], 0) +
            struct.pack(">II", 32768, 32768) + bitmap_of(numbers))
        if status != OK:
            return status, None
        reply.fixed(8 + 8 + 8)
        names = {}
        while reply.u32():
            reply.u64()
            name = reply.opaque().decode()
            have = numbers_of([reply.u32() for _ in range(reply.u32())])
            names[name] = (have, reply.opaque())
        return status, names

    def twice(self, cache, *ops):
        """Send a compound, and then again as a client whose connection broke: both replies behind
        the result of SEQUENCE, as (status, bytes)."""
        self.slot_seq += 1
        sequence = struct.pack(">I", OP["SEQUENCE"]) + self.session
        sequence += struct.pack(">IIII", self.slot_seq, 0, 0, cache)
        replies = []
        for _ in range(2):
            status, reply = self.call([sequence, *ops])
            reply.fixed(8 + 16 + 20)
            replies.append((status, reply.data[reply.at:]))
        return replies

    def bare(self, *ops):
        """Status of a compound without a file handle of its own."""
        return self.compound(*ops)[0]

    def open_op(self, name, access, owner=b"o", create=False):
        """An OPEN to be put into a compound, behind the file handle of a folder."""
        op = struct.pack(">IIII", OP["OPEN"], 0, access | 0x400, 0)
        op += struct.pack(">Q", self.client) + opaque(owner)
        op += struct.pack(">II", 1, 0) + nfs41.attributes(mode=0o644) if create else bytes(4)
        return op + struct.pack(">I", 0) + opaque(name.encode())
