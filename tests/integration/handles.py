# SPDX-License-Identifier: LGPL-3.0-or-later
"""handles.py save|load HOST PORT FILE: what a client holds when its server restarts, for
190-handles.sh. `save` notes handles below /re, and half of a listing; `load` uses them."""

import json
import sys

import nfs41
from nfs41 import SIZE, name_of


def save(nfs, path):
    state = {"root": nfs.root.hex(), "names": []}
    for name in ("file", "dir"):
        status, fh = nfs.lookup(nfs.root, name)
        assert status == nfs41.OK, name_of(status)
        state[name] = fh.hex()
    status, names, verifier, _ = nfs.readdir(bytes.fromhex(state["dir"]), maxcount=20000)
    assert status == nfs41.OK and len(names) > 100, (name_of(status), len(names))
    state["names"] = [name for name, _ in names]
    state["cookie"] = names[-1][1]
    state["verifier"] = verifier.hex()
    with open(path, "w", encoding="utf-8") as file:
        json.dump(state, file)


def load(nfs, path):
    with open(path, encoding="utf-8") as file:
        state = json.load(file)
    assert nfs.root.hex() == state["root"], "the root's handle changed"
    status, size = nfs.attribute(bytes.fromhex(state["file"]), SIZE)
    assert (status, size) == (nfs41.OK, 4096), (name_of(status), size)
    names, cookie, end = state["names"], state["cookie"], False
    verifier = bytes.fromhex(state["verifier"])
    while not end:
        status, more, verifier, end = nfs.readdir(bytes.fromhex(state["dir"]), cookie, verifier)
        assert status == nfs41.OK and (more or end), name_of(status)
        names += [name for name, _ in more]
        cookie = more[-1][1] if more else cookie
    print(len(names), len(set(names)))


def main():
    what, host, port, path = sys.argv[1:]
    nfs = nfs41.Nfs(host, int(port), "/re", f"client {what}")
    {"save": save, "load": load}[what](nfs, path)


if __name__ == "__main__":
    main()
