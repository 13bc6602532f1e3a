"""A control group of ours: a cap of memory with its page cache and without swap, a share of CPU,
rates of devices; and what the kernel counted in it.

It lives as long as a deployment. The processes of a deployment join it between fork and exec, so
that not a page of theirs is outside.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import psutil

from searchbench.errors import LabError
from searchbench.lab.place import things
from searchbench.lab.place.control import hierarchies
from searchbench.lab.place.ledger import Ledger

PERIOD_US = 10_000
"""The period in which a share of CPU is given. It is short, so that a slower host is not one that
stands still for tens of milliseconds. A small share has a longer one, as the kernel gives no less
than ``_LEAST_US`` in a period."""
_LEAST_US, _LONGEST_US = 1000, 1_000_000

_FORCED_BYTES = 1 << 20
"""A group at its cap is charged more for what the kernel must have at once, while it frees memory:
some pages, as was seen."""

RATES = ("read_iops", "write_iops", "read_bytes_per_s", "write_bytes_per_s")
_V1_RATES = dict(
    zip(RATES, ("read_iops_device", "write_iops_device", "read_bps_device", "write_bps_device"),
        strict=True)
)  # fmt: skip
_V2_RATES = dict(zip(RATES, ("riops", "wiops", "rbps", "wbps"), strict=True))


class Memory(NamedTuple):
    """What a group had of memory. ``cached_bytes``: pages of files that are on its account, but not
    memory that processes share and files on a tmpfs, which the kernel counts there too.

    ``peak_bytes``: None where the kernel does not count it, as before Linux 5.19 in control groups
    of version 2. ``met``: how often the cap was met, where the kernel counts that;
    ``oom_kills``: how many processes it ended for it.
    """

    limit_bytes: int
    peak_bytes: int | None
    cached_bytes: int
    met: int
    oom_kills: int

    @property
    def over_cap(self) -> bool:
        """Whether it had more than its cap, and not only the pages that the kernel forces on it."""
        return (self.peak_bytes or 0) > self.limit_bytes + _FORCED_BYTES


class Cpu(NamedTuple):
    """What a group had of CPU. ``throttled``: in how many periods it was stopped at its share.

    ``by_core_s``: seconds on each core; empty where the kernel does not say.
    """

    used_s: float
    throttled: int
    throttled_s: float
    by_core_s: tuple[float, ...] = ()


@dataclass
class Group:
    """``wanted``: the controllers that it needs; to be made, and to be removed again."""

    ledger: Ledger
    wanted: Sequence[str]
    _folders: dict[str, Path] = field(default_factory=dict)
    _versions: dict[str, int] = field(default_factory=dict)
    _number: int = 0

    def make(self) -> None:
        """LabError (stage ``place``) where the machine does not let us."""
        name = self.ledger.unique()
        self._folders.clear()
        found = hierarchies(self.wanted)
        if isinstance(found, str):
            raise LabError(found, "place")
        for controller, where in found.items():
            self._folders[controller] = where.parent / name
            self._versions[controller] = where.version
        paths = dict.fromkeys(self._folders.values())
        self._number = self.ledger.note(things.Group(tuple(map(str, paths))))
        for path in paths:
            try:
                path.mkdir()
            except OSError as error:
                raise LabError(f"{path} could not be made: {error.strerror}", "place") from None

    @property
    def joins(self) -> tuple[Path, ...]:
        """The files into which a process writes that it joins."""
        return tuple(path / "cgroup.procs" for path in dict.fromkeys(self._folders.values()))

    def joins_of(self, controller: str) -> tuple[Path, ...]:
        """The same for one controller alone; with version 2 it is all of them."""
        return (self._folders[controller] / "cgroup.procs",)

    @property
    def unified(self) -> bool:
        """Is one group for all controllers (version 2)?"""
        return 2 in self._versions.values()

    def has(self, controller: str) -> bool:
        """Whether it has that controller."""
        return controller in self._folders

    def members(self) -> set[int]:
        """The processes in it."""
        return things.Group(tuple(map(str, self._folders.values()))).members()

    def absent(self, pids: Sequence[int]) -> list[int]:
        """Which of these processes are not in all of its folders, and live."""
        inside = [things.Group((str(path),)).members() for path in self._folders.values()]
        # A server may have a process for each connection, and the last of them may just have ended.
        return [
            pid for pid in pids if not all(pid in members for members in inside) and _lives(pid)
        ]

    def remove(self) -> list[str]:
        """Remove it, with whatever of ours still runs in it; why not, if not."""
        return self.ledger.undo(self._number)

    def cap_memory(self, limit_bytes: int) -> None:
        """Processes and the pages of files that they read: no more than that, and no swap."""
        if self._versions["memory"] == 2:
            self._write("memory", "memory.swap.max", "0", optional=True)
            self._write("memory", "memory.max", str(limit_bytes))
            return
        self._write("memory", "memory.swappiness", "0", optional=True)
        self._write("memory", "memory.limit_in_bytes", str(limit_bytes))
        # Memory and swap together; the kernel may have been started without it.
        self._write("memory", "memory.memsw.limit_in_bytes", str(limit_bytes), optional=True)

    def memory(self) -> Memory:
        """What it has used until now."""
        if self._versions["memory"] == 2:
            events, stat = (
                self._table("memory", "memory.events"),
                self._table("memory", "memory.stat"),
            )
            return Memory(
                self._number_in("memory", "memory.max"),
                self._number_in("memory", "memory.peak") or None,
                stat.get("file", 0) - stat.get("shmem", 0),
                events.get("max", 0),
                events.get("oom_kill", 0),
            )
        stat = self._table("memory", "memory.stat")
        return Memory(
            self._number_in("memory", "memory.limit_in_bytes"),
            self._number_in("memory", "memory.max_usage_in_bytes"),
            stat.get("total_cache", stat.get("cache", 0))
            - stat.get("total_shmem", stat.get("shmem", 0)),
            self._number_in("memory", "memory.failcnt"),
            self._table("memory", "memory.oom_control").get("oom_kill", 0),
        )

    def share_cpu(self, cores: float) -> None:
        """So many cores' worth of time, 0.5 being half of one."""
        period = min(_LONGEST_US, max(PERIOD_US, round(_LEAST_US / cores)))
        quota = max(_LEAST_US, round(cores * period))
        if self._versions["cpu"] == 2:
            self._write("cpu", "cpu.max", f"{quota} {period}")
            return
        self._write("cpu", "cpu.cfs_period_us", str(period))
        self._write("cpu", "cpu.cfs_quota_us", str(quota))

    def shared_cpu(self) -> float:
        """The share as the kernel has it, in cores; 0 where there is none."""
        if self._versions["cpu"] == 2:
            quota, period = self._text("cpu", "cpu.max").split()
            return 0.0 if quota == "max" else int(quota) / int(period)
        quota_us = self._number_in("cpu", "cpu.cfs_quota_us")
        return max(0, quota_us) / self._number_in("cpu", "cpu.cfs_period_us")

    def cpu(self) -> Cpu:
        """What it has used until now."""
        stat = self._table("cpu", "cpu.stat") if self.has("cpu") else {}
        if self._versions.get("cpu") == 2:
            return Cpu(
                stat.get("usage_usec", 0) / 1e6,
                stat.get("nr_throttled", 0),
                stat.get("throttled_usec", 0) / 1e6,
            )
        by_core = [int(ns) / 1e9 for ns in self._text("cpuacct", "cpuacct.usage_percpu").split()]
        return Cpu(
            sum(by_core), stat.get("nr_throttled", 0), stat.get("throttled_time", 0) / 1e9,
            tuple(by_core),
        )  # fmt: skip

    def limit_rate(self, device: str, rate: str, value: int | None) -> None:
        """What a device ("major:minor") gives this group at most per second; None: no limit."""
        if self._versions["blkio"] == 2:
            self._write("blkio", "io.max", f"{device} {_V2_RATES[rate]}={value or 'max'}")
            return
        self._write("blkio", f"blkio.throttle.{_V1_RATES[rate]}", f"{device} {value or 0}")

    def rate(self, device: str, rate: str) -> int | None:
        """A limit as the kernel has it; None: no limit."""
        if self._versions["blkio"] == 2:
            rows = self._rows("blkio", "io.max", device)
            found = dict(part.split("=") for part in rows).get(_V2_RATES[rate], "max")
            return None if found == "max" else int(found)
        row = self._rows("blkio", f"blkio.throttle.{_V1_RATES[rate]}", device)
        return int(row[0]) if row else None

    def device(self, device: str) -> dict[str, float]:
        """What it asked of a device until now."""
        if self._versions["blkio"] == 2:
            row = dict(part.split("=") for part in self._rows("blkio", "io.stat", device))
            keys = {"rbytes": "read_bytes", "wbytes": "written_bytes", "rios": "reads",
                    "wios": "writes"}  # fmt: skip
            return {name: float(row.get(key, 0)) for key, name in keys.items()}
        found = {}
        for file, names in (("io_service_bytes", ("read_bytes", "written_bytes")),
                            ("io_serviced", ("reads", "writes"))):  # fmt: skip
            text = self._text("blkio", f"blkio.throttle.{file}")
            rows = {tuple(line.split()[:2]): line.split()[-1] for line in text.splitlines()}
            for kind, name in zip(("Read", "Write"), names, strict=True):
                found[name] = float(rows.get((device, kind), 0))
        return found

    def late_writes_limited(self) -> bool:
        """Whether writes that the kernel does later are held to a rate too."""
        return self._versions["blkio"] == 2 and self._versions.get("memory") == 2

    def _rows(self, controller: str, name: str, device: str) -> list[str]:
        """What stands behind a device in a file."""
        for line in self._text(controller, name).splitlines():
            first, *rest = line.split()
            if first == device:
                return rest
        return []

    def _table(self, controller: str, name: str) -> dict[str, int]:
        """A file of names and numbers."""
        rows = (line.split() for line in self._text(controller, name).splitlines())
        return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}

    def _number_in(self, controller: str, name: str) -> int:
        text = self._text(controller, name).strip()
        return int(text) if text.lstrip("-").isdigit() else 0

    def _text(self, controller: str, name: str) -> str:
        try:
            return (self._folders[controller] / name).read_text()
        except OSError:  # older kernels lack some of them
            return ""

    def _write(self, controller: str, name: str, text: str, *, optional: bool = False) -> None:
        path = self._folders[controller] / name
        try:
            descriptor = os.open(path, os.O_WRONLY)
        except OSError as error:
            if optional:
                return
            raise LabError(f"{path} cannot be written: {error.strerror}", "place") from None
        try:
            os.write(descriptor, text.encode())
        except OSError as error:
            if not optional:
                raise LabError(
                    f"the kernel did not accept {text!r} for {name}: {error.strerror}", "place"
                ) from None
        finally:
            os.close(descriptor)


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False
