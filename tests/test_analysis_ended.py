"""Methods that end their server, judged: no figure, no ratio, no verdict by what they answered.

The truth is known: each method answers well for a while. Where its server then ends with a
statement under way, that is all that is said of it, in whatever form it is asked for.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace as replaced
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from msgspec.structs import replace

from records import Study, Treatment, lognormal
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import judge, to_json
from searchbench.analysis.judgement import Judgement
from searchbench.record import Record, open_record
from searchbench.report import write_report
from searchbench.report.sheets import write_sheets
from searchbench.study import plan as plans
from searchbench.terminal.answer import exit_code, show

LOG = "Attempting backtrace"
WORDS = "the server ended (signal 11, SIGSEGV) after "
ROWS = (10, 100, 1000)
FACTOR = "operations.fetch.rows"


def end(**more: Any) -> dict[str, Any]:
    """What a trial keeps of a server that ended while a statement was under way."""
    found = {"code": -11, "under_way": 1, "phase": "drive", "log": LOG, **more}
    note = {"kind": "server ended", "number": f"its log: {LOG}", "meaning": "it ended"}
    return {"server_ends": [found], "notes": [note]}


class Dies(Study):
    """In these blocks the server of method union ends at 1,000 rows, after many good answers."""

    of: tuple[int, ...] = ()
    how: Mapping[str, Any] = MappingProxyType({})

    def plan(self, trials: Sequence[plans.Trial]) -> plans.Plan:
        made = super().plan(trials)
        asked = [
            replace(
                t,
                settings={**t.settings, "operation": {**_about(t.levels), "key": "id"}},
            )
            for t in made.treatments
        ]
        return replace(made, treatments=tuple(asked))

    def _write_trial(
        self, writer: Any, planned: Any, position: int, t: Treatment, *rest: Any
    ) -> None:
        if t.id == "union1000" and planned.block in self.of:
            t = replaced(t, dies_at_s=3.0, extra={**t.extra, **self.how})
        super()._write_trial(writer, planned, position, t, *rest)


def _about(levels: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": "fetch", "method": levels["method"], "rows": levels[FACTOR]}


def made(
    folder: Path, of: tuple[int, ...], *, rows: tuple[int, ...] = ROWS, blocks: int = 3,
    how: Mapping[str, Any] | None = None,
) -> Record:  # fmt: skip
    """Union costs 20 us a row and IN 5 ms: union is the slower one from 250 rows on."""
    study = Dies(blocks=blocks, control=None, judging={"metric": "service_p50"},
                 trial_noise=0.002, block_noise=0.0)  # fmt: skip
    study.of, study.how = of, how or end()
    for n in rows:
        for method, seconds in (("in", 5e-3), ("union", 2e-5 * n)):
            levels = {"method": method, FACTOR: n}
            study.add(
                f"{method}{n}", system="mariadb", server=lognormal(seconds, 0.02), seconds=4,
                clients=1, levels=levels, extra={"operation": _about(levels)},
            )  # fmt: skip
    return open_record(study.write(folder))


def sheet(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def at(judged: Judgement, treatment: str) -> Any:
    return next(t for t in judged.treatments if t.treatment == treatment)


def test_good_answers_before_the_server_ends_make_no_ratio_and_no_time(tmp_path: Path) -> None:
    judged = judge(made(tmp_path / "r", (0, 1, 2)))
    died = at(judged, "union1000")
    assert [(t.status, dict(t.figures)) for t in died.trials] == [("valid", {})] * 3
    assert all(t.outcomes["ok"] > 50 for t in died.trials)
    assert (dict(died.figures), died.service.x, died.response.x) == ({}, (), ())
    assert died.failed.startswith(WORDS)
    assert died.failed.endswith(" good answers, in each of 3 trials")
    own = [c for c in judged.comparisons if "union1000" in (c.a, c.b)]
    assert own
    for c in own:
        assert (c.verdict, c.ratio, c.p_value) == ("not comparable", None, None)
        assert WORDS in c.reason
    # The others are compared as ever.
    (whole,) = [c for c in judged.comparisons
                if {c.a, c.b} == {"in10", "union10"} and c.metric == "service_p50"]  # fmt: skip
    assert whole.verdict in ("faster", "slower")


def test_it_has_no_slope_no_crossing_and_a_point_that_fails(tmp_path: Path) -> None:
    judged = judge(made(tmp_path / "r", (0, 1, 2)))
    (operation,) = judged.operations
    methods = {m.method: m for m in operation.methods}
    *before, last = methods["union"].points
    assert [p.failed for p in before] == ["", ""]
    assert (last.seconds, last.by_block, last.cpu_s) == (None, {}, None)
    assert last.failed.endswith(f"in each of 3 trials; its log: {LOG}")
    assert methods["union"].slope is None
    assert methods["in"].slope is not None
    # Union is the slower one only where it ends its server.
    assert operation.crossovers == ()
    (whole,) = judge(made(tmp_path / "well", ())).operations
    assert [(c.below, c.above) for c in whole.crossovers if c.interval] == [("union", "in")]


def test_a_server_that_ended_in_one_of_three_trials_takes_the_other_two_with_it(
    tmp_path: Path,
) -> None:
    judged = judge(made(tmp_path / "r", (1,)))
    died = at(judged, "union1000")
    assert died.failed.endswith(" good answers, in 1 of 3 trials")
    assert [dict(t.figures) for t in died.trials] == [{}] * 3
    assert [bool(t.failed) for t in died.trials] == [False, True, False]
    aside = next(f for f in died.trials[0].findings if f.kind == "operation failed")
    assert aside.number == f"in {died.trials[1].trial}"
    assert not [c for c in judged.comparisons if "union1000" in (c.a, c.b) and c.ratio]
    point = judged.operations[0].methods[1].points[-1]
    assert (point.seconds, "in 1 of 3 trials; its log:" in point.failed) == (None, True)


@pytest.mark.parametrize("how", [end(under_way=0)], ids=["nothing was under way"])
def test_a_server_that_ended_while_nothing_was_asked_makes_its_trial_invalid(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    judged = judge(made(tmp_path / "r", (1,), how=how))
    died = at(judged, "union1000")
    assert [t.status for t in died.trials] == ["valid", "invalid", "valid"]
    assert died.failed == ""
    assert died.figures
    assert judged.operations[0].methods[1].points[-1].failed == ""


def test_no_form_of_the_answer_has_a_time_or_a_ratio_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = made(tmp_path / "r", (0, 1, 2))
    judged = judge(record)
    assert "fails: the server ended (signal 11, SIGSEGV)" in judged.verdict.decision
    (line,) = [row for row in judged.verdict.lines if "union 1000" in row[0]]
    assert set(line[1:-1]) == {"-"}
    assert line[-1] == "fails"
    show(judged)
    shown = " ".join(capsys.readouterr().out.split())
    assert f"union fails at 1,000 rows: {WORDS}" in shown
    assert f"its log: {LOG}" in shown
    assert exit_code(record, judged) == 1

    plain = json.loads(json.dumps(to_json(judged)))
    (treatment,) = [t for t in plain["treatments"] if t["treatment"] == "union1000"]
    assert (treatment["figures"], treatment["service"]["y"]) == ({}, [])
    assert treatment["failed"].startswith(WORDS)

    sheets = {p.name: p for p in write_sheets(judged, tmp_path)}
    read = {name: sheet(path) for name, path in sheets.items()}
    (row,) = [r for r in read["operations.csv"] if r["treatment"] == "union1000"]
    assert (row["seconds"], row["failed"][: len(WORDS)]) == ("", WORDS)
    of = [r for r in read["comparisons.csv"] if "union1000" in (r["a"], r["b"])]
    assert {(r["verdict"], r["ratio"]) for r in of} == {("not comparable", "")}
    assert not [r for r in read["treatments.csv"] if r["treatment"] == "union1000" and r["value"]]
    assert not [r for r in read["quantiles.csv"] if r["treatment"] == "union1000"]

    page = write_report(record, judged, tmp_path / "report").html.read_text(encoding="utf-8")
    assert WORDS in page
    assert LOG in page


def test_where_every_method_ends_its_server_there_is_no_verdict_and_it_says_why(
    tmp_path: Path,
) -> None:
    record = made(tmp_path / "r", (0, 1, 2), rows=(1000,))
    judged = judge(record)
    assert judged.verdict.headline.startswith("union 1000 fails: the server ended")
    assert "nothing to compare in 1000 with" in judged.verdict.headline
    assert "not resolved" not in judged.verdict.decision.lower()
    assert judged.verdict.best is None


def test_a_method_that_ends_its_server_in_the_second_record_alone_is_no_ratio_there(
    tmp_path: Path,
) -> None:
    well = made(tmp_path / "a", (), blocks=5)
    dies = made(tmp_path / "b", (0, 1, 2, 3, 4), blocks=5)
    found = compare_records(well, dies)
    lines = [line for line in found.comparisons if line.label == "union 1000"]
    assert lines
    assert {(line.verdict, line.ratio) for line in lines} == {("not comparable", None)}
    assert all("it fails in the second record: the server ended" in line.reason for line in lines)
    assert "union 1000" in found.lost
    again = made(tmp_path / "c", (0, 1, 2, 3, 4), blocks=5)
    assert "union 1000" not in compare_records(dies, again).lost
