"""The ``[factors]`` table: which part each path names, and whether its levels fit there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from searchbench import corpora
from searchbench.engines import ENGINES
from searchbench.engines.engine import Level, Parameter
from searchbench.spec import Kind, SpecKey, nearest, show
from searchbench.study.model import Factor, System
from searchbench.study.positions import Path, Source, choice_hint
from searchbench.workload.loads import SPEC_KEYS as LOAD_KEYS
from searchbench.workload.queries.registry import SPEC_KEYS as QUERY_KEYS

# Ranges that a level can stand for: one text, number or truth value.
_SINGLE = {"text", "integer", "number", "boolean", "path", "paths", "texts"}
_KINDS: Mapping[type, Kind] = {str: "text", int: "integer", float: "number", bool: "boolean"}
_TABLES: Mapping[str, tuple[SpecKey, ...]] = {"queries": QUERY_KEYS, "load": LOAD_KEYS}


def key_of(parameter: Parameter) -> SpecKey:
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


def read_factors(
    source: Source, systems: Mapping[str, System], named: set[str]
) -> tuple[Factor, ...]:
    """The factors that are right, with complaints for the rest.

    ``systems``: those whose engine is known; ``named``: all that the file names.
    """
    factors = []
    for place, path, value in _flat(source.table("factors"), ("factors",)):
        found = _levels(source, place, path, value)
        wanted = _targets(source, place, path, systems, named)
        if not wanted:
            continue
        fitting = []
        for i, level in found:
            reasons = [(key, owner, key.mismatch(level)) for key, owner in wanted]
            for key, owner, reason in reasons:
                if reason:
                    of = f" of {owner}" if len(wanted) > 1 else ""
                    hint = choice_hint(key, level)
                    source.at_value((*place, str(i)), f"level of `{path}`: {reason}{of}", hint)
            if not any(reason for _, _, reason in reasons):
                fitting.append(level)
        if fitting:
            factors.append(Factor(path, tuple(fitting)))
    for i, factor in enumerate(factors):
        for other in factors[:i]:
            if factor.key == other.key and _overlap(factor, other):
                source.at_key(
                    ("factors", factor.path),
                    f"`{factor.path}` and `{other.path}` vary the same parameter; keep one",
                )
    return tuple(factors)


def _overlap(a: Factor, b: Factor) -> bool:
    """Whether two factors of the same parameter meet in a system."""
    return a.table == b.table == "systems" and "*" in (a.system, b.system)


def _flat(table: Mapping[str, Any], place: Path) -> Iterator[tuple[Path, str, Any]]:
    """(place, dotted path, value); ``load.clients = [1]`` is the same as ``"load.clients"``."""
    for key, value in table.items():
        here = (*place, key)
        if isinstance(value, Mapping):
            yield from _flat(value, here)
        else:
            yield here, ".".join(here[1:]), value


def _levels(source: Source, place: Path, path: str, value: object) -> list[tuple[int, Level]]:
    if not isinstance(value, list) or not value:
        source.at_value(place, f"`{path}` must be a list of levels, not {show(value)}")
        return []
    levels: list[tuple[int, Level]] = []
    for i, level in enumerate(value):
        at = (*place, str(i))
        if not isinstance(level, str | int | float | bool):
            source.at_value(
                at, f"a level must be a text, a number or a truth value, not {show(level)}"
            )
        elif any(level == seen and type(level) is type(seen) for _, seen in levels):
            source.at_value(at, f"`{path}` has the level {show(level)} twice")
        else:
            levels.append((i, level))
    return levels


def _targets(
    source: Source, place: Path, path: str, systems: Mapping[str, System], named: set[str]
) -> list[tuple[SpecKey, str]]:
    """What a path names, with the system that has it; empty, with a complaint, if nothing."""
    table, _, rest = path.partition(".")
    if table in ("corpus", *_TABLES):
        return _of_table(source, place, table, rest)
    if table != "systems":
        source.at_key(
            place,
            f"`{path}` names nothing that can be a factor",
            'say "load.KEY", "queries.KEY", "corpus.KEY", "systems.NAME.PARAMETER" '
            'or "systems.*.PARAMETER"',
        )
        return []
    name, _, parameter = rest.partition(".")
    if name != "*" and name not in named:
        source.at_key(place, f"`{path}`: there is no system `{name}`", nearest(name, named))
        return []
    chosen = [s for s in systems.values() if name in ("*", s.name)]
    keys = []
    for system in chosen:
        known = {p.name: p for p in ENGINES[system.engine].parameters}
        if parameter in known:
            keys.append((key_of(known[parameter]), system.name))
        else:
            hint = nearest(parameter, known)
            having = [s.name for s in systems.values() if _has(s, parameter)]
            if name == "*" and having:
                hint = f'say "systems.{having[0]}.{parameter}"'
            source.at_key(place, f"`{path}`: {system.engine} has no parameter `{parameter}`", hint)
            if name != "*":
                return []
        if parameter in source.table("systems", system.name):
            source.at_key(("systems", system.name, parameter), _both(parameter, path))
    return keys


def _of_table(source: Source, place: Path, table: str, rest: str) -> list[tuple[SpecKey, str]]:
    given = source.table(table)
    if table == "corpus":
        family = str(given.get("family", "files"))
        if family not in corpora.FAMILIES:
            return []  # complained about where the family stands
        known = corpora.keys_of(family)
        single = rest in known and known[rest].kind in _SINGLE
        # Its levels are checked by the corpus itself, which knows what goes together.
        keys = {name: SpecKey(name, "list") for name in known}
    else:
        keys = {key.name: key for key in _TABLES[table]}
        single = rest in keys and keys[rest].kind in _SINGLE
    if rest not in keys:
        source.at_key(
            place, f"`{table}.{rest}`: [{table}] has no key `{rest}`", nearest(rest, keys)
        )
        return []
    if not single:
        source.at_key(place, f"`{table}.{rest}` cannot be a factor: its values are lists or tables")
        return []
    if rest in given:
        source.at_key((table, rest), _both(rest, f"{table}.{rest}"))
    return [(_ANYTHING if table == "corpus" else keys[rest], "")]


class _Anything(SpecKey):
    """Takes every level."""

    def mismatch(self, value: object) -> str | None:
        return None


_ANYTHING = _Anything("", "text")


def _has(system: System, parameter: str) -> bool:
    return any(p.name == parameter for p in ENGINES[system.engine].parameters)


def _both(key: str, path: str) -> str:
    return f'`{key}` is set here and varied as "{path}" in [factors]; keep one of them'
