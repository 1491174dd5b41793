# SPDX-License-Identifier: LGPL-3.0-or-later
"""COPY and its companions of NFSv4.2, on top of nfs41.py."""

import struct
from collections import namedtuple

import nfs41
from nfs41 import OK, opaque

SAVEFH, COPY, COPY_NOTIFY, OFFLOAD_CANCEL, OFFLOAD_STATUS, CLONE = 32, 60, 61, 66, 67, 71
CURRENT = struct.pack(">I12s", 1, bytes(12))
BYPASS = b"\xff" * 16

nfs41.NAMES.update({
    9: "NXIO", 18: "XDEV", 27: "FBIG", 28: "NOSPC", 30: "ROFS", 10020: "NOFILEHANDLE", 10023: "STALE_STATEID",
    10024: "OLD_STATEID", 10025: "BAD_STATEID", 10036: "BADXDR", 10047: "ADMIN_REVOKED",
    10054: "COMPLETE_ALREADY", 10083: "WRONG_TYPE", 10091: "OFFLOAD_DENIED",
    10094: "OFFLOAD_NO_REQS",
})

Copied = namedtuple("Copied", "status count committed verifier stateid consecutive synchronous rest")


def copy_op(src, dst, src_offset=0, dst_offset=0, count=0, sync=True, consecutive=True, sources=()):
    op = struct.pack(">I", COPY) + src + dst
    op += struct.pack(">QQQII", src_offset, dst_offset, count, consecutive, sync)
    op += struct.pack(">I", len(sources))
    for netid, address in sources:
        op += struct.pack(">I", 3) + opaque(netid.encode()) + opaque(address.encode())
    return op


def clone_op(src, dst, src_offset=0, dst_offset=0, count=0):
    return struct.pack(">I", CLONE) + src + dst + struct.pack(">QQQ", src_offset, dst_offset, count)


class Client(nfs41.Nfs):
    """A client that copies."""

    def __init__(self, host, port, path, who):
        super().__init__(host, port, path, who, minor=2)

    @staticmethod
    def savefh():
        return struct.pack(">I", SAVEFH)

    def between(self, src_fh, dst_fh, *ops):
        """ops with src_fh saved and dst_fh current: (status, Reply behind these three)."""
        status, reply = self.compound(self.putfh(src_fh), self.savefh(), self.putfh(dst_fh), *ops)
        for _ in range(3):
            reply.u32()
            one = reply.u32()
            if one != OK:
                return one, reply
        return status, reply

    def copy(self, src_fh, src, dst_fh, dst, *args, more=(), **keys):
        """One COPY; more: encoded operations behind it, whose results are in rest."""
        _, reply = self.between(src_fh, dst_fh, copy_op(src, dst, *args, **keys), *more)
        assert reply.u32() == COPY
        return self.copied(reply)

    @staticmethod
    def copied(reply):
        status = reply.u32()
        if status == 10094:
            return Copied(status, 0, 0, b"", None, reply.u32(), reply.u32(), reply)
        if status != OK:
            return Copied(status, 0, 0, b"", None, None, None, reply)
        stateid = None
        ids = reply.u32()
        assert ids <= 1
        if ids:
            stateid = reply.fixed(16)
        return Copied(status, reply.u64(), reply.u32(), reply.fixed(8), stateid, reply.u32(),
                      reply.u32(), reply)

    def copy_all(self, src_fh, src, dst_fh, dst, count):
        """Loops over short answers; (status, bytes, calls)."""
        done = calls = 0
        while done < count:
            got = self.copy(src_fh, src, dst_fh, dst, done, done, count - done)
            calls += 1
            if got.status != OK or got.count == 0:
                return got.status, done, calls
            done += got.count
        return OK, done, calls

    def offload_status(self, stateid):
        """(status, bytes, None or the outcome)"""
        status, reply = self.compound(self.putfh(self.root),
                                      struct.pack(">I", OFFLOAD_STATUS) + stateid)
        if status != OK:
            return status, None, None
        reply.fixed(8 + 8)
        count = reply.u64()
        return status, count, reply.u32() if reply.u32() else None

    def offload_cancel(self, stateid):
        return self.compound(self.putfh(self.root),
                             struct.pack(">I", OFFLOAD_CANCEL) + stateid)[0]
