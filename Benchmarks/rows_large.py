"""Rows about one large file where the machine is the limit: CPU, durability, checksums, start-up."""

import pathlib
import shutil

import measuring
import servers
from contest import Entry, Result, contest, ratio
from peers import OneFile, aria2_best

OUTPUT = pathlib.Path("downloaded")


def single(bench, name, certificate=None, *, tow=(), tow_label="tow", more=(), peers=None):
    """Entries for one file over one connection: tow, and each peer that is installed as it is without options."""
    do = OneFile(bench, certificate)
    http1 = ["--http1.1"] if certificate else []
    known = {
        "curl": ("curl", lambda base: do.curl(f"{base}/{name}", OUTPUT, *http1)),
        "wget": ("wget", lambda base: do.wget(f"{base}/{name}", OUTPUT)),
        "wget2": ("wget2", lambda base: do.wget2(f"{base}/{name}", OUTPUT)),
        "aria2c": ("aria2 --file-allocation=none",
                   lambda base: do.aria2(f"{base}/{name}", OUTPUT, "--file-allocation=none")),
        "axel": ("axel -n1", lambda base: do.axel(f"{base}/{name}", OUTPUT, "-n1")),
    }
    entries = [Entry(tow_label, lambda base: do.tow(f"{base}/{name}", OUTPUT, *tow))]
    entries += [Entry(label, command) for program, (label, command) in known.items()
                if program in bench.peers and (peers is None or program in peers)]
    return entries + list(more)


def large_http(bench):
    """One large file over HTTP, one connection."""
    # Not larger in the quick form: with 1 GiB the floor itself took from 0.85 to 3.46 s on a virtual machine.
    size = bench.pick(256 << 20, 2 << 30)
    name = bench.origin.file(size)
    result = Result("large-http", f"{size >> 20} MiB over loopback to memory, one connection", "cpu")
    port = bench.origin.plain
    floor = []
    if bench.floor:
        floor = [Entry("floor: recv + pwrite", lambda base: [bench.floor, str(port), f"/{name}", OUTPUT], peer=False)]
    tow = ("-x", "1", "--http1")
    entries = single(bench, name, tow=tow, tow_label="tow -x1", more=floor, peers=bench.quick_peers("curl", "wget"))
    entries.append(Entry("tow", lambda base: OneFile(bench).tow(f"{base}/{name}", OUTPUT), peer=False,
                         rounds=bench.pick(1, None)))
    contest(bench, result, entries, {str(OUTPUT): bench.origin.served / name}, rounds=bench.rounds(9), warm=True)
    if floor:
        # Who sends what the server's socket holds, the server or whoever makes room for it, is an accident over a loopback:
        # the floor's own time differs by half from run to run, that of both ends by a fifth.
        for what, text, must in (("cpu", "tow -x1: CPU / floor", True),
                                 ("both", "tow -x1: CPU including the server / floor", False)):
            result.at_most(text, ratio(result.median("tow -x1", what), result.median("floor: recv + pwrite", what)), 1.10,
                           must)
    result.cost_against_best("tow -x1", 1.0)
    result.cost_against_best("tow -x1", 1.0, "wall")
    result.tails()
    cpu = result.median("tow -x1", "cpu")
    result.figures["tow -x1: CPU seconds per GiB"] = cpu / size * (1 << 30) if cpu else None
    return result


def large_tls(bench):
    """One large file over TLS, one connection."""
    size = bench.pick(256 << 20, 1 << 30)
    name = bench.origin.file(size)
    result = Result("large-tls", f"{size >> 20} MiB over TLS and loopback to memory, one connection", "cpu")
    entries = single(bench, name, bench.origin.certificate, tow=("-x", "1", "--http1"), tow_label="tow -x1",
                     peers=bench.quick_peers("curl", "wget"))
    contest(bench, result, entries, {str(OUTPUT): bench.origin.served / name}, rounds=bench.rounds(9), warm=True,
            target=bench.origin.tls, scheme="https")
    result.cost_against_best("tow -x1", 1.0)
    result.cost_against_best("tow -x1", 1.0, "wall")
    result.tails()
    return result


def large_tls_16(bench):
    """One large file over TLS from a server with a certificate that the system trusts."""
    size = bench.pick(256 << 20, 1 << 30)
    name = bench.origin.file(size)
    result = Result("large-tls-16", f"{size >> 20} MiB over TLS and loopback, system certificates")
    trusting = bench.origin.as_system_authority()
    if not trusting:
        result.notes.append(servers.NOT_ROOT)
        return result
    do = OneFile(bench)

    def entry(label, command, **more):
        return Entry(label, lambda base: [*trusting, *command(f"{base}/{name}")], **more)

    entries = [
        entry("tow", lambda url: do.tow(url, OUTPUT)),
        entry("tow -x16", lambda url: do.tow(url, OUTPUT, "-x", "16")),
        entry("curl", lambda url: do.curl(url, OUTPUT)),
    ]
    if "aria2c" in bench.peers:
        entries.append(entry("aria2 -x16", lambda url: do.aria2(url, OUTPUT, *aria2_best(16))))
    if "axel" in bench.peers:
        # It looks for names in certificates, not for addresses: without a look at them.
        entries.append(entry("axel -n16", lambda url: do.axel(url, OUTPUT, "-k", "-n16")))
    contest(bench, result, entries, {str(OUTPUT): bench.origin.served / name}, rounds=bench.rounds(3, 9), warm=True,
            target=bench.origin.tls, scheme="https")
    label, wall = result.best(labels=["aria2 -x16", "axel -n16"])
    if label:
        # Nor do sixteen: they are there for the time that it takes to begin with each.
        result.at_most(f"tow -x16: wall / {label}", ratio(result.median("tow -x16"), wall), 1.0, must=False)
    if "curl" in bench.peers:
        # More connections than one do not pay off here.
        result.at_most("tow: wall / curl", ratio(result.median("tow"), result.median("curl")), 1.1)
    return result


def durable(bench):
    """One large file that is saved to disk (fsync) before the program exits."""
    size = bench.pick(256 << 20, 2 << 30)
    name = bench.origin.file(size)
    result = Result("durable", f"{size >> 20} MiB over loopback to {bench.disk_kind}, saved to disk at exit")
    do = OneFile(bench)
    entries = single(bench, name, peers=bench.quick_peers("curl", "aria2c"))
    if "aria2c" in bench.peers:
        entries.append(Entry("aria2 -x16", lambda base: do.aria2(f"{base}/{name}", OUTPUT, *aria2_best(16))))
        entries.append(Entry("aria2", lambda base: do.aria2(f"{base}/{name}", OUTPUT)))
    if "curl" in bench.peers:
        # What the disk itself takes: without it nobody could say whether a miss is tow's.
        entries.append(Entry("curl, then sync", lambda base: [
            "sh", "-c", '"$@" && sync -d downloaded', "sh", *do.curl(f"{base}/{name}", OUTPUT)], peer=False))
    entries.append(Entry("tow --no-sync", lambda base: do.tow(f"{base}/{name}", OUTPUT, "--no-sync"), peer=False))
    contest(bench, result, entries, {str(OUTPUT): bench.origin.served / name}, rounds=bench.rounds(2, 7),
            place=bench.disk)
    label, wall = result.best(labels=["aria2", "aria2 -x16", "aria2 --file-allocation=none"])
    if label:
        result.at_most(f"tow: wall / {label}", ratio(result.median("tow"), wall), 1.0)
    if "curl" in bench.peers:
        result.at_most("tow: wall / curl, which does not sync", ratio(result.median("tow"), result.median("curl")),
                       1.15)
        result.at_most("tow: wall / curl, then sync", ratio(result.median("tow"), result.median("curl, then sync")), 1.0,
                       must=False)
    result.tails()
    return result


def checksum(bench):
    """One large file with --checksum, over a slow and over a fast network."""
    results = []
    for speed in ("100m", None):
        size = bench.pick(160 << 20, 1 << 30)
        name = bench.origin.file(size)
        expected = servers.digest(bench.origin.served / name)
        path = f"rate/{speed}/{name}" if speed else name
        where = "at 100 MiB/s" if speed else "over loopback"
        result = Result("checksum-slow" if speed else "checksum-fast",
                        f"--checksum sha256 of {size >> 20} MiB {where}, one connection")
        do, digest = OneFile(bench), f"sha256:{expected}"
        entries = [
            Entry("tow", lambda base: do.tow(f"{base}/{path}", OUTPUT, "-x", "1")),
            Entry("tow --checksum",
                  lambda base: do.tow(f"{base}/{path}", OUTPUT, "-x", "1", "--checksum", digest)),
        ]
        alone, together = "openssl dgst -sha256", "openssl beside tow without --checksum"
        if not speed:
            entries.append(Entry(alone, lambda base: ["openssl", "dgst", "-sha256", bench.origin.served / name],
                                 peer=False, makes=False))
            entries.append(Entry(together, lambda base: [
                "sh", "-c", 'openssl dgst -sha256 "$0" >/dev/null & "$@"; wait', bench.origin.served / name,
                *do.tow(f"{base}/{path}", OUTPUT, "-x", "1")], peer=False))
            if "aria2c" in bench.peers:
                entries.append(Entry("aria2 --checksum", lambda base: do.aria2(
                    f"{base}/{path}", OUTPUT, "--file-allocation=none", f"--checksum=sha-256={expected}")))
        contest(bench, result, entries, {str(OUTPUT): bench.origin.served / name}, rounds=bench.rounds(1 if speed else 3, 5))
        without = result.median("tow")
        if not speed:
            # As far as the hash's own speed allows.
            both = [value for value in (without, result.median(alone)) if value]
            without = max(both) if len(both) == 2 else None
        result.at_most("tow --checksum: wall / " + ("tow" if speed else "slower of tow and openssl alone"),
                       ratio(result.median("tow --checksum"), without), 1.05)
        if not speed:
            # Two programs that know nothing of each other: what this machine's cores allow beside the server.
            result.at_most("tow --checksum: wall / tow and openssl at the same time",
                           ratio(result.median("tow --checksum"), result.median(together)), 1.05, must=False)
        results.append(result)
    return results


def start_up(bench):
    """Start-up time: programs that do almost nothing, many runs."""
    results = []
    bench.origin.one_small_file(1024)
    url = f"http://127.0.0.1:{bench.origin.plain}/many/1024/small"
    work = {
        "start-version": ("--version", 2.0, {"tow": [bench.tow, "--version"], "curl": ["curl", "--version"]}),
        "start-get": ("one file of 1 KiB", 1.5, {
            "tow": [bench.tow, "get", "-q", "-o", "small", url],
            "tow --no-sync": [bench.tow, "get", "-q", "--no-sync", "-o", "small", url],
            "curl": ["curl", "-q", "-sS", "-o", "small", url]}),
    }
    trusting = bench.origin.as_system_authority()
    if trusting:
        do, url, small = OneFile(bench), f"https://127.0.0.1:{bench.origin.tls}/many/1024/small", pathlib.Path("small")
        programs = {"tow": do.tow, "curl": do.curl, "aria2c": do.aria2, "wget2": do.wget2}
        work["start-get-tls"] = ("one file of 1 KiB over TLS, system certificates", 1.0, {
            label: [*trusting, *command(url, small)] for label, command in programs.items()
            if label == "tow" or label in bench.peers})
    for name, (title, limit, commands) in work.items():
        result = Result(name, f"time from start to exit, {title}")
        result.entries = [Entry(label, lambda base: None) for label in commands]
        for number in range(bench.rounds(40, 400)):
            for entry in result.entries:
                command = list(commands[entry.label])
                command[0] = shutil.which(str(command[0]))
                if command[0] is None:
                    continue
                directory = bench.memory / "out"
                shutil.rmtree(directory, ignore_errors=True)
                directory.mkdir()
                seconds, status = measuring.spawn_time(command, directory, bench.home)
                run = measuring.Run(wall=seconds, failure=f"exit status {status}" if status else None)
                if name.startswith("start-get") and not status and (directory / "small").stat().st_size != 1024:
                    run.failure = "the file has the wrong length"
                if number:  # the first one fills caches
                    entry.runs.append(run)
        result.at_most("tow: wall / curl", ratio(result.median("tow"), result.median("curl")), limit)
        peer, best = result.best()
        if peer not in (None, "curl"):
            result.at_most(f"tow: wall / {peer}", ratio(result.median("tow"), best), 1.0, must=False)
        results.append(result)
    return results


ROWS = {
    "large-http": large_http, "large-tls": large_tls, "large-tls-16": large_tls_16, "durable": durable,
    "checksum": checksum, "start": start_up,
}
