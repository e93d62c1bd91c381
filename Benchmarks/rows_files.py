"""Rows about many small files."""

import os
import pathlib
import signal
import tempfile
import threading
import time

import measuring
import servers
from contest import Entry, Result, contest, ratio, room, touch
from peers import ManyFiles
from shaping import Network

SIZE = 10 << 10


def small_entries(bench, base, paths, lists, certificate=None, *, aria2=True, redirected=False):
    do = ManyFiles(bench, [f"{base}/{path}" for path in paths], lists, certificate, redirected)
    entries = [Entry("tow", lambda _: do.tow()), Entry("tow -j64", lambda _: do.tow("-j", "64"))]
    if "curl" in bench.peers:
        for most in bench.pick([50], [16, 50, 100, 200]):
            entries.append(Entry(f"curl -Z --parallel-max {most}",
                                 lambda _, most=most: do.curl("-Z", "--parallel-max", most)))
        if bench.full:
            entries.append(Entry("curl -Z --parallel-immediate",
                                 lambda _: do.curl("-Z", "--parallel-immediate", "--parallel-max", "50")))
            entries.append(Entry("curl", lambda _: do.curl(), rounds=1))
    if "aria2c" in bench.peers and aria2:
        entries.append(Entry("aria2 -j16", lambda _: do.aria2("-j16", "-x1", "--file-allocation=none"),
                             rounds=bench.pick(1, None)))
    if "wget2" in bench.peers:
        entries.append(Entry("wget2 --max-threads=16", lambda _: do.wget2("--max-threads=16"),
                             rounds=bench.pick(1, None)))
    if "wget" in bench.peers and bench.full:
        entries.append(Entry("wget", lambda _: do.wget(), rounds=1))
    return entries


def small(bench, name, title, base, certificate=None, place=None, count=10_000, redirected=False, size=SIZE):
    folder = bench.origin.small_files(count, size)
    names = [f"{number:05}" for number in range(count)]
    result = Result(name, f"{count} files of {size >> 10} KiB {title}")
    lists = bench.memory / "lists"
    lists.mkdir(exist_ok=True)
    entries = small_entries(bench, f"{base}/{folder.name}", names, lists, certificate, aria2=bench.full,
                            redirected=redirected)
    contest(bench, result, entries, {name: folder / name for name in names}, rounds=bench.rounds(1 if place else 3, 5),
            timeout=120, place=place)
    result.speed_against_best("tow", 1.0)
    # Beside the best of all, the one that is told to be at its best.
    name, best = result.best(labels=[entry.label for entry in entries if entry.label.startswith("curl -Z")])
    if name and result.best()[0] != name:
        result.at_least(f"tow: speed / {name}", ratio(best, result.median("tow")), 1.0)
    wall = result.median("tow")
    result.figures["tow: files per second"] = count / wall if wall else None
    return result


def small_http1(bench):
    """Many small files over HTTP/1.1."""
    base = f"http://127.0.0.1:{bench.origin.plain}"
    return [
        small(bench, "small-http1", "over HTTP/1.1 to memory", base),
        small(bench, "small-http1-disk", f"over HTTP/1.1 to {bench.disk_kind}, saved to disk at exit", base,
              place=bench.disk),
    ]


def small_http2(bench):
    """Many small files over HTTP/2."""
    base = f"https://127.0.0.1:{bench.origin.http2}"
    near = small(bench, "small-http2", "over HTTP/2 and TLS to memory", base, bench.origin.certificate)
    with Network(bench.proxy, bench.origin.http2, delay_ms=50, slow_start="yes").between() as port:
        base = f"https://127.0.0.1:{port}"
        far = small(bench, "small-http2-50ms", "over HTTP/2 and TLS, 50 ms round trip", base, bench.origin.certificate,
                    count=bench.pick(1500, 10_000))
    return [near, far]


def small_redirected(bench):
    """Many small files whose URLs redirect."""
    away = small(bench, "small-redirected", "over HTTP/1.1 to memory, each redirected to another address",
                 f"http://127.0.0.1:{bench.origin.plain}/away", redirected=True)
    with Network(bench.proxy, bench.origin.http2, delay_ms=50, slow_start="yes").between() as port:
        far = small(bench, "small-redirected-50ms", "over HTTP/2 and TLS, 50 ms round trip, each redirected on the same server",
                    f"https://127.0.0.1:{port}/near", bench.origin.certificate, count=bench.pick(1500, 10_000), redirected=True)
    return [away, far]


def medium(bench):
    """Many files of 100 KiB, the size of a picture."""
    count = bench.pick(1500, 10_000)
    near = small(bench, "medium-http1", "over HTTP/1.1 to memory", f"http://127.0.0.1:{bench.origin.plain}",
                 count=count, size=100 << 10)
    with Network(bench.proxy, bench.origin.http2, delay_ms=50, slow_start="yes").between() as port:
        far = small(bench, "medium-http2-50ms", "over HTTP/2 and TLS, 50 ms round trip", f"https://127.0.0.1:{port}",
                    bench.origin.certificate, count=count, size=100 << 10)
    return [near, far]


def far_http1(bench):
    """Small files from a distant server over HTTP/1.1: each connection waits most of the time."""
    count = bench.pick(1500, 10_000)
    with Network(bench.proxy, bench.origin.plain, delay_ms=50, slow_start="yes").between() as port:
        base = f"http://127.0.0.1:{port}"
        return [small(bench, f"{kind}-http1-50ms", "over HTTP/1.1, 50 ms round trip", base, count=count, size=size)
                for kind, size in (("small", SIZE), ("medium", 100 << 10))]


def many_hosts(bench):
    """One file from each of many servers with a certificate that the system trusts."""
    hosts = servers.TLS_HOSTS
    result = Result("many-hosts-tls", f"{len(hosts)} files of 10 KiB from {len(hosts)} hosts over TLS, system certificates")
    trusting = bench.origin.as_system_authority()
    if not trusting:
        result.notes.append(servers.NOT_ROOT)
        return result
    bench.origin.one_small_file(SIZE)
    content = bench.origin.served / f"small-{SIZE}"
    names = [f"{number:05}" for number in range(len(hosts))]
    lists = bench.memory / "lists"
    lists.mkdir(exist_ok=True)
    do = ManyFiles(bench, [f"https://{host}:{bench.origin.tls}/many/{SIZE}/{name}" for host, name in zip(hosts, names)],
                   lists)
    entries = [Entry("tow", lambda _: [*trusting, *do.tow()])]
    once = {
        "curl": ("curl -Z --parallel-max 50", lambda: do.curl("-Z", "--parallel-max", "50")),
        "wget2": ("wget2 --max-threads=16", lambda: do.wget2("--max-threads=16")),
        "aria2c": ("aria2 -j16", lambda: do.aria2("-j16", "--file-allocation=none")),
    }
    for program, (label, command) in once.items():
        if program in bench.peers:
            entries.append(Entry(label, lambda _, command=command: [*trusting, *command()], rounds=bench.pick(1, None)))
    contest(bench, result, entries, {name: content for name in names}, rounds=bench.rounds(3, 5), timeout=120)
    result.speed_against_best("tow", 1.0)
    return result


class Reaper(threading.Thread):
    """Compares files with what they must hold and removes them: a million would fill the memory. Those that fit it does when all
    are there. Of more the program that makes them is stopped for it from time to time, and the clock with it: beside
    it on two cores it would take a share of them."""

    def __init__(self, directory, content, in_between):
        super().__init__(daemon=True)
        self.directory, self.content, self.in_between = directory, content, in_between
        self.count, self.bad, self.stopped = 0, [], 0.0
        self.over, self.pid = threading.Event(), None

    def run(self):
        while self.in_between and not self.over.wait(2):
            if self.pid is None:
                continue
            began = time.monotonic()
            try:
                os.kill(self.pid, signal.SIGSTOP)
                try:
                    self.reap()
                finally:
                    os.kill(self.pid, signal.SIGCONT)
            except ProcessLookupError:
                break  # it has ended
            self.stopped += time.monotonic() - began
        self.over.wait()
        self.reap()

    def reap(self):
        for entry in os.scandir(self.directory):
            if ".tow" in entry.name:
                continue
            with open(entry.path, "rb") as file:
                if file.read() != self.content:
                    self.bad.append(entry.name)
            os.unlink(entry.path)
            self.count += 1


def list_writer(descriptor, base, count):
    """Writes the URLs into a pipe, as a program does that finds them out by and by."""
    with open(descriptor, "w", buffering=1 << 16) as pipe:
        try:
            for number in range(count):
                pipe.write(f"{base}/many/{SIZE}/{number:07}\n")
        except BrokenPipeError:
            pass  # the reader has failed, and says so


def memory_over_time(result, pid, over):
    """Samples of (seconds, resident KiB) into the result's figures, while the process runs."""
    began, samples = time.monotonic(), result.figures.setdefault("resident KiB by second", [])
    try:
        with open(f"/proc/{pid}/statm") as file:
            while not over.wait(1):
                file.seek(0)
                samples.append((round(time.monotonic() - began), int(file.read().split()[1]) * 4))
    except (OSError, IndexError):
        pass


def million(bench):
    """`tow get -i -` with a very long list from a pipe, compared with 10,000 files."""
    few, many = bench.pick((10_000, 50_000), (10_000, 1_000_000))
    result = Result("million", f"{many:,} URLs of 10 KiB from a pipe to memory")
    content = bench.origin.one_small_file(SIZE)
    base = f"http://127.0.0.1:{bench.origin.plain}"
    for number in (few, many):
        entry = Entry(f"tow, {number:,}", lambda _: None)
        result.entries.append(entry)
        for _ in range(1 if number == many else 3):
            entry.runs.append(fed(bench, result if number == many else Result("", ""), base, number, content))
            bench.progress(result, entry, entry.runs[-1])
    speeds = [ratio(number, result.median(f"tow, {number:,}")) for number in (few, many)]
    result.at_least(f"files per second, relative to {few:,} files", ratio(speeds[1], speeds[0]), 0.9)
    peak = result.entries[1].median("rss")
    result.at_most("peak resident MiB", peak / 1024 if peak else None, 60, unit="MiB")
    samples = [kibibytes for _, kibibytes in result.figures.get("resident KiB by second", [])]
    if len(samples) >= 8:
        quarter = len(samples) // 4
        result.at_most("resident memory, last quarter / second quarter",
                       max(samples[-quarter:]) / max(samples[quarter:2 * quarter]), 1.1, must=False)
    result.figures["files per second"] = speeds[1]
    return result


def fed(bench, result, base, count, content):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="fed-", dir=bench.memory))
    # As many as are there at once.
    touch(bench.memory, min(count, 50_000) * room(SIZE))
    reading, writing = os.pipe()
    writer = threading.Thread(target=list_writer, args=(writing, base, count), daemon=True)
    reaper = Reaper(directory, content, in_between=count > 100_000)
    over = threading.Event()
    writer.start()
    reaper.start()

    def watch(pid):
        reaper.pid = pid
        threading.Thread(target=memory_over_time, args=(result, pid, over), daemon=True).start()

    try:
        run = measuring.run([bench.tow, "get", "-q", "-i", "-"], directory=directory, home=bench.home,
                            timeout=bench.pick(60, 1200), stdin=reading, started=watch)
    finally:
        over.set()
        os.close(reading)
        reaper.over.set()
        reaper.join()
    run.wall -= reaper.stopped
    if not run.failure and (reaper.bad or reaper.count != count):
        run.failure = f"{reaper.count} of {count} files, {len(reaper.bad)} of them differ from the original"
    return run


ROWS = {"small-http1": small_http1, "small-http2": small_http2, "small-redirected": small_redirected, "medium": medium,
        "far-http1": far_http1, "many-hosts": many_hosts, "million": million}
