"""The programs that tow is compared with, and how each is told to do the same work."""

import re
import shutil
import subprocess

PACKAGES = {"curl": "curl", "wget": "wget", "wget2": "wget2", "aria2c": "aria2", "axel": "axel"}
VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")


def installed():
    """The peers that are here, with their versions."""
    found = {}
    for program in PACKAGES:
        if shutil.which(program):
            said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            version = VERSION.search(said)
            found[program] = version.group(0) if version else "?"
    return found


class OneFile:
    """Commands that fetch one URL into one file. `connections`: how many, where a peer is told."""

    def __init__(self, bench, certificate=None, size=None):
        self.tow_path = bench.tow
        self.certificate, self.size = certificate, size

    def _trust(self, option):
        return [option, self.certificate] if self.certificate else []

    def tow(self, url, output, *options):
        return [self.tow_path, "get", "-q", *self._trust("--cacert"), *options, "-o", output, url]

    def curl(self, url, output, *options):
        return ["curl", "-q", "-sS", "-f", *self._trust("--cacert"), *options, "-o", output, url]

    def wget(self, url, output, *options):
        return ["wget", "--no-config", "-q", *self._trust("--ca-certificate"), *options, "-O", output, url]

    def wget2(self, url, output, *options):
        return ["wget2", "--no-config", "-q", *self._trust("--ca-certificate"), *options, "-O", output, url]

    def aria2(self, url, output, *options):
        return ["aria2c", "--no-conf=true", "-q", *self._trust("--ca-certificate"), *options, "-d", output.parent,
                "-o", output.name, url]

    def axel(self, url, output, *options):
        # It has no option for a certificate of one's own.
        trust = ["-k"] if self.certificate else []
        return ["axel", "-q", *trust, *options, "-o", output, url]


def aria2_best(connections):
    return [f"-x{connections}", f"-s{connections}", "-k1M", "--file-allocation=none"]


def wget2_best(connections, size):
    return [f"--max-threads={connections}", f"--chunk-size={max(size // connections, 1 << 20)}"]


class ManyFiles:
    """Commands that fetch a list of URLs into the current directory, each under the URL's last part.

    `lists` is where the lists are written; the names of the files are the same for all. Where the URLs are `redirected` curl, too,
    is told to follow.
    """

    def __init__(self, bench, urls, lists, certificate=None, redirected=False):
        self.tow_path, self.certificate, self.redirected = bench.tow, certificate, redirected
        self.urls = lists / "urls"
        self.urls.write_text("".join(url + "\n" for url in urls))
        self.config = lists / "curl-config"
        self.config.write_text("".join(f'url="{url}"\noutput="{url.rsplit("/", 1)[1]}"\n' for url in urls))

    def _trust(self, option):
        return [option, self.certificate] if self.certificate else []

    def tow(self, *options):
        return [self.tow_path, "get", "-q", *self._trust("--cacert"), *options, "-i", self.urls]

    def curl(self, *options):
        follow = ["-L"] if self.redirected else []
        return ["curl", "-q", "-sS", "-f", *follow, *self._trust("--cacert"), *options, "-K", self.config]

    def wget(self, *options):
        return ["wget", "--no-config", "-q", *self._trust("--ca-certificate"), *options, "-i", self.urls]

    def wget2(self, *options):
        return ["wget2", "--no-config", "-q", *self._trust("--ca-certificate"), *options, "-i", self.urls]

    def aria2(self, *options):
        return ["aria2c", "--no-conf=true", "-q", *self._trust("--ca-certificate"), *options, "-i", self.urls]
