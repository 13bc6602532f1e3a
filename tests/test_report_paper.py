"""What is printed of a document: the answer whole, of long tables what tells most, and where the
rest is.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

import report_examples as examples
from searchbench.report.document.assemble import document
from searchbench.report.document.blocks import (
    Block,
    Cell,
    Code,
    Column,
    Details,
    Document,
    Figure,
    Section,
    Table,
    Text,
    Unprinted,
)
from searchbench.report.document.paper import HOVER, ROWS, marked, printed
from searchbench.report.page import page
from searchbench.report.pdf import document_pdf


@pytest.fixture(scope="module")
def big() -> Document:
    return big_document()


def big_document() -> Document:
    judged = examples.big()
    return document(examples.record(judged), judged)


def pages(pdf: bytes) -> int:
    """How many pages a PDF has, also where its objects are packed."""

    def unpacked() -> Iterator[bytes]:
        yield pdf
        for found in re.finditer(rb"stream\r?\n", pdf):
            try:
                yield zlib.decompressobj().decompress(pdf[found.end() :])
            except zlib.error:
                continue

    return sum(len(re.findall(rb"/Type\s*/Page\b", text)) for text in unpacked())


def on_paper(*blocks: Block) -> list[Block]:
    """Of some blocks those that are printed."""
    shown = marked(Document("", "", "", (Section("s", "S", blocks),), whole="It is elsewhere."))
    return printed(shown.sections[0].blocks)


def table(n: int, *, source: str = "", telling: Sequence[int] = ()) -> Table:
    cells = tuple((Cell(str(i)),) for i in range(n))
    return Table((Column("n"),), cells, source, tuple(telling), "the largest" if telling else "")


def flat(blocks: Sequence[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, Details):
            yield from flat(block.blocks)


def test_a_table_that_fits_a_page_is_printed_whole() -> None:
    whole = table(ROWS, source="n.csv")
    assert on_paper(whole) == [whole]


def test_a_longer_one_keeps_its_most_telling_rows_in_their_order_and_says_where_all_are() -> None:
    n = ROWS + 25
    first, said = on_paper(table(n, source="n.csv", telling=range(n - 1, -1, -1)))
    assert isinstance(first, Table)
    assert [row[0].text for row in first.rows] == [str(i) for i in range(25, n)]
    assert said == Unprinted(
        "25 of 65 rows are not printed. Those above are the largest. All of it is in n.csv."
    )
    _, said = on_paper(table(n))
    assert isinstance(said, Unprinted)
    assert said.text.endswith("Those above come first. It is elsewhere.")


def test_nobody_is_asked_to_hover_over_paper() -> None:
    assert on_paper(Text(f"Small print. {HOVER}"), Text(HOVER)) == [Text("Small print.")]


def test_what_is_opened_by_a_click_is_printed_where_it_is_short() -> None:
    short = Details("Short", (table(9),))
    open_ = Details("Open", (Code("line\n" * 200),), open=True)
    long = Details("Long", (Code("line\n" * 200),), source="l.txt")
    assert on_paper(short, open_) == [short, open_]
    assert on_paper(long) == [Unprinted("Not printed: “Long” (204 lines). All of it is in l.txt.")]


def test_parts_of_one_kind_are_printed_all_or_not_at_all() -> None:
    few = [Details(f"c{i}", (table(9),), each="configurations") for i in range(9)]
    assert on_paper(*few) == few
    many = [Details(f"c{i}", (table(9),), each="configurations") for i in range(30)]
    assert on_paper(*many) == [
        Unprinted("Not printed: 30 configurations (360 lines). It is elsewhere.")
    ]


def test_what_lies_two_clicks_away_is_not_printed() -> None:
    inner = [Details(name, (table(5),)) for name in ("Load", "Ingest", "Driving", "Phases")]
    (outer,) = on_paper(Details("tantivy", (Text("started"), *inner)))
    assert isinstance(outer, Details)
    assert outer.blocks == (
        Text("started"),
        Unprinted(
            "Not printed: “Load”, “Ingest”, “Driving” and 1 more (32 lines). It is elsewhere."
        ),
    )


def test_of_many_comparisons_those_that_the_verdict_rests_on_are_printed(big: Document) -> None:
    answer = marked(big).sections[0].blocks
    kept = [
        b for b in flat(printed(answer)) if isinstance(b, Table) and b.columns[0].name == "This"
    ]
    rows = [[cell.text for cell in row] for row in kept[0].rows]
    assert len(rows) == ROWS
    assert {row[1] for row in rows} == {"Throughput"}, "by the metric that decides"
    sides = [(row[0].text, row[0].below.removeprefix("against ")) for row in kept[0].rows]
    assert sum("tantivy · 1 clients" in pair for pair in sides) == 29, "of what loses to nobody"
    said = next(b.text for b in flat(answer) if isinstance(b, Unprinted))
    assert said == (
        "1,265 of 1,305 rows are not printed. Those above are those that the verdict rests on, "
        "then the largest differences. All of it is in comparisons.csv."
    )


def test_all_text_notices_and_figures_that_are_seen_without_a_click_are_printed(
    big: Document,
) -> None:
    shown = marked(big)
    for section in shown.sections:
        seen = [replace(b, text=b.text.replace(f" {HOVER}", "")) if isinstance(b, Text) else b
                for b in section.blocks if not isinstance(b, Details | Table)]  # fmt: skip
        assert seen == [b for b in printed(section.blocks) if not isinstance(b, Details | Table)]
    assert sum(isinstance(b, Figure) for s in shown.sections for b in printed(s.blocks)) >= 4


def test_the_pdf_of_a_big_study_can_be_read(big: Document) -> None:
    judged = examples.judgement(2)
    small = document_pdf(document(examples.record(judged), judged))
    assert pages(small) <= 8
    assert pages(document_pdf(big)) <= 20


def test_keys_in_sentences_are_set_as_code_and_nothing_of_them_is_evaluated() -> None:
    said = "Set `load.seconds` to 5 in `[load]`, not `a<b>`."
    shown = page(Document("T", "", "", (Section("s", "S", (Text(said),)),)))
    assert "Set <code>load.seconds</code> to 5 in `[load]`, not <code>a&lt;b&gt;</code>." in shown
    plain = document_pdf(Document("T", "", "", (Section("s", "S", (Text("Set it to 5."),)),)))
    coded = document_pdf(Document("T", "", "", (Section("s", "S", (Text(said),)),)))
    assert b"Mono" in coded
    assert b"Mono" not in plain
