"""A term in a template is escaped by where it stands, and comes back as it was."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchbench.errors import QueryError
from searchbench.workload.verbatim.build import BadRequest, Builder
from searchbench.workload.verbatim.files import read_requests
from searchbench.workload.verbatim.sql import read_sql
from searchbench.workload.verbatim.template import filler

# A term is one line: the CLI makes spaces of line breaks.
TERMS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]))


def test_a_term_in_a_path_is_percent_encoded() -> None:
    fill = filler("/d/select?table=T&query={term}&again={term}&limit=1")
    assert fill("a b") == "/d/select?table=T&query=a%20b&again=a%20b&limit=1"
    assert fill("日&+") == "/d/select?table=T&query=%E6%97%A5%26%2B&again=%E6%97%A5%26%2B&limit=1"


def test_a_term_in_a_statement_is_a_literal_or_stands_within_one() -> None:
    statement = "SELECT {term} FROM t WHERE MATCH('@title {term} it''s') AND a = '{'"
    assert filler(statement)("fox") == (
        "SELECT 'fox' FROM t WHERE MATCH('@title fox it''s') AND a = '{'"
    )
    assert filler(statement, "standard")("o'x") == (
        "SELECT 'o''x' FROM t WHERE MATCH('@title o''x it''s') AND a = '{'"
    )
    assert filler("SELECT {term}, '{term}'", "mysql")("a\\'b") == (
        "SELECT 'a\\\\\\'b', 'a\\\\\\'b'"
    )


def test_a_quote_or_a_backslash_is_not_written_where_it_may_mean_something_else() -> None:
    with pytest.raises(BadRequest, match=r"has a quote.*--dialect mysql .* or --dialect standard"):
        filler("SELECT '{term}'")("o'x")
    for dialect in (None, "standard"):
        with pytest.raises(BadRequest, match=r"has a backslash.*give --dialect mysql"):
            filler("SELECT '{term}'", dialect)("a\\")  # type: ignore[arg-type]
    for place in ['"{term}"', "`a{term}`"]:
        with pytest.raises(QueryError, match="a term stands bare or in single quotes"):
            filler(f"SELECT 'x', {place}")


def test_a_term_in_a_body_is_escaped_as_json_wherever_it_stands() -> None:
    term = 'a"b\\\n'
    fill = filler(
        '{"path": "/{term}/_search", "headers": {"X-Kind": "{{term}}"}, '
        '"body": {"query": {"match": {"t": "{term}"}}, "size": 3, "{term}": [true, "x {term}"]}}'
    )
    assert json.loads(fill(term)) == {
        "path": "/a%22b%5C%0A/_search",
        "headers": {"X-Kind": "{term}"},
        "body": {
            "query": {"match": {"t": term}},
            "size": 3,
            term: [True, f"x {term}"],
        },
    }
    as_text = {"path": "/s", "body": '{"a": {term}, "b": "x {term}", "c": {"d": {"e": 1}}}'}
    found = json.loads(filler(json.dumps(as_text))(term))
    assert json.loads(found["body"]) == {"a": term, "b": f"x {term}", "c": {"d": {"e": 1}}}


def test_a_form_in_a_body_is_percent_encoded() -> None:
    fill = filler('{"path": "/s", "body": "table=T&query={term}"}')
    assert json.loads(fill("a b&c")) == {"path": "/s", "body": "table=T&query=a%20b%26c"}


def test_an_object_can_be_a_statement() -> None:
    assert json.loads(filler('{"sql": "SELECT {term}"}')("a")) == {"sql": "SELECT 'a'"}


def test_braces_that_are_meant_are_doubled_or_are_no_word() -> None:
    fill = filler("/a?q={{term}}&r={term}&s={}&t={1}")
    assert fill("x") == "/a?q={term}&r=x&s={}&t={1}"


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("/a?q=term", r"no place for the term: write \{term\}"),
        ("/a?q={word}", r"has \{word\}, and there is only \{term\}"),
        ('{"path": "/x", "body": [{"d": "{c}"}], "headers": {"a": "{term}"}}', r"has \{c\}"),
        ('{"path": "/a?q={term}"', r"the template is not JSON: .*column"),
        ('{"pth": "/{term}"}', "the template: `pth` is not known here; did you mean"),
        ('{"body": "{term}"}', "the template: it has no `path`"),
        ("/a b?q={term}", "the template: a space in the path"),
        ("s?q={term}", "is neither a path, which begins with '/', nor an SQL statement"),
    ],
)
def test_a_template_that_is_none_is_refused_with_the_reason(template: str, sentence: str) -> None:
    with pytest.raises(QueryError, match=sentence):
        filler(template)


@given(TERMS)
def test_every_term_comes_back_from_a_path_as_it_was(term: str) -> None:
    path = filler("/s?q={term}")(term)
    assert unquote(path.removeprefix("/s?q="), errors="strict") == term


@given(TERMS)
def test_every_term_comes_back_from_a_body_as_it_was(term: str) -> None:
    for body in ({"q": "-{term}-"}, '{"q": "-{term}-"}'):
        line = json.loads(filler(json.dumps({"path": "/", "body": body}))(term))
        found = line["body"] if isinstance(body, dict) else json.loads(line["body"])
        assert found["q"] == f"-{term}-"


@given(TERMS)
def test_every_term_comes_back_from_a_statement_of_mysql_as_it_was(term: str) -> None:
    statement = filler("SELECT '{term}'", "mysql")(term)
    builder = Builder("made.sql")
    read_sql(statement + ";\n", builder)
    (ask,) = builder.index
    literal = ask.text.removeprefix("SELECT '").removesuffix("'")
    assert re.sub(r"\\(.)", r"\1", literal) == term


def test_what_is_made_is_read_as_requests(tmp_path: Path) -> None:
    templates = {
        "paths": "/s?q={term}",
        "sql": "SELECT id FROM t WHERE MATCH('{term}');",
        "jsonl": '{"path": "/s", "body": {"q": "{term}"}}',
    }
    terms = ["it's", "a b", "100%", "日本"]
    for kind, template in templates.items():
        file = tmp_path / f"requests.{kind}"
        fill = filler(template, "mysql")
        file.write_text("".join(fill(term) + "\n" for term in terms))
        assert read_requests(file).distinct == len(terms)
