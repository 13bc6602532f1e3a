"""nginx over TLS on loopback, for tests: what it serves, what it saw."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from certificates import Pair

BODY = "searchbench " * 400
# $ssl_session_reused is "r" where it was resumed, "." where not.
NGINX = """
daemon off;
worker_processes 1;
pid {place}/pid;
error_log {place}/error.log;
events {{ worker_connections 512; }}
http {{
  log_format seen '$ssl_server_name|$ssl_session_reused|$http_authorization|$http_host|$scheme';
  access_log {place}/access.log seen;
  client_body_temp_path {place}/b; proxy_temp_path {place}/p; fastcgi_temp_path {place}/f;
  uwsgi_temp_path {place}/u; scgi_temp_path {place}/s;
  keepalive_requests 1000000;
  gzip on; gzip_types text/plain; gzip_min_length 1;
  default_type text/plain;
  root {place};
  ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate {pair.cert}; ssl_certificate_key {pair.key};
  server {{ listen 127.0.0.1:{port} ssl; {more} }}
}}
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def until_it_listens(argv: list[str], port: int) -> Iterator[None]:
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(200):
                with socket.socket() as peer:
                    if peer.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert server.poll() is None, "the server ended"
                time.sleep(0.02)
            yield
        finally:
            server.terminate()


class Web:
    """nginx on a port of its own; ``seen``: a line for each request, as its log has it."""

    def __init__(self, place: Path, port: int) -> None:
        self.place, self.port, self.url = place, port, f"https://localhost:{port}/body.txt"

    def seen(self) -> list[dict[str, str]]:
        keys = ("sni", "reused", "authorization", "host", "scheme")
        lines = (self.place / "access.log").read_text().splitlines()
        return [dict(zip(keys, line.split("|"), strict=True)) for line in lines]


@contextmanager
def nginx(place: Path, pair: Pair, more: str = "") -> Iterator[Web]:
    place.mkdir(parents=True, exist_ok=True)
    port = free_port()
    (place / "body.txt").write_text(BODY)
    text = NGINX.format(place=place, pair=pair, port=port, more=more)
    (place / "nginx.conf").write_text(("user root;" if os.geteuid() == 0 else "") + text)
    with until_it_listens(["nginx", "-p", str(place), "-c", str(place / "nginx.conf")], port):
        yield Web(place, port)
