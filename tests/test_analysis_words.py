"""Ratios in sentences and tables: an interval that knows no limit is said to know none."""

from __future__ import annotations

import math

import pytest

from searchbench.analysis.compare.state import State, floor
from searchbench.analysis.judgement import Estimate, Interval
from searchbench.analysis.words import times
from searchbench.report.tables import numbers


@pytest.mark.parametrize(
    ("low", "high", "said", "shown"),
    [
        (1.1, 1.4, "1.1–1.4", "1.10–1.40×"),
        (1.1, 16e9, "from 1.1 on: no upper limit is known", "1.10× and more"),
        (1e-8, 1.4, "up to 1.4: no lower limit is known", "up to 1.40×"),
        (1e-8, 16e9, "not known", "not known"),
        (2000, 2500, "2,000–2,500", "2,000–2,500×"),
        (1 / 125, 1 / 100, "0.008–0.01", "0.00800–0.0100×"),
    ],
)
def test_an_end_of_a_ratio_that_says_nothing_is_said_to_be_unknown(
    low: float, high: float, said: str, shown: str
) -> None:
    span = Interval(low, high, 0.95, "")
    assert times(Estimate(1.2, "ratio", 2, span)) == f"1.2 times (95 % interval {said})"
    assert numbers.between(span, "ratio", 1.2) == shown


@pytest.mark.parametrize(
    ("rises", "said"),
    [
        (0.1, "a change of up to 11 % is not excluded"),
        (2.0, "a change of up to 7.4 times is not excluded"),
        (23.5, "no upper limit is known for how far it may still change"),
        (math.inf, "no upper limit is known for how far it may still change"),
    ],
)
def test_a_change_without_a_limit_is_said_in_words(rises: float, said: str) -> None:
    cold = State("unknown", 0, 1, 0.0, rises, math.inf, None)
    warm = State("steady", 0, 1, 0.0, 0.0, 1.0, None)
    assert floor(("a", warm), ("b", cold), 0.3).said.endswith(said)
