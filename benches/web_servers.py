"""HTTP servers for the benches: nginx and Groonga of this machine, private, on loopback.

Each stands in a folder that goes with it and is pinned to the server's core.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benches.databases import MissingError, free_port
from benches.servers import SERVER_CPU

START_S = 20.0
BODY = b"x" * 1024

# One process; a file of 1 KB; it neither logs nor ends a connection by itself.
_NGINX = """\
daemon off;
master_process off;
pid PLACE/pid;
error_log stderr error;
events { worker_connections 4096; }
http {
  access_log off;
  default_type text/plain;
  keepalive_timeout KEEP;
  keepalive_requests 1000000000;
  client_body_temp_path PLACE/t1;
  proxy_temp_path PLACE/t2;
  fastcgi_temp_path PLACE/t3;
  scgi_temp_path PLACE/t4;
  uwsgi_temp_path PLACE/t5;
  server {
    listen 127.0.0.1:PORT backlog=4096;
    root PLACE/files;
    location = / { try_files /page =404; }
  }
}
"""


@contextmanager
def nginx(*, keep_alive: bool) -> Iterator[str]:
    """The URL of a file of 1 KB; without ``keep_alive`` each reply ends its connection."""
    if not (program := _found("nginx")):
        raise MissingError("nginx (Debian: apt-get install nginx-light)")
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
        place, port = Path(folder), free_port()
        (place / "files").mkdir()
        (place / "files" / "page").write_bytes(BODY)
        config = _NGINX.replace("PLACE", folder).replace("PORT", str(port))
        (place / "conf").write_text(config.replace("KEEP", "3600s" if keep_alive else "0"))
        url = f"http://127.0.0.1:{port}/"
        with _standing([program, "-p", folder, "-c", str(place / "conf")], url, place):
            yield url


@contextmanager
def groonga() -> Iterator[str]:
    """The URL of the status of an empty database: `groonga -s` ends each connection."""
    if not (program := _found("groonga")):
        raise MissingError("groonga (`searchbench engines install groonga`)")
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
        place, port = Path(folder), free_port()
        argv = [
            program, "-s", "--protocol", "http", "--bind-address", "127.0.0.1", "-p", str(port),
            "--log-path", f"{folder}/log", "--max-threads", "1", "-n", f"{folder}/db",
        ]  # fmt: skip
        url = f"http://127.0.0.1:{port}/d/status"
        with _standing(argv, url, place):
            yield url


def _found(name: str) -> str | None:
    """nginx is in sbin, which is not on everybody's path."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


@contextmanager
def _standing(argv: Sequence[str], url: str, place: Path) -> Iterator[None]:
    """Start it, wait until it answers, stop it."""
    with (place / "said").open("wb") as said:
        process = subprocess.Popen(
            ["taskset", "-c", str(SERVER_CPU), *argv], stdout=said, stderr=subprocess.STDOUT
        )
    try:
        until = time.monotonic() + START_S
        while True:
            try:
                with urllib.request.urlopen(url, timeout=5) as reply:
                    reply.read()
                break
            except OSError as error:
                if process.poll() is not None or time.monotonic() > until:
                    told = (place / "said").read_text(errors="replace")[-300:]
                    raise RuntimeError(f"{argv[0]} does not answer: {told}") from error
                time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
