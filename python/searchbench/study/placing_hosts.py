"""Complaints about hosts: who is on them, and which agents have which parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from searchbench.engines import ENGINES
from searchbench.spec import nearest, show
from searchbench.study.model import System, key_of, names_agents, names_place, system_of
from searchbench.study.positions import Path
from searchbench.study.systems import listed
from searchbench.study.tables import Given

_SHARED = "parts_by_agent"


def check(given: Given, systems: Mapping[str, System]) -> None:
    """Complain of unknown hosts, of hosts nobody is on, and of who cannot be on one."""
    source, hosts = given.source, given.source.table("hosts")
    used: set[str] = set()
    for name, system in systems.items():
        for at, host in _agents(given, system):
            used.add(host)
            _known(given, at, host)
        _check_agents(given, name, system)
    for place in source.table("places"):
        for at, value in given.values(f"places.{place}", "host"):
            used.add(str(value))
            _known(given, at, str(value))
            for system in systems.values():
                if place in _places(given, system) and not _can(system):
                    able = ", ".join(name for name, e in ENGINES.items() if e.can.on_hosts)
                    source.at_value(
                        at,
                        f"{system.engine} listens on loopback alone, so {system.name} cannot be on "
                        "a host",
                        f"these can: {able}",
                    )
    for host in hosts:
        if used <= set(hosts) and host not in used:  # else a name that is wrong may mean it
            source.at_key(("hosts", host), f"nothing runs on the host `{host}`",
                          f"as in [places.NAME] with host = {show(host)}, or a system's agents = "
                          f"[{show(host)}]")  # fmt: skip


def _known(given: Given, at: Path, host: str) -> None:
    hosts = given.source.table("hosts")
    if host not in hosts:
        hint = nearest(host, hosts) if hosts else "there is no [hosts.NAME] at all"
        given.source.at_value(at, f"there is no host {show(host)}", hint)


def _can(system: System) -> bool:
    return system.engine in ENGINES and ENGINES[system.engine].can.on_hosts


def _places(given: Given, system: System) -> set[str]:
    """The places that a system is in, at some level at least."""
    return {system.place} | {str(v) for path, _, v in _levels(given, system) if names_place(path)}


def _levels(given: Given, system: System) -> Iterator[tuple[str, Path, object]]:
    """(path, position, value) of whatever factors set of a system."""
    for one in given.varied:
        for level, where in enumerate(one.values):
            for path, value in one.factor.settings(level).items():
                if system_of(path) in ("*", system.name):
                    yield path, where[path], value


def _agents(given: Given, system: System) -> Iterator[tuple[Path, str]]:
    """(position, host) of each agent, at each level."""
    own: Path = ("systems", system.name, "agents")
    alone = isinstance(given.source.table(*own[:2]).get("agents"), str)
    for i, host in enumerate(system.agents):
        yield own if alone else (*own, str(i)), host
    for path, at, value in _levels(given, system):
        if names_agents(path):
            for i, host in enumerate(listed(value)):
                yield at if isinstance(value, str) else (*at, str(i)), host


def _check_agents(given: Given, name: str, system: System) -> None:
    """Complain of agents that a system cannot have, and of parts that are said twice."""
    source, own = given.source, ("systems", name)
    table = source.table(*own)
    set_: list[tuple[Path, str, object]] = [((*own, key), key, table[key]) for key in table]
    set_ += [(at, key_of(path), value) for path, at, value in _levels(given, system)]
    named = [at for at, key, _ in set_ if key == "agents"]
    if named and system.attach:
        source.at_key(named[0], f"{name} runs already, and `agents` is only for systems that are "
                      "started here")  # fmt: skip
    elif named and system.engine in ENGINES and _SHARED not in _levers(system):
        able = ", ".join(engine for engine, e in ENGINES.items()
                         if any(p.name == _SHARED for p in e.parameters))  # fmt: skip
        source.at_key(named[0], f"{system.engine} has no agents that could be on hosts",
                      f"these have: {able}")  # fmt: skip
    if not named and not any(key == _SHARED for _, key, _ in set_):
        return
    for at, key, value in set_:
        if key == "parts":
            source.at_key(at, "`parts` follows from the agents and `parts_by_agent`; leave it out")
        elif key == "part_kind" and value == "local":
            source.at_value(at, 'part_kind = "local" has no agents; use "agent" or "mixed"')


def _levers(system: System) -> set[str]:
    return {p.name for p in ENGINES[system.engine].parameters}
