"""Kendall's tau-b: a worked example, scipy's own, and what has no order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from searchbench.analysis.agreement.ranking import tau_b

RANKS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=14)


def taus(rows: list[list[tuple[int, int]]]) -> list[float]:
    row = np.array([r for r, items in enumerate(rows) for _ in items], dtype=np.int64)
    x = np.array([a for items in rows for a, _ in items], dtype=np.int64)
    y = np.array([b for items in rows for _, b in items], dtype=np.int64)
    return tau_b(row, x, y, len(rows)).tolist()


def test_one_swap_among_four_leaves_five_pairs_against_one() -> None:
    assert taus([[(0, 0), (1, 2), (2, 1), (3, 3)]]) == pytest.approx([(5 - 1) / 6])


def test_a_tie_on_one_side_costs_only_its_own_pair() -> None:
    # Pairs 3; x ties one of them, y none; the two others agree: 2 / sqrt(2 * 3).
    assert taus([[(0, 0), (0, 1), (1, 2)]]) == pytest.approx([2 / np.sqrt(6)])


def test_reversed_is_minus_one_and_the_same_is_one_however_long() -> None:
    long = list(range(3000))
    same, other = list(zip(long, long, strict=True)), list(zip(long, long[::-1], strict=True))
    assert taus([same, other, same]) == [1.0, -1.0, 1.0]


def test_where_nothing_is_ordered_there_is_no_tau() -> None:
    assert np.isnan(taus([[], [(0, 0)], [(0, 0), (0, 1)], [(1, 1), (0, 1)]])).all()
    assert taus([]) == []


@settings(max_examples=200, deadline=None)
@given(st.lists(RANKS, max_size=6))
def test_tau_is_that_of_scipy(rows: list[list[tuple[int, int]]]) -> None:
    for items, found in zip(rows, taus(rows), strict=True):
        x, y = [a for a, _ in items], [b for _, b in items]
        if len(set(x)) < 2 or len(set(y)) < 2:
            assert np.isnan(found)
        else:
            assert found == pytest.approx(float(kendalltau(x, y).statistic), abs=1e-12)


def test_tau_is_that_of_scipy_for_a_thousand_long_lists() -> None:
    rng = np.random.default_rng(4)
    rows = [
        list(zip(rng.integers(0, 40, 100).tolist(), rng.permutation(100).tolist(), strict=True))
        for _ in range(1000)
    ]
    expected = [float(kendalltau(*zip(*items, strict=True)).statistic) for items in rows]
    assert taus(rows) == pytest.approx(expected, abs=1e-12)
