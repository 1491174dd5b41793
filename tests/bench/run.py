#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Measure a re-exporting server against its upstream and against the stock proxy.

Every job runs on all targets back to back, in an order that rotates from repeat to repeat, and
only ratios within one repeat are judged: absolute figures of a shared machine mean little.
"""

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import checks
import jobs
import report
import servers

TARGETS = ("direct", "proxy_v4", "ssc", "direct2")
# Strangers on the machine may use this much of one core for it to count as quiet.
QUIET_CORES = 0.25


def parse_args():
    parser = argparse.ArgumentParser(
        prog="run bench", description=__doc__.split("\n", maxsplit=1)[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--jobs", default="all", help="comma list of " + ", ".join(jobs.NAMES))
    parser.add_argument("--targets", default="direct,proxy_v4,ssc",
                        help="comma list; direct2 measures the upstream again, for the noise")
    parser.add_argument("--versions", default="3,4", help="NFS versions of the client")
    parser.add_argument("--malloc", default="tuned,stock",
                        help="tuned: glibc keeps freed memory in all processes; stock: as is")
    parser.add_argument("--reps", type=int, default=10, help="repeats")
    parser.add_argument("--quick", action="store_true", help="2 repeats of 1 second")
    parser.add_argument("--runtime", type=int, default=2, help="seconds of one fio run")
    parser.add_argument("--quiet-wait", type=float, default=20,
                        help="longest wait for a quiet machine before one run, in seconds")
    parser.add_argument("--net", default="127.0.5", help="first three numbers of the addresses")
    parser.add_argument("--out", default=None, help="folder of results (default build/bench)")
    parser.add_argument("--tools", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--module", default=None, help="path of libfsalssc.so")
    args = parser.parse_args()
    if args.quick:
        args.reps, args.runtime = 2, 1
    for key, known in (("jobs", jobs.NAMES), ("targets", TARGETS), ("versions", ("3", "4")),
                       ("malloc", ("tuned", "stock"))):
        words = known if getattr(args, key) == "all" else getattr(args, key).split(",")
        for word in words:
            if word not in known:
                parser.error(f"--{key}: '{word}' is none of {', '.join(known)}")
        setattr(args, key, list(words))
    if "direct" not in args.targets:
        args.targets.insert(0, "direct")
    return args


def wait_until_quiet(bench, limit_s):
    """Wait until strangers leave the CPU alone; the seconds that it took."""
    start = time.monotonic()
    while time.monotonic() - start < limit_s:
        watch = jobs.Watch(bench)
        time.sleep(0.3)
        if watch.finish(0)["strangers"] < QUIET_CORES:
            break
    return time.monotonic() - start


class Run:
    """One invocation: its options, its servers, its rows."""

    def __init__(self, args, bench):
        self.args = args
        self.bench = bench
        self.rows = []
        self.failures = []
        self.extra = {}

    def progress(self, text):
        print(f"# {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)

    def start_servers(self, malloc):
        bench = self.bench
        upstream = bench.make("direct")
        bench.start(upstream, malloc)
        jobs.lay_out(bench, upstream.url(3), malloc)
        for target in self.args.targets:
            if target not in ("direct", "direct2"):
                bench.start(bench.make(target), malloc)

    def server(self, target):
        return self.bench.servers["direct" if target == "direct2" else target]

    def one(self, name, target, version, malloc, rep, measure):
        """Measure once and keep the row; a failure is noted and does not end the run."""
        waited_s = wait_until_quiet(self.bench, self.args.quiet_wait)
        key = {"target": target, "version": version, "malloc": malloc, "rep": rep,
               "waited_s": round(waited_s, 1)}
        try:
            for job_name, row in measure(self.server(target)).items():
                self.rows.append({"job": job_name, **key, **row})
        except servers.BenchError as error:
            self.failures.append({"job": name, **key, "error": str(error)})
            self.progress(f"FAILED {name} on {target} v{version}: {error}")
            server = self.server(target)
            self.progress(f"the log of '{server.name}' ends with\n" + server.log_tail())
            if not server.is_running():
                self.progress(f"'{server.name}' had ended and is started again")
                self.bench.start(server, malloc)

    def order(self, rep):
        shift = rep % len(self.args.targets)
        return self.args.targets[shift:] + self.args.targets[:shift]

    def plan(self, malloc):
        """(name, version, function that measures one server) of all repeated jobs."""
        args, bench = self.args, self.bench
        for job in jobs.JOBS:
            if job.name not in args.jobs or malloc not in job.bars:
                continue
            for version in args.versions:
                yield job.name, version, (
                    lambda server, rep, job=job, version=version: {
                        job.name: jobs.measure_fio(bench, job, server, version, args.runtime,
                                                   malloc)})
        if "meta" in args.jobs and malloc == "tuned":
            for version in args.versions:
                yield "meta", version, (
                    lambda server, rep, version=version: jobs.measure_meta(
                        bench, server, version, malloc, f"meta.{server.name}.{version}.{rep}"))

    def repeat(self, malloc):
        plan = list(self.plan(malloc))
        if not plan:
            return
        self.start_servers(malloc)
        for rep in range(self.args.reps):
            start = time.monotonic()
            for name, version, measure in plan:
                for target in self.order(rep):
                    self.one(name, target, version, malloc, rep,
                             lambda server, rep=rep, measure=measure: measure(server, rep))
            self.progress(f"malloc {malloc}: repeat {rep + 1} of {self.args.reps} took "
                          f"{time.monotonic() - start:.0f} s")
        self.bench.stop()

    def once(self, name, function):
        """A part that is not repeated, with servers of its own."""
        if name not in self.args.jobs:
            return
        self.progress(name)
        try:
            self.extra[name] = function(self.bench, self.args, self.progress)
        except servers.BenchError as error:
            self.failures.append({"job": name, "error": str(error)})
            self.progress(f"FAILED {name}: {error}")
        finally:
            self.bench.stop()

    def all(self):
        for malloc in self.args.malloc:
            self.repeat(malloc)
        self.once("calls", checks.count_calls)
        self.once("memory", checks.measure_memory)
        self.once("listing", checks.measure_listing)


def machine():
    """Where and with what the figures were taken."""
    def output(*command):
        try:
            return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True, check=False).stdout.strip()
        except OSError:
            return ""

    model = ""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    versions = output("dpkg-query", "-W", "-f=${Package} ${Version}\n", "nfs-ganesha",
                      "nfs-ganesha-proxy-v4", "libnfs13", "fio", "libc6")
    return {"cpu": model, "cores": os.cpu_count(), "kernel": platform.release(),
            "packages": versions.splitlines(),
            "commit": output("git", "-C", os.path.dirname(os.path.abspath(__file__)),
                             "rev-parse", "--short=12", "HEAD")}


def write_results(out, result):
    os.makedirs(out, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    table = report.markdown(result)
    for suffix, text in (("json", json.dumps(result, indent=1)), ("md", table),
                         ("svg", report.svg(result))):
        path = os.path.join(out, f"bench-{stamp}.{suffix}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        shutil.copyfile(path, os.path.join(out, f"latest.{suffix}"))
    print(table)
    print(f"Results: {os.path.join(out, f'bench-{stamp}')}.json, .md and .svg")


def stop_on_signal(number, _frame):
    raise KeyboardInterrupt(signal.Signals(number).name)


def main():
    args = parse_args()
    if os.geteuid() != 0:
        sys.exit("bench: the servers need root: sudo ./run bench")
    if "ssc" in args.targets and not (args.module and os.path.exists(args.module)):
        sys.exit("bench: libfsalssc.so is not built (./run build), or leave it out: "
                 "--targets direct,proxy_v4")
    signal.signal(signal.SIGTERM, stop_on_signal)
    tools = {"engine": f"{args.tools}/fio_nfs.so", "meta": f"{args.tools}/meta",
             "shim": f"{args.tools}/norpcbind.so"}
    work = tempfile.mkdtemp(prefix="fsal-ssc-bench.")
    bench = servers.Bench(work, args.net, args.module and os.path.abspath(args.module), tools)
    run = Run(args, bench)
    start = time.time()
    status = 0
    try:
        bench.prepare()
        run.all()
    except KeyboardInterrupt:
        run.progress("interrupted; what was measured follows")
        status = 130
    except servers.BenchError as error:
        run.progress(str(error))
        status = 1
    finally:
        bench.clean()
        shutil.rmtree(work, ignore_errors=True)
    result = {"start": int(start), "seconds": round(time.time() - start),
              "options": {key: value for key, value in vars(args).items()
                          if key not in ("tools", "module")},
              "machine": machine(), "rows": run.rows, "extra": run.extra,
              "failures": run.failures}
    if run.rows or run.extra:
        write_results(args.out, result)
    if run.failures:
        print(f"bench: {len(run.failures)} measurements failed, see above", file=sys.stderr)
        status = status or 1
    sys.exit(status)


if __name__ == "__main__":
    main()
