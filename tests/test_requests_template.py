import csv
import io
import json
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchbench.engines import mysql_form
from searchbench.errors import QueryError
from searchbench.workload.verbatim.model import Ask
from searchbench.workload.verbatim.template import expand, read_terms

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def texts(found):
    return [found.asks[n].text for n in found.log]


def test_a_term_in_a_path_is_percent_encoded(tmp_path):
    found = expand("/d/select?table=T&query={term}&limit=1", ["a b", "日&", "a b"])
    assert texts(found) == [
        "/d/select?table=T&query=a%20b&limit=1",
        "/d/select?table=T&query=%E6%97%A5%26&limit=1",
        "/d/select?table=T&query=a%20b&limit=1",
    ]
    assert found.distinct == 2


def test_a_term_in_a_statement_is_a_literal_or_stands_within_one():
    statement = "SELECT {term} FROM t WHERE MATCH('@title {term} it''s') AND a = '{'"
    assert texts(expand(statement, ["o'x"])) == [
        "SELECT 'o''x' FROM t WHERE MATCH('@title o''x it''s') AND a = '{'"
    ]
    assert texts(expand("SELECT {term}, '{term}'", ["a\\'b"], quote=mysql_form.quoted)) == [
        "SELECT 'a\\\\\\'b', 'a\\\\\\'b'"
    ]


def test_what_would_be_quoted_wrongly_is_refused():
    with pytest.raises(QueryError, match=r"term 2: .* has a backslash.*give the way of quoting"):
        expand("SELECT {term}", ["a", "b\\"])
    for place in ['"{term}"', "`a{term}`"]:
        with pytest.raises(QueryError, match="a term stands bare or in single quotes"):
            expand(f"SELECT 'x', {place}", ["a"])
    with pytest.raises(QueryError, match="which is no literal"):
        expand("SELECT {term}", ["a"], quote=lambda term: f"E'{term}'")


def test_a_term_in_a_body_is_escaped_as_json_wherever_it_stands():
    as_object = {
        "path": "/{index}/_search",
        "body": {"query": {"match": {"t": "{term}"}}, "size": 3, "{term}": [True, "x {term}"]},
        "headers": {"X-Term": "{index}"},
    }
    row = {"term": 'a"b\\\n', "index": "i 1"}
    truth = {"query": {"match": {"t": 'a"b\\\n'}}, "size": 3, 'a"b\\\n': [True, 'x a"b\\\n']}
    for template in (as_object, json.dumps(as_object)):
        (ask,) = expand(template, [row]).asks
        assert (ask.text, ask.method, ask.headers) == (
            "/i%201/_search",
            "POST",
            (("X-Term", "i 1"),),
        )
        assert json.loads(ask.body) == truth
    as_text = {"path": "/s", "body": '{"a": {term}, "b": "x {term}", "c": {"d": {"e": 1}}}'}
    (ask,) = expand(as_text, [row]).asks
    assert json.loads(ask.body) == {
        "a": 'a"b\\\n',
        "b": 'x a"b\\\n',
        "c": {"d": {"e": 1}},
    }


def test_a_form_in_a_body_is_percent_encoded():
    (ask,) = expand({"path": "/s", "body": "table=T&query={term}"}, ["a b&c"]).asks
    assert ask == Ask("/s", "POST", b"table=T&query=a%20b%26c")


def test_an_object_can_be_a_statement():
    assert texts(expand({"sql": "SELECT {term}"}, ["a"])) == ["SELECT 'a'"]


def test_an_unknown_place_is_an_error_that_names_the_known_ones():
    with pytest.raises(QueryError, match=r"has \{word\}, and the terms have \{term\}"):
        expand("/a?q={word}", ["a"])
    with pytest.raises(QueryError, match=r"has \{c\}, and the terms have \{a\}, \{b\}"):
        expand({"path": "/x", "body": [{"d": "{c}"}]}, [{"a": "1", "b": "2"}])
    with pytest.raises(QueryError, match=r"no place for a term; write \{term\}"):
        expand("/a?q=term", ["a"])


def test_braces_that_are_meant_are_doubled_or_are_no_word():
    assert texts(expand("/a?q={{term}}&r={term}&s={}&t={1}", ["x"])) == [
        "/a?q={term}&r=x&s={}&t={1}"
    ]


def test_a_template_that_is_none_is_told():
    with pytest.raises(QueryError, match=r"the template is not JSON: .*column"):
        expand('{"path": "/a?q={term}"', ["a"])
    with pytest.raises(QueryError, match="the template: `pth` is not known here; did you mean"):
        expand({"pth": "/{term}"}, ["a"])
    with pytest.raises(QueryError, match="term 1: a space in the path"):
        expand("/a b?q={term}", ["a"])
    with pytest.raises(QueryError, match="there are no terms to fill in"):
        expand("/a?q={term}", [])


@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_every_term_comes_back_from_a_path_as_it_was(terms):
    found = expand("/s?q={term}", terms)
    assert [unquote(text.removeprefix("/s?q="), errors="strict") for text in texts(found)] == terms


@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_every_term_comes_back_from_a_body_as_it_was(terms):
    for body in ({"q": "-{term}-"}, '{"q": "-{term}-"}'):
        found = expand({"path": "/", "body": body}, terms)
        bodies = [json.loads(found.asks[n].body)["q"] for n in found.log]
        assert bodies == [f"-{term}-" for term in terms]


def test_terms_are_a_line_each_or_columns_by_their_heading(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    assert read_terms(write("a.txt", "a b\n\n c\n")) == ["a b", " c"]
    table = write("a.tsv", "term\tlimit\na b\t1\nc\t\n")
    assert read_terms(table) == [{"term": "a b", "limit": "1"}, {"term": "c", "limit": ""}]
    assert read_terms(table, "limit") == ["1", ""]
    assert read_terms(table, 0) == ["a b", "c"]
    found = expand("/s?q={term}&n={limit}", read_terms(table))
    assert texts(found) == ["/s?q=a%20b&n=1", "/s?q=c&n="]
    assert read_terms(write("b.csv", 'a,b\n"x, ""y""\nz",2\n'), "a") == ['x, "y"\nz']
    for name, column, reason in [
        ("a.tsv", "word", "no column 'word'; it has term, limit"),
        ("a.tsv", 2, "no column 2; it has 0 to 1"),
        ("a.txt", 1, "has no columns"),
    ]:
        with pytest.raises(QueryError, match=reason):
            read_terms(tmp_path / name, column)
    with pytest.raises(QueryError, match="row 3 has 1 fields, and the heading 2"):
        read_terms(write("c.csv", "a,b\n1,2\n3\n"))
    with pytest.raises(QueryError, match="has no terms; expected"):
        read_terms(write("d.csv", "a,b\n"))
    with pytest.raises(QueryError, match=r"e\.csv:2: "):
        read_terms(write("e.csv", 'a,b\n"1"x,2\n'))


CELLS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5))
def test_every_row_of_a_csv_comes_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([("one", "two"), *rows])
    path.write_bytes(out.getvalue().encode())
    assert [(row["one"], row["two"]) for row in read_terms(path)] == rows
