"""Rows about memory: one download, and very many that all make progress."""

import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import threading
import time

import servers
from contest import Entry, Result, contest
from measuring import Run, kill_group
from peers import OneFile

OUTPUT = pathlib.Path("downloaded")
# Slow enough that nothing ends meanwhile.
SPEED, SIZE = "2k", 2 << 20


def one(bench):
    """Peak memory of one download."""
    size = bench.pick(256, 1024) << 20
    name = bench.origin.file(size)
    result = Result("memory-1", f"peak memory of one download, {size >> 20} MiB", "rss")
    do = OneFile(bench)
    entries = [
        Entry("tow", lambda base: do.tow(f"{base}/{name}", OUTPUT)),
        Entry("tow -x16, 20 MiB/s each", lambda base: do.tow(f"{base}/rate/20m/{name}", OUTPUT, "-x", "16")),
    ]
    if "curl" in bench.peers:
        entries.append(Entry("curl", lambda base: do.curl(f"{base}/{name}", OUTPUT)))
    if "aria2c" in bench.peers:
        entries.append(Entry("aria2 -x16", lambda base: do.aria2(
            f"{base}/rate/20m/{name}", OUTPUT, "-x16", "-s16", "-k1M", "--file-allocation=none")))
    contest(bench, result, entries, {str(OUTPUT): bench.origin.served / name}, rounds=bench.rounds(1, 3))
    for entry in entries[:2]:
        peak = entry.median("rss")
        result.at_most(f"{entry.label}: peak resident MiB", peak / 1024 if peak else None, 25, unit="MiB")
    return result


class Listener(threading.Thread):
    """Reads the events of `tow get --json` and notes which downloads have grown how often."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self.stream = stream
        self.bytes, self.growths, self.failed = {}, {}, []

    def run(self):
        for line in self.stream:
            event = json.loads(line)
            number, received = event.get("download"), event.get("receivedBytes", 0)
            if event["event"] == "failed":
                self.failed.append(event.get("message", ""))
            elif event["event"] == "progress" and received > self.bytes.get(number, 0):
                self.bytes[number] = received
                self.growths[number] = self.growths.get(number, 0) + 1

    def forget(self):
        self.growths = {}


def figure(path, name):
    """A number of /proc/PID/status."""
    line = next(line for line in path.read_text().split("\n") if line.startswith(name + ":"))
    return int(line.split()[1])


def processor_time(pid):
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def running(bench, wanted, limit):
    """Downloads at once from hundreds of hosts, each over one connection that hardly brings anything.

    As many as are wanted, or as the machine has descriptors for; the limit is then that share of it."""
    name = bench.origin.file(SIZE)
    count = min(wanted, possible())
    limit = limit * count / wanted
    result = Result(f"memory-{wanted}", f"memory of {count:,} running downloads, each limited to {SPEED}B/s")
    if count < wanted:
        result.notes.append(f"the hard limit on open files allows only {count:,} downloads on this machine")
    urls = bench.memory / "lists" / f"running-{count}"
    urls.parent.mkdir(exist_ok=True)
    hosts = servers.HOSTS
    urls.write_text("".join(
        f"http://{hosts[number % len(hosts)]}:{bench.origin.plain}/rate/{SPEED}/{name}\n  output={number}\n"
        for number in range(count)))
    # A file system where reserved space takes no memory.
    directory = bench.disk / "out"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    errors = open(bench.memory / "errors", "w+")
    process = subprocess.Popen(
        [bench.tow, "get", "--json", "-x", "1", "-j", str(count), "-i", urls], cwd=directory, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
        preexec_fn=lambda: allow_descriptors(count),
        env={"PATH": os.environ["PATH"], "HOME": str(bench.home), "no_proxy": "*"})
    listener = Listener(process.stdout)
    listener.start()
    failed = []
    try:
        observe(result, process, listener, count, limit)
        failed = listener.failed[:]
        process.send_signal(signal.SIGTERM)
        process.wait(10)
    except subprocess.TimeoutExpired:
        result.at_most("seconds until exit after SIGTERM", None, 2, unit="s")
    finally:
        kill_group(process.pid)
        process.wait()
        listener.join(5)
        errors.seek(0)
        said = errors.read(500).strip()
        errors.close()
        shutil.rmtree(directory, ignore_errors=True)
    if failed or not listener.bytes:
        result.notes.append((failed or [said])[0][:200])
    bench.progress(result, result.entries[0], result.entries[0].runs[0])
    return result


def possible():
    """For so many downloads descriptors can be had."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        # Only with a privilege that not even every root has.
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, 1 << 16))
        return 20_000
    except (ValueError, OSError):
        return (hard - 1000) // 3


def allow_descriptors(count):
    """A part file, its journal and a connection for each."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 3 * count + 1000
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(wanted, hard)))
    except (ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def observe(result, process, listener, count, limit):
    """Waits until all have bytes, then watches them for some seconds."""
    entry = Entry(f"tow -x1 -j{count}", lambda _: None)
    result.entries.append(entry)
    began = time.monotonic()
    while len(listener.bytes) < count and time.monotonic() < began + 60 + count / 100 and process.poll() is None:
        time.sleep(0.1)
    if process.poll() is not None:
        entry.runs.append(Run(failure=f"exit status {process.returncode}"))
        result.at_most(f"{count:,} running: resident MiB", None, limit, unit="MiB")
        return
    result.figures["seconds until all have bytes"] = round(time.monotonic() - began, 1)
    seconds = 8
    listener.forget()
    before, status = processor_time(process.pid), pathlib.Path(f"/proc/{process.pid}/status")
    time.sleep(seconds)
    spent, peak = processor_time(process.pid) - before, figure(status, "VmHWM")
    entry.runs.append(Run(wall=time.monotonic() - began, cpu=spent, rss=peak))
    result.figures["open descriptors"] = len(os.listdir(f"/proc/{process.pid}/fd"))
    result.figures["threads"] = figure(status, "Threads")
    result.figures["CPU microseconds per second and download"] = round(spent / seconds / count * 1e6, 1)
    result.at_least("share of downloads with progress in the last 8 seconds", len(listener.growths) / count, 1.0)
    result.at_most(f"{count:,} running: peak resident MiB", peak / 1024, limit, unit="MiB")


def many(bench):
    """Memory of many downloads that run at the same time."""
    results = [running(bench, count, limit) for count, limit in bench.pick([(1000, 150)], [(1000, 150), (10_000, 1000)])]
    bench.origin.forget()
    return results


ROWS = {"memory-1": one, "memory-many": many}
