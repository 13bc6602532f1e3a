"""The ``[systems]`` tables: engines, their levers, and the addresses of what runs already.

An address is a text, HOST:PORT or a URL. Nothing is connected to.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from searchbench.engines import ENGINES, defaults
from searchbench.engines.engine import Parameter
from searchbench.spec import Kind, SpecKey, nearest, show
from searchbench.study.access import read_access
from searchbench.study.keys import SYSTEM_KEYS
from searchbench.study.model import System
from searchbench.study.positions import Path, Source

# What a study calls the engine of a system whose replies are taken as they are.
_NO_ENGINE = "none"

_KINDS: dict[type, Kind] = {str: "text", int: "integer", float: "number", bool: "boolean"}
# With the port that is usual, 0 where there is none.
_SCHEMES = {
    "http": 80,
    "https": 443,
    "mysql": 3306,
    "mysql+tls": 3306,
    "mariadb": 3306,
    "postgres": 5432,
    "postgresql": 5432,
    "postgres+tls": 5432,
    "postgresql+tls": 5432,
    "sphinxql": 9306,
    "sphinxql+tls": 9306,
    "sphinx": 9312,
    "frames": 0,
}
_GREATEST_PORT = 65_535
# It stands in paths of factors, before "=" on command lines, and in tables.
NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f*=]")


def spec_of(parameter: Parameter) -> SpecKey:
    """A lever of an engine as a key of a system's table."""
    return SpecKey(
        parameter.name,
        "integers" if parameter.counts else _KINDS[parameter.kind],
        parameter.default,
        parameter.doc,
        parameter.choices,
        parameter.minimum,
        parameter.maximum,
    )


def listed(value: object) -> tuple[str, ...]:
    """A text or a list of them."""
    return (value,) if isinstance(value, str) else tuple(value)  # type: ignore[arg-type]


def counted(value: object) -> str:
    """A number or a list of them as the level of a lever: "4", "1,4"."""
    numbers = value if isinstance(value, list | tuple) else [value]
    return ",".join(map(str, numbers))


def kinds_of(system: System) -> Mapping[str, str]:
    """The kinds of files that a system can lay apart, and what each is."""
    return ENGINES[system.engine].can.writes if system.engine in ENGINES else {}


def read_systems(source: Source, *, verbatim: bool) -> tuple[dict[str, System], set[str]]:
    """The systems that are right as far as their engine is known, by name; and all names.

    ``verbatim``: they are sent [requests] as they are.
    """
    tables = source.table("systems")
    systems: dict[str, System] = {}
    if not tables:
        example = (
            '[systems.mine] with attach = "http://127.0.0.1:10041"'
            if verbatim
            else f"[systems.{next(iter(ENGINES))}]"
        )
        source.at_key(("systems",), "a study needs at least one system", f"for example {example}")
    for name in tables:
        path = ("systems", name)
        if not name.strip() or NOT_IN_NAMES.search(name):
            source.at_key(path, f"a system's name has no control characters, no * and no =, and is "
                          f"not empty; this is {show(name)}")  # fmt: skip
        system = (_verbatim if verbatim else _portable)(source, name)
        if system is not None:
            systems[name] = system
    return systems, set(tables)


def _portable(source: Source, name: str) -> System | None:
    """A system that portable queries are compiled for."""
    path = ("systems", name)
    table = source.table(*path)
    engine = table.get("engine", name)
    if not isinstance(engine, str):
        source.at_value((*path, "engine"), f"`engine` must be a string, not {show(engine)}")
        return None
    if engine not in ENGINES:
        where = (*path, "engine") if "engine" in table else path
        report = source.at_value if "engine" in table else source.at_key
        report(where, f"there is no engine `{engine}`", nearest(engine, ENGINES))
        return None
    levers = [spec_of(p) for p in ENGINES[engine].parameters]
    good = source.checked(path, [*levers, *SYSTEM_KEYS], what=engine)
    good.pop("engine", None)
    place, agents = good.pop("place", ""), listed(good.pop("agents", ()))
    attach, remote = _addresses(source, path, good)
    access = read_access(source, path, good, attach)
    if "attach" not in table and ENGINES[engine].can.unavailable:
        source.at_key(path, f"{engine} is not run here: {ENGINES[engine].can.unavailable}",
                      'give `attach = "127.0.0.1:PORT"` of one that runs')  # fmt: skip
    counts = {p.name for p in ENGINES[engine].parameters if p.counts}
    good = {k: counted(v) if k in counts else v for k, v in good.items()}
    levers_set = {**defaults(ENGINES[engine]), **good}
    return System(name, engine, levers_set, attach, remote, access, place, agents)


def _verbatim(source: Source, name: str) -> System:
    """A system that runs already and is sent requests as they are."""
    path = ("systems", name)
    table = source.table(*path)
    engine = table.get("engine", "")
    if isinstance(engine, str) and engine not in ("", _NO_ENGINE, *ENGINES):
        source.at_value((*path, "engine"), f"there is no engine `{engine}`",
                        nearest(engine, [_NO_ENGINE, *ENGINES]))  # fmt: skip
    levers = {p.name for one in ENGINES.values() for p in one.parameters} & set(table)
    levers -= {key.name for key in SYSTEM_KEYS}
    for lever in levers:
        source.at_key((*path, lever), f"`{lever}` cannot be set: requests are sent as they are to "
                      "a system that runs with its own settings")  # fmt: skip
    good = source.checked(path, SYSTEM_KEYS, "a system of [requests]", levers)
    attach, remote = _addresses(source, path, good)
    access = read_access(source, path, good, attach)
    if "attach" not in table:
        source.at_key(path, "requests are sent as they are to a system that runs already: give its "
                      "address", 'as in attach = "http://127.0.0.1:10041"')  # fmt: skip
    for address in attach:
        if not is_url(address):
            given = table["attach"]
            at = 0 if isinstance(given, str) else given.index(address)
            source.at_each((*path, "attach"), at,
                           f"requests are sent as they are, and {show(address)} does not say what "
                            "is spoken there", f'as in "http://{address}"')  # fmt: skip
    named, place = engine if isinstance(engine, str) else "", good.pop("place", "")
    agents = listed(good.pop("agents", ()))
    return System(name, named, {}, attach, remote, access, place, agents)


def _addresses(source: Source, path: Path, good: dict[str, Any]) -> tuple[tuple[str, ...], bool]:
    """The addresses and whether they may be another machine's; both are taken out of ``good``."""
    given, remote = good.pop("attach", None), bool(good.pop("remote", False))
    if given is None:
        if remote:
            source.at_key((*path, "remote"), "`remote` is about the addresses of `attach`, and "
                          "there are none")  # fmt: skip
        return (), remote
    at = (*path, "attach")
    texts = [given] if isinstance(given, str) else list(given)
    if not texts:
        source.at_value(at, "`attach` is an empty list; give at least one address")
    right = []
    for i, text in enumerate(texts):
        if wrong := _problem(text, remote=remote):
            source.at_each(at, i, wrong)
        else:
            right.append(text)
    if wrong := _mixed(right):
        source.at_value(at, wrong)
    return tuple(right), remote


def is_url(address: str) -> bool:
    """Whether it says what is spoken there."""
    return "://" in address


def _problem(address: str, *, remote: bool) -> str:
    """What is wrong with one address, as a sentence; empty if nothing is.

    ``remote``: another machine's address is meant.
    """
    if "," in address:
        pieces = ", ".join(show(piece.strip()) for piece in address.split(","))
        return f"{show(address)} is several addresses; give a list: attach = [{pieces}]"
    if not address.strip() or address != address.strip() or any(c.isspace() for c in address):
        return f"{show(address)} is not an address; give HOST:PORT or a URL, without spaces"
    try:
        scheme, host, port = (_url if is_url(address) else _plain)(address)
    except ValueError as wrong:
        return str(wrong)
    if not host:
        return f"{show(address)} has no host, as in {scheme}127.0.0.1:{port or 'PORT'}"
    if not remote and _elsewhere(host):
        return (
            f"{host} is not this machine's loopback: a load test is an attack on whoever did not "
            "ask for it; set `remote = true` if that server is yours to load"
        )
    return ""


def _mixed(addresses: Sequence[str]) -> str:
    """What is wrong with several good addresses of one system together; empty if nothing is."""
    if len(set(addresses)) < len(addresses):
        return "an address is given twice"
    kinds = {urlsplit(a).scheme if is_url(a) else "HOST:PORT" for a in addresses}
    if len(kinds) > 1:
        found = " and ".join(sorted(kinds))
        return f"the addresses of one system are of one kind, and these are {found}"
    return ""


def _url(text: str) -> tuple[str, str, int]:
    """(scheme with ://, host, port); ValueError with the sentence that says what is wrong."""
    try:
        parts = urlsplit(text)
    except ValueError:
        raise ValueError(f"{show(text)} is not a URL") from None
    scheme = f"{parts.scheme}://"
    if parts.scheme not in _SCHEMES:
        hint = nearest(parts.scheme, _SCHEMES)
        raise ValueError(f"{show(text)}: {scheme} is not spoken; {hint}")
    try:
        given = parts.port
    except ValueError:
        given = -1
    port = _SCHEMES[parts.scheme] if given is None else given
    if not 0 < port <= _GREATEST_PORT:
        what = "needs a port" if given is None else "needs a port from 1 to 65535"
        raise ValueError(f"{show(text)}: {scheme} {what}")
    if parts.password:
        raise ValueError(
            f"a password in the URL of {parts.hostname} would be on record; set "
            "SEARCHBENCH_NAME_PASSWORD, NAME being the system's"
        )
    return scheme, parts.hostname or "", port


def _plain(text: str) -> tuple[str, str, int]:
    host, colon, digits = text.rpartition(":")
    expected = f"{show(text)} is not an address; give HOST:PORT or a URL, as in "
    if not colon:
        raise ValueError(expected + show(f"{text}:9306"))
    if not (digits.isascii() and digits.isdigit()) or not 0 < int(digits) <= _GREATEST_PORT:
        raise ValueError(f"{show(text)}: its port must be a number from 1 to 65535")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host or "/" in host:
        raise ValueError(expected + '"127.0.0.1:9306" or "[::1]:9306"')
    return "", host, int(digits)


def _elsewhere(host: str) -> bool:
    """Whether a host is surely not loopback; what a name stands for is not known yet."""
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
