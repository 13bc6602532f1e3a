"""The page of a sweep: the load it sustains, what is void or not kept up, what it may not know."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from records import Study, lognormal, single_queue
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Judgement
from searchbench.record import Record, open_record
from searchbench.report import write_report
from searchbench.report.document import assemble
from searchbench.report.document.blocks import Details, Document, Figure, Notice, Table
from searchbench.report.page import page
from searchbench.terminal.answer import show
from test_analysis_steps import by_clients, cold_pair, load_run


def opened(run: Study, path: Path) -> tuple[Record, Judgement]:
    record = open_record(run.write(path))
    return record, judge(record)


def document(run: Study, path: Path) -> Document:
    return assemble.document(*opened(run, path))


def ids(found: Document) -> list[str]:
    return [section.id for section in found.sections]


def figures(found: Document) -> dict[str, Figure]:
    blocks = [b for section in found.sections for b in section.blocks]
    return {b.name: b for b in blocks if isinstance(b, Figure)}


def words(found: Document, section: str) -> str:
    (own,) = (s for s in found.sections if s.id == section)
    return page(Document("t", "a", "m", (own,)))


def by_rates(rates: tuple[int, ...], capacity: float = 300.0) -> Study:
    run = load_run()
    for rate in rates:
        run.add(f"r{rate}", server=single_queue(1 / capacity), rate_per_s=rate, seconds=6.0,
                levels={"load.rate_per_s": rate})  # fmt: skip
    return run


def test_the_answer_comes_first_and_what_makes_no_sense_is_left_out(tmp_path: Path) -> None:
    found = document(by_clients((1, 2, 4, 8)), tmp_path / "r")
    assert ids(found)[:3] == ["answer", "load", "steps"]
    assert "agreement" not in ids(found)
    text = words(found, "answer")
    assert "More than 4 clients bring no more throughput" in unescape(text)
    assert "no A/A control" not in text
    everything = page(found).lower()
    assert "searchbench load http://127.0.0.1:1" in everything
    assert "searchbench run" not in everything


def test_what_a_system_that_ran_already_never_did_is_left_out(tmp_path: Path) -> None:
    run = by_clients((1, 2))
    for treatment in run.treatments:
        treatment.extra = {"attached": "http://127.0.0.1:1", "endpoints": ["127.0.0.1:1"]}
    found = document(run, tmp_path / "r")
    assert "ingest" not in words(found, "resources").lower()
    details = words(found, "details")
    assert "as it was found" in details
    assert "<dd><bdi>http://127.0.0.1:1</bdi></dd>" in details


def test_a_study_crossed_with_factors_has_a_line_for_each_configuration(tmp_path: Path) -> None:
    run = load_run(judging={"command": []})
    for parts in (1, 2, 4):
        for n in (1, 4, 8):
            run.add(f"p{parts}-{n}", server=lognormal(0.016 / parts), clients=n,
                    subject=f"tantivy parts={parts}", parameters={"parts": parts},
                    levels={"systems.tantivy.parts": parts, "load.clients": n})  # fmt: skip
    found = document(run, tmp_path / "r")
    assert "3 configurations · 9 load steps" in found.about
    drawn = figures(found)
    for parts in (1, 2, 4):
        assert f">tantivy parts={parts}<" in drawn["load-throughput"].wide
        for quantile in ("p50", "p99"):
            assert f">tantivy parts={parts} {quantile}<" in drawn["load-response"].wide
    (details,) = (s for s in found.sections if s.id == "details")
    titles = [b.title for b in details.blocks if isinstance(b, Details)]
    assert [t for t in titles if "parts" in t] == [f"tantivy parts={n}" for n in (1, 2, 4)]
    first = next(b for b in details.blocks if isinstance(b, Details) and "parts=1" in b.title)
    assert "('systems.tantivy.parts', '1')" in str(first)
    assert "Command line, as started" in str(first)
    assert "load.clients" not in str(first)
    assert "searchbench run study.toml" in str(details)


def test_the_two_graphs_have_a_line_for_each_system_and_quantile(tmp_path: Path) -> None:
    run = by_clients((1, 4, 8), system="old", factor=2.0)
    by_clients((1, 4, 8), system="new", run=run)
    drawn = figures(document(run, tmp_path / "r"))
    assert {"load-throughput", "load-response", "load-service"} <= set(drawn)
    for which in ("load-response", "load-service"):
        for name in ("old p50", "old p99", "new p50", "new p99"):
            assert f">{name}<" in drawn[which].wide, (which, name)
            assert f">{name}<" in drawn[which].narrow, (which, name)
        assert "stroke-dasharray" in drawn[which].wide
    assert ">old<" in drawn["load-throughput"].wide


def test_a_rate_that_is_not_kept_up_is_marked_in_curve_and_table(tmp_path: Path) -> None:
    found = document(by_rates((100, 200, 600)), tmp_path / "r")
    drawn = figures(found)["load-response"]
    assert drawn.wide.count("not kept up") == 2  # at p50 and at p99
    (steps,) = (s for s in found.sections if s.id == "steps")
    table = next(b for b in steps.blocks if isinstance(b, Table))
    kept = [column.name for column in table.columns].index("Kept up")
    assert [row[kept].text for row in table.rows] == ["yes", "yes", "no"]
    assert "coordinated omission" not in page(found)


def test_a_closed_loop_says_what_it_cannot_know(tmp_path: Path) -> None:
    found = document(by_clients((1, 2)), tmp_path / "r")
    assert "coordinated omission" in words(found, "load")


def test_a_void_step_is_named_before_anything_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = by_clients((1, 2, 4))
    run.treatments[2].lag_ns = 3_000_000
    record, judged = opened(run, tmp_path / "r")
    found = assemble.document(record, judged)
    first = found.sections[0].blocks[0]
    assert isinstance(first, Notice)
    assert first.meaning.startswith("1 of 3 ")
    assert "Crosses: void" in page(found)
    show(judged)
    assert capsys.readouterr().out.startswith("Void: 1 of 3 ")


def test_outcomes_are_shown_by_kind_where_any_request_failed(tmp_path: Path) -> None:
    clean = document(by_clients((1,)), tmp_path / "clean")
    assert "measured requests succeeded" in words(clean, "steps")
    failing = document(by_clients((1,), error_share=0.1), tmp_path / "failing")
    assert "engine error" in words(failing, "steps")


def test_forty_steps_are_still_a_page(tmp_path: Path) -> None:
    run = load_run()
    for n in range(1, 41):
        by_clients((n,), run=run, seconds=1.5, warmup_s=0.2)
    record, judged = opened(run, tmp_path / "r")
    text = page(assemble.document(record, judged))
    assert len(text) < 600_000
    rows = re.findall(r"<details><summary><bdi>Response time, every step", text)
    assert rows, "a long table is closed"


def test_hostile_text_is_escaped_and_all_files_are_written(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    run = by_clients((1, 2), system=hostile)
    by_clients((1, 2), system="b", run=run)
    record, judged = opened(run, tmp_path / "r")
    written = write_report(record, judged, tmp_path / "out")
    text = written.html.read_text("utf-8")
    assert "<script>alert" not in text
    assert written.pdf.read_bytes().startswith(b"%PDF")
    sheet = next(path for path in written.csv if path.name == "steps.csv")
    rows = list(csv.DictReader(sheet.read_text("utf-8").splitlines()))
    assert [row["clients"] for row in rows] == [str(s.clients) for s in judged.steps]
    assert float(rows[0]["response_p50"]) == judged.steps[0].response["p50"].value


def test_a_run_without_a_step_that_can_be_used_still_has_a_page(tmp_path: Path) -> None:
    run = by_clients((1, 2), fails_at="drive")
    record, judged = opened(run, tmp_path / "r")
    assert {s.status for s in judged.steps} == {"failed"}
    assert "No answer" in page(assemble.document(record, judged))
    empty = replace(judged, steps=(), treatments=())
    assert page(assemble.document(record, empty))


def test_the_share_of_cache_hits_is_shown_as_the_server_counted_it(tmp_path: Path) -> None:
    run = by_clients((1, 2))
    run.treatments[0].extra = {"cache": {
        "cache_entries": 100, "wanted_hit": 0.5, "expected_hit": 0.49, "distinct": 200,
        "counted": {"hits": 480, "lookups": 1000, "source": "status"},
    }}  # fmt: skip
    run.treatments[1].extra = {"cache": {"wanted_hit": 0.5, "distinct": 200}}
    text = words(document(run, tmp_path / "r"), "steps")
    assert "Cache hits" in text
    assert "480 of 1,000" in text
    assert "not reported" in text


def test_several_client_machines_are_named_with_their_clocks(tmp_path: Path) -> None:
    run = by_clients((2,))
    machine = {"host": "left", "share": 0.5, "offset_ns": 1500, "samples": 7, "accounting": {}}
    run.treatments[0].extra = {"drive": {"machines": [machine, machine | {"host": "right"}]}}
    text = words(document(run, tmp_path / "r"), "details")
    assert "Client machines" in text
    assert "left · offset" in text


def test_a_step_that_was_not_steady_is_named_on_the_page_and_nobody_is_best(tmp_path: Path) -> None:
    record, judged = opened(cold_pair(True), tmp_path / "r")
    found = assemble.document(record, judged)
    answer = unescape(words(found, "answer"))
    assert "cold was not steady at 1 client" in answer
    (steps,) = (s for s in found.sections if s.id == "steps")
    table = next(b for b in steps.blocks if isinstance(b, Table))
    assert [row[0].below for row in table.rows].count("not steady") == 1
    assert judged.verdict.best is None
