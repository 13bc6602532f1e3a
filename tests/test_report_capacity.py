"""The page of a search for capacity: intervals by configuration and promise, and their trials.

The systems are queues whose capacity is known, so every number that a page must show is known.
Longer than most files: one record serves every form of its report.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import typst

import report_examples as examples
from records import Study, single_queue
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Capacity, Judgement
from searchbench.record import open_record
from searchbench.report import write_report
from searchbench.report.document.assemble import document
from searchbench.report.document.blocks import (
    Badge,
    Block,
    Code,
    Details,
    Document,
    Figure,
    Section,
    Table,
    Text,
)
from searchbench.report.figures import capacity as figures
from searchbench.report.figures import draw
from searchbench.report.figures.draw import svg
from searchbench.report.figures.look import DARK, NARROW, WIDE, Look
from searchbench.report.pdf import lay_out
from searchbench.report.sheets import write_sheets
from searchbench.report.tables.steps import between, intervals

LOOKS = pytest.mark.parametrize("look", [WIDE, NARROW], ids=["wide", "narrow"])
SYSTEMS = tuple(
    examples.Queue(name, name, {"system": name}, most)
    for name, most in (("sphinx", 412.0), ("groonga", 90.0), ("opensearch", 1440.0))
)


_drawn: dict[tuple[str, str], Any] = {}


@pytest.fixture(autouse=True)
def drawn_once(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Each chart is drawn once in this file; not where drawing itself is what is tested."""
    if "bytes" in request.node.name:
        return
    for name in ("vegalite_to_svg", "svg_to_pdf"):
        monkeypatch.setattr(
            draw.vl_convert, name, partial(_once, name, getattr(draw.vl_convert, name))
        )


def _once(name: str, render: Callable[..., Any], what: Any, **how: Any) -> Any:
    key = name, json.dumps([what, how], sort_keys=True)
    if key not in _drawn:
        _drawn[key] = render(what, **how)
    return _drawn[key]


def made(judged: Judgement) -> Document:
    return document(examples.driven(judged), judged)


@cache
def usual() -> Document:
    """The page of three configurations and two promises, drawn once for all who only look."""
    return made(examples.searched())


@cache
def alone() -> Document:
    """The page of one configuration and one promise."""
    return made(examples.searched(examples.PARTS[:1], examples.PROMISES[:1]))


def section(found: Document, name: str) -> Section:
    return next(s for s in found.sections if s.id == name)


def table_of(found: Document) -> Table:
    return next(b for b in section(found, "answer").blocks if isinstance(b, Table))


def test_the_answer_is_a_table_of_configurations_by_promises() -> None:
    judged = examples.searched()
    table = table_of(usual())
    assert [column.name for column in table.columns] == ["Configuration", *examples.PROMISES]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["sphinx parts=1", "313–326/s", "381–397/s"],
        ["sphinx parts=2", "690–712/s", "752–768/s"],
        ["sphinx parts=4", "1,321–1,375/s", "≥ 1,389/s"],
    ]
    assert table.rows[0][1].below == "95.7 % · 10 trials"
    assert table.rows[2][2].below == "7 trials"
    assert "fails at a rate that is not known" in table.rows[2][2].exact
    for c, queue in zip(judged.capacity[::2], examples.PARTS, strict=True):
        assert c.holds is not None
        assert c.fails is not None
        assert c.holds < queue.capacity(0.05) < c.fails


def test_open_sides_are_open_in_words_table_and_figure() -> None:
    judged = examples.searched(SYSTEMS)
    found = made(judged)
    answer = section(found, "answer").blocks
    badge = next(b for b in answer if isinstance(b, Badge))
    assert badge.text == "Partly open"
    assert badge.explanation.startswith("2 of 6 intervals are open")
    texts = [[cell.text for cell in row[1:]] for row in table_of(found).rows]
    assert texts[1][0] == "< 5/s"
    assert texts[2][1] == "≥ 1,389/s"
    drawn = next(b for b in answer if isinstance(b, Figure))
    assert drawn.wide.count("stroke-dasharray") == 2
    assert "opensearch\np99 &lt; 200ms, errors &lt; 0.1%: ≥ 1,389/s" in drawn.wide
    assert "95.7 %" in drawn.wide


def test_an_interval_of_several_searches_says_of_how_many_and_one_not_found_says_that() -> None:
    first, *rest = examples.searched().capacity
    first = replace(first, searches=3)
    nothing = replace(rest[0], holds=None, fails=None, chance_inside=None)
    table = intervals((first, nothing, *rest[1:]))
    assert table.rows[0][1].below == "95.7 % · 10 trials in 3 searches"
    assert (table.rows[0][2].text, table.rows[0][2].tone) == ("not found", "quiet")


def test_a_promise_that_was_not_searched_for_a_configuration_is_a_dash() -> None:
    judged = examples.searched()
    table = intervals(judged.capacity[:-1])
    assert table.rows[2][2].text == "–"


@pytest.mark.parametrize(
    ("holds", "fails", "text"),
    [
        (1001.0, 1004.0, "1,001–1,004/s"),
        (755.53, 839.52, "755.5–839.5/s"),
        (1389.4, None, "≥ 1,389/s"),
        (None, 0.25, "< 0.2500/s"),
        (None, None, "not found"),
    ],
)
def test_both_ends_of_a_narrow_interval_can_be_seen(
    holds: float | None, fails: float | None, text: str
) -> None:
    found = replace(examples.searched().capacity[0], holds=holds, fails=fails)
    assert between(found) == text


def test_the_answer_is_short_and_stands_in_full_below_the_intervals() -> None:
    one = section(alone(), "answer")
    assert [b.kind for b in one.blocks[:3]] == ["badge", "text", "table"]
    assert isinstance(one.blocks[1], Text)
    assert one.blocks[1].tone == "lead"
    many = section(usual(), "answer")
    assert [b.kind for b in many.blocks[:4]] == ["badge", "text", "points", "table"]
    (full,) = [b for b in many.blocks if isinstance(b, Details)]
    assert full.title == "The answer in full"
    assert not full.open
    said = [b.text for b in full.blocks if isinstance(b, Text)]
    assert len(said) == 7
    assert said[0].startswith("sphinx parts=1 keeps p99 < 50ms at 313")


def test_more_than_two_curves_of_trials_are_closed_and_two_are_not() -> None:
    two = section(made(examples.searched(examples.PARTS[:1])), "capacity")
    assert [b.kind for b in two.blocks] == ["figure", "table", "figure", "table"]
    six = section(usual(), "capacity")
    assert [b.kind for b in six.blocks] == ["details"] * 6
    first = six.blocks[0]
    assert isinstance(first, Details)
    assert not first.open
    assert (first.title, first.note) == ("sphinx parts=1: p99 < 50ms", "313–326/s, 10 trials")
    assert [b.kind for b in first.blocks] == ["figure", "table"]


def test_a_curve_has_a_point_for_each_trial_and_says_what_it_used_up() -> None:
    judged = examples.searched(examples.PARTS[:1], examples.PROMISES[:1])
    blocks = section(alone(), "capacity").blocks
    drawn = next(b for b in blocks if isinstance(b, Figure))
    (found,) = judged.capacity
    assert drawn.wide.count("times what p99 &lt; 50ms allows") == len(found.trials) == 5
    table = next(b for b in blocks if isinstance(b, Table))
    assert [row[0].text for row in table.rows] == ["192/s", "288/s", "313/s", "326/s", "352/s"]
    assert [row[2].text for row in table.rows] == ["holds", "holds", "holds", "unclear", "fails"]
    assert table.rows[3][3].text == "1.36×"


def test_what_is_a_thousandth_of_the_promise_or_less_has_no_more_digits() -> None:
    blocks = section(usual(), "capacity").blocks
    second = blocks[1]
    assert isinstance(second, Details)
    table = next(b for b in second.blocks if isinstance(b, Table))
    assert table.rows[0][3].text == "< 0.001×"
    assert float(table.rows[0][3].exact) < 1e-9


def levels(*found: dict[str, Any]) -> list[Capacity]:
    one = examples.searched().capacity[0]
    return [replace(one, subject=f"s{i}", levels=own) for i, own in enumerate(found)]


def test_the_factor_is_an_axis_only_if_it_is_alone_and_a_number() -> None:
    assert figures.factor_of(examples.searched().capacity) == "systems.sphinx.parts"
    assert figures.factor_of(examples.searched(SYSTEMS).capacity) == ""
    assert figures.factor_of(levels({"parts": 1}, {"parts": 2}, {"parts": 2.5})) == "parts"
    assert figures.factor_of(levels({"parts": 1}, {"parts": 1})) == ""
    assert figures.factor_of(levels({"a": True}, {"a": False})) == ""
    assert figures.factor_of(levels({"a": 1, "b": 1}, {"a": 2, "b": 2})) == ""
    assert figures.factor_of(levels({"a": 1, "b": 1}, {"a": 2, "b": 1})) == "a"
    assert figures.factor_of(levels({"a": 1}, {"b": 2})) == ""


@LOOKS
def test_a_number_is_the_horizontal_axis_and_names_are_rows(look: Look) -> None:
    by_parts = svg(figures.intervals(examples.searched().capacity, look), "a", "a")
    assert ">systems.sphinx.parts<" in by_parts
    assert ">sphinx parts=1<" not in by_parts
    for level in "124":
        assert f">{level}<" in by_parts
    by_name = svg(figures.intervals(examples.searched(SYSTEMS).capacity, look), "b", "b")
    assert ">requests per second (logarithmic)<" in by_name
    for system in SYSTEMS:
        assert f">{system.subject}<" in by_name


def test_rates_have_a_logarithmic_axis_where_they_span_much_and_begin_at_nought_else() -> None:
    near, far = (
        json.dumps(figures.intervals(judged.capacity, WIDE).to_dict(validate=False))
        for judged in (examples.searched(examples.PARTS[:2]), examples.searched(SYSTEMS))
    )
    assert '"domain": [0,' in near
    assert '"type": "log"' not in near
    assert '"type": "log"' in far


@LOOKS
def test_the_figures_are_valid_in_known_colours_and_fit_their_room(look: Look) -> None:
    for judged in (examples.searched(), examples.searched(SYSTEMS)):
        charts = [figures.intervals(judged.capacity, look)]
        charts += [figures.trials(c, look) for c in judged.capacity]
        for chart in charts:
            chart.to_dict(validate=True)
            drawn = svg(chart, "x", "x")
            used = set(re.findall(r'(?:fill|stroke)="([^"]+)"', drawn))
            assert used - {"none", "transparent"} <= set(DARK)
            width = re.search(r'viewBox="0 0 (\d+(?:\.\d+)?) ', drawn)
            assert width is not None
            assert float(width[1]) <= look.width * 1.04


def test_there_is_no_figure_of_one_interval_or_of_none_found() -> None:
    one, two, *_ = examples.searched().capacity
    assert figures.intervals([one], WIDE) is None
    nowhere = [replace(c, holds=None, fails=None) for c in (one, two)]
    assert figures.intervals(nowhere, WIDE) is None
    assert figures.trials(replace(one, trials=()), WIDE) is None


def test_a_first_look_with_clients_does_not_share_the_axis_of_the_rates() -> None:
    judged = examples.searched(examples.PARTS[:1])
    look = examples.step(examples.PARTS[0], 99, 16, kind="closed")
    found = made(replace(judged, steps=(look, *judged.steps)))
    load = section(found, "load")
    assert load.title == "The load it sustains, by offered rate"
    drawn = next(b for b in load.blocks if isinstance(b, Figure))
    assert drawn.title == "Throughput against the offered rate"
    assert "16 clients" not in drawn.wide
    assert "coordinated omission" not in str(load)


def test_each_configuration_has_a_line_and_its_details() -> None:
    found = usual()
    drawn = next(b for b in section(found, "load").blocks if isinstance(b, Figure))
    details = [b.title for b in section(found, "details").blocks if isinstance(b, Details)]
    for n in (1, 2, 4):
        assert f">sphinx parts={n}<" in drawn.wide
        assert f"sphinx parts={n}" in details


def test_a_search_drives_trials_and_the_page_calls_them_that(tmp_path: Path) -> None:
    judged = examples.searched()
    report = write_report(examples.driven(judged), judged, tmp_path)
    text = re.sub(r"<svg.*?</svg>", "", report.html.read_text("utf-8"), flags=re.DOTALL)
    assert "27 trials" in text
    assert "Trials of the search" in text
    for word in ("probe", "load step", "bears", "borne"):
        assert word not in text.lower()


def texts_of(node: object) -> list[str]:
    """The texts of an element as Typst set it, in reading order."""
    if isinstance(node, list):
        return [text for each in node for text in texts_of(each)]
    if not isinstance(node, dict):
        return []
    own = [str(node["text"])] if node.get("func") == "text" else []
    return own + [text for key in ("children", "body", "child") for text in texts_of(node.get(key))]


def test_the_document_on_paper_has_the_same_intervals_and_every_curve(tmp_path: Path) -> None:
    laid_out = str(lay_out(usual(), tmp_path))

    def set_in_type(element: str) -> list[list[str]]:
        found = json.loads(typst.query(laid_out, element, root=str(tmp_path)))
        return [texts_of(each) for each in found]

    assert set_in_type("table")[0] == [
        "Configuration", *examples.PROMISES,
        "sphinx parts=1", "313–326/s", "95.7 % · 10 trials", "381–397/s", "95.7 % · 10 trials",
        "sphinx parts=2", "690–712/s", "95.7 % · 10 trials", "752–768/s", "95.7 % · 10 trials",
        "sphinx parts=4", "1,321–1,375/s", "95.7 % · 7 trials", "≥ 1,389/s", "7 trials",
    ]  # fmt: skip
    headings = set_in_type("heading")
    for n in (1, 2, 4):
        for promise in examples.PROMISES:
            assert any(h[0] == f"sphinx parts={n}: {promise}" for h in headings)
    images = json.loads(typst.query(laid_out, "image", root=str(tmp_path)))
    assert len(images) == sum(count(block) for s in usual().sections for block in s.blocks)


def count(block: Block) -> int:
    """How many figures a block has."""
    if isinstance(block, Details):
        return sum(map(count, block.blocks))
    return int(isinstance(block, Figure))


def test_the_sheets_have_the_intervals_and_the_trials(tmp_path: Path) -> None:
    judged = examples.searched()
    paths = write_sheets(judged, tmp_path)
    sheets = {path.stem: path for path in paths}
    assert list(sheets)[-2:] == ["steps", "capacity"]
    with sheets["capacity"].open(encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file))
    assert header == [
        "subject", "promise", "holds", "fails", "chance_inside", "searches", "trials",
        "broken_up_to",
    ]  # fmt: skip
    assert rows[0] == ["sphinx parts=1", "p99 < 50ms", "313.0", "326.0", "0.957", "1", "10", ""]
    assert rows[5] == ["sphinx parts=4", examples.PROMISES[1], "1389.0", "", "", "1", "7", ""]
    with sheets["steps"].open(encoding="utf-8", newline="") as file:
        steps = list(csv.DictReader(file))
    assert list(steps[0])[:3] == ["system", "trial", "treatment"]
    assert list(steps[0])[-3:] == ["subject", "speed_asked", "steadiness"]
    expected = [(s.system, s.subject) for s in judged.steps]
    assert [(row["system"], row["subject"]) for row in steps] == expected


def test_a_page_made_from_a_command_shows_it_and_one_made_from_a_study_how_to_run_that() -> None:
    judged = examples.searched(examples.PARTS[:1])
    command = ["load", "http://127.0.0.1:9306", "--find-capacity", "--slo", "p99 < 50ms"]
    for words, expected in (
        (command, "searchbench load http://127.0.0.1:9306 --find-capacity --slo 'p99 < 50ms'"),
        ([], "searchbench run study.toml "),
    ):
        found = document(examples.driven(judged, command=words), judged)
        again = section(found, "details").blocks[-1]
        assert isinstance(again, Details)
        code = next(b for b in again.blocks if isinstance(b, Code))
        assert expected in code.text


def test_a_real_record_of_three_configurations_and_two_promises_has_six_intervals(
    tmp_path: Path,
) -> None:
    promises = ["p99 < 50ms", "p99 < 200ms, errors < 0.1%"]
    run = Study(blocks=1, control=None, trial_noise=0.0, block_noise=0.0,
                judging={"measure": "capacity", "promises": promises})  # fmt: skip
    for queue in examples.PARTS:
        # The greatest queue is never driven beyond what it sustains, so no trial bounds it above.
        beyond = [] if queue is examples.PARTS[-1] else [1.05]
        for rate in (0.6, 0.7, 0.85, 0.9, 0.95, *beyond):
            asked = round(rate * queue.most_per_s)
            run.add(f"{queue.levels['systems.sphinx.parts']}-{asked}", system="sphinx",
                    server=single_queue(1 / queue.most_per_s), rate_per_s=asked, seconds=8.0,
                    subject=queue.subject, levels={**queue.levels, "load.rate_per_s": asked},
                    extra={"load": {"promise": 0, "full": True}})  # fmt: skip
    record = open_record(run.write(tmp_path / "r"))
    judged = judge(record)
    table = table_of(document(record, judged))
    assert [row[0].text for row in table.rows] == [q.subject for q in examples.PARTS]
    assert [column.name for column in table.columns[1:]] == promises
    found = {(c.subject, c.promise): c for c in judged.capacity}
    for row, queue in zip(table.rows, examples.PARTS, strict=True):
        for cell, promise in zip(row[1:], promises, strict=True):
            own = found[queue.subject, promise]
            assert cell.text == between(own)
            assert cell.below.endswith(f"{len(own.trials)} trials")
    assert table.rows[2][2].text.startswith("≥ ")
    report = write_report(record, judged, tmp_path / "out")
    sheet = next(path for path in report.csv if path.name == "capacity.csv")
    rows = list(csv.DictReader(sheet.read_text("utf-8").splitlines()))
    assert [(row["subject"], row["promise"]) for row in rows] == [
        (q.subject, promise) for q in examples.PARTS for promise in promises
    ]
    assert (rows[5]["fails"], rows[5]["chance_inside"]) == ("", "")


def test_a_record_of_the_first_format_has_its_interval_on_a_page(tmp_path: Path) -> None:
    record = open_record(Path(__file__).parent / "records_v1" / "capacity")
    judged = judge(record)
    page = write_report(record, judged, tmp_path).html.read_text("utf-8")
    (found,) = judged.capacity
    assert between(found) in unescape(page)
    assert "For each configuration, rates were driven one after another" in page


def test_without_any_trial_there_is_a_page_that_says_so(tmp_path: Path) -> None:
    judged = replace(examples.searched(), steps=(), treatments=(), capacity=(), resources={})
    report = write_report(examples.driven(judged), judged, tmp_path)
    page = report.html.read_text("utf-8")
    assert "No answer" in page
    assert "No trial is on record." in page
    assert report.pdf.read_bytes().startswith(b"%PDF-")


def test_hostile_names_and_promises_stay_text(tmp_path: Path) -> None:
    queues = [
        examples.Queue(text, text, {text: i}, 400.0 * (i + 1))
        for i, text in enumerate(examples.HOSTILE[:4])
    ]
    judged = examples.searched(queues, [examples.HOSTILE[0], examples.HOSTILE[5]], hostile=True)
    record = examples.driven(judged, command=examples.HOSTILE[:7], hostile=True)
    report = write_report(record, judged, tmp_path)
    page = report.html.read_bytes().decode("utf-8")
    assert page.count("<script>") == 1
    assert "<img" not in page
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    assert report.pdf.read_bytes().startswith(b"%PDF-")
    for path in report.csv:
        cells = [cell for row in csv.reader(path.read_text("utf-8").splitlines()) for cell in row]
        assert not [cell for cell in cells if cell[:1] in ("=", "@")]


def test_the_same_search_gives_the_same_bytes(tmp_path: Path) -> None:
    judged = examples.searched(examples.PARTS[:1], examples.PROMISES[:1])
    first, second = (
        write_report(examples.driven(judged), judged, tmp_path / name) for name in "ab"
    )
    pairs = product((first.html, first.pdf), (second.html, second.pdf))
    same = [a.read_bytes() == b.read_bytes() for a, b in pairs if a.suffix == b.suffix]
    assert same == [True, True]
