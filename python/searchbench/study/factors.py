"""The ``[factors]`` table: which part each path names, and whether its levels fit there.

A factor is a path with a list of levels, or a name without a dot with a list of tables, each of
which sets several keys at once (linked.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from searchbench.engines.engine import Level
from searchbench.spec import show
from searchbench.study.linked import read_linked
from searchbench.study.model import Factor, System, key_of, system_of, table_of
from searchbench.study.names import Names
from searchbench.study.positions import Path, Source
from searchbench.study.varied import Setting, Varied, meet


def read_factors(
    source: Source, systems: Mapping[str, System], named: set[str]
) -> tuple[Varied, ...]:
    """The factors that are right, with complaints for the rest.

    ``systems``: those whose engine is known; ``named``: all that the file names.
    """
    names = Names(source, systems, named)
    found: list[Varied] = []
    for at, path, value in _flat(source.table("factors"), ("factors",)):
        if "." not in path and _tables(value):
            linked = read_linked(source, at, path, value, names)
            found += [linked] if linked else []
            continue
        levels = _levels(source, at, path, value)
        targets = names.targets(at, path)
        fitting = [
            (level, (*at, str(i)))
            for i, level in levels
            if targets and names.check((*at, str(i)), path, level, targets, f"level of `{path}`")
        ]
        if fitting:
            factor = Factor(path, tuple(level for level, _ in fitting))
            found.append(Varied(factor, at, tuple({path: Setting(at, to)} for _, to in fitting)))
    for i, varied in enumerate(found):
        for other in found[:i]:
            _twice(source, varied, other)
        _in_tables(source, varied, names)
    return tuple(found)


def _twice(source: Source, varied: Varied, other: Varied) -> None:
    """Complain of keys that two factors set."""
    for path, setting in varied.at[0].items():
        for before, first in other.at[0].items():
            if meet(path, before):
                where = source.where(first.key)
                said = f"`{path}` and `{before}` vary the same parameter, here and at {where}"
                if path == before:
                    said = f"`{path}` is varied here and at {where}"
                source.at_key(setting.key, f"{said}; keep one")


def _in_tables(source: Source, varied: Varied, names: Names) -> None:
    """Complain of keys that a table sets and a factor varies."""
    for path, setting in varied.at[0].items():
        table, key = table_of(path), key_of(path)
        owners: list[Path] = [(table,)]
        if table == "systems":
            system = system_of(path)
            owners = [("systems", name) for name in names.named if system in ("*", name)]
        for owner in owners:
            if key in source.table(*owner):
                by = f'as "{path}" in [factors]'
                if varied.factor.sets:
                    by = f"by the levels of `{varied.factor.path}`"
                source.at_key(
                    (*owner, key),
                    f"`{key}` is set here and varied {by}, at {source.where(setting.key)}; "
                    "keep one of them",
                )


def _tables(value: object) -> bool:
    """Whether these are levels of a linked factor."""
    return isinstance(value, list) and any(isinstance(level, Mapping) for level in value)


def _flat(table: Mapping[str, Any], at: Path) -> Iterator[tuple[Path, str, Any]]:
    """(position, dotted path, value); ``load.clients = [1]`` is the same as ``"load.clients"``."""
    for key, value in table.items():
        here = (*at, key)
        if isinstance(value, Mapping):
            yield from _flat(value, here)
        else:
            yield here, ".".join(here[1:]), value


def _levels(source: Source, at: Path, path: str, value: object) -> list[tuple[int, Level]]:
    if not isinstance(value, list) or not value:
        source.at_value(at, f"`{path}` must be a list of levels, not {show(value)}")
        return []
    levels: list[tuple[int, Level]] = []
    for i, level in enumerate(value):
        here = (*at, str(i))
        if isinstance(level, Mapping):
            source.at_value(here, f"a level of `{path}` is one value; levels that are tables "
                            "belong to a factor with a name of its own, without a dot")  # fmt: skip
        elif not isinstance(level, str | int | float | bool):
            source.at_value(
                here, f"a level must be a text, a number or a truth value, not {show(level)}"
            )
        elif any(level == seen and type(level) is type(seen) for _, seen in levels):
            source.at_value(here, f"`{path}` has the level {show(level)} twice")
        else:
            levels.append((i, level))
    return levels
