"""The place of one crossing of a plan, and which factors can change anything for a system."""

from __future__ import annotations

import json
from typing import Any

from searchbench.engines import ENGINES
from searchbench.engines.engine import Level
from searchbench.places import place_of
from searchbench.places.keys import FILES, place_problems, storage_problems
from searchbench.places.model import same
from searchbench.places.resolve import resolve, storages_of
from searchbench.spec import show
from searchbench.study.keys import PLACED_KEYS
from searchbench.study.model import (
    Factor,
    Study,
    System,
    key_of,
    names_place,
    section_of,
    system_of,
    table_of,
)
from searchbench.study.systems import kinds_of

Tables = dict[str, dict[str, Any]]


def crossed(study: Study, system: System) -> list[Factor]:
    """The factors whose levels can change something for a system, in file order."""
    at, on = _reach(study, system)
    return [
        factor
        for factor in study.factors
        if any(_matters(path, system, at, on) for path in factor.paths)
    ]


def sections(study: Study, system: System) -> Tables:
    """All places and storages as they are before levels are put in, and where the system is."""
    found = {f"places.{name}": dict(table) for name, table in study.places.items()}
    found |= {f"storages.{name}": dict(table) for name, table in study.storages.items()}
    return found | {"place": {"name": system.place}}


def put_in_place(study: Study, system: System, tables: Tables) -> list[str]:
    """Replace what ``sections`` gave by "place", the place of this crossing, resolved.

    There is no "place" for a system that is in none. The result: a sentence for each thing that
    does not go together in this crossing.
    """
    found = {name: tables.pop(name) for name in list(tables) if table_of(name) in PLACED_KEYS}
    name = tables.pop("place")["name"]
    if not name:
        return []
    places = {place: found[f"places.{place}"] for place in study.places}
    storages = {storage: found[f"storages.{storage}"] for storage in study.storages}
    kinds, can = kinds_of(system), ENGINES[system.engine].can
    wrong = [f"[places.{name}]: {said}" for _, said in place_problems(places[name])]
    for each in dict.fromkeys(storages_of(places[name], kinds).values()):
        wrong += [f"[storages.{each}]: {said}" for _, said in storage_problems(storages[each])]
    if places[name].get("cold") == "trial" and not can.keeps_index:
        wrong.append(f"{system.engine} keeps no index over a restart, so it cannot be cold")
    if not wrong:
        tables["place"] = resolve(name, places, storages, kinds, study.base).settings()
    return wrong


class Alike:
    """Finds crossings that are the same for a system, because a level of a place changes nothing.

    ``same_as_before`` is asked once of each crossing that can be run, in order.
    """

    def __init__(self, study: Study) -> None:
        self._factors = {
            factor.path
            for factor in study.factors
            if any(table_of(path) in PLACED_KEYS or names_place(path) for path in factor.paths)
        }
        self._seen: dict[str, dict[str, Level]] = {}

    def same_as_before(self, system: System, levels: dict[str, Level], tables: Tables) -> str:
        """Why this crossing need not be measured beside one before it; "" where it must be."""
        if not self._factors:
            return ""
        others = {path: level for path, level in levels.items() if path not in self._factors}
        whole = [system.name, others, {**tables, "place": same(place_of(tables))}]
        key = json.dumps(whole, sort_keys=True, default=str)
        first = self._seen.setdefault(key, levels)
        changed = [path for path in levels if first is not levels and levels[path] != first[path]]
        if not changed:
            return ""
        what = " and ".join(f"`{path}`" for path in changed)
        changes = "changes" if len(changed) == 1 else "change"
        once = ", ".join(f"{path} = {show(first[path])}" for path in changed)
        return f"{what} {changes} nothing for {system.name} here: measured once, with {once}"


def _reach(study: Study, system: System) -> tuple[set[str], set[str]]:
    """The places that a system is in at some level, and the storages that its files are on."""
    settings = [
        (path, value)
        for factor in study.factors
        for level in range(len(factor.levels))
        for path, value in factor.settings(level).items()
    ]
    at = {system.place} | {
        str(name)
        for path, name in settings
        if names_place(path) and system_of(path) in ("*", system.name)
    }
    at &= set(study.places)
    on: set[object] = set()
    for key in _laid(system):
        on |= {study.places[place].get(key) for place in at}
        on |= {name for path, name in settings if path in {f"places.{p}.{key}" for p in at}}
    return at, {str(name) for name in on if name is not None}


def _laid(system: System) -> list[str]:
    """The keys of a place by which its files are laid."""
    kinds = kinds_of(system)
    return ["storage", *filter(kinds.__contains__, FILES)] if kinds else []


def _matters(path: str, system: System, at: set[str], on: set[str]) -> bool:
    """Whether what a path sets can change anything for a system in these places and storages."""
    owner, table, section = system_of(path), table_of(path), section_of(path)
    if owner is not None:
        return owner in ("*", system.name)
    if table == "storages":
        return section in {f"storages.{name}" for name in on}
    if table == "places":
        lays = key_of(path) in ("storage", *FILES)
        known = not lays or key_of(path) in _laid(system)
        return known and section in {f"places.{name}" for name in at}
    return True
