"""Factors with the positions of what they set, while a study is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from searchbench.study.model import Factor, key_of, system_of, table_of
from searchbench.study.positions import Path


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a level sets something: the key, and the value that it takes."""

    key: Path
    value: Path


@dataclass(frozen=True, slots=True)
class Varied:
    """A factor; where it stands; and for each level where it sets each path."""

    factor: Factor
    key: Path
    at: tuple[Mapping[str, Setting], ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """One of a study's tables with levels put in, and where each of its keys has its value.

    ``levels``: the keys that levels have put in.
    """

    table: Mapping[str, Any]
    at: Mapping[str, Path]
    levels: frozenset[str]


def meet(a: str, b: str) -> bool:
    """Whether two paths set the same key of a system or table."""
    if a == b:
        return True
    both_systems = table_of(a) == table_of(b) == "systems"
    return both_systems and key_of(a) == key_of(b) and "*" in (system_of(a), system_of(b))


def first_variant(name: str, given: Mapping[str, Any], varied: Sequence[Varied]) -> Variant:
    """The table with the first level of every factor."""
    table = dict(given)
    at: dict[str, Path] = {key: (name, key) for key in given}
    levels = set()
    for one in varied:
        for key, value, where in _settings(one, 0, name):
            table[key], at[key] = value, where
            levels.add(key)
    return Variant(table, at, frozenset(levels))


def other_variants(name: str, first: Variant, varied: Sequence[Varied]) -> Iterator[Variant]:
    """The first variant with one factor at another of its levels; ``at`` has what that sets."""
    for one in varied:
        for level in range(1, len(one.at)):
            settings = list(_settings(one, level, name))
            if settings:
                changed = {key: value for key, value, _ in settings}
                yield Variant(
                    {**first.table, **changed},
                    {key: where for key, _, where in settings},
                    frozenset(changed),
                )


def values_of(
    name: str, keys: Sequence[str], given: Mapping[str, Any], varied: Sequence[Varied]
) -> Iterator[tuple[Path, object]]:
    """(position, value) of everything that these keys are given or varied to; lists opened."""
    found: list[tuple[Path, object]] = [((name, key), given[key]) for key in keys if key in given]
    for one in varied:
        for level in range(len(one.at)):
            found += [(at, v) for key, v, at in _settings(one, level, name) if key in keys]
    for at, value in found:
        if isinstance(value, list):
            yield from (((*at, str(i)), each) for i, each in enumerate(value))
        else:
            yield at, value


def _settings(one: Varied, level: int, name: str) -> Iterator[tuple[str, Any, Path]]:
    """(key, value, position) of what a level sets in the table of that name."""
    for path, value in one.factor.settings(level).items():
        if table_of(path) == name:
            yield key_of(path), value, one.at[level][path].value
