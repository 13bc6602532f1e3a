"""Operations as sheets and in the answer on a terminal: points, crossings, slopes, failures."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from report_examples import estimate, judgement
from searchbench.analysis.judgement import Interval, Judgement
from searchbench.analysis.operations.model import (
    Crossover,
    MethodCurve,
    OperationResult,
    Point,
    Slope,
)
from searchbench.report.sheets import write_sheets
from searchbench.terminal.answer import show
from searchbench.terminal.operations import said

SLOPE = Slope(1e-3, replace(estimate(2e-6), unit="s"), 0.1, estimate(0.98, ""), (100, 1000))
BENT = Slope(0.0, estimate(3e-6), 0.6, None, (100, 1000))


def point(rows: int, seconds: float | None, failed: str = "") -> Point:
    known = None if seconds is None else estimate(seconds)
    cpu = None if seconds is None else estimate(seconds / 2)
    return Point(f"t{rows}", rows, known, {}, cpu, 10.0 * rows, 3 * rows, 2, 1, failed)


def judged() -> Judgement:
    temporary = MethodCurve("temporary", "mariadb", (point(1, 0.001), point(100, 0.0012)), SLOPE,
                            "mariadb")  # fmt: skip
    union = MethodCurve("union", "mariadb", (point(1, 0.0001), point(100, None, "=no stack")), BENT,
                        "mariadb")  # fmt: skip
    sure = Crossover("union", "temporary", "mariadb", 42.0, Interval(10, 100, 0.95, "levels"),
                     until=100, but="; at 1 row union fails")  # fmt: skip
    unsure = Crossover("union", "or", "mariadb", 7.0, None, "it is within the noise")
    fetch = OperationResult("fetch", "set", (temporary, union), (sure, unsure))
    once = OperationResult("count", "set", (MethodCurve("sql", "", (point(1, 0.5),)),),
                           by_rows=False)  # fmt: skip
    return replace(judgement(), operations=(fetch, once))


def sheet(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_sheet_has_each_method_at_each_number_of_rows(tmp_path: Path) -> None:
    paths = {p.name: p for p in write_sheets(judged(), tmp_path)}
    rows = sheet(paths["operations.csv"])
    assert [(r["operation"], r["method_asked"], r["rows"]) for r in rows] == [
        ("fetch", "temporary", "1"), ("fetch", "temporary", "100"),
        ("fetch", "union", "1"), ("fetch", "union", "100"), ("count", "sql", ""),
    ]  # fmt: skip
    first, broken = rows[0], rows[3]
    assert (first["system"], first["at"], first["treatment"]) == ("mariadb", "", "t1")
    assert float(first["seconds_low"]) < float(first["seconds"]) == 0.001
    assert (first["seconds_n"], float(first["cpu_s"])) == ("5", 0.0005)
    assert (first["sent_bytes"], first["statements"], first["exchanges"]) == ("3", "2", "1")
    assert (float(first["fixed_s"]), float(first["per_row_s"]), first["linear"]) == (
        1e-3, 2e-6, "True",
    )  # fmt: skip
    assert (first["exponent_from_rows"], first["exponent_to_rows"]) == ("100", "1000")
    # The server's words are no formula of a spreadsheet.
    assert (broken["failed"], broken["seconds"], broken["cpu_s_n"]) == ("'=no stack", "", "")
    assert (broken["linear"], broken["exponent"]) == ("False", "")
    assert rows[4]["per_row_s"] == ""


def test_a_sheet_has_each_crossing_with_its_interval_or_why_there_is_none(tmp_path: Path) -> None:
    paths = {p.name: p for p in write_sheets(judged(), tmp_path)}
    sure, unsure = sheet(paths["crossings.csv"])
    assert (sure["below"], sure["above"], float(sure["rows"])) == ("union", "temporary", 42.0)
    assert (sure["low"], sure["high"], sure["unresolved"]) == ("10", "100", "")
    assert (unsure["low"], unsure["unresolved"]) == ("", "it is within the noise")
    names = {p.name for p in write_sheets(judgement(), tmp_path)}
    assert not names & {"operations.csv", "crossings.csv"}


def test_the_answer_has_the_crossings_and_what_a_row_costs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    crossing, unsure, costs, no_line, fails = said(judged())
    assert crossing == (
        "fetch: mariadb: temporary is faster than union (median time) from about 42 rows on "
        "(between 10 and 100), up to 100 rows; at 1 row union fails."
    )
    assert unsure == "1 further crossing of curves is not resolved."
    assert costs.startswith("fetch: temporary, mariadb: 2 µs (95 % interval 1.9")
    assert "for each further row; exponent 0.98 (95 % interval " in costs
    assert costs.endswith("from 100 to 1,000 rows.")
    # No line is told where none describes the times.
    assert no_line == "fetch: union, mariadb: no line describes its times."
    assert fails == "fetch: union, mariadb fails at 100 rows: =no stack"
    show(judged())
    assert "By the number of rows:" in capsys.readouterr().out
    show(judgement())
    assert "By the number of rows:" not in capsys.readouterr().out
