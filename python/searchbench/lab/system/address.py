"""Where a system is that runs already: a URL or HOST:PORT, the login, and what may be loaded.

    127.0.0.1:10041               of an engine that is named: its own protocol
    http://127.0.0.1:10041        HTTP/1.1; a path names the one request where there is no file
    https://search.example        the same over TLS
    mysql://  postgres://  sphinxql://     SQL statements; over TLS mysql+tls:// and so on
    sphinx://                     Sphinx's native API; queries compiled from a study
    frames://                     a library host

User, password and database come from the URL (not the password: it would be on record), else
from SEARCHBENCH_NAME_USER and so on, else from SEARCHBENCH_USER, SEARCHBENCH_PASSWORD,
SEARCHBENCH_DATABASE, else they are those that the engine would have been started with. Over HTTP
SEARCHBENCH_BEARER is a bearer token and SEARCHBENCH_API_KEY one of Elasticsearch, likewise for one
system; a header Authorization goes before both.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from searchbench.engines.engine import Wire
from searchbench.errors import LabError
from searchbench.lab.system.credentials import open_headers, open_tls
from searchbench.lab.wire.exchange import Endpoint, Headers, Tls
from searchbench.study.plan import Access

Login = tuple[str, str, str]

_SCHEMES: Mapping[str, tuple[Wire, int]] = {
    "http": ("http", 80),
    "https": ("http", 443),
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
_PARTS = ("USER", "PASSWORD", "DATABASE")
_TOKENS = {"BEARER": "Bearer", "API_KEY": "ApiKey"}
_TLS = "+tls"


@dataclass(frozen=True, slots=True)
class Target:
    """A system under load: one or more endpoints of the same kind. ``path`` of the first URL.

    ``addresses``: host and port as they were given, ``resolved`` those that are connected to.
    ``wire`` None: that of the engine that the study names. ``remote``: it need not be on loopback.
    """

    name: str
    url: str
    wire: Wire | None
    addresses: tuple[tuple[str, int], ...]
    resolved: tuple[tuple[str, int], ...]
    login: Login | None = field(default=None, repr=False)
    path: str = ""
    remote: bool = False
    tls: Tls | None = None
    headers: Headers = field(default=(), repr=False)

    def endpoint(self, whole: tuple[bytes, ...] = ()) -> Endpoint:
        """Where and how it is asked, once it is known what it speaks."""
        assert self.wire is not None, "what it speaks is in its URL, or spoken() has said it"
        first, *others = self.resolved
        return Endpoint(
            first, self.wire, self.login, whole, tuple(others), self.remote, self.tls, self.headers
        )

    def spoken(self, wire: Wire, usual: Login | None) -> Target:
        """The same, of an engine that speaks ``wire`` and logs in as ``usual`` unless told."""
        if self.wire not in (None, wire):
            raise LabError(
                f"{self.url} speaks {self.wire}, and the study's engine is asked over {wire}",
                "compile",
            )
        said = self.login if self.wire is not None and self.login else ("", "", "")
        return replace(self, wire=wire, login=_login(wire, self.name, said, usual))


def target_of(
    name: str,
    addresses: Sequence[str],
    *,
    remote: bool = False,
    access: Access | None = None,
    base: Path = Path(),
) -> Target:
    """The target at these addresses; LabError where one is wrong, not known, or refused.

    ``access``: how it is reached, its files relative to ``base``.
    """
    parts = [_split(text) for text in addresses]
    wires = {wire for wire, *_ in parts}
    if len(wires) > 1:
        raise LabError(
            f"{', '.join(addresses)}: its endpoints speak "
            f"{' and '.join(sorted(str(w) for w in wires))}; one system has one protocol: give two "
            "systems, each with a name"
        )
    if len({is_secured(text) for text in addresses}) > 1:
        raise LabError(
            f"{', '.join(addresses)}: some are asked over TLS and some are not; one system is "
            "asked in one way: give two systems, each with a name"
        )
    wire, host, port, path, said = parts[0]
    name = name or f"{host}:{port}"
    given = tuple((h, p) for _, h, p, _, _ in parts)
    resolved = tuple(resolve(h, p, remote=remote) for h, p in given)
    login = None if wire is None else _login(wire, name, said)
    shown = ",".join(_shown(text, h, p) for text, (h, p) in zip(addresses, given, strict=True))
    tls = None
    if is_secured(addresses[0]):
        names = dict(zip(reversed(resolved), (h for h, _ in reversed(given)), strict=True))
        tls = open_tls(access or Access(), base, names)
    headers = open_headers(access or Access())
    if wire == "http":
        headers += _token(name)
        if host != resolved[0][0]:
            usual = _SCHEMES[_scheme(addresses[0])][1]
            headers += (("Host", host if port == usual else f"{host}:{port}"),)
    return Target(name, shown, wire, given, resolved, login, path, remote, tls, headers)


def is_secured(address: str) -> bool:
    """Whether an address is asked over TLS."""
    scheme = _scheme(address)
    return scheme == "https" or scheme.endswith(_TLS)


def _scheme(address: str) -> str:
    return urlsplit(address).scheme if "://" in address else ""


def _token(name: str) -> Headers:
    """The header of a token in the environment; none where there is none."""
    own = variables(name)[0].removesuffix(_PARTS[0])
    for prefix in (own, "SEARCHBENCH_"):
        for part, kind in _TOKENS.items():
            if token := os.environ.get(prefix + part):
                return (("Authorization", f"{kind} {token}"),)
    return ()


def named(text: str) -> tuple[str, list[str]]:
    """NAME=URL,URL,... as (name, addresses); the name is empty where there is none."""
    head, mark, rest = text.partition("=")
    if mark and "://" not in head:
        if not head.strip():
            raise LabError(f"{text!r}: a name for the system goes before '=', as in old=http://...")
        return head.strip(), [url.strip() for url in rest.split(",")]
    return "", [url.strip() for url in text.split(",")]


def resolve(host: str, port: int, *, remote: bool = False) -> tuple[str, int]:
    """The address that is connected to, IPv4 where there is one. LabError with the remedy.

    Without ``remote`` only loopback: load that goes to a machine of somebody else by mistake is
    an attack on it.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise LabError(
            f"{host!r} is not known here as a host ({error.strerror}); check its spelling, and "
            "that it resolves on this machine",
            "resolve",
        ) from None
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    address = str(found[0][4][0])
    if not remote and not ipaddress.ip_address(address).is_loopback:
        raise LabError(
            f"{host} is {address}, which is not this machine's loopback: a load test is an "
            "attack on whoever did not ask for it; if that server is yours to load, give --remote "
            "(in a study: remote = true), or forward a port "
            f"(ssh -L {port}:127.0.0.1:{port} {host})",
            "resolve",
        )
    return address, port


def variables(system: str) -> tuple[str, ...]:
    """Names of the environment variables with user, password and database of a system."""
    own = "".join(c if c.isalnum() else "_" for c in system.upper())
    return tuple(f"SEARCHBENCH_{own}_{part}" for part in _PARTS)


def _split(text: str) -> tuple[Wire | None, str, int, str, Login]:
    """Wire, host, port, path, and the login as far as a URL gives it."""
    if "://" not in text:
        host, _, digits = text.rpartition(":")
        if not digits.isdigit() or not 0 < int(digits) < 65536 or "," in host:
            raise LabError(f"attach = {text!r} is not HOST:PORT, for example 127.0.0.1:10041")
        return None, host.strip("[]") or "127.0.0.1", int(digits), "", ("", "", "")
    parts = urlsplit(text)
    plain = parts.scheme.removesuffix(_TLS)
    if plain not in _SCHEMES or (plain != parts.scheme and _SCHEMES[plain][0] not in _USUAL_LOGIN):
        raise LabError(
            f"{text}: {parts.scheme}:// is not spoken; these are: {', '.join(_SCHEMES)}, and over "
            f"TLS {', '.join(f'{wire}{_TLS}' for wire in _USUAL_LOGIN)}"
        )
    wire, usual = _SCHEMES[plain]
    try:
        port = parts.port or usual
    except ValueError:
        raise LabError(f"{text}: its port is not a number from 1 to 65535") from None
    if not port:
        raise LabError(f"{text}: {parts.scheme}:// needs a port")
    if not parts.hostname:
        raise LabError(f"{text}: the host is missing, as in {parts.scheme}://127.0.0.1:{port}")
    if parts.password:
        raise LabError(
            f"{parts.scheme}://{parts.hostname}: a password in the URL would be seen in the list "
            "of processes; set SEARCHBENCH_PASSWORD"
        )
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    said = (unquote(parts.username or ""), "", parts.path.strip("/") if wire != "http" else "")
    return wire, parts.hostname, port, path if wire == "http" else "", said


def _shown(text: str, host: str, port: int) -> str:
    """An address as the record keeps it: without the user."""
    parts = urlsplit(text)
    return f"{parts.scheme}://{host}:{port}{parts.path}" if "://" in text else text


def _login(wire: Wire, name: str, said: Login, usual: Login | None = None) -> Login | None:
    own = variables(name)

    def known(part: int) -> str:
        return os.environ.get(own[part]) or os.environ.get(f"SEARCHBENCH_{_PARTS[part]}") or ""

    if wire == "http":
        user = said[0] or known(0)
        return (user, known(1), "") if user else usual
    usual = usual or _USUAL_LOGIN.get(wire)
    if usual is None:
        return None
    user, password, database = usual
    return said[0] or known(0) or user, known(1) or password, said[2] or known(2) or database
