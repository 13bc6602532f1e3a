"""Sweeps and searches pass the gate by the rules of studies: all runs of a side count, in any
order, and what cannot be told is no pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from queues import Serve, fixed
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judgement import RecordComparison
from searchbench.cli.compare import compare
from searchbench.record import Record
from searches import Lab


def gate(first: Sequence[Record], later: Sequence[Record]) -> tuple[int, RecordComparison]:
    """Exit status and comparison of runs with runs."""
    a, b = ([record.path for record in side] for side in (first, later))
    status = compare(a[0], b[0], same=tuple(a[1:]), same_b=tuple(b[1:]), as_json=True)
    return status, compare_records(first[0], later[0], 0.05, first[1:], later[1:])


def search(path: Path, serve: Serve, seed: int, effort: float = 1.0, **how: Any) -> Record:
    return Lab(
        path, {"s": serve}, ("p99 < 10ms",), seed=seed, effort=effort, look_per_s=1500.0, **how
    ).run()


# Searches


@pytest.mark.parametrize(
    ("other", "verdict"), [(("s",), "not resolved"), ((), "faster")], ids=["other", "same"]
)
def test_a_greater_limit_over_several_runs_by_other_answers_is_not_faster(
    tmp_path: Path, other: tuple[str, ...], verdict: str
) -> None:
    first = [search(tmp_path / f"a{i}", fixed(4, 0.002), i) for i in (2, 4)]
    later = [search(tmp_path / f"b{i}", fixed(4, 0.0012), 10 + i, other=other) for i in (2, 4)]
    _, found = gate(first, later)
    (line,) = found.comparisons
    assert (line.verdict, line.runs) == (verdict, (2, 2))
    assert line.reason.count("they answer only 0 of 10 requests alike") == len(other)
    assert not found.beyond_threshold
    slower, found = gate(later, first)
    assert (slower, found.comparisons[0].verdict) == (1, "slower")
