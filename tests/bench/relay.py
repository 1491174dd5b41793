# SPDX-License-Identifier: LGPL-3.0-or-later
"""Counts the calls that a server sends to its upstream.

A TCP relay between the two that reads the record marks of RPC (RFC 5531 section 11) and notes
program, version and procedure of every call. Exact, and slow: for counting only.
"""

import selectors
import socket
import struct
import threading
from collections import Counter

NFS_PROGRAM = 100003
NFS3_NAMES = (
    "NULL GETATTR SETATTR LOOKUP ACCESS READLINK READ WRITE CREATE MKDIR SYMLINK MKNOD REMOVE "
    "RMDIR RENAME LINK READDIR READDIRPLUS FSSTAT FSINFO PATHCONF COMMIT"
).split()
# Up to here the header of a call reaches: xid, type, RPC version, program, version, procedure.
HEADER_BYTES = 24


def call_name(header):
    """What a call is, from the first bytes of its record; None for a reply."""
    _, kind, _, program, version, procedure = struct.unpack(">6I", header)
    if kind != 0:
        return None
    if program == NFS_PROGRAM and version == 3 and procedure < len(NFS3_NAMES):
        return NFS3_NAMES[procedure]
    if program == NFS_PROGRAM and version == 4:
        return "COMPOUND" if procedure == 1 else "NULL"
    return f"{program}.{version}.{procedure}"


class Stream:
    """Cuts one direction of a connection into records without keeping their bodies."""

    def __init__(self, counter):
        self.counter = counter
        self.head = b""
        self.body_left = 0
        self.is_new_record = True
        self.is_last = False
        self.header = None

    def feed(self, data):
        while data:
            if self.body_left == 0:
                need = 4 - len(self.head)
                self.head += data[:need]
                data = data[need:]
                if len(self.head) < 4:
                    return
                (mark,) = struct.unpack(">I", self.head)
                self.body_left = mark & 0x7FFFFFFF
                self.is_last = bool(mark & 0x80000000)
                self.head = b""
                self.header = b"" if self.is_new_record else None
                self.is_new_record = self.is_last
                continue
            part = data[:self.body_left]
            data = data[len(part):]
            self.body_left -= len(part)
            if self.header is not None:
                self.header += part[:HEADER_BYTES - len(self.header)]
                if len(self.header) == HEADER_BYTES:
                    name = call_name(self.header)
                    self.header = None
                    if name:
                        self.counter[name] += 1


class Relay:
    """Listens on (addr, port) for each port and connects on to (to_addr, port)."""

    def __init__(self, addr, to_addr, ports):
        self.counter = Counter()
        self.to_addr = to_addr
        self.selector = selectors.DefaultSelector()
        self.is_stopping = False
        for port in ports:
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((addr, port))
            listener.listen(16)
            self.selector.register(listener, selectors.EVENT_READ, ("accept", port))
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def accept(self, listener, port):
        client, _ = listener.accept()
        server = socket.create_connection((self.to_addr, port))
        for sock in (client, server):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.selector.register(client, selectors.EVENT_READ,
                               ("pass", server, Stream(self.counter)))
        self.selector.register(server, selectors.EVENT_READ, ("pass", client, None))

    def pass_on(self, source, target, stream):
        try:
            data = source.recv(1 << 20)
            if data:
                if stream:
                    stream.feed(data)
                target.sendall(data)
                return
        except OSError:
            pass
        for sock in (source, target):
            try:
                self.selector.unregister(sock)
            except KeyError:
                pass
            sock.close()

    def run(self):
        while not self.is_stopping:
            for key, _ in self.selector.select(0.2):
                # An earlier event of this round may have closed it.
                if key.fileobj.fileno() < 0:
                    continue
                if key.data[0] == "accept":
                    self.accept(key.fileobj, key.data[1])
                else:
                    self.pass_on(key.fileobj, key.data[1], key.data[2])

    def take(self):
        """The counts since the last time."""
        counts = dict(self.counter)
        self.counter.clear()
        return counts

    def stop(self):
        self.is_stopping = True
        self.thread.join(2)
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()
