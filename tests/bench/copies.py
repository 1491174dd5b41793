#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Measure server-side copy against the same copy through the client.

One server re-exports an upstream (place "re-export") and stacks on a local file system ("stacked");
both are in memory. The client is nfs42, which copies by COPY or by READ and WRITE. Ways take turns within
a repeat, and only ratios within one repeat are judged.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import copies_report
import jobs
import relay
import run
import servers

MIB = jobs.MIB
GIB = 1 << 30
PARTS = ("large", "small", "sparse", "many", "huge", "calls")
# Where the place is: folder at the server, and on this machine within the exported data.
PLACES = {"re-export": ("/bench", ""), "stacked": ("/stack", "stack")}

LARGE_BYTES = 256 * MIB
SMALL_BYTES = (4096, 65536)
SMALL_ROUNDS = 1000
SPARSE_BYTES = 5 * GIB
SPARSE_PIECES = 16
MANY = 64
MANY_BYTES = 32 * MIB
HUGE_BYTES = 8 * GIB
# What else is to fit in memory beside the two huge files.
HUGE_SPARE_BYTES = 3 * GIB
CALLS_COPIES = 100
LIMIT_S = 170

WAYS = {"client": ["rwcopy"], "async": ["copy", "--async"], "sync": ["copy", "--sync"]}


def parse_args():
    parser = argparse.ArgumentParser(
        prog="run bench copy", description=__doc__.split("\n", maxsplit=1)[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--parts", default="all", help="comma list of " + ", ".join(PARTS))
    parser.add_argument("--places", default="all", help="comma list of " + ", ".join(PLACES))
    parser.add_argument("--malloc", default="tuned", choices=("tuned", "stock"),
                        help="tuned: glibc keeps freed memory in all processes; stock: as is")
    parser.add_argument("--reps", type=int, default=5, help="repeats")
    parser.add_argument("--quick", action="store_true", help="2 repeats, huge files of 1 GiB")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                        help="another value of a key of the SSC block")
    parser.add_argument("--set-export", action="append", default=[], metavar="KEY=VALUE",
                        help="another value of a key of the re-export")
    parser.add_argument("--quiet-wait", type=float, default=20,
                        help="longest wait for a quiet machine before one run, in seconds")
    parser.add_argument("--net", default="127.0.5", help="first three numbers of the addresses")
    parser.add_argument("--out", default=None, help="folder of results (default build/bench)")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.quick:
        args.reps = 2
    for key, known in (("parts", PARTS), ("places", tuple(PLACES))):
        words = known if getattr(args, key) == "all" else getattr(args, key).split(",")
        for word in words:
            if word not in known:
                parser.error(f"--{key}: '{word}' is none of {', '.join(known)}")
        setattr(args, key, list(words))
    return args


def parse_line(line):
    """What nfs42 prints: a word, then key=value."""
    row = {}
    for word in line.split()[1:]:
        key, _, value = word.partition("=")
        row[key] = float(value)
    return row


def key_value(item):
    """KEY=VALUE as configuration files have it."""
    return item.replace("=", " = ", 1)


def memory_kib(pid, key):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(key + ":"):
                return int(line.split()[1])
    raise servers.BenchError(f"no {key} of process {pid}")


def available_bytes():
    with open("/proc/meminfo", encoding="ascii") as meminfo:
        for line in meminfo:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


class Copies:
    """One invocation: its servers, its client, its rows."""

    def __init__(self, args, bench):
        self.args = args
        self.bench = bench
        self.nfs42 = f"{args.build}/tests/nfs42"
        self.server = None
        self.rows = []
        self.failures = []

    def progress(self, text):
        print(f"# {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)

    # ---- servers and files ----

    def start_servers(self, upstream_addr=None):
        bench = self.bench
        bench.start(bench.make("direct"), self.args.malloc)
        self.server = bench.make("ssc", upstream_addr=upstream_addr,
                                 extra="".join(f" {key_value(item)};"
                                               for item in self.args.set_export))
        with open(os.path.join(self.server.folder, "conf"), "a", encoding="ascii") as conf:
            conf.write(
                "EXPORT {\n\tExport_Id = 2;\n\tPath = \"" + self.local("stacked", "") + "\";\n"
                "\tPseudo = \"/stack\";\n\tFilesystem_Id = 192.169;\n"
                "\tFSAL { Name = SSC; FSAL { Name = VFS; } }\n}\nSSC {\n" +
                "".join(f"\t{key_value(item)};\n" for item in self.args.set) + "}\n")
        bench.start(self.server, self.args.malloc)

    def path(self, place, name):
        return f"{PLACES[place][0]}/{name}"

    def local(self, place, name):
        """The same file as this machine sees it."""
        return os.path.join(self.bench.data, PLACES[place][1], name).rstrip("/")

    def make_sparse(self):
        """Before the servers start: nothing may change behind them."""
        os.makedirs(self.local("stacked", ""), exist_ok=True)
        for place in self.args.places:
            with open(self.local(place, "sparse"), "wb") as file:
                file.truncate(SPARSE_BYTES)
                for i in range(SPARSE_PIECES):
                    file.seek(SPARSE_BYTES // SPARSE_PIECES * i + 12 * MIB)
                    file.write(os.urandom(MIB))
            with open(self.local(place, "dense"), "wb") as file:
                file.write(os.urandom(SPARSE_PIECES * MIB))

    # ---- the client ----

    def command(self, *words):
        return [self.nfs42, self.server.addr, str(servers.NFS_PORT), *words]

    def client(self, *words):
        """Run nfs42; what it prints, and its CPU seconds."""
        status, out, err, cpu_s = jobs.run_command(self.command(*words), LIMIT_S,
                                                   jobs.client_env(self.args.malloc))
        if status != 0:
            raise servers.BenchError(f"nfs42 {' '.join(words)}: {status} {err.strip()[:300]}")
        row = parse_line(out.strip().splitlines()[-1]) if out.strip() else {}
        row["client_cpu_s"] = cpu_s
        return row

    def fill(self, place, name, size):
        self.client("fill", self.path(place, name), str(size))

    def remove(self, place, name):
        self.client("rm", self.path(place, name))

    def keep(self, part, place, way, rep, row):
        self.rows.append({"part": part, "place": place, "way": way, "rep": rep, **row})

    def watched(self, measure):
        """Run it on a quiet machine; its row with the CPU of all."""
        run.wait_until_quiet(self.bench, self.args.quiet_wait)
        watch = jobs.Watch(self.bench)
        row = measure()
        row.update(watch.finish(row["client_cpu_s"]))
        return row

    def copy(self, part, place, way, rep, names, options=(), label=None):
        """One copy to a new file; kept as a row."""
        src, dst = names
        try:
            row = self.watched(lambda: self.client(
                WAYS[way][0], self.path(place, src), self.path(place, dst), *WAYS[way][1:],
                *options))
            self.keep(part, place, label or way, rep, row)
        finally:
            self.remove(place, dst)
        return row

    def local_cp(self, place, rep, names):
        src, dst = (self.local(place, name) for name in names)

        def measure():
            start = time.perf_counter()
            status, _, err, cpu_s = jobs.run_command(["cp", src, dst], LIMIT_S, os.environ)
            if status != 0:
                raise servers.BenchError(f"cp: {err.strip()}")
            return {"seconds": time.perf_counter() - start, "client_cpu_s": cpu_s,
                    "bytes": os.path.getsize(src)}

        try:
            self.keep("large", place, "cp", rep, self.watched(measure))
        finally:
            if os.path.exists(dst):
                os.unlink(dst)

    # ---- parts ----

    def large(self, place):
        self.fill(place, "large", LARGE_BYTES)
        names = ("large", "large.copy")
        ways = ["client", "async", "sync"] + (["cp"] if place == "stacked" else [])
        for rep in range(-1, self.args.reps):
            for i in range(len(ways)):
                way = ways[(i + rep) % len(ways)]
                if way == "cp":
                    self.local_cp(place, rep, names)
                else:
                    self.copy("large", place, way, rep, names)
        self.remove(place, "large")

    def small(self, place):
        for size in SMALL_BYTES:
            self.fill(place, "small", size)
            for rep in range(-1, self.args.reps):
                row = self.watched(lambda: self.client(
                    "small", str(SMALL_ROUNDS), "both", self.path(place, "small"),
                    self.path(place, "small.copy")))
                self.keep("small", place, f"{size // 1024} KiB", rep, row)
            self.remove(place, "small.copy")
            self.remove(place, "small")

    def sparse(self, place):
        for rep in range(-1, self.args.reps):
            for way in ("async", "sync"):
                # Without knowledge of holes 5 GiB are read; once is enough.
                if place == "stacked" or (rep == 0 and way == "async"):
                    self.copy("sparse", place, way, rep, ("sparse", "sparse.copy"))
                if place == "stacked" or way == "async":
                    self.copy("dense", place, way, rep, ("dense", "dense.copy"))

    def many(self, place):
        for i in range(MANY):
            self.fill(place, f"many.{i}", MANY_BYTES)
        self.fill(place, "large", LARGE_BYTES)
        for rep in range(-1, self.args.reps):
            for way in ("async", "sync"):
                single = self.copy("single", place, way, rep, ("large", "large.copy"))
                expected_s = MANY * MANY_BYTES / single["bytes"] * single["seconds"]
                try:
                    self.keep("many", place, way, rep, self.watched(
                        lambda way=way, limit_s=expected_s: self.many_once(place, way, limit_s)))
                finally:
                    for i in range(MANY):
                        self.remove(place, f"many.copy.{i}")
        for i in range(MANY):
            self.remove(place, f"many.{i}")
        self.remove(place, "large")

    def many_once(self, place, way, expected_s):
        pid = self.server.pid
        with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
        before_kib = memory_kib(pid, "VmRSS")
        # For most of the time that the copies will take.
        with subprocess.Popen(
                self.command("getattr-loop", self.path(place, "large"),
                             f"{max(0.2, expected_s * 0.8):.2f}"),
                stdout=subprocess.PIPE, text=True,
                env=jobs.client_env(self.args.malloc)) as other:
            row = self.client("copies", str(MANY), WAYS[way][0], self.path(place, "many.%"),
                              self.path(place, "many.copy.%"), *WAYS[way][1:])
            line = other.communicate(timeout=LIMIT_S)[0]
        if other.returncode != 0:
            raise servers.BenchError("getattr-loop failed")
        row["memory_kib"] = memory_kib(pid, "VmHWM") - before_kib
        row.update({"getattr_" + key: value for key, value in parse_line(line).items()})
        return row

    def huge(self, place):
        size = HUGE_BYTES if not self.args.quick else GIB
        size = min(size, (available_bytes() - HUGE_SPARE_BYTES) // 2 // GIB * GIB)
        if size < GIB:
            raise servers.BenchError("huge: not enough memory")
        self.fill(place, "huge", size)
        names = ("huge", "huge.copy")
        # Memory that this machine has not used for long is dear at first: the same for all ways.
        warm = self.local(place, "huge.warm")
        jobs.run_command(["cp", self.local(place, "huge"), warm], LIMIT_S, os.environ)
        os.unlink(warm)
        self.copy("huge", place, "client", 0, names)
        self.copy("huge", place, "async", 0, names)
        self.copy("huge", place, "async", 0, names, ["--chunk", str(size // 2)], "async twice")
        self.keep("huge", place, "async beside", 0,
                  self.watched(lambda: self.two_halves(place, names, size)))
        self.remove(place, names[1])
        self.remove(place, names[0])

    def two_halves(self, place, names, size):
        src, dst = (self.path(place, name) for name in names)
        half = str(size // 2)
        env = jobs.client_env(self.args.malloc)
        begin = time.perf_counter()
        with subprocess.Popen(self.command("copy", src, dst, "--async", "--keep", "--count", half,
                                           "--src-off", half, "--dst-off", half),
                              stdout=subprocess.PIPE, text=True, env=env) as other:
            row = self.client("copy", src, dst, "--async", "--keep", "--count", half)
            line = other.communicate(timeout=LIMIT_S)[0]
        if other.returncode != 0:
            raise servers.BenchError("the second half failed")
        second = parse_line(line)
        row["seconds"] = time.perf_counter() - begin
        row["client_cpu_s"] += second["cpu_s"]
        row["bytes"] += second["bytes"]
        return row

    def count_calls(self):
        """Calls to the upstream, counted between the two servers: of one server of their own."""
        bench = self.bench
        relay_addr = f"{bench.net}.14"
        counter = relay.Relay(relay_addr, f"{bench.net}.11", (servers.NFS_PORT, servers.MNT_PORT))
        try:
            self.start_servers(upstream_addr=relay_addr)
            for size in SMALL_BYTES + (4 * MIB,):
                self.fill("re-export", "counted", size)
                # What precedes the COPYs (open, close) is the same for any number of them.
                counts = [self.count_small(counter, size, n) for n in (1, 1 + CALLS_COPIES)]
                calls = {name: (counts[1].get(name, 0) - counts[0].get(name, 0)) / CALLS_COPIES
                         for name in counts[1]}
                self.keep("calls", "re-export", f"{size // 1024} KiB", 0,
                          {"calls": {name: n for name, n in calls.items() if n > 0}})
        finally:
            counter.stop()

    def count_small(self, counter, size, n):
        counter.take()
        self.client("small", str(n), "copy", self.path("re-export", "counted"),
                    self.path("re-export", f"counted.{size}"))
        return counter.take()

    def part(self, name, place):
        self.progress(f"{name}, {place}")
        try:
            getattr(self, name)(place)
        except servers.BenchError as error:
            self.failures.append({"part": name, "place": place, "error": str(error)})
            self.progress(f"FAILED {name}, {place}: {error}")
            self.progress("the log ends with\n" + self.server.log_tail())

    def all(self):
        self.make_sparse()
        self.start_servers()
        for name in self.args.parts:
            for place in self.args.places if name != "calls" else ():
                self.part(name, place)
        self.bench.stop()
        if "calls" in self.args.parts:
            self.progress("calls")
            self.count_calls()


def write_results(out, result):
    os.makedirs(out, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    table = copies_report.markdown(result)
    for suffix, text in (("json", json.dumps(result, indent=1)), ("md", table)):
        path = os.path.join(out, f"copy-{stamp}.{suffix}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        shutil.copyfile(path, os.path.join(out, f"latest-copy.{suffix}"))
    print(table)
    print(f"Results: {os.path.join(out, f'copy-{stamp}')}.json and .md")


def main():
    args = parse_args()
    if os.geteuid() != 0:
        sys.exit("bench: the servers need root: sudo ./run bench copy")
    for name in ("libfsalssc.so", "tests/nfs42", "tests/norpcbind.so"):
        if not os.path.exists(f"{args.build}/{name}"):
            sys.exit(f"bench: {name} is not built (./run build)")
    signal.signal(signal.SIGTERM, run.stop_on_signal)
    work = tempfile.mkdtemp(prefix="fsal-ssc-bench.")
    bench = servers.Bench(work, args.net, os.path.abspath(f"{args.build}/libfsalssc.so"),
                          {"shim": os.path.abspath(f"{args.build}/tests/norpcbind.so")})
    copies = Copies(args, bench)
    start, status = time.time(), 0
    try:
        bench.prepare()
        copies.all()
    except KeyboardInterrupt:
        copies.progress("interrupted; what was measured follows")
        status = 130
    except servers.BenchError as error:
        copies.progress(str(error))
        status = 1
    finally:
        bench.clean()
        shutil.rmtree(work, ignore_errors=True)
    # Repeat -1 warmed up.
    result = {"start": int(start), "seconds": round(time.time() - start),
              "options": {key: value for key, value in vars(args).items() if key != "build"},
              "machine": run.machine(), "rows": [row for row in copies.rows if row["rep"] >= 0],
              "failures": copies.failures}
    if result["rows"]:
        write_results(args.out or f"{args.build}/../bench", result)
    sys.exit(status or (1 if copies.failures else 0))


if __name__ == "__main__":
    main()
