# SPDX-License-Identifier: LGPL-3.0-or-later
"""What is measured, and how one measurement is made."""

import json
import os
import subprocess
import threading
import time

import servers

MIB = 1 << 20
# Files that all targets share; laid out through the upstream before the others start.
FILE_BYTES = {"big": 256 * MIB, "rand": 64 * MIB}
SEED_FILES = 4
SEED_BYTES = 64 * MIB
# A run that hangs is given up after its planned time and this.
HANG_LIMIT_S = 60

META_FILES = 3000
META_DEPTH = 16
LISTING_SIZES = (10000, 50000, 100000)


class Job:
    """A fio job. bars: the issue's target ratio to direct, by malloc setting."""

    def __init__(self, name, rw, block, depth, file, bars, n_jobs=1):
        self.name = name
        self.rw = rw
        self.block = block
        self.depth = depth
        self.file = file
        self.bars = bars
        self.n_jobs = n_jobs
        self.direction = "read" if rw.endswith("read") else "write"
        self.is_stream = block >= MIB

    def fio_args(self):
        args = [f"--rw={self.rw}", f"--bs={self.block}", f"--iodepth={self.depth}",
                "--norandommap=1", "--randrepeat=0", "--random_generator=tausworthe64"]
        if self.n_jobs > 1:
            args += [f"--numjobs={self.n_jobs}", "--filename_format=seed.$jobnum",
                     f"--size={SEED_BYTES}", "--group_reporting=1"]
        else:
            args += [f"--filename={self.file}", f"--size={FILE_BYTES[self.file]}"]
        if self.direction == "write":
            args.append("--end_fsync=1")
        return args


JOBS = [
    Job("seqread-1m", "read", MIB, 8, "big", {"tuned": 0.68, "stock": 0.80}),
    Job("seqwrite-1m", "write", MIB, 8, "big", {"tuned": 0.65, "stock": 0.75}),
    Job("randread-4k-qd1", "randread", 4096, 1, "rand", {"tuned": 0.52}),
    Job("randread-4k-qd16", "randread", 4096, 16, "rand", {"tuned": 0.58}),
    Job("randwrite-4k-qd1", "randwrite", 4096, 1, "rand", {"tuned": 0.50}),
    Job("randwrite-4k-qd16", "randwrite", 4096, 16, "rand", {"tuned": 0.57}),
    Job("seed-4files-qd1", "randwrite", 4096, 1, None, {"tuned": 0.57}, n_jobs=SEED_FILES),
    Job("seed-4files-qd16", "randwrite", 4096, 16, None, {"tuned": 0.57}, n_jobs=SEED_FILES),
]
META_BARS = {"create": 0.55, "stat": 0.65, "stat2": None, "open": None, "readdir": 0.80,
             "readdir2": None, "unlink": 0.55}
EXTRA = ("meta", "listing", "calls", "memory")
NAMES = [job.name for job in JOBS] + list(EXTRA)

# Our own CPU: seconds per GiB at 1 MiB.
CPU_S_PER_GIB_MAX = 0.50
CALLS_PER_OP_MAX = 1.05
MEMORY_MIB_MAX = 256


def run_command(args, limit_s, environment):
    """Run to the end; (status, stdout, stderr, CPU seconds of it and its children)."""
    with subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=environment) as process:
        timer = threading.Timer(limit_s, process.kill)
        timer.daemon = True  # one that is interrupted does not wait for it
        timer.start()
        errors = []
        reader = threading.Thread(target=lambda: errors.append(process.stderr.read()), daemon=True)
        reader.start()
        out = process.stdout.read()
        reader.join()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        timer.cancel()
    return (process.returncode, out.decode("utf-8", "replace"),
            errors[0].decode("utf-8", "replace"), usage.ru_utime + usage.ru_stime)


def client_env(malloc):
    env = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
    if malloc == "tuned":
        env.update(servers.TUNED_MALLOC)
    return env


def fio(bench, url, args, limit_s, malloc):
    """One fio run over NFS; its JSON, its CPU seconds. Raises on any error or lost I/O."""
    command = ["fio", "--name=bench", f"--ioengine=external:{bench.tools['engine']}",
               f"--nfs_url={url}", "--output-format=json", "--thread=0"] + args
    status, out, err, cpu_s = run_command(command, limit_s, client_env(malloc))
    if status != 0 or "{" not in out:
        raise servers.BenchError(f"fio ended with {status} at {url}: {err.strip()[:500]}")
    result = json.loads(out[out.index("{"):])
    for job in result["jobs"]:
        if job["error"]:
            raise servers.BenchError(f"fio: job error {job['error']} at {url}: {err[:500]}")
    return result["jobs"][0], cpu_s


def lay_out(bench, url, malloc):
    """Write the shared files, whole, so that no job meets a hole or the end of a file."""
    files = list(FILE_BYTES.items()) + [(f"seed.{i}", SEED_BYTES) for i in range(SEED_FILES)]
    for name, size in files:
        job, _ = fio(bench, url, [f"--filename={name}", f"--size={size}", "--rw=write",
                                  f"--bs={MIB}", "--iodepth=4", "--end_fsync=1"],
                     HANG_LIMIT_S, malloc)
        if job["write"]["io_bytes"] != size:
            raise servers.BenchError(f"laid out {job['write']['io_bytes']} of {size} bytes")


class Watch:
    """CPU of each server, of the client and of strangers over one measurement."""

    def __init__(self, bench):
        self.bench = bench
        self.start_s = time.monotonic()
        self.busy_s = servers.busy_s()
        self.cpu_ns = {name: servers.cpu_ns(s.pid) for name, s in bench.servers.items()}
        self.self_s = time.process_time()

    def finish(self, client_cpu_s):
        seconds = time.monotonic() - self.start_s
        cpu = {name: (servers.cpu_ns(s.pid) - self.cpu_ns[name]) / 1e9
               for name, s in self.bench.servers.items()}
        busy = servers.busy_s() - self.busy_s
        own = sum(cpu.values()) + client_cpu_s + time.process_time() - self.self_s
        return {"cpu_s": cpu, "client_cpu_s": client_cpu_s,
                "strangers": max(0.0, (busy - own) / seconds)}


def measure_fio(bench, job, server, version, runtime_s, malloc):
    """One timed run; a dictionary for the results file."""
    watch = Watch(bench)
    result, client_cpu_s = fio(
        bench, server.url(version),
        job.fio_args() + [f"--runtime={runtime_s}", "--time_based=1"],
        runtime_s + HANG_LIMIT_S, malloc)
    row = watch.finish(client_cpu_s)
    side = result[job.direction]
    if side["total_ios"] == 0:
        raise servers.BenchError(f"fio did no I/O at {server.name}")
    row.update(ops=side["total_ios"], bytes=side["io_bytes"],
               rate=side["bw_bytes"] / MIB if job.is_stream else side["iops"],
               latency_us=side["lat_ns"]["mean"] / 1e3,
               latency_p99_us=side["clat_ns"].get("percentile", {}).get("99.000000", 0) / 1e3)
    return row


def run_meta(bench, server, version, arguments, malloc):
    """Run the metadata program; its lines as dictionaries, and its pids' names in order."""
    names = list(bench.servers)
    command = [bench.tools["meta"], server.url(version)] + arguments
    command += [str(bench.servers[name].pid) for name in names]
    status, out, err, _ = run_command(command, 600, client_env(malloc))
    if status != 0:
        raise servers.BenchError(f"meta at {server.name}: {err.strip()}")
    lines = [json.loads(line) for line in out.splitlines()]
    for line in lines:
        line["cpu_s"] = dict(zip(names, line["cpu_s"]))
    return lines


def measure_meta(bench, server, version, malloc, directory):
    """One round of create to unlink; {phase: row}."""
    watch = Watch(bench)
    lines = run_meta(bench, server, version,
                     [directory, str(META_FILES), str(META_DEPTH),
                      "mkdir,create,stat,stat,open,readdir,readdir,unlink,rmdir"], malloc)
    strangers = watch.finish(sum(line["client_cpu_s"] for line in lines))["strangers"]
    rows = {}
    for line in lines:
        phase = line.pop("phase")
        line["strangers"] = strangers
        rows[phase + "2" if phase in rows else phase] = line
    return rows
