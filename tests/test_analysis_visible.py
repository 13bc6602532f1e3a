"""Commit to visible of simulated publishers whose truth is known: no server is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from searchbench.analysis.roles.accepted import Written, of_writer
from searchbench.analysis.roles.truth import _unanswered, _unsent, died
from searchbench.analysis.roles.visible import Seen, seen, visible
from searchbench.record.roles import ASKS

ASK_S, SECONDS = 0.02, 60.0


def markers(rng: np.random.Generator, seconds: float = SECONDS, each_s: float = 1.0) -> list[Seen]:
    """At random instants, one in ``each_s``; published about every 10 s (log-normal, sigma 0.5)."""
    gaps = 10 * np.exp(0.5 * rng.standard_normal(round(seconds)))
    published = np.cumsum(gaps) - rng.uniform(0, 5 * seconds)
    published = published[(published > 0) & (published < seconds)]
    found = []
    for written in np.sort(rng.uniform(0, seconds, round(seconds / each_s))).tolist():
        at, looked_s = int(np.searchsorted(published, written)), seconds - written
        if at == published.size:
            found.append(Seen("m", looked_s, np.inf, looked_s))
            continue
        took = float(published[at]) - written
        earliest = max(0.0, took - ASK_S * rng.random())
        shown = round(1e9 * published[at])
        found.append(Seen("m", earliest, earliest + ASK_S, looked_s, False, ASK_S, shown))
    return found


def truth(q: float) -> float:
    """The q-quantile of what is left of a length-biased gap."""
    rng = np.random.default_rng(1)
    gaps = 10 * np.exp(0.5 * rng.standard_normal(200_000))
    gaps = rng.choice(gaps, gaps.size, p=gaps / gaps.sum())
    return float(np.quantile(gaps * rng.random(gaps.size), q))


def test_markers_that_one_publish_shows_are_no_more_than_one_that_is_known() -> None:
    """By the markers alone three of four intervals held the median."""
    middle = truth(0.5)
    held = known = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        found = visible([markers(rng) for _ in range(3)], 50.0, 0.001)
        if found is None or "p50" not in found.quantiles:
            continue
        interval = found.quantiles["p50"].interval
        assert interval is not None
        known += 1
        held += interval.low <= middle <= interval.high
    assert known > 150
    assert held >= 0.88 * known, (held, known, middle)


@pytest.mark.parametrize(
    ("trials", "q", "seconds"), [(3, "p90", 200.0), (1, "p90", 600.0), (1, "p50", 120.0)]
)
def test_an_interval_of_visible_is_as_wide_as_publishes_and_trials_differ(
    trials: int, q: str, seconds: float
) -> None:
    """A marker a second, a publish every ten."""
    at = truth(float(f"0.{q[1:]}"))
    held = known = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        found = visible([markers(rng, seconds) for _ in range(trials)], 50.0, 0.001)
        assert found is not None
        if q not in found.quantiles or found.quantiles[q].interval is None:
            continue
        interval = found.quantiles[q].interval
        assert interval is not None
        known += 1
        held += interval.low <= at <= interval.high
    assert known > 100, known
    assert held >= 0.88 * known, (held, known, at)


def test_the_p90_is_not_known_from_a_dozen_publishes_that_look_alike() -> None:
    """Of those that did, 23 of 58 intervals held it: there was no long gap among the few."""
    found = visible([markers(np.random.default_rng(1), 120.0)], 50.0, 0.001)
    assert found is not None
    assert found.quantiles["p90"].interval is None
    several = visible([markers(np.random.default_rng(n), 120.0) for n in range(3)], 50.0, 0.001)
    assert several is not None
    assert several.quantiles["p99"].interval is None, "of three dozen neither"


def test_how_long_until_visible_is_not_known_from_one_publish() -> None:
    rng = np.random.default_rng(1)
    took = rng.uniform(0, 10, 40).tolist()
    one = [Seen("m", s, s + ASK_S, 60.0, False, ASK_S, 10**10) for s in took]
    found = visible([one], 50.0, 0.001)
    assert found is not None
    assert found.quantiles["p50"].value == pytest.approx(5, abs=1.5)
    assert found.quantiles["p50"].interval is None


def test_a_marker_that_the_first_good_ask_found_may_have_been_there_at_once() -> None:
    """Asks fail for the first 4 s; markers were acknowledged at 0.5 and 2.5 s."""
    rows = [
        {"sent": int(t * 1e9), "done": int(t * 1e9) + 1_000_000, "total": 2,
         "ids": [] if t < 4 else ["m0", "m1"], "error": "503" if t < 4 else None}
        for t in np.arange(0, 6, ASK_S).tolist()
    ]  # fmt: skip
    record = SimpleNamespace(
        asks=lambda *_: pa.Table.from_pylist(rows, schema=ASKS),
        of_role=lambda *_: pa.table({"sent": [row["sent"] for row in rows]}),
    )
    made = SimpleNamespace(well=np.ones(2, bool), done=np.array([500_000_000, 2_500_000_000]),
                           marker=np.array(["m0", "m1"], object))  # fmt: skip
    trial, watcher = SimpleNamespace(trial="t"), SimpleNamespace(name="w")
    found = seen(*cast("Any", (record, trial, watcher, made)))
    assert [one.earliest_s for one in found] == [0.0, 0.0]
    assert [one.latest_s for one in found] == pytest.approx([3.501, 1.501], abs=0.05)
    assert [one.width_s for one in found] == pytest.approx([3.501, 1.501], abs=0.05)


@pytest.mark.parametrize("asks", ["answered", "without a reply", "with an error"])
def test_markers_that_were_never_found_count_also_where_asks_got_no_good_answer(asks: str) -> None:
    """From 20 s on nothing becomes visible, and what is asked then may not be answered."""
    rng, every = np.random.default_rng(1), []
    for _ in range(3):
        at = np.sort(rng.uniform(0, SECONDS, 60))
        shown = np.where(at < 19.5, at + rng.uniform(0.1, 0.5, 60), np.inf)
        rows, sent = [], np.arange(0, SECONDS, ASK_S)
        for t in sent.tolist():
            if t >= 20 and asks == "without a reply":
                continue
            bad = t >= 20 and asks == "with an error"
            ids = [] if bad else [f"m{k}" for k in np.flatnonzero(shown <= t)]
            rows.append({"sent": int(t * 1e9), "done": int(t * 1e9) + 1_000_000, "total": len(ids),
                         "ids": ids, "error": "1 of 2 shards" if bad else None})  # fmt: skip
        record = SimpleNamespace(
            asks=lambda *_, rows=rows: pa.Table.from_pylist(rows, schema=ASKS),
            of_role=lambda *_, sent=sent: pa.table({"sent": (sent * 1e9).astype(np.int64)}),
        )
        made = SimpleNamespace(
            well=np.ones(60, bool), done=np.rint(at * 1e9).astype(np.int64),
            marker=np.array([f"m{k}" for k in range(60)], object),
        )  # fmt: skip
        trial, watcher = SimpleNamespace(trial="t"), SimpleNamespace(name="w")
        every.append(seen(*cast("Any", (record, trial, watcher, made))))
    found = visible(every, 50.0, 0.001)
    assert found is not None
    assert found.unseen >= 90
    interval = found.quantiles["p50"].interval
    assert interval is not None
    assert interval.high == np.inf
    assert interval.low < 20


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_writes_that_time_out_take_forever_and_are_a_finding(share: float) -> None:
    n = 2000
    at = np.arange(n, dtype=np.int64) * 20_000_000
    bad = np.random.default_rng(1).random(n) < share
    one, nothing = np.ones(n, np.int64), np.full(n, None, object)
    taken, kinds = (~bad).astype(np.int64), np.full(n, "insert", object)
    made = Written(at, at, at, at, np.where(bad, -1, at + 2_000_000), ~bad, bad, bad, one, taken,
                   kinds, nothing, nothing)  # fmt: skip
    run = cast("Any", SimpleNamespace(name="writer", keys={"documents_per_s": 50.0}))
    figures = of_writer(made, (0, int(at[-1])), run)
    assert figures["service_p50"] == figures["response_p50"] == 0.002
    assert figures["service_p99"] == figures["response_p99"] == (np.inf if share else 0.002)
    assert [kind for kind, *_ in _unanswered(run, made)] == ["writes unanswered"] * (share > 0)
    assert not list(_unsent(run, made))


def test_writes_that_were_never_sent_take_forever_and_did_not_time_out() -> None:
    """The last tenth of them was due and not sent when the drive ended."""
    n = 2000
    at = np.arange(n, dtype=np.int64) * 20_000_000
    left = np.arange(n) >= 0.9 * n
    one, nothing = np.ones(n, np.int64), np.full(n, None, object)
    sent, never = np.where(left, -1, at), np.zeros(n, bool)
    done = np.where(left, -1, at + 2_000_000)
    taken, kinds = (~left).astype(np.int64), np.full(n, "insert", object)
    made = Written(at, at, at, sent, done, ~left, never, never, one, taken, kinds, nothing, nothing)
    run = cast("Any", SimpleNamespace(name="writer", keys={"documents_per_s": 50.0}))
    figures = of_writer(made, (0, int(at[-1])), run)
    assert (figures["service_p99"], figures["response_p50"]) == (0.002, 0.002)
    assert figures["response_p99"] == np.inf
    assert not list(_unanswered(run, made))
    assert not list(died(run, made))
    ((kind, _, number, *_),) = _unsent(run, made)
    assert (kind, number) == ("writes never sent", "200 of 2,000 requests of writer (10 %)")
