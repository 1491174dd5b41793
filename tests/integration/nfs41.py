# SPDX-License-Identifier: LGPL-3.0-or-later
"""A few operations of NFSv4.1 and 4.2, as raw as needed to ask for what real clients seldom do:
share reservations, exclusive creates, opens by handle, verifiers. One session, one slot."""

import socket
import struct
import time

OP = {
    "ACCESS": 3, "CLOSE": 4, "COMMIT": 5, "GETATTR": 9, "GETFH": 10, "LOOKUP": 15, "OPEN": 18,
    "OPEN_DOWNGRADE": 21, "PUTFH": 22, "PUTROOTFH": 24, "READ": 25, "READDIR": 26, "REMOVE": 28,
    "SETATTR": 34, "WRITE": 38, "EXCHANGE_ID": 42, "CREATE_SESSION": 43, "SEQUENCE": 53,
    "RECLAIM_COMPLETE": 58, "ALLOCATE": 59, "DEALLOCATE": 62, "SEEK": 69, "GETXATTR": 72,
    "LISTXATTRS": 74,
}
OK = 0
NAMES = {0: "OK", 2: "NOENT", 5: "IO", 13: "ACCESS", 17: "EXIST", 21: "ISDIR", 22: "INVAL",
         70: "STALE", 10001: "BADHANDLE", 10004: "NOTSUPP", 10008: "DELAY", 10012: "LOCKED",
         10015: "SHARE_DENIED", 10029: "SYMLINK", 10038: "OPENMODE", 10044: "OP_ILLEGAL"}
READ, WRITE, BOTH = 1, 2, 3
ANONYMOUS = struct.pack(">I12s", 0, bytes(12))
MODE, SIZE = 1 << 33, 1 << 4
CHANGE = 1 << 3


def name_of(status):
    return NAMES.get(status, str(status))


def opaque(data):
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


def bitmap(mask):
    words = [mask & 0xffffffff, mask >> 32]
    return struct.pack(">III", 2, *words)


def attributes(mode=None, size=None):
    mask, values = 0, b""
    if size is not None:
        mask |= SIZE
        values += struct.pack(">Q", size)
    if mode is not None:
        mask |= MODE
        values += struct.pack(">I", mode)
    return bitmap(mask) + opaque(values)


class Reply:
    """A cursor over what came back."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def u32(self):
        self.at += 4
        return struct.unpack_from(">I", self.data, self.at - 4)[0]

    def u64(self):
        self.at += 8
        return struct.unpack_from(">Q", self.data, self.at - 8)[0]

    def fixed(self, n):
        self.at += n + -n % 4
        return self.data[self.at - n - -n % 4:][:n]

    def opaque(self):
        return self.fixed(self.u32())


class Nfs:
    """One client with one session."""

    MAX_REPLY = 1 << 20
    SESSION_FLAGS = 0  # of CREATE_SESSION; 2 asks for a back channel
    SLOTS = 1  # of either channel; requests of ours use the first only

    def __init__(self, host, port, path, who, minor=1):
        self.minor = minor
        self.socket = socket.create_connection((host, port), 20)
        self.socket.settimeout(60)
        self.xid = 1
        self.session = None
        self.slot_seq = 0
        self.who = who
        self.start()
        self.root = self.walk(path)

    # ---- RPC ----

    def receive(self, n):
        data = b""
        while len(data) < n:
            more = self.socket.recv(n - len(data))
            if not more:
                raise EOFError("the server closed the connection")
            data += more
        return data

    def send(self, ops):
        """Send one COMPOUND of encoded operations."""
        self.xid += 1
        cred = struct.pack(">II", 0, 0) + struct.pack(">III", 0, 0, 0)
        body = struct.pack(">IIIIII", self.xid, 0, 2, 100003, 4, 1)
        body += struct.pack(">I", 1) + opaque(cred) + struct.pack(">II", 0, 0)
        body += opaque(b"t") + struct.pack(">II", self.minor, len(ops)) + b"".join(ops)
        self.socket.sendall(struct.pack(">I", 0x80000000 | len(body)) + body)

    def record(self):
        """One RPC message."""
        data = b""
        last = False
        while not last:
            mark = struct.unpack(">I", self.receive(4))[0]
            last = bool(mark & 0x80000000)
            data += self.receive(mark & 0x7fffffff)
        return data

    def call(self, ops):
        """Send it; a Reply behind its header, and its status."""
        self.send(ops)
        reply = Reply(self.record())
        reply.fixed(24)  # xid, reply, accepted, verifier (2), success
        status = reply.u32()
        reply.opaque()
        reply.u32()
        return status, reply

    def start(self):
        owner = self.who.encode()
        verifier = struct.pack(">d", time.time())
        op = struct.pack(">I", OP["EXCHANGE_ID"]) + verifier + opaque(owner)
        op += struct.pack(">III", 0, 0, 0)
        status, reply = self.call([op])
        assert status == OK, name_of(status)
        reply.fixed(8)
        self.client = reply.u64()
        self.create_session(reply.u32())
        self.compound(struct.pack(">II", OP["RECLAIM_COMPLETE"], 0))

    def create_session(self, sequence):
        op = struct.pack(">IQII", OP["CREATE_SESSION"], self.client, sequence, self.SESSION_FLAGS)
        channel = struct.pack(">IIIIIII", 0, 1 << 20, self.MAX_REPLY, 8192, 16, self.SLOTS, 0)
        op += channel + channel + struct.pack(">III", 0x40000000, 1, 0)
        status, reply = self.call([op])
        assert status == OK, name_of(status)
        reply.fixed(8)
        self.session = reply.fixed(16)
        self.slot_seq = 0

    def compound(self, *ops):
        """Within the session; comes back while the server says DELAY. (status, Reply)."""
        for _ in range(100):
            self.slot_seq += 1
            sequence = struct.pack(">I", OP["SEQUENCE"]) + self.session
            sequence += struct.pack(">IIII", self.slot_seq, 0, 0, 0)
            status, reply = self.call([sequence, *ops])
            if status != 10008:
                break
            time.sleep(0.2)
        assert reply.u32() == OP["SEQUENCE"]
        if reply.u32() == OK:
            reply.fixed(16 + 20)
        return status, reply

    # ---- operations ----

    def walk(self, path):
        fh = None
        ops = [struct.pack(">I", OP["PUTROOTFH"])]
        ops += [struct.pack(">I", OP["LOOKUP"]) + opaque(part.encode())
                for part in path.split("/") if part]
        status, reply = self.compound(*ops, struct.pack(">I", OP["GETFH"]))
        assert status == OK, f"{path}: {name_of(status)}"
        for _ in ops:
            reply.fixed(8)
        reply.fixed(8)
        fh = reply.opaque()
        return fh

    @staticmethod
    def putfh(fh):
        return struct.pack(">I", OP["PUTFH"]) + opaque(fh)

    def lookup(self, directory, name):
        status, reply = self.compound(self.putfh(directory), struct.pack(">I", OP["LOOKUP"]) +
                                      opaque(name.encode()), struct.pack(">I", OP["GETFH"]))
        if status != OK:
            return status, None
        reply.fixed(8 + 8 + 8)
        return status, reply.opaque()

    def open(self, fh, name=None, access=BOTH, deny=0, owner=b"o", create=None, mode=0o644,
             size=None, verifier=None):
        """Open a name in fh, or fh itself. create: unchecked, guarded, exclusive, exclusive41.
        (status, fh of the file, stateid, size after the open)"""
        op = struct.pack(">IIII", OP["OPEN"], 0, access | 0x400, deny)
        op += struct.pack(">Q", self.client) + opaque(owner)
        if create is None:
            op += struct.pack(">I", 0)
        else:
            how = {"unchecked": 0, "guarded": 1, "exclusive": 2, "exclusive41": 3}[create]
            op += struct.pack(">II", 1, how)
            if create == "exclusive":
                op += verifier
            elif create == "exclusive41":
                op += verifier + attributes(mode=mode)
            else:
                op += attributes(mode=mode, size=size)
        op += struct.pack(">I", 4) if name is None else struct.pack(">I", 0) + opaque(name.encode())
        status, reply = self.compound(
            self.putfh(fh), op, struct.pack(">I", OP["GETFH"]),
            struct.pack(">I", OP["GETATTR"]) + bitmap(SIZE))
        if status != OK:
            return status, None, None, None
        reply.fixed(8 + 8)
        stateid = reply.fixed(16)
        reply.fixed(4 + 16 + 4)
        reply.fixed(4 * reply.u32())
        kind = reply.u32()
        assert kind in (0, 3), kind
        if kind == 3 and reply.u32() in (1, 2):
            reply.u32()
        reply.fixed(8)
        file = reply.opaque()
        reply.fixed(8)
        reply.fixed(4 * reply.u32())
        reply.u32()
        return status, file, stateid, reply.u64()

    def close(self, fh, stateid):
        return self.compound(self.putfh(fh),
                             struct.pack(">II", OP["CLOSE"], 0) + stateid)[0]

    def downgrade(self, fh, stateid, access, deny):
        """(status, stateid)"""
        status, reply = self.compound(self.putfh(fh), struct.pack(">I", OP["OPEN_DOWNGRADE"]) +
                                      stateid + struct.pack(">III", 0, access, deny))
        if status != OK:
            return status, None
        reply.fixed(8 + 8)
        return status, reply.fixed(16)

    def read(self, fh, stateid, offset=0, count=4096):
        status, reply = self.compound(self.putfh(fh), struct.pack(">I", OP["READ"]) + stateid +
                                      struct.pack(">QI", offset, count))
        if status != OK:
            return status, None
        reply.fixed(8 + 8 + 4)
        return status, reply.opaque()

    def write(self, fh, stateid, data, offset=0, stable=0):
        """(status, how it is committed, verifier)"""
        status, reply = self.compound(self.putfh(fh), struct.pack(">I", OP["WRITE"]) + stateid +
                                      struct.pack(">QI", offset, stable) + opaque(data))
        if status != OK:
            return status, None, None
        reply.fixed(8 + 8)
        assert reply.u32() == len(data)
        return status, reply.u32(), reply.fixed(8)

    def commit(self, fh):
        status, reply = self.compound(self.putfh(fh), struct.pack(">IQI", OP["COMMIT"], 0, 0))
        if status != OK:
            return status, None
        reply.fixed(8 + 8)
        return status, reply.fixed(8)

    def truncate(self, fh, stateid, size):
        return self.compound(self.putfh(fh), struct.pack(">I", OP["SETATTR"]) + stateid +
                             attributes(size=size))[0]

    def attribute(self, fh, mask):
        """One 64-bit attribute."""
        status, reply = self.compound(self.putfh(fh),
                                      struct.pack(">I", OP["GETATTR"]) + bitmap(mask))
        if status != OK:
            return status, None
        reply.fixed(8 + 8)
        reply.fixed(4 * reply.u32())
        reply.u32()
        return status, reply.u64()

    def readdir(self, fh, cookie=0, verifier=bytes(8), maxcount=8192):
        """(status, names with their cookies, verifier, end)"""
        status, reply = self.compound(
            self.putfh(fh), struct.pack(">IQ", OP["READDIR"], cookie) + verifier +
            struct.pack(">II", maxcount, maxcount) + bitmap(0))
        if status != OK:
            return status, [], verifier, False
        reply.fixed(8 + 8)
        verifier = reply.fixed(8)
        names = []
        while reply.u32():
            cookie = reply.u64()
            names.append((reply.opaque().decode(), cookie))
            reply.fixed(4 * reply.u32())
            reply.opaque()
        return status, names, verifier, bool(reply.u32())

    def plain(self, fh, op, args):
        """The status of any operation on fh."""
        return self.compound(self.putfh(fh), struct.pack(">I", OP[op]) + args)[0]
