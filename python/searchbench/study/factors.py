"""What varies: the ``[factors]`` table, and the ``exclude`` list of crossings that are not run.

A factor is a path with a list of levels, or a name without a dot with a list of tables. The latter
is linked: its levels each have a name and set several keys at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from searchbench.engines.engine import Level
from searchbench.spec import nearest, show
from searchbench.study.model import (
    Exclusion,
    Factor,
    System,
    among,
    key_of,
    keys_of,
    section_of,
    system_of,
    table_of,
)
from searchbench.study.names import Names
from searchbench.study.positions import Path, Source, flat

_FORM = '{ name = "...", set = { "TABLE.KEY" = VALUE, ... } }'
# What a level of a linked factor sets: by path, the value and its position.
_Set = dict[str, tuple[Any, Path]]


@dataclass(frozen=True, slots=True)
class Varied:
    """A factor; where it names each path that it sets; for each level where the value stands."""

    factor: Factor
    keys: Mapping[str, Path]
    values: tuple[Mapping[str, Path], ...]


def read_factors(
    source: Source, systems: Mapping[str, System], named: set[str]
) -> tuple[Varied, ...]:
    """The factors that are right, with complaints for the rest.

    ``systems``: those whose engine is known; ``named``: all that the file names.
    """
    names = Names(source, systems, named)
    found: list[Varied] = []
    for at, path, value in flat(source.table("factors"), ("factors",)):
        tables = isinstance(value, list) and any(isinstance(level, Mapping) for level in value)
        read = _linked if tables and "." not in path else _single
        if varied := read(source, at, path, value, names):
            found.append(varied)
    for i, varied in enumerate(found):
        for other in found[:i]:
            _twice(source, varied, other)
        _in_tables(source, varied, names)
    return tuple(found)


def check_held(source: Source, factors: Sequence[Factor], several: bool) -> None:
    """Complain where ``[held]`` names what is varied. ``several``: systems are compared."""
    varied = {path for factor in factors for path in (factor.path, *factor.paths)}
    varied |= {"system"} if several else set()
    held = source.tables.get("held")
    for at, path, _ in flat(held if isinstance(held, Mapping) else {}, ("held",)):
        if found := [v for v in sorted(varied) if v == path or v.endswith(f".{path}")]:
            source.at_key(at, f"`{path}` is said to be held constant, but `{found[0]}` is varied")


def _single(source: Source, at: Path, path: str, value: object, names: Names) -> Varied | None:
    """The factor of one path, or None where no level of it fits."""
    levels = _levels(source, at, path, value)
    targets = names.targets(at, path)
    fitting = [
        (level, where)
        for where, level in levels
        if targets and names.check(where, level, targets, f"level of `{path}`")
    ]
    if not fitting:
        return None
    factor = Factor(path, tuple(level for level, _ in fitting))
    return Varied(factor, {path: at}, tuple({path: where} for _, where in fitting))


def _levels(source: Source, at: Path, path: str, value: object) -> list[tuple[Path, Level]]:
    if not isinstance(value, list) or not value:
        source.at_value(at, f"`{path}` must be a list of levels, not {show(value)}")
        return []
    levels: list[tuple[Path, Level]] = []
    for i, level in enumerate(value):
        here = (*at, str(i))
        if isinstance(level, Mapping):
            source.at_value(here, f"a level of `{path}` is one value; levels that are tables "
                            "belong to a factor with a name of its own, without a dot")  # fmt: skip
        elif not isinstance(level, str | int | float | bool):
            source.at_value(
                here, f"a level must be a string, a number, true or false, not {show(level)}"
            )
        elif among(level, (seen for _, seen in levels)):
            source.at_value(here, f"`{path}` has the level {show(level)} twice")
        else:
            levels.append((here, level))
    return levels


def _linked(
    source: Source, at: Path, name: str, value: Sequence[Any], names: Names
) -> Varied | None:
    """The factor, or None where nothing of it is right; complaints for what is wrong."""
    if name == "system":  # what plans and reports already call a factor
        source.at_key(at, f"`{name}` is the name of the factor of systems; choose another name")
    levels: dict[str, _Set] = {}
    for i, level in enumerate(value):
        here = (*at, str(i))
        called = _name(source, here, name, level, levels)
        settings = _settings(source, here, name, level, names) if called else None
        if settings is None:
            continue
        first = next(iter(levels), called)
        wanted = levels.get(first, settings)
        if set(settings) == set(wanted):
            levels[called] = settings
        else:
            _unlike(source, (*here, "set"), called, settings, first, wanted)
    if not levels:
        return None
    sets = tuple({path: value for path, (value, _) in each.items()} for each in levels.values())
    values = tuple({path: where for path, (_, where) in each.items()} for each in levels.values())
    return Varied(Factor(name, tuple(levels), sets), values[0], values)


def _name(source: Source, at: Path, factor: str, level: object, before: Mapping[str, _Set]) -> str:
    """What a level is called; "" with a complaint where that is wrong."""
    if not isinstance(level, Mapping):
        source.at_value(
            at, f"all levels of `{factor}` are tables, {_FORM}, and this is {show(level)}"
        )
        return ""
    source.only(at, level, ("name", "set"), "a linked level")
    called = level.get("name")
    if not isinstance(called, str) or not called.strip():
        source.at_value((*at, "name"), f"a level of `{factor}` needs a name: {_FORM}")
        return ""
    if called in before:
        source.at_value((*at, "name"), f"`{factor}` has the level {show(called)} twice")
        return ""
    return called


def _settings(
    source: Source, at: Path, factor: str, level: Mapping[str, Any], names: Names
) -> _Set | None:
    """What a level sets; None with a complaint where that is wrong."""
    table = level.get("set")
    if not isinstance(table, Mapping) or not table:
        source.at_value((*at, "set"), f"a level of `{factor}` needs what it sets: {_FORM}")
        return None
    found: _Set = {}
    right = True
    # A key of the corpus may take a table, its fields; that is a value.
    for where, path, value in flat(table, (*at, "set"), whole="corpus."):
        targets = names.targets(where, path, linked=True)
        what = f'level "{level["name"]}" of `{factor}`'
        right &= bool(targets) and names.check(where, value, targets, what)
        for other, (_, first) in found.items():
            if _meet(path, other):
                source.at_key(
                    where,
                    f'the level "{level["name"]}" sets `{path}` here and `{other}` at '
                    f"{source.where(first)}, which is the same key",
                )
                right = False
        found.setdefault(path, (value, where))
    return found if right else None


def _unlike(
    source: Source, at: Path, called: str, settings: _Set, first: str, wanted: _Set
) -> None:
    """Complain of a level that does not set what the first one sets."""
    missing = ", ".join(f"`{path}`" for path in wanted if path not in settings)
    more = ", ".join(f"`{path}`" for path in settings if path not in wanted)
    said = [f"lacks {missing}"] * bool(missing) + [f"also sets {more}"] * bool(more)
    source.at_value(
        at,
        f'all levels of a factor set the same keys: "{called}" {" and ".join(said)}, '
        f'unlike "{first}"',
    )


def _meet(a: str, b: str) -> bool:
    """Whether two paths set the same key of a system or table."""
    if a == b:
        return True
    both_systems = table_of(a) == table_of(b) == "systems"
    return both_systems and key_of(a) == key_of(b) and "*" in (system_of(a), system_of(b))


def _twice(source: Source, varied: Varied, other: Varied) -> None:
    """Complain of keys that two factors set."""
    for path, key in varied.keys.items():
        for before, first in other.keys.items():
            if _meet(path, before):
                where = source.where(first)
                said = f"`{path}` and `{before}` vary the same parameter, here and at {where}"
                if path == before:
                    said = f"`{path}` is varied here and at {where}"
                source.at_key(key, f"{said}; keep one")


def _in_tables(source: Source, varied: Varied, names: Names) -> None:
    """Complain of keys that a table sets and a factor varies."""
    for path, at in varied.keys.items():
        key, system = key_of(path), system_of(path)
        owners: list[Path] = [keys_of(section_of(path))]
        if system is not None:
            owners = [("systems", name) for name in names.named if system in ("*", name)]
        by = f'as "{path}" in [factors]'
        if varied.factor.sets:
            by = f"by the levels of `{varied.factor.path}`"
        for owner in owners:
            if key in source.table(*owner):
                source.at_key(
                    (*owner, key),
                    f"`{key}` is set here and varied {by}, at {source.where(at)}; keep one of them",
                )


def read_exclusions(
    source: Source, factors: Sequence[Factor], named: set[str]
) -> tuple[Exclusion, ...]:
    """The exclusions that are right, with complaints for the rest.

    ``factors``: with the steps of a sweep. ``named``: the systems, which are the levels of the
    factor "system".
    """
    entries = source.tables.get("exclude", [])
    levels: dict[str, tuple[Level, ...]] = {f.path: f.levels for f in factors}
    levels["system"] = tuple(sorted(named))
    found = []
    for i, entry in enumerate(entries if isinstance(entries, list) else []):
        path = ("exclude", str(i))
        if not isinstance(entry, Mapping):
            source.at_value(path, 'must be a table: { when = { FACTOR = LEVEL }, reason = "..." }')
            continue
        source.only(path, entry, ("when", "reason"), "an exclusion")
        reason, when = entry.get("reason"), entry.get("when")
        if not isinstance(reason, str) or not reason.strip():
            source.at_value((*path, "reason"), "an exclusion needs a `reason`, which reaches "
                            "the report")  # fmt: skip
        if not isinstance(when, Mapping) or not when:
            source.at_value((*path, "when"), "an exclusion needs `when`, a table of factor = level")
            continue
        wanted = {}
        for at, factor, level in flat(when, (*path, "when")):
            if factor not in levels:
                source.at_key(at, f"`{factor}` is not a factor of this study",
                              nearest(factor, levels))  # fmt: skip
                continue
            wanted[factor] = tuple(level) if isinstance(level, list) else (level,)
            for one in wanted[factor]:
                if not among(one, levels[factor]):
                    there = "its levels: " + ", ".join(map(show, levels[factor]))
                    source.at_value(at, f"`{factor}` has no level {show(one)}", there)
        found.append(Exclusion(wanted, str(reason)))
    return tuple(found)
