"""What inserts can do to an answer, by the text of its method; and answers held against it."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from searchbench.analysis.roles.meanwhile import Changed, Held, findings, held
from searchbench.record import Trial
from searchbench.record.roles import FaultDone, RoleRun
from searchbench.workload.operations.growth import Growth, growth

INSERTS = Changed(frozenset({"insert"}), 10, 0)
BOTH = Changed(frozenset({"insert", "delete"}), 10, 10)


def table(text: str, language: str = "sql", **more: Any) -> dict[str, Any]:
    return {"text": text, "language": language, "answer": "set", "rows_at": [], **more}


@pytest.mark.parametrize(
    ("text", "kind", "strict"),
    [
        ("SELECT color, COUNT(*) FROM car WHERE price > 3 GROUP BY color", "counts", True),
        ("SELECT count(*) AS n FROM car", "counts", True),
        ("SELECT color, COUNT(DISTINCT city) FROM car GROUP BY color LIMIT 0, 20", "counts", False),
        ("-- @ignored\nSELECT id FROM car LIMIT 1, 2;\nSELECT COUNT(*) FROM car", "counts", True),
        ("SELECT * FROM car WHERE id IN ([each \",\": {id}])", "rows", True),
        ("SELECT DISTINCT color FROM car WHERE city = 'HAVING LIMIT COUNT(*)'", "rows", True),
        ("CREATE TEMPORARY TABLE w (id INT); INSERT INTO w VALUES [each \",\": ({id})]; "
         "SELECT car.* FROM car JOIN w USING (id); DROP TABLE w", "rows", True),
        ("SELECT id FROM car ORDER BY price LIMIT 10", "number", True),
        ("SELECT color, AVG(price) FROM car GROUP BY color", "number", True),
        ("SELECT COUNT(*), color FROM car GROUP BY color", "number", True),
        ("SELECT COUNT(*) * 2 FROM car", "number", True),
        ("SELECT color, COUNT(*) FROM car GROUP BY color HAVING COUNT(*) < 5", "any", True),
        ("SELECT id FROM car WHERE price > (SELECT AVG(price) FROM car)", "any", True),
        ("SELECT a.id FROM a LEFT JOIN b USING (id) WHERE b.id IS NULL", "any", True),
        ("SELECT id, RANK() OVER (ORDER BY price) FROM car", "any", True),
        ("CREATE TEMPORARY TABLE w AS SELECT id FROM car LIMIT 3; SELECT * FROM w", "any", True),
    ],
)  # fmt: skip
def test_what_a_text_of_sql_says(text: str, kind: str, strict: bool) -> None:
    found = growth(table(text))
    assert found.kind == kind
    assert found.strict is strict or kind in ("number", "any")
    assert bool(found.why) is (kind == "any")


@pytest.mark.parametrize(
    ("rows_at", "kind"),
    [
        (["facets.color: value, count"], "counts"),
        (["aggregations.colors.buckets: key, doc_count"], "counts"),
        (["hits: color, _grouphitscount"], "counts"),
        (["numhits"], "counts"),
        (["hits.total.value"], "counts"),
        (["hits: color, price as number"], "number"),
        (["facets.color: value, count", "hits: color"], "number"),
        ([], "number"),
    ],
)
def test_what_the_names_in_a_reply_say(rows_at: list[str], kind: str) -> None:
    found = growth(table('{"size": 0}', "http", rows_at=rows_at))
    assert found.kind == kind
    assert not (kind == "counts" and found.strict), "a reply may have the first groups alone"


def test_the_study_knows_better_and_rows_that_are_only_counted_have_a_number() -> None:
    counted = "SELECT color, COUNT(*) FROM car GROUP BY color"
    assert growth(table(counted, while_inserting="any")).kind == "any"
    assert growth(table("SELECT n FROM sums", while_inserting="counts")) == Growth("counts")
    assert growth(table(counted, answer="count")).kind == "number"


def replies(
    before: Sequence[str], after: Sequence[str], *between: Sequence[str]
) -> list[dict[str, Any]]:
    """Answers alone and, a millisecond after one another, in between."""
    rows = [("captured", before), ("after", after), *(("while_written", b) for b in between)]
    return [
        {
            "query": 0, "phase": phase, "total": len(lines), "total_exact": True,
            "ids": list(lines), "error": None, "asked": n * 10**6, "answered": n * 10**6 + 10**5,
        }
        for n, (phase, lines) in enumerate(rows)
    ]  # fmt: skip


def seen(found: Held) -> tuple[int, int, int]:
    return found.sampled, found.outside, found.back


COUNTS, CUT, ROWS = Growth("counts"), Growth("counts", strict=False), Growth("rows")


@pytest.mark.parametrize(
    ("rule", "rows", "wanted"),
    [
        (COUNTS, replies(["a\t1"], ["a\t3", "b\t1"], ["a\t2"], ["a\t2", "b\t1"]), (2, 0, 0)),
        (COUNTS, replies(["a\t1"], ["a\t3"], ["a\t2"], ["a\t4"], ["a\t3"]), (3, 1, 1)),
        (COUNTS, replies(["a\t1"], ["a\t3"], ["a\t3"], ["a\t2"]), (2, 0, 1)),
        (COUNTS, replies(["a\t1"], ["a\t3"], []), (1, 1, 0)),
        (COUNTS, replies(["a\t1"], ["a\t3"], ["a\t2", "x\t1"]), (1, 1, 0)),
        (COUNTS, replies(["7"], ["9"], ["8"], ["10"]), (2, 1, 0)),
        (CUT, replies(["a\t1"], ["b\t3"], ["c\t2"], ["a\t1", "b\t2"]), (2, 0, 0)),
        (CUT, replies(["a\t1"], ["b\t3"], ["b\t4"]), (1, 1, 0)),
        (CUT, replies(["a\t5"], ["b\t9"], ["a\t4"]), (1, 1, 0)),
        (ROWS, replies(["x", "y"], ["x", "y", "z"], ["y", "x"], ["z", "x", "y"]), (2, 0, 0)),
        (ROWS, replies(["x", "y"], ["x", "y", "z"], ["x", "z"]), (1, 1, 0)),
        (ROWS, replies(["x"], ["x", "x"], ["x"], ["x", "x"], ["x"]), (3, 0, 1)),
        (Growth("number"), replies(["x"], ["y", "z"], ["q"], ["r", "s", "t"]), (2, 1, 0)),
        (Growth("any"), replies(["x"], ["y"], []), (0, 0, 0)),
    ],
)
def test_answers_while_documents_are_inserted_lie_between_and_never_fall(
    rule: Growth, rows: list[dict[str, Any]], wanted: tuple[int, int, int]
) -> None:
    found = held(rows, rule, INSERTS)
    assert seen(found) == wanted
    assert bool(found.first) is bool(wanted[1] or wanted[2])


def test_with_deletes_an_answer_may_leave_both_ends_by_as_many_as_were_changed() -> None:
    rows = replies(["a\t20"], ["a\t20"], ["a\t29"], ["a\t12"], ["a\t31"])
    assert seen(held(rows, COUNTS, BOTH)) == (3, 1, 0)
    assert "a: 31, not 10 to 30" in held(rows, COUNTS, BOTH).first
    strange = replies(["a"], ["a"], ["a", "b"])
    assert seen(held(strange, ROWS, BOTH)) == (1, 1, 0)


def test_an_answer_that_cannot_be_read_as_counts_is_judged_by_its_number_of_rows() -> None:
    rows = replies(["a\t1.5"], ["a\t2.5"], ["a\t9.0"], [])
    assert seen(held(rows, COUNTS, INSERTS)) == (2, 1, 1)
    read = replies(["a\t1"], ["a\t2"], ["a\tnone"])
    assert "cannot be read" in held(read, COUNTS, INSERTS).first


@pytest.mark.parametrize("fault", [False, True])
def test_what_a_fault_took_after_it_was_seen_is_not_said_to_be_seen_in_part(fault: bool) -> None:
    """Readers saw 118 documents; a kill took eight of them, and 113 are there in the end."""
    totals = [("captured", 100, 0), *(("while_written", 100 + 2 * i, 10 * i) for i in range(10)),
              ("while_written", 112, 200), ("after", 113, 300)]  # fmt: skip
    replies: list[dict[str, Any]] = [
        {"query": 0, "phase": phase, "total": total, "total_exact": True, "ids": [], "error": None,
         "outcome": 0, "asked": at, "answered": at + 1}
        for phase, total, at in totals
    ]  # fmt: skip
    record: Any = SimpleNamespace(
        replies=lambda _: pa.Table.from_pylist(replies), plan=SimpleNamespace(treatments=[])
    )
    kind = np.full(50, "insert", object)
    made: Any = SimpleNamespace(kind=kind, sent=np.arange(50), documents=np.ones(50, np.int64))
    done = RoleRun(name="x", number=1, does="fault", fault=FaultDone(fault="kill", of="server",
                                                                     begun=150))  # fmt: skip
    trial = Trial(trial="t", treatment="t", beside=[done] if fault else [])
    (row,) = findings(record, trial, made)
    assert row[0] == "answers of no time"
    assert ("what the fault took of writes was seen before it" in row[3]) is fault
