"""What is downloaded, and the nginx that serves it."""

import hashlib
import os
import pathlib
import shutil
import socket
import subprocess
import time

# Ports: plain, TLS, TLS with HTTP/2. /rate/SPEED/NAME serves NAME at SPEED per connection, /many/SIZE/ANYTHING one file,
# /near/PATH leads to PATH, /away/PATH to the same at another address.
CONFIGURATION = """
{user}worker_processes 1; worker_rlimit_nofile {files}; pid {place}/nginx.pid; daemon off;
error_log {place}/error.log;
events {{ worker_connections {connections}; }}
http {{
  access_log off; sendfile on; tcp_nopush on; default_type application/octet-stream;
  client_body_temp_path {place}/a; proxy_temp_path {place}/b; fastcgi_temp_path {place}/c;
  uwsgi_temp_path {place}/d; scgi_temp_path {place}/e;
  ssl_certificate {place}/certificate.pem; ssl_certificate_key {place}/key.pem;
  # Debian's curl fails now and then where nginx ends an HTTP/2 connection, after a thousand requests by default.
  keepalive_requests 10000000;
  open_file_cache max=20000 inactive=600s; open_file_cache_valid 600s;
  server {{
    {listens}
    {tls_listens}
    listen 127.0.0.1:{http2} ssl http2;
    root {place}/served; absolute_redirect off;
    location ~ ^/rate/(?<speed>[^/]+)/(?<name>[^/]+) {{ limit_rate $speed; try_files /$name =404; }}
    location ~ ^/many/(?<size>[0-9]+)/ {{ try_files /small-$size =404; }}
    location ~ ^/near(?<path>/.+) {{ return 302 $path; }}
    location ~ ^/away(?<path>/.+) {{ return 302 http://{other}:{plain}$path; }}
    location = /connections {{ stub_status; }}
  }}
}}
"""

# The same server under many names: programs limit the connections to one host.
HOSTS = [f"127.0.{number // 250}.{number % 250 + 1}" for number in range(640)]
# Those that it has over TLS, too, and for which its certificate is good.
TLS_HOSTS = HOSTS[:100]
# Debian's.
SYSTEM_AUTHORITIES = pathlib.Path("/etc/ssl/certs")
NOT_ROOT = "skipped: this row needs root to add a certificate authority for single programs (unshare)"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port, process, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        except OSError:
            time.sleep(0.02)
    return False


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def equal(one, other):
    """Whether two files have the same bytes."""
    with open(one, "rb") as first, open(other, "rb") as second:
        while True:
            piece = first.read(1 << 20)
            if piece != second.read(1 << 20):
                return False
            if not piece:
                return True


class Origin:
    """nginx and the files it serves, which are made when they are asked for."""

    def __init__(self, place):
        self.place = place
        self.served = place / "served"
        self.served.mkdir()
        # nginx drops its rights and must still read.
        place.chmod(0o755)
        self.files, self.made = {}, 0
        self.plain, self.tls, self.http2 = free_port(), free_port(), free_port()
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
             "-addext", "subjectAltName=" + ",".join(f"IP:{host}" for host in TLS_HOSTS), "-keyout", place / "key.pem",
             "-out", self.certificate],
            check=True, capture_output=True)
        limit = os.sysconf("SC_OPEN_MAX")
        (place / "nginx.conf").write_text(CONFIGURATION.format(
            place=place, plain=self.plain, other=HOSTS[1],
            listens="\n    ".join(f"listen {host}:{self.plain} backlog=4096;" for host in HOSTS),
            tls_listens="\n    ".join(f"listen {host}:{self.tls} ssl;" for host in TLS_HOSTS), http2=self.http2, files=limit,
            connections=min(limit - 100, 30000), user="user root; " if os.geteuid() == 0 else ""))
        nginx = shutil.which("nginx") or "/usr/sbin/nginx"
        self.process = subprocess.Popen(
            [nginx, "-c", place / "nginx.conf", "-e", place / "error.log"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        if not answers(self.plain, self.process):
            said = (place / "error.log").read_text() if (place / "error.log").exists() else ""
            self.stop()
            raise RuntimeError(f"nginx did not start: {said[-500:]}")

    @property
    def certificate(self):
        return self.place / "certificate.pem"

    def as_system_authority(self):
        """What runs a command where the certificate's authority is among the system's, as `update-ca-certificates` would put it
        there (mount_namespaces(7)); `None` if only root could."""
        if os.geteuid() or not SYSTEM_AUTHORITIES.is_dir() or not shutil.which("unshare"):
            return None
        folder = self.place / "authorities"
        if not folder.exists():
            shutil.copytree(SYSTEM_AUTHORITIES, folder, symlinks=True)
            certificate = self.certificate.read_bytes()
            with open(folder / "ca-certificates.crt", "ab") as file:
                file.write(certificate)
            name = subprocess.run(["openssl", "x509", "-hash", "-noout", "-in", self.certificate], capture_output=True,
                                  text=True, check=True).stdout.strip()
            (folder / f"{name}.0").write_bytes(certificate)
        return ["unshare", "-m", "sh", "-c", 'mount --bind "$1" "$2" && shift 2 && exec "$@"', "sh", folder,
                SYSTEM_AUTHORITIES]

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def cpu(self):
        """Seconds of CPU that its workers have taken so far."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return sum(int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in children) / 1e9

    def file(self, size):
        """The name of a file of `size` bytes."""
        name = self.files.get(size)
        if not name:
            # A name that was never there: nginx keeps files open.
            self.made += 1
            name = self.files[size] = f"file-{self.made}"
            block = os.urandom(1 << 20)
            with open(self.served / name, "wb") as file:
                left, number = size, 0
                while left:
                    # Each block differs: bytes in a wrong place do not go unnoticed.
                    part = (number.to_bytes(8, "big") + block)[:min(left, 1 << 20)]
                    file.write(part)
                    left, number = left - len(part), number + 1
        return name

    def forget(self):
        """Removes the large files: they are in memory."""
        for name in self.files.values():
            (self.served / name).unlink()
        self.files = {}

    def small_files(self, count, size):
        """The folder below `served` of `count` files of `size` bytes, named by their numbers."""
        folder = self.served / f"small-{count}-{size}"
        if not folder.exists():
            folder.mkdir()
            for number in range(count):
                (folder / f"{number:05}").write_bytes(os.urandom(size))
        return folder

    def one_small_file(self, size):
        """What /many/SIZE/ANYTHING serves."""
        path = self.served / f"small-{size}"
        if not path.exists():
            path.write_bytes(os.urandom(size))
        return path.read_bytes()


def make_floor(place):
    """The program that does the least: recv and pwrite. `None` without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        return None
    source = pathlib.Path(__file__).with_name("floor.c")
    subprocess.run([compiler, "-O2", "-Wall", "-o", place / "floor", source], check=True)
    return place / "floor"
