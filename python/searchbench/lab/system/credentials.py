"""What a study only names: files of certificates and keys, and secrets of the environment.

What is read here goes to the wire and nowhere else: no error, no log and no record has it.
"""

from __future__ import annotations

import os
from pathlib import Path

from searchbench.errors import LabError
from searchbench.lab.wire.exchange import Headers, Target, Tls
from searchbench.study.plan import Access
from searchbench.workload.verbatim.headers import REFERENCE, parse

# Given on a command line, and so in no environment.
_given: dict[str, str] = {}


def remember(variable: str, value: str) -> None:
    """What that variable stands for in this process, before the environment."""
    _given[variable] = value


def open_tls(access: Access, base: Path, names: dict[Target, str]) -> Tls:
    """How connections are secured; LabError where a file cannot be read."""
    identity = None
    if access.cert:
        identity = (_pem(base / access.cert, "cert"), _pem(base / access.key, "key"))
    ca = _pem(base / access.ca, "ca") if access.ca else None
    return Tls(ca, identity, access.insecure, access.server_name, names)


def open_headers(access: Access) -> Headers:
    """The headers with their values; LabError where a variable is not set."""
    found = [parse(text) for text in access.headers]
    if access.compressed:
        found.append(("Accept-Encoding", "gzip"))
    return tuple((name, _filled(name, value)) for name, value in found)


def _filled(name: str, value: str) -> str:
    def known(variable: str) -> str:
        text = _given.get(variable) or os.environ.get(variable)
        if not text:
            raise LabError(
                f"the header {name} takes its value from the environment variable {variable}, "
                "which is not set",
                "resolve",
            )
        if any(c < " " or c == "\x7f" for c in text):
            raise LabError(
                f"the environment variable {variable}, for the header {name}, has a line break or "
                "another control character in it",
                "resolve",
            )
        return text

    return REFERENCE.sub(lambda match: known(match[1]), value)


def _pem(path: Path, key: str) -> str:
    try:
        return path.read_text("ascii")
    except OSError as error:
        why = error.strerror or "it is not a file"
    except UnicodeDecodeError:
        why = "it is not PEM (perhaps DER: `openssl x509 -inform der` makes PEM of it)"
    raise LabError(f"`{key}`: {path} cannot be read: {why}", "resolve")
