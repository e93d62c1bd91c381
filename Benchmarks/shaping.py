"""The shaping proxy, between a client and nginx."""

import contextlib
import json
import subprocess
import threading


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
        self.process = proxy
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


class Mirrors:
    """Servers of one file behind a network each. The last one is gone after some seconds."""

    def __init__(self, networks, seconds):
        self.networks, self.seconds, self.ports = networks, seconds, []

    @contextlib.contextmanager
    def between(self):
        """Gives the first one's port; `ports` has all."""
        with contextlib.ExitStack() as stack:
            self.ports = [stack.enter_context(network.between()) for network in self.networks]
            end = threading.Timer(self.seconds, self.networks[-1].process.kill)
            end.start()
            try:
                yield self.ports[0]
            finally:
                end.cancel()

    def urls(self, path):
        return [f"http://127.0.0.1:{port}/{path}" for port in self.ports]


@contextlib.contextmanager
def directly(port):
    """No proxy: the server's port."""
    yield port
