"""Runs a program and measures it: time, CPU, memory, and how its bytes came in."""

import dataclasses
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import threading
import time

# How often the bytes written are looked at, in seconds.
INTERVAL = 0.005


@dataclasses.dataclass
class Run:
    """One run of a program. `failure` says what was wrong with it; the figures are worth nothing then."""

    wall: float = 0.0
    cpu: float = 0.0
    both: float | None = None  # with what the server took meanwhile
    rss: int = 0  # KiB, the most at one time
    tail: float | None = None  # the share of its time spent on the last hundredth of its bytes
    failure: str | None = None


class Sampler(threading.Thread):
    """Watches a process: its peak memory, and the bytes it has written so far.

    The kernel's peak is asked for (VmHWM): what wait4 tells begins with that of the process which forked. The bytes are
    those of write(2) and its kin (`wchar`), so that all programs are measured alike.
    """

    def __init__(self, pid, total):
        super().__init__(daemon=True)
        self.pid, self.total = pid, total
        self.began = time.monotonic()
        self.peak = 0
        self.nearly = self.last = None
        self.over = threading.Event()

    def run(self):
        try:
            status = os.open(f"/proc/{self.pid}/status", os.O_RDONLY)
            io = os.open(f"/proc/{self.pid}/io", os.O_RDONLY)
        except OSError:
            return
        try:
            turns, before = 0, 0
            while not self.over.wait(INTERVAL):
                if self.total:
                    now, count = time.monotonic(), int(os.pread(io, 256, 0).split(b"wchar:")[1].split()[0])
                    if self.nearly is None and count >= 0.99 * self.total:
                        self.nearly = now
                    # What is written after the last byte of the file is not of the file.
                    if count > before and before < self.total:
                        self.last = now
                    before = count
                if turns % 4 == 0:
                    lines = os.pread(status, 4096, 0)
                    if b"VmHWM:" in lines:
                        self.peak = max(self.peak, int(lines.split(b"VmHWM:")[1].split()[0]))
                turns += 1
        except (OSError, IndexError, ValueError):
            pass  # the process has ended
        finally:
            os.close(status)
            os.close(io)

    def tail(self, ended):
        if not self.total or self.last is None:
            return None
        # Without a sample between 99 and 100 per cent it took less than an interval.
        return max(0.0, self.last - (self.nearly or self.last)) / (ended - self.began)


def kill_group(pid, how=signal.SIGKILL):
    try:
        os.killpg(pid, how)
    except ProcessLookupError:
        pass


def run(command, *, directory, home, timeout, total=None, stdin=None, output=None, started=None):
    """Runs a command to its end, or kills it and what it started after `timeout` seconds.

    `started` is called with the process's number, on this thread.
    """
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(home), "LANG": "C.UTF-8", "no_proxy": "*",
        "XDG_CONFIG_HOME": str(home), "XDG_STATE_HOME": str(home), "XDG_DATA_HOME": str(home),
    }
    result, expired = Run(), []
    with tempfile.TemporaryFile() as errors:
        began = time.monotonic()
        process = subprocess.Popen(
            [str(word) for word in command], cwd=directory, env=environment, start_new_session=True,
            stdin=stdin or subprocess.DEVNULL, stdout=output or subprocess.DEVNULL, stderr=errors)
        sampler = Sampler(process.pid, total)
        sampler.start()
        timer = threading.Timer(timeout, lambda: (expired.append(True), kill_group(process.pid)))
        timer.daemon = True
        timer.start()
        try:
            if started:
                started(process.pid)
            _, status, usage = os.wait4(process.pid, 0)
            ended = time.monotonic()
        except BaseException:
            kill_group(process.pid)
            process.wait()
            raise
        finally:
            timer.cancel()
            sampler.over.set()
        sampler.join()
        # What it left running must not take part in the next run.
        kill_group(process.pid)
        process.returncode = os.waitstatus_to_exitcode(status)
        result.wall, result.cpu = ended - began, usage.ru_utime + usage.ru_stime
        result.rss, result.tail = sampler.peak, sampler.tail(ended)
        if expired:
            result.failure = f"timed out after {timeout:.0f} s"
        elif process.returncode:
            errors.seek(0)
            said = errors.read(4096).decode(errors="replace").strip().split("\n")[-1]
            result.failure = f"exit status {process.returncode}: {said[:120]}"
    return result


def spawn_time(command, directory, home):
    """Seconds from starting a program to its end; as little as possible around it."""
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(home), "LANG": "C.UTF-8", "no_proxy": "*"}
    silence = [(os.POSIX_SPAWN_OPEN, number, "/dev/null", os.O_RDWR, 0) for number in (0, 1, 2)]
    words = [str(word) for word in command]
    here = os.getcwd()
    os.chdir(directory)
    try:
        began = time.perf_counter()
        pid = os.posix_spawn(words[0], words, environment, file_actions=silence)
        _, status = os.waitpid(pid, 0)
        ended = time.perf_counter()
    finally:
        os.chdir(here)
    return ended - began, os.waitstatus_to_exitcode(status)


def middle(values):
    return statistics.median(values) if values else None


def stolen():
    """(time that the machine's host took from it, all time), in ticks since it started."""
    ticks = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return ticks[7], sum(ticks[:8])
