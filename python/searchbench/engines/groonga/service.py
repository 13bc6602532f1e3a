"""The two servers of Groonga: its own, and groonga-httpd, which is nginx with Groonga inside.

A process that has opened a column never learns of an index that another process makes on it: it
neither searches nor fills it. So behind groonga-httpd one process alone writes, a `groonga -s` of
its own that nginx hands these commands to, and the workers only read.
"""

from __future__ import annotations

from dataclasses import replace

from searchbench.engines.engine import Companion, Parameters, Request, Service

_GET = "`searchbench engines install groonga` gets it"
_MAKE = (("groonga", "-n", "--config-path", "/dev/null", "{data}/db", "status"),)
# What writes; and object_inspect, so that nothing counts as ready before the writer is.
_WRITES = "table_create|column_create|load|io_flush|table_tokenize|object_inspect"
# Without a target it clears the locks of the database, and of all that is in it.
_CLEAR = (("groonga", "--config-path", "/dev/null", "{data}/db", "lock_clear"),)
_LOCKED = (
    "a lock that a killed process left in the database may be the reason, and then its log says "
    "`lock failed`; `clear_locks = true` of the system removes such locks before the new start"
)
_NGINX = """\
daemon off;
user root root;
worker_processes WORKERS;
pid {run}/nginx.pid;
error_log stderr warn;
events {
  worker_connections 4096;
}
http {
  access_log off;
  default_type application/json;
  keepalive_timeout 3600s;
  keepalive_requests 1000000000;
  client_max_body_size 0;
  client_header_buffer_size 64k;
  large_client_header_buffers 8 1m;
  client_body_temp_path {run}/body;
  proxy_temp_path {run}/proxied;
  fastcgi_temp_path {run}/fastcgi;
  scgi_temp_path {run}/scgi;
  uwsgi_temp_path {run}/uwsgi;
  groonga_database {data}/db;
  groonga_cache_limit CACHED;
  server {
    # Without reuseport nearly all connections go to one worker.
    listen {address}:{port} reuseport;
    location /d/ {
      groonga on;
      groonga_log_path /dev/stderr;
      groonga_query_log_path off;
    }
    location ~ ^/d/(WRITES)$ {
      proxy_pass http://127.0.0.1:{port:writer};
      proxy_request_buffering off;
      proxy_read_timeout 3600s;
    }
  }
}
"""


def service(params: Parameters, ready: Request) -> Service:
    """What to start for the level of ``server``; the database is made before the first start."""
    own = Service(
        argv=_groonga("{address}", "{port}", str(params["threads"]), str(params["cache_limit"])),
        wire="http",
        ready=ready,
        needs={"groonga": _GET},
        says=("groonga", "--version"),
        first=_MAKE,
        again={"": _CLEAR} if params["clear_locks"] else {},
        silent="" if params["clear_locks"] else _LOCKED,
    )
    if params["server"] == "groonga":
        return own
    config = (
        _NGINX.replace("WORKERS", str(params["httpd_workers"]))
        .replace("CACHED", str(params["cache_limit"]))
        .replace("WRITES", _WRITES)
    )
    return replace(
        own,
        argv=("groonga-httpd", "-e", "stderr", "-c", "{run}/nginx.conf"),
        files={"nginx.conf": config},
        needs={"groonga": _GET, "groonga-httpd": _GET},
        # What only reads takes no locks, and its writer may hold one that it needs.
        again={"writer": _CLEAR} if params["clear_locks"] else {},
        companions=(Companion("writer", _groonga("127.0.0.1", "{port:writer}", "1", "0")),),
    )


def _groonga(address: str, port: str, threads: str, cached: str) -> tuple[str, ...]:
    # Its log goes where its output goes, so that the end of it stands in our errors.
    return (
        *("groonga", "-s", "--protocol", "http", "--bind-address", address),
        *("-p", port, "-t", threads, "--cache-limit", cached),
        *("--config-path", "/dev/null", "--log-path", "/dev/stderr", "{data}/db"),
    )
