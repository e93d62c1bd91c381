#!/usr/bin/env -S python3 -B
"""Compare tow with curl, wget, wget2, aria2 and axel on this machine, over the loopback interface.

    Benchmarks/bench.py [--quick | --full] [--rows PATTERN] [--earlier PATH] [--check] [--list]

Prints a table for each row (a benchmark) when it is finished, and writes results.json and picture.svg. In a row, the
programs do the same work alternately (A B A B). The table shows medians and ranges. Every downloaded file is compared
with the original. `make bench-quick`, `make bench` and `make bench-full` build the programs and run this script.
"""

import argparse
import fnmatch
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import measuring
import peers
import picture
import report
import rows_files
import rows_large
import rows_memory
import rows_network
import servers

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRODUCTS = ROOT / ".build/launcher/release"
# Of each kind of work one row.
QUICK = "large-http,checksum,start,throttled,one-crawls,small-http?,memory-1"
ROWS = {**rows_large.ROWS, **rows_network.ROWS, **rows_files.ROWS, **rows_memory.ROWS}


class Bench:
    """What all rows share: programs, places, servers, and which form is wanted."""

    def __init__(self, options, memory):
        self.full, self.verbose, self.wanted_rounds = options.full, options.verbose, options.rounds
        self.long = options.full or options.long
        self.tow, self.proxy = options.tow.resolve(), options.proxy.resolve()
        self.earlier = options.earlier and options.earlier.resolve()
        self.memory = memory
        options.disk.mkdir(parents=True, exist_ok=True)
        self.disk = pathlib.Path(tempfile.mkdtemp(prefix="bench-", dir=options.disk.resolve()))
        self.disk_kind = subprocess.run(
            ["df", "--output=fstype", self.disk], capture_output=True, text=True).stdout.split()[-1]
        self.home = memory / "home"
        self.home.mkdir()
        self.peers = peers.installed()
        self.floor = servers.make_floor(memory)
        self.origin = servers.Origin(memory)

    def pick(self, quick, full):
        return full if self.full else quick

    def rounds(self, quick, full=None):
        """As many as asked for; otherwise those of the form, or the same in both."""
        return self.wanted_rounds or self.pick(quick, full or quick)

    def quick_peers(self, *names):
        """These alone, unless it is the full form."""
        return None if self.full else names

    def progress(self, result, entry, run):
        if self.verbose:
            outcome = run.failure or f"{run.wall:.3f} s, {run.cpu:.3f} s CPU"
            print(f"    {result.name} {entry.label}: {outcome}", file=sys.stderr, flush=True)

    def close(self):
        self.origin.stop()
        shutil.rmtree(self.disk, ignore_errors=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="run one row of each kind, twice (under three minutes)")
    parser.add_argument("--full", action="store_true", help="run every row at full size with all programs (one to two hours)")
    parser.add_argument("--long", action="store_true", help="include the ten-second rows, which otherwise need --full")
    parser.add_argument("--rows", metavar="PATTERN", help="run only rows whose names match, for example 'delay*,small*'")
    parser.add_argument("--rounds", type=int, metavar="N", help="number of runs of each program")
    parser.add_argument("--list", action="store_true", help="print the names of the rows and exit")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a required limit is not met")
    parser.add_argument("--install", action="store_true", help="install the other programs and nginx first (Debian)")
    parser.add_argument("--tow", type=pathlib.Path, default=PRODUCTS / "tow", metavar="PATH",
                        help="the tow program (default: the release build)")
    parser.add_argument("--earlier", type=pathlib.Path, metavar="PATH",
                        help="compare with this earlier build of tow, in turn, and not with other programs")
    parser.add_argument("--proxy", type=pathlib.Path, default=PRODUCTS / "shaping-proxy", metavar="PATH",
                        help="the shaping-proxy program (default: the release build)")
    parser.add_argument("--disk", type=pathlib.Path, default=ROOT / ".build/bench", metavar="DIR",
                        help="directory on a disk, for rows that measure the disk (default: .build/bench)")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / ".build/bench", metavar="DIR",
                        help="directory for results.json and picture.svg (default: .build/bench)")
    parser.add_argument("--verbose", "-v", action="store_true", help="print every run")
    options = parser.parse_args()
    options.rows = options.rows or (QUICK if options.quick else "*")
    options.rounds = options.rounds or (2 if options.quick else None)
    return options


def main():
    options = parse()
    chosen = [name for name in ROWS if any(fnmatch.fnmatch(name, part) for part in options.rows.split(","))]
    if options.list:
        for name in chosen:
            print(f"{name:12} {(ROWS[name].__doc__ or '').strip()}".rstrip())
        return 0
    if not chosen:
        sys.exit(f"bench: no row matches '{options.rows}'; --list prints the names")
    if options.install:
        subprocess.run([ROOT / "scripts/setup-tests", "bench"], check=True)
    for program in filter(None, (options.tow, options.proxy, options.earlier)):
        if not program.exists():
            sys.exit(f"bench: {program} does not exist; run 'make bench', which builds it")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # SIGTERM ends it as Ctrl-C does: with everything removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    memory = pathlib.Path(tempfile.mkdtemp(prefix="tow-bench-", dir="/dev/shm"))
    bench = None
    try:
        bench = Bench(options, memory)
        return run(bench, options, chosen)
    finally:
        if bench:
            bench.close()
        shutil.rmtree(memory, ignore_errors=True)


def run(bench, options, chosen):
    results, began, before = [], time.monotonic(), measuring.stolen()

    def stolen():
        now = measuring.stolen()
        return (now[0] - before[0]) / max(now[1] - before[1], 1)

    for name in chosen:
        started = time.monotonic()
        done = ROWS[name](bench)
        if options.verbose:
            print(f"    {name}: {time.monotonic() - started:.0f} s in total", file=sys.stderr)
        for result in done if isinstance(done, list) else [done]:
            print(report.table(result), flush=True)
            results.append(result)
        bench.origin.forget()
        report.write(bench, results, stolen(), options.output / "results.json", name == chosen[-1])
    (options.output / "picture.svg").write_text(picture.draw(results, report.machine(bench)))
    print(report.summary(results, stolen()))
    print(f"finished in {time.monotonic() - began:.0f} s; wrote results.json and picture.svg to {options.output}")
    return 1 if options.check and report.misses(results) else 0


if __name__ == "__main__":
    sys.exit(main())
