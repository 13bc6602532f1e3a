"""The ``[systems]`` tables: engines, their levers, and the addresses of what runs already."""

from __future__ import annotations

import re
from typing import Any

from searchbench.engines import ENGINES, defaults
from searchbench.engines.engine import Parameter
from searchbench.spec import Kind, SpecKey, nearest, show
from searchbench.study import addresses
from searchbench.study.keys import SYSTEM_KEYS
from searchbench.study.model import System
from searchbench.study.positions import Path, Source

NO_ENGINE = "none"
"""What a study calls the engine of a system whose replies are taken as they are."""

_KINDS: dict[type, Kind] = {str: "text", int: "integer", float: "number", bool: "boolean"}
# It stands in paths of factors, before "=" on command lines, and in tables.
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f*=]")


def spec_of(parameter: Parameter) -> SpecKey:
    """A lever of an engine as a key of a system's table."""
    return SpecKey(
        parameter.name,
        _KINDS[parameter.kind],
        parameter.default,
        parameter.doc,
        parameter.choices,
        parameter.minimum,
        parameter.maximum,
    )


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
        if not name.strip() or _NOT_IN_NAMES.search(name):
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
        source.at_value((*path, "engine"), f"`engine` must be a text, not {show(engine)}")
        return None
    if engine not in ENGINES:
        where = (*path, "engine") if "engine" in table else path
        report = source.at_value if "engine" in table else source.at_key
        report(where, f"there is no engine `{engine}`", nearest(engine, ENGINES))
        return None
    levers = [spec_of(p) for p in ENGINES[engine].parameters]
    good = source.checked(path, [*levers, *SYSTEM_KEYS], what=engine)
    good.pop("engine", None)
    attach, remote = _addresses(source, path, good)
    if "attach" not in table and ENGINES[engine].can.unavailable:
        source.at_key(path, f"{engine} is not run here: {ENGINES[engine].can.unavailable}",
                      'give `attach = "127.0.0.1:PORT"` of one that runs')  # fmt: skip
    return System(name, engine, {**defaults(ENGINES[engine]), **good}, attach, remote)


def _verbatim(source: Source, name: str) -> System:
    """A system that runs already and is sent requests as they are."""
    path = ("systems", name)
    table = source.table(*path)
    engine = table.get("engine", "")
    if isinstance(engine, str) and engine not in ("", NO_ENGINE, *ENGINES):
        source.at_value((*path, "engine"), f"there is no engine `{engine}`",
                        nearest(engine, [NO_ENGINE, *ENGINES]))  # fmt: skip
    levers = {p.name for one in ENGINES.values() for p in one.parameters} & set(table)
    levers -= {key.name for key in SYSTEM_KEYS}
    for lever in levers:
        source.at_key((*path, lever), f"`{lever}` cannot be set: requests are sent as they are to "
                      "a system that runs with its own settings")  # fmt: skip
    good = source.checked(path, SYSTEM_KEYS, "a system of [requests]", levers)
    attach, remote = _addresses(source, path, good)
    if "attach" not in table:
        source.at_key(path, "requests are sent as they are to a system that runs already: give its "
                      "address", 'as in attach = "http://127.0.0.1:10041"')  # fmt: skip
    for i, address in enumerate(attach):
        if not addresses.is_url(address):
            at = (*path, "attach")
            source.at_value((*at, str(i)) if isinstance(table["attach"], list) else at,
                            f"requests are sent as they are, and {show(address)} does not say what "
                            "is spoken there", f'as in "http://{address}"')  # fmt: skip
    return System(name, engine if isinstance(engine, str) else "", {}, attach, remote)


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
        if wrong := addresses.problem(text, remote=remote):
            source.at_value((*at, str(i)) if isinstance(given, list) else at, wrong)
        else:
            right.append(text)
    if wrong := addresses.mixed(right):
        source.at_value(at, wrong)
    return tuple(right), remote
