"""The place of one crossing of a plan, and which factors can change anything for a system."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from searchbench.engines import ENGINES
from searchbench.engines.engine import Level
from searchbench.places import place_of
from searchbench.places.keys import FILES, host_problems, place_problems, storage_problems
from searchbench.places.model import EACH_QUERY, same
from searchbench.places.resolve import parts_of, resolve, storages_of
from searchbench.spec import show
from searchbench.study.keys import PLACED_KEYS
from searchbench.study.model import (
    Factor,
    Study,
    System,
    key_of,
    names_agents,
    names_place,
    section_of,
    system_of,
    table_of,
)
from searchbench.study.systems import counted, kinds_of, listed
from searchbench.workload import load_table

Tables = dict[str, dict[str, Any]]


def crossed(study: Study, system: System) -> list[Factor]:
    """The factors whose levels can change something for a system, in file order."""
    at, on = _reach(study, system)
    there = _hosts(study, system, at)
    return [
        factor
        for factor in study.factors
        if any(_matters(path, system, at, on, there) for path in factor.paths)
    ]


def sections(study: Study, system: System) -> Tables:
    """All places, hosts and storages before levels are put in, and where the system is."""
    found = {f"places.{name}": dict(table) for name, table in study.places.items()}
    found |= {f"hosts.{name}": dict(table) for name, table in study.hosts.items()}
    found |= {f"storages.{name}": dict(table) for name, table in study.storages.items()}
    return found | {"place": {"name": system.place, "agents": system.agents}}


def put_in_place(study: Study, system: System, tables: Tables) -> list[str]:
    """Replace what ``sections`` gave by "place", the place of this crossing, resolved.

    There is no "place" for a system that is in none and has no agents. The result: a sentence for
    each thing that does not go together in this crossing.
    """
    found = {name: tables.pop(name) for name in list(tables) if table_of(name) in PLACED_KEYS}
    where = tables.pop("place")
    name, agents = where["name"], where["agents"]
    wrong = _share_out(tables["system"], agents)
    if not name and not agents:
        return wrong
    places = {place: found[f"places.{place}"] for place in study.places}
    hosts = {host: found[f"hosts.{host}"] for host in study.hosts}
    storages = {storage: found[f"storages.{storage}"] for storage in study.storages}
    kinds, can = kinds_of(system), ENGINES[system.engine].can
    own = places[name] if name else {}
    there = dict.fromkeys([*([own["host"]] if "host" in own else []), *agents])
    wrong += [f"[places.{name}]: {said}" for _, said in place_problems(own)]
    for each in there:
        wrong += [f"[hosts.{each}]: {said}" for _, said in host_problems(hosts[each])]
    for each in dict.fromkeys(storages_of(own, kinds).values()):
        wrong += [f"[storages.{each}]: {said}" for _, said in storage_problems(storages[each])]
    parts, there_are = parts_of(own, kinds), tables["system"].get("parts", 0)
    if len(parts) > there_are:
        wrong.append(f"[places.{name}]: `parts` names {len(parts)} storages, and the index has "
                     f"{there_are} part{'s' if there_are > 1 else ''}")  # fmt: skip
    cold = own.get("cold", "no")
    if cold != "no" and not can.keeps_index:
        wrong.append(f"{system.engine} keeps no index over a restart, so it cannot be cold")
    if cold == EACH_QUERY and study.driven:
        wrong += [f"[load]: {said}" for said in _of_first_asks(tables.get("load", {}))]
    if there and "memory" in own:
        wrong.append(f"[places.{name}]: `memory` holds for processes of one machine; with agents "
                     "on hosts set it in [hosts.NAME]")  # fmt: skip
    if far := [name for name in there if "ssh" in hosts[name]]:
        wrong += _of_ssh(study, f"places.{name}", own, far, list(there))
    if not wrong:
        place = resolve(name, places, storages, kinds, study.base, hosts, agents)
        limited = [s.name for s in place.storages.values() if s.limited]
        if there and limited:
            wrong.append(f"[storages.{limited[0]}]: its limits hold for processes of one machine, "
                         "and here they are on hosts; lay the files elsewhere")  # fmt: skip
        tables["place"] = place.settings()
    return wrong


def _of_ssh(
    study: Study, section: str, own: Mapping[str, Any], far: Sequence[str], there: Sequence[str]
) -> Iterator[str]:
    """What cannot be with hosts that are reached by ssh, which are ``far`` of those ``there``."""
    lies = f"its files lie in `folder` of host {far[0]}, which is reached by ssh"
    for key in ("storage", *FILES):
        if key in own:
            yield f"[{section}]: `{key}` is a storage of this machine, and {lies}: leave it out"
    if own.get("cold", "no") != "no":
        yield f"[{section}]: `cold` evicts files of this machine, and {lies}: leave it out"
    near = [name for name in there if name not in far]
    if near and "host" in own:
        yield (
            f"[hosts.{near[0]}] is a network namespace of this machine, which has no route to host "
            f"{far[0]}, which is reached by ssh: use hosts of one kind"
        )
    for key, given in (("jobs", study.jobs), ("io_sizes", study.io_sizes)):
        if given:
            yield f"`{key}` is about disks of this machine, and {lies}: leave one of the two out"


def _share_out(levers: dict[str, Any], agents: Sequence[str]) -> list[str]:
    """Say for each agent how many parts it has, and how many there are in all; what is wrong.

    ``agents``: their hosts; without, there is an agent for each number.
    """
    given = levers.get("parts_by_agent")
    if given is None:
        return []
    sizes = [int(size) for size in counted(given).split(",") if size] or [1] * len(agents)
    if len(sizes) == 1 and agents:
        sizes *= len(agents)
    levers["parts_by_agent"] = counted(sizes)
    if not sizes:
        return []
    if agents and len(sizes) != len(agents):
        return [f"`parts_by_agent` is for {len(sizes)} agents, and {len(agents)} have hosts"]
    if levers["part_kind"] == "local":
        levers["part_kind"] = "agent"  # the default, beside agents
    levers["parts"] = sum(sizes) + (levers["part_kind"] == "mixed")
    return []


def _of_first_asks(load: Mapping[str, Any]) -> Iterator[str]:
    """What a load is that cannot be that of first asks: one client asks so many queries."""
    said = f'with cold = "{EACH_QUERY}"'
    if load_table.kind_of(load) != "closed" or load.get("clients", 1) != 1:
        yield f"{said} one client asks at a time: clients = 1"
    if load.get("requests") is None:
        yield f"{said} queries are counted: set how many are asked, as in requests = 50"
    if load.get("warmup_requests"):
        yield f"{said} there is no warm-up: leave out `warmup_requests`"


class Alike:
    """Finds crossings that are the same for a system, because a level of a place changes nothing.

    ``same_as_before`` is asked once of each crossing that can be run, in order.
    """

    def __init__(self, study: Study) -> None:
        self._factors = {
            factor.path
            for factor in study.factors
            if any(
                table_of(path) in PLACED_KEYS or names_place(path) or names_agents(path)
                for path in factor.paths
            )
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
        given = [study.places[place].get(key) for place in at]
        given += [name for path, name in settings if path in {f"places.{p}.{key}" for p in at}]
        on |= {name for value in given if value is not None for name in listed(value)}
    return at, {str(name) for name in on}


def _hosts(study: Study, system: System, at: set[str]) -> set[str]:
    """The hosts that a system in these places is on at some level, with its agents."""
    found = {*system.agents, *(str(study.places[place].get("host", "")) for place in at)}
    for factor in study.factors:
        for level in range(len(factor.levels)):
            for path, value in factor.settings(level).items():
                if names_agents(path) and system_of(path) in ("*", system.name):
                    found |= {*listed(value)}
                elif path in {f"places.{place}.host" for place in at}:
                    found.add(str(value))
    return found


def _laid(system: System) -> list[str]:
    """The keys of a place by which its files are laid."""
    kinds = kinds_of(system)
    return ["storage", *filter(kinds.__contains__, FILES)] if kinds else []


def _matters(path: str, system: System, at: set[str], on: set[str], there: set[str]) -> bool:
    """Whether what a path sets can change anything for a system.

    In the places ``at``, with files on the storages ``on``, and on the hosts ``there``.
    """
    owner, table, section = system_of(path), table_of(path), section_of(path)
    if owner is not None:
        return owner in ("*", system.name)
    if table == "storages":
        return section in {f"storages.{name}" for name in on}
    if table == "hosts":
        return section in {f"hosts.{name}" for name in there}
    if table == "places":
        lays = key_of(path) in ("storage", *FILES)
        known = not lays or key_of(path) in _laid(system)
        return known and section in {f"places.{name}" for name in at}
    return True
