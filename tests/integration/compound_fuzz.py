# SPDX-License-Identifier: LGPL-3.0-or-later
"""compound_fuzz.py HOST PORT PID SEED SECONDS: random compounds of random operations, some of them
damaged, from three clients at once, on files of two exports. Ends with 1 when the server stops
answering, and prints how far its memory grew after the first third."""

import random
import struct
import sys
import time

import nfs41
from nfs41 import ANONYMOUS, OK, OP, bitmap, opaque
from rawcompound import GARBAGE_ARGS, SUCCESS, TCP, Callable, Raw, clone, copy, op

EXPORTS = ("/re", "/stack")
FILES = ("a", "b", "empty")
ANSWER_S = 30
# LAYOUTERROR and LAYOUTSTATS leave their results without a number, which ends the connection: the
# server's own fault, with us and without.
DEADLY = (struct.pack(">I", 64), struct.pack(">I", 65))
CURRENT = struct.pack(">I12s", 1, bytes(12))


class Client:
    """Handles of all files, and one open of each with a stateid that may be gone."""

    def __init__(self, kind, host, port, who, rand):
        self.rand = rand
        self.nfs = kind(host, port, EXPORTS[0], who)
        self.files = []
        self.others = []
        for export in EXPORTS:
            root = self.nfs.walk(export)
            self.others += [root, self.nfs.lookup(root, "d")[1], self.nfs.lookup(root, "link")[1]]
            self.files += [self.nfs.lookup(root, name)[1] for name in FILES]
        self.stateids = {}
        self.copies = [ANONYMOUS]  # the latest that go on by themselves
        self.n_async = 0
        self.last = b""
        self.nfs.socket.settimeout(ANSWER_S)

    def open_all(self):
        for fh in self.files:
            code, _, stateid, _ = self.nfs.open(fh, access=self.rand.choice((1, 2, 3, 3, 3)))
            if code == OK:
                self.stateids[fh] = stateid

    def cut_down(self):
        """What random offsets have made huge would be copied for the rest of the time."""
        for fh in self.files:
            code, size = self.nfs.attribute(fh, nfs41.SIZE)
            if code == OK and size > 1 << 20:
                self.nfs.truncate(fh, ANONYMOUS, 300000)

    def random_fh(self):
        if self.rand.random() < 0.8:
            return self.rand.choice(self.files)
        if self.rand.random() < 0.8:
            return self.rand.choice(self.others)
        return self.rand.randbytes(self.rand.randrange(0, 129))

    def random_stateid(self, stateids):
        dice = self.rand.random()
        if dice < 0.75 and stateids:
            stateid = self.rand.choice(list(stateids.values()))
            return bytes(4) + stateid[4:] if self.rand.random() < 0.2 else stateid
        if dice < 0.95:
            return self.rand.choice((ANONYMOUS, CURRENT, b"\xff" * 16))
        return self.rand.randbytes(16)


def offset(rand):
    dice = rand.random()
    if dice < 0.6:
        return rand.choice((0, 0, 0, 1, 4095, 4096, 100000, 300000))
    if dice < 0.9:
        return rand.randrange(0, 400000)
    return rand.choice((1 << 63, (1 << 63) - 1, (1 << 64) - 1, (1 << 64) - 4096))


def special(rand):
    """Of READ and WRITE, since the server's own keep a state for ever when they refuse one."""
    return rand.choice((ANONYMOUS, b"\xff" * 16, bytes(15) + b"\1"))


def put(client, _):
    return op("PUTFH", opaque(client.random_fh()))


def copy_random(client, sid):
    rand = client.rand
    n = rand.choice((0,) * 12 + (1, 2, 9, 64))
    return copy(sid(), sid(), offset(rand), offset(rand), offset(rand), rand.randrange(2),
                n * TCP, n, rand.randrange(2))


def clone_random(client, sid):
    rand = client.rand
    return clone(sid(), sid(), offset(rand), offset(rand), offset(rand))


OPS = (
    (6, put),
    (4, lambda c, sid: op("SAVEFH")),
    (2, lambda c, sid: op("RESTOREFH")),
    (2, lambda c, sid: op("GETATTR", bitmap(c.rand.getrandbits(64)))),
    (6, copy_random),
    (2, clone_random),
    (2, lambda c, sid: op("OFFLOAD_STATUS", sid())),
    (2, lambda c, sid: op("OFFLOAD_STATUS", c.rand.choice(c.copies))),
    (1, lambda c, sid: op("OFFLOAD_CANCEL", sid())),
    (1, lambda c, sid: op("OFFLOAD_CANCEL", c.rand.choice(c.copies))),
    (1, lambda c, sid: op("COPY_NOTIFY", sid() + TCP)),
    (1, lambda c, sid: op("CLOSE", bytes(4) + sid())),
    (1, lambda c, sid: op("READ", special(c.rand) + struct.pack(">QI", offset(c.rand), c.rand.randrange(1, 9999)))),
    (1, lambda c, sid: op("WRITE", special(c.rand) + struct.pack(">QI", offset(c.rand), c.rand.randrange(3)) +
                          opaque(c.rand.randbytes(c.rand.randrange(1, 5000))))),
    (1, lambda c, sid: op("COMMIT", bytes(12))),
    (1, lambda c, sid: op("SEEK", sid() + struct.pack(">QI", offset(c.rand), c.rand.randrange(3)))),
    (1, lambda c, sid: op("PUTROOTFH")),
    (1, lambda c, sid: op(c.rand.choice((0, 1, 2, 76, 10044)))),
)


def saved_and_current(client, sid):
    """What most copies begin with, so that they get further than the first check."""
    source, target = client.rand.choice(client.files), client.rand.choice(client.files)
    mine = client.stateids
    return [op("PUTFH", opaque(source)), op("SAVEFH"), op("PUTFH", opaque(target)),
            copy_or_clone(client.rand, mine.get(source, ANONYMOUS), mine.get(target, sid()))]


def copy_or_clone(rand, source, target):
    places = [offset(rand) for _ in range(3)]
    if rand.random() < 0.3:
        return clone(source, target, *places)
    return copy(source, target, *places, synchronous=rand.randrange(2))


def learn_copy(client, rest):
    """Behind PUTFH, SAVEFH, PUTFH: a COPY that goes on by itself has a stateid."""
    if rest[24:36] == struct.pack(">III", OP["COPY"], OK, 1):
        client.copies = [*client.copies[-7:], rest[36:52]]
        client.n_async += 1


def random_ops(client, stateids):
    rand = client.rand
    sid = lambda: client.random_stateid(stateids)
    ops = saved_and_current(client, sid) if rand.random() < 0.5 else []
    makers = rand.choices([maker for _, maker in OPS], [weight for weight, _ in OPS],
                          k=rand.randrange(1, 12 - len(ops)))
    return ops + [maker(client, sid) for maker in makers]


def damaged(rand, body):
    """Cut, longer, or with other bytes."""
    dice = rand.random()
    if dice < 0.4:
        return body[:rand.randrange(0, len(body)) & ~3]
    if dice < 0.5:
        return body + rand.randbytes(4 * rand.randrange(1, 20))
    body = bytearray(body)
    for _ in range(rand.randrange(1, 4)):
        body[rand.randrange(len(body))] = rand.randrange(256)
    return bytes(body)


def once(client, stateids):
    """One compound; what the server made of it: its status, or None when it was not taken."""
    rand, nfs = client.rand, client.nfs
    ops = random_ops(client, stateids)
    n_ops = len(ops) + 1
    if rand.random() < 0.02:
        n_ops += rand.choice((-1, 1, 1000, 0x7fffffff))
    whole = nfs.arguments(ops, nfs.slot_seq + 1, rand.random() < 0.3, n_ops)
    if rand.random() < 0.1:
        n_head = len(whole) - sum(map(len, ops))
        while True:
            body = damaged(rand, whole[n_head:])
            if not any(body[i:i + 4] in DEADLY for i in range(0, len(body), 4)):
                break
        whole = whole[:n_head] + body
    client.last = whole
    accept, data = nfs.exchange(whole)
    assert accept in (SUCCESS, GARBAGE_ARGS), accept
    if accept != SUCCESS:
        return None
    code, n, rest = nfs.results(data)
    learn_copy(client, rest)
    nfs.slot_seq += n > 0
    if n > 0 and rand.random() < 0.05:
        assert nfs.exchange(whole)[0] == SUCCESS
    return code


def rss(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def main():
    host, port, pid, seed, seconds = sys.argv[1], *map(int, sys.argv[2:])
    rand = random.Random(seed)
    clients = [Client(kind, host, port, f"client {i}", rand)
               for i, kind in enumerate((Raw, Callable, Callable))]
    statuses, n, early = {}, 0, None
    start = time.monotonic()
    while time.monotonic() < start + seconds:
        if n % 100 == 0:
            for client in clients:
                client.open_all()
            clients[0].cut_down()
        client = rand.choice(clients)
        owner = client if rand.random() < 0.9 else rand.choice(clients)
        try:
            code = once(client, owner.stateids)
        except (AssertionError, OSError, EOFError) as error:
            print(f"compound {n}: {error!r}, arguments {client.last.hex()}")
            return 1
        statuses[code] = statuses.get(code, 0) + 1
        n += 1
        if early is None and time.monotonic() > start + seconds / 3:
            early = rss(pid)
    time.sleep(1)
    for client in clients:
        client.nfs.run(op("PUTROOTFH"))
    print(f"{n} compounds, {sum(c.n_async for c in clients)} copies that went on, {sum(len(c.nfs.callbacks) for c in clients)} callbacks")
    print("statuses " + ", ".join(f"{'garbage' if k is None else nfs41.name_of(k)} {v}" for k, v in
                                  sorted(statuses.items(), key=lambda item: -item[1])))
    print(f"grown {rss(pid) - early}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
