"""The tables [places] and [storages], and which system is in which place; complaints with both.

A system is in the place that its ``place`` names, or its factor. Where one place is declared,
everything that is started is there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from searchbench.places.keys import FILES, host_problems, place_problems, storage_problems
from searchbench.spec import nearest, show
from searchbench.study import placing_hosts
from searchbench.study.factors import Varied
from searchbench.study.keys import PLACED_KEYS
from searchbench.study.model import (
    System,
    keys_of,
    names_place,
    section_of,
    system_of,
    table_of,
)
from searchbench.study.plan import Measure
from searchbench.study.positions import Path, Source
from searchbench.study.systems import NOT_IN_NAMES, kinds_of
from searchbench.study.tables import Given, settings_in

_PROBLEMS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[tuple[str, str]]]] = {
    "places": place_problems,
    "hosts": host_problems,
    "storages": storage_problems,
}
_LAID = ("storage", *FILES)  # keys of a place that name a storage


def read_sections(source: Source) -> dict[str, dict[str, Any]]:
    """The keys of each place and storage that are known and hold what they may.

    By "places.NAME", "hosts.NAME" and "storages.NAME"; complaints for the rest.
    """
    found = {}
    for table, keys in PLACED_KEYS.items():
        for name in source.table(table):
            if not name.strip() or NOT_IN_NAMES.search(name):
                source.at_key((table, name), f"a name has no control characters, no * and no =, "
                              f"and is not empty; this is {show(name)}")  # fmt: skip
            found[f"{table}.{name}"] = source.checked((table, name), keys)
    return found


def named(tables: Mapping[str, Any], table: str) -> dict[str, Any]:
    """Of such sections those of ``table``, by their own names."""
    begun = f"{table}."
    return {k.removeprefix(begun): v for k, v in tables.items() if k.startswith(begun)}


def settle_in(given: Given, systems: Mapping[str, System]) -> dict[str, System]:
    """The systems, each in its place; complaints for places and storages that are wrong."""
    places, storages = named(given.tables, "places"), named(given.tables, "storages")
    for section in filter(lambda section: table_of(section) in _PROBLEMS, given.tables):
        _check_section(given, section)
    placed = {name: _placed(given, system, places) for name, system in systems.items()}
    for name in places:
        _check_place(given, name, placed, storages)
    placing_hosts.check(given, placed)
    used = {name for place in places for _, name in given.values(f"places.{place}", *_LAID)}
    for name in storages:
        if name not in used:
            given.source.at_key(("storages", name), f"no place has files on the storage `{name}`",
                                f"as in [places.NAME] with storage = {show(name)}")  # fmt: skip
        for at, directory in given.values(f"storages.{name}", "directory"):
            if isinstance(directory, str) and not (given.base / directory).is_dir():
                given.source.at_value(at, f"there is no directory {show(directory)}")
    return placed


def _check_section(given: Given, section: str) -> None:
    """Complain of what goes together at no level, and of levels that go together with nothing.

    What some crossings alone cannot have is left out of the plan.
    """
    table, path = given.tables[section], keys_of(section)
    factors = [one for one in given.varied if any(section_of(path) == section for path in one.keys)]
    tried: dict[tuple[int, ...], list[tuple[str, str]]] = {}
    for chosen in itertools.product(*(range(len(one.values)) for one in factors)):
        crossing = dict(table)
        for one, level in zip(factors, chosen, strict=True):
            crossing |= {key: value for key, value, _ in settings_in(one, level, section)}
        tried[chosen] = list(_PROBLEMS[table_of(section)](crossing))
    if all(tried.values()):
        at = given.first(section).at
        for key, sentence in next(iter(tried.values())):
            if key:
                given.source.at_value(at.get(key, (*path, key)), sentence)
            elif not given.source.table(*path).keys() - table.keys():
                given.source.at_key(path, sentence)  # no other key was meant to say it
        return
    for i, one in enumerate(factors):
        for level in range(len(one.values)):
            wrong = [problems for chosen, problems in tried.items() if chosen[i] == level]
            if all(wrong):
                key, sentence = wrong[0][0]
                set_ = {key: at for key, _, at in settings_in(one, level, section)}
                given.source.at_value(set_.get(key, next(iter(set_.values()))), sentence)


def check_cold(given: Given, measure: Measure) -> None:
    """Complain of places that are to be cold for a sweep or a search."""
    if measure == "trials":
        return
    what = "a sweep" if measure == "sweep" else "a capacity search"
    for name in named(given.tables, "places"):
        for at, cold in given.values(f"places.{name}", "cold"):
            if cold != "no":
                said = f"`cold = {show(cold)}` is for trials, and this is {what}"
                given.source.at_value(at, f"{said}: from its second step on the system is warm")


def _placed(given: Given, system: System, places: Mapping[str, Any]) -> System:
    """The system in its place; complaints where it has none, or must not have one."""
    source, own = given.source, ("systems", system.name, "place")
    varied = list(_levels(given.varied, system))
    if system.attach:
        wrong = f"{system.name} runs already, and `place` is only for systems that are started here"
        if system.place:
            source.at_key(own, wrong)
        for key, _, _ in varied[:1]:
            source.at_key(key, wrong)
        return replace(system, place="")
    said: list[tuple[Path, object]] = [(own, system.place)] if system.place else []
    for at, name in (*said, *((at, name) for _, at, name in varied)):
        if name not in places:
            hint = nearest(str(name), places) if places else "there is no [places.NAME] at all"
            source.at_value(at, f"there is no place {show(name)}", hint)
    if said or varied or not places:
        return system
    if len(places) > 1:
        source.at_key(own[:2], f"there are several places, and {system.name} names none",
                      f"set place = {show(next(iter(places)))}; a place without keys is this "
                      "machine as it is")  # fmt: skip
        return system
    return replace(system, place=next(iter(places)))


def _levels(varied: Iterable[Varied], system: System) -> Iterator[tuple[Path, Path, object]]:
    """(position of the path, of the value, value) of each level that says where a system is."""
    for one in varied:
        for path, key in one.keys.items():
            if names_place(path) and system_of(path) in ("*", system.name):
                for level, where in enumerate(one.values):
                    yield key, where[path], one.factor.settings(level)[path]


def _check_place(
    given: Given, name: str, systems: Mapping[str, System], storages: Mapping[str, Any]
) -> None:
    """Complain of a place that nobody is in, of unknown storages, of files that nobody writes."""
    source, section = given.source, f"places.{name}"
    started = [system for system in systems.values() if not system.attach]
    there = list(_systems_at(given.varied, name, started))
    # Where a system is not known, or not in a place yet, it may be meant to be in this one.
    nowhere = any(not (s.place or list(_levels(given.varied, s))) for s in started)
    if not there and not nowhere and len(systems) == len(source.table("systems")):
        hint = "systems that run already stay where they are"
        if started:
            hint = f"as in [systems.{started[0].name}] with place = {show(name)}"
        source.at_key(("places", name), f"no system is started in the place `{name}`", hint)
    for at, storage in given.values(section, *_LAID):
        if storage not in storages:
            none = "there is no [storages.NAME] at all"
            hint = nearest(str(storage), storages) if storages else none
            source.at_value(at, f"there is no storage {show(storage)}", hint)
    for kind in FILES:
        if not there or any(kind in kinds_of(system) for system in there):
            continue
        can = (f"{s.engine}: {', '.join(kinds_of(s)) or 'none'}" for s in there)
        for at, _ in list(given.values(section, kind))[:1]:
            source.at_value(at, f"no system in the place `{name}` can keep files of the kind "
                            f"`{kind}` apart", "; ".join(dict.fromkeys(can)))  # fmt: skip


def _systems_at(
    varied: Sequence[Varied], place: str, started: Iterable[System]
) -> Iterator[System]:
    """Those that are in a place, at some level at least."""
    for system in started:
        if place in (system.place, *(name for _, _, name in _levels(varied, system))):
            yield system
