# SPDX-License-Identifier: LGPL-3.0-or-later
"""Asynchronous copies between two files of a re-export whose upstream can be stopped in the middle.

usage: async.py PART HOST PORT UPSTREAM_PID SIZE
The export has a file `src` of SIZE bytes. Prints "ok - ..." and "not ok - ..." lines.
"""

import os
import signal
import sys
import time

import nfs42copy
from nfs42copy import (ADMIN_REVOKED, BAD_STATEID, CB_PATH_DOWN, COMPLETE_ALREADY, DELAY, OK,
                       SEQ_MISORDERED, CopyClient, name_of)

HOST, PORT, UPSTREAM, SIZE = sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
FILE_SYNC, BOTH_WAYS = 2, 7


def check(what, good, *shown):
    print(("ok - " if good else "not ok - ") + what + ("" if good else f": {shown}"), flush=True)


def same(what, have, want):
    check(what, have == want, have, want)


def stop():
    os.kill(UPSTREAM, signal.SIGSTOP)


def go_on():
    os.kill(UPSTREAM, signal.SIGCONT)


def client(who, back=True):
    return CopyClient(HOST, PORT, "/re", f"{who}-{os.getpid()}", back)


class Copy:
    """A COPY of all of src to the file `name`, which is created."""

    def __init__(self, c, name, sync=False, stopped=False):
        self.c = c
        status, self.src, self.src_id, _ = c.open(c.root, "src", access=nfs42copy.nfs41.READ)
        assert status == OK, name_of(status)
        status, self.dst, self.dst_id, _ = c.open(c.root, name, create="unchecked", size=0)
        assert status == OK, name_of(status)
        result = c.copy(self.src, self.src_id, self.dst, self.dst_id, SIZE, sync)
        if stopped:
            stop()
        self.slot_seq = c.slot_seq
        self.session = c.session
        self.status, self.stateid, self.count, self.committed, self.verifier, self.sync = result
        self.is_async = self.status == OK and self.stateid is not None

    def ask(self, fh=None):
        return self.c.offload_status(fh or self.dst, self.stateid)

    def cancel(self):
        return self.c.offload_cancel(self.dst, self.stateid)

    def ended(self, seconds=30):
        """Wait until OFFLOAD_STATUS says so; its result."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            result = self.ask()
            if result[0] != OK or result[2] is not None:
                break
            time.sleep(0.05)
        return result


def part_once():
    c = client("once")
    copy = Copy(c, "once", stopped=True)
    same("COPY is answered", name_of(copy.status), "OK")
    check("asynchronously", copy.is_async and not copy.sync, copy.stateid, copy.sync)
    same("with seqid 1", copy.stateid[:4], b"\0\0\0\1")
    same("and no bytes yet", copy.count, 0)
    status, count, ended = copy.ask()
    same("OFFLOAD_STATUS of a running copy", (status, ended), (OK, None))
    check("says how far it is", count < SIZE, count)
    same("OFFLOAD_STATUS with seqid 0",
         c.offload_status(copy.dst, bytes(4) + copy.stateid[4:])[0], BAD_STATEID)
    other = client("other")
    same("OFFLOAD_STATUS of another client",
         other.offload_status(other.root, copy.stateid)[0], BAD_STATEID)
    same("OFFLOAD_CANCEL of another client",
         other.offload_cancel(other.root, copy.stateid), BAD_STATEID)
    same("no callback before the end", c.wait(1, 1), 0)
    go_on()
    counts = []
    while not c.callbacks:
        status, count, ended = copy.ask()
        counts.append(count)
        if ended is not None:
            break
        c.wait(1, 0.02)
    check("the count never decreases", counts == sorted(counts), counts)
    same("a callback comes", c.wait(1, 30), 1)
    callback = c.callbacks[0]
    same("to the program", (callback.program, callback.version, callback.procedure),
         (0x40000000, 1, 1))
    same("in minor version 2", callback.minor, 2)
    same("of the session", callback.session, c.session)
    same("in slot 0, for the first time", (callback.slot, callback.sequence, callback.highest),
         (0, 1, 0))
    same("refers to the COPY", callback.referring, [(copy.session, [(copy.slot_seq, 0)])])
    same("for the destination", callback.fh, copy.dst)
    same("by its stateid", callback.stateid, copy.stateid)
    same("which is copied", (callback.status, callback.count), (OK, SIZE))
    same("and committed", callback.committed, FILE_SYNC)
    same("with COPY's verifier", callback.verifier, copy.verifier)
    same("which is COMMIT's", c.commit(copy.dst)[1], copy.verifier)
    same("OFFLOAD_STATUS of an ended copy", copy.ask(), (OK, SIZE, OK))
    same("OFFLOAD_CANCEL of an ended copy", copy.cancel(), COMPLETE_ALREADY)
    same("changes nothing", copy.ask(), (OK, SIZE, OK))
    same("the callback is not repeated", c.wait(2, 4), 1)
    copy = Copy(c, "twice")
    same("another copy: another callback", c.wait(2, 30), 2)
    same("with the next number", (c.callbacks[1].slot, c.callbacks[1].sequence), (0, 2))
    same("of its own", c.callbacks[1].stateid, copy.stateid)
    check("with a stateid of its own", copy.stateid != callback.stateid)


def part_again():
    c = client("again")
    c.answers = [(OK, DELAY), (OK, DELAY)]
    copy = Copy(c, "again")
    same("DELAY: the callback comes again", c.wait(3, 30), 3)
    times = [callback.at for callback in c.callbacks]
    check("not at once", times[1] - times[0] > 0.5 and times[2] - times[1] > 1, times)
    same("with numbers of its own", [callback.sequence for callback in c.callbacks], [1, 2, 3])
    same("no more after OK", c.wait(4, 5), 3)
    same("the copy is known", copy.ask(), (OK, SIZE, OK))

    c.callbacks.clear()
    c.answers = [(DELAY, None)]
    Copy(c, "again")
    same("DELAY of CB_SEQUENCE: it comes again", c.wait(2, 30), 2)
    same("with the same number", [callback.sequence for callback in c.callbacks], [4, 4])

    c.callbacks.clear()
    c.answers = [(SEQ_MISORDERED, None)]
    Copy(c, "again")
    same("SEQ_MISORDERED: it comes again", c.wait(2, 30), 2)
    same("with the number before", [callback.sequence for callback in c.callbacks], [5, 4])

    c.callbacks.clear()
    c.answers = [(OK, 10036)]
    Copy(c, "again")
    same("another error is an answer", (c.wait(1, 30), c.wait(2, 3)), (1, 1))


def part_drop():
    c = client("drop")
    copy = Copy(c, "drop", stopped=True)
    c.reconnect()
    same("without a path the copy goes on", copy.ask()[0::2], (OK, None))
    go_on()
    same("to its end", copy.ended(), (OK, SIZE, OK))
    end = time.monotonic() + 10
    while not c.flags & CB_PATH_DOWN and time.monotonic() < end:
        copy.ask()
        time.sleep(0.1)
    check("SEQUENCE says that the path is down", c.flags & CB_PATH_DOWN, c.flags)
    same("no callback without a path", c.wait(1, 1), 0)
    same("the connection is bound both ways", c.bind(BOTH_WAYS), 3)
    same("then the callback comes", c.wait(1, 3), 1)
    same("with the outcome", (c.callbacks[0].status, c.callbacks[0].count), (OK, SIZE))
    copy.ask()
    same("SEQUENCE is content", c.flags & CB_PATH_DOWN, 0)
    same("once", c.wait(2, 4), 1)
    copy = Copy(c, "drop")
    check("the next copy is asynchronous", copy.is_async)
    same("and called back", c.wait(2, 30), 2)

    copy = Copy(c, "drop", stopped=True)
    c.reconnect(bind=BOTH_WAYS)
    go_on()
    same("bound before the end: called back", c.wait(3, 30), 3)

    c.reconnect()
    copy = Copy(c, "drop")
    check("without a path a copy is synchronous", copy.status == OK and not copy.is_async, copy.status)
    check("and says so", copy.sync and copy.count > 0, copy.sync, copy.count)
    client("plain", back=False)
    copy = Copy(client("plain", back=False), "drop")
    check("so it is without a back channel", copy.status == OK and not copy.is_async)


def part_silent():
    c = client("silent")
    c.answers = [None]
    copy = Copy(c, "silent")
    same("a callback comes", c.wait(1, 30), 1)
    check("while it is not answered there is no other", c.wait(2, 10) == 1)
    end = time.monotonic() + 20
    while not c.flags & CB_PATH_DOWN and time.monotonic() < end:
        copy.ask()
        time.sleep(0.2)
    check("then the path counts as down", c.flags & CB_PATH_DOWN, c.flags)
    c.bind(BOTH_WAYS)
    same("bound again: the callback comes again", c.wait(2, 10), 2)
    same("OFFLOAD_STATUS knows it", copy.ask(), (OK, SIZE, OK))


def part_cancel():
    c = client("cancel")
    copy = Copy(c, "cancel", stopped=True)
    begun = time.monotonic()
    same("OFFLOAD_CANCEL of a running copy", copy.cancel(), OK)
    check("at once", time.monotonic() - begun < 2, time.monotonic() - begun)
    same("then it is not known", copy.ask()[0], BAD_STATEID)
    same("nor to be cancelled", copy.cancel(), BAD_STATEID)
    go_on()
    same("no callback", c.wait(1, 3), 0)
    for i in range(20):
        copy = Copy(c, "cancel")
        time.sleep(0.005 * i)
        before = len(c.callbacks)
        status = copy.cancel()
        if status == OK:
            same("cancelled: no callback", c.wait(before + 1, 0.3), before)
        else:
            same("too late to cancel", status, COMPLETE_ALREADY)
            same("one callback", c.wait(i + 1 if before == i else before + 1, 5) >= before, True)
    same("numbers go on", [callback.sequence for callback in c.callbacks],
         list(range(1, len(c.callbacks) + 1)))


def part_gone():
    c = client("gone")
    copy = Copy(c, "gone", stopped=True)
    same("DESTROY_SESSION while it copies", c.destroy_session(), OK)
    c.create_session(2)
    same("the copy is known in a new session", copy.ask()[0::2], (OK, None))
    go_on()
    same("where the callback comes", c.wait(1, 30), 1)
    same("of the new session", c.callbacks[0].session, c.session)
    same("referring to the old one", c.callbacks[0].referring, [(copy.session, [(copy.slot_seq, 0)])])

    copies = [Copy(c, f"gone{i}", stopped=i == 3) for i in range(4)]
    check("four copies", all(copy.is_async for copy in copies))
    for copy in copies:
        c.close(copy.dst, copy.dst_id)
        c.close(copy.src, copy.src_id)
    same("DESTROY_SESSION", c.destroy_session(), OK)
    same("DESTROY_CLIENTID while they copy", c.destroy_clientid(), OK)
    time.sleep(2.5)
    go_on()
    c = client("after")
    copy = Copy(c, "after")
    same("another client's copy", (copy.is_async, c.wait(1, 30)), (True, 1))


def part_many():
    c = client("many")
    copies = [Copy(c, f"many{i}", stopped=False) for i in range(3)]
    stop()
    go_on()
    same("three at once: three callbacks", c.wait(3, 60), 3)
    same("one each", sorted(callback.stateid for callback in c.callbacks),
         sorted(copy.stateid for copy in copies))
    over = [Copy(client(f"many{i}"), f"over{i}") for i in range(8)]
    check("over the limit some are synchronous", any(copy.sync for copy in over) or
          all(copy.is_async for copy in over))
    for copy in over:
        if copy.is_async:
            same("the others are called back", copy.c.wait(1, 60), 1)
        else:
            check("a short count", 0 < copy.count <= SIZE, copy.count)


def part_hold():
    """Copies run, one callback is not answered; the script ends the server, or the export."""
    c = client("hold")
    c.answers = [None]
    copy = Copy(c, "hold0")
    same("a callback that is not answered", c.wait(1, 30), 1)
    copies = [Copy(c, f"hold{i}", stopped=i == 2) for i in range(1, 3)]
    check("copies run", all(copy.is_async for copy in copies))
    print("ready", flush=True)
    sys.stdin.readline()
    go_on()
    try:
        c.wait(3, 8)
    except (EOFError, OSError):
        print("# the server is gone", flush=True)
        return
    same("both are called back", len(c.callbacks), 3)
    check("beside the one that waits", all(callback.slot > 0 for callback in c.callbacks[1:]),
          [callback.slot for callback in c.callbacks])
    for copy in copies:
        said = [(callback.status, callback.count < SIZE) for callback in c.callbacks
                if callback.stateid == copy.stateid]
        same("as revoked", said, [(ADMIN_REVOKED, True)])
        same("and known as such", copy.ask(c.walk("/other"))[0::2], (OK, ADMIN_REVOKED))


def part_expire():
    """A client that is not heard of any more while its copy runs; the script looks for its end."""
    c = client("expire")
    copy = Copy(c, "expire", stopped=True)
    check("a copy runs", copy.is_async)
    c.socket.close()
    print(f"client {c.client:x}", flush=True)


globals()["part_" + sys.argv[1]]()
