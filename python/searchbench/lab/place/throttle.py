"""Rates of a device: requests and bytes a second at most, for the processes of one group.

Measured before the system is started, by a process of ours in its group: reads past the page cache
and faults of a mapping, each against its limit, within 3 %.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from searchbench.errors import LabError
from searchbench.lab.place import reads
from searchbench.lab.place.group import RATES, Group
from searchbench.lab.place.storage import megabytes
from searchbench.lab.system.seat import in_child
from searchbench.places import Storage
from searchbench.record.trial import Lever

TOLERANCE = 0.03
_SECONDS, _LONGER_S, _LONGEST_S = 0.5, 1.5, 5.0
_AHEAD_S = 0.1  # what the kernel gives at once, and what it makes up for, are at most this slice
_SHORT = 0.9  # what less of a limit than this was reached is no accident of a busy machine
_SENDERS = 8  # so many requests at a time keep a device busy whose requests are delayed
_SMALL, _LARGE = 4096, 256 << 10
_PROBE_BYTES = 16 << 20
_FEW = 30  # reads through a mapping; from fewer no rate is said
_KEYS = dict(zip(RATES, ("read_iops", "write_iops", "read_per_s", "write_per_s"), strict=True))


def limits_of(storage: Storage) -> dict[str, int]:
    """Its limits per second, by their names in ``group.RATES``; those that it has."""
    return {rate: value for rate in RATES if (value := getattr(storage, rate)) is not None}


def keys_of(storage: Storage) -> list[str]:
    """The keys of a study for its limits."""
    return [_KEYS[rate] for rate in limits_of(storage)]


def throttle(group: Group, device: str, path: str, storage: Storage, probe: Path) -> list[Lever]:
    """Limit a device for a group, and measure each limit; its levers.

    ``device``: "major:minor", ``path``: of the same. ``probe``: a file on it that we may write.
    """
    limits = limits_of(storage)
    measured: dict[str, float] = {}
    # Bytes first and alone: with few requests a second, no request is large enough to meet both.
    for rate in ("read_bytes_per_s", "write_bytes_per_s"):
        if rate in limits:
            group.limit_rate(device, rate, limits[rate])
    measured |= settled(lambda s: _bytes(group, path, probe, limits, s), limits)
    for rate in ("read_iops", "write_iops"):
        if rate in limits:
            group.limit_rate(device, rate, limits[rate])
    measured |= settled(lambda s: _requests(group, path, probe, limits, s), limits)
    mapped = _faults(group, _room(probe), limits)
    alone = _unlimited(path, limits, measured)
    levers = []
    for rate, limit in limits.items():
        was = group.rate(device, rate)
        problem = "" if was == limit else f"the kernel has set {was or 'no limit'}"
        found, without = measured[rate], alone.get(rate)
        effect = f"{_said(rate, found)} past the page cache"
        if found > limit * (1 + TOLERANCE):
            problem = problem or f"{effect}: more than its limit"
        elif found < limit * (1 - TOLERANCE) and without is not None:
            effect += f"; without the limit it is {_said(rate, without)} here"
            if found < limit * _SHORT and without > limit * (1 + TOLERANCE):
                problem = problem or f"{effect}: something other than the limit slows it down"
        figures = {f"measured_{rate}": found}
        if rate.startswith("read") and mapped is not None:
            of_faults = mapped * (1 if rate == "read_iops" else _SMALL)
            figures[f"mapped_{rate}"] = of_faults
            effect += f", {_said(rate, of_faults)} through a mapping"
            if of_faults > limit * (1 + TOLERANCE):
                problem = problem or f"{effect}: more than its limit"
        if rate.startswith("write") and not group.late_writes_limited():
            effect += "; writes that the kernel delays are not limited (control groups version 1)"
        levers.append(
            Lever(
                name=f"storages.{storage.name}.{_KEYS[rate]}",
                asked=str(limit),
                read_back=str(was or "no limit"),
                effect=effect,
                problem=problem,
                figures=figures,
                device=Path(path).name,
            )
        )
    return levers


def settled(
    measure: Callable[[float], dict[str, Requests]], limits: Mapping[str, int]
) -> dict[str, float]:
    """What was measured; for longer, where a short look was not near the limits.

    More than a limit is looked at again. A limit makes up for what it held back, so where the
    senders had no core for a while they are faster afterwards; in all they cannot have more than
    the limit and what it gives ahead. So the last and longest look counts all requests.
    """
    found = {rate: sent.per_s for rate, sent in measure(_SECONDS).items()}
    if all(abs(v / limits[rate] - 1) < TOLERANCE for rate, v in found.items()):
        return found
    found = {rate: sent.per_s for rate, sent in measure(_LONGER_S).items()}
    above = [rate for rate, v in found.items() if v > limits[rate] * (1 + TOLERANCE)]
    if above:
        longest = measure(_LONGEST_S)
        found |= {rate: longest[rate].within(limits[rate]) for rate in above}
    return found


@dataclass(frozen=True, slots=True)
class Requests:
    """What senders had done: units a second once settled, and all units of so many seconds."""

    per_s: float
    all: float
    seconds: float

    def within(self, limit: float) -> float:
        """Units a second, of all but what a limit of so many may have given ahead."""
        return (self.all - limit * _AHEAD_S) / self.seconds if self.seconds else 0.0


def _requests_of(child: subprocess.Popen[bytes], size: int = 1) -> Requests:
    """``size``: units a request."""
    found = _result(child)
    return Requests(found["per_s"] * size, found["all"] * size, found["seconds"])


def _bytes(
    group: Group, path: str, probe: Path, limits: Mapping[str, int], seconds: float
) -> dict[str, Requests]:
    """Bytes a second of large requests, reads and writes at once; of the rates that are limited."""
    running = {}
    if "read_bytes_per_s" in limits:
        running["read_bytes_per_s"] = _start(group, path, "direct", _LARGE, seconds)
    if "write_bytes_per_s" in limits:
        running["write_bytes_per_s"] = _start(group, _room(probe), "write", _LARGE, seconds)
    return {rate: _requests_of(child, _LARGE) for rate, child in running.items()}


def _requests(
    group: Group, path: str, probe: Path, limits: Mapping[str, int], seconds: float
) -> dict[str, Requests]:
    """Small requests a second, reads and writes at once; of the rates that are limited."""
    running = {}
    if "read_iops" in limits:
        running["read_iops"] = _start(group, path, "direct", _SMALL, seconds)
    if "write_iops" in limits:
        running["write_iops"] = _start(group, _room(probe), "write", _SMALL, seconds)
    return {rate: _requests_of(child) for rate, child in running.items()}


def _faults(group: Group, path: str, limits: Mapping[str, int]) -> float | None:
    """Pages a second through a mapping; longer, if a short look was not near the limit; None: too
    few.

    A limit hands out what it held back, so a sender that had no core for a while may have more. And
    it hands out several requests at a time, of which a short look may miss some.
    """
    most = min(limits.get("read_iops", math.inf), limits.get("read_bytes_per_s", math.inf) / _SMALL)
    for seconds in (_SECONDS, _LONGER_S):
        found = _result(_start(group, path, "mapped", _SMALL, seconds))
        if found["requests"] < _FEW:
            return None
        if abs(found["per_s"] / most - 1) < TOLERANCE:
            break
    return found["per_s"]


def _unlimited(
    path: str, limits: Mapping[str, int], measured: Mapping[str, float]
) -> dict[str, float]:
    """What the device gives outside of the group, where less than a limit was measured in it."""
    found = {}
    for rate, size in (("read_bytes_per_s", _LARGE), ("read_iops", _SMALL)):
        if rate in limits and measured[rate] < limits[rate] * (1 - TOLERANCE):
            per_s = _result(_start(None, path, "direct", size, _SECONDS))["per_s"]
            found[rate] = per_s * (size if size == _LARGE else 1)
    return found


def _room(probe: Path) -> str:
    """A file to write over, and to read through a mapping.

    Through a mapping of the device a page may be several requests: as many as its file system
    has blocks in it.
    """
    if not probe.exists():
        try:
            with probe.open("wb") as file:
                file.write(os.urandom(_PROBE_BYTES))  # a file system may compress
                file.flush()
                # Else the first writes past the page cache would wait for room to be found.
                os.fsync(file.fileno())
        except OSError as error:
            probe.unlink(missing_ok=True)
            raise LabError(
                f"rates are measured with a file of {megabytes(_PROBE_BYTES)}, and it could not be "
                f"written to {probe.parent}: {error.strerror}",
                "place",
            ) from None
    return str(probe)


def _start(
    group: Group | None, path: str, how: str, size: int, seconds: float, senders: int = _SENDERS
) -> subprocess.Popen[bytes]:
    arguments = [path, how, str(size), str(seconds), str(senders)]
    return subprocess.Popen(
        [sys.executable, "-I", reads.__file__, *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=in_child((), joins=group.joins_of("blkio") if group else ()),
    )  # fmt: skip


def _result(child: subprocess.Popen[bytes]) -> dict[str, float]:
    try:
        out, err = child.communicate(timeout=60)
    except BaseException:
        child.kill()
        child.wait()
        raise
    if child.returncode:
        words = " ".join(err.decode(errors="replace").split())[-300:]
        raise LabError(f"the rate of a device could not be measured: {words}", "place")
    found: dict[str, float] = json.loads(out)
    return found


def _said(rate: str, per_s: float) -> str:
    what = "reads" if rate == "read_iops" else "writes"
    return f"{per_s:,.0f} {what}/s" if rate.endswith("iops") else f"{megabytes(per_s)}/s"
