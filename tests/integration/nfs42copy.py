# SPDX-License-Identifier: LGPL-3.0-or-later
"""A client that copies on the server: COPY, OFFLOAD_STATUS, OFFLOAD_CANCEL, and callbacks, which it
answers as it is told to."""

import select
import socket
import struct
import time

import nfs41
from nfs41 import OK, OP, Reply, name_of, opaque
from nfs42ops import Nfs42

OP.update({"BIND_CONN_TO_SESSION": 41, "DESTROY_SESSION": 44, "DESTROY_CLIENTID": 57, "COPY": 60,
           "OFFLOAD_CANCEL": 66, "OFFLOAD_STATUS": 67})
nfs41.NAMES.update({10047: "ADMIN_REVOKED", 10052: "BADSESSION", 10054: "COMPLETE_ALREADY",
                    10063: "SEQ_MISORDERED", 10074: "CLIENTID_BUSY"})
DELAY, BAD_STATEID, COMPLETE_ALREADY, SEQ_MISORDERED = 10008, 10025, 10054, 10063
ADMIN_REVOKED = 10047
CB_SEQUENCE, CB_OFFLOAD = 11, 15
CB_PATH_DOWN = 1


class Callback:
    """A CB_COMPOUND { CB_SEQUENCE, CB_OFFLOAD }, taken apart to its last byte."""

    def __init__(self, data):
        call = Reply(data)
        self.xid = call.u32()
        assert call.u32() == 0 and call.u32() == 2, "not a call"
        self.program, self.version, self.procedure = call.u32(), call.u32(), call.u32()
        for _ in range(2):
            call.u32()
            call.opaque()
        self.tag = call.opaque()
        self.minor, self.ident = call.u32(), call.u32()
        assert call.u32() == 2, "operations"
        assert call.u32() == CB_SEQUENCE
        self.session = call.fixed(16)
        self.sequence, self.slot, self.highest, self.cache = [call.u32() for _ in range(4)]
        self.referring = [(call.fixed(16), [(call.u32(), call.u32()) for _ in range(call.u32())])
                          for _ in range(call.u32())]
        assert call.u32() == CB_OFFLOAD
        self.fh, self.stateid, self.status = call.opaque(), call.fixed(16), call.u32()
        if self.status == OK:
            assert call.u32() == 0, "a callback with a callback_id"
            self.count, self.committed, self.verifier = call.u64(), call.u32(), call.fixed(8)
        else:
            self.count = call.u64()
        assert call.at == len(data), "bytes behind the callback"
        self.at = time.monotonic()


class CopyClient(Nfs42):
    """answers: what is answered to the next callbacks, (status of CB_SEQUENCE, of CB_OFFLOAD) each, or
    None for nothing at all; (OK, OK) when it is empty."""

    SESSION_FLAGS = 2
    SLOTS = 4

    def __init__(self, host, port, path, who, back=True):
        self.where = (host, port)
        self.program = 0x40000000
        self.callbacks = []
        self.answers = []
        self.flags = 0
        if not back:
            self.SESSION_FLAGS = 0
        super().__init__(host, port, path, who)

    # ---- the back channel ----

    def call(self, ops):
        self.send(ops)
        while True:
            data = self.record()
            if struct.unpack_from(">I", data, 4)[0] == 1:
                break
            self.called(data)
        reply = Reply(data)
        reply.fixed(24)
        status = reply.u32()
        reply.opaque()
        reply.u32()
        if struct.unpack_from(">II", data, reply.at) == (OP["SEQUENCE"], OK):
            self.flags = struct.unpack_from(">I", data, reply.at + 8 + 16 + 16)[0]
        return status, reply

    def called(self, data):
        callback = Callback(data)
        self.callbacks.append(callback)
        answer = self.answers.pop(0) if self.answers else (OK, OK)
        if answer is None:
            return
        sequence, offload = answer
        body = struct.pack(">IIIIII", callback.xid, 1, 0, 0, 0, 0)
        results = struct.pack(">II", CB_SEQUENCE, sequence)
        if sequence == OK:
            results += callback.session + struct.pack(">IIII", callback.sequence, callback.slot,
                                                      callback.highest, callback.highest)
            results += struct.pack(">II", CB_OFFLOAD, offload)
        body += struct.pack(">I", sequence or offload) + opaque(callback.tag)
        body += struct.pack(">I", 2 if sequence == OK else 1) + results
        self.socket.sendall(struct.pack(">I", 0x80000000 | len(body)) + body)

    def wait(self, n, seconds):
        """Take callbacks until there are n of them or the time is over; how many there are."""
        end = time.monotonic() + seconds
        while len(self.callbacks) < n:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.socket], [], [], left)[0]:
                break
            self.called(self.record())
        return len(self.callbacks)

    def reconnect(self, bind=None):
        """A new connection to the session; bind: 4 bytes of a direction for BIND_CONN_TO_SESSION."""
        self.socket.close()
        self.socket = socket.create_connection(self.where, 20)
        self.socket.settimeout(60)
        if bind is not None:
            self.bind(bind)

    def bind(self, direction):
        status, reply = self.call([struct.pack(">I", OP["BIND_CONN_TO_SESSION"]) + self.session +
                                   struct.pack(">II", direction, 0)])
        assert status == OK, name_of(status)
        reply.fixed(8 + 16)
        return reply.u32()

    def destroy_session(self):
        return self.call([struct.pack(">I", OP["DESTROY_SESSION"]) + self.session])[0]

    def destroy_clientid(self):
        return self.call([struct.pack(">IQ", OP["DESTROY_CLIENTID"], self.client)])[0]

    # ---- operations ----

    def copy(self, src, src_stateid, dst, dst_stateid, count, sync=False, offsets=(0, 0)):
        """(status, callback stateid or None, count, committed, verifier, synchronous)"""
        op = struct.pack(">I", OP["COPY"]) + src_stateid + dst_stateid
        op += struct.pack(">QQQIII", *offsets, count, 1, sync, 0)
        status, reply = self.compound(self.putfh(src), struct.pack(">I", 32), self.putfh(dst), op)
        if status != OK:
            return status, None, 0, None, None, None
        reply.fixed(8 + 8 + 8 + 8)
        stateid = reply.fixed(16) if reply.u32() else None
        count, committed, verifier = reply.u64(), reply.u32(), reply.fixed(8)
        assert reply.u32() == 1, "consecutive"
        return status, stateid, count, committed, verifier, bool(reply.u32())

    def offload_status(self, fh, stateid):
        """(status, count, None or how it ended)"""
        status, reply = self.compound(self.putfh(fh),
                                      struct.pack(">I", OP["OFFLOAD_STATUS"]) + stateid)
        if status != OK:
            return status, None, None
        reply.fixed(8 + 8)
        count, n = reply.u64(), reply.u32()
        assert n <= 1, n
        return status, count, reply.u32() if n else None

    def offload_cancel(self, fh, stateid):
        return self.plain(fh, "OFFLOAD_CANCEL", stateid)
