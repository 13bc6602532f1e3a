"""Commit to visible of simulated publishers whose truth is known: no server is needed."""

from __future__ import annotations

import numpy as np

from searchbench.analysis.roles.visible import Seen, visible

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
