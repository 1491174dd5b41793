# SPDX-License-Identifier: LGPL-3.0-or-later
"""Turns measured rows into a Markdown table and an SVG plot."""

import statistics
import time
from html import escape

import checks
import jobs

GIB = 1 << 30
LABELS = {"direct": "direct", "direct2": "direct again", "proxy_v4": "PROXY_V4",
          "ssc": "FSAL_SSC"}
COLOURS = {"proxy_v4": "#d9822b", "ssc": "#2b6cb0", "direct2": "#888888"}


def groups(result):
    """[(job, version, malloc)] in the order of measuring."""
    seen = {}
    for row in result["rows"]:
        seen.setdefault((row["job"], row["version"], row["malloc"]), None)
    return list(seen)


def select(result, group, target):
    return [row for row in result["rows"]
            if (row["job"], row["version"], row["malloc"]) == group and row["target"] == target]


def ratios(result, group, target):
    """Rate over the rate of direct in the same repeat."""
    base = {row["rep"]: row["rate"] for row in select(result, group, "direct")}
    return [row["rate"] / base[row["rep"]] for row in select(result, group, target)
            if base.get(row["rep"])]


def bar_of(group):
    """The ratio that the job is to reach, or None."""
    name, _, malloc = group
    for job in jobs.JOBS:
        if job.name == name:
            return job.bars.get(malloc)
    return jobs.META_BARS.get(name)


def job_of(name):
    return next((job for job in jobs.JOBS if job.name == name), None)


def cpu_ratio(result, group, target):
    """What the ratio would be if CPU were all that counts: steadier on a shared machine."""
    def total(row):
        return (sum(row["cpu_s"].get(name, 0) for name in {"direct", target}) +
                row["client_cpu_s"]) / row["ops"]

    base = {row["rep"]: total(row) for row in select(result, group, "direct")}
    return statistics.median(base[row["rep"]] / total(row)
                             for row in select(result, group, target) if row["rep"] in base)


def verdict(is_met):
    return "met" if is_met else "MISSED"


def cpu_cost(rows, name, server):
    """Median CPU of one server per GiB (streams) or per operation."""
    job = job_of(name)
    costs = []
    for row in rows:
        cpu_s = row["cpu_s"].get(server)
        if cpu_s is None:
            continue
        if job and job.is_stream:
            costs.append(cpu_s / (row["bytes"] / GIB))
        else:
            costs.append(cpu_s * 1e6 / row["ops"])
    return statistics.median(costs) if costs else None


def client_cost(rows, name):
    job = job_of(name)
    if job and job.is_stream:
        return statistics.median(row["client_cpu_s"] / (row["bytes"] / GIB) for row in rows)
    return statistics.median(row["client_cpu_s"] * 1e6 / row["ops"] for row in rows)


def cpu_verdict(job, own, upstream):
    """Whether our own CPU keeps its bar; streams have a fixed one, 4 KiB the upstream's own."""
    if job is None:
        return ""
    if job.is_stream:
        return f" (≤ {jobs.CPU_S_PER_GIB_MAX:.2f}: {verdict(own <= jobs.CPU_S_PER_GIB_MAX)})"
    return f" (≤ upstream: {verdict(own <= upstream)})"


def row_cells(result, group, target):
    name, version, malloc = group
    rows = select(result, group, target)
    job = job_of(name)
    unit = "MiB/s" if job and job.is_stream else "ops/s"
    cpu_unit = "s/GiB" if job and job.is_stream else "us/op"
    rate = statistics.median(row["rate"] for row in rows)
    values = ratios(result, group, target)
    ratio, bar, by_cpu = "1.00", "", "1.00"
    if target != "direct" and values:
        median = statistics.median(values)
        by_cpu = f"{cpu_ratio(result, group, target):.2f}"
        ratio = f"{median:.2f} ({min(values):.2f}..{max(values):.2f})"
        target_bar = bar_of(group)
        if target == "ssc" and target_bar:
            bar = f"≥ {target_bar:.2f} {verdict(median >= target_bar)}"
    upstream = cpu_cost(rows, name, "direct")
    own_text = "–"
    if target in ("proxy_v4", "ssc"):
        own = cpu_cost(rows, name, target)
        own_text = f"{own:.2f} = {own / upstream:.2f} x" if upstream else f"{own:.2f}"
        if target == "ssc":
            own_text += cpu_verdict(job, own, upstream)
    strangers = statistics.median(row["strangers"] for row in rows)
    return [name, f"v{version}", malloc, LABELS[target], f"{rate:.0f} {unit}", ratio, bar,
            by_cpu,
            f"{statistics.median(row['latency_us'] for row in rows):.0f}", own_text,
            f"{upstream:.2f} {cpu_unit}", f"{client_cost(rows, name):.2f}", f"{strangers:.2f}"]


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def main_table(result):
    rows = [row_cells(result, group, target) for group in groups(result)
            for target in result["options"]["targets"] if select(result, group, target)]
    if not rows:
        return ""
    return table(["job", "NFS", "malloc", "through", "median", "ratio to direct (min..max)",
                  "target", "ratio by CPU", "latency us", "CPU of the re-exporting server",
                  "CPU of the upstream", "of the client", "strangers, cores"], rows)


def calls_table(rows):
    cells = []
    for row in rows:
        parts = ", ".join(f"{name} {count}" for name, count in
                          sorted(row["calls"].items(), key=lambda item: -item[1]))
        judged = (f"≤ {jobs.CALLS_PER_OP_MAX} {verdict(row['per_op'] <= jobs.CALLS_PER_OP_MAX)}"
                  if row["target"] == "ssc" and row["is_judged"] else "")
        cells.append([row["job"], f"v{row['version']}", LABELS[row["target"]], str(row["ops"]),
                      f"{row['per_op']:.3f}", judged, parts])
    title = "Upstream calls per client operation (COMMIT not counted for READ and WRITE)"
    return f"\n{title}\n\n" + table(
        ["job", "NFS", "through", "operations", "calls per operation", "target", "calls"], cells)


def memory_table(rows):
    cells = []
    for row in rows:
        # Over v4.0 the server's own reply cache keeps READ replies whole, direct as well.
        judged = (f"< {jobs.MEMORY_MIB_MAX} {verdict(row['peak_mib'] < jobs.MEMORY_MIB_MAX)}"
                  if row["target"] == "ssc" and row["version"] == "3" else "")
        cells.append([LABELS[row["target"]], row["malloc"], f"v{row['version']}", row["job"],
                      f"{row['peak_mib']:.0f} MiB", judged])
    return (f"\nPeak memory of the server at depth {checks.MEMORY_DEPTH} (each line includes "
            "those above it; over NFSv4.0 stock Ganesha's reply cache keeps READ replies)\n\n" +
            table(["server", "malloc", "NFS", "job", "peak", "target"], cells))


def listing_table(rows):
    cells = []
    base, growths = {}, {}
    for row in rows:
        key = (row["target"], row["version"])
        per_entry_us = row["cpu_s"] * 1e6 / row["entries"]
        base.setdefault(key, per_entry_us)
        growth = growths[(*key, row["entries"])] = per_entry_us / base[key]
        judged = ""
        if row["target"] == "ssc" and row["entries"] == jobs.LISTING_SIZES[-1]:
            # The server's own cache is part of both; it must not get worse by the re-export.
            limit = max(checks.LINEAR_RATIO_MAX,
                        growths.get(("direct", row["version"], row["entries"]), 0))
            judged = f"≤ {limit:.2f} {verdict(growth <= limit)}"
        cells.append([LABELS[row["target"]], f"v{row['version']}", str(row["entries"]),
                      f"{row['first_s']:.3f}", f"{row['again_s']:.3f}", f"{per_entry_us:.2f}",
                      f"{growth:.2f}", judged])
    title = "Listing a large directory (through a re-export: the upstream has it cached)"
    return f"\n{title}\n\n" + table(
        ["through", "NFS", "entries", "first s", "again s", "server CPU, us per entry",
         "to the smallest", "linear"], cells)


def markdown(result):
    machine, options = result["machine"], result["options"]
    text = ["# Benchmark",
            f"{time.strftime('%Y-%m-%d %H:%M', time.localtime(result['start']))}, "
            f"{machine['cores']} cores {machine['cpu']}, Linux {machine['kernel']}, "
            f"{', '.join(machine['packages'])}, commit {machine['commit']}; "
            f"{options['reps']} repeats of {options['runtime']} s, {result['seconds']} s in all.",
            "All servers and the client are on this machine, the upstream exports a tmpfs, "
            "each re-export is a stock server on it. A ratio is taken within one repeat. "
            "malloc 'tuned': all servers and the client run with "
            "MALLOC_MMAP_THRESHOLD_=64M, MALLOC_TRIM_THRESHOLD_=1G, MALLOC_TOP_PAD_=64M, "
            "MALLOC_ARENA_MAX=2; 'stock': no such variable, and FSAL_SSC's Tune_Malloc on as by "
            "default. The client keeps its freed memory in both. CPU figures are medians, in "
            "s/GiB for 1 MiB and in us per operation else; N x: so many times the upstream's. "
            "'Ratio by CPU' is the CPU of all three processes directly over that through the "
            "re-export: what the ratio comes to when the cores are busy, and steadier than it.\n"]
    text.append(main_table(result))
    for name, function in (("calls", calls_table), ("memory", memory_table),
                           ("listing", listing_table)):
        if result["extra"].get(name):
            text.append(function(result["extra"][name]))
    if result["failures"]:
        text.append("\nFailed measurements\n")
        text += [f"- {f['job']} {f.get('target', '')} v{f.get('version', '')}: {f['error']}"
                 for f in result["failures"]]
    return "\n".join(text) + "\n"


ROW_HEIGHT = 15
GROUP_GAP = 10
LEFT = 230
WIDTH = 620
RATIO_MAX = 1.2


def svg_bar(y, values, target):
    """One bar: the median, a line from the least to the greatest, the figure."""
    def x(ratio):
        return LEFT + min(ratio, RATIO_MAX) / RATIO_MAX * WIDTH

    median = statistics.median(values)
    middle = y + ROW_HEIGHT / 2 - 1
    return (f'<rect x="{LEFT}" y="{y}" width="{x(median) - LEFT:.1f}" '
            f'height="{ROW_HEIGHT - 3}" fill="{COLOURS[target]}"/>'
            f'<line x1="{x(min(values)):.1f}" x2="{x(max(values)):.1f}" y1="{middle}" '
            f'y2="{middle}" stroke="#222" stroke-width="1.5"/>'
            f'<text x="{x(max(max(values), median)) + 5:.1f}" y="{middle + 4}">'
            f'{median:.2f}</text>')


def svg(result):
    """Ratios to direct as bars, with the target of each job as a red mark."""
    targets = [t for t in result["options"]["targets"] if t in COLOURS]
    parts, y = [], 50
    for group in groups(result):
        rows = [(t, ratios(result, group, t)) for t in targets]
        rows = [(t, values) for t, values in rows if values]
        if not rows:
            continue
        label = escape(f"{group[0]} v{group[1]}" + ("" if group[2] == "tuned" else
                                                   f" malloc {group[2]}"))
        top = y
        for target, values in rows:
            parts.append(svg_bar(y, values, target))
            y += ROW_HEIGHT
        parts.append(f'<text x="{LEFT - 8}" y="{(top + y) / 2 + 3}" text-anchor="end">{label}'
                     '</text>')
        bar = bar_of(group)
        if bar:
            x = LEFT + bar / RATIO_MAX * WIDTH
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top - 2}" y2="{y}" '
                         'stroke="#c00" stroke-width="2"/>')
        y += GROUP_GAP
    one = LEFT + WIDTH / RATIO_MAX
    legend = "".join(
        f'<rect x="{LEFT + 150 * i}" y="28" width="12" height="12" fill="{COLOURS[t]}"/>'
        f'<text x="{LEFT + 150 * i + 17}" y="38">{LABELS[t]}</text>'
        for i, t in enumerate(targets))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 60}" '
            f'height="{y + 20}" font-family="sans-serif" font-size="11">'
            '<rect width="100%" height="100%" fill="white"/>'
            f'<text x="{LEFT}" y="18" font-size="13">Rate over that of the upstream itself '
            '(median, least to greatest; red: target)</text>'
            f'{legend}<line x1="{one:.1f}" x2="{one:.1f}" y1="46" y2="{y}" stroke="#999" '
            f'stroke-dasharray="3 3"/>{"".join(parts)}</svg>\n')
