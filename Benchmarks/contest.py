"""Programs that do the same work in turn, A B A B, and what must hold of the outcome."""

import dataclasses
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable

import measuring
import servers
import shaping


@dataclasses.dataclass
class Entry:
    """One program with its options in a row."""

    label: str
    command: Callable  # (base URL) -> words, run in an empty directory
    rounds: int | None = None  # how often, if not as often as the others: for those that take very long
    peer: bool = True  # whether it counts when the best peer is looked for
    makes: bool = True  # whether it makes the row's files
    timeout: float | None = None
    runs: list = dataclasses.field(default_factory=list)

    @property
    def is_tow(self):
        return self.label.split()[0] == "tow"

    @property
    def failure(self):
        return next((run.failure for run in self.runs if run.failure), None)

    def values(self, what):
        return [getattr(run, what) for run in self.runs if not run.failure and getattr(run, what) is not None]

    def median(self, what):
        return measuring.middle(self.values(what))


@dataclasses.dataclass
class Check:
    """Something that must hold, or that is told for information (`must` is false)."""

    text: str
    value: float | None
    limit: float
    at_most: bool
    must: bool
    unit: str = ""

    @property
    def passed(self):
        return self.value is not None and (self.value <= self.limit if self.at_most else self.value >= self.limit)


class Result:
    """The outcome of a row."""

    def __init__(self, name, title, metric="wall"):
        self.name, self.title, self.metric = name, title, metric
        self.entries, self.checks, self.notes, self.figures = [], [], [], {}

    def entry(self, label):
        return next((entry for entry in self.entries if entry.label == label), None)

    def median(self, label, what="wall"):
        entry = self.entry(label)
        return entry.median(what) if entry else None

    def best(self, what="wall", labels=None):
        """(label, median) of the best peer, or of the best of those named; (None, None) if there is none."""
        found = [
            (entry.median(what), entry.label) for entry in self.entries
            if entry.median(what) is not None and (entry.label in labels if labels else entry.peer and not entry.is_tow)
        ]
        return tuple(reversed(min(found))) if found else (None, None)

    def at_most(self, text, value, limit, must=True, unit=""):
        self.checks.append(Check(text, value, limit, True, must, unit))

    def at_least(self, text, value, limit, must=True, unit=""):
        self.checks.append(Check(text, value, limit, False, must, unit))

    def speed_against_best(self, label, limit, must=True, what="wall"):
        """How many times as fast as the best peer, by that measure, the entry is."""
        peer, value = self.best(what)
        if peer is None:
            self.notes.append(f"{label} is not compared: no other program ran")
        else:
            self.at_least(f"{label}: speed / {peer}", ratio(value, self.median(label, what)), limit, must)

    def cost_against_best(self, label, limit, what="cpu", must=True):
        """How many times the best peer's the entry's figure is."""
        peer, value = self.best(what)
        if peer is None:
            self.notes.append(f"{label} is not compared: no other program ran")
        else:
            name = {"cpu": "CPU", "wall": "wall"}[what]
            self.at_most(f"{label}: {name} / {peer}", ratio(self.median(label, what), value), limit, must)

    def tails(self):
        """No run of tow spends more than a twentieth of its time on the last hundredth of its bytes."""
        for entry in self.entries:
            if entry.is_tow and entry.values("tail"):
                self.at_most(f"{entry.label}: share of time for the last 1 % of bytes, maximum",
                             max(entry.values("tail")), 0.05)


def ratio(one, other):
    return one / other if one is not None and other else None


def contest(bench, result, entries, outputs, *, rounds, place=None, network=None, target=None, timeout=60,
            warm=False, scheme="http"):
    """Runs the entries in turn in an empty directory below `place` and adds them to the result.

    `outputs` maps the names of the files to be made to those that the server has. `network` is what lies between the client and
    the server's port `target`.
    """
    place = place or bench.memory
    target = target or bench.origin.plain
    if bench.earlier:
        entries = beside_earlier(bench, entries)
    total = sum(path.stat().st_size for path in outputs.values())
    result.entries += entries
    for number in range(-1 if warm else 0, rounds):
        for entry in entries:
            if number >= (entry.rounds or rounds) or entry.failure:
                continue
            if place == bench.memory:
                touch(place, sum(room(path.stat().st_size) for path in outputs.values()))
            with network.between() if network else shaping.directly(target) as port:
                command = entry.command(f"{scheme}://127.0.0.1:{port}")
                run = once(bench, command, entry, outputs, place, entry.timeout or timeout, total)
            if number >= 0 or run.failure:
                entry.runs.append(run)
            bench.progress(result, entry, run)
    for directory in bench.disk.glob("out-*"):
        shutil.rmtree(directory, ignore_errors=True)
    for entry in entries:
        if entry.is_tow and entry.failure:
            result.at_most(f"{entry.label} failed ({entry.failure})", None, 0)
        if entry.is_tow and bench.earlier:
            for what, name in (("wall", "wall"), ("cpu", "CPU")):
                earlier = result.median(f"earlier {entry.label}", what)
                result.at_most(f"{entry.label}: {name} / earlier", ratio(entry.median(what), earlier), 1.05)


def beside_earlier(bench, entries):
    """The entries of tow, each followed by the same with the earlier build; no peers."""
    def pair(entry):
        def command(base):
            return [bench.earlier if word == bench.tow else word for word in entry.command(base)]

        return [entry, dataclasses.replace(entry, label=f"earlier {entry.label}", command=command, peer=False, runs=[])]

    return [one for entry in entries if entry.is_tow for one in pair(entry)]


def room(size):
    """What a file takes in memory: whole pages, an inode and a name."""
    return (size + 4095 & ~4095) + 2048


def touch(place, size):
    """Has the machine below find its memory now: a virtual one's is given when it is used, at ten times the price, and
    taken back within seconds when it is free. One run would pay, the next not."""
    block = bytes(1 << 20)
    path = place / "touched"
    with open(path, "wb", buffering=0) as file:
        for _ in range(size >> 20):
            file.write(block)
    path.unlink()


def once(bench, command, entry, outputs, place, timeout, total):
    """One run in a directory of its own, its bytes checked."""
    # On a disk nothing is removed before the row is over: ext4 searches long for inodes where many were freed in the
    # last minutes (fs/ext4/ialloc.c, recently_deleted), and each program would pay for the one before it.
    directory = pathlib.Path(tempfile.mkdtemp(prefix="out-", dir=place))
    if place == bench.disk:
        # What the last one left unwritten must not be this one's burden.
        subprocess.run(["sync", "-f", place], check=False)
    before = bench.origin.cpu()
    run = measuring.run(command, directory=directory, home=bench.home, timeout=timeout, total=total)
    run.both = run.cpu + bench.origin.cpu() - before
    if not run.failure and entry.makes:
        run.failure = wrong(directory, outputs)
    if place != bench.disk:
        shutil.rmtree(directory, ignore_errors=True)
    return run


def wrong(directory, outputs):
    """What is wrong with the files made, if anything is."""
    for name, original in outputs.items():
        path = directory / name
        if not path.is_file():
            return f"{name} is missing"
        if not servers.equal(path, original):
            return f"{name} differs from the original ({path.stat().st_size} bytes)"
    return None
