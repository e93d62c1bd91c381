"""Rows about one file where the network is the limit: throttled connections, long ways, connections that fail."""

import pathlib
import statistics

from contest import Entry, Result, contest, ratio
from peers import OneFile, aria2_best, wget2_best
from shaping import Mirrors, Network

OUTPUT = pathlib.Path("downloaded")
MEBIBYTE = 1 << 20


def racers(bench, path, size, connections=16, *, defaults=0, slow_ones=True):
    """Entries: tow without options and with -x, each peer at its best, and `defaults` rounds of each as it comes.

    A program that uses one connection has no better options: it runs among the defaults, unless `slow_ones` is false.
    """
    do = OneFile(bench)
    count = f"-x{connections}"

    def entry(label, make, **more):
        return Entry(label, lambda base: make(f"{base}/{path}", OUTPUT), **more)

    entries = [entry("tow", do.tow), entry(f"tow {count}", lambda url, out: do.tow(url, out, count))]
    if "aria2c" in bench.peers:
        best = aria2_best(connections)
        entries.append(entry(f"aria2 -x{connections} -s{connections} -k1M", lambda url, out: do.aria2(url, out, *best)))
    if "axel" in bench.peers:
        entries.append(entry(f"axel -n{connections}", lambda url, out: do.axel(url, out, f"-n{connections}")))
    if "wget2" in bench.peers and bench.full:
        chunks = wget2_best(connections, size)
        entries.append(entry(f"wget2 --max-threads={connections}", lambda url, out: do.wget2(url, out, *chunks)))
    if defaults and slow_ones:
        for program, make in (("curl", do.curl), ("wget", do.wget), ("wget2", do.wget2), ("aria2c", do.aria2),
                              ("axel", do.axel)):
            if program in bench.peers:
                entries.append(entry(program.removesuffix("c"), make, rounds=defaults))
    return entries


def against_peers(result, connections, no_options):
    result.speed_against_best("tow", no_options)
    result.speed_against_best(f"tow -x{connections}", 1.0)
    result.tails()


def lasting(bench, name, title, seconds, rate, path, limit, network=None, quick=2):
    """A row for a file that takes the best peer so many seconds at `rate` bytes per second in all."""
    size = int(seconds * rate) // MEBIBYTE * MEBIBYTE
    file = bench.origin.file(size)
    result = Result(name, f"{title}, {size // MEBIBYTE} MiB")
    entries = racers(bench, path.format(file), size, defaults=bench.pick(0, 1))
    contest(bench, result, entries, {str(OUTPUT): bench.origin.served / file}, rounds=bench.rounds(quick, 5 if seconds < 5 else 3),
            network=network, timeout=seconds * 5 + 10)
    if network:
        shares = [seen["cpuSeconds"] for seen in network.seen]
        result.figures["proxy: CPU seconds per run, most"] = max(shares, default=None)
        result.figures["proxy: connections at one time, most"] = max(
            (seen["mostOpen"] for seen in network.seen), default=None)
    against_peers(result, 16, limit)
    return result


def durations(bench):
    """What a file takes the best peer, in seconds, and what share of its speed tow must have without options."""
    return [(2, 0.8), (10, 0.95)] if bench.long else [(2, 0.8)]


def throttled(bench):
    """A server that limits each connection to 20 MiB/s."""
    rate = 16 * 20 * MEBIBYTE
    return [
        lasting(bench, f"throttled-{seconds}s", "20 MiB/s for each connection", seconds, rate, "rate/20m/{}", limit)
        for seconds, limit in durations(bench)
    ]


def delayed(bench):
    """A distant server over a link with a limited rate that all connections share."""
    results = []
    for milliseconds, megabits in bench.pick([(50, 100), (200, 1000)], [(50, 100), (50, 1000), (200, 100), (200, 1000)]):
        for seconds, limit in durations(bench):
            network = Network(bench.proxy, bench.origin.plain, delay_ms=milliseconds, total_rate=megabits * 125_000,
                              slow_start="yes")
            results.append(lasting(
                bench, f"delay-{milliseconds}ms-{megabits}M-{seconds}s",
                f"{milliseconds} ms round trip, {megabits} Mbit/s", seconds, megabits * 125_000, "{}", limit, network,
                quick=1))
            bench.origin.forget()
    return results


def one_bad(bench, name, title, *, ideal_limit, rounds, must=True, timeout=None, **options):
    """Eight connections of 10 MB/s, one of which is bad. The ideal is what the seven others take."""
    rate, seconds = 10_000_000, bench.pick(2, 10)
    size = 7 * rate * seconds // MEBIBYTE * MEBIBYTE
    file = bench.origin.file(size)
    result = Result(name, f"{title}, {size // MEBIBYTE} MiB")
    network = Network(bench.proxy, bench.origin.plain, rate=rate, **options)
    contest(bench, result, racers(bench, file, size, 8), {str(OUTPUT): bench.origin.served / file}, rounds=rounds,
            network=network, timeout=timeout or seconds * 8)
    ideal = size / (7 * rate)
    result.figures["ideal: seconds of seven connections"] = ideal
    result.at_most("tow -x8: wall / ideal with seven connections", ratio(result.median("tow -x8"), ideal), ideal_limit,
                   must)
    for entry in result.entries:
        if entry.label != "tow -x8":
            result.at_most(f"{entry.label}: wall / ideal", ratio(entry.median("wall"), ideal), ideal_limit, False)
    result.tails()
    return result


def crawling(bench):
    """Eight connections; the third is a hundred times slower than the others."""
    return one_bad(bench, "one-crawls", "8 connections of 10 MB/s, one at 1 %", ideal_limit=1.15,
                   rounds=bench.rounds(1, 5), slow_connection="3=1%", timeout=bench.pick(7, 150))


def stalled(bench):
    """Eight connections; the third sends no data after 1 MB and stays open."""
    return one_bad(bench, "one-stalls", "8 connections of 10 MB/s, one stalls after 1 MB", ideal_limit=1.15,
                   rounds=bench.rounds(1, 3), must=False, stall_connection="3=1000000", timeout=bench.pick(6, 120))


def fourth_crawls(bench):
    """Every fourth connection is a hundred times slower. Without options the last bytes are raced, too."""
    rate, size = 20_000_000, 400 * MEBIBYTE
    file = bench.origin.file(size)
    title = f"20 ms round trip, 20 MB/s for each connection, every fourth one at 1 %, {size // MEBIBYTE} MiB"
    result = Result("fourth-crawls", title)
    network = Network(bench.proxy, bench.origin.plain, rate=rate, delay_ms=20,
                      slow_connection=[f"{number}=1%" for number in range(4, 401, 4)])
    contest(bench, result, racers(bench, file, size), {str(OUTPUT): bench.origin.served / file},
            rounds=bench.rounds(2, 5), network=network, timeout=60)
    result.at_most("tow: wall / tow -x16", ratio(result.median("tow"), result.median("tow -x16")), 1.15)
    result.tails()
    return result


def sent(bench):
    """The bytes that a server sends for one file. What it sends of a response that is cut comes for nothing."""
    size = 32 * MEBIBYTE
    file = bench.origin.file(size)
    result = Result("bytes-sent", "bytes sent for one file of 32 MiB")
    plain, http2 = bench.origin.plain, bench.origin.http2
    # What waits in the buffer of the server counts as sent: it is small here.
    slow, fast = {"rate": 20_000_000, "window": 262144}, {"window": 262144}
    kinds = [("", plain, "http", slow), (" fast", plain, "http", fast), (" HTTP/2", http2, "https", slow),
             (" HTTP/2 fast", http2, "https", fast)]
    modes = [("tow", []), ("tow", ["-x4"]), ("tow", ["-x16"]), ("tow", ["-x16", "--limit-rate=10M"])]
    runs = [(program, options, kind) for kind in kinds for program, options in modes]
    if "aria2c" in bench.peers:
        runs.append(("aria2", ["-x16", "-s16", "--max-overall-download-limit=10M"], kinds[0]))
    for program, options, (suffix, port, scheme, shape) in runs:
        label = " ".join([program, *options]) + suffix
        make = getattr(OneFile(bench, bench.origin.certificate if scheme == "https" else None), program)
        network = Network(bench.proxy, port, **shape)
        part = Result(label, label)
        entry = Entry(label, lambda base, make=make, options=options: make(f"{base}/{file}", OUTPUT, *options))
        contest(bench, part, [entry], {str(OUTPUT): bench.origin.served / file}, rounds=bench.rounds(2, 5),
                network=network, timeout=30, scheme=scheme)
        result.entries += part.entries
        bytes_sent = statistics.median(seen["bytes"] for seen in network.seen) if network.seen else None
        result.at_most(f"{label}: bytes sent / size", ratio(bytes_sent, size), 1.05, program == "tow")
    return result


def resets(bench):
    """Each connection is reset after 2 to 20 MB (pseudo-random, fixed seed)."""
    rate, size = 10_000_000, bench.pick(128, 800) * MEBIBYTE
    file = bench.origin.file(size)
    result = Result("resets", f"connections of 10 MB/s, each reset after 2 to 20 MB, {size // MEBIBYTE} MiB")
    network = Network(bench.proxy, bench.origin.plain, rate=rate, reset_after="2000000-20000000", seed=7)
    entries = racers(bench, file, size, 8)
    for entry in entries:
        if entry.label.startswith("aria2"):
            # It gives up after five failures by default.
            entry.command = lambda base, make=entry.command: [*make(base), "--max-tries=0", "--retry-wait=1"]
            entry.label += " --max-tries=0"
    contest(bench, result, entries, {str(OUTPUT): bench.origin.served / file}, rounds=bench.rounds(1, 3), network=network,
            timeout=bench.pick(20, 120))
    result.figures["resets in a run, most"] = max((seen["resets"] for seen in network.seen), default=None)
    result.speed_against_best("tow -x8", 1.0, must=False)
    result.tails()
    return result


def mirrors(bench):
    """Three mirrors with separate links; one stops after a third of the time."""
    rate, gone, rest = 20_000_000, bench.pick(1, 3), bench.pick(2, 6)
    size = (3 * gone + 2 * rest) * rate // MEBIBYTE * MEBIBYTE
    file = bench.origin.file(size)
    result = Result("mirror-dies", f"three mirrors of 20 MB/s, one stops after {gone} s, {size // MEBIBYTE} MiB")
    places = Mirrors([Network(bench.proxy, bench.origin.plain, total_rate=rate) for _ in range(3)], gone)
    do = OneFile(bench)

    def tow(*options):
        def command(base):
            first, *others = places.urls(file)
            return do.tow(first, OUTPUT, *options, *(word for url in others for word in ("--mirror", url)))
        return command

    entries = [Entry("tow", tow()), Entry("tow -x6", tow("-x6"))]
    if "aria2c" in bench.peers:
        entries.append(Entry("aria2 -x2 -s6 -k1M --max-tries=0", lambda base: [
            *do.aria2(places.urls(file)[0], OUTPUT, "-x2", "-s6", "-k1M", "--max-tries=0", "--file-allocation=none"),
            *places.urls(file)[1:]]))
    if "axel" in bench.peers:
        entries.append(Entry("axel -n6", lambda base: [*do.axel(places.urls(file)[0], OUTPUT, "-n6"),
                                                       *places.urls(file)[1:]]))
    contest(bench, result, entries, {str(OUTPUT): bench.origin.served / file}, rounds=bench.rounds(1, 3),
            network=places, timeout=(gone + rest) * 5)
    ideal = gone + (size - 3 * rate * gone) / (2 * rate)
    result.figures["ideal: seconds, all links full"] = ideal
    for entry in result.entries:
        result.at_most(f"{entry.label}: wall / ideal", ratio(entry.median("wall"), ideal), 1.15, entry.label == "tow")
    result.tails()
    return result


ROWS = {
    "throttled": throttled, "delay": delayed, "one-crawls": crawling, "one-stalls": stalled,
    "fourth-crawls": fourth_crawls, "bytes-sent": sent, "resets": resets, "mirror-dies": mirrors,
}
