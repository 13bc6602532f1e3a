"""Markers are due at random instants, so no clock that publishes is known by one phase alone."""

from __future__ import annotations

import numpy as np
import pytest

from searchbench.analysis.roles.visible import Seen, visible
from searchbench.lab.drive.changes import _marked
from searchbench.workload.changes import due_ns

SECONDS = 40
ASK_S = 0.005


def marked(marker_every_s: float, seed: int, **clock: float) -> tuple[np.ndarray, np.ndarray]:
    """The due times in seconds of a writer's markers, and of all of its requests."""
    table = {"marker_every_s": marker_every_s, "batch": 1, **clock}
    due = due_ns(table, 10**9, SECONDS * 10**9)
    assert due is not None
    found, moved = _marked(table, ["insert"] * len(due), due, "text", seed)
    assert moved is not None
    return moved[sorted(found)] / 1e9, moved / 1e9


def median(at: np.ndarray, publish_every_s: float) -> tuple[float, float, float]:
    """Commit to visible where all is published at every multiple of a time, and nothing else."""
    took = (np.floor(at / publish_every_s) + 1) * publish_every_s - at
    seen = [
        Seen(str(i), t - ASK_S, t, SECONDS - a, False, ASK_S, round(1e3 * (a + t)))
        for i, (a, t) in enumerate(zip(at, took, strict=True))
    ]
    found = visible([seen], 200.0, 0.001)
    assert found is not None
    half = found.quantiles["p50"]
    assert half.interval is not None
    return half.interval.low, half.value, half.interval.high


@pytest.mark.parametrize(
    ("marker_every_s", "publish_every_s", "documents_per_s"),
    [(1.0, 1.0, 20.0), (1.0, 0.5, 20.0), (1.0, 2.0, 20.0), (0.05, 1.0, 20.0), (1.0, 1.0, 1.0)],
)
def test_the_median_is_right_whatever_the_period_of_the_publisher(
    marker_every_s: float, publish_every_s: float, documents_per_s: float
) -> None:
    """True: uniform over the period. Of 20 drives at most 4 intervals miss its middle."""
    true, misses, middles = publish_every_s / 2, 0, []
    for seed in range(20):
        at, _ = marked(marker_every_s, seed, documents_per_s=documents_per_s)
        low, middle, high = median(at, publish_every_s)
        misses += not low <= true <= high
        middles.append(middle)
    assert misses <= 4
    assert np.mean(middles) == pytest.approx(true, rel=0.1)


def test_a_publisher_that_is_slower_is_seen_to_be_slower() -> None:
    at, _ = marked(1.0, 1, documents_per_s=20.0)
    assert median(at, 1.0)[2] < 2 * median(at, 4.0)[0]


def test_requests_stay_in_order_and_are_as_many_and_markers_are_spread() -> None:
    at, every = marked(1.0, 7, documents_per_s=20.0)
    assert len(every) == 20 * SECONDS
    assert np.all(np.diff(every) > 0)
    assert np.max(np.abs(every - (np.arange(len(every)) + 0.5) / 20)) < 1 / 20
    assert len(at) == pytest.approx(SECONDS, abs=1)
    assert np.max(np.diff(at)) < 2.1
    assert np.array_equal(at, marked(1.0, 7, documents_per_s=20.0)[0])
    assert not np.array_equal(at, marked(1.0, 8, documents_per_s=20.0)[0])


def test_a_writer_with_a_clock_of_its_own_keeps_it() -> None:
    at, every = marked(1.0, 3, every_s=0.25)
    assert np.allclose(np.diff(every), 0.25)
    assert set(at) <= set(every)
    assert len(np.unique(np.round(at % 1.0, 6))) > 2


def published(rng: np.random.Generator, every_s: float, slow: float) -> list[Seen]:
    """The markers of a drive; a share ``slow`` of the publishes takes 20 s longer."""
    shown, at = [], rng.random() * every_s
    while at < 3 * SECONDS:
        shown.append((at, at + (20.0 if rng.random() < slow else 0.0)))
        at = max(at + every_s, shown[-1][1])
    found = []
    for begun in np.sort(rng.random(SECONDS) * SECONDS):
        seen_s = next(end for start, end in shown if start >= begun)
        took = seen_s - begun if seen_s < SECONDS else np.inf
        left = SECONDS - begun
        first = min(took, left)
        shown_ns = round(1e9 * seen_s) if seen_s < SECONDS else -1
        found.append(Seen("m", first - ASK_S, took, left, False, ASK_S, shown_ns))
    return found


def test_many_markers_of_few_publishes_are_no_evidence_of_a_high_quantile() -> None:
    """Four a trial: of five trials no p90, whose truth lies with the slow ones; the median has one
    where publishes are enough.
    """
    rng = np.random.default_rng(5)
    few = visible([published(rng, 10.0, 0.08) for _ in range(5)], 200.0, 0.001)
    assert few is not None
    assert few.quantiles["p90"].interval is None
    many = visible([published(rng, 1.0, 0.0) for _ in range(5)], 200.0, 0.001)
    assert many is not None
    span = many.quantiles["p90"].interval
    assert span is not None
    assert span.low <= 0.9 <= span.high
    assert "publishes as clusters" in span.method
