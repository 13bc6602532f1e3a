"""Addresses of systems that run already, as text: HOST:PORT or a URL. Nothing is connected to."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

from searchbench.spec import nearest, show

# With the port that is usual, 0 where there is none.
SCHEMES = {
    "http": 80,
    "mysql": 3306,
    "mariadb": 3306,
    "postgres": 5432,
    "postgresql": 5432,
    "sphinxql": 9306,
    "sphinx": 9312,
    "frames": 0,
}
_GREATEST_PORT = 65_535


def is_url(address: str) -> bool:
    """Whether it says what is spoken there."""
    return "://" in address


def problem(address: str, *, remote: bool) -> str:
    """What is wrong with one address, as a sentence; empty if nothing is.

    ``remote``: another machine's address is meant.
    """
    if "," in address:
        pieces = ", ".join(show(piece.strip()) for piece in address.split(","))
        return f"{show(address)} is several addresses; give a list: attach = [{pieces}]"
    if not address.strip() or address != address.strip() or any(c.isspace() for c in address):
        return f"{show(address)} is no address; say HOST:PORT or a URL, without spaces"
    scheme, host, port, wrong = _url(address) if is_url(address) else _plain(address)
    if wrong:
        return wrong
    if not host:
        return f"{show(address)} has no host, as in {scheme}127.0.0.1:{port or 'PORT'}"
    if not remote and _elsewhere(host):
        return (
            f"{host} is not this machine's loopback: a load test is an attack on whoever did not "
            "ask for it; say `remote = true` if that server is yours to load"
        )
    return ""


def mixed(addresses: Sequence[str]) -> str:
    """What is wrong with several good addresses of one system together; empty if nothing is."""
    if len(set(addresses)) < len(addresses):
        return "an address is there twice"
    kinds = {urlsplit(a).scheme if is_url(a) else "HOST:PORT" for a in addresses}
    if len(kinds) > 1:
        found = " and ".join(sorted(kinds))
        return f"the addresses of one system are of one kind, and these are {found}"
    return ""


def _url(text: str) -> tuple[str, str, int, str]:
    """(scheme with ://, host, port, what is wrong)."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return "", "", 0, f"{show(text)} is no URL"
    scheme = f"{parts.scheme}://"
    if parts.scheme == "https":
        return scheme, "", 0, (
            f"{show(text)}: TLS is not spoken; let the load go to the server itself, behind "
            "whatever ends the TLS, over http://"
        )  # fmt: skip
    if parts.scheme not in SCHEMES:
        hint = nearest(parts.scheme, SCHEMES)
        return scheme, "", 0, f"{show(text)}: {scheme} is not spoken; {hint}"
    try:
        given = parts.port
    except ValueError:
        given = -1
    port = SCHEMES[parts.scheme] if given is None else given
    if not 0 < port <= _GREATEST_PORT:
        what = "needs a port" if given is None else "needs a port from 1 to 65535"
        return scheme, "", 0, f"{show(text)}: {scheme} {what}"
    if parts.password:
        return scheme, "", 0, (
            f"a password in the URL of {parts.hostname} would be on record; set "
            "SEARCHBENCH_NAME_PASSWORD, NAME being the system's"
        )  # fmt: skip
    return scheme, parts.hostname or "", port, ""


def _plain(text: str) -> tuple[str, str, int, str]:
    host, colon, digits = text.rpartition(":")
    expected = f"{show(text)} is no address; say HOST:PORT or a URL, as in "
    if not colon:
        return "", "", 0, expected + show(f"{text}:9306")
    if not (digits.isascii() and digits.isdigit()) or not 0 < int(digits) <= _GREATEST_PORT:
        return "", "", 0, f"{show(text)}: its port must be a number from 1 to 65535"
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host or "/" in host:
        return "", "", 0, expected + '"127.0.0.1:9306" or "[::1]:9306"'
    return "", host, int(digits), ""


def _elsewhere(host: str) -> bool:
    """Whether a host is surely not loopback; what a name stands for is not known yet."""
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
