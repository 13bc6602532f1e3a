"""A few values that decide the type of a column are named with their line; others are not."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from searchbench.cli import app
from searchbench.corpora.files import FileCorpus, open_files
from searchbench.errors import SearchbenchError


def table(folder: Path, values: Sequence[str], column: str = "price") -> FileCorpus:
    """A CSV of these values, the first on line 2, beside a name of two words."""
    rows = "".join(f"{n},lamp number {n},{value}\n" for n, value in enumerate(values))
    (folder / "d.csv").write_text(f"id,name,{column}\n{rows}")
    return open_files("d.csv", folder)


def lines(folder: Path, values: Sequence[Any]) -> FileCorpus:
    """JSON lines, the first on line 1."""
    rows = ({"id": str(n), "name": f"lamp {n}", "x": value} for n, value in enumerate(values))
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return open_files("d.jsonl", folder)


def prices(n: int) -> list[str]:
    return [f"{i}.50" for i in range(n)]


def said(corpus: FileCorpus) -> str:
    assert corpus.doubts is not None
    return str(corpus.doubts)


def test_one_bad_value_is_named_with_its_column_and_line(tmp_path: Path) -> None:
    values = prices(200)
    values[55] = "n/a"
    corpus = table(tmp_path, values)
    first, *rest = said(corpus).splitlines()
    assert first == (
        f"{tmp_path}/d.csv:57: 'n/a' makes `price` a column of type keyword, while 199 of its "
        "first 200 values are numbers. Correct it, or declare the type of `price`."
    )
    assert rest[0].startswith("A missing value is an empty cell")
    assert rest[1:] == [
        '  fields.name = "text"',
        '  fields.price = "float"',
        '  bad_rows = "skip"  # leaves out rows that do not fit',
    ]


def test_what_it_says_to_declare_can_be_declared(tmp_path: Path) -> None:
    values = prices(200)
    values[7] = values[9] = "on request"
    corpus = table(tmp_path, values, "Unit Price")
    assert ":9: 'on request' and 1 more make `Unit Price` a column of type" in said(corpus)
    toml = "\n".join(line for line in said(corpus).splitlines() if line.startswith("  "))
    declared = open_files("d.csv", tmp_path, **tomllib.loads(toml))
    assert {f.name: str(f.type) for f in declared.schema.fields} == {
        "name": "text",
        "unit_price": "float",
    }
    assert declared.doubts is None
    assert len(list(declared.documents())) == 198


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["3", "4", "5", "-"], ":5: '-' makes `price` a column of type keyword, while 3 of its"),
        (["n/a", "n/a", "N/A", *"12345"], ":2: 'n/a' and 2 more make `price`"),
        ([*"1234567890" * 10, "on request"], ":102: 'on request' makes `price`"),
        (["true"] * 30 + ["unknown"], "30 of its first 31 values are true or false"),
        (["2024-05-31"] * 30 + ["soon"], "30 of its first 31 values are dates"),
    ],
)
def test_what_most_values_are_is_seen_whatever_it_is(
    tmp_path: Path, values: list[str], words: str
) -> None:
    assert words in said(table(tmp_path, values))


@pytest.mark.parametrize(
    "values",
    [
        ["1984", "2001", "Brazil", "Heat", "12", "Alien", "Seven", "300", "Up", "Big"] * 20,
        [f"{n}a" if n % 9 == 0 else str(n) for n in range(200)],  # house numbers
        [f"{n:05d}" for n in range(0, 100_000, 500)],  # postal codes
        [f"978030640{n}{'X' if n % 11 == 0 else n % 11}" for n in range(200)],  # ISBN-10
        [f"{n}{'kg' if n % 2 else ''}" for n in range(200)],
        ["12.50", "", "3", "", "4.5"] * 20,
        [*map(str, range(100)), "2.5"],
        ["1", "two"],
        ["7", "-", "-", "-"],
        ["red", "blue", "n/a", "green"] * 20,
    ],
)
def test_texts_and_codes_of_which_some_are_numbers_are_not_doubted(
    tmp_path: Path, values: list[str]
) -> None:
    assert table(tmp_path, values).doubts is None


def test_of_json_what_leaves_a_column_out_is_named(tmp_path: Path) -> None:
    one = lines(tmp_path, [1.5] * 50 + ["n/a"] + [2] * 49)
    assert f"{tmp_path}/d.jsonl:51: 'n/a' makes `x` a column that is left out, while 99" in said(
        one
    )
    assert '  fields.x = "float"' in said(one)
    text = lines(tmp_path, ["the lamp"] * 20 + ["1984"] + [1984] + ["a chair"] * 20)
    assert ":22: 1984 makes `x` a column that is left out, while 41 of its first 42 values" in said(
        text
    )
    assert '  fields.x = "text"' in said(text)
    halves = lines(tmp_path, [1, "one", 2, "two"])
    assert ":2: 'one' and 1 more make `x` a column that is left out" in said(halves)


@pytest.mark.parametrize(
    "values",
    [[{"a": 1}] * 20, [{"a": 1}, "text"] * 20, [None, 3, None, 4], [["a"], ["b"]], ["a b", "1984"]],
)
def test_of_json_what_is_no_mistake_is_not_doubted(tmp_path: Path, values: list[Any]) -> None:
    assert lines(tmp_path, values).doubts is None


def test_of_many_fields_only_those_in_doubt_are_written_out(tmp_path: Path) -> None:
    names = [f"n{i}" for i in range(30)]
    rows = [",".join(["5"] * 30)] * 20 + [",".join(["5"] * 29 + ["n/a"])]
    (tmp_path / "wide.csv").write_text("\n".join([",".join(names), *rows]) + "\n")
    told = said(open_files("wide.csv", tmp_path))
    assert told.count("fields.") == 1
    assert 'fields.n29 = "integer"' in told
    assert "`searchbench corpus inspect FILE` lists the others" in told


def test_inspect_check_and_a_filter_on_it_all_name_the_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    table(tmp_path, [*prices(99), "n/a"])
    Path("q.txt").write_text("lamp\n")
    study = 'question = "?"\n[corpus]\nfiles = "d.csv"\n[queries]\nfile = "q.txt"\n'
    Path("study.toml").write_text(f"{study}[systems.tantivy]\n")
    told = "d.csv:101: 'n/a' makes `price` a column of type keyword"
    for command in (["corpus", "inspect", "d.csv"], ["check", "study.toml"]):
        assert app(command) == 0
        printed = capsys.readouterr().out
        assert "".join(told.split()) in "".join(printed.split())
        assert '\n  fields.price = "float"\n' in printed
        assert max(map(len, printed.splitlines())) <= 80
    wrong = f'{study}filters = [{{ range = {{ field = "price", low = 5 }} }}]\n[systems.tantivy]\n'
    Path("study.toml").write_text(wrong)
    with pytest.raises(SearchbenchError, match=f"`price` is of type keyword, so 5 .*{told}"):
        app(["check", "study.toml"])


@pytest.mark.parametrize(("values", "comma"), [
    ([f'"{i},50"' for i in range(20)], True), (['"1.250,00"', '"12,5"'], True),
    ([f'"1,{i}00"' for i in range(1, 9)], False), (["12.50", '"3,50"'], False),
    (["1,5 kg".join('""')] * 12, False),
])  # fmt: skip
def test_numbers_with_a_decimal_comma_are_doubted(
    tmp_path: Path, values: list[str], comma: bool
) -> None:
    found = str(table(tmp_path, values).doubts or "")
    assert ("numbers with a decimal comma" in found) is comma
    if comma:
        assert f"{tmp_path}/d.csv:2: " in found
        assert "Write them with a point." in found
        assert "fields." not in found
