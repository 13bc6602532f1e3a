"""Classes of queries and requests: where they come from, what is kept of them, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from searchbench.errors import QueryError, SearchbenchError, StudyError
from searchbench.spec import show
from searchbench.study.read import parse_study
from searchbench.workload.load_table import classes_promised, parse_promise, promises_of
from searchbench.workload.queries.registry import SPEC_KEYS, open_queries, problems
from searchbench.workload.verbatim.classes import of_request
from searchbench.workload.verbatim.files import read_requests
from searchbench.workload.verbatim.model import Ask


def write(path: Path, *lines: Any) -> Path:
    path.write_text("".join(f"{x if isinstance(x, str) else json.dumps(x)}\n" for x in lines))
    return path


def test_a_line_names_its_class_and_the_same_words_in_two_classes_are_two_queries(
    tmp_path: Path,
) -> None:
    write(
        tmp_path / "q.jsonl",
        {"text": "red", "class": "autocomplete"}, {"text": "red", "class": "search"},
        {"text": "blue"}, {"text": "red", "class": "autocomplete"},
    )  # fmt: skip
    found = open_queries({"file": "q.jsonl"}, tmp_path)
    assert found.classes == ("autocomplete", "search", "")
    assert found.log.tolist() == [0, 1, 2, 0]
    other = open_queries({"file": "q.jsonl", "classes": "words"}, tmp_path)
    assert set(other.classes) == {"1 word"}
    assert other.digest != found.digest


def test_a_class_is_under_the_key_that_is_named_and_others_lines_have_one_too(
    tmp_path: Path,
) -> None:
    write(tmp_path / "q.jsonl", {"asked": "red", "kind": "a", "user": 7}, {"asked": "blue"})
    found = open_queries({"file": "q.jsonl", "text_key": "asked", "class_key": "kind"}, tmp_path)
    assert found.classes == ("a", "")


@pytest.mark.parametrize("bad", ["", 7, 'a"b', "x" * 4001, "a\nb"])
def test_what_is_no_name_of_a_class_makes_a_bad_line(tmp_path: Path, bad: Any) -> None:
    write(tmp_path / "q.jsonl", {"text": "red", "class": bad}, {"text": "blue", "class": "b"})
    found = open_queries({"file": "q.jsonl"}, tmp_path)
    assert found.classes == ("b",)
    assert str(found.bad[0]).startswith("q.jsonl:1: `class` must be a name")


def test_files_have_classes_by_name_and_a_line_overrides_its_file(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "re", "blu")
    write(tmp_path / "b.txt", "red shoe")
    write(tmp_path / "c.jsonl", {"text": "blue shoe"}, {"text": "green", "class": "rare"})
    spec = {"files": {"autocomplete": "a.txt", "search": ["b.txt", "c.jsonl"]}}
    assert not list(problems(spec))
    found = open_queries(spec, tmp_path)
    assert found.classes == ("autocomplete", "autocomplete", "search", "search", "rare")
    # A log made of them keeps the class of each.
    again = open_queries({**spec, "logged": 50, "repetition": "zipf"}, tmp_path)
    by_query = dict(zip(found.queries, found.classes, strict=True))
    assert all(by_query[q] == c for q, c in zip(again.queries, again.classes, strict=True))
    ((key, said),) = problems({"files": {'a"b': "a.txt"}})
    assert key == "files"
    assert "names a class in `files`, and must be a name without quotation marks" in said


def test_queries_are_classed_by_their_shape(tmp_path: Path) -> None:
    write(
        tmp_path / "q.jsonl",
        {"text": "red"},
        {"text": "red shoe box", "match": "phrase"},
        {"text": "a b c d e f g", "filters": [{"range": {"field": "price", "low": 1}}]},
        {"text": "red", "sort": ["-price"], "facets": ["colour"]},
    )
    by = {
        "words": ("1 word", "3 words", "6-10 words", "1 word"),
        "match": ("all", "phrase", "all", "all"),
        "filters": ("no filter", "no filter", "filter: price", "no filter"),
        "sort": ("by relevance", "by relevance", "by relevance", "by price"),
        "shape": ("all", "phrase", "all, filter: price", "all, by price, facets"),
    }
    for key, classes in by.items():
        assert open_queries({"file": "q.jsonl", "classes": key}, tmp_path).classes == classes
    key = next(k for k in SPEC_KEYS if k.name == "classes")
    assert key.mismatch("colour") is not None


def test_requests_name_their_class_and_groups_with_names_are_classes(tmp_path: Path) -> None:
    lines = write(
        tmp_path / "r.jsonl",
        {"path": "/a", "class": "x"}, {"path": "/a", "class": "y"}, {"sql": "SELECT 1"},
    )  # fmt: skip
    found = read_requests(lines)
    assert found.classes == ("x", "y", "")
    assert [line.get("class") for line in found.lines()] == ["x", "y", ""]
    groups = {"users": {"frequency": 0.6, "patterns": ["/u"]}, "items": ["/i", "/j"]}
    assert read_requests(write(tmp_path / "r.json", groups)).classes == ("users", "items", "items")
    unnamed = read_requests(write(tmp_path / "s.json", [{"patterns": ["/u"]}, ["/i"]]))
    assert unnamed.classes == ()
    assert "class" not in next(iter(unnamed.lines()))
    with pytest.raises(QueryError, match="`class` must be a name, not 7"):
        read_requests(write(tmp_path / "bad.jsonl", {"path": "/a", "class": 7}))


def test_requests_are_classed_as_logs_class_them(tmp_path: Path) -> None:
    path, statement = (
        Ask("/d/select.json?table=Docs&query=red+shoe&limit=10"),
        Ask("SELECT id FROM docs WHERE MATCH('red shoe') LIMIT 5"),
    )
    assert of_request(path, "path") == "GET /d/select.json"
    assert of_request(path, "shape") == "GET /d/select.json?table&query&limit"
    assert of_request(path, "words") == of_request(statement, "words") == "2 words"
    assert of_request(path, "parameter:table") == "table=Docs"
    assert of_request(path, "parameter:sortby") == "no sortby"
    assert of_request(statement, "path") == "SELECT"
    assert of_request(statement, "shape") == "select id from docs where match(?) limit ?"
    file = write(tmp_path / "r.txt", "/7/a?q=x", "/8/a?q=y", "/b")
    assert read_requests(file, classes="shape").classes == ("GET /N/a?q", "GET /N/a?q", "GET /b")


def test_a_promise_has_parts_for_classes() -> None:
    found = parse_promise('errors < 1%; autocomplete: p99 < 50ms, p50<5ms; "GET /a?q": p90 < 1s')
    assert [(c.of_class, c.text) for c in found] == [
        ("", "errors < 1%"),
        ("autocomplete", "autocomplete: p99 < 50ms"),
        ("autocomplete", "autocomplete: p50<5ms"),
        ("GET /a?q", "GET /a?q: p90 < 1s"),
    ]
    hard = parse_promise('"a; b, c": p99 < 5ms')
    assert [(c.of_class, c.text) for c in hard] == [("a; b, c", '"a; b, c": p99 < 5ms')]
    assert classes_promised(["p99 < 1s", "b: p99 < 1s; a: p99 < 1s; b: p50 < 1s"]) == ("b", "a")


def test_a_promise_as_a_table_is_the_same_as_its_text() -> None:
    table = {"autocomplete": "p99 < 50ms", "*": "errors < 1%", "a: b": "p99 < 1s, errors < 2%"}
    (text,) = promises_of({"slo": table})
    assert text == 'errors < 1%; autocomplete: p99 < 50ms; "a: b": p99 < 1s, errors < 2%'
    assert len(parse_promise(text)) == 4
    assert promises_of({"slo": [table, "p99 < 1s"]}) == (text, "p99 < 1s")


def test_what_is_wrong_in_a_part_is_named_with_its_place_and_class() -> None:
    for text, where in (
        ("p99 < 5ms; a: p99", "(character 15)"),
        ("a: p99 < 5ms; ", "(character 14)"),
    ):
        with pytest.raises(SearchbenchError) as wrong:
            parse_promise(text)
        assert "is not a promise" in str(wrong.value)
        assert where in str(wrong.value)
    with pytest.raises(SearchbenchError, match='for the class "a"'):
        parse_promise("a: fast")


STUDY = """
question = "?"
[requests]
file = "r.jsonl"
{requests}
[systems.it]
attach = "http://127.0.0.1:1"
[load]
clients = [1, 2]
{load}
"""


def read(tmp_path: Path, load: str = "", requests: str = "") -> Any:
    write(tmp_path / "r.jsonl", {"path": "/a", "class": "x"})
    return parse_study(STUDY.format(load=load, requests=requests), "study.toml", tmp_path)


def test_a_study_takes_promises_in_all_forms(tmp_path: Path) -> None:
    for given in (
        'slo = "x: p99 < 5ms"', 'slo = { x = "p99 < 5ms" }', 'slo = [{ x = "p99 < 5ms" }]',
        '[load.slo]\nx = "p99 < 5ms"',
    ):  # fmt: skip
        assert read(tmp_path, given).promises == ("x: p99 < 5ms",), given


@pytest.mark.parametrize(
    ("load", "requests", "said"),
    [
        ("slo = { x = 7 }", "", "`slo` must be a promise, a table with a promise for each class"),
        ('slo = { x = "fast" }', "", 'is not a promise; give for example'),
        ('slo = ["p99 < 5ms", { "*" = "p99 < 5ms" }]', "", "is the same promise as number 1"),
        ("", 'classes = "colour"', '`classes` must be one of path, shape, words, or '
         '"parameter:NAME"'),
        ("", 'classes = "parameter:"', "`classes` must be one of path"),
    ],
)  # fmt: skip
def test_a_study_with_a_wrong_class_or_promise_is_refused(
    tmp_path: Path, load: str, requests: str, said: str
) -> None:
    with pytest.raises(StudyError) as wrong:
        read(tmp_path, load, requests)
    assert said in str(wrong.value)
    assert show({}) == "a table"
