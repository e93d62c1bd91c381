"""The outcome as a table for people and as JSON for programs."""

import json
import os
import pathlib
import platform
import subprocess

MARKS = {True: "ok  ", False: "MISS"}


def number(value):
    if value is None:
        return "-"
    if value == 0:
        return "0"
    size = abs(value)
    return f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.3f}"


def spread(entry, what):
    values = entry.values(what)
    if not values:
        return "-"
    text = number(entry.median(what))
    return f"{text} ({number(min(values))}–{number(max(values))})" if len(values) > 1 else text


def table(result):
    """The lines of one row."""
    lines = [f"\n{result.name}: {result.title}"]
    width = max([len(entry.label) for entry in result.entries] + [10])
    lines.append(f"  {'':{width}}  {'wall s':>24} {'CPU s':>24} {'+ server':>8} {'MiB':>7} {'tail':>6}  rounds")
    for entry in result.entries:
        if entry.failure:
            lines.append(f"  {entry.label:{width}}  {entry.failure}")
            continue
        rss, tail = entry.median("rss"), entry.median("tail")
        lines.append(
            f"  {entry.label:{width}}  {spread(entry, 'wall'):>24} {spread(entry, 'cpu'):>24} {number(entry.median('both')):>8} "
            f"{number(rss / 1024) if rss else '-':>7} {f'{tail:.1%}' if tail is not None else '-':>6}  {len(entry.runs)}")
    for check in result.checks:
        mark = MARKS[check.passed] if check.must else "info"
        sign = "≤" if check.at_most else "≥"
        lines.append(f"  {mark} {check.text} = {number(check.value)} {check.unit}".rstrip()
                     + f"  (must be {sign} {number(check.limit)})")
    for name, value in result.figures.items():
        if not isinstance(value, list):
            lines.append(f"       {name}: {number(value)}")
    lines += [f"       {note}" for note in result.notes]
    return "\n".join(lines)


def as_data(result):
    return {
        "row": result.name, "title": result.title, "metric": result.metric,
        "entries": [{
            "label": entry.label, "failure": entry.failure,
            **{what: {"median": entry.median(what), "least": min(entry.values(what), default=None),
                      "most": max(entry.values(what), default=None), "runs": entry.values(what)}
               for what in ("wall", "cpu", "both", "rss", "tail")},
        } for entry in result.entries],
        "checks": [{"text": check.text, "value": check.value, "limit": check.limit, "unit": check.unit,
                    "sense": "at most" if check.at_most else "at least", "must": check.must, "passed": check.passed}
                   for check in result.checks],
        "figures": result.figures, "notes": result.notes,
    }


def machine(bench):
    model = next((line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().split("\n")
                  if line.startswith("model name")), platform.machine())
    memory = next(int(line.split()[1]) for line in pathlib.Path("/proc/meminfo").read_text().split("\n")
                  if line.startswith("MemTotal"))
    first = lambda *words: (subprocess.run(words, capture_output=True, text=True).stdout.split("\n") or [""])[0]
    nginx = subprocess.run(["/usr/sbin/nginx", "-v"], capture_output=True, text=True).stderr.strip()
    return {
        "processor": model, "cores": os.cpu_count(), "memoryKiB": memory, "kernel": platform.release(),
        "disk": bench.disk_kind, "tow": first(str(bench.tow), "--version"), "nginx": nginx, "peers": bench.peers,
    }


def write(bench, results, stolen, path, finished):
    data = {
        "form": "full" if bench.full else "quick", "complete": finished, "machine": machine(bench),
        "stolenShare": stolen, "load": os.getloadavg(), "rows": [as_data(result) for result in results],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def misses(results):
    return [(result.name, check) for result in results for check in result.checks if check.must and not check.passed]


def summary(results, stolen):
    """The last lines: what was missed."""
    missed = misses(results)
    checks = sum(check.must for result in results for check in result.checks)
    lines = [f"\n{checks - len(missed)} of {checks} required limits are met; "
             f"the virtual machine lost {stolen:.1%} of its CPU time to its host"]
    lines += [f"  MISS {row}: {check.text} = {number(check.value)}, must be "
              f"{'≤' if check.at_most else '≥'} {number(check.limit)}" for row, check in missed]
    return "\n".join(lines)
