"""A clock that steps further than its log writes makes no bands, and hides none that are wider."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from searchbench.analysis.logs.against import _clock
from searchbench.analysis.logs.as_json import as_json
from searchbench.analysis.logs.bands import bands
from searchbench.analysis.logs.clock import clock_of
from searchbench.analysis.logs.judge import judge_log
from searchbench.analysis.logs.model import LogJudgement
from searchbench.analysis.logs.spread import Spread, spread
from searchbench.logs import record as records
from searchbench.logs.counts import Options, count
from searchbench.logs.sources import find
from test_logs import bucket
from test_logs_unknown import said

MS = 1_000_000
N = 40_000
TICKS = (4 * MS, 10 * MS, 15_625_000)
ONE = ((1.0, 25.0, 0.22),)  # parts: share, milliseconds of the middle, spread in decades

Times = NDArray[np.int64]


def took(parts: tuple[tuple[float, float, float], ...], seed: int = 1) -> NDArray[np.float64]:
    """Log-normal parts, in nanoseconds, in any order."""
    rng = np.random.default_rng(seed)
    drawn = [10 ** rng.normal(np.log10(ms), s, round(N * share)) for share, ms, s in parts]
    return rng.permutation(np.concatenate(drawn)) * MS


def ticked(ns: NDArray[np.float64], tick_ns: int, how: str, seed: int = 2) -> Times:
    """Times as a server takes them whose clock goes on by ``tick_ns``.

    ``cut``: cut off to ticks. ``readings``: what lies between two readings of the clock.
    ``milliseconds``: the same, each reading cut off to a millisecond. ``jitter``: the same as
    readings, to a microsecond, with ticks that come up to 5 µs late.
    """
    rng = np.random.default_rng(seed)
    begin = rng.uniform(0, 1e12, len(ns))
    first, last = np.floor(begin / tick_ns), np.floor((begin + ns) / tick_ns)
    if how == "cut":
        return (np.floor(ns / tick_ns) * tick_ns).astype(np.int64)
    if how == "readings":
        return ((last - first) * tick_ns).astype(np.int64)
    if how == "milliseconds":
        return ((last * tick_ns) // MS * MS - (first * tick_ns) // MS * MS).astype(np.int64)
    late = rng.uniform(0, 5_000, (2, len(ns)))
    between = np.where(last > first, (last - first) * tick_ns + late[1] - late[0], 0)
    return between.astype(np.int64)


def logged(ns: Times, resolution_ns: int) -> Spread:
    """The histogram of a log that cuts times off."""
    cut = ns // resolution_ns * resolution_ns
    found, counts = np.unique(bucket(cut), return_counts=True)
    return spread(found, counts.astype(np.uint64), int(cut.max()), resolution_ns)


def seen(of: Spread) -> Spread:
    clock = clock_of(of)
    assert clock is not None
    return clock.seen(of)


@pytest.mark.parametrize("tick_ns", TICKS)
@pytest.mark.parametrize(
    ("how", "resolution_ns"),
    [("cut", MS), ("readings", MS), ("milliseconds", MS), ("jitter", 1_000), ("readings", 1)],
)
def test_one_band_by_a_clock_that_steps_is_one(tick_ns: int, how: str, resolution_ns: int) -> None:
    of = logged(ticked(took(ONE), tick_ns, how), resolution_ns)
    clock = clock_of(of)
    assert clock is not None
    assert clock.step_ns == pytest.approx(tick_ns, rel=0.02)
    assert len(bands(clock.seen(of)).bands) == 1


@pytest.mark.parametrize("median_ms", [3.0, 8.0, 60.0, 200.0])
@pytest.mark.parametrize("how", ["cut", "readings"])
def test_times_far_below_and_above_the_step_are_one_band(median_ms: float, how: str) -> None:
    of = logged(ticked(took(((1.0, median_ms, 0.25),)), 10 * MS, how), MS)
    assert len(bands(seen(of)).bands) == 1


@pytest.mark.parametrize("tick_ns", TICKS)
def test_bands_wider_than_the_step_are_found(tick_ns: int) -> None:
    parts = ((0.5, 0.5, 0.1), (0.3, 60, 0.12), (0.2, 600, 0.12))
    for how in ("cut", "readings", "milliseconds"):
        found = bands(seen(logged(ticked(took(parts), tick_ns, how), MS)))
        first, *others = found.bands
        assert first.at_s is None, "it lies below the step"
        assert [b.at_s for b in others] == pytest.approx([0.06, 0.6], rel=0.25)
        assert [b.share for b in others] == pytest.approx([0.3, 0.2], abs=0.03)


@pytest.mark.parametrize(
    "parts",
    [
        ONE, ((1.0, 2.0, 0.1),), ((1.0, 5.0, 0.35),), ((0.6, 0.3, 0.2), (0.4, 100, 0.2)),
        ((0.5, 10, 0.004), (0.5, 100, 0.004)), ((1.0, 200, 0.0),),
        ((0.5, 10.2, 0.0), (0.3, 30.2, 0.0), (0.2, 300.2, 0.0)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("resolution_ns", [1_000, MS])
def test_a_clock_that_is_as_fine_as_its_log_is_not_said_to_step(
    parts: tuple[tuple[float, float, float], ...], resolution_ns: int
) -> None:
    assert clock_of(logged(took(parts).astype(np.int64), resolution_ns)) is None


def test_where_all_times_are_nought_or_one_step_it_is_not_sure(tmp_path: Path) -> None:
    """A server that takes a millisecond, and a clock of 10 ms; or one that really takes 10."""
    of = logged(ticked(took(((1.0, 1.0, 0.1),)), 10 * MS, "readings"), MS)
    clock = clock_of(of)
    assert clock is not None
    assert (clock.step_ns, clock.sure) == (10 * MS, False)
    assert len(bands(clock.seen(of)).bands) == 1
    found = judged(write(tmp_path / "a.log", np.repeat([0, 10 * MS], [900, 300])))
    assert "one of two neighbouring multiples of 10 ms" in said(found, "Clock")
    long = np.repeat([0, 200 * MS], [900, 300])
    assert clock_of(logged(long, MS)) is None, "no kernel's clock steps so far"
    assert clock_of(logged(np.repeat([0, 2 * MS], [900, 300]), MS)) is None


def test_too_few_times_show_no_clock() -> None:
    assert clock_of(logged(ticked(took(ONE)[:60], 10 * MS, "cut"), MS)) is None
    assert clock_of(logged(ticked(took(ONE)[:300], 10 * MS, "cut"), MS)) is not None


def write(path: Path, ns: Times) -> Path:
    """A log of whole milliseconds, twenty searches a second."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(
        f"[Mon Jan  5 09:{i // 1200 % 60:02d}:{i // 20 % 60:02d}.{i % 20 * 50:03d} 2026] "
        f"{n / 1e9:.3f} sec [ext2/0/rel 12 (0,20)] [products] w{i}\n"
        for i, n in enumerate((ns // MS * MS).tolist())
    ))  # fmt: skip
    return path


def judged(*paths: Path) -> LogJudgement:
    return judge_log(count(find(list(paths)), Options()))


def test_the_page_says_how_far_the_clock_steps_and_what_that_hides(tmp_path: Path) -> None:
    found = judged(write(tmp_path / "a.log", ticked(took(ONE)[:8000], 10 * MS, "cut")))
    assert said(found, "Clock").startswith("The clock of this log steps by 10 ms:")
    assert said(found, "Bands").startswith("Times lie in one band: ")
    assert "are below 10 ms, one step of the clock" in said(found, "Resolution")
    assert "Half of the searches took less than 30 ms" in said(found, "Times")
    assert as_json(found)["clock_steps"] == [{"server": "", "step_s": 0.01, "sure": True}]
    assert found.resolution_s == 0.01
    assert found.within[0.01] < 0.1, "what is written as 10 ms may have taken longer"
    fine = judged(write(tmp_path / "b.log", took(ONE)[:8000].astype(np.int64)))
    assert said(fine, "Clock") == ""
    assert fine.resolution_s == 0.001


def test_days_that_are_added_say_what_all_of_them_say_at_once(tmp_path: Path) -> None:
    ns = ticked(took(ONE)[:8000], 15_625_000, "milliseconds")
    record = tmp_path / "record"
    days = [write(tmp_path / f"{k}.log", ns[2000 * k : 2000 * (k + 1)]) for k in range(4)]
    for day in days:
        grown = records.add(record, find([day], "web"), Options())
    by_days = judge_log(grown.counts)
    at_once = judge_log(count(find(days, "web"), Options()))
    assert by_days.clocks == at_once.clocks
    assert by_days.bands == at_once.bands
    assert len(by_days.bands.bands) == 1
    assert said(by_days, "Clock").startswith("The clock of this log steps by 15.6 ms:")


def test_one_server_of_two_has_a_clock_that_steps(tmp_path: Path) -> None:
    """Its teeth would stand out of the times of the other."""
    parts = ((0.5, 40, 0.1), (0.5, 500, 0.1))
    one = write(tmp_path / "coarse" / "q.log", ticked(took(parts)[:4000], 10 * MS, "cut"))
    two = write(tmp_path / "fine" / "q.log", took(parts, seed=3)[:4000].astype(np.int64))
    found = judged(one, two)
    assert [one.server for one in found.clocks] == ["coarse"]
    assert said(found, "Clock").startswith("The clock of coarse steps by 10 ms:")
    assert [b.at_s for b in found.bands.bands] == pytest.approx([0.04, 0.5], rel=0.2)
    both = judged(one, write(tmp_path / "other" / "q.log", ticked(took(parts)[:4000], 10 * MS,
                                                                  "cut")))  # fmt: skip
    assert [one.server for one in both.clocks] == [""]


def test_a_log_beside_a_record_is_known_to_a_step_too() -> None:
    clock = _clock(ticked(took(ONE), 10 * MS, "readings").astype(np.uint64), MS)
    assert clock is not None
    assert clock.step_ns == 10 * MS
    exact = took(((1.0, 2000.0, 0.5),)).astype(np.uint64)  # many values that differ, and large ones
    assert _clock(exact, 1) is None
