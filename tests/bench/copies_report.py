# SPDX-License-Identifier: LGPL-3.0-or-later
"""Turns the rows of copies.py into tables with bars."""

import statistics
import time

from report import GIB, table, verdict

MIB = 1 << 20
# Rate over that of the client's own copy, and over a local cp.
CLIENT_RATIO_MIN = {"re-export": 1.8, "stacked": 3.0}
CP_RATIO_MIN = 0.5
CPU_RATIO_MAX = 0.5
SMALL_RATIO_MAX = 1.0
SPARSE_RATIO_MAX = 3.0
MANY_RATIO_MIN = 0.9
P99_MS_MAX = 10.0
# Copy_Inflight_Bytes as by default.
MEMORY_MIB_MAX = 16


def select(result, part, place=None, way=None):
    return [row for row in result["rows"] if row["part"] == part and
            place in (None, row["place"]) and way in (None, row["way"])]


def values_of(rows, value):
    return [value(row) for row in rows]


def rate(row):
    return row["bytes"] / MIB / row["seconds"]


def cpu_per_gib(row):
    """Of all processes."""
    return (sum(row["cpu_s"].values()) + row["client_cpu_s"]) / (row["bytes"] / GIB)


def ratios(rows, base, value):
    """value of each row over that of the base's row in the same repeat."""
    of_rep = {row["rep"]: value(row) for row in base}
    return [value(row) / of_rep[row["rep"]] for row in rows if of_rep.get(row["rep"])]


def spread(values, digits=2):
    if not values:
        return "–"
    return (f"{statistics.median(values):.{digits}f} "
            f"({min(values):.{digits}f}..{max(values):.{digits}f})")


def at_least(values, bar):
    return f"≥ {bar} {verdict(statistics.median(values) >= bar)}" if values else ""


def at_most(values, bar):
    return f"≤ {bar} {verdict(statistics.median(values) <= bar)}" if values else ""


def places(result):
    return result["options"]["places"]


def ways(result, part, place):
    return list(dict.fromkeys(row["way"] for row in select(result, part, place)))


def large_table(result):
    cells = []
    for place in places(result):
        client = select(result, "large", place, "client")
        local = select(result, "large", place, "cp")
        for way in ways(result, "large", place):
            rows = select(result, "large", place, way)
            to_client = ratios(rows, client, rate) if way != "client" else []
            to_cp = ratios(rows, local, rate) if way != "cp" else []
            cpu = ratios(rows, client, cpu_per_gib) if way in ("async", "sync") else []
            cells.append([
                place, way, f"{statistics.median(values_of(rows, rate)):.0f} MiB/s",
                spread(to_client),
                at_least(to_client, CLIENT_RATIO_MIN[place]) if way != "cp" else "",
                spread(to_cp), at_least(to_cp, CP_RATIO_MIN) if cpu else "",
                f"{statistics.median(values_of(rows, cpu_per_gib)):.2f}", spread(cpu),
                at_most(cpu, CPU_RATIO_MAX)])
    if not cells:
        return ""
    return "\nOne file of 256 MiB\n\n" + table(
        ["where", "way", "median", "to the client's copy (min..max)", "target", "to cp", "target",
         "CPU of all, s/GiB", "to the client's copy", "target"], cells)


def small_table(result):
    cells = []
    for place in places(result):
        for way in ways(result, "small", place):
            rows = select(result, "small", place, way)
            ratio = [row["copy_us"] / row["rw_us"] for row in rows]
            cells.append([
                place, way, f"{statistics.median(row['copy_us'] for row in rows):.0f} us",
                f"{statistics.median(row['rw_us'] for row in rows):.0f} us", spread(ratio),
                at_most(ratio, SMALL_RATIO_MAX),
                f"{statistics.median(row['copy_p90_us'] for row in rows):.0f} and "
                f"{statistics.median(row['rw_p90_us'] for row in rows):.0f} us"])
    if not cells:
        return ""
    return "\nSmall files, between OPEN and CLOSE\n\n" + table(
        ["where", "size", "COPY", "READ + WRITE", "COPY to READ + WRITE", "target",
         "slowest tenths"], cells)


def sparse_table(result):
    cells = []
    for place in places(result):
        for way in ways(result, "sparse", place):
            rows = select(result, "sparse", place, way)
            dense = select(result, "dense", place, way)
            ratio = ratios(rows, dense, lambda row: row["seconds"])
            cells.append([
                place, way, f"{statistics.median(row['seconds'] for row in rows) * 1e3:.1f} ms",
                f"{statistics.median(row['seconds'] for row in dense) * 1e3:.1f} ms",
                spread(ratio),
                at_most(ratio, SPARSE_RATIO_MAX) if place == "stacked" else
                "none: NFSv3 tells no holes"])
    if not cells:
        return ""
    return "\nA file of 5 GiB with 16 MiB of data, to a file of these 16 MiB alone\n\n" + table(
        ["where", "way", "sparse", "dense", "time to dense", "target"], cells)


def many_table(result):
    cells = []
    for place in places(result):
        for way in ways(result, "many", place):
            rows = select(result, "many", place, way)
            single = select(result, "single", place, way)
            ratio = ratios(rows, single, rate)
            p99 = [row["getattr_p99_ms"] for row in rows]
            memory = [row["memory_kib"] / 1024 for row in rows]
            cells.append([
                place, way, f"{statistics.median(values_of(rows, rate)):.0f} MiB/s",
                f"{statistics.median(values_of(single, rate)):.0f} MiB/s", spread(ratio),
                at_least(ratio, MANY_RATIO_MIN),
                f"{statistics.median(row['getattr_p50_ms'] for row in rows):.2f}", spread(p99),
                at_most(p99, P99_MS_MAX), f"{max(memory):.1f} MiB",
                f"≤ {MEMORY_MIB_MAX} {verdict(max(memory) <= MEMORY_MIB_MAX)}"])
    if not cells:
        return ""
    return "\n64 files of 32 MiB at once, one of 256 MiB alone\n\n" + table(
        ["where", "way", "all together", "one alone", "ratio", "target", "GETATTR p50 ms",
         "p99 ms", "target", "memory more than before", "target"], cells)


def huge_table(result):
    labels = {"client": "through the client", "async": "one call",
              "async twice": "two calls, one after the other", "async beside": "two at once"}
    cells = []
    for place in places(result):
        client = select(result, "huge", place, "client")
        for way in ways(result, "huge", place):
            row = select(result, "huge", place, way)[0]
            cells.append([
                place, labels[way], f"{row['bytes'] / GIB:.0f} GiB", f"{row['seconds']:.2f} s",
                f"{rate(row):.0f} MiB/s", f"{client[0]['seconds'] / row['seconds']:.2f}",
                f"{cpu_per_gib(row):.2f}"])
    if not cells:
        return ""
    return "\nOne huge file\n\n" + table(
        ["where", "way", "size", "time", "rate", "to the client's copy", "CPU of all, s/GiB"],
        cells)


def calls_table(result):
    cells = [[row["way"], ", ".join(f"{name} {n:.2f}" for name, n in sorted(row["calls"].items()))]
             for row in select(result, "calls")]
    if not cells:
        return ""
    return "\nCalls to the upstream per COPY\n\n" + table(["size", "calls"], cells)


def markdown(result):
    machine, options = result["machine"], result["options"]
    changed = "".join(f", {item}" for item in options["set"] + options["set_export"])
    text = ["# Server-side copy",
            f"{time.strftime('%Y-%m-%d %H:%M', time.localtime(result['start']))}, "
            f"{machine['cores']} cores {machine['cpu']}, Linux {machine['kernel']}, "
            f"{', '.join(machine['packages'])}, commit {machine['commit']}; "
            f"{options['reps']} repeats, {result['seconds']} s in all, malloc "
            f"{options['malloc']}{changed}.",
            "All servers and the client are on this machine, all files in memory. client: the "
            "client's own copy through the same server, 8 READs or WRITEs of 1 MiB in flight; "
            "async: COPY that ends with CB_OFFLOAD; sync: COPY that is answered in pieces; cp: on "
            "the exported file system itself. A ratio is taken within one repeat, medians of "
            "these are judged.",
            large_table(result), small_table(result), sparse_table(result), many_table(result),
            huge_table(result), calls_table(result)]
    if result["failures"]:
        text.append("\nFailed measurements\n")
        text += [f"- {f['part']} {f['place']}: {f['error']}" for f in result["failures"]]
    return "\n".join(part for part in text if part) + "\n"
