"""The pages of a cut and of a log beside a record: what they say, that they are small and alone."""

from __future__ import annotations

import json
import math
import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from replaying import about, generated, written
from searchbench.analysis.judgement import Interval
from searchbench.analysis.logs.against import ALL, Against, Answer, Line
from searchbench.analysis.logs.cut import Bound, Cut
from searchbench.cli import app
from searchbench.errors import SearchbenchError
from searchbench.logs.counts import Options
from searchbench.logs.entries import read_entries
from searchbench.logs.searches import Searches, searches_of
from searchbench.logs.sources import find
from searchbench.report.document.logs_again import of_against
from searchbench.report.figures import logs_again as figures
from searchbench.report.figures.draw import svg
from searchbench.report.figures.look import DARK, NARROW, WIDE, Look
from searchbench.report.page import page as page_of
from test_logs_against import log_of, record_of

LOOKS = pytest.mark.parametrize("look", [WIDE, NARROW], ids=["wide", "narrow"])


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generated(tmp_path_factory.mktemp("generated"))


def read(path: Path) -> str:
    """A page that was written, with its PDF; it is small and asks for nothing."""
    text = path.read_text("utf-8")
    assert len(text.encode()) < 2_000_000
    assert path.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    assert not re.findall(r'(?:src|href)="(?!#|data:)', text)
    return text


def section(text: str, name: str) -> str:
    return text.partition(f'<section id="{name}">')[2].partition("</section>")[0]


def plain(text: str) -> str:
    """What a reader sees of a piece of a page."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


def rows(text: str) -> list[list[str]]:
    """The cells of all lines of tables, without their heads."""
    return [
        [plain(cell) for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)]
        for row in re.findall(r"<tr.*?</tr>", text, re.DOTALL)
        if "<td" in row
    ]


def tips_of(text: str) -> list[str]:
    """What marks of figures say, in several lines; what axes say is in one."""
    found = re.findall(r"<title>(.*?)</title>", text, re.DOTALL)
    return [unescape(tip) for tip in found if "\n" in tip]


def test_the_page_of_a_cut_has_its_sentence_first_and_every_bound(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, page = tmp_path / "cut.jsonl", tmp_path / "pages" / "cut.html"
    written(log, out, "--cut", "auto", "--page", str(page))
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.replace(" ", "").endswith(f"page:{page}"), "a long path is wrapped"
    text, told = read(page), about(out)
    first = plain(re.findall(r"<li>(.*?)</li>", section(text, "answer"), re.DOTALL)[0])
    assert first.startswith(f"The shortest cut within all bounds has {told['cut']['searches']:,} ")
    assert first in printed
    found = rows(section(text, "bounds"))
    assert [row[0] for row in found] == [bound["name"] for bound in told["cut"]["bounds"]]
    assert {row[-1] for row in found} == {"within"}
    for row, bound in zip(found, told["cut"]["bounds"], strict=True):
        shown = [f"{bound[k]:.3g}" if bound["relative"] else f"{bound[k]:.1%}"
                 for k in ("whole", "cut")]  # fmt: skip
        assert row[1:3] == shown, row
    # The figure says the same, a bar a property.
    tips = tips_of(section(text, "bounds"))
    assert [tip.split("\n")[0] for tip in tips] == 2 * [row[0] for row in found]
    assert f"log {found[0][1]}, cut {found[0][2]}: {found[0][3]} apart" in tips[0]
    assert told["study"].strip() in unescape(section(text, "study"))
    assert rows(section(text, "files"))[0][0] == "query.log"


def test_a_cut_that_misses_bounds_says_so_on_its_page(log: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "cut.jsonl", tmp_path / "cut.html"
    written(log, out, "--cut", "900", "--page", str(page))
    text = read(page)
    missed = [b["name"] for b in about(out)["cut"]["bounds"] if not b["reached"]]
    assert missed
    found = rows(section(text, "bounds"))
    assert [row[0] for row in found if row[-1] == "not reached"] == missed
    first = plain(re.findall(r"<li>(.*?)</li>", section(text, "answer"), re.DOTALL)[0])
    assert f"does not stand for the log in {len(missed)} of {len(found)} properties" in first
    far = [tip for tip in tips_of(section(text, "bounds")) if ": – apart" in tip]
    assert len(far) == 2 * sum(row[3] == "–" for row in found) > 0


def test_searches_without_a_cut_have_a_page_without_bounds(log: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "all.jsonl", tmp_path / "all.html"
    written(log, out, "--page", str(page))
    text = read(page)
    assert section(text, "bounds") == ""
    assert plain(about(out)["sentence"]) in plain(section(text, "answer"))


def test_the_page_beside_a_record_has_what_the_command_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_of(tmp_path / "a.jsonl", 40_000, {"plain": 1.0, "slow": 2.0})
    record, page = record_of(tmp_path / "record"), tmp_path / "against.html"
    argv = ["logs", str(tmp_path / "a.jsonl"), "--column", "kind=class", "--against", str(record)]
    assert app([*argv, "--page", str(page), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    text = read(page)
    first = plain(re.findall(r"<li>(.*?)</li>", section(text, "answer"), re.DOTALL)[0])
    assert first == told["sentence"]
    found = rows(section(text, "treatment-1"))
    assert [(row[0], row[1]) for row in found] == [
        (x["of_class"], f"p{100 * x['quantile']:g}") for x in told["lines"]
    ]
    assert [row[-1] for row in found] == [x["answer"] for x in told["lines"]]
    (slow,) = [row for row in found if row[:2] == ["slow", "p50"]]
    assert re.match(r"(1\.9|2|2\.0)\d?× ", slow[6])
    tips = tips_of(section(text, "treatment-1"))
    for x in told["lines"]:
        head = f"{x['of_class']}, p{100 * x['quantile']:g}\n{x['ratio']:.3g}, "
        assert any(tip.startswith(head) for tip in tips), head
    assert "the server's own times" in plain(section(text, "answer"))


def test_options_that_do_not_go_together_are_refused(log: Path, tmp_path: Path) -> None:
    argv = ["logs", str(log), "--queries", str(tmp_path / "a.jsonl")]
    with pytest.raises(SearchbenchError, match="leave out --record"):
        app([*argv, "--record", str(tmp_path / "r")])
    with pytest.raises(SearchbenchError, match="--live is about a log that grows"):
        app([*argv, "--live"])


# ── what is drawn, of cases that are rare ────────────────────────────────────────────────────


def bound(name: str, apart: float, *, relative: bool = True) -> Bound:
    return Bound(name, 10.0, 10.0 * (1 + apart), apart, 0.1, relative)


def cut(*bounds: Bound) -> Cut:
    none = np.zeros(0, np.int64)
    return Cut(none, none, 0.0, 10.0, 0.0, bounds, False)


def one(of_class: str, quantile: float, ratio: float | None, high: float, answer: Answer) -> Line:
    low = 0.8 * ratio if ratio else 4.0
    interval = Interval(low, high, 0.95, "block bootstrap over time")
    log_s = 0.001 if ratio else 0.0
    return Line(
        of_class, quantile, (1000, 900), log_s, 0.001 * (ratio or 4), ratio, interval, answer
    )


def many(classes: int, treatments: int) -> list[Against]:
    names = [
        ALL,
        *(f"class <b>number</b> {n} of a search with a long name" for n in range(classes)),
    ]
    lines = tuple(
        one(name, q, 0.5 + 0.01 * at + q, 2.0 + q, "not resolved")
        for at, name in enumerate(names)
        for q in (0.5, 0.95, 0.99)
    )
    shares = dict.fromkeys(names, (0.1, 0.1))
    return [
        Against(f"t{n}", f"system=sphinx clients={n}", lines, shares, f"Sentence number {n}.")
        for n in range(treatments)
    ]


def searches_in(log: Path) -> Searches:
    return searches_of(read_entries(find([log]), Options()))


@pytest.fixture
def searches(log: Path) -> Searches:
    return searches_in(log)


@LOOKS
def test_figures_are_valid_known_in_colour_and_fit(look: Look) -> None:
    open_end = Against("t", "t", (one("a", 0.5, None, math.inf, "slower"),
                                  one("a", 0.99, 1.0, 1.2, "not resolved")), {}, "")  # fmt: skip
    drawn = {
        "within": figures.bounds(cut(bound("rate", 0.05), bound("x" * 60, 0.09)), look),
        "missed": figures.bounds(cut(bound("rate", 0.05), bound("far", 9.0),
                                     bound("unknown", math.inf)), look),
        "ratios": figures.ratios(many(30, 1)[0], look),
        "open": figures.ratios(open_end, look),
    }  # fmt: skip
    for name, chart in drawn.items():
        chart.to_dict(validate=True)
        text = svg(chart, name, name)
        used = set(re.findall(r'(?:fill|stroke)="([^"]+)"', text))
        assert used - {"none", "transparent"} <= set(DARK), (name, used)
        found = re.search(r'viewBox="0 0 (\d+(?:\.\d+)?) ', text)
        assert found is not None
        assert float(found[1]) <= look.width * 1.04, name
    assert "not reached" in svg(drawn["missed"], "m", "m")
    assert "4 or more" in svg(drawn["open"], "o", "o")
    assert len(tips_of(svg(drawn["ratios"], "r", "r"))) == 2 * 3 * figures.CLASSES


def test_nothing_is_drawn_where_nothing_is_known_or_apart() -> None:
    few = Line("a", 0.5, (3, 900), math.nan, math.nan, None, None, "too few")
    assert figures.ratios(Against("t", "t", (few,), {}, ""), WIDE) is None
    assert figures.bounds(cut(bound("rate", 0.0)), WIDE) is None


def test_many_treatments_stay_below_two_megabytes_and_all_say_their_sentence(
    searches: Searches,
) -> None:
    found = many(60, 40)
    text = page_of(of_against(found, searches, Path("records/shop")))
    assert len(text.encode()) < 2_000_000
    told = plain(section(text, "answer"))
    for each in found:
        assert f"{each.label}: {each.sentence}" in told
    assert "<b>number</b>" not in text
    assert "more rows are in the output of searchbench logs --against" in plain(text)
