"""A day of a log as the stages of a load: its shape, compressed into minutes.

The day is cut into stages of equal length, and each has the mean rate of its part of the day, times
one factor for all. What a stage cannot have is what changed within it: how far the log's minutes
differ there, beyond what random arrivals do, is reckoned and said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.errors import QueryError
from searchbench.logs.counts import Counts, Options, count
from searchbench.logs.record import is_one, open_log
from searchbench.logs.sources import find

DAY = 1440  # minutes
SECONDS, STAGES = 600.0, 48
FAITHFUL = 2.0  # variance of a minute's requests over that of random arrivals

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Drawn:
    """Stages, and what they were drawn from; what a record keeps is ``about``.

    ``stages``: [seconds, rate] each. ``peak``: the busiest, from 1. ``logged``: requests of the
    log in its ``minutes``, from ``begins`` (ISO, as the log writes it) on. ``times``: by how much
    the time is compressed; ``rates``: by how much rates are multiplied. ``busiest_minute``: of the
    minutes within stages, the most requests over those of its stage's mean; ``dispersion``: the
    variance of the minutes' requests about their stage's mean, over that of random arrivals.
    """

    stages: tuple[tuple[float, float], ...]
    peak: int
    log: str
    begins: str
    minutes: int
    logged: int
    times: float
    rates: float
    stage_minutes: float
    peak_logged_per_s: float
    busiest_minute: float
    dispersion: float | None

    @property
    def about(self) -> dict[str, Any]:
        """All but the stages, by name."""
        found = asdict(self)
        del found["stages"]
        return found


def drawn(table: Mapping[str, Any], base: Path) -> Drawn:
    """The stages that a study's table means; QueryError or RecordError with the reason.

    ``table``: its keys (study/curve.py). ``base``: the folder that ``log`` is relative to.
    """
    path = base / str(table["log"])
    minute, n = _minutes(_counted(path, str(table.get("format") or "")))
    if not n.size:
        raise QueryError(f"{path}: none of its requests has a time, so it has no curve")
    first, last = _span(path, minute, n, table.get("day"))
    counts = np.zeros(last - first, np.int64)
    inside = (minute >= first) & (minute < last)
    np.add.at(counts, minute[inside] - first, n[inside])
    return _cut(
        str(table["log"]), first, counts, int(table.get("stages") or STAGES),
        float(table.get("seconds") or SECONDS), float(table["peak_per_s"]),
    )  # fmt: skip


def _counted(path: Path, named: str) -> Counts:
    if path.is_dir() and is_one(path):
        return open_log(path).counts
    if not path.exists():
        raise QueryError(f"there is no log {path}")
    return count(find([path]), Options(format=named))


def _minutes(counts: Counts) -> tuple[Ints, Ints]:
    """Minutes since 1970, ascending, and how many requests began in each."""
    minute = counts.numbers("minutes", "minute").astype(np.int64)
    n = counts.numbers("minutes", "n").astype(np.int64)
    order = np.argsort(minute)
    return minute[order], n[order]


def _span(path: Path, minute: Ints, n: Ints, wanted: object) -> tuple[int, int]:
    """The first minute and the one after the last: a day, as far as the log covers it."""
    days = np.unique(minute // DAY)
    if wanted is None:
        totals = [int(n[minute // DAY == day].sum()) for day in days]
        day = int(days[int(np.argmax(totals))])
    else:
        try:
            asked = wanted if isinstance(wanted, date) else date.fromisoformat(str(wanted))
        except ValueError:
            raise QueryError(f'`day` is "{wanted}", and must be as "2026-11-20"') from None
        day = (asked - date(1970, 1, 1)).days
        if day not in days:
            has = f"{_iso(int(minute[0]))[:10]} to {_iso(int(minute[-1]))[:10]}"
            raise QueryError(f"{path} has no request of {asked.isoformat()}; it has {has}")
    return max(day * DAY, int(minute[0])), min((day + 1) * DAY, int(minute[-1]) + 1)


def _cut(
    log: str, first: int, counts: Ints, stages: int, seconds: float, peak_per_s: float
) -> Drawn:
    """``counts``: requests of each minute, from ``first`` on."""
    minutes = int(counts.size)
    if minutes < stages:
        if minutes < 2:
            raise QueryError(
                f"{log} has only one minute of that day, which is not enough for a curve"
            )
        raise QueryError(
            f"{log} has {minutes} minutes of that day, which cannot be cut into {stages} stages; "
            f"set `stages` to {minutes} or fewer"
        )
    ends = np.round(np.linspace(0, minutes, stages + 1)).astype(np.int64)
    lengths = np.diff(ends)
    totals = np.add.reduceat(counts, ends[:-1])
    means = totals / lengths  # requests a minute
    if not means.max() > 0:
        raise QueryError(f"{log} has no requests in that day")
    rates = means / means.max() * peak_per_s
    # Stages of one minute more or less are as much longer or shorter here.
    lasts = lengths / minutes * seconds
    within = np.repeat(means, lengths)
    busy = within > 0
    free = int(busy.sum()) - int((means > 0).sum())
    spread = float(((counts - within)[busy] ** 2 / within[busy]).sum())
    return Drawn(
        stages=tuple(
            (float(f"{s:.9g}"), float(f"{r:.6g}")) for s, r in zip(lasts, rates, strict=True)
        ),
        peak=int(np.argmax(means)) + 1,
        log=log,
        begins=_iso(first),
        minutes=minutes,
        logged=int(counts.sum()),
        times=minutes * 60 / seconds,
        rates=peak_per_s / (float(means.max()) / 60),
        stage_minutes=minutes / stages,
        peak_logged_per_s=float(means.max()) / 60,
        busiest_minute=float((counts[busy] / within[busy]).max()),
        dispersion=spread / free if free > 0 else None,
    )


def _iso(minute: int) -> str:
    return datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%d %H:%M")
