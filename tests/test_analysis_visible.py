"""Commit to visible of simulated publishers whose truth is known: no server is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from searchbench.analysis.roles.accepted import Written, of_writer
from searchbench.analysis.roles.truth import _unanswered
from searchbench.analysis.roles.visible import Seen, seen, visible
from searchbench.record.roles import ASKS

ASK_S, SECONDS = 0.02, 60.0


def markers(rng: np.random.Generator) -> list[Seen]:
    """One a second at random instants, published about every 10 s (log-normal, sigma 0.5)."""
    gaps = 10 * np.exp(0.5 * rng.standard_normal(100))
    published = np.cumsum(gaps) - rng.uniform(0, 1000)
    published = published[(published > 0) & (published < SECONDS)]
    found = []
    for written in np.sort(rng.uniform(0, SECONDS, int(SECONDS))).tolist():
        at, looked_s = int(np.searchsorted(published, written)), SECONDS - written
        if at == published.size:
            found.append(Seen("m", looked_s, np.inf, looked_s))
            continue
        took = float(published[at]) - written
        earliest = max(0.0, took - ASK_S * rng.random())
        found.append(Seen("m", earliest, earliest + ASK_S, looked_s, width_s=ASK_S))
    return found


def test_markers_that_one_publish_shows_are_no_more_than_one_that_is_known() -> None:
    """The median of a length-biased half gap; by the markers alone three of four held it."""
    rng = np.random.default_rng(1)
    gaps = 10 * np.exp(0.5 * rng.standard_normal(200_000))
    gaps = rng.choice(gaps, gaps.size, p=gaps / gaps.sum())
    truth = float(np.median(gaps * rng.random(gaps.size)))
    held = known = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        found = visible([markers(rng) for _ in range(3)], 50.0, 0.001)
        if found is None or "p50" not in found.quantiles:
            continue
        interval = found.quantiles["p50"].interval
        assert interval is not None
        known += 1
        held += interval.low <= truth <= interval.high
    assert known > 150
    assert held >= 0.88 * known, (held, known, truth)


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
