"""What is over-represented in a band is so by a cause, not by chance nor by a few queries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from searchbench.analysis.logs.judge import judge_log
from searchbench.logs.counts import Options, count
from searchbench.logs.sources import find

pytestmark = pytest.mark.slow
LOGS = 200
CAUSE = "idx3"


def named(path: Path, seed: int, searches: int, *, alike: float = 0.0, slow: float = 0.1) -> str:
    """What is over-represented in the bands of a log: a tenth of the searches take 300 ms, the
    others 10 ms; of index 3 ``slow`` of them.

    ``alike``: the part of the searches that take as long as the query always does. Then each query
    is one of an index, and queries are asked as often as Zipf's law says.
    """
    rng = np.random.default_rng(seed)
    distinct = 50_000
    query = (distinct ** rng.random(searches)).astype(int)
    by_query = rng.integers(0, 20, distinct)[query % distinct]
    index = by_query if alike else rng.integers(0, 20, searches)
    words = rng.choice([1, 2, 3, 4], distinct, p=[0.4, 0.3, 0.2, 0.1])[query % distinct]
    usual, own = rng.random(distinct + 1)[query], rng.random(searches)
    late = np.where(rng.random(searches) < alike, usual, own) < np.where(index == 3, slow, 0.1)
    ms = 10 ** np.where(late, rng.normal(2.5, 0.1, searches), rng.normal(1, 0.15, searches))
    path.write_text("".join(
        f"[Mon Jan  5 09:{i // 1200 % 60:02d}:{i // 20 % 60:02d}.{i % 20 * 50:03d} 2026] "
        f"{m / 1000:.3f} sec [ext2/0/rel 12 (0,20)] [idx{x}] {' '.join([f'w{q}'] * w)}\n"
        for i, (m, x, q, w) in enumerate(
            zip(ms.astype(int).tolist(), index.tolist(), query.tolist(), words.tolist(),
                strict=True))
    ))  # fmt: skip
    found = judge_log(count(find([path]), Options()))
    assert len(found.bands.bands) == 2
    return "; ".join(text for band in found.in_bands for text in band)


def test_chance_names_nothing(tmp_path: Path) -> None:
    """Of 20 indexes some are by chance half as often again in a band of 280 searches."""
    wrong = [s for s in range(LOGS) if named(tmp_path / "a.log", s, 2_800)]
    assert len(wrong) <= 0.02 * LOGS


def test_a_query_that_is_asked_often_names_nothing(tmp_path: Path) -> None:
    """A heavy query that is always slow makes its index slow, and tells nothing of the index."""
    wrong = [s for s in range(LOGS) if named(tmp_path / "a.log", s, 4_000, alike=0.5)]
    assert len(wrong) <= 0.02 * LOGS


def test_a_cause_is_named(tmp_path: Path) -> None:
    """An index of which three times as many searches are slow, in few searches."""
    found = [CAUSE in named(tmp_path / "a.log", s, 4_000, slow=0.3) for s in range(LOGS)]
    assert sum(found) >= 0.98 * LOGS


def test_a_cause_is_named_where_queries_are_asked_often(tmp_path: Path) -> None:
    """An index of which half of the searches are slow."""
    found = [
        CAUSE in named(tmp_path / "a.log", s, 20_000, alike=0.5, slow=0.5) for s in range(LOGS)
    ]
    assert sum(found) >= 0.8 * LOGS
