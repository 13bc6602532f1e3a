"""What is Sphinx's own: every level of its levers, odd names and values, on the real server."""

from __future__ import annotations

import re
import socket
import sys
import time
import unicodedata
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest

from engines.test_conformance import SCHEMA, Shelf
from searchbench import _core
from searchbench.corpora.corpus import Corpus, Document, Field, FieldType, Schema
from searchbench.engines import ENGINES, column_form, defaults
from searchbench.engines.answer import Hits
from searchbench.engines.engine import Engine, Level, Request
from searchbench.engines.mysql_form import query as packet
from searchbench.engines.sphinx import values as values
from searchbench.engines.sphinx.conf import halves
from searchbench.engines.sphinx.query import RANKERS
from searchbench.errors import Unsupported
from searchbench.lab.conduct.serve import serving
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.wire.exchange import prepare, samples_of
from searchbench.lab.wire.order import Manner, Order
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
from searchbench.workload.queries.analysis import terms

SPHINX, API = ENGINES["sphinx"], ENGINES["sphinx-api"]
FOX = Query(Terms(Mode.ANY, ("fox", "net")), limit=20)
FULL = Query(
    Terms(Mode.ANY, ("fox", "net")),
    filters=(NotIn("size", (3, 4)),),
    sort=(Sort("section", descending=True), Sort("price")),
    facets=(Facet("section"), Facet("tags")),
    group_by="size",
    fields=("title", "tags", "price"),
    limit=300,
)


@pytest.fixture(autouse=True, scope="module")
def _here() -> None:
    if lacking := missing(SPHINX):
        pytest.skip(f"no Sphinx here: {lacking}")


@contextmanager
def served(
    place: Path, engine: Engine = SPHINX, corpus: Corpus | None = None, **levers: Level
) -> Iterator[Deployment]:
    params = {**defaults(engine), **levers}
    with serving(engine, params, corpus or Shelf(), place) as (deployment, _done):
        yield deployment


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with served(tmp_path_factory.mktemp("whole")) as deployment:
        yield deployment


@pytest.fixture(scope="module")
def whole_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with served(tmp_path_factory.mktemp("whole-api"), API) as deployment:
        yield deployment


def ask(running: Deployment, query: Query, schema: Schema = SCHEMA, **levers: Level) -> Hits:
    engine = running.engine
    request = engine.compile(query, schema, {**running.params, **levers})
    hits = engine.decode(running.ask(request))
    assert hits.error is None, hits.error
    return hits


def ids(hits: Hits) -> list[str]:
    return [h.id for h in hits.hits]


def scores(hits: Hits) -> dict[str, float | None]:
    return {h.id: h.score for h in hits.hits}


def outcome(running: Deployment, query: Query) -> str:
    """How the measuring core sees the answer."""
    request = running.engine.compile(query, SCHEMA, running.params)
    trace = running.endpoint.drive(
        prepare([request]),
        Order(np.zeros(1, np.uint32), np.array([0, 1], np.uint32), None, 1, repeat=False),
        Manner(timeout_s=5.0),
    )
    return _core.OUTCOMES[int(samples_of(trace)[0]["outcome"])]


@pytest.mark.parametrize("workers", ["threads", "fork", "prefork", "none"])
def test_every_worker_model_serves_agents_and_local_parts(
    tmp_path: Path, whole: Deployment, workers: str
) -> None:
    wanted = ask(whole, FULL)
    with served(tmp_path, parts=3, part_kind="mixed", workers=workers, dist_threads=2) as running:
        assert ask(running, FULL) == wanted
        assert running.facts.parameters["part_kind"] == "mixed"
        assert running.facts.parameters["parts"] == 3


@pytest.mark.parametrize("engine", [SPHINX, API], ids=["sphinxql", "api"])
def test_two_levels_of_merging_answer_as_one_index(
    tmp_path: Path, whole: Deployment, engine: Engine
) -> None:
    with served(tmp_path, engine, parts=5, part_kind="agent", levels=2) as running:
        assert len(running.processes) == 7
        assert ask(running, FULL) == ask(whole, FULL)
        if engine is SPHINX:
            assert running.facts.parameters == {"index": "offline", "levels": 2, "parts": 5}


def test_parts_between_two_levels_are_shared_out() -> None:
    assert [list(map(len, halves(n))) for n in (1, 2, 4, 5, 8)] == [
        [1],
        [2],
        [2, 2],
        [3, 2],
        [3, 3, 2],
    ]
    assert [n for group in halves(64) for n in group] == list(range(64))


def test_statistics_of_all_parts_give_the_weights_of_one_index(
    tmp_path: Path, whole: Deployment
) -> None:
    with served(tmp_path, parts=4, dist_threads=4) as running:
        wanted = scores(ask(whole, FOX))
        assert scores(ask(running, FOX, statistics="global")) == wanted
        assert scores(ask(running, FOX)) != wanted


def test_prefork_makes_the_processes_that_it_is_told(tmp_path: Path) -> None:
    with served(tmp_path, workers="prefork", max_children=3) as running:
        assert len(running.process.children()) == 3


def test_connections_beyond_the_most_are_turned_away(tmp_path: Path) -> None:
    with served(tmp_path, max_children=1) as running:
        with socket.create_connection(running.target) as held:
            assert held.recv(100)
            becomes(running, "engine_error")  # it greets a moment before it counts
        becomes(running, "ok")


def becomes(running: Deployment, expected: str) -> None:
    give_up = time.monotonic() + 60
    while outcome(running, FOX) != expected:
        assert time.monotonic() < give_up
        time.sleep(0.05)


@pytest.mark.parametrize("backlog", [1, 6])
def test_the_backlog_is_that_of_the_socket(tmp_path: Path, backlog: int) -> None:
    with (
        served(tmp_path, workers="none", listen_backlog=backlog) as running,
        socket.create_connection(running.target) as held,
    ):
        held.recv(100)  # it is served, and nobody else is until it closes
        # Linux lets one more wait than it was told.
        assert waiting(running.target, backlog + 5) == backlog + 1


def waiting(target: tuple[str, int], most: int) -> int:
    """How many connections are taken while nobody is served."""
    with ExitStack() as opened:
        for count in range(most):
            try:
                opened.enter_context(socket.create_connection(target, timeout=0.3))
            except TimeoutError:
                return count
    return most


@pytest.mark.parametrize("ranker", RANKERS)
def test_every_ranker_weighs_alike_over_both_wires(
    whole: Deployment, whole_api: Deployment, ranker: str
) -> None:
    first, second = (ask(d, FOX, ranker=ranker) for d in (whole, whole_api))
    assert first == second
    assert first.total == 272
    if ranker == "none":
        assert set(scores(first).values()) == {1}
    elif ranker != "fieldmask":  # which tells the fields that match, and they are the same here
        assert len(set(scores(first).values())) > 1


@pytest.mark.parametrize("mode", [Mode.ANY, Mode.ALL, Mode.PHRASE])
def test_match_modes_of_old_are_the_rewritten_queries(
    whole: Deployment, whole_api: Deployment, mode: Mode
) -> None:
    query = Query(Terms(mode, ("fox", "lazy")), limit=300)
    algebra = ask(whole, query)
    told, done = (ask(d, query, match_mode=str(mode)) for d in (whole, whole_api))
    assert told == done
    assert set(ids(told)) == set(ids(algebra))
    assert told.total == algebra.total
    if mode is not Mode.PHRASE:
        told, done = (ask(d, query, match_mode="boolean") for d in (whole, whole_api))
        assert told == done
        assert set(ids(told)) == set(ids(algebra))
        assert set(scores(told).values()) == {1}


def test_a_match_mode_asks_nothing_that_it_does_not_mean() -> None:
    for asked, match in (
        ("any", Terms(Mode.ALL, ("a", "b"))),
        ("phrase", Terms(Mode.ANY, ("a",))),
        ("any", Terms(Mode.ANY, ("a",), ("title",))),
        ("boolean", Terms(Mode.PHRASE, ("a", "b"))),
        ("all", Boolean(must=(Terms(Mode.ALL, ("a",)),))),
        ("all", Terms(Mode.ALL, ('a" | "b',))),
    ):
        with pytest.raises(Unsupported, match="match_mode"):
            SPHINX.compile(Query(match), SCHEMA, {**defaults(SPHINX), "match_mode": asked})


ODD = "tab\there, line\nend, back\\slash \\09, 'quotes\", \r\0\x1a\x7f, \ue000, \U000e0061 100% üß"


class Books:
    """Odd names, odd text, and numbers that are zero, not there, and the greatest there are."""

    name = "books"
    schema = Schema(
        (
            Field("the title", FieldType.TEXT),
            Field("größe_v", FieldType.INTEGER),
            Field("A", FieldType.KEYWORD),
            Field("a", FieldType.KEYWORDS),
            Field("id_", FieldType.FLOAT),
            Field("select", FieldType.BOOLEAN),
        )
    )

    def documents(self) -> Iterator[Document]:
        yield Document(
            "zero", {"the title": "fox", "größe_v": 0, "a": ["x", "y", "x"], "id_": -0.5, "A": ""}
        )
        yield Document("none", {"the title": "fox fox"})
        yield Document(
            "most",
            {"the title": "Fox", "größe_v": 2**63 - 1, "id_": 1.7e308, "a": [], "select": True},
        )
        yield Document(
            "least\t\\", {"the title": "FOX", "größe_v": -(2**63), "id_": 5e-324, "select": False}
        )
        yield Document(ODD, {"the title": f"fox {ODD} cat", "A": ODD, "a": [ODD, "d'd", '"']})


@pytest.fixture(scope="module", params=["offline", "realtime"])
def books(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    place = tmp_path_factory.mktemp(request.param)
    with served(place, corpus=Books(), index=request.param, parts=2) as running:
        yield running


def test_zero_is_not_missing_and_any_name_can_be_a_field(books: Deployment) -> None:
    size = "größe_v"
    for query, order in (
        (Query(filters=(Range(size, -5, 5),)), "zero"),
        (Query(filters=(Range(size, 0, None, False),)), "most"),
        (Query(filters=(Range(size, None, None),)), "zero most least"),
        (Query(filters=(Range(size, -(2**70), 0.5),)), "zero least"),
        (Query(filters=(In(size, (0, 2**63 - 1)),)), "zero most"),
        (Query(filters=(NotIn(size, (0, -(2**63))),)), "none most tab"),
        (Query(filters=(Range("id_", 0, None, False),)), "most least"),
        (Query(filters=(Range("id_", 5e-324, 1.7e308, False, False),)), ""),
        (Query(filters=(In("select", (False,)),)), "least"),
        (Query(filters=(In("a", ()),)), ""),
        (Query(filters=(NotIn("a", ("d'd",)),)), "zero none most least"),
        (Query(filters=(In("A", ("",)),)), "zero"),
        (Query(filters=(In("A", (ODD,)), In("a", (ODD,)))), "tab"),
        (Query(sort=(Sort(size),)), "least zero most none tab"),
        (Query(sort=(Sort(size, True),)), "most zero least none tab"),
        (Query(sort=(Sort("id_", True), Sort("A"))), "most least zero tab none"),
        (Query(sort=(Sort("select"), Sort("A", True), Sort("id_"))), "least most tab zero none"),
    ):
        found = ids(ask(books, query, Books.schema))
        assert [i.split("\t")[0] for i in found] == order.split(), query


def test_values_come_back_as_they_went_in(books: Deployment) -> None:
    names = tuple(f.name for f in Books.schema.fields)
    found = ask(books, Query(fields=names, limit=100), Books.schema)
    assert {h.id: dict(h.fields) for h in found.hits} == {
        d.id: d.values for d in Books().documents()
    }


def test_odd_text_is_searched_as_declared(books: Deployment) -> None:
    for word in terms(ODD):
        found = ask(books, Query(Terms(Mode.ALL, (word,))), Books.schema)
        assert ODD in ids(found), word
    phrase = ask(books, Query(Terms(Mode.PHRASE, ("fox", "tab", "here", "line"))), Books.schema)
    assert ids(phrase) == [ODD]


def test_facets_of_odd_values_are_those_values(books: Deployment) -> None:
    found = ask(books, Query(facets=(Facet("a", 5), Facet("A", 5))), Books.schema)
    assert found.facets["A"] == [(ODD, 1)]
    assert dict(found.facets["a"]) == {"x": 2, "y": 1, ODD: 1, "d'd": 1, '"': 1}


def test_all_of_unicode_is_split_and_lowered_as_declared(whole: Deployment) -> None:
    assigned = [
        c
        for c in range(1, sys.maxunicode + 1)
        if unicodedata.category(chr(c)) not in ("Cs", "Cn") and chr(c) != "\ue000"
    ]
    for at in range(0, len(assigned), 1000):
        text = " ".join(f"a{chr(c)}b" for c in assigned[at : at + 1000])
        request = SPHINX.analyse(text)
        assert request is not None
        assert SPHINX.terms(whole.ask(request)) == terms(text), hex(assigned[at])


def test_words_and_texts_have_a_greatest_length(tmp_path: Path) -> None:
    class Long:
        name = "long"
        schema = Schema((Field("text", FieldType.TEXT),))

        def documents(self) -> Iterator[Document]:
            yield Document("1", {"text": "x" * 42 + "a"})
            yield Document("2", {"text": "y " * 5_000_000})  # ten megabytes in a row

    for kind in ("offline", "realtime"):
        with served(tmp_path / kind, corpus=Long(), index=kind) as running:
            query = Query(Terms(Mode.ALL, ("x" * 42 + "b",)))
            assert ids(ask(running, query, Long.schema)) == ["1"]
            found = ask(running, Query(Terms(Mode.ALL, ("y",)), fields=("text",)), Long.schema)
            assert [h.fields["text"] for h in found.hits] == [("y " * 5_000_000)[: 2**22 - 1]]


def test_ranges_of_words_are_exact_or_refused(whole: Deployment) -> None:
    bound = In("section", ("net", "web", "ü"))
    wanted = ask(whole, Query(filters=(bound,), limit=300))
    assert ask(
        whole, Query(filters=(Range("section", "data baz"[:7], "\U0010ffff"),), limit=300)
    ) == (ask(whole, Query(filters=(Range("section", "data ba"),), limit=300)))
    assert ask(whole, Query(filters=(Range("section", "e", None),), limit=300)) == wanted
    with pytest.raises(Unsupported, match="eight bytes"):
        ask(whole, Query(filters=(Range("section", "data base"),)))


def test_order_and_equality_of_numbers_and_words_are_kept() -> None:
    numbers = [-1.7e308, -2, -0.5, -5e-324, 0, 5e-324, 0.1, 99.9, 1.7e308]
    assert sorted(numbers, key=column_form.sortable) == numbers
    assert [column_form.unsortable(column_form.sortable(n)) for n in numbers] == numbers
    assert column_form.sortable(-0.0) == column_form.sortable(0.0)
    words = ["", "a", "a\x01", "aa", "b", "ü", "\U0010ffff"]
    assert sorted(words, key=values.order) == words
    for name in ("A", "a", "a_b", "a__b", "größe", "Ä", "_"):
        assert values.field(f"i_{values.escaped(name)}") == name
        assert re.fullmatch("[a-z0-9_]+", values.escaped(name))
    for text in ("", ODD, "\\5c", "\\\\", "\\\ue10a"):
        assert values.decoded(values.coded(text)) == text


def test_more_hits_than_searchd_keeps_by_itself_are_returned(tmp_path: Path) -> None:
    class Many:
        name = "many"
        schema = Schema((Field("text", FieldType.TEXT),))

        def documents(self) -> Iterator[Document]:
            for n in range(3000):
                yield Document(str(n), {"text": "same"})

    with served(tmp_path, corpus=Many(), parts=2) as running:
        query = Query(Terms(Mode.ALL, ("same",)), offset=1500, limit=1200)
        found = ask(running, query, Many.schema)
        assert ids(found) == [str(n) for n in range(1500, 2700)]  # ties by the order of ingest
        assert found.total == 3000


def test_real_time_indexes_refuse_what_they_cannot_do(tmp_path: Path) -> None:
    for levers in ({"workers": "fork"}, {"part_kind": "agent"}, {"levels": 2}):
        params = {**defaults(SPHINX), "index": "realtime", **levers}
        with pytest.raises(Unsupported, match="real-time"):
            SPHINX.service(params, SCHEMA)
    with pytest.raises(Unsupported, match="native protocol"):
        API.service({**defaults(API), "index": "realtime"}, SCHEMA)


def test_a_document_twice_is_refused_in_real_time(tmp_path: Path) -> None:
    with served(tmp_path, index="realtime") as running:
        again = SPHINX.batch([Document("x", {})], 0, SCHEMA, running.params)
        assert "duplicate id" in str(SPHINX.check(running.ask(again)))
        assert SPHINX.check(running.ask(Request((packet("SHOW TABLES"),)))) is None


@pytest.mark.timed
def test_eight_parts_do_not_start_eight_times_as_slowly_as_one(tmp_path: Path) -> None:
    def starts_s(parts: int) -> float:
        took = []
        for again in range(3):
            began = time.monotonic()
            with served(tmp_path / f"{parts}-{again}", parts=parts):
                took.append(time.monotonic() - began)
        return min(took)

    assert starts_s(8) < 4 * starts_s(1)
