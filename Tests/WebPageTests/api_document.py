"""Holds the running service against its OpenAPI document, with schemathesis. Runs in a network of its own (`unshare -n`)."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

towd, folder = sys.argv[1], pathlib.Path(sys.argv[2])
ADDRESS = ("127.0.0.1", 6880)

signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
settings = folder / "towd.yaml"
settings.write_text("{}\n")
(folder / "downloads").mkdir()
service = subprocess.Popen(
    [towd, "--state", folder / "state", "--downloads", folder / "downloads", "--socket", folder / "towd.sock",
     "--listen", "{}:{}".format(*ADDRESS), "--config", settings])
try:
    while True:
        try:
            socket.create_connection(ADDRESS).close()
            break
        except ConnectionRefusedError:
            if service.poll() is not None:
                sys.exit("towd ended")
            time.sleep(0.05)
    token = (folder / "state" / "token").read_text().strip()
    status = subprocess.run(
        [sys.executable, "-B", "-m", "schemathesis.cli", "--config-file", pathlib.Path(__file__).with_name("api_document.toml"),
         "run", "http://{}:{}/api/v1/openapi.json".format(*ADDRESS), "--header", f"Authorization: Bearer {token}"],
        cwd=folder, env={**os.environ, "COLUMNS": "120"}).returncode
    if service.poll() is not None:
        sys.exit("towd ended")
finally:
    service.kill()
    service.wait()
sys.exit(status)
