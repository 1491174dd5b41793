# SPDX-License-Identifier: LGPL-3.0-or-later
"""COMPOUNDs of minor version 2 as bytes: cut, repeated, with lists that lie about their length."""

import socket
import struct

import nfs41
from nfs41 import OP, opaque

OP.update({"LOOKUPP": 16, "READLINK": 27, "RESTOREFH": 31, "SAVEFH": 32, "COPY": 60,
           "COPY_NOTIFY": 61, "OFFLOAD_CANCEL": 66, "OFFLOAD_STATUS": 67, "CLONE": 71})
nfs41.NAMES.update({30: "ROFS", 10018: "RESOURCE", 10020: "NOFILEHANDLE", 10021: "MINOR_VERS_MISMATCH",
                    10025: "BAD_STATEID", 10068: "RETRY_UNCACHED_REP", 10071: "OP_NOT_IN_SESSION"})
SUCCESS, GARBAGE_ARGS = 0, 4
CB_SEQUENCE = 11
TCP = struct.pack(">I", 3) + opaque(b"tcp") + opaque(b"192.0.2.9.8.1")


def op(name, args=b""):
    """One encoded operation; name may be a number."""
    return struct.pack(">I", OP.get(name, name)) + args


def copy(src, dst, src_offset=0, dst_offset=0, count=0, synchronous=1, sources=b"", n_sources=0,
         consecutive=1):
    return op("COPY", src + dst + struct.pack(">QQQIII", src_offset, dst_offset, count, consecutive,
                                              synchronous, n_sources) + sources)


def clone(src, dst, src_offset=0, dst_offset=0, count=0):
    return op("CLONE", src + dst + struct.pack(">QQQ", src_offset, dst_offset, count))


class Raw(nfs41.Nfs):
    """One client with one session. It answers callbacks while it waits for a reply."""

    def __init__(self, host, port, path, who, minor=2):
        self.callbacks = []  # what follows CB_SEQUENCE, as bytes
        super().__init__(host, port, path, who, minor)
        # An answer to a callback and the next call are not kept back for one another.
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self, ops):
        accept, data = self.exchange(opaque(b"t") + struct.pack(">II", self.minor, len(ops)) +
                                     b"".join(ops))
        assert accept == SUCCESS, accept
        reply = nfs41.Reply(data)
        status = reply.u32()
        reply.opaque()
        reply.u32()
        return status, reply

    def exchange(self, compound):
        """Send the bytes of a COMPOUND's arguments: (accept_stat, bytes of the results)."""
        self.xid += 1
        cred = struct.pack(">II", 0, 0) + struct.pack(">III", 0, 0, 0)
        body = struct.pack(">IIIIII", self.xid, 0, 2, 100003, 4, 1)
        body += struct.pack(">I", 1) + opaque(cred) + struct.pack(">II", 0, 0) + compound
        self.socket.sendall(struct.pack(">I", 0x80000000 | len(body)) + body)
        while True:
            data = self.record()
            xid, kind, denied = struct.unpack_from(">III", data)
            if kind == 1:
                break
            self.answer_callback(xid, data)
        assert (xid, denied) == (self.xid, 0), (xid, denied)
        return struct.unpack_from(">I", data, 20)[0], data[24:]

    def record(self):
        data, last = b"", False
        while not last:
            mark = struct.unpack(">I", self.receive(4))[0]
            last = bool(mark & 0x80000000)
            data += self.receive(mark & 0x7fffffff)
        return data

    def answer_callback(self, xid, data):
        """OK to whatever it is: CB_NULL, or CB_SEQUENCE and one more operation."""
        call = nfs41.Reply(data)
        call.fixed(20)
        procedure = call.u32()
        for _ in range(2):  # credentials and verifier
            call.u32()
            call.opaque()
        body = struct.pack(">IIIIII", xid, 1, 0, 0, 0, SUCCESS)
        if procedure == 1:
            tag = call.opaque()
            call.fixed(8)
            n = call.u32()
            assert call.u32() == CB_SEQUENCE
            session, (number, slot, highest) = call.fixed(16), (call.u32(), call.u32(), call.u32())
            call.u32()
            for _ in range(call.u32()):
                call.fixed(16)
                call.fixed(8 * call.u32())
            self.callbacks.append(call.data[call.at:])
            body += struct.pack(">I", nfs41.OK) + opaque(tag) + struct.pack(">I", n)
            body += struct.pack(">II", CB_SEQUENCE, nfs41.OK) + session
            body += struct.pack(">IIII", number, slot, highest, highest)
            if n > 1:
                body += struct.pack(">II", call.u32(), nfs41.OK)
        self.socket.sendall(struct.pack(">I", 0x80000000 | len(body)) + body)

    def sequence(self, number, cache=False):
        return op("SEQUENCE", self.session + struct.pack(">IIII", number, 0, 0, int(cache)))

    def arguments(self, ops, number, cache=False, n_ops=None, minor=2, tag=b"t"):
        """Behind a SEQUENCE of that number."""
        n_ops = len(ops) + 1 if n_ops is None else n_ops
        return opaque(tag) + struct.pack(">II", minor, n_ops) + self.sequence(number, cache) + \
            b"".join(ops)

    def run(self, *ops, cache=False, minor=2):
        """In the session: (accept_stat, status, number of results, bytes behind that of SEQUENCE)"""
        accept, data = self.exchange(self.arguments(ops, self.slot_seq + 1, cache, minor=minor))
        if accept != SUCCESS:
            return accept, None, 0, b""
        self.slot_seq += 1
        return (accept, *self.results(data))

    @staticmethod
    def results(data):
        """(status, number of results, bytes behind that of SEQUENCE)"""
        reply = nfs41.Reply(data)
        status = reply.u32()
        reply.opaque()
        n = reply.u32()
        if n > 0 and reply.u32() == OP["SEQUENCE"] and reply.u32() == nfs41.OK:
            reply.fixed(16 + 20)
        return status, n, data[reply.at:]


class Callable(Raw):
    """One whose connection is also its back channel."""

    SESSION_FLAGS = 2
