"""Translators against golden files: the bytes of each kind of query, and replies as they came.

After a change that is meant, delete the file and run the test: it fails and writes the file anew.
Then read the difference before committing it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import QUICK_START

from searchbench.corpora.corpus import Document, Field, FieldType, Schema
from searchbench.engines import ENGINES, defaults
from searchbench.errors import Unsupported
from searchbench.workload.queries.algebra import (
    Boolean,
    Facet,
    In,
    Mode,
    NotIn,
    Query,
    Range,
    Sort,
    Terms,
)

GOLDEN = Path(__file__).parent / "golden"
SCHEMA = Schema(
    (
        Field("title", FieldType.TEXT),
        Field("body", FieldType.TEXT, stored=False),
        Field("section", FieldType.KEYWORD),
        Field("price", FieldType.FLOAT),
    )
)
QUERIES = {
    "any": Query(Terms(Mode.ANY, ("red", "fox"))),
    "all in one field": Query(Terms(Mode.ALL, ("red", "fox"), ("title",)), limit=3, offset=6),
    "phrase": Query(Terms(Mode.PHRASE, ("schöner", "fuchs"))),
    "prefix": Query(Terms(Mode.PREFIX, ("fo",))),
    "fuzzy": Query(Terms(Mode.FUZZY, ("fxo",), distance=2)),
    "boolean": Query(
        Boolean(
            must=(Terms(Mode.ALL, ("fox",)),),
            should=(Terms(Mode.ANY, ("red", "blue")),),
            must_not=(Terms(Mode.PHRASE, ("lazy", "dog")),),
        )
    ),
    "everything": Query(
        None,
        filters=(
            Range("price", 1.5, None, include_low=False),
            In("section", ("net", "web")),
            NotIn("section", ("x",)),
        ),
        sort=(Sort("price", descending=True), Sort("_score")),
        facets=(Facet("section", 5),),
        group_by="section",
        fields=("title", "price"),
    ),
    "hostile": Query(Terms(Mode.ALL, ('"; drop', "\u0000", "</script>"))),
}


def compiled(name: str) -> dict[str, Any]:
    engine = ENGINES[name]
    found: dict[str, Any] = {}
    for title, query in QUERIES.items():
        try:
            request = engine.compile(query, SCHEMA, defaults(engine))
        except Unsupported as reason:
            found[title] = {"unsupported": str(reason)}
        else:
            found[title] = [exchange.decode("latin-1") for exchange in request.exchanges]
    batch = engine.batch(
        [Document("1", {"title": "é", "price": 0.1}), Document("ü", {})],
        0,
        SCHEMA,
        defaults(engine),
    )
    found["batch"] = [exchange.decode("latin-1") for exchange in batch.exchanges]
    created = engine.create(SCHEMA, defaults(engine))
    found["create"] = [e.decode("latin-1") for r in created for e in r.exchanges]
    argv = engine.service(defaults(engine), SCHEMA).argv
    found["argv"] = [word for word in argv if not word.endswith(QUICK_START[-1])]
    return found


@pytest.mark.parametrize("name", list(ENGINES))
def test_requests_are_those_of_the_golden_file(name: str) -> None:
    path = GOLDEN / f"{name}.json"
    found = compiled(name)
    if not path.exists():
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        pytest.fail(f"{path} was not there; it is now: read it before you commit it")
    assert found == json.loads(path.read_text())


# Replies as the hosts sent them: status, host nanoseconds and payload.
OK = (
    b'{"total":2,"hits":[["a",1.5,{"title":"x"}],["b",null]],'
    b'"facets":{"s":[["n",2]]},"groups":[["n",2]]}'
)


def reply(status: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "little") + bytes([status, 0, 0, 0]) + bytes(8) + payload


def test_a_reply_decodes_to_hits_facets_and_groups() -> None:
    hits = ENGINES["tantivy"].decode(reply(0, OK))
    assert (hits.total, hits.total_exact, hits.error) == (2, True, None)
    assert [(h.id, h.score, dict(h.fields)) for h in hits.hits] == [
        ("a", 1.5, {"title": "x"}),
        ("b", None, {}),
    ]
    assert hits.facets == {"s": [("n", 2)]}
    assert hits.groups == [("n", 2)]


def test_snippets_are_asked_only_of_a_host_that_knows_them_and_come_after_the_fields() -> None:
    query = Query(Terms(Mode.ANY, ("x",)), snippets=("title",))
    (sent,) = ENGINES["tantivy"].compile(query, SCHEMA, defaults(ENGINES["tantivy"])).exchanges
    assert json.loads(sent[8:])["snippets"] == ["title"]
    (plain,) = (
        ENGINES["tantivy"]
        .compile(replace(query, snippets=()), SCHEMA, defaults(ENGINES["tantivy"]))
        .exchanges
    )
    assert b"snippets" not in plain
    shown = (
        b'{"total":3,"hits":[["a",1.5,null,{"title":["<b>x</b>"]}],["b",1.0,{"s":"n"},{}],'
        b'["c",0.5,{"s":"n"}]]}'
    )
    hits = ENGINES["sqlite"].decode(reply(0, shown)).hits
    assert [(dict(h.fields), dict(h.snippets)) for h in hits] == [
        ({}, {"title": ["<b>x</b>"]}),
        ({"s": "n"}, {}),
        ({"s": "n"}, {}),
    ]


def test_a_partial_reply_is_not_exact() -> None:
    assert ENGINES["sqlite"].decode(reply(3, OK)).total_exact is False


def test_an_error_is_not_zero_hits() -> None:
    hits = ENGINES["sqlite"].decode(reply(1, b'{"error":"no such field"}'))
    assert (hits.total, hits.error) == (None, "no such field")


# Replies in the form in which Groonga sends them, shortened.
FOUND = (
    b"HTTP/1.1 200 OK\r\nServer: Groonga/13.0.0\r\nContent-Type: application/json\r\n"
    b"Connection: close\r\nContent-Length: 360\r\n\r\n"
    b'{"header":{"return_code":0,"start_time":1795217251.3,"elapsed_time":0.001},"body":{"n_hits":7,'
    b'"columns":[{"name":"_key","type":"ShortText"},{"name":"_score","type":"Int32"},'
    b'{"name":"v_the_20_size","type":"Int64"},{"name":"h_the_20_size","type":"UInt8"}],'
    b'"records":[["a",3,0,1],["b",1,0,0]],"drilldowns":{"v_s":{"n_hits":1,"columns":[],'
    b'"records":[["net",2]]}}}}'
)
REFUSED = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 139\r\n\r\n"
    b'{"header":{"return_code":-22,"start_time":1795217251.3,"elapsed_time":0.0002,'
    b'"error":{"message":"[select][table] invalid name: <NoDocs>"}}}'
)


def test_groonga_tells_zero_from_nothing_and_an_error_from_no_hits() -> None:
    engine = ENGINES["groonga"]
    hits = engine.decode(FOUND)
    assert (hits.total, hits.error, hits.facets) == (7, None, {"s": [("net", 2)]})
    assert [(h.id, h.score, dict(h.fields)) for h in hits.hits] == [
        ("a", 3, {"the size": 0}),
        ("b", 1, {}),
    ]
    refused = engine.decode(REFUSED)
    assert (refused.total, refused.error) == (None, "[select][table] invalid name: <NoDocs>")
    with pytest.raises(ValueError, match="promises"):
        engine.decode(FOUND[:-1])


@pytest.mark.parametrize("cut", [0, 8, 15, 16, 40])
def test_half_a_reply_is_an_error_and_not_an_answer(cut: int) -> None:
    with pytest.raises(ValueError, match=r"bytes|JSON|unexpected|character"):
        ENGINES["tantivy"].decode(reply(0, OK)[:cut])
