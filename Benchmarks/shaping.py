"""The shaping proxy, between a client and nginx."""

import contextlib
import json
import subprocess


class Network:
    """A network as `shaping-proxy` makes it: its options, and what it saw in each run."""

    def __init__(self, program, target, **options):
        self.command = [str(program), "--target", str(target)]
        for name, value in options.items():
            for one in value if isinstance(value, list) else [value]:
                self.command += ["--" + name.replace("_", "-"), str(one)]
        self.seen = []

    @contextlib.contextmanager
    def between(self):
        """A proxy of its own for one run: connections are numbered anew. Gives its port."""
        proxy = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            words = proxy.stdout.readline().split()
            if len(words) != 2:
                raise RuntimeError(f"shaping-proxy: {proxy.stderr.read()}")
            yield int(words[1])
        finally:
            # It ends with its standard input, also when this process is killed.
            proxy.stdin.close()
            try:
                last = proxy.stdout.readline()
                proxy.wait(5)
                self.seen.append(json.loads(last))
            except (subprocess.TimeoutExpired, ValueError):
                proxy.kill()
                proxy.wait()
            proxy.stdout.close()
            proxy.stderr.close()


@contextlib.contextmanager
def directly(port):
    """No proxy: the server's port."""
    yield port
