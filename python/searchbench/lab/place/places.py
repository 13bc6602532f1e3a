"""A place around one deployment: files evicted, memory, cores, share, rates; and what they did.

    settle      storages are verified, files evicted, the group and the hosts made, their limits
                set and measured
    (start)     processes join them between fork and exec: ``seat``, ``agents``
    loaded      every process and thread is where it should be
    driven      what the kernel counted meanwhile
    leave       the group is removed

Every lever is asked for, read back, and known by its effect; ``levers`` has them all.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from searchbench.errors import LabError
from searchbench.lab.place import cores as affinity
from searchbench.lab.place import share
from searchbench.lab.place.cold import PAGE_BYTES, Evicted
from searchbench.lab.place.control import hierarchies
from searchbench.lab.place.disk import Disk
from searchbench.lab.place.group import Cpu, Group
from searchbench.lab.place.hosts import Hosts, peak_of, used_at_most
from searchbench.lab.place.ledger import Ledger
from searchbench.lab.place.lever import insist
from searchbench.lab.place.storage import megabytes, size_words
from searchbench.lab.place.storages import Storages, not_in_memory
from searchbench.lab.place.throttle import keys_of, limits_of, throttle
from searchbench.lab.remote.hosts import Links, Remotes
from searchbench.lab.system.seat import Seat
from searchbench.places import Cores, Host, Place, Storage
from searchbench.places.model import EACH_QUERY
from searchbench.record.elsewhere import Elsewhere
from searchbench.record.trial import Lever, Note

# Pages of its files that are not on its account: what we read ourselves, what was read ahead.
_UNCHARGED_BYTES = 4_000_000
_UNCHARGED = 0.02  # ... of the cap
_STARTED = "; once it had started: "


class Confines:
    """``cores``: how this machine's are dealt out where the place names none.

    ``links``: those of the run to hosts that are reached by ssh; None: there are none yet.
    """

    def __init__(
        self,
        place: Place,
        cores: Cores,
        storages: Storages,
        ledger: Ledger,
        links: Links | None = None,
    ) -> None:
        self.place, self._storages, self._ledger = place, storages, ledger
        storages.serve(place)
        self.cpus = affinity.dealt(place, cores)
        hosts = list(place.hosts.values())
        near, far = [h for h in hosts if not h.ssh], [h for h in hosts if h.ssh]
        self._hosts = Hosts(near, cores, ledger) if near else None
        self._remotes = Remotes(far, links or Links(ledger))
        self._found: dict[str, Lever] = {}
        self._group: Group | None = None
        self._cpu: Cpu | None = None
        self._looked = 0.0
        self.chilled: list[Evicted] = []
        self._most = 0

    @property
    def joins(self) -> tuple[Path, ...]:
        """The files by which a process of this machine joins."""
        return self._group.joins if self._group else ()

    @property
    def seat(self) -> Seat:
        """Where the server runs."""
        if self.place.host is not None:
            return self._on(self.place.host)
        return Seat(self.cpus, self.joins)

    @property
    def agents(self) -> list[Seat]:
        """Where each of its agents runs; none where they are to be where the server is."""
        return [self._on(host) for host in self.place.agents]

    @property
    def notes(self) -> list[Note]:
        """What makes it less fit to measure on."""
        return [*(self._hosts.notes if self._hosts else ()), *self._remotes.notes]

    @property
    def levers(self) -> list[Lever]:
        """What is known of each, until now."""
        near = self._hosts.levers if self._hosts else ()
        return [*self._found.values(), *near, *self._remotes.levers]

    def settle(self) -> None:
        """Verify the storages, evict what is to be cold, set the limits.

        LabError (stage ``place``) with the first lever that did not take.
        """
        place = self.place
        if place.cold != "no" or any(s.latency_ms for s in place.storages.values()):
            self._storages.forget()
        self._note(*self._storages.levers())
        if place.cold != "no":
            self._storages.forget_own()  # once more: to look at them may be to read them
        capped = place.memory_bytes or any(host.memory_bytes for host in place.hosts.values())
        if place.cold != "no" or capped:
            if hidden := self._storages.hidden():
                raise LabError(hidden, "place")
            evicted = self._storages.evict()
            if place.cold == "trial":
                self._note(_cold(place, evicted))
            # A page that is in memory already would be read free of the cap.
            not_in_memory(evicted)
        self.confine()

    def chill(self) -> Evicted:
        """Evict the files again, before one query; LabError (stage ``place``) where pages stay."""
        if self.place.restart:
            self._storages.forget_own()
        self.chilled.append(evicted := self._storages.evict())
        self._note(_each_cold(self.place, self.chilled))
        return evicted

    def leave(self) -> list[str]:
        """Remove the group, with whatever of ours still runs in it; why not, if not."""
        group, self._group = self._group, None
        problems = group.remove() if group else []
        return problems + (self._hosts.leave() if self._hosts else [])

    def loaded(self, by_host: Mapping[str, Sequence[int]]) -> None:
        """LabError (stage ``place``) where a process or a thread is not where it should be.

        ``by_host``: all processes by the name of their host; "": this machine.
        """
        group, pids = self._group, by_host.get("", ())
        self._remotes.loaded(by_host)
        if self._hosts is not None:
            self._hosts.loaded(by_host)
        if group is not None and (outside := group.absent(pids)):
            raise LabError(
                f"process {outside[0]} of the system is not in the control group of place "
                f"{self.place.name}",
                "place",
            )
        if self.place.cores:
            self._note(affinity.as_asked(self.place, self.cpus, pids))
        self.started()
        self._begin()

    def started(self) -> None:
        """Keep what of files that were evicted is in memory now, before the system is driven."""
        lever = self._found.get(f"places.{self.place.name}.cold")
        if lever is None:
            return
        pages = self._storages.resident_bytes() // PAGE_BYTES
        self._most = max(self._most, pages) if self.place.cold == EACH_QUERY else pages
        effect = f"{lever.effect.partition(_STARTED)[0]}{_STARTED}{self._most:,}"
        self._note(replace(lever, effect=effect, figures={**lever.figures, "started": self._most}))

    def driven(self) -> None:
        """Keep what the kernel counted meanwhile. LabError where that is not what was asked for.

        Its stage is ``place``, or ``drive`` where a process was ended for want of memory.
        """
        if why := self.killed():
            raise LabError(why, "drive")
        place, group = self.place, self._group
        if self._hosts is not None:
            self._hosts.driven()
        if group is None:
            return
        if place.memory_bytes:
            self._note(self._memory(group))
        for name, storage in _limited(place).items():
            counts = group.device(str(self._storages.made(name).device))
            for lever in self.levers:
                if lever.name in (f"storages.{name}.{key}" for key in keys_of(storage)):
                    self._note(replace(lever, figures={**lever.figures, **counts}))
        if self._cpu is not None:
            self._of_cpu(self._cpu, group.cpu(), time.monotonic() - self._looked)
        self._begin()

    def killed(self) -> str:
        """A sentence if the kernel killed processes of the system for lack of memory; else ""."""
        group, place = self._group, self.place
        kills = group.memory().oom_kills if group and group.has("memory") else 0
        if not kills:
            return self._hosts.killed() if self._hosts else ""
        who = "a process" if kills == 1 else f"{kills} processes"
        return (
            f"the kernel killed {who} of the system, which needed more memory than place "
            f"{place.name} has: `memory` = {size_words(place.memory_bytes)}; give it more"
        )

    def confine(self) -> None:
        """Make the group and set its limits; LabError (stage ``place``) where one did not take."""
        place, limited = self.place, _limited(self.place)
        self._remotes.confine()
        if self._hosts is not None:
            self._hosts.confine()
        wanted = ["memory"] if place.memory_bytes else []
        wanted += ["blkio"] if limited else []
        wanted += ["cpu", "cpuacct"] if place.cpu_share < 1 else []
        # Time by core is an extra: to keep to its cores a process needs no group.
        if place.cores and "cpuacct" not in wanted:
            wanted += [] if isinstance(hierarchies(["cpuacct"]), str) else ["cpuacct"]
        if not wanted:
            return
        self._group = group = Group(self._ledger, wanted)
        group.make()
        if place.cpu_share < 1:
            group.share_cpu(place.cpu_share * len(self.cpus))
            self._note(share.shared(place, group, self.cpus))
        for name, storage in limited.items():
            made = self._device(name)
            self._note(*throttle(group, str(made.device), made.path, storage, made.probe))
        if place.memory_bytes:
            self._cap(group)

    def elsewhere(self, start_unix_ns: int, end_unix_ns: int) -> list[Elsewhere]:
        """What each host that is reached by ssh did within a window."""
        return self._remotes.elsewhere(start_unix_ns, end_unix_ns)

    def _on(self, host: Host) -> Seat:
        if host.ssh:
            return self._remotes.seat(host)
        assert self._hosts is not None
        return self._hosts.seat(host)

    def _cap(self, group: Group) -> None:
        """The cap comes last: what measures the others is not held to it."""
        place = self.place
        if group.unified and group.has("blkio"):
            # What measured was in this very group, and its memory would be on the account.
            group.remove()
            group.make()
            if place.cpu_share < 1:
                group.share_cpu(place.cpu_share * len(self.cpus))
            for name, storage in _limited(place).items():
                for rate, limit in limits_of(storage).items():
                    group.limit_rate(str(self._device(name).device), rate, limit)
        group.cap_memory(place.memory_bytes)
        self._note(_capped(place, group.memory().limit_bytes))

    def _device(self, name: str) -> Disk:
        made = self._storages.made(name)
        if not isinstance(made, Disk) or made.device is None:
            raise LabError(f"storage {name} has no device whose rates could be limited", "place")
        return made

    def _note(self, *levers: Lever) -> None:
        """Keep them; LabError with the first that did not take."""
        self._found |= {lever.name: lever for lever in levers}
        insist(levers)

    def _begin(self) -> None:
        """Count from now on."""
        self._looked = time.monotonic()
        self._cpu = self._group.cpu() if self._group and self._group.has("cpuacct") else None

    def _of_cpu(self, before: Cpu, now: Cpu, seconds: float) -> None:
        """Cores and share, judged by the CPU time that the system had."""
        place = self.place
        lever = self._found.get(f"places.{place.name}.cpu_share")
        if lever is not None:
            core_s = seconds * len(self.cpus)
            self._note(share.taken(lever, place.cpu_share, before, now, core_s))
        lever = self._found.get(f"places.{place.name}.cores")
        if lever is not None and now.by_core_s:
            self._note(affinity.kept_to(lever, self.cpus, before.by_core_s, now.by_core_s))

    def _memory(self, group: Group) -> Lever:
        """Was it held to its cap, and are its files in memory charged to its control group?"""
        place, seen = self.place, group.memory()
        resident = self._storages.resident_bytes()
        lever = _capped(place, seen.limit_bytes)
        problem, free = lever.problem, resident - seen.cached_bytes
        if seen.over_cap:
            problem = problem or f"the system {used_at_most(seen)}"
        if free > _UNCHARGED_BYTES + _UNCHARGED * place.memory_bytes:
            problem = problem or (
                f"{megabytes(free)} of the system's files are in memory and not charged to its "
                "control group, so the cap does not apply to them"
            )
        met = f", and reached the cap {seen.met:,} times" if seen.met else ""
        return replace(
            lever,
            effect=f"the system {used_at_most(seen)}{met}; "
            f"{megabytes(resident)} of its files are in memory, and its control group is charged "
            f"{megabytes(seen.cached_bytes)} of file pages",
            problem=problem,
            figures={
                "limit_bytes": seen.limit_bytes,
                **peak_of(seen),
                "cached_bytes": seen.cached_bytes,
                "resident_bytes": resident,
                "met": seen.met,
                "oom_kills": seen.oom_kills,
            },
        )


def _limited(place: Place) -> dict[str, Storage]:
    """Storages whose rates are limited, by name."""
    return {s.name: s for s in place.storages.values() if limits_of(s)}


def _cold(place: Place, evicted: Evicted) -> Lever:
    effect = f"{evicted.after:,} of {evicted.pages:,} pages of its files are in memory"
    if any(storage.kind == "ram" for storage in place.storages.values()):
        effect += "; files on a storage in memory stay there"
    return Lever(
        name=f"places.{place.name}.cold",
        asked=place.cold,
        read_back=f"{evicted.before:,} pages before",
        effect=effect,
        problem="" if evicted.done else effect,
        figures={"pages": evicted.pages, "before": evicted.before, "after": evicted.after},
    )


def _each_cold(place: Place, every: Sequence[Evicted]) -> Lever:
    """``every``: what was evicted before each query until now."""
    most = max(every, key=lambda one: one.after)
    how = "with the system stopped" if place.restart else "with the system running"
    effect = (
        f"before each of {len(every):,} queries, {how}: at most {most.after:,} of {most.pages:,} "
        "pages of its files in memory"
    )
    problem = (
        "" if every[-1].done else f"{every[-1].after:,} of {every[-1].pages:,} pages stay in memory"
    )
    if problem and not place.restart:
        problem += ", because a process has mapped them or writes to them; set restart = true"
    return Lever(
        name=f"places.{place.name}.cold",
        asked=place.cold,
        read_back=f"{every[-1].before:,} pages before the last eviction",
        effect=effect,
        problem=problem,
        figures={"evictions": len(every), "pages": most.pages, "after": most.after},
    )


def _capped(place: Place, limit_bytes: int) -> Lever:
    asked = place.memory_bytes
    return Lever(
        name=f"places.{place.name}.memory",
        asked=size_words(asked),
        read_back=f"{limit_bytes:,} bytes",
        problem=""
        if abs(limit_bytes - asked) < PAGE_BYTES
        else f"the kernel has set {limit_bytes:,} bytes",
        figures={"limit_bytes": limit_bytes},
    )
