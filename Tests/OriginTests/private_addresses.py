"""A client of another machine has `towd` request addresses that are not public. Runs in its own namespaces (`unshare -mn`);
a second network namespace is the host with the public address. Prints the outcomes as JSON."""

import ctypes
import http.client
import http.server
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

PUBLIC = "93.184.216.34"
# This machine's own public address, and a host in its directly connected IPv6 network.
OWN = "93.184.216.35"
NEAR = "2a00:1::6"
# No interface has these, but the kernel delivers them to this machine (ip-route(8), `local`).
ROUTED = ["93.184.217.7", "93.184.218.9", "2a00:2::7", "2a00:3::9"]
PRIVATE = ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00::7", OWN, "2a00:1::5"]
towd, folder, policy = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]


def run(*words):
    subprocess.run(words, check=True)


run("ip", "link", "set", "lo", "up")
for address in ["10.1.2.3/32", "169.254.169.254/32", "fd00::7/128"]:
    run("ip", "addr", "add", address, "dev", "lo", *["nodad"] * (":" in address))
for network in ["93.184.217.7/32", "93.184.218.0/24", "2a00:2::7/128", "2a00:3::/64"]:
    run("ip", "route", "add", "local", network, "dev", "lo")
hosts = folder / "hosts"
hosts.write_text(f"127.0.0.1 localhost rebound.test\n10.1.2.3 inside.test\n{PUBLIC} public.test\n"
                 + "".join(f"{address} routed.test\n" for address in ROUTED))
run("mount", "--bind", str(hosts), "/etc/hosts")


class Public(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        target = urllib.parse.unquote(self.path.partition("?to=")[2])
        self.send_response(302 if target else 200)
        if target:
            self.send_header("Location", target)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"file")

    def log_message(self, *_):
        pass


def add(device, *addresses):
    run("ip", "link", "set", device, "up")
    for address in addresses:
        run("ip", "addr", "add", address, "dev", device, *["nodad"] * (":" in address))


def neighbour():
    """Runs the host with the public address in a process of its own; returns its number."""
    ready, go = os.pipe(), os.pipe()
    process = os.fork()
    if process == 0:
        library = ctypes.CDLL(None)
        # PR_SET_PDEATHSIG: the host ends with this script, also if the script fails.
        if library.prctl(1, signal.SIGKILL) or library.unshare(0x40000000):  # CLONE_NEWNET
            os._exit(1)
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        add("far", PUBLIC + "/24", NEAR + "/64")
        serve(PUBLIC, 8080, Public)
        serve(NEAR, 8081, Public)
        os.write(ready[1], b"y")
        signal.pause()
    os.read(ready[0], 1)
    run("ip", "link", "add", "near", "type", "veth", "peer", "name", "far")
    run("ip", "link", "set", "far", "netns", str(process))
    add("near", OWN + "/24", "2a00:1::5/64")
    os.write(go[1], b"x")
    os.read(ready[0], 1)
    return process


reached = []
settings = folder / "towd.yaml"
settings.write_text("{}\n")


class Private(Public):
    def do_GET(self):
        reached.append(self.connection.getsockname()[0] + self.path)
        super().do_GET()


def serve(address, port, handler):
    kind = type("Server", (http.server.ThreadingHTTPServer,), {"address_family": socket.AF_INET6 if ":" in address else socket.AF_INET})
    threading.Thread(target=kind((address, port), handler).serve_forever, daemon=True).start()


public = neighbour()
for address in PRIVATE:
    serve(address, 8081, Private)
# An IPv6 address that no interface has cannot be listened on by itself. This takes IPv4 too.
serve("::", 8083, Private)

service = subprocess.Popen(
    [towd, "--state", folder / "state", "--downloads", folder / "downloads", "--socket", folder / "towd.sock",
     "--listen", f"{OWN}:6880", "--config", settings] + (["--private-addresses", policy] if policy else []),
    stdout=subprocess.DEVNULL, env={**os.environ, "HOME": str(folder), "http_proxy": "http://127.0.0.1:8081"})


def connect():
    for _ in range(300):
        try:
            return socket.create_connection((OWN, 6880), source_address=(OWN, 0), timeout=20)
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise SystemExit("towd does not listen")


def ask(method, path, body=None, local=False):
    if local:
        link = socket.socket(socket.AF_UNIX)
        link.connect(str(folder / "towd.sock"))
    else:
        link = connect()
    client = http.client.HTTPConnection(f"{OWN}:6880")
    client.sock = link
    token = (folder / "state/token").read_text().strip()
    client.request(method, "/api/v1" + path, json.dumps(body) if body else None,
                   {"Content-Type": "application/json", "Authorization": "Bearer " + token})
    answer = client.getresponse()
    return answer.status, json.loads(answer.read() or "null")


def fetch(url, local=False):
    """The state that a download ends in and its error, or the status that refuses it."""
    status, answer = ask("POST", "/downloads", {"url": url, "maximumTries": 1}, local)
    if status != 201:
        return str(status)
    return ended(answer["downloads"][0]["id"], local)


def ended(name, local=False):
    for _ in range(400):
        _, download = ask("GET", "/downloads/" + name, local=local)
        if download["state"] in ("finished", "failed"):
            return (download.get("error") or {}).get("code", download["state"])
        time.sleep(0.05)
    return "never"


def to(target):
    return f"http://public.test:8080/r{len(target)}?to=" + urllib.parse.quote(target, safe="")


urls = [f"http://{'[' + a + ']' if ':' in a else a}:8081/{n}" for n, a in enumerate(PRIVATE)]
urls += ["http://localhost:8081/a", "http://rebound.test:8081/b", "http://inside.test:8081/c"]
urls += ["http://2130706433:8081/d", "http://0x7f000001:8081/e", "http://127.1:8081/f", "http://[::ffff:127.0.0.1]:8081/g"]
urls += ["http://0.0.0.0:8081/h", to("http://127.0.0.1:8081/i"), to("http://rebound.test:8081/j"), to(to("http://[fd00::7]:8081/k"))]
urls += [f"http://[::ffff:{OWN}]:8081/l", to(f"http://{OWN}:8081/n"), f"http://[{NEAR}]:8081/o"]
urls += [f"http://{'[' + a + ']' if ':' in a else a}:8083/p{n}" for n, a in enumerate(ROUTED)]
urls += ["http://routed.test:8083/q", to("http://[2a00:3::5]:8083/r"), to("http://93.184.218.77:8083/s"), "http://[::ffff:93.184.217.7]:8083/t"]
result = {"refused": {url: fetch(url) for url in urls}, "reached": list(reached)}
result["public"] = fetch(f"http://{PUBLIC}:8080/ok")
result["redirected"] = fetch(to(f"http://{PUBLIC}:8080/elsewhere"))
# Another link for a download that somebody on this machine added.
_, answer = ask("POST", "/downloads", {"url": f"http://{PUBLIC}:8080/later", "startsPaused": True}, local=True)
name = answer["downloads"][0]["id"]
ask("PATCH", "/downloads/" + name, {"url": "http://127.0.0.1:8081/m"})
ask("POST", f"/downloads/{name}/actions/resume")
result["link"] = ended(name)
result["reached"] += [place for place in reached if place.endswith("/m")]
os.environ.pop("http_proxy", None)
result["local"] = fetch("http://127.0.0.1:8081/local", local=True)
service.terminate()
service.wait(10)
os.kill(public, signal.SIGKILL)
print(json.dumps(result))
