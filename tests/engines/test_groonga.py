"""What is Groonga's own: every level of its levers, field names, the analysis of all of Unicode."""

from __future__ import annotations

import json
import socket
import sys
import time
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from searchbench.corpora.corpus import Document, Field, FieldType, Schema
from searchbench.engines import defaults
from searchbench.engines.engine import Level
from searchbench.engines.groonga import Groonga
from searchbench.engines.groonga.script import field, value
from searchbench.lab.conduct.ingest import ingest, spool
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.wire.exchange import ask as ask_each
from searchbench.lab.wire.exchange import prepare
from searchbench.lab.wire.order import Manner, Order
from searchbench.workload.queries.algebra import Boolean, In, Mode, Query, Range, Sort, Terms
from searchbench.workload.queries.analysis import terms

ENGINE = Groonga()


class Books:
    """Odd field names, and numbers that are zero, not there, and the greatest there are."""

    name = "books"
    schema = Schema(
        (
            Field("the title", FieldType.TEXT),
            Field("größe_v", FieldType.INTEGER),
            Field("tags", FieldType.KEYWORDS),
        )
    )

    def documents(self) -> Iterator[Document]:
        yield Document("zero", {"the title": "fox", "größe_v": 0, "tags": ["a", "b"]})
        yield Document("none", {"the title": "fox fox"})
        yield Document("most", {"the title": "Fox", "größe_v": 2**63 - 1, "tags": ["a"]})
        yield Document("least", {"the title": "FOX", "größe_v": -(2**63)})


@pytest.fixture(autouse=True, scope="module")
def _here() -> None:
    if lacking := missing(ENGINE):
        pytest.skip(f"no groonga here: {lacking}")


def started(place: Path, **levers: Level) -> Deployment:
    return Deployment(ENGINE, {**defaults(ENGINE), **levers}, place / "data", place / "run")


def ids(running: Deployment, query: Query) -> list[str]:
    hits = ENGINE.decode(running.ask(ENGINE.compile(query, Books.schema, running.params)))
    assert hits.error is None, hits.error
    return [h.id for h in hits.hits]


def test_zero_is_not_missing_and_any_name_can_be_a_field(tmp_path: Path) -> None:
    with started(tmp_path) as running:
        ingest(running, Books(), spool(ENGINE, Books(), tmp_path / "batches"))
        size = "größe_v"
        assert ids(running, Query(filters=(Range(size, -5, 5),))) == ["zero"]
        assert ids(running, Query(filters=(In(size, (0, 2**63 - 1)),))) == ["zero", "most"]
        for down, order in ((False, "least zero most none"), (True, "most zero least none")):
            assert ids(running, Query(sort=(Sort(size, down),))) == order.split()


def test_filters_leave_scores_alone(tmp_path: Path) -> None:
    with started(tmp_path) as running:
        ingest(running, Books(), spool(ENGINE, Books(), tmp_path / "batches"))
        match = Terms(Mode.ANY, ("fox",))
        plain, filtered = (
            ENGINE.decode(running.ask(ENGINE.compile(query, Books.schema, running.params))).hits
            for query in (Query(match), Query(match, filters=(In("tags", ("a", "b")),)))
        )
        scores = {h.id: h.score for h in plain}
        assert scores == {"none": 2, "zero": 1, "most": 1, "least": 1}
        assert {h.id: h.score for h in filtered} == {"zero": 1, "most": 1}


@pytest.mark.parametrize(
    "levers",
    [
        *({p.name: level} for p in ENGINE.parameters for level in p.choices),
        {"threads": 5, "cache_limit": 7},
        {"server": "httpd", "httpd_workers": 3, "cache_limit": 7},
        {"index_first": True},
    ],
    ids=str,
)
def test_every_level_takes_and_finds(tmp_path: Path, levers: dict[str, Level]) -> None:
    with started(tmp_path, **levers) as running:
        ingest(running, Books(), spool(ENGINE, Books(), tmp_path / "batches"))
        facts = ENGINE.facts(running.ask(ENGINE.facts_request()))
        assert facts.documents == 4
        unread = ENGINE.can.unread
        assert levers.items() <= {**facts.parameters, **{k: levers.get(k) for k in unread}}.items()
        assert len(ids(running, Query(Terms(Mode.ALL, ("fox",))))) == 4


@pytest.mark.parametrize(("limit", "rate"), [(0, 0.0), (10, 75.0)])
def test_the_query_cache_is_off_unless_asked_for(tmp_path: Path, limit: int, rate: float) -> None:
    with started(tmp_path, cache_limit=limit) as running:
        ingest(running, Books(), spool(ENGINE, Books(), tmp_path / "batches"))
        # What was answered in the second of the last change is not taken from the cache.
        time.sleep(2.1)
        for _ in range(4):
            ids(running, Query(Terms(Mode.ALL, ("fox",))))
        extra = ENGINE.facts(running.ask(ENGINE.facts_request())).extra
        assert extra["cache_hit_rate_percent_since_start"] == rate


def test_the_analysis_is_the_declared_one_but_for_new_letters(tmp_path: Path) -> None:
    """Every character between two letters that betray a split."""
    every = [
        chr(c)
        for c in range(1, sys.maxunicode + 1)
        if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")
    ]
    with started(tmp_path) as running:
        for request in ENGINE.create(Books.schema, running.params):
            assert ENGINE.check(running.ask(request)) is None

        def different(rows: Sequence[str]) -> list[str]:
            """Those rows whose terms are not the declared ones, all asked on one connection."""
            texts = [" ".join(f"x{c}y" for c in row) for row in rows]
            asked = [request for text in texts if (request := ENGINE.analyse(text)) is not None]
            assert len(asked) == len(texts)
            replies = ask_each(running.endpoint, asked)
            return [
                row
                for row, text, reply in zip(rows, texts, replies, strict=True)
                if ENGINE.terms(reply) != terms(text)
            ]

        rows = different(["".join(every[at : at + 100]) for at in range(0, len(every), 100)])
        wrong = different([c for row in rows for c in row])
    # Its regular expressions are of Unicode 9: letters and digits that came later separate.
    assert {unicodedata.category(c)[0] for c in wrong} <= {"L", "N"}
    assert {unicodedata.ucd_3_2_0.category(c) for c in wrong} == {"Cn"}
    assert min(wrong) == "\u0560"  # of 2018


def test_snippets_mark_what_may_have_found_the_document(tmp_path: Path) -> None:
    class Words:
        name = "words"
        schema = Schema((Field("a b", FieldType.TEXT), Field("c", FieldType.TEXT)))

        def documents(self) -> Iterator[Document]:
            yield Document("1", {"a b": 'ΣΟΦΙΑ & <b> "quote" ÜBER \\ dog', "c": "über"})
            yield Document("2", {"c": "dogs"})

    match = Boolean(
        must=(Terms(Mode.PREFIX, ("übe",)),),
        should=(Terms(Mode.ANY, ("σοφια", '"', "quote")),),
        must_not=(Terms(Mode.ANY, ("cat",)),),
    )
    with started(tmp_path) as running:
        ingest(running, Words(), spool(ENGINE, Words(), tmp_path / "batches"))

        def snippets(query: Query) -> list[dict[str, object]]:
            asked = ENGINE.compile(query, Words.schema, running.params)
            return [dict(h.snippets) for h in ENGINE.decode(running.ask(asked)).hits]

        assert snippets(Query(match, snippets=("a b", "c"))) == [
            {
                "a b": ('<b>ΣΟΦΙΑ</b> & <b> "<b>quote</b>" <b>ÜBE</b>R \\ dog',),
                "c": ("<b>übe</b>r",),
            }
        ]
        excluded = Boolean(must_not=(Terms(Mode.ALL, ("über",)),))
        assert snippets(Query(excluded, snippets=("c",))) == [{}]
        assert snippets(Query(None, snippets=("c",))) == [{}, {}]
        # By characters, not by terms.
        found = snippets(Query(Terms(Mode.ANY, ("dogs", "do")), snippets=("c",)))
        assert found == [{"c": ("<b>dogs</b>",)}]


@pytest.mark.parametrize("name", ["a", "a_b", "a b", "größe", "_", "__", "x-1", "日本"])
def test_a_column_leads_back_to_its_field(name: str) -> None:
    column = value(name)
    assert column.isascii()
    assert field(column) == name


def test_every_worker_of_httpd_answers_right_as_soon_as_the_index_is_made(tmp_path: Path) -> None:
    """Workers that had opened the columns before would search without the index."""
    with started(tmp_path, server="httpd", httpd_workers=3) as running:
        ingest(running, Books(), spool(ENGINE, Books(), tmp_path / "batches"))
        fox = Query(Terms(Mode.ALL, ("fo",)))  # in a search without an index, part of "fox"
        request = ENGINE.compile(fox, Books.schema, running.params)
        trace = running.endpoint.drive(
            prepare([request]),
            Order(
                np.zeros(160, np.uint32),
                np.arange(0, 161, 10, dtype=np.uint32),
                None,
                16,
                repeat=False,
            ),
            Manner(timeout_s=10.0, capture_every=1),
        )
        replies = [reply for _index, reply in trace.replies()]
        assert {ENGINE.decode(reply).total for reply in replies} == {0}
        assert len(replies) == 160
        # One connection for each client, kept.
        assert json.loads(trace.accounting())["reconnects"] == 0


def test_the_cache_of_httpd_is_that_of_each_worker(tmp_path: Path) -> None:
    with started(tmp_path, server="httpd", httpd_workers=2, cache_limit=10) as running:
        ingest(running, Books(), spool(ENGINE, Books(), tmp_path / "batches"))
        time.sleep(2.1)
        fox = ENGINE.compile(Query(Terms(Mode.ALL, ("fox",))), Books.schema, running.params)
        # Each on a connection of its own; an odd number, that cannot be dealt out evenly.
        for _ in range(41):
            running.ask(fox)
        asked = {
            ENGINE.facts(running.ask(ENGINE.facts_request())).extra["queries_since_start"]
            for _ in range(40)
        }
        assert len(asked) == 2
        assert sum(asked) == 41


def test_workers_whose_master_was_killed_are_stopped_too(tmp_path: Path) -> None:
    with started(tmp_path, server="httpd") as running:
        target = running.target
        running.process.kill()
        running.process.wait(60)
        assert not running.lives()
        socket.create_connection(target, 10.0).close()  # the workers serve on
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(target, 10.0)
