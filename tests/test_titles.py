"""Titles beside ids: which field serves as one, what the record keeps, where a person sees them."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

import pytest

from searchbench.analysis.judge import judge, to_json
from searchbench.analysis.judgement import Difference
from searchbench.cli import app
from searchbench.corpora.corpus import Field, FieldType, Schema
from searchbench.corpora.files import open_files
from searchbench.corpora.titles import LONGEST, title_field, titles_of
from searchbench.record import open_record
from searchbench.report.tables.agreement import side_by_side
from searchbench.terminal.differences import difference

STUDY = """\
question = "Do parts change what is found first?"
replicates = 1
[control]
aa = false
[corpus]
files = "shop.csv"
[queries]
file = "queries.txt"
match = "any"
[agreement]
require = "order"
[systems.tantivy]
parts = 6
statistics = "local"  # each part scores by its own
[systems.sqlite]
[load]
seconds = 0.1
warmup_s = 0
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Products whose titles are long, have blanks and markup, or are not there."""
    monkeypatch.chdir(tmp_path)
    words = ("red", "blue", "lamp", "door", "shelf", "old", "new")
    rows = [
        f"{n},{words[n % 7]} {words[n % 5]} <b>{n}</b>,"
        + " ".join(words[n * k % 7] for k in range(n % 9))
        for n in range(120)
    ]
    (tmp_path / "shop.csv").write_text("id,Title,description\n" + "\n".join(rows) + "\n")
    (tmp_path / "queries.txt").write_text("red lamp\nold door\nblue shelf new\n")
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


@pytest.mark.parametrize(
    ("names", "title"),
    [
        (("body", "title", "name"), "title"),
        (("product_name", "Name"), "Name"),
        (("body", "product_name"), "product_name"),
        (("body", "price"), None),
    ],
)
def test_the_field_that_serves_as_title(names: tuple[str, ...], title: str | None) -> None:
    assert title_field(Schema(tuple(Field(n, FieldType.TEXT) for n in names))) == title
    numbers = Schema(tuple(Field(n, FieldType.INTEGER) for n in names))
    assert title_field(numbers) is None


def test_titles_are_cut_and_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(f'id,name\n1,"red\n lamp"\n2,{"long " * 40}\n3,\n4,door\n')
    corpus = open_files("d.csv", tmp_path, fields={"name": "text"})
    found = titles_of(corpus, {"1", "2", "3"})
    assert found["1"] == "red lamp"
    assert len(found["2"]) == LONGEST
    assert found["2"].endswith("…")
    assert found.keys() == {"1", "2"}, "a document without a title has none"


def test_what_differs_is_shown_with_titles_by_verify_run_and_report(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app(["verify", "study.toml", "--record", "answers"]) == 1
    said = capsys.readouterr().out
    verified = open_record(shop / "answers")
    (digest,) = {t.corpus.digest for t in verified.trials}
    titles = verified.titles(digest)
    ids = {
        i
        for t in verified.trials
        for row in verified.replies(t.trial)["ids"].to_pylist()
        for i in row
    }
    assert titles.keys() == ids
    (agreement,) = judge(verified).agreement
    example = agreement.examples[0]
    listed = [i for i, _ in (*example.hits_a, *example.hits_b)]
    assert example.titles == {i: titles[i] for i in listed}
    only = [i for i, _ in example.hits_a if i not in dict(example.hits_b)]
    named = only or [
        a for (a, _), (b, _) in zip(example.hits_a, example.hits_b, strict=True) if a != b
    ]
    assert f"{named[0]} ({titles[named[0]]})" in " ".join(said.split())

    assert app(["run", "study.toml", "--record", "r"]) in (0, 1)
    record = open_record(shop / "r")
    assert record.titles(digest) == titles
    judged = judge(record)
    table = side_by_side(judged.agreement[0].examples[0], "a", "b")
    assert [row[1].below for row in table.rows[1:]] == [
        titles[row[1].text] for row in table.rows[1:]
    ]
    assert to_json(judged)["agreement"][0]["examples"][0]["titles"]
    page = (shop / "r" / "report" / "report.html").read_text(encoding="utf-8")
    assert f"<small>{escape(titles[listed[0]])}</small>" in page
    assert not re.search(r"<b>\d", page), "what the user wrote is text"


def test_a_corpus_without_titles_has_none_on_record(shop: Path) -> None:
    text = (shop / "shop.csv").read_text().replace("Title", "words", 1)
    (shop / "shop.csv").write_text(text)
    assert app(["run", "study.toml", "--record", "r", "--no-report"]) in (0, 1)
    assert not (shop / "r" / "titles").exists()


def test_a_difference_on_a_terminal_says_what_one_lists_alone_or_where_the_order_differs() -> None:
    hits = tuple((i, None) for i in ("7", "8", "9"))
    titles = {"7": "Red lamp", "8": "Blue\x1b[2J lamp"}
    swapped = Difference(0, "lamp", "scoring", 3, 3, hits, (hits[0], hits[2], hits[1]), titles)
    assert list(difference(swapped, "a", "b")) == [
        "  lamp: scoring; totals 3 and 3",
        "    the same hits in another order, from rank 2 on: 8 (Blue[2J lamp) and 9",
    ]
    fewer = Difference(0, "lamp", "analysis", 3, 1, hits, hits[1:2], titles)
    assert list(difference(fewer, "a", "b"))[1:] == ["    listed by a alone: 7 (Red lamp), 9"]
