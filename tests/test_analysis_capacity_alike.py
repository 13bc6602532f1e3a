"""Searches of subjects whose answers differ: no limit is called greater that is of other work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import searches
from queues import fixed
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Judgement
from searchbench.record import REPLIES
from searches import Lab

PROMISE = "p99 < 10ms"
Row = dict[str, Any]
EMPTY = {"total": 0, "ids": [], "scores": []}


def searched(
    path: Path, monkeypatch: pytest.MonkeyPatch, of: Callable[[bool, Row], Row], more: int = 0
) -> Judgement:
    """A search of a, and of b, which is a third faster; ``of``: a reply of b (True) or a.

    ``more``: so many subjects that are as fast and answer as a does.
    """
    plain = searches._replies

    def replies(other: int, changed: int | None = None) -> pa.Table:
        rows = [of(bool(other), row) for row in plain(0, changed).to_pylist()]
        return pa.Table.from_pylist(rows, schema=REPLIES)

    monkeypatch.setattr(searches, "_replies", replies)
    servers = {"a": fixed(4, 0.002), "b": fixed(4, 0.0015)}
    servers |= {f"a{i}": fixed(4, 0.002) for i in range(more)}
    return judge(Lab(path, servers, (PROMISE,), other=("b",), look_per_s=1500, effort=0.5).run())


def other_hits(of_b: bool, row: Row) -> Row:
    return row | {"ids": [f"other {i}" for i in row["ids"]]} if of_b else row


def nothing_on_nine(of_b: bool, row: Row) -> Row:
    return row | EMPTY if of_b and row["query"] else row


def empty_where_they_agree(of_b: bool, row: Row) -> Row:
    return row | EMPTY if of_b or not row["query"] else row


def one_total_differs(of_b: bool, row: Row) -> Row:
    return row | {"total": row["total"] + 1} if of_b and not row["query"] else row


def one_finds_nothing(of_b: bool, row: Row) -> Row:
    return row | EMPTY if not row["query"] else row


@pytest.mark.parametrize(
    ("of", "why", "doubt"),
    [
        (
            other_hits,
            "they were never seen to return the same first hits",
            "On none of the 10 requests that both answer with the same totals and that find "
            "something were a and b seen to return the same first hits, so whether they did the "
            "same work is unknown: look at what each returns.",
        ),
        (
            nothing_on_nine,
            "they answer only 1 of 10 requests alike",
            "a and b return different totals on 9 of 10 requests.",
        ),
    ],
)
def test_who_answers_otherwise_only_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: Any, why: str, doubt: str
) -> None:
    found = searched(tmp_path / "r", monkeypatch, of).verdict
    assert (found.best, found.resolved) == (None, False)
    assert f"With {PROMISE}, b leads a (" in found.decision
    assert f"), which is not resolved: {why}." in found.decision
    assert doubt in found.decision
    assert doubt in found.points
    assert "sustains more" not in found.decision


def test_of_many_subjects_whoever_answers_otherwise_only_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = searched(tmp_path / "r", monkeypatch, other_hits, more=2).verdict
    assert found.best is None
    said = f"With {PROMISE}, b leads a, a0 and a1, which is not resolved: they were never seen"
    assert said in found.decision


def test_two_that_agree_only_in_finding_nothing_are_not_comparable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = searched(tmp_path / "r", monkeypatch, empty_where_they_agree).verdict
    assert (found.best, found.resolved) == (None, False)
    assert (
        "a and b are not comparable: both find nothing on the one query on which they agree."
        in found.decision
    )
    assert f"With {PROMISE}, " not in found.decision


@pytest.mark.parametrize("of", [one_total_differs, one_finds_nothing])
def test_who_answers_nearly_all_alike_sustains_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: Any
) -> None:
    found = searched(tmp_path / "r", monkeypatch, of).verdict
    assert (found.best, found.resolved) == ("b", True)
    assert f"With {PROMISE}, b sustains more than a (" in found.decision
