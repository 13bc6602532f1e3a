"""The hosts of one deployment: their network, and the memory, cores and share of each.

They live as long as the deployment. What is started on a host enters its namespace and joins its
control group between fork and exec.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs
from msgspec.structs import replace

from searchbench.errors import LabError
from searchbench.lab.place import cores as affinity
from searchbench.lab.place import share
from searchbench.lab.place.cold import PAGE_BYTES
from searchbench.lab.place.control import hierarchies
from searchbench.lab.place.group import Cpu, Group, Memory
from searchbench.lab.place.ledger import Ledger
from searchbench.lab.place.lever import insist
from searchbench.lab.place.net import Network
from searchbench.lab.place.storage import megabytes, size_words
from searchbench.lab.system.seat import Seat
from searchbench.places import Cores, Host
from searchbench.record.trial import Lever, Note

_WHOLE = 1.001  # a core, and what adding up shares may be off
_SHARED_CORE = Note(
    kind="hosts share a core",
    severity="note",
    meaning="the shares of the hosts on it add up to more than 1, so each host is slower when all "
    "work than when it is asked alone; separate machines would not be",
    remedy="give each host its own cores, or shares of CPU that add up to at most 1",
)


@dataclass
class _One:
    """A host with its cores and its group; ``before``: what that had used when counting began."""

    host: Host
    cpus: tuple[int, ...]
    group: Group | None = None
    before: Cpu | None = None


class Hosts:
    """``cores``: how this machine's are dealt out where a host names none."""

    def __init__(self, hosts: Sequence[Host], cores: Cores, ledger: Ledger) -> None:
        self._ledger = ledger
        self._network = Network(hosts, ledger)
        self._ones = {host.name: _One(host, affinity.dealt(host, cores)) for host in hosts}
        self._found: dict[str, Lever] = {}
        self._looked = 0.0

    @property
    def notes(self) -> list[Note]:
        """A note if the shares of hosts on one core add up to more than 1."""
        wanted: dict[int, float] = {}
        for one in self._ones.values():
            for cpu in one.cpus:
                wanted[cpu] = wanted.get(cpu, 0.0) + one.host.cpu_share
        over = [cpu for cpu, share in wanted.items() if share > _WHOLE]
        if not over:
            return []
        number = f"{wanted[over[0]]:.0%} of {affinity.numbers(over[:1])}"
        return [structs.replace(_SHARED_CORE, number=number)]

    @property
    def levers(self) -> list[Lever]:
        """What is known of each, until now."""
        return list(self._found.values())

    def confine(self) -> None:
        """Make them, and set their limits; LabError (stage ``place``) where one did not take."""
        self._network.make()
        self._note(*self._network.levers())
        for one in self._ones.values():
            self._limit(one)

    def seat(self, host: Host) -> Seat:
        """Where its processes run."""
        one, network = self._ones[host.name], self._network
        joins = one.group.joins if one.group else ()
        namespace = network.namespace(host.name)
        return Seat(one.cpus, joins, network.address(host.name), namespace, host.name)

    def loaded(self, by_host: Mapping[str, Sequence[int]]) -> None:
        """LabError (stage ``place``) if a process is not on the host where it should be."""
        for name, one in self._ones.items():
            pids = by_host.get(name, ())
            self._inside(one, pids)
            if one.host.cores:
                self._note(affinity.as_asked(one.host, one.cpus, pids))
        self._begin()

    def driven(self) -> None:
        """Keep what the kernel counted of each; LabError where that is not what was asked for."""
        seconds = time.monotonic() - self._looked
        for one in self._ones.values():
            if one.group is None:
                continue
            if one.host.memory_bytes:
                self._note(_memory(one.host, one.group))
            if one.before is not None:
                self._of_cpu(one, one.before, one.group.cpu(), seconds)
        self._begin()

    def killed(self) -> str:
        """A sentence if the kernel killed processes of a host for lack of memory; else ""."""
        for one in self._ones.values():
            if one.group is not None and one.group.has("memory") and one.group.memory().oom_kills:
                return (
                    f"the kernel killed processes on host {one.host.name}: they needed more memory "
                    f"than `memory` = {size_words(one.host.memory_bytes)}; give the host more"
                )
        return ""

    def leave(self) -> list[str]:
        """Remove all of it, with whatever of ours still runs there; what is left, and why."""
        problems = []
        for one in self._ones.values():
            group, one.group = one.group, None
            problems += group.remove() if group else []
        return problems + self._network.remove()

    def _limit(self, one: _One) -> None:
        host = one.host
        wanted = ["memory"] if host.memory_bytes else []
        wanted += ["cpu", "cpuacct"] if host.cpu_share < 1 else []
        # Time by core is an extra, as of a place.
        if "cpuacct" not in wanted and not isinstance(hierarchies(["cpuacct"]), str):
            wanted.append("cpuacct")
        if not wanted:
            return
        one.group = group = Group(self._ledger, wanted)
        group.make()
        if host.cpu_share < 1:
            group.share_cpu(host.cpu_share * len(one.cpus))
            self._note(share.shared(host, group, one.cpus))
        if host.memory_bytes:
            group.cap_memory(host.memory_bytes)
            self._note(_capped(host, group.memory().limit_bytes))

    def _inside(self, one: _One, pids: Sequence[int]) -> None:
        name = one.host.name
        if outside := self._network.strangers(name, pids):
            raise LabError(
                f"process {outside[0]} of the system is not in the network namespace of host "
                f"{name}", "place",
            )  # fmt: skip
        if one.group is not None and (absent := one.group.absent(pids)):
            raise LabError(
                f"process {absent[0]} of the system is not in the control group of host {name}",
                "place",
            )
        lever = self._found[one.host.section]
        ran = f"{len(pids)} process{'' if len(pids) == 1 else 'es'} there"
        self._note(replace(lever, effect=f"{lever.effect}; {ran}",
                           figures={**lever.figures, "processes": len(pids)}))  # fmt: skip

    def _of_cpu(self, one: _One, before: Cpu, now: Cpu, seconds: float) -> None:
        """Cores and share, by the time that its processes had."""
        lever = self._found.get(f"{one.host.section}.cpu_share")
        if lever is not None:
            core_s = seconds * len(one.cpus)
            self._note(share.taken(lever, one.host.cpu_share, before, now, core_s))
        lever = self._found.get(f"{one.host.section}.cores")
        if lever is not None and now.by_core_s:
            self._note(affinity.kept_to(lever, one.cpus, before.by_core_s, now.by_core_s))
        lever = self._found[one.host.section]
        used = {"used_cores": (now.used_s - before.used_s) / seconds}
        self._note(replace(lever, figures={**lever.figures, **used}))

    def _begin(self) -> None:
        """Count from now on."""
        self._looked = time.monotonic()
        for one in self._ones.values():
            one.before = one.group.cpu() if one.group and one.group.has("cpuacct") else None

    def _note(self, *levers: Lever) -> None:
        """Keep them; LabError with the first that did not take."""
        self._found |= {lever.name: lever for lever in levers}
        insist(levers)


def used_at_most(seen: Memory) -> str:
    """How much a group had of memory, a predicate."""
    if seen.peak_bytes is None:
        return "used an amount of memory that this kernel does not record"
    return f"used {megabytes(seen.peak_bytes)} at most"


def peak_of(seen: Memory) -> dict[str, float]:
    """The same as a figure; none where it is not known."""
    return {} if seen.peak_bytes is None else {"peak_bytes": seen.peak_bytes}


def _memory(host: Host, group: Group) -> Lever:
    """Was it held to its cap? No file was in memory before, so all that it reads is counted."""
    seen = group.memory()
    lever = _capped(host, seen.limit_bytes)
    used = f"its processes {used_at_most(seen)}"
    met = f", and reached the cap {seen.met:,} times" if seen.met else ""
    return replace(
        lever,
        effect=f"{used}{met}; {megabytes(seen.cached_bytes)} are file pages",
        problem=lever.problem or (used if seen.over_cap else ""),
        figures={
            "limit_bytes": seen.limit_bytes,
            **peak_of(seen),
            "cached_bytes": seen.cached_bytes,
            "met": seen.met,
            "oom_kills": seen.oom_kills,
        },
    )


def _capped(host: Host, limit_bytes: int) -> Lever:
    asked = host.memory_bytes
    near = abs(limit_bytes - asked) < PAGE_BYTES
    return Lever(
        name=f"{host.section}.memory",
        asked=size_words(asked),
        read_back=f"{limit_bytes:,} bytes",
        problem="" if near else f"the kernel has set {limit_bytes:,} bytes",
        figures={"limit_bytes": limit_bytes},
    )
