"""Tables with keys and indexes, generated and from files; the cars of a publication."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from searchbench.corpora import complaints, open_corpus
from searchbench.corpora.cars import Cars
from searchbench.corpora.corpus import Corpus, FieldType, Index, digest
from searchbench.corpora.keys import key_columns
from searchbench.corpora.operations import part
from searchbench.corpora.placed import permuted
from searchbench.corpora.table import GeneratedTable
from searchbench.corpora.write import write
from searchbench.errors import CorpusError, StudyError
from searchbench.study.inputs import look
from searchbench.study.planner import make_plan
from searchbench.study.read import parse_study

COMPOSITE: dict[str, Any] = {
    "family": "table",
    "table": "orders",
    "key": ["account", "number"],
    "indexes": ["owner", ["owner", "made"], {"columns": ["number", "account"], "unique": True}],
    "columns": {
        "account": {"type": "integer", "distribution": "steps", "each": 10},
        "number": {"type": "integer", "distribution": "cycle", "distinct": 10},
        "owner": {"type": "keyword", "distinct": 30},
        "made": {"type": "date", "missing": 0.2},
        "labels": {"type": "keywords"},
        "paid": {"type": "boolean"},
        "amount": {"type": "float"},
        "filling": {"type": "keyword", "distribution": "random", "length": 40},
        "note": {"type": "text", "words": 5},
    },
}
PUBLISHED = {
    "color": {"blue": 135_000, "gold": 131_400, "green": 128_400, "red": 254_200,
              "silver": 249_200, "white": 265_200, "yellow": 264_800},
    "category": {"exotic": 222_600, "luxury": 330_600, "mini-van": 105_200, "sedan": 133_200,
                 "sports car": 193_400, "station wagon": 27_800, "sub-compact": 58_800,
                 "suv": 163_800, "truck": 56_800, "van": 19_600},
    "cool": {"gold": 63_600, "silver": 119_600, "green": 64_200, "blue": 69_000,
             "black": 185_600, "yellow": 135_800, "red": 123_800},
}  # fmt: skip


def opened(**keys: Any) -> Corpus:
    return open_corpus({"family": "table", **keys}, Path.cwd())


def test_the_cars_have_the_published_counts_when_they_are_repeated_200_times() -> None:
    cars = open_corpus({"family": "cars", "scale": 200}, Path.cwd())
    assert isinstance(cars, Cars)
    assert cars.count == 3_000_000
    passing = [d.values for d in cars.between(0, 15_000) if d.values["mileage"] > 12_750]
    assert len(passing) * 200 == 1_803_200
    for name in ("color", "category"):
        counts = {value: n * 200 for value, n in Counter(c[name] for c in passing).items()}
        # The publication leaves out the first group.
        assert dict(sorted(counts.items())[1:]) == PUBLISHED[name]
    cool = Counter(c["color"] for c in passing if "cool" in c["tags"])
    assert {c: n * 200 for c, n in cool.items() if c != "white"} == PUBLISHED["cool"]


def test_the_text_of_a_car_says_cool_where_its_tags_do_and_nowhere_else() -> None:
    for car in open_corpus({"family": "cars"}, Path.cwd()).documents():
        words = car.values["contents"].replace("/", " ").split()
        assert words.count("cool") == car.values["tags"].count("cool")
        assert len(car.values["contents"]) <= 255


def test_the_cars_that_the_publication_names_are_where_it_found_them() -> None:
    cars = list(open_corpus({"family": "cars"}, Path.cwd()).documents())
    passing = [car for car in cars if car.values["mileage"] > 12_750]
    assert [car.id for car in passing[1:3]] == ["2", "3"]
    black = [car for car in passing if car.values["color"] == "black"]
    found = [int(car.id) for car in black[1:11]]
    assert found == [55, 57, 60, 63, 65, 66, 70, 81, 84, 90]
    prices = sorted((car.values["price"], car.id) for car in black)
    assert prices[0][1] == "2205"
    assert prices[0][0] < prices[1][0]
    both = [
        int(car.id)
        for car in passing
        if car.values["category"] == "compact" and "cool" in car.values["tags"]
    ]
    assert both[1:11] == [7, 8, 98, 99, 100, 101, 102, 103, 105, 106]


def test_repeated_cars_go_on_counting_and_are_the_same_otherwise() -> None:
    cars = open_corpus({"family": "cars", "scale": 3}, Path.cwd())
    every = list(cars.documents())
    assert [int(car.id) for car in every] == list(range(1, 45_001))
    assert [c.values for c in every[:15_000]] == [c.values for c in every[30_000:]]
    assert key_columns(cars)["id"].tolist() == list(range(1, 45_001))
    assert isinstance(cars, Cars)
    assert list(cars.between(14_999, 15_002)) == every[14_999:15_002]


def test_a_generated_table_has_its_key_its_indexes_and_typed_columns() -> None:
    table = open_corpus({**COMPOSITE, "rows": 5000}, Path.cwd())
    rows = list(table.documents())
    declared = table.schema.table
    assert declared is not None
    assert (declared.name, [each.name for each in declared.key]) == (
        "orders",
        ["account", "number"],
    )
    assert declared.indexes == (
        Index(("owner",)),
        Index(("owner", "made")),
        Index(("number", "account"), unique=True),
    )
    assert len({row.id for row in rows}) == len(rows) == 5000
    assert all(row.id == f"{row.values['account']},{row.values['number']}" for row in rows)
    assert 0.15 < sum("made" not in row.values for row in rows) / 5000 < 0.25
    assert all(len(row.values["filling"]) == 40 for row in rows)
    sizes = [len(row.values["note"].split()) for row in rows]
    assert (min(sizes), max(sizes)) == (1, 9)
    assert [column.name for column in table.schema.columns][:3] == ["account", "number", "owner"]


def test_any_part_of_a_table_is_made_without_the_rest_and_the_seed_decides() -> None:
    table = open_corpus({**COMPOSITE, "rows": 10_000}, Path.cwd())
    assert isinstance(table, GeneratedTable)
    rows = list(table.documents())
    assert list(table.between(4090, 4100)) == rows[4090:4100]
    fewer = open_corpus({**COMPOSITE, "rows": 4100}, Path.cwd())
    assert list(fewer.documents()) == rows[:4100]
    other = open_corpus({**COMPOSITE, "rows": 4100, "seed": 2}, Path.cwd())
    assert list(other.documents()) != rows[:4100]
    assert [r.id for p in (1, 2) for r in part(table, p, 2, "contiguous").documents()] == [
        r.id for r in rows
    ]


@pytest.mark.parametrize("rows", [1, 2, 3, 1000, 4097, 65_537])
def test_shuffled_ids_are_each_there_once_in_another_order(rows: int) -> None:
    ids = {"id": {"type": "integer", "distribution": "shuffled", "low": 10, "step": 3}}
    table = opened(rows=rows, columns=ids)
    found = key_columns(table)["id"]
    assert found.dtype == np.int64
    assert sorted(found.tolist()) == [10 + 3 * place for place in range(rows)]
    assert [row.id for row in table.documents()] == [str(value) for value in found]
    if rows >= 1000:
        # Neither runs nor a drift: neighbours are as far apart as any two.
        assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 0.1


def test_a_permutation_depends_on_its_seed_and_stream() -> None:
    places = np.arange(1000)
    made = [permuted(places, 1000, seed, stream) for seed, stream in ((1, 1), (2, 1), (1, 2))]
    assert len({tuple(each.tolist()) for each in made}) == 3


def test_keys_are_those_of_the_rows_for_every_kind_of_corpus(tmp_path: Path) -> None:
    table = open_corpus({**COMPOSITE, "rows": 700}, tmp_path)
    (tmp_path / "a.csv").write_text("sku,n\nb-1,3\na-2,4\n")
    for corpus in (
        table,
        part(table, 2, 3),
        open_corpus({"family": "table", "files": "a.csv", "key": "sku"}, tmp_path),
        open_corpus({"family": "generated", "documents": 50}, tmp_path),
    ):
        columns = key_columns(corpus).values()
        rows = [",".join(map(str, key)) for key in zip(*columns, strict=True)]
        assert rows == [document.id for document in corpus.documents()]


@pytest.mark.parametrize("end", [".jsonl", ".csv", ".tsv", ".parquet", ".csv.gz"])
@pytest.mark.parametrize("which", ["composite", "cars"])
def test_a_table_that_is_written_is_read_back_the_same(
    tmp_path: Path, end: str, which: str
) -> None:
    spec = {**COMPOSITE, "rows": 5000} if which == "composite" else {"family": "cars"}
    table = open_corpus(spec, tmp_path)
    declared = table.schema.table
    assert declared is not None
    written = write(table, tmp_path / f"made{end}")
    indexes = [{"columns": list(each.columns), "unique": each.unique} for each in declared.indexes]
    read = {
        "family": "table",
        "files": f"made{end}",
        "table": declared.name,
        "key": [each.name for each in declared.key],
        "indexes": indexes,
        "columns": {each.name: each.type.value for each in table.schema.columns},
    }
    assert complaints(read) == []
    assert digest(open_corpus(read, tmp_path)).digest == written.digest


def test_anybody_reads_the_cars_with_numbers_lists_and_text_guessed(tmp_path: Path) -> None:
    cars = open_corpus({"family": "cars"}, tmp_path)
    for end in (".parquet", ".jsonl"):
        write(cars, tmp_path / f"cars{end}")
        table = open_corpus({"family": "table", "files": f"cars{end}"}, tmp_path)
        types = {each.name: each.type for each in table.schema.columns}
        assert types["id"] is FieldType.INTEGER
        assert types["mileage"] is FieldType.INTEGER
        assert types["price"] is FieldType.FLOAT
        assert types["tags"] is FieldType.KEYWORDS


def test_a_cell_that_cannot_hold_a_keyword_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1, "tags": ["a|b", "c"]}\n')
    corpus = open_corpus({"files": "a.jsonl", "fields": {"tags": "keywords"}}, tmp_path)
    with pytest.raises(CorpusError, match=r"'1' has the keyword 'a\|b' in tags.*\.jsonl or"):
        write(corpus, tmp_path / "a.csv")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.jsonl"]


def test_a_check_looks_at_the_first_rows_of_a_table_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,n\n1,1\n2,many\n")
    text = (
        'question = "?"\n[corpus]\nfamily = "table"\nfiles = "a.csv"\n'
        'columns = { n = "integer" }\n[queries]\nmatch = "all"\n[systems.mariadb]\n'
    )
    study = parse_study(text, str(tmp_path / "study.toml"), tmp_path)
    with pytest.raises(StudyError, match=r"1 of the first 2 rows do not fit: .*a\.csv:3: "):
        look(study, make_plan(study))


def test_the_same_rows_under_other_indexes_are_another_corpus() -> None:
    digests = {
        digest(opened(rows=100, indexes=indexes)).digest for indexes in ([], ["owner"], ["state"])
    }
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("a,b,n\n1,1,5\n1,2,6\n1,1,7\n", "two rows have the key 1,1"),
        ("a,b,n\n1,1,5\n1,,6\n", "row 2 has no b, and it is in the key"),
    ],
)
def test_a_key_of_files_must_be_there_and_be_unique(
    tmp_path: Path, rows: str, sentence: str
) -> None:
    (tmp_path / "a.csv").write_text(rows)
    table = open_corpus({"family": "table", "files": "a.csv", "key": ["a", "b"]}, tmp_path)
    with pytest.raises(CorpusError, match=sentence):
        list(table.documents())


def test_an_integer_key_of_files_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,n\n1,1\nx,2\n")
    table = open_corpus(
        {"family": "table", "files": "a.csv", "columns": {"id": "integer", "n": "integer"}},
        tmp_path,
    )
    with pytest.raises(CorpusError, match=r"row 2 has the id 'x'.*id = \"keyword\""):
        list(table.documents())


@pytest.mark.parametrize(
    ("wrong", "key", "sentence"),
    [
        ({"key": "nowhere"}, "key", 'there is no column "nowhere"'),
        ({"key": "state"}, "key", "drawn and may come twice"),
        ({"indexes": ["nowhere"]}, "indexes", 'there is no column "nowhere"'),
        (
            {"columns": {"id": {"type": "integer", "distribution": "cycle",
                                "distinct": {"a": [True]}}}},
            "columns", "has distinct = a table; a whole number",
        ),
        (
            {"columns": {"id": {"type": "integer", "distribution": "cycle", "distinct": True}}},
            "columns", "has distinct = true; a whole number",
        ),
        ({"indexes": [3]}, "indexes", "a column, a list of columns"),
        ({"indexes": [{"columns": "state", "uniqe": True}]}, "indexes", "no key 'uniqe'"),
        ({"columns": {"a": {"type": "text"}}, "indexes": ["a"]}, "indexes", "which is text"),
        ({"scale": 2}, "scale", "set more `rows`"),
        ({"duplicate": 2}, "duplicate", "set more `rows`"),
        ({"format": "csv"}, "format", "name `files`"),
        ({"files": "a.csv", "rows": 3}, "rows", "leave out `files`"),
        ({"table": "a b"}, "table", "cannot be named 'a b'"),
        ({"rows": 20_000_000}, "rows", "10000000"),
        ({"columns": {"a": {"type": "integer", "distribution": "stepz"}}}, "columns", "stepz"),
        ({"columns": {"a": {"type": "text", "wurds": 1}}}, "columns", "did you mean `words`"),
        ({"columns": {"id": {"type": "keyword"}}}, "columns", "sequence, shuffled, steps or cycle"),
        ({"columns": {"a-b": {"type": "text"}}}, "columns", "letters, digits and underscores"),
        (
            {"key": ["a", "b"], "columns": {
                "a": {"type": "integer", "distribution": "steps", "each": 10},
                "b": {"type": "integer", "distribution": "cycle", "distinct": 9}}},
            "columns",
            "the same in several rows",
        ),
    ],
)  # fmt: skip
def test_what_a_table_cannot_be_is_said_at_its_key(
    wrong: dict[str, Any], key: str, sentence: str
) -> None:
    ((at, said), *_) = complaints({"family": "table", **wrong})
    assert at == key
    assert sentence in said


def test_indexes_of_the_cars_can_be_chosen() -> None:
    cars = open_corpus({"family": "cars", "indexes": [["color", "price"]]}, Path.cwd())
    assert cars.schema.table is not None
    assert cars.schema.table.indexes == (Index(("color", "price")),)
    assert complaints({"family": "cars", "indexes": ["contents"]})[0][0] == "indexes"
