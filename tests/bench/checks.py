# SPDX-License-Identifier: LGPL-3.0-or-later
"""What is measured once per run: upstream calls per operation, memory, large directories."""

import os
import statistics

import jobs
import relay
import servers

# Operations per counting run; opening the file costs a few calls that must not show.
COUNT_OPS = {4096: 4000, jobs.MIB: 500}
COUNT_LIMIT_S = 300
MEMORY_DEPTH = 64
COUNT_FILES = 500
COUNT_PHASES = ("create", "stat", "open", "readdir", "unlink")
# CPU per entry in the largest directory over that in the smallest.
LINEAR_RATIO_MAX = 1.5


def reexporters(args):
    return [target for target in args.targets if target not in ("direct", "direct2")]


def count_fio(bench, server, counter, version, job):
    """One fio job of a fixed number of operations: a row of counts."""
    ops = COUNT_OPS[job.block]
    counter.take()
    result, _ = jobs.fio(
        bench, server.url(version),
        job.fio_args() + [f"--number_ios={ops}", f"--io_size={ops * job.block}"],
        COUNT_LIMIT_S, "tuned")
    counts = counter.take()
    n_ops = result[job.direction]["total_ios"]
    n_calls = sum(counts.values()) - counts.get("COMMIT", 0)
    return {"job": job.name, "ops": n_ops, "calls": counts, "per_op": n_calls / n_ops,
            "is_judged": True}


def count_meta(bench, server, counter, version):
    """Each metadata phase on its own: rows of counts."""
    directory = f"counted.{server.name}.{version}"
    arguments = [directory, str(COUNT_FILES), str(jobs.META_DEPTH)]
    jobs.run_meta(bench, server, version, arguments + ["mkdir"], "tuned")
    for phase in COUNT_PHASES:
        counter.take()
        jobs.run_meta(bench, server, version, arguments + [phase], "tuned")
        counts = counter.take()
        yield {"job": phase, "ops": COUNT_FILES, "calls": counts,
               "per_op": sum(counts.values()) / COUNT_FILES, "is_judged": False}


def count_calls(bench, args, progress):
    """Upstream calls per client operation, counted on the wire between the two servers."""
    rows = []
    relay_addr = f"{bench.net}.14"
    upstream = bench.make("direct")
    bench.start(upstream, "tuned")
    jobs.lay_out(bench, upstream.url(3), "tuned")
    counter = relay.Relay(relay_addr, upstream.addr, (servers.NFS_PORT, servers.MNT_PORT))
    try:
        for target in reexporters(args):
            server = bench.make(target, upstream_addr=relay_addr, name=f"{target}-counted")
            bench.start(server, "tuned")
            for version in args.versions:
                found = [count_fio(bench, server, counter, version, job) for job in jobs.JOBS
                         if job.n_jobs == 1 and not job.name.endswith("qd1")]
                found += count_meta(bench, server, counter, version)
                for row in found:
                    row.update(target=target, version=version)
                    progress(f"calls: {target} v{version} {row['job']}: "
                             f"{row['per_op']:.3f} per operation")
                rows += found
            bench.stop(server.name)
    finally:
        counter.stop()
    return rows


def measure_memory(bench, args, progress):
    """Peak resident size of each server after I/O at depth 64."""
    rows = []
    kinds = (("randwrite", 4096, "rand"), ("randread", 4096, "rand"),
             ("write", jobs.MIB, "big"), ("read", jobs.MIB, "big"))
    for malloc in args.malloc:
        for version in args.versions:
            upstream = bench.make("direct")
            bench.start(upstream, malloc)
            jobs.lay_out(bench, upstream.url(3), malloc)
            for target in [t for t in args.targets if t != "direct2"]:
                if target != "direct":
                    bench.start(bench.make(target), malloc)
                server = bench.servers[target]
                for rw, block, file in kinds:
                    job = jobs.Job("memory", rw, block, MEMORY_DEPTH, file, {})
                    jobs.fio(bench, server.url(version),
                             job.fio_args() + ["--runtime=2", "--time_based=1"],
                             jobs.HANG_LIMIT_S, malloc)
                    rows.append({"target": target, "version": version, "malloc": malloc,
                                 "job": f"{rw}-{block // 1024}k",
                                 "peak_mib": servers.peak_kib(server.pid) / 1024})
                progress(f"memory: {target}, v{version}, malloc {malloc}: "
                         f"{rows[-1]['peak_mib']:.0f} MiB")
            bench.stop()
    return rows


def make_directories(bench, n_copies):
    """Directories of many files, made on the exported file system itself."""
    for size in jobs.LISTING_SIZES:
        for copy in range(n_copies):
            folder = os.path.join(bench.data, f"list.{size}.{copy}")
            os.mkdir(folder)
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            for i in range(size):
                os.close(os.open(f"a-file-name-{i:08d}", os.O_CREAT | os.O_WRONLY, 0o644,
                                 dir_fd=fd))
            os.close(fd)


def list_once(bench, target, version, size, copy):
    """Seconds of the first listing and of the second, CPU of the server in the first.

    Servers are fresh each time, since their caches hold about 100,000 files.
    """
    directory = f"list.{size}.{copy}"
    arguments = [directory, str(size), "1", "readdir,readdir"]
    upstream = bench.make("direct")
    bench.start(upstream, "tuned")
    lines = jobs.run_meta(bench, upstream, version, arguments, "tuned")
    if target != "direct":
        # The upstream has it in its cache by now: what is seen is the re-exporting server.
        server = bench.make(target)
        bench.start(server, "tuned")
        lines = jobs.run_meta(bench, server, version, arguments, "tuned")
    bench.stop()
    return lines[0]["seconds"], lines[1]["seconds"], lines[0]["cpu_s"][target]


def measure_listing(bench, args, progress):
    """Time to list directories of growing size, for the first time and again."""
    n_copies = 1 if args.quick else 3
    # Before any server starts: nothing may change behind a running one.
    make_directories(bench, n_copies)
    rows = []
    for version in args.versions:
        for target in [t for t in args.targets if t != "direct2"]:
            for size in jobs.LISTING_SIZES:
                times = [list_once(bench, target, version, size, copy)
                         for copy in range(n_copies)]
                first_s, again_s, cpu_s = (statistics.median(column) for column in zip(*times))
                rows.append({"target": target, "version": version, "entries": size,
                             "first_s": first_s, "again_s": again_s, "cpu_s": cpu_s})
                progress(f"listing: {target} v{version} {size} entries: "
                         f"{rows[-1]['first_s']:.2f} s")
    return rows
