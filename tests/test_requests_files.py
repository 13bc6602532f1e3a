import bz2
import gzip
import re

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchbench.engines.http_form import quoted
from searchbench.errors import QueryError
from searchbench.workload.verbatim import sql
from searchbench.workload.verbatim.build import BadRequest, fit_path
from searchbench.workload.verbatim.files import FORMS, form_of, read_requests
from searchbench.workload.verbatim.model import Ask


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def test_a_file_of_paths_is_a_request_a_line(write):
    found = read_requests(write("r.txt", "/d/select?table=A\n\n/b\r\n  /d/select?table=A\t\n/c"))
    assert [ask.text for ask in found.asks] == ["/d/select?table=A", "/b", "/c"]
    assert found.log.tolist() == [0, 1, 0, 2]
    assert (found.name, found.groups, found.times_s, found.bad_count) == ("r.txt", (), None, 0)


def test_a_line_can_name_its_own_target(write):
    lines = "http://h.example:8080/a?b\nhttp://h.example\nhttp://[::1]:81?x=1\nHTTP://h/c"
    assert read_requests(write("r.txt", lines)).asks == (
        Ask("/a?b", host="h.example", port=8080),
        Ask("/", host="h.example", port=80),
        Ask("/?x=1", host="::1", port=81),
        Ask("/c", host="h", port=80),
    )


def test_what_is_not_ascii_is_escaped_and_escapes_stay(write):
    found = read_requests(write("r.txt", "/s?q=日本&r=%E6%97%A5%zz+a\n"))
    assert found.asks[0].text == "/s?q=%E6%97%A5%E6%9C%AC&r=%E6%97%A5%zz+a"


BAD_PATHS = {
    "/d/select?query=a b": r"a space in the path.*write %20.*Groonga closes the connection",
    "/a\tb": r"a control character .*write %09",
    "# a comment": r"'# a comment' is not a path: a path begins with /",
    "select": r"is not a path",
    "https://h/a": r"write the path alone, and https:// in the target",
    "http://h:99999/a": r"not a number from 1 to 65535",
    "http://h:/a": r"not a number from 1 to 65535",
    "http:///a": r"a URL is http://HOST:PORT/PATH",
    "http://h:80x/a": r"a URL is http://HOST:PORT/PATH",
    "POST /a": r"begins with a method.*JSONL",
}


@pytest.mark.parametrize(("line", "reason"), BAD_PATHS.items())
def test_a_line_that_cannot_be_sent_is_refused_with_its_number_and_the_remedy(write, line, reason):
    with pytest.raises(QueryError, match=r"^1 line is no request: r\.txt:3: .*" + reason):
        read_requests(write("r.txt", f"/a\n\n{line}\n/b\n"))


def test_a_line_that_is_not_utf_8_is_told_by_its_byte(write):
    with pytest.raises(QueryError, match=r"r\.txt:2: not UTF-8 at byte 3"):
        read_requests(write("r.txt", b"/a\n/b\xff\n"))


def test_many_bad_lines_are_counted_and_the_first_are_named(write):
    path = write("r.txt", "/a\n" + "x\n" * 30)
    with pytest.raises(QueryError, match=r"^30 lines are no request: r\.txt:2: .*; and 25 more$"):
        read_requests(path)
    with pytest.raises(QueryError, match="none is left"):
        read_requests(write("s.txt", "http:///a\n"))


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_every_path_is_fit_for_a_request_line_or_refused(text):
    try:
        path, _, _ = fit_path("/" + text)
    except BadRequest:
        assert any(c <= " " or c == "\x7f" for c in text)
    else:
        assert path.isascii()
        assert path.isprintable()
        assert " " not in path


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_everything_but_the_unreserved_characters_is_escaped(text):
    plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
    spelled_out = "".join(chr(b) if b in plain else f"%{b:02X}" for b in text.encode())
    assert quoted(text) == spelled_out


def test_json_lines_say_everything_of_a_request(write):
    lines = [
        {"path": "/a", "t": 10.5},
        {"path": "/b", "method": "put", "body": {"q": "ä"}, "headers": {"X-A": "b"}, "t": 10.5},
        {"path": "/c", "body": "a=b", "timeout": 0.25, "host": "h", "port": 81, "t": 12},
        {"sql": " SELECT 1; ", "t": 13},
        {"path": "/a", "t": 14},
    ]
    text = b"\n".join(orjson.dumps(line) for line in lines)
    found = read_requests(write("r.jsonl", text))
    assert found.asks == (
        Ask("/a"),
        Ask("/b", "PUT", '{"q":"ä"}'.encode(), (("X-A", "b"),)),
        Ask("/c", "POST", b"a=b", host="h", port=81, timeout_s=0.25),
        Ask("SELECT 1"),
    )
    assert found.log.tolist() == [0, 1, 2, 3, 0]
    assert found.times_s.tolist() == [0, 0, 1.5, 2.5, 3.5]


BAD_JSONL = {
    '{"path": "/a"': r"not JSON: .* \(column 1\d\)",
    '["/a"]': r'a line is an object, {"path": "/.."} or {"sql": ".."}, not \["/a"\]',
    '{"sql": 1}': r"`sql` must be a statement, not 1",
    '{"sql": "SELECT 1", "body": "x"}': r"`body` is for HTTP",
    '{"method": "GET"}': r"no `path` and no `sql`",
    '{"path": 1}': r"`path` must be a string, not 1",
    '{"path": "/a", "pth": 1}': r"`pth` is not known here; did you mean `path`\?",
    '{"path": "/a", "method": "G T"}': r"`method` must be a word",
    '{"path": "/a", "headers": ["A"]}': r"`headers` must be an object",
    '{"path": "/a", "headers": {"A b": "c"}}': r"'A b' cannot be the name of a header",
    '{"path": "/a", "headers": {"A": "b\\r\\nC: d"}}': r"header `A` must be a string of one line",
    '{"path": "/a", "t": "soon"}': r"`t` must be a number of seconds",
    '{"path": "/a", "t": 0.5}': r"`t` goes back, from 1 \(line 1\) to 0\.5; sort",
}


@pytest.mark.parametrize(("line", "reason"), BAD_JSONL.items())
def test_a_broken_json_line_is_told_with_its_number(write, line, reason):
    with pytest.raises(QueryError, match=r"r\.jsonl:2: .*" + reason):
        read_requests(write("r.jsonl", f'{{"path": "/a", "t": 1}}\n{line}\n'))


@pytest.mark.parametrize("line", ['{"text": "a", "match": "any"}', '{"match": {"terms": ["a"]}}'])
def test_a_file_of_words_is_told_once_with_what_replays_them(write, line):
    path = write("words.jsonl", f"\n{line}\n{line}\n")
    with pytest.raises(QueryError) as said:
        read_requests(path)
    assert str(said.value).startswith(f"{path}:2: these are words to search for, not a req")
    assert f'[queries] file = "{path}"' in str(said.value)
    assert str(said.value).count("words.jsonl:") == 1


def test_times_are_for_all_requests_or_for_none(write):
    with pytest.raises(QueryError, match="1 of 2 requests have no time `t`"):
        read_requests(write("r.jsonl", '{"path": "/a", "t": 1}\n{"path": "/b"}\n'))


def statements(write, text):
    return [ask.text for ask in read_requests(write("r.sql", text)).asks]


def test_statements_end_with_a_semicolon_at_the_end_of_a_line(write):
    text = "SELECT a\n  FROM t; -- the first\n\nSELECT b; SELECT c ;\r\n SELECT d"
    assert statements(write, text) == ["SELECT a\n  FROM t", "SELECT b", "SELECT c", "SELECT d"]


def test_without_any_a_statement_is_a_line(write):
    assert statements(write, "SELECT a\n\n  SELECT b\nSELECT ';'\n") == [
        "SELECT a",
        "SELECT b",
        "SELECT ';'",
    ]


def test_what_stands_in_quotes_and_comments_ends_nothing(write):
    text = (
        "-- a comment; with a semicolon\n# another;\n/* and\na third; */\n"
        "SELECT 'a;\n''b\\';', \";\", `;` /* hint; */ FROM t -- not; here\n WHERE a = 1;\n"
        "/*! SELECT */ 5;\n"
        "SELECT a #> '{b}' FROM t;\n"
        "SELECT 1--1;\n"
    )
    assert statements(write, text) == [
        "SELECT 'a;\n''b\\';', \";\", `;` /* hint; */ FROM t -- not; here\n WHERE a = 1",
        "/*! SELECT */ 5",
        "SELECT a #> '{b}' FROM t",
        "SELECT 1--1",
    ]


def test_a_quote_that_is_not_closed_is_told_with_its_line(write):
    with pytest.raises(QueryError, match=r"r\.sql:3: a quote ' is opened here and not closed"):
        read_requests(write("r.sql", "SELECT 1;\n\nSELECT 'a;\nSELECT 2;\n"))
    with pytest.raises(QueryError, match=r"r\.sql:2: a comment /\* is opened"):
        read_requests(write("r.sql", "SELECT 1\nSELECT /* 2\nSELECT 3\n"))


def test_several_statements_in_a_line_need_the_semicolon_at_its_end(write):
    with pytest.raises(QueryError, match=r"r\.sql:2: several statements on one line"):
        read_requests(write("r.sql", "SELECT 1\nSELECT 2; SELECT 3\n"))


def test_a_forgotten_semicolon_is_told_with_the_line_of_the_next_statement(write):
    with pytest.raises(QueryError, match=r"r\.sql:4: a SELECT begins here"):
        read_requests(write("r.sql", "SELECT 1;\n\nSELECT a FROM t\nSELECT b FROM t;\n"))


def test_a_select_within_a_statement_is_none_of_its_own(write):
    text = (
        "SELECT a\nUNION ALL -- and\nSELECT b\nEXCEPT\n(\nSELECT c\n);\n"
        "SELECT a FROM t WHERE b IN (\n  SELECT c);\nINSERT INTO t\nSELECT '\nSELECT';\n"
        "WITH a AS (SELECT 1)\nSELECT * FROM a;\n"
    )
    assert len(statements(write, text)) == 4


def test_a_path_is_no_statement(write):
    with pytest.raises(QueryError, match=r"r\.sql:1: '/d/select' is a path"):
        read_requests(write("r.sql", "/d/select\n"))


LITERALS = st.text("a';\\-#/*\n\"` ", max_size=8)


@given(st.lists(LITERALS, min_size=1, max_size=5))
def test_statements_come_back_as_they_were_written(tmp_path_factory, texts):
    written = ["SELECT '" + t.replace("\\", "\\\\").replace("'", "''") + "'" for t in texts]
    path = tmp_path_factory.mktemp("sql") / "r.sql"
    path.write_bytes(";\n".join(written).encode() + b";\n")
    found = read_requests(path)
    assert [found.asks[n].text for n in found.log] == written


@given(st.text(st.sampled_from("aS;;\n\n '\"`\\-#/*!+"), max_size=40))
def test_statements_told_at_once_are_those_told_token_by_token(text):
    at_once = list(sql._statements(text, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sql, "_SIMPLE", re.compile(r"(?!)()"))
        assert list(sql._statements(text, 1)) == at_once


PACKINGS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda raw: pa.compress(raw, "zstd", asbytes=True),
}


@pytest.mark.parametrize("suffix", PACKINGS)
@pytest.mark.parametrize(
    ("name", "text"),
    [("r.txt", "/a\n/b\n"), ("r.json", '["/a", "/b"]'), ("r.sql", "SELECT 1;\nSELECT 2;\n")],
)
def test_packed_files_are_read_as_the_others(write, name, text, suffix):
    found = read_requests(write(name + suffix, PACKINGS[suffix](text.encode())))
    assert found.digest == read_requests(write(name, text)).digest
    assert found.distinct == 2


@pytest.mark.parametrize("name", ["r.txt.gz", "r.json.gz", "r.sql.gz", "r.jsonl.gz"])
def test_a_packed_file_that_was_cut_short_is_told(write, name):
    rng = np.random.default_rng(1)
    whole = gzip.compress("".join(f"/{n}\n" for n in rng.integers(0, 2**60, 9999)).encode())
    with pytest.raises(QueryError, match="damaged"):
        read_requests(write(name, whole[: len(whole) // 2]))


TOLD = {
    "paths": "/d/select\n",
    "a URL": "http://h/a\n",
    "blank lines first": "\n" * 200 + "/a\n",
    "a byte order mark": "\ufeff/a\n",
    "json": '\n [\n"/a"]',
    "json in a line": '{"g": ["/a"]}',
    "jsonl": '{"path": "/a"}\n{"path": "/b"}\n',
    "jsonl of one line": '{"sql": "SELECT 1"}\n',
    "sql": "select 1;\n",
    "sql with a comment": "/* all;\nof it */\nSELECT 1;\n",
    "sql with a remark": "-- x\nWITH a AS (SELECT 1) SELECT * FROM a;\n",
    "access": '1.2.3.4 - - [21/Nov/2026:04:02:46 +0000] "GET / HTTP/1.1" 200 5\n',
    "groonga": "2026-11-20 20:06:33.301210|0x7fd8667fe940|>/d/select?table=A\n",
    "sphinxql": "/* Fri Nov 20 20:40:01.065 2026 conn 6 real 0.002 */ SELECT 1;\n",
    "mysql": "2026-11-20T20:39:57.302123Z\t    6 Query\tSELECT 1\n",
}


@pytest.mark.parametrize(("what", "text"), TOLD.items())
def test_the_form_is_told_by_the_content(write, what, text):
    form = {"a": "paths", "blank": "paths"}.get(what.split()[0], what.split()[0])
    assert form_of(write("r.log", text)) == form
    assert read_requests(write("r", text)).logged >= 1


def test_the_name_goes_first_and_json_lines_in_a_json_file_are_lines(write):
    assert form_of(write("r.sql", "/a\n")) == "sql"
    assert form_of(write("r.NDJSON", "/a\n")) == "jsonl"
    assert form_of(write("r.json", '{"path": "/a"}\n{"path": "/b"}\n')) == "jsonl"
    assert form_of(write("r.json", "/a\n")) == "json"


def test_what_cannot_be_told_is_said_with_the_forms_there_are(write):
    with pytest.raises(QueryError, match=r"'big red boat'.*a path a line.*--form\): paths, json"):
        read_requests(write("r.txt", "big red boat\n"))
    with pytest.raises(QueryError, match=r"'jsn' is not a form .*there are auto, paths"):
        read_requests(write("r.txt", "/a\n"), "jsn")
    plain = "[Fri Nov 20 20:39:57.302 2026] 0.003 sec 0.003 sec [bool/0/rel 1 (20,10)] [i] a b\n"
    with pytest.raises(QueryError, match=r"Sphinx's plain log.*query_log_format = sphinxql"):
        read_requests(write("query.log", plain))


@pytest.mark.parametrize("form", ["auto", *FORMS])
@pytest.mark.parametrize("text", ["", "\n \n\n"])
def test_an_empty_file_is_an_error_that_says_what_was_expected(write, form, text):
    with pytest.raises(QueryError, match=r"empty; expected|has no requests; (expected|none)"):
        read_requests(write("r.txt", text), form)


@pytest.mark.parametrize("form", ["auto", "paths", "json", "sql"])
def test_a_file_that_is_not_there_is_one_sentence(tmp_path, form):
    with pytest.raises(QueryError, match=r"cannot be read: No such file"):
        read_requests(tmp_path / "none.txt", form)
