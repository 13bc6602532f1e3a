"""Methods that are not SQL: their texts, what is sent for a draw, and rows in replies of JSON."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from searchbench.engines import ENGINES
from searchbench.engines.dialects import Encoder, dialect_for
from searchbench.engines.http_form import split
from searchbench.engines.native import Native, rows_lie_at
from searchbench.errors import QueryError, Unsupported
from searchbench.lab.drive.operations import Digest
from searchbench.workload.operations.model import Operation, Sent, sent_for
from searchbench.workload.operations.paths import NoRows, read_rows_at
from searchbench.workload.operations.text import BadText, read_method

THREE = Operation("fetch", ("id", "name"), (([3, 1, 2], ["a b", 'c"', "d'"]),))
WRITTEN = """
# for people
# @before
PUT /docs/_settings
Content-Type: application/json

{"index": {"blocks": {}}}

### what is between
# @rows hits.hits: _id
POST /docs/_search?size={rows}&name={system.storage}

{"query": {"terms": {"id": [[each ", ": {id}]]}}}
###
# @each @ignored
GET /docs/{name}?of={id}
###
# @after
DELETE /x
"""


def sent(text: str, language: str = "http", engine: str = "opensearch") -> list[Sent]:
    dialect = dialect_for(ENGINES[engine], "http", language)
    statements = read_method(text, language)
    levers = {"storage": "innodb"}
    return list(sent_for(statements, THREE, 0, levers, dialect.literal, dialect.marker))


def exchanges(text: str, language: str = "http", engine: str = "opensearch") -> tuple[bytes, ...]:
    encoder = Encoder(dialect_for(ENGINES[engine], "http", language))
    return encoder.request(sent(text, language, engine)).exchanges


def test_requests_stand_as_in_a_file_that_an_editor_can_send() -> None:
    statements = read_method(WRITTEN, "http")
    assert [(s.line, s.when, s.each, s.ignored, s.rows) for s in statements] == [
        (4, "before", 0, False, ""),
        (11, "timed", 0, False, "hits.hits: _id"),
        (16, "timed", 1, True, ""),
        (19, "after", 0, False, ""),
    ]
    found = exchanges(WRITTEN)
    assert found[0] == (
        b"PUT /docs/_settings HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b'Content-Length: 25\r\n\r\n{"index": {"blocks": {}}}'
    )
    assert found[1].startswith(b"POST /docs/_search?size=3&name=innodb HTTP/1.1\r\n")
    assert found[1].endswith(b'{"query": {"terms": {"id": [3, 1, 2]}}}')
    # In a path a value is escaped; in a body it is JSON.
    assert [x.split(b" ")[1] for x in found[2:5]] == [
        b"/docs/a%20b?of=3", b"/docs/c%22?of=1", b"/docs/d%27?of=2",
    ]  # fmt: skip
    assert found[5] == b"DELETE /x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    assert b'["a b","c\\"","d\'"]' in exchanges('{"x": [[each ",": {name}]]}')[0]


def test_a_body_alone_goes_to_where_the_engine_takes_questions() -> None:
    body = '{"query": {"query_string": {"query": ""}}}'
    (found,) = exchanges(body, engine="sensei")
    assert found.startswith(b"POST /sensei HTTP/1.1\r\n")
    assert found.endswith(body.encode())
    assert exchanges(body)[0].startswith(b"POST /docs/_search HTTP/1.1\r\n")
    with pytest.raises(
        Unsupported, match="a request that is only a body does not say where it goes"
    ):
        exchanges("{}", engine="groonga")


def test_bql_is_carried_in_json_with_its_values_quoted() -> None:
    (found,) = exchanges(
        "-- for people\nSELECT * FROM car\nWHERE id IN ([each \", \": {id}]) "
        'AND name IN ([each ", ": {name}]);', "bql", "sensei",
    )  # fmt: skip
    said = orjson.loads(found.partition(b"\r\n\r\n")[2])["bql"]
    assert said == ("SELECT * FROM car\nWHERE id IN (3, 1, 2) AND name IN ('a b', 'c\"', 'd''')")
    with pytest.raises(Unsupported, match="OpenSearch cannot be asked in bql"):
        exchanges("SELECT 1", "bql")


@pytest.mark.parametrize(
    ("text", "language", "line", "said"),
    [
        ("SELECT 1", "http", 1, "'SELECT 1' does not begin a request: begin with method and path"),
        ("GET /x\nnonsense\n\n{}", "http", 2, "'nonsense' is not a header: put an empty line"),
        ('# x\n{"a": 1,\n "b": ]}', "http", 3, "the body is not JSON"),
        ("GET /x\n###\n# @before", "http", 3, "no request follows the mark @before"),
        ("# @each @prepared\nGET /x", "http", 2, "@prepared is only for SQL, and this is HTTP"),
        (
            "-- @connection\nSELECT 1; SELECT 2",
            "bql",
            2,
            "@connection is only for SQL, and this is BQL",
        ),
        ("-- @rows a: b\nSELECT 1", "sql", 2, "@rows is for replies in JSON; the rows of SQL"),
        ("# @rows hits..x\nGET /x", "http", 1, "'hits..x' should be keys joined by dots"),
        ("# @rows a\n# @rows b\nGET /x", "http", 2, "one request has @rows twice"),
        ("# @befor\nGET /x", "http", 1, "there is no mark @befor; the marks are @once, "),
    ],
)
def test_what_is_wrong_with_a_text_is_said_with_its_line(
    text: str, language: str, line: int, said: str
) -> None:
    with pytest.raises(BadText) as found:
        read_method(text, language)
    assert (found.value.line, said in found.value.sentence) == (line, True), found.value.sentence


REPLY: dict[str, Any] = {
    "hits": [
        {"_uid": 7, "color": ["red"], "price": ["0004000.5000"], "tags": ["a", "b"]},
        {"_uid": 8, "color": ["blue\tgreen"], "price": ["0000000012"], "name": None},
    ],
    "numhits": 2,
    "facets": {"color": [], "a.b": [{"value": True, "count": 1}]},
    "stored": '{"v": {"x": 1.5}}',
    "groonga": [[[2], [["_id", "UInt32"]], [1, "x"], [2, "y"]]],
}


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("numhits", [b"2"]),
        ("hits: _uid, color", [b"7\tred", b"8\tblue\\tgreen"]),
        ("hits: price as number, _uid", [b"4000.5\t7", b"12\t8"]),
        ("hits: name, tags", [b'\\N\t["a","b"]', b"\\N\t\\N"]),
        ("hits.1: _uid", [b"8"]),
        ("facets.color: value, count", []),
        ('facets."a.b": value, count', [b"1\t1"]),
        ("stored.v: x", [b"1.5"]),
        ("groonga.0.0", [b"2"]),
        ("groonga.0.2-", [b"1\tx", b"2\ty"]),
        ("groonga.0.2-: 1", [b"x", b"y"]),
    ],
)
def test_a_path_leads_to_rows_and_their_columns(path: str, lines: list[bytes]) -> None:
    assert list(read_rows_at(path).lines(REPLY)) == lines


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("facets.colour: value", "'facets.colour' is not in the reply: 'facets' of the reply has "
         "color, a.b"),
        ("hits: uid", "'uid' is not in a row of 'hits': a row of 'hits' has _uid, color, price, "),
        ("hits.2", "'hits' of the reply is a list of 2, whose places count from 0"),
        ("numhits.x", "'numhits' of the reply is '2'"),
        ("hits", "'hits' holds objects: say which of their keys are the columns, as in "
         "'hits: _uid'"),
    ],
)  # fmt: skip
def test_a_path_that_leads_nowhere_says_what_is_there(path: str, said: str) -> None:
    with pytest.raises(NoRows) as found:
        list(read_rows_at(path).lines(REPLY))
    assert said in str(found.value)


@pytest.mark.parametrize("path", ["", "a..b", "a: ", "a: b: c", "a, b", ".a", "a b"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(QueryError, match="is not a path to rows"):
        read_rows_at(path)


def _http(body: bytes, status: int = 200) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


def test_an_error_with_a_good_status_is_an_error_in_the_engines_own_words() -> None:
    cases = {
        "sensei": ({"errors": [{"errorType": "BQLParsingError", "message": "no"}], "hits": []},
                   "BQLParsingError: no"),
        "opensearch": ({"_shards": {"total": 2, "successful": 1, "failed": 1, "failures": [
            {"shard": 0, "reason": {"type": "x", "reason": "too many"}}]}}, "too many"),
        "groonga": ([[-22, 1.0, 0.1, "[select] no table"], []], "[select] no table"),
    }  # fmt: skip
    for name, (answer, words) in cases.items():
        native = ENGINES[name].native
        assert native is not None
        (said,) = native.rows_of(_http(orjson.dumps(answer)), (), lambda _: None)
        assert words in str(said), name
    (said,) = Native().rows_of(_http(b"<html>", 404), (), lambda _: None)
    assert said == "HTTP status 404"
    with pytest.raises(ValueError, match="the reply is not JSON"):
        list(Native().rows_of(_http(b"id,name"), [(read_rows_at("a"),)], lambda _: None))


def test_who_says_nothing_gets_the_rows_where_the_engine_has_them() -> None:
    native = ENGINES["opensearch"].native
    assert native is not None
    assert native.asks_here("http", "POST /docs/_search?size=3\n\n{}")
    assert not native.asks_here("http", "GET /docs/_count\n\n")
    assert [at.path.text for at in rows_lie_at(native, (), here=True)] == ["hits.hits"]
    assert [at.path.text for at in rows_lie_at(native, ["count"], here=True)] == ["count"]
    with pytest.raises(Unsupported, match="nothing says where the rows lie in its reply"):
        rows_lie_at(native, (), here=False)


def test_rows_that_are_only_counted_agree_whatever_they_are() -> None:
    found = []
    for rows in ([b"1", b"2"], [b"3", b"4"], [b"1"]):
        digest = Digest("count")
        for row in rows:
            digest.take(row)
        assert digest.first() == []
        found.append(digest.digest())
    assert found[0] == found[1] != found[2]


def test_several_replies_are_read_one_after_another() -> None:
    native = Native()
    replies = _http(b'{"a": [1, 2]}') + _http(b"done") + _http(b'{"b": 3}')
    rows: list[bytes] = []
    at = [(read_rows_at("a"),), None, (read_rows_at("b"),)]
    assert list(native.rows_of(replies, at, rows.append)) == [None, None, None]
    assert rows == [b"1", b"2", b"3"]
    assert len(split(replies)) == 3
