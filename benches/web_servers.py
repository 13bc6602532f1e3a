"""HTTP servers for the benches: nginx and Groonga of this machine, private, on loopback.

Each stands in a folder that goes with it and is pinned to the server's core.
"""

from __future__ import annotations

import os
import shutil
import signal
import ssl
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
    listen 127.0.0.1:PORT LISTEN backlog=4096;
    SECURE
    root PLACE/files;
    location = / { try_files /page =404; }
    location = /slow { limit_rate 500; try_files /page =404; }
  }
}
"""


_SECURE = """\
ssl_certificate PLACE/cert;
    ssl_certificate_key PLACE/key;
    ssl_session_cache off;
    ssl_session_tickets off;
"""
_CERTIFY = [
    "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
    "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
]  # fmt: skip
# Whether it answers at all is asked of our own server, whose certificate nobody has signed.
_ANYBODY = ssl.create_default_context()
_ANYBODY.check_hostname, _ANYBODY.verify_mode = False, ssl.CERT_NONE


@contextmanager
def nginx(*, keep_alive: bool, tls: bool = False) -> Iterator[str]:
    """The URL of a file of 1 KB; without ``keep_alive`` each reply ends its connection.

    ``tls``: with a certificate of its own; no session is resumed. /slow is the same file in some
    two seconds.
    """
    if not (program := _found("nginx")):
        raise MissingError("nginx (Debian: apt-get install nginx-light)")
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
        place, port = Path(folder), free_port()
        (place / "files").mkdir()
        (place / "files" / "page").write_bytes(BODY)
        config = _NGINX.replace("LISTEN", "ssl" if tls else "").replace(
            "SECURE", _SECURE if tls else ""
        )
        config = config.replace("PLACE", folder).replace("PORT", str(port))
        if tls:
            subprocess.run([*_CERTIFY, f"{folder}/key", "-out", f"{folder}/cert"],
                           check=True, capture_output=True)  # fmt: skip
        (place / "conf").write_text(config.replace("KEEP", "3600s" if keep_alive else "0"))
        url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/"
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
                with urllib.request.urlopen(url, timeout=5, context=_ANYBODY) as reply:
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
