"""The user's own files, right and wrong."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from searchbench.corpora import open_corpus
from searchbench.corpora.corpus import Document, digest
from searchbench.corpora.files import FileCorpus, open_files
from searchbench.errors import CorpusError

ROWS = [
    {"id": "a", "title": "Ein Höhlenbär", "price": 3.5},
    {"id": "b", "title": "two\nlines", "price": 4.0},
]
FIELDS = {"title": "text", "price": "float"}
DOCUMENTS = [
    Document("a", {"title": "Ein Höhlenbär", "price": 3.5}),
    Document("b", {"title": "two\nlines", "price": 4.0}),
]
JSONL = b"".join(orjson.dumps(row) + b"\n" for row in ROWS)
CSV = 'id,title,price\na,Ein Höhlenbär,3.5\nb,"two\nlines",4.0\n'.encode()


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def read(folder: Path, name: str | list[str], **options: Any) -> list[Document]:
    return list(open_files(name, folder, **options).documents())


PACKED = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".zst": zstandard.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}


@pytest.mark.parametrize("end", PACKED)
@pytest.mark.parametrize(
    ("name", "content"),
    [("d.jsonl", JSONL), ("d.csv", CSV), ("d.tsv", CSV.replace(b",", b"\t"))],
)
def test_every_format_gives_the_same_documents_plain_and_compressed(
    tmp_path: Path, name: str, content: bytes, end: str
) -> None:
    write(tmp_path, name + end, PACKED[end](content))
    assert read(tmp_path, name + end, fields=FIELDS) == DOCUMENTS


def test_parquet_gives_the_same_documents(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "d.parquet")
    assert read(tmp_path, "d.parquet", fields=FIELDS) == DOCUMENTS


def test_parquet_has_dates_lists_and_decimals_of_its_own(tmp_path: Path) -> None:
    table = pa.table(
        {
            "seen": pa.array([datetime(1970, 1, 1, 0, 0, 1), None], pa.timestamp("us")),
            "fine": pa.array([1_999_999, -1], pa.timestamp("ns")),
            "tags": [["x", "y"], []],
            "cost": pa.array([1, 2], pa.decimal128(10, 2)),
            "kind": pa.array(["p", "q"]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "d.parquet")
    fields = {
        "seen": "date",
        "fine": "date",
        "tags": "keywords",
        "cost": "float",
        "kind": "keyword",
    }
    assert read(tmp_path, "d.parquet", fields=fields) == [
        Document("1", {"seen": 1000, "fine": 1, "tags": ["x", "y"], "cost": 1.0, "kind": "p"}),
        Document("2", {"fine": -1, "tags": [], "cost": 2.0, "kind": "q"}),
    ]


@pytest.mark.parametrize("end", [".gz", ".zst", ".xz", ".bz2"])
def test_a_compressed_file_that_was_cut_short_is_an_error_and_not_a_smaller_corpus(
    tmp_path: Path, end: str
) -> None:
    rows = b"".join(b'{"title": "%d"}\n' % n for n in range(5000))
    write(tmp_path, "d.jsonl" + end, PACKED[end](rows)[:-9])
    with pytest.raises(CorpusError, match="cut short"):
        read(tmp_path, "d.jsonl" + end, fields={"title": "text"})


def test_a_file_that_is_not_what_its_name_says_is_an_error(tmp_path: Path) -> None:
    for end in (".gz", ".zst", ".xz", ".bz2", ".lz4"):
        write(tmp_path, "d.jsonl" + end, JSONL)
        with pytest.raises(CorpusError, match="cannot be read"):
            read(tmp_path, "d.jsonl" + end)
    write(tmp_path, "d.parquet", JSONL)
    with pytest.raises(CorpusError, match="cannot be read"):
        read(tmp_path, "d.parquet")


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    write(tmp_path, "d.csv", b"\xef\xbb\xbf" + CSV)
    write(tmp_path, "d.jsonl", b"\xef\xbb\xbf" + JSONL)
    assert read(tmp_path, "d.csv", fields=FIELDS) == DOCUMENTS
    assert read(tmp_path, "d.jsonl", fields=FIELDS) == DOCUMENTS


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("d.csv", b"id,title\n1,a\n2,caf\xe9\n", 3),
        ("d.jsonl", b'{"title": "a"}\n{"title": "caf\xe9"}\n', 2),
        ("d.txt", b"one\ntwo\ncaf\xe9", 3),
        ("d.csv", "id,title\n1,a\n".encode("utf-16"), 1),
    ],
)
def test_another_encoding_is_an_error_with_file_and_line_even_where_rows_are_skipped(
    tmp_path: Path, name: str, content: bytes, line: int
) -> None:
    write(tmp_path, name, content)
    with pytest.raises(CorpusError, match=rf"{name}:{line}: .*iconv"):
        read(tmp_path, name, fields={"title": "text"}, bad_rows="skip")


CSV_WITH_MISTAKES = b"""id,title,price
a,"three
lines
here",1

b,second,cheap
c,too,many,cells
d,"stray" quote,1
a,again,2
,nameless,3
e,last,4
"""


def test_bad_rows_are_counted_and_shown_with_their_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "d.csv", CSV_WITH_MISTAKES)
    corpus = open_files("d.csv", tmp_path, fields=FIELDS, bad_rows="skip")
    assert [document.id for document in corpus.documents()] == ["a", "e"]
    intake = corpus.intake
    assert intake is not None
    assert (intake.rows, intake.accepted, intake.refused) == (7, 2, 5)
    shown = {bad.line: bad.reason for bad in intake.first}
    assert sorted(shown) == [6, 7, 8, 9, 10]
    assert shown[6] == "price: 'cheap' is not a number"
    assert shown[7] == "this row has 4 cells, and the header 3"
    assert "cannot be read" in shown[8]
    assert shown[9] == "the id 'a' was there before"
    assert shown[10] == "the id is missing"
    assert digest(corpus).intake == intake
    assert {bad.file for bad in intake.first} == {str(path)}


def test_bad_rows_refuse_the_corpus_and_the_error_counts_them_all(tmp_path: Path) -> None:
    write(tmp_path, "d.csv", CSV_WITH_MISTAKES)
    corpus = open_files("d.csv", tmp_path, fields=FIELDS)
    with pytest.raises(CorpusError, match=r"5 of 7 rows do not fit") as caught:
        list(corpus.documents())
    assert "d.csv:6: price: 'cheap' is not a number" in str(caught.value)
    assert 'bad_rows = "skip"' in str(caught.value)


def test_only_the_first_few_bad_rows_are_kept(tmp_path: Path) -> None:
    write(tmp_path, "d.jsonl", b'{"price": "x"}\n' * 9)
    with pytest.raises(CorpusError, match="and 4 more"):
        read(tmp_path, "d.jsonl", fields=FIELDS)


def test_lines_of_json_that_are_none_are_bad_rows(tmp_path: Path) -> None:
    write(tmp_path, "d.jsonl", b'{"title": "a"}\n\n[1]\n{"title": \nnull\n{"title": {"x": 1}}\n')
    corpus = open_files("d.jsonl", tmp_path, fields={"title": "text"}, bad_rows="skip")
    assert [document.id for document in corpus.documents()] == ["1"]
    assert corpus.intake is not None
    assert [bad.line for bad in corpus.intake.first] == [3, 4, 5, 6]


def test_ids_that_are_row_numbers_do_not_depend_on_what_is_skipped(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", b'{"n": 1}\n{"n": "x"}\n')
    write(tmp_path, "b.jsonl", b'{"n": 3}\n')
    assert read(tmp_path, ["a.jsonl", "b.jsonl"], fields={"n": "integer"}, bad_rows="skip") == [
        Document("1", {"n": 1}),
        Document("3", {"n": 3}),
    ]


def test_an_id_is_found_twice_across_files_and_far_apart(tmp_path: Path) -> None:
    lines = [b'{"id": %d, "n": 1}\n' % n for n in range(10_000)]
    write(tmp_path, "a.jsonl", b"".join(lines))
    write(tmp_path, "b.jsonl", lines[3] + lines[9_999] + b'{"id": "new", "n": 2}\n')
    corpus = open_files("*.jsonl", tmp_path, fields={"n": "integer"}, bad_rows="skip")
    assert len(list(corpus.documents())) == 10_001
    assert corpus.intake is not None
    assert [(Path(bad.file).name, bad.line) for bad in corpus.intake.first] == [
        ("b.jsonl", 1),
        ("b.jsonl", 2),
    ]


def test_one_json_array_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    write(tmp_path, "a.json", orjson.dumps(ROWS))
    write(tmp_path, "b.json", orjson.dumps(ROWS, option=orjson.OPT_INDENT_2))
    for name in ("a.json", "b.json"):
        with pytest.raises(CorpusError, match="jq"):
            read(tmp_path, name, fields=FIELDS)


def test_a_folder_is_text_files_by_their_paths_and_hidden_ones_are_left_out(
    tmp_path: Path,
) -> None:
    write(tmp_path, "notes/b/two.txt", b"second")
    write(tmp_path, "notes/a.md.gz", gzip.compress(b"first"))
    write(tmp_path, "notes/empty", b"")
    write(tmp_path, "notes/.git/config", b"no")
    assert read(tmp_path, "notes") == [
        Document("a.md.gz", {"title": "a.md.gz", "body": "first"}),
        Document("b/two.txt", {"title": "two.txt", "body": "second"}),
        Document("empty", {"title": "empty"}),
    ]
    assert read(tmp_path, "notes/**/*.txt") == [
        Document("b/two.txt", {"title": "two.txt", "body": "second"})
    ]


def test_a_folder_of_tables_is_not_taken_for_text(tmp_path: Path) -> None:
    write(tmp_path, "data/a.csv", CSV)
    with pytest.raises(CorpusError, match=r"name the files, such as data/\*\.csv"):
        read(tmp_path, "data")


def test_keywords_in_a_cell_are_cut_at_the_declared_separator(tmp_path: Path) -> None:
    write(tmp_path, "d.csv", b"tags\nred|green\nblue;x\n\n")
    found = read(tmp_path, "d.csv", fields={"tags": "keywords"})
    assert [d.values for d in found] == [{"tags": ["red", "green"]}, {"tags": ["blue;x"]}]
    found = read(tmp_path, "d.csv", fields={"tags": "keywords"}, separator=";")
    assert [d.values for d in found] == [{"tags": ["red|green"]}, {"tags": ["blue", "x"]}]


def test_a_field_may_be_read_from_a_column_of_another_name(tmp_path: Path) -> None:
    write(tmp_path, "d.csv", b"Sku,Product Name\nx1,Lamp\n")
    fields = {"name": {"type": "text", "column": "Product Name", "stored": False}}
    corpus = open_files("d.csv", tmp_path, fields=fields, id="Sku")
    assert list(corpus.documents()) == [Document("x1", {"name": "Lamp"})]
    assert not corpus.schema["name"].stored


def test_columns_and_fields_that_do_not_meet_are_reported(tmp_path: Path) -> None:
    write(tmp_path, "d.jsonl", b'{"title": "a", "colour": 1}\n{"title": "b"}\n')
    corpus = open_files("d.jsonl", tmp_path, fields=FIELDS)
    list(corpus.documents())
    assert corpus.intake is not None
    assert corpus.intake.ignored == {"colour": 1}
    assert corpus.intake.unseen == ("price",)


@pytest.mark.parametrize(
    ("files", "options", "sentence"),
    [
        ("prducts.csv", {}, r"no file .*Did you mean products\.csv\?"),
        ("*.tsv", {}, r"No file matches \*\.tsv"),
        ("empty", {}, "has no files"),
        ([], {}, "names no files"),
        ("products.csv", {"fields": {"titel": "text"}}, r"no column 'titel'.*Did you mean title\?"),
        ("products.csv", {"fields": {"title": "txt"}}, r"types are .*Did you mean text\?"),
        ("products.csv", {"fields": {"id": "text"}}, "cannot be named 'id'"),
        ("products.csv", {"fields": {"t": {"type": "text", "kind": 1}}}, "has a key 'kind'"),
        ("products.csv", {"fields": {}}, "declares no fields"),
        ("products.csv", {"id": "idd"}, r"no column 'idd' for the id.*Did you mean id\?"),
        (["products.csv", "other.csv"], {}, r"other\.csv:1: its columns"),
        (["products.csv", "d.jsonl"], {}, "have several"),
        ("products.dat", {}, "cannot be told from its name"),
        ("twice.csv", {}, "the column 'a' occurs 2 times"),
        ("nothing.csv", {}, "a header with the names"),
        ("d.parquet.gz", {}, "unpack the file"),
    ],
)
def test_what_cannot_be_opened_is_one_sentence_with_a_remedy(
    tmp_path: Path, files: str | list[str], options: dict[str, Any], sentence: str
) -> None:
    write(tmp_path, "products.csv", CSV)
    write(tmp_path, "products.dat", CSV)
    write(tmp_path, "other.csv", b"id,name\n1,x\n")
    write(tmp_path, "d.jsonl", JSONL)
    write(tmp_path, "d.parquet.gz", b"")
    write(tmp_path, "twice.csv", b"a,b,a\n1,2,3\n")
    write(tmp_path, "nothing.csv", b"")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match=sentence):
        open_files(files, tmp_path, **options)


def test_the_guessed_schema_follows_the_written_rule(tmp_path: Path) -> None:
    lines = [
        "id,Product Name,code,year,Unit Price,zip,in stock,since,tags,kind,empty,essay",
        'a,Red lamp,x1,1999,3.50,00123,true,2020-01-02,"red|big",lamp,,' + "word " * 20,
        'b,Oak table,x2,2001,4,99999,False,2021-05-06,oak,"table",,short',
        "c,Big lamp,x3,2002,5.25,10115,true,2021-05-07,,lamp,,short",
        "d,Old table,x4,2003,1e3,01067,true,2021-05-08 10:00,red,table,,short",
    ]
    write(tmp_path, "d.csv", "\n".join(lines).encode())
    corpus = open_files("d.csv", tmp_path)
    assert isinstance(corpus, FileCorpus)
    assert {field.name: field.type.value for field in corpus.schema.fields} == {
        "product_name": "text",
        "code": "keyword",
        "year": "integer",
        "unit_price": "float",
        "zip": "keyword",
        "in_stock": "boolean",
        "since": "date",
        "tags": "keywords",
        "kind": "keyword",
        "essay": "text",
    }
    assert corpus.inference is not None
    assert corpus.inference.notes["empty"].startswith("left out")
    assert corpus.inference.notes["id"] == "the id"
    first = next(iter(corpus.documents()))
    assert first.id == "a"
    assert first.values["zip"] == "00123"
    assert first.values["tags"] == ["red", "big"]


def test_a_column_of_several_kinds_or_of_objects_is_left_out_with_a_note(tmp_path: Path) -> None:
    write(
        tmp_path, "d.jsonl", b'{"t": "x y z", "m": 1, "o": {"a": 1}}\n{"t": "u v w", "m": "no"}\n'
    )
    corpus = open_files("d.jsonl", tmp_path)
    assert [field.name for field in corpus.schema.fields] == ["t"]
    assert corpus.inference is not None
    assert "declare it" in corpus.inference.notes["m"]
    assert "objects" in corpus.inference.notes["o"]


def test_a_row_that_breaks_the_guess_is_a_bad_row(tmp_path: Path) -> None:
    rows = [b'{"n": %d}\n' % n for n in range(20)] + [b'{"n": "soon"}\n']
    write(tmp_path, "d.jsonl", b"".join(rows))
    with pytest.raises(CorpusError, match=r"d\.jsonl:21: n: 'soon' is not an integer"):
        list(open_files("d.jsonl", tmp_path, sample_rows=10).documents())


def test_a_corpus_is_the_same_each_time_it_is_read(tmp_path: Path) -> None:
    write(tmp_path, "d.csv", CSV)
    corpus = open_corpus({"files": "d.csv", "fields": FIELDS, "name": "mine"}, tmp_path)
    assert corpus.name == "mine"
    assert digest(corpus) == digest(corpus)


def test_a_quote_that_is_never_closed_does_not_swallow_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("searchbench.corpora.rows.LINE_LIMIT_BYTES", 1000)
    write(tmp_path, "d.csv", b'title\nfine\n"open\n' + b"more text\n" * 500)
    with pytest.raises(CorpusError, match=r"d\.csv:3: .*a quote may not be closed"):
        read(tmp_path, "d.csv", fields={"title": "text"})


def test_without_quoting_a_quote_is_a_letter(tmp_path: Path) -> None:
    write(tmp_path, "d.tsv", b'title\n"open\n')
    assert read(tmp_path, "d.tsv", fields={"title": "text"}, quote="") == [
        Document("1", {"title": '"open'})
    ]


SHOP = [("id", "title", "note"), ("a", "one, two", "1;5"), ("b", "three", "x y, z\tw")]


def table(delimiter: str) -> bytes:
    """The shop as a spreadsheet writes it."""
    to = io.StringIO()
    csv.writer(to, delimiter=delimiter).writerows(SHOP)
    return to.getvalue().encode()


@pytest.mark.parametrize("name", ["d.csv", "d.tsv", "d.csv.gz"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_what_separates_cells_is_seen_from_the_first_rows(
    tmp_path: Path, delimiter: str, name: str
) -> None:
    content = table(delimiter)
    write(tmp_path, name, gzip.compress(content) if name.endswith(".gz") else content)
    corpus = open_files(name, tmp_path)
    assert corpus.dialect.delimiter == delimiter
    assert [d.values for d in corpus.documents()] == [
        dict(zip(SHOP[0][1:], row[1:], strict=True)) for row in SHOP[1:]
    ]


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("id,title; long\n1,red\n2,blue\n", ","),  # the header has both, the rows one
        ("id;title, long\n1;red\n2;blue, green\n3;x\n", ";"),
        ("title\nred; blue\ngreen; white\n", ","),  # one column
        ("id,a\n1,2\n3\n4,5\n6,7\n", ","),  # a row that does not fit
        ("a|b\nred\nblue\n", ","),  # no row has two cells
        ('id;text\n1;"one\n\ntwo;three"\n' + '2;"x\ny"\n' * 300, ";"),  # rows longer than lines
    ],
)
def test_a_separator_within_names_or_texts_is_none(
    tmp_path: Path, text: str, delimiter: str
) -> None:
    write(tmp_path, "d.csv", text.encode())
    assert open_files("d.csv", tmp_path).dialect.delimiter == delimiter


def test_where_two_separators_fit_it_is_asked_for_and_what_is_declared_wins(tmp_path: Path) -> None:
    write(tmp_path, "d.csv", b"a,b;c\nx,1;2\ny,3;4\n")
    with pytest.raises(CorpusError, match="by a comma or a semicolon, and the first rows fit both"):
        open_files("d.csv", tmp_path)
    for declared, column in ((";", "c"), (",", "a")):
        corpus = open_files("d.csv", tmp_path, delimiter=declared)
        assert (corpus.dialect.delimiter, column in corpus.columns.values()) == (declared, True)


def test_rows_of_which_none_can_be_read_are_not_to_be_declared(tmp_path: Path) -> None:
    write(tmp_path, "d.csv", b'id,title\n1,"red" fox\n2,"blue" dog\n')
    with pytest.raises(CorpusError, match=r"None of the first 2 rows can be read: .*d\.csv:2: "):
        open_files("d.csv", tmp_path)
    write(tmp_path, "e.csv", b"id,title\n")
    with pytest.raises(CorpusError, match=r"e\.csv has no rows"):
        open_files("e.csv", tmp_path)
