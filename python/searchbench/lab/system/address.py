"""A target: an endpoint that runs already, named by a URL; and requests in its own bytes.

    http://127.0.0.1:10041        HTTP/1.1; a path names the one request where there is no file
    mysql://  postgres://  sphinxql://     SQL statements
    sphinx://                     Sphinx's native API; queries compiled from a study
    frames://                     a library host

    NAME=URL,URL,...              a name for tables, and several endpoints of one system

User, password and database come from the URL (not the password: it would be on record), else
from SEARCHBENCH_NAME_USER and so on, else from SEARCHBENCH_USER, SEARCHBENCH_PASSWORD,
SEARCHBENCH_DATABASE.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from searchbench.engines import frames, mysql_form, postgres_form
from searchbench.engines.engine import Request, Wire
from searchbench.errors import LabError
from searchbench.lab.drive.exchange import Endpoint
from searchbench.workload.verbatim.model import Ask

Login = tuple[str, str, str]

_SCHEMES: Mapping[str, tuple[Wire, int]] = {
    "http": ("http", 80),
    "mysql": ("mysql", 3306),
    "mariadb": ("mysql", 3306),
    "postgres": ("postgres", 5432),
    "postgresql": ("postgres", 5432),
    "sphinxql": ("sphinxql", 9306),
    "sphinx": ("sphinx", 9312),
    "frames": ("frames", 0),
}
_USUAL_LOGIN: Mapping[str, Login] = {
    "mysql": ("", "", ""),
    "sphinxql": ("", "", ""),
    "postgres": ("postgres", "", ""),
}
_BODY_KINDS = ((b"{", "application/json"), (b"[", "application/json"))


@dataclass(frozen=True, slots=True)
class Target:
    """A system under load: one or more endpoints of the same kind. ``path`` of the first URL.

    ``addresses``: host and port as they were said, ``resolved`` those that are connected to.
    """

    name: str
    url: str
    wire: Wire
    addresses: tuple[tuple[str, int], ...]
    resolved: tuple[tuple[str, int], ...]
    login: Login | None = field(default=None, repr=False)
    path: str = ""

    def endpoint(self, place: int = 0) -> Endpoint:
        """How one of its endpoints is asked outside the measurement."""
        return Endpoint(self.resolved[place], self.wire, self.login)


def parse_target(
    text: str, *, remote: bool = False, environ: Mapping[str, str] | None = None
) -> Target:
    """The target that ``text`` means; LabError where it is none, is not known, or is refused."""
    environ = os.environ if environ is None else environ
    name, urls = _named(text)
    parts = [_split(url) for url in urls]
    wires = {wire for wire, *_ in parts}
    if len(wires) > 1:
        raise LabError(f"{text}: its endpoints speak {' and '.join(sorted(wires))}; one system "
                       "has one protocol: give two systems, each with a name")  # fmt: skip
    wire, host, port, path, said = parts[0]
    name = name or f"{host}:{port}"
    addresses = tuple((h, p) for _, h, p, _, _ in parts)
    resolved = tuple(resolve(h, p, remote=remote) for h, p in addresses)
    login = _login(wire, name, said, environ)
    shown = ",".join(f"{urlsplit(u).scheme}://{h}:{p}{urlsplit(u).path}"
                     for u, (h, p) in zip(urls, addresses, strict=True))  # fmt: skip
    return Target(name, shown, wire, addresses, resolved, login, path)


def resolve(host: str, port: int, *, remote: bool = False) -> tuple[str, int]:
    """The address that is connected to, IPv4 where there is one. LabError with the remedy.

    Without ``remote`` only loopback: load that goes to a machine of somebody else by mistake is
    an attack on it.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise LabError(
            f"{host!r} is not known here as a host ({error.strerror}); see that it is spelt "
            "right and resolves on this machine", "resolve",
        ) from None  # fmt: skip
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    address = str(found[0][4][0])
    if not remote and not ipaddress.ip_address(address).is_loopback:
        raise LabError(
            f"{host} is {address}, which is not this machine's loopback: a load test is an "
            "attack on whoever did not ask for it; say --remote if that server is yours to load",
            "resolve",
        )  # fmt: skip
    return address, port


def encode(ask: Ask, target: Target, place: int = 0) -> Request:
    """The bytes that send ``ask`` to one endpoint of ``target``. LabError where they do not fit."""
    if target.wire == "http":
        host, port = target.addresses[place]
        return Request((_http(ask, f"{host}:{port}" if port != 80 else host, target.login),))
    if target.wire in ("mysql", "sphinxql"):
        return Request((mysql_form.query(_statement(ask, target)),))
    if target.wire == "postgres":
        return Request((postgres_form.query(_statement(ask, target)),))
    if target.wire == "frames":
        return frames.frame(frames.QUERY, ask.text.encode())
    raise LabError(
        f"{target.url}: requests of Sphinx's native API are made from queries: give --study FILE "
        "and --system NAME; for SQL statements, sphinxql://HOST:9306", "compile",
    )  # fmt: skip


def _http(ask: Ask, host: str, login: Login | None) -> bytes:
    if not ask.is_path:
        raise LabError(
            f"{ask.text[:80]!r} is no path, and this target speaks HTTP: a request begins with "
            "'/'; SQL statements go to mysql://, postgres:// or sphinxql://", "compile",
        )  # fmt: skip
    headers = {"Host": host}
    if login is not None:
        user, password, _ = login
        word = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        headers["Authorization"] = f"Basic {word}"
    if ask.body is not None:
        kinds = (kind for mark, kind in _BODY_KINDS if ask.body.lstrip().startswith(mark))
        headers["Content-Type"] = next(kinds, "application/x-www-form-urlencoded")
        headers["Content-Length"] = str(len(ask.body))
    own = {name.lower() for name, _ in ask.headers}
    lines = [f"{n}: {v}" for n, v in headers.items() if n.lower() not in own]
    lines += [f"{n}: {v}" for n, v in ask.headers]
    head = "\r\n".join([f"{ask.method} {ask.text} HTTP/1.1", *lines, "", ""])
    return head.encode("utf-8") + (ask.body or b"")


def _statement(ask: Ask, target: Target) -> str:
    if ask.is_path:
        raise LabError(
            f"{ask.text[:80]!r} is a path, and {target.url} is asked in SQL; paths go to http://",
            "compile",
        )
    return ask.text


def _named(text: str) -> tuple[str, list[str]]:
    head, mark, rest = text.partition("=")
    if mark and "://" not in head:
        if not head.strip():
            raise LabError(
                f"{text!r}: before '=' stands a name for the system, as in old=http://..."
            )
        return head.strip(), rest.split(",")
    return "", text.split(",")


def _split(url: str) -> tuple[Wire, str, int, str, tuple[str, str, str]]:
    parts = urlsplit(url.strip())
    if not parts.scheme or "://" not in url:
        raise LabError(
            f"{url!r} is no target: say what it speaks and where it is, as in "
            "http://127.0.0.1:10041 or mysql://127.0.0.1:3306/DATABASE"
        )
    if parts.scheme == "https":
        raise LabError(
            f"{url}: TLS is not spoken; let the load go to the server itself, behind whatever "
            "ends the TLS, over http://"
        )
    if parts.scheme not in _SCHEMES:
        raise LabError(f"{url}: {parts.scheme}:// is not spoken; there are {', '.join(_SCHEMES)}")
    wire, usual = _SCHEMES[parts.scheme]
    try:
        port = parts.port or usual
    except ValueError:
        raise LabError(f"{url}: its port is no number from 1 to 65535") from None
    if not port:
        raise LabError(f"{url}: {parts.scheme}:// needs a port")
    if not parts.hostname:
        raise LabError(f"{url}: the host is missing, as in {parts.scheme}://127.0.0.1:{port}")
    if parts.password:
        raise LabError(
            f"{parts.scheme}://{parts.hostname}: a password in the URL would be seen in the list "
            "of processes; set SEARCHBENCH_PASSWORD"
        )
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    said = (unquote(parts.username or ""), "", parts.path.strip("/") if wire != "http" else "")
    return wire, parts.hostname, port, path if wire == "http" else "", said


def _login(wire: Wire, name: str, said: Login, environ: Mapping[str, str]) -> Login | None:
    own = "".join(c if c.isalnum() else "_" for c in name.upper())

    def told(part: str) -> str:
        return environ.get(f"SEARCHBENCH_{own}_{part}") or environ.get(f"SEARCHBENCH_{part}") or ""

    if wire == "http":
        user = said[0] or told("USER")
        return (user, told("PASSWORD"), "") if user else None
    if wire not in _USUAL_LOGIN:
        return None
    usual = _USUAL_LOGIN[wire]
    user = said[0] or told("USER") or usual[0]
    return user, told("PASSWORD") or usual[1], said[2] or told("DATABASE") or usual[2]
