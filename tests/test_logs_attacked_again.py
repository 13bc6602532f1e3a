"""What a log cannot know, because a part of it is missing: times, searches, whole hours."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from searchbench.analysis.logs.cut import cut_of
from searchbench.logs.counts import Options
from searchbench.logs.entries import read_entries
from searchbench.logs.searches import searches_of
from searchbench.logs.sources import find
from test_logs_attacked import START, held, judged, plain, record_of, said, slow_log


@pytest.mark.parametrize(("threshold_s", "n"), [(0.07, 20_000), (0.9, 60_000), (0.05, 1500)])
def test_a_slow_log_may_be_one_at_any_threshold_and_with_few_searches(
    tmp_path: Path, threshold_s: float, n: int
) -> None:
    took = 0.004 * np.exp(1.9 * np.random.default_rng(3).standard_normal(n))
    log = slow_log(tmp_path / "slow.log", took, threshold_s)
    told = judged(log)
    assert said(told, "Slow searches only")
    assert "have only those longer than" in told.headline
    assert "all time" not in told.headline + said(told, "Where the time goes")
    assert "all the time that searches took" not in said(told, "Worst hour")
    found = held(record_of(tmp_path / "record", 0.004, 1.9), log)
    assert {line.answer for line in found.lines} <= {"not resolved", "too few"}


def access(path: Path, took_s: Callable[[int, int], float | None], urls: list[str]) -> None:
    """Twelve hours of 200 searches each, a line of nginx with its time if it has one."""
    lines = []
    for hour in range(12):
        for i in range(200):
            at = START + timedelta(hours=hour, seconds=18 * i)
            took = took_s(hour, i)
            end = "" if took is None else f" {took:.4f}"
            url = f"{urls[i % len(urls)]}?q=w{i % 97}"
            lines.append(
                f'10.0.0.1 - - [{at:%d/%b/%Y:%H:%M:%S} +0000] "GET {url} HTTP/1.1" 200 10 "-" "x"'
                f"{end}\n"
            )
    path.write_text("".join(lines))


def test_a_class_does_not_take_all_time_because_others_have_no_times(tmp_path: Path) -> None:
    access(tmp_path / "a.log", lambda _, i: 0.1 if i % 2 == 0 else None, ["/search", "/find"])
    found = judged(tmp_path / "a.log")
    assert said(found, "Where the time goes") == ""
    assert "of all time" not in found.headline
    first = found.by["class"][0]
    assert (first.share, first.share_of_time, first.share_of_timed) == (0.5, 1.0, 1.0)


def test_one_long_search_is_no_worst_hour_where_few_have_times(tmp_path: Path) -> None:
    def took_s(hour: int, i: int) -> float | None:
        if hour == 7 and i == 0:
            return 60.0
        return 0.1 + 0.001 * (i % 7) if i % 2 == 0 else None

    access(tmp_path / "a.log", took_s, ["/search"])
    assert judged(tmp_path / "a.log").worst_hour is None


def test_an_hour_in_which_all_took_longer_is_one_also_where_half_have_times(tmp_path: Path) -> None:
    def took_s(hour: int, i: int) -> float | None:
        return (0.5 if hour == 7 else 0.1) + 0.001 * (i % 7) if i % 2 == 0 else None

    access(tmp_path / "a.log", took_s, ["/search"])
    found = judged(tmp_path / "a.log")
    assert found.worst_hour is not None
    assert found.worst_hour.n == 100
    assert "100 searches whose time the log has took" in said(found, "Worst hour")


def test_a_missing_part_is_named_and_neither_slows_the_rate_nor_is_in_a_cut(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    at = np.concatenate([begin + np.sort(rng.uniform(0, 7200, 18_000)) for begin in (0, 36_000)])
    log = tmp_path / "query.log"
    log.write_text(
        "".join(
            plain(float(t), ms=float(3 + rng.exponential(5)), text=f"w{int(rng.zipf(1.3)) % 900}")
            for t in at
        )
    )
    found = judged(log)
    assert found.rate_mean == pytest.approx(2.5, rel=0.03)
    ((start, end),) = found.holes
    assert end - start == pytest.approx(8 * 3600, abs=120)
    assert "a part of the log is missing" in said(found, "No searches")
    of = searches_of(read_entries(find([log]), Options()))
    cut = cut_of(of)
    assert cut.reached
    assert len(cut.window) / cut.seconds == pytest.approx(2.5, rel=0.1)


def test_the_share_of_a_class_is_that_of_what_a_slow_log_has(tmp_path: Path) -> None:
    """What is below the threshold may have taken most of the time."""
    took = np.where(np.arange(3000) % 3 == 0, 5.0, 1.001 + 0.1 * np.arange(3000) / 3000)
    log = slow_log(tmp_path / "slow.log", took, 1.0)
    text = log.read_text().split("# User@Host")[1:]
    text = [one.replace("pages", "parts") if i % 3 == 0 else one for i, one in enumerate(text)]
    log.write_text("".join(f"# User@Host{one}" for one in text))
    told = judged(log)
    assert "of the time that the log has" in told.headline
    remark = said(told, "Where the time goes")
    assert "of all time that the log has, with 33.3 % of the searches in it." in remark.replace(
        "33 %", "33.3 %"
    )
