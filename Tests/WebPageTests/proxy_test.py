"""The blocks of docs/reverse-proxy.md, with nginx and Caddy in front of the built towd.

    proxy_test.py TOWD FOLDER
"""

import base64
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
import zlib

TOWD, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/reverse-proxy.md"
ORIGIN = "https://nas.example"
PATIENCE = 60
started = []


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(words, port, name):
    """Starts a program, and waits until it listens on the port."""
    with open(FOLDER / f"{name}.log", "ab") as log:
        process = subprocess.Popen(
            words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={**os.environ, "HOME": str(FOLDER)})
    started.append(process)
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"{name} does not listen: " + (FOLDER / f"{name}.log").read_text()[-2000:])
            time.sleep(0.05)


class Site(http.client.HTTPSConnection):
    """A connection to the proxy under the name of the site."""

    def __init__(self, port):
        super().__init__("nas.example", port, timeout=PATIENCE)

    def connect(self):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        plain = socket.create_connection(("127.0.0.1", self.port), self.timeout)
        self.sock = context.wrap_socket(plain, server_hostname="nas.example")


def blocks(language):
    """The blocks of the page in a language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


class Visit:
    """What a browser does with the page behind a proxy."""

    def __init__(self, port, block, upstream_token):
        self.port, self.token = port, upstream_token
        self.prefix = "/towline/" if "/towline" in block else "/"
        self.fields = {"Host": "nas.example", "Accept-Encoding": "gzip"}
        if "basicauth" in block or "auth_basic" in block:
            assert self.ask("GET", "")[0] == 401, "the proxy asks for no password"
            self.fields["Authorization"] = "Basic " + base64.b64encode(b"anna:secret").decode()

    def ask(self, method, path, body=None, **fields):
        connection = Site(self.port)
        if body is not None:
            fields |= {"Content-Type": "application/json", "Origin": ORIGIN}
        connection.request(method, self.prefix + path, body and json.dumps(body), {**self.fields, **fields})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, answer.getheader("Set-Cookie"), text

    def run(self):
        status, _, text = self.ask("GET", "", **{"Accept-Encoding": "identity"})
        assert status == 200 and b"page/main.js" in text, (status, text[:200])
        assert self.ask("GET", "page/main.js", Origin=ORIGIN)[0] == 200
        status, cookie, text = self.ask("POST", "api/v1/session", {"token": self.token})
        assert status == 204 and cookie.endswith("; Secure"), (status, cookie, text)
        self.fields["Cookie"] = cookie.split(";")[0]
        assert self.ask("GET", "api/v1/settings")[0] == 200
        self.events()
        if self.prefix != "/":
            self.prefix = "/towline"
            assert self.ask("GET", "")[0] in (301, 302)

    def events(self):
        """An event arrives while the stream stays open: the proxy does not hold it back, even if it compresses."""
        connection = Site(self.port)
        connection.request("GET", self.prefix + "api/v1/events", headers=self.fields)
        stream = connection.getresponse()
        assert stream.status == 200, stream.status
        decoder = zlib.decompressobj(wbits=31) if stream.getheader("Content-Encoding") == "gzip" else None
        read = lambda: stream.read1(65536) if decoder is None else decoder.decompress(stream.read1(65536))
        text = read()
        name = f"from-{self.port}.bin"
        status, _, answer = self.ask("POST", "api/v1/downloads", {"url": f"http://127.0.0.1:9/{name}", "startsPaused": True})
        assert status == 201, (status, answer)
        while name.encode() not in text:
            text += read()
            assert not stream.isclosed(), "the stream ended"
        connection.close()


def nginx(block, port):
    for old, new in [
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"), ("/etc/ssl/nas.example", str(FOLDER / "nas.example")),
        ("/etc/nginx/towline.passwords", str(FOLDER / "passwords")),
    ]:
        block = block.replace(old, new)
    paths = " ".join(f"{kind}_temp_path {FOLDER}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;" if os.geteuid() == 0 else ""
    (FOLDER / "nginx.conf").write_text(
        f"daemon off; {user} pid {FOLDER}/nginx.pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; {paths} gzip on; gzip_types *; gzip_proxied any;\n{block}\n}}\n")
    start(["nginx", "-p", str(FOLDER), "-c", str(FOLDER / "nginx.conf")], port, "nginx")


def caddy(block, port):
    secret = subprocess.run(["caddy", "hash-password", "--plaintext", "secret"], capture_output=True, text=True, check=True)
    block = block.replace("HASH", secret.stdout.strip()).replace(
        "nas.example {", f"https://nas.example:{port} {{\n bind 127.0.0.1\n tls {FOLDER}/nas.example.pem {FOLDER}/nas.example.key", 1)
    (FOLDER / "Caddyfile").write_text("{\n admin off\n auto_https disable_redirects\n}\n" + block)
    start(["caddy", "run", "--config", str(FOLDER / "Caddyfile"), "--adapter", "caddyfile"], port, "caddy")


def main():
    port = free_port()
    (FOLDER / "towd.yaml").write_text("{}\n")
    start(
        [TOWD, "--state", FOLDER / "state", "--downloads", FOLDER / "downloads", "--socket", FOLDER / "towd.sock",
         "--listen", f"127.0.0.1:{port}", "--host", "nas.example", "--config", FOLDER / "towd.yaml"], port, "towd")
    token = (FOLDER / "state/token").read_text().strip()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=nas.example", "-days", "2", "-addext",
         "subjectAltName=DNS:nas.example", "-keyout", FOLDER / "nas.example.key", "-out", FOLDER / "nas.example.pem"],
        check=True, capture_output=True)
    secret = subprocess.run(["openssl", "passwd", "-apr1", "secret"], capture_output=True, text=True, check=True)
    (FOLDER / "passwords").write_text("anna:" + secret.stdout)
    for language, proxy in [("nginx", nginx), ("caddyfile", caddy)]:
        found = blocks(language)
        assert len(found) == 2, f"{PAGE} has {len(found)} blocks for {language}"
        for number, block in enumerate(found):
            own = free_port()
            proxy(block.replace("127.0.0.1:6880", f"127.0.0.1:{port}"), own)
            try:
                Visit(own, block, token).run()
            except (AssertionError, OSError) as error:
                raise AssertionError(f"{language}, block {number + 1}: {error!r}") from error
            started.pop().terminate()


signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
try:
    main()
finally:
    for each in reversed(started):
        each.terminate()
        each.wait()
