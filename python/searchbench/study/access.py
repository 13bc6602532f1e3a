"""How an attached system is reached: TLS, headers, compression; the keys of a system's table.

Nothing here is secret: files are named, and values of headers that may be secret name environment
variables. The lab reads both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from searchbench.spec import SpecKey
from searchbench.study.plan import Access
from searchbench.study.positions import Path, Source
from searchbench.workload.verbatim.headers import REFERENCE, is_open, parse

ACCESS_KEYS: tuple[SpecKey, ...] = (
    SpecKey("ca", "path", "", "TLS: the certificates (PEM) of authorities to trust in place of the "
            "system's, or the server's own certificate"),
    SpecKey("insecure", "boolean", False, "TLS: accept any certificate; it is then unknown who "
            "answers, and the report says so"),
    SpecKey("cert", "path", "", "TLS: our own certificate (PEM), for servers that ask for one"),
    SpecKey("key", "path", "", "TLS: the private key (PEM, without a passphrase) of `cert`"),
    SpecKey("server_name", "text", "", "TLS: the name that the certificate is for, where it is "
            "not the host of the address; it is also sent to the server (SNI)"),
    SpecKey("headers", "texts", (), 'HTTP: headers of every request, "Name: value"; a value that '
            'may be secret names an environment variable: "Authorization: Bearer ${TOKEN}"'),
    SpecKey("compressed", "boolean", False, "HTTP: ask for replies in gzip; `bytes` then counts "
            "the compressed bytes"),
)  # fmt: skip
_OF_TLS = ("ca", "insecure", "cert", "key", "server_name")
_OF_HTTP = ("headers", "compressed")


def read_access(source: Source, path: Path, good: dict[str, Any], attach: Sequence[str]) -> Access:
    """What the table says of it, which is taken out of ``good``."""
    given = {key.name: good.pop(key.name) for key in ACCESS_KEYS if key.name in good}
    told = {name: value for name, value in given.items() if value not in (False, "", (), [])}
    headers = told.get("headers", ())
    if isinstance(headers, str):
        headers = told["headers"] = (headers,)
    for name in told:
        if wrong := _misplaced(name, attach):
            source.at_key((*path, name), wrong)
    for one, other in (("cert", "key"), ("key", "cert")):
        if one in told and other not in told:
            source.at_key((*path, one), f"`{one}` goes with `{other}`, which is not there")
    if "insecure" in told and "ca" in told:
        source.at_key((*path, "insecure"), "`insecure` accepts any certificate, so `ca` has no "
                      "effect; leave one of them out")  # fmt: skip
    for number, text in enumerate(headers):
        if wrong := _header_wrong(text):
            source.at_each((*path, "headers"), number, wrong)
    return Access(**{**told, "headers": tuple(headers)})


def _misplaced(name: str, attach: Sequence[str]) -> str:
    """Why that key says nothing of these addresses; empty if it does."""
    schemes = {address.partition("://")[0] for address in attach if "://" in address}
    if not attach:
        return f"`{name}` is about the addresses of `attach`, and there are none"
    secured = {s for s in schemes if s == "https" or s.endswith("+tls")}
    if name in _OF_TLS and not secured:
        return (
            f"`{name}` is about TLS, and {attach[0]} is asked in plain text; TLS is https://, "
            "mysql+tls://, postgres+tls:// or sphinxql+tls://"
        )
    if name in _OF_HTTP and schemes and not schemes & {"http", "https"}:
        return f"`{name}` is about HTTP, which {attach[0]} does not speak"
    return ""


def _header_wrong(text: str) -> str:
    """What is wrong with a header, without its value; empty if nothing is."""
    try:
        name, value = parse(text)
    except ValueError as wrong:
        return str(wrong)
    if is_open(name) or REFERENCE.search(value) or not value:
        return ""
    variable = name.upper().replace("-", "_")
    return (
        f"the value of the header {name} would be on record, and may be secret: put it into an "
        f'environment variable, and write "{name}: ${{{variable}}}"'
    )
