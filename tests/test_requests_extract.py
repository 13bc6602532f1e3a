"""Terms out of what a real Groonga answers, in each form of its answers; and what is no answer."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, quote_plus

import orjson
import pytest

from searchbench.cli.queries import extract
from searchbench.engines import defaults
from searchbench.engines.engine import Request
from searchbench.engines.groonga import Groonga
from searchbench.engines.groonga.commands import column, do, load
from searchbench.engines.http_form import get, split
from searchbench.errors import QueryError
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.workload.verbatim.extract import read_answers, take_terms, values
from searchbench.workload.verbatim.template import filler

KEYS = ("1st Avenue & more; more", "café Ünï~(*)'!-._", "100% a+b=c?d#e/f", "日本 語", "a:b;c")
TAGS = (["a b", "c"], [], ["c"], ["d"], [])


@pytest.fixture(scope="module")
def groonga(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    engine = Groonga()
    if lacking := missing(engine):
        pytest.skip(f"no groonga here: {lacking}")
    place = tmp_path_factory.mktemp("groonga")
    with Deployment(engine, defaults(engine), place / "data", place / "run") as running:
        rows = [
            {"_key": k, "tags": t, "n": n} for n, (k, t) in enumerate(zip(KEYS, TAGS, strict=True))
        ]
        asked = (
            do("table_create", name="Stores", flags="TABLE_HASH_KEY", key_type="ShortText"),
            column("Stores", "tags", "COLUMN_VECTOR", "ShortText"),
            column("Stores", "n", "COLUMN_SCALAR", "Int32"),
            load("Stores", orjson.dumps(rows)),
        )
        assert engine.check(running.ask(Request(asked))) is None
        yield running


def body(running: Deployment, request: bytes) -> bytes:
    (reply,) = split(running.ask(Request((request,))))
    return reply.body


def select(running: Deployment, **arguments: Any) -> bytes:
    return body(running, get("/d/select", [("table", "Stores"), *arguments.items()]))


def run(capsys: pytest.CaptureFixture[str], *files: Path, **how: Any) -> list[str]:
    assert extract(*files, **how) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_form_of_an_answer_gives_its_column_by_name_and_by_number(
    groonga: Deployment, version: int
) -> None:
    for more in ({}, {"drilldown": "n"}, {"drilldowns[x].keys": "n"}):
        found = read_answers(select(groonga, command_version=version, **more), "answer")
        assert tuple(values(found, "_key")) == KEYS
        assert tuple(values(found, 1)) == KEYS
        assert found[0].columns == ("_id", "_key", "n", "tags")
        assert found[0].hits == len(KEYS)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_error_is_said_in_the_words_of_the_server(groonga: Deployment, version: int) -> None:
    refused = body(groonga, get("/d/select", [("table", "No"), ("command_version", version)]))
    with pytest.raises(QueryError, match=r"refused it: .*invalid name: <No> \(return code -22\)"):
        read_answers(refused, "answer")


def test_answers_of_other_commands_are_told_from_those_of_select(groonga: Deployment) -> None:
    for command in ("status", "table_list", "cache_limit", "schema"):
        for version in (1, 3):
            other = body(groonga, get(f"/d/{command}", [("command_version", version)]))
            with pytest.raises(QueryError, match="answer is JSON, but not the answer of a select"):
                read_answers(other, "answer")


def test_requests_that_are_made_of_terms_find_what_the_terms_came_from(groonga: Deployment) -> None:
    made = filler("/d/select?table=Stores&output_columns=_key&filter=_key%3D%3D%22{term}%22")
    for key in KEYS:
        path = made(key)
        found = read_answers(body(groonga, f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()), key)
        assert list(values(found, 0)) == [key]


def test_the_elements_of_a_vector_are_terms_and_what_is_empty_is_none(groonga: Deployment) -> None:
    found = read_answers(select(groonga), "answer")
    assert list(take_terms(values(found, "tags"))) == ["a b", "c", "c", "d"]
    assert list(take_terms(values(found, "tags"), distinct=True)) == ["a b", "c", "d"]
    assert list(take_terms(values(found, "n"), limit=2)) == ["0", "1"]
    odd = [None, "", "  ", True, 1.5, {"heavy": 3, "light": 1}, "two\r\nlines"]
    assert list(take_terms(odd)) == ["true", "1.5", "heavy", "light", "two lines"]


def test_the_verb_reads_files_and_standard_input(
    groonga: Deployment,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, two = tmp_path / "1.json", tmp_path / "2.json"
    one.write_bytes(select(groonga, command_version=1))
    two.write_bytes(select(groonga, command_version=3))
    assert run(capsys, one, two, column="_key") == [*KEYS, *KEYS]
    assert run(capsys, one, two, column="1", distinct=True, limit=3) == list(KEYS[:3])
    assert run(capsys, one, column="_key", escape=True) == [quote_plus(k) for k in KEYS]
    assert run(capsys, one, column="_key", sanitize=True)[-1] == "a b c"
    assert run(capsys, one, column="_key", words=True, limit=4) == ["1st", "avenue", "more", "more"]
    both = one.read_bytes() + b"\n" + two.read_bytes() + b"\n"
    stdin = SimpleNamespace(buffer=io.BytesIO(both), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", stdin)
    assert run(capsys, column="_key") == [*KEYS, *KEYS]
    out = tmp_path / "requests.txt"
    assert run(capsys, one, column="_key", template="/s?q={term}", out=out) == []
    assert out.read_text().splitlines() == [f"/s?q={quote(k, safe='')}" for k in KEYS]


def test_terms_come_out_of_documents_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "books.jsonl"
    rows = [{"id": "1", "title": "The Art", "pages": 3}, {"id": "2", "title": "the art; II"}]
    path.write_bytes(b"".join(orjson.dumps(r) + b"\n" for r in rows))
    assert run(capsys, corpus=path, field="title") == ["The Art", "the art; II"]
    assert run(capsys, corpus=path, field="title", words=True, distinct=True) == [
        *("the", "art", "ii"),
    ]
    assert run(capsys, corpus=path, field="id") == ["1", "2"]
    with pytest.raises(QueryError, match=r"no field 'author'; there are: id, .*title"):
        extract(corpus=path, field="author")
    with pytest.raises(QueryError, match="not both"):
        extract(path, corpus=path)
    with pytest.raises(QueryError, match="--field names a field of the documents"):
        extract(path, field="title")


def test_nothing_to_take_is_said_with_the_reason(groonga: Deployment, tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    path.write_bytes(select(groonga, limit=0))
    kept = tmp_path / "kept.txt"
    kept.write_text("of before")
    with pytest.raises(QueryError, match="there is no term"):
        extract(path, out=kept)
    assert kept.read_text() == "of before"
    with pytest.raises(QueryError, match=r"records: 0 of 5 hits .*`limit`"):
        extract(path)
    with pytest.raises(QueryError, match="one term at least"):
        extract(path, limit=0)
    with pytest.raises(QueryError, match="cannot be read: No such file"):
        extract(tmp_path / "missing.json")
    path.write_bytes(select(groonga))
    with pytest.raises(QueryError, match="cannot be written: No such file"):
        extract(path, out=tmp_path / "missing" / "terms.txt")
    packed = tmp_path / "cut.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes())[:-20])
    with pytest.raises(QueryError, match=r"cut.json.gz cannot be read"):
        extract(packed)
    with pytest.raises(QueryError, match="no column title; there are: 0 _id, 1 _key, 2 n, 3 tags"):
        extract(path, column="title")
    with pytest.raises(QueryError, match="no column 4; there are"):
        extract(path, column="4")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b" \n", "answer is empty"),
        (b"<html>", "answer is XML or HTML"),
        (b"[[0,1,", "answer is no JSON"),
        (b"fox\nhound\n", "answer is no JSON"),
        (b'[[0,1,2],[[[1],[["a","b"]],["x"]]]]\n{"a"\n', "answer:2 is no JSON"),
        (b"3", "not the answer of a select"),
        (b"{}", "not the answer of a select"),
        (b"[[0,1,2]]", "not the answer of a select"),
        (b'[[0,1,2],[[[1],["a"],["x"]]]]', "not the answer of a select"),
        (b'[[0,1,2],[[[1],[["a","b"]],["x","y"]]]]', "answer: record 1 has not one value"),
        (b'[[0,1,2],[[[1],[["a","b"]],["x\xff"]]]]', "answer is no JSON"),
        (b'{"header":{"return_code":-1},"body":null}', r"no reason given \(return code -1\)"),
    ],
)
def test_what_is_no_answer_is_refused_in_one_sentence(text: bytes, sentence: str) -> None:
    with pytest.raises(QueryError, match=sentence) as told:
        read_answers(text, "answer")
    assert "\n" not in str(told.value)


def test_terms_that_cannot_stand_in_a_statement_are_left_out_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "terms.json"
    terms = ["o'neil", "fox", "it's", "back\\slash"]
    path.write_bytes(orjson.dumps([[0, 1, 2], [[[4], [["term", "Text"]], *([t] for t in terms)]]]))
    how = {"template": "SELECT id FROM a WHERE MATCH('{term}')"}
    assert extract(path, **how) == 0
    said = capsys.readouterr()
    assert said.out == "SELECT id FROM a WHERE MATCH('fox')\n"
    assert said.err.startswith('1 requests\n3 terms are left out; the first: "o\'neil" has a quote')
    assert extract(path, dialect="mysql", **how) == 0
    assert capsys.readouterr().out.splitlines() == [
        r"SELECT id FROM a WHERE MATCH('o\'neil')",
        "SELECT id FROM a WHERE MATCH('fox')",
        r"SELECT id FROM a WHERE MATCH('it\'s')",
        r"SELECT id FROM a WHERE MATCH('back\\slash')",
    ]
    with pytest.raises(QueryError, match="--dialect is for the SQL of a --template"):
        extract(path, dialect="mysql")
