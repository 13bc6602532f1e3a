"""What is SenseiDB's own: its levers, its two languages, odd names and values, and faults.

Longer than most files, because a server with odd documents is shared by half of it.
"""

from __future__ import annotations

import os
import random
import signal
import time
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import psutil
import pytest

from engines import test_conformance as suite
from engines.reference import Reference
from searchbench import _core
from searchbench.corpora.corpus import Document, Field, FieldType, Schema, Table
from searchbench.engines import ENGINES, defaults
from searchbench.engines.answer import Hits
from searchbench.engines.engine import Level, Request
from searchbench.engines.http_form import post, split
from searchbench.engines.write import FindsWords, Placed, TakesWrites, insert
from searchbench.errors import LabError, Unsupported
from searchbench.lab.conduct.serve import serving
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.wire.exchange import prepare, samples_of
from searchbench.lab.wire.order import Manner, Order
from searchbench.workload.queries.algebra import Facet, In, Mode, NotIn, Query, Range, Sort, Terms
from searchbench.workload.queries.analysis import lower, terms

ENGINE = ENGINES["sensei"]
FOX = Query(Terms(Mode.ANY, ("fox",)), limit=400)
LEVERS: tuple[dict[str, Level], ...] = (
    {"protocol": "bql", "gc": "g1"},
    {"parts": 3, "hop": "serialized", "batch_size": 50, "batch_delay_ms": 20},
    {"parts": 2, "protocol": "bql", "freshness_s": 0, "gc": "parallel", "heap_mb": 128},
)


@pytest.fixture(scope="module", autouse=True)
def _here() -> None:
    if lacking := missing(ENGINE):
        pytest.skip(f"no SenseiDB here: {lacking}")


@pytest.fixture(scope="module")
def reference() -> Reference:
    return Reference(suite.SCHEMA, list(suite.Shelf().documents()))


class Given:
    """A corpus of these documents."""

    name = "given"

    def __init__(self, schema: Schema, *documents: Document) -> None:
        self.schema = schema
        self._documents = documents

    def documents(self) -> Iterator[Document]:
        yield from self._documents


def levels(**levers: Level) -> dict[str, Level]:
    return {**defaults(ENGINE), **levers}


def tell(running: Deployment, path: str, body: bytes = b"") -> dict[str, Any]:
    (http,) = split(running.ask(Request((post(path, (), body),))))
    answer: dict[str, Any] = orjson.loads(http.body)
    return answer


def ask(running: Deployment, query: Query, protocol: Level = "json") -> Hits:
    params = {**running.params, "protocol": protocol}
    return ENGINE.decode(running.ask(ENGINE.compile(query, running.schema, params)))


def ids(running: Deployment, query: Query, protocol: Level = "json") -> list[str]:
    hits = ask(running, query, protocol)
    assert hits.error is None, hits.error
    assert not hits.partial
    return [h.id for h in hits.hits]


@pytest.mark.parametrize("levers", LEVERS, ids=str)
def test_every_lever_takes_and_answers_are_those_of_the_reference(
    tmp_path: Path, reference: Reference, levers: dict[str, Level]
) -> None:
    params = levels(**levers)
    with serving(ENGINE, params, suite.Shelf(), tmp_path) as (running, done):
        assert (done.documents, done.refused) == (300, 0)
        facts = ENGINE.facts(running.ask(ENGINE.facts_request()))
        read = {k: v for k, v in params.items() if k not in ENGINE.can.unread}
        assert dict(facts.parameters) == read
        assert (facts.version, facts.documents) == ("2.0.0", 300)
        assert len(facts.extra["segments_by_part"]) == params["parts"]
        suite.test_terms_find_the_same_documents_as_the_reference(running, reference, Mode.PREFIX)
        suite.test_booleans_filters_and_negation_find_the_same(running, reference)
        suite.test_sorting_by_up_to_three_fields_is_the_same_to_the_last_tie(running, reference)
        suite.test_facets_and_groups_count_the_same(running, reference)
        suite.test_groups_by_any_kind_of_value_count_the_same(running, reference, "size")
        suite.test_pages_follow_each_other_without_gap_or_overlap(running)


def test_facets_of_many_values_are_exact_over_partitions(tmp_path: Path) -> None:
    schema = Schema(
        (
            Field("town", FieldType.KEYWORD),
            Field("height", FieldType.INTEGER),
            Field("depth", FieldType.FLOAT),
            Field("part", FieldType.KEYWORD),
            Field("parts", FieldType.KEYWORDS),
        )
    )
    rng = random.Random(4)
    hyphens = ["-", "-a", "-b", "--", "c-"]
    documents = [
        Document(
            str(n),
            {
                "town": f"town {int(rng.paretovariate(0.3)) % 150}",
                "height": rng.randint(-40, 40),
                "depth": rng.choice([-1e300, -0.1, 0.0, 0.1, 1 / 3, 1e300]),
                "part": rng.choice(hyphens),
                "parts": rng.sample(hyphens, 2),
            },
        )
        for n in range(1500)
    ]
    truth = Reference(schema, documents)
    with serving(ENGINE, levels(parts=3), Given(schema, *documents), tmp_path) as (running, _):
        for field in ("town", "height", "depth"):
            for limit in (5, 40, 200):
                query = Query(None, facets=(Facet(field, 3),), group_by=field, limit=limit)
                hits = ask(running, query)
                counts = truth.counts(query, field)
                assert list(hits.groups) == counts[:limit]
                assert list(hits.facets[field]) == counts[:3]
                assert len(hits.hits) == limit
        for low in (-0.1, 0.05, None):
            for high in (0.1, 1 / 3, -0.2, None):
                query = Query(None, (Range("depth", low, high),), limit=1500)
                assert sorted(ids(running, query)) == sorted(truth.ids(query))
        # What begins with a hyphen is a negative number to Bobo, whose order it gets wrong.
        for field in ("part", "parts"):
            for values in (("-a",), ("-b", "c-"), ("-", "--")):
                for part in (In(field, values), NotIn(field, values), Range(field, *values[:2])):
                    query = Query(None, (part,), limit=1500)
                    assert sorted(ids(running, query)) == sorted(truth.ids(query)), query
        query = Query(sort=(Sort("part", True), Sort("depth")), limit=1500)
        assert ids(running, query) == truth.sorted_ids(query)


ODD = (
    "[a]",
    "(b",
    "x TO y",
    "*",
    "$",
    "$$v",
    "a,b",
    "\\",
    "it's",
    '"',
    "a\nb",
    " c ",
    "ü",
    "-a",
    "-b",
    "",
    "=",
)


class Odd:
    """Field names and values that mean something in one syntax or another."""

    name = "odd"
    schema = Schema(
        (
            Field("the title", FieldType.TEXT),
            Field("größe_v", FieldType.INTEGER),
            Field("a.b", FieldType.KEYWORD),
            Field("order", FieldType.KEYWORDS),
            Field("kept", FieldType.KEYWORD, stored=False),
        )
    )

    def documents(self) -> Iterator[Document]:
        for n, word in enumerate(ODD):
            values = {"the title": "fox", "a.b": word, "order": [word, "all"], "kept": "x"}
            yield Document(f'doc "{n}"', values)
        yield Document("least", {"the title": "fox", "größe_v": -(2**63)})
        yield Document("minus", {"the title": "fox", "größe_v": -1, "order": []})
        yield Document("nil", {"the title": "", "größe_v": 0})
        yield Document("most", {"the title": "FOX fox", "größe_v": 2**63 - 1})


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    place = tmp_path_factory.mktemp("odd")
    # Started for BQL, it also answers JSON.
    with serving(ENGINE, levels(protocol="bql"), Odd(), place) as (running, done):
        assert (done.documents, done.refused) == (21, 0)
        yield running


@pytest.mark.parametrize("protocol", ["json", "bql"])
def test_odd_values_are_values_and_no_syntax(odd: Deployment, protocol: str) -> None:
    for n, word in enumerate(ODD):
        own = [f'doc "{n}"']
        assert ids(odd, Query(None, (In("a.b", (word,)),)), protocol) == own
        assert ids(odd, Query(None, (In("order", (word,)),)), protocol) == own
        rest = ids(odd, Query(None, (NotIn("order", (word, "no")),), limit=40), protocol)
        assert len(rest) == 20
        assert own[0] not in rest
        twice = (In("order", ("all",)), In("order", (word,)))
        assert ids(odd, Query(None, twice), protocol) == own
        assert ids(odd, Query(None, (*twice, NotIn("order", (word,)))), protocol) == []
        others = Query(None, (NotIn("order", (word,)), In("order", ("all",))), limit=40)
        assert len(ids(odd, others, protocol)) == 16
    hits = ask(odd, Query(None, facets=(Facet("order", 99), Facet("a.b", 99))), protocol)
    assert list(hits.facets["order"]) == [("all", 17), *((w, 1) for w in sorted(ODD))]
    assert list(hits.facets["a.b"]) == [(w, 1) for w in sorted(ODD)]
    (hit,) = ask(odd, Query(None, (In("a.b", ("a,b",)),), fields=("order", "kept")), protocol).hits
    assert dict(hit.fields) == {"order": ["a,b", "all"]}
    assert ids(odd, Query(None, (In("a.b", ()),)), protocol) == []
    assert ids(odd, Query(Terms(Mode.ANY, ("fox",)), (In("a.b", ()),)), protocol) == []
    assert len(ids(odd, Query(None, (NotIn("a.b", ()),), limit=40), protocol)) == 21


def test_ranges_of_texts_have_any_bounds_in_json(odd: Deployment) -> None:
    documents = list(Odd().documents())
    truth = Reference(Odd.schema, documents)
    for field in ("a.b", "order"):
        for low, high in (
            *((w, None) for w in ODD),
            *((None, w) for w in ODD),
            ("", "a"),
            ("b", "a"),
        ):
            for closed in (True, False):
                query = Query(None, (Range(field, low, high, closed, closed),), limit=40)
                assert sorted(ids(odd, query)) == sorted(truth.ids(query)), query


@pytest.mark.parametrize("protocol", ["json", "bql"])
def test_numbers_at_the_edges_are_found_sorted_and_returned(odd: Deployment, protocol: str) -> None:
    name = "größe_v"
    least, most = -(2**63), 2**63 - 1
    every = ["least", "minus", "nil", "most"]
    cases: Sequence[tuple[Range, list[str]]] = (
        (Range(name, least, most), every),
        (Range(name, least, most, False, False), ["minus", "nil"]),
        (Range(name, -0.5, 0.5), ["nil"]),
        (Range(name, -1.5, 0, True, False), ["minus"]),
        (Range(name, 2**70, None), []),
        (Range(name, -(2**70), 2**70), every),
        (Range(name, None, float("inf")), every),
        (Range(name, float("inf"), None), []),
        (Range(name, 5, 1), []),
    )
    for part, wanted in cases:
        query = Query(None, (part,), sort=(Sort(name),), limit=40)
        assert ids(odd, query, protocol) == wanted, part
    falling = ids(odd, Query(None, sort=(Sort(name, True),), limit=40), protocol)
    assert falling[:4] == every[::-1]
    assert falling[4:] == [f'doc "{n}"' for n in range(len(ODD))]
    asked = Query(None, (In(name, (most, -1, 0.5, True)),), fields=(name,))  # type: ignore[arg-type]
    hits = ask(odd, asked, protocol).hits
    assert [(h.id, dict(h.fields)) for h in hits] == [("minus", {name: -1}), ("most", {name: most})]
    groups = ask(odd, Query(None, group_by=name), protocol).groups
    assert list(groups) == [(least, 1), (-1, 1), (0, 1), (most, 1)]
    nothing = ask(odd, Query(Terms(Mode.ANY, ("fox",)), limit=0), protocol)
    assert (nothing.total, nothing.hits) == (20, ())


@pytest.mark.parametrize(
    ("query", "protocol", "reason"),
    [
        (Query(sort=(Sort("_score"),)), "json", "sort by ascending relevance: upstream must"),
        (Query(sort=(Sort("order"),)), "json", "sort by 'order': upstream must"),
        (Query(sort=(Sort("the title"),)), "bql", "sort by 'the title': upstream must"),
        (Query(facets=(Facet("the title"),)), "json", "facets of text: never"),
        (Query(None, (Range("größe_v", "a", "b"),)), "json", "its bounds cannot be texts"),
        (Query(None, (Range("a.b", "[", None),)), "bql", "bracket"),
        (Query(None, (Range("a.b", "a\nb", None),)), "bql", "line breaks"),
        (Query(None, (Range("order", "a", None),)), "bql", "several values"),
        (Query(Terms(Mode.FUZZY, ("fox",))), "bql", "fuzzy: upstream must"),
    ],
    ids=str,
)
def test_what_it_cannot_express_is_refused_before_it_is_sent(
    query: Query, protocol: str, reason: str
) -> None:
    with pytest.raises(Unsupported, match=reason):
        ENGINE.compile(query, Odd.schema, levels(protocol=protocol))


EVERYTHING = Query(
    Terms(Mode.PHRASE, ("red", "fox"), ("the title",)),
    filters=(
        Range("größe_v", -1, None, include_low=False),
        In("a.b", ("it's", "$")),
        NotIn("order", ("x",)),
        In("order", ("y", "z")),
    ),
    sort=(Sort("größe_v", descending=True), Sort("_score", descending=True)),
    facets=(Facet("order", 5),),
    group_by="a.b",
    offset=20,
    fields=("a.b",),
)
AS_JSON = {
    "query": {"text": {"t_the_20_title": {"value": "red fox", "type": "phrase"}}},
    "from": 20,
    "size": 10,
    "sort": [
        {"h_gr_f6__df_e__v": "desc"},
        {"i_gr_f6__df_e__v": "desc"},
        {"_score": "desc"},
        {"_uid": "asc"},
    ],
    "fetchStoredValue": True,
    "meta": {
        "select_list": [
            *("_uid", "_srcdata", "_score"),
            *("facet:m_order:5", "group:k_a_2e_b:10", "field:k_a_2e_b"),
        ]
    },
    "selections": [
        {"terms": {"k_a_2e_b": {"values": ["=it's", "=$$"], "excludes": [], "operator": "or"}}},
        {"terms": {"m_order": {"values": ["=y", "=z"], "excludes": ["=x"], "operator": "or"}}},
    ],
    "filter": {
        "and": [
            {
                "range": {
                    "i_gr_f6__df_e__v": {
                        "from": "09223372036854775807",
                        "include_lower": False,
                        "include_upper": True,
                    }
                }
            }
        ]
    },
    "facets": {
        "m_order": {"max": 5, "minCount": 1, "expand": False, "order": "hits"},
        "k_a_2e_b": {"max": 10, "minCount": 1, "expand": False, "order": "hits"},
    },
}
AS_BQL = (
    "SELECT '_uid', _srcdata, '_score', 'facet:m_order:5', 'group:k_a_2e_b:10', 'field:k_a_2e_b' "
    "FROM docs WHERE QUERY IS 't_the_20_title:\"red fox\"' "
    "AND ri_gr_f6__df_e__v > '09223372036854775807' "
    "AND k_a_2e_b IN ('=it''s', '=$$') AND m_order IN ('=y', '=z') EXCEPT ('=x') "
    "ORDER BY h_gr_f6__df_e__v DESC, i_gr_f6__df_e__v DESC, _score DESC, _uid ASC LIMIT 20, 10 "
    "BROWSE BY m_order(false, 1, 5, hits), k_a_2e_b(false, 1, 10, hits)"
)


def test_one_question_in_two_languages() -> None:
    bodies = []
    for protocol in ("json", "bql"):
        request = ENGINE.compile(EVERYTHING, Odd.schema, levels(protocol=protocol))
        bodies.append(orjson.loads(request.exchanges[0].partition(b"\r\n\r\n")[2]))
    assert bodies == [AS_JSON, {"bql": AS_BQL}]


def test_an_error_is_not_zero_hits(odd: Deployment) -> None:
    for body, words in (
        ({"query": {"nonsense": {}}, "sort": [{"_score": "desc"}]}, "'nonsense' not supported"),
        ({"bql": "SELECT nonsense WHERE"}, "BQLParsingError"),
        ({"bql": "SELECT * WHERE k_nowhere > 'a' ORDER BY k_nowhere"}, "k_nowhere"),
    ):
        hits = ENGINE.decode(odd.ask(Request((post("/sensei", (), orjson.dumps(body)),))))
        assert hits.total is None
        assert words in str(hits.error)
    hits = ENGINE.decode(odd.ask(Request((post("/sensei", (), b"{"),))))
    assert "JsonParsingError" in str(hits.error)
    (http,) = split(odd.ask(Request((post("/searchbench/nowhere", (), b""),))))
    assert (http.status, b"there is no POST /nowhere" in http.body) == (404, True)


def test_all_of_unicode_is_split_and_lowered_as_declared(odd: Deployment) -> None:
    # What Java 17 does not know yet (Unicode 14 and later) is the declared deviation.
    old = unicodedata.ucd_3_2_0
    known = [chr(c) for c in range(0x110000) if old.category(chr(c)) not in ("Cn", "Cs")]
    pieces = ["a".join(known[at : at + 5000]) for at in range(0, len(known), 5000)]
    for text in (*pieces, "ΣΙ", "x" * 32_766, "", "a" * 9_000 + " b"):
        request = ENGINE.analyse(text)
        assert request is not None
        assert ENGINE.terms(odd.ask(request)) == terms(text)
    assert lower("ΣΙ") == "σι"
    request = ENGINE.analyse("a " + "x" * 32_767 + " b")
    assert request is not None
    assert ENGINE.terms(odd.ask(request)) == ("a", "b")


def test_a_document_that_does_not_fit_is_refused_and_the_others_are_kept(tmp_path: Path) -> None:
    schema = Schema(
        (
            Field("i", FieldType.INTEGER),
            Field("f", FieldType.FLOAT),
            Field("k", FieldType.KEYWORD),
            Field("m", FieldType.KEYWORDS),
        )
    )
    corpus = Given(
        schema,
        Document("text", {"i": "many"}),
        Document("half", {"i": 1.5}),
        Document("true", {"i": True}),
        Document("large", {"i": 2**63}),
        Document("good", {"i": 1, "f": 2, "k": "ü" * 16_382, "m": [str(n) for n in range(1024)]}),
        Document("letter", {"f": "x"}),
        Document("long", {"k": "x" * 32_766}),
        Document("several", {"m": [str(n) for n in range(1025)]}),
    )
    with serving(ENGINE, levels(), corpus, tmp_path) as (running, done):
        request = ENGINE.batch(list(corpus.documents()), 8, schema, running.params)
        refused = ENGINE.refused(running.ask(request))
        assert [name for name, _reason in refused] == [
            *("text", "half", "true", "large", "letter", "long", "several"),
        ]
        for reason, word in zip(
            (reason for _name, reason in refused),
            ("many", "1.5", "True", "9223372036854775808", "x", "32766 bytes", "1024 values"),
            strict=True,
        ):
            assert word in reason
        assert (done.documents, done.refused) == (1, 7)
        assert ids(running, Query(None, (In("m", ("1023",)),))) == ["good"]
        wrong = running.ask(Request((post("/searchbench/documents", (), b"[1]"),)))
        assert "no object" in str(ENGINE.check(wrong))


def test_new_documents_are_seen_within_the_freshness(tmp_path: Path) -> None:
    schema = Schema((Field("t", FieldType.TEXT),))
    first, more = ([Document(f"{w}{n}", {"t": "fox"}) for n in range(9)] for w in "ab")
    for freshness_s in (0, 1):
        params = levels(freshness_s=freshness_s)
        place = tmp_path / str(freshness_s)
        with serving(ENGINE, params, Given(schema, *first), place) as (running, _done):
            assert len(ids(running, FOX)) == 9
            running.ask(ENGINE.batch(more, 9, schema, params))
            give_up = time.monotonic() + 20
            while len(ids(running, FOX)) < 18:
                assert time.monotonic() < give_up
                time.sleep(0.02)


@pytest.mark.parametrize("columns", ["encoded", "plain"])
def test_cars_are_changed_while_it_is_asked_and_found_by_their_words(
    tmp_path: Path, columns: str
) -> None:
    """A plain column takes no portable query, and yet what was written can be looked for."""
    schema = Schema(
        (Field("color", FieldType.KEYWORD), Field("contents", FieldType.TEXT)),
        Table("car", (Field("id", FieldType.INTEGER),)),
    )
    cars = [Document(str(n), {"color": "red", "contents": f"red car{n}"}) for n in range(1, 12)]
    params = levels(columns=columns, freshness_s=3600)
    assert isinstance(ENGINE, TakesWrites)
    assert isinstance(ENGINE, FindsWords)
    assert set(ENGINE.cannot_write(params)) == {"publish"}

    def found(running: Deployment, word: str) -> list[str]:
        assert isinstance(ENGINE, FindsWords)
        query = Query(Terms(Mode.ANY, (word,), ("contents",)), limit=100)
        hits = ENGINE.decode(running.ask(ENGINE.find(query, schema, params)))
        assert hits.error is None
        assert hits.total == len(hits.hits)
        return sorted((h.id for h in hits.hits), key=int)

    with serving(ENGINE, params, Given(schema, *cars[:9]), tmp_path) as (running, _done):
        assert isinstance(ENGINE, TakesWrites)
        assert found(running, "car3") == ["3"]
        new = [Placed(car, at) for at, car in enumerate(cars[9:], 9)]
        reply = running.ask(insert(ENGINE, new, schema, params))
        assert ENGINE.check(reply) is None
        assert ENGINE.refused(reply) == ()
        time.sleep(0.3)
        assert found(running, "car11") == []
        published = ENGINE.publish(schema, params)
        assert "3600 s old" in published.unasked
        for each in published.requests:
            assert ENGINE.check(running.ask(each)) is None
        assert found(running, "car11") == ["11"]
        assert found(running, "red") == [str(n) for n in range(1, 12)]
        facts = ENGINE.facts(running.ask(ENGINE.facts_request()))
        assert facts.documents == 11
        other = Document("2", {"color": "blue", "contents": "blue car2"})
        for each in (
            ENGINE.update([Placed(other, 11, 1)], schema, params),
            ENGINE.delete([Placed(cars[4], -1, 4)], schema, params),
            *published.requests,
        ):
            assert ENGINE.check(running.ask(each)) is None
        assert found(running, "blue") == ["2"]
        assert found(running, "car5") == []
        assert found(running, "red") == [str(n) for n in range(1, 12) if n not in (2, 5)]
        facts = ENGINE.facts(running.ask(ENGINE.facts_request()))
        assert facts.documents == 10


def test_without_freshness_new_documents_are_seen_once_settled(tmp_path: Path) -> None:
    schema = Schema((Field("t", FieldType.TEXT),))
    params = levels(freshness_s=3600)
    with serving(ENGINE, params, Given(schema), tmp_path) as (running, _done):
        running.ask(ENGINE.batch([Document("a", {"t": "fox"})], 0, schema, params))
        time.sleep(0.5)
        assert ids(running, FOX) == []
        (settle,) = ENGINE.settle(schema, params)
        assert ENGINE.check(running.ask(settle)) is None
        assert ids(running, FOX) == ["a"]


def test_a_partition_that_does_not_answer_makes_the_answer_partial(tmp_path: Path) -> None:
    with serving(ENGINE, levels(parts=2), suite.Shelf(), tmp_path) as (running, _done):
        whole = ask(running, FOX)
        (partition,) = running.data.glob("*/shard1")
        for file in partition.glob("_*"):
            os.truncate(file, 0)
        half = ask(running, FOX)
        assert half.partial
        assert not half.total_exact
        assert "BoboExecutionError" in half.warnings[0]
        assert {h.id for h in half.hits} < {h.id for h in whole.hits}
        reply = running.ask(ENGINE.compile(FOX, suite.SCHEMA, running.params))
        (http,) = split(reply)
        assert not any(mark in http.body[:512] for mark in running.service.whole)


def test_what_was_settled_outlives_a_server_that_is_killed_while_it_answers(
    tmp_path: Path,
) -> None:
    params = levels(parts=2)
    with serving(ENGINE, params, suite.Shelf(), tmp_path) as (running, _done):
        found = ids(running, FOX)
        late = ENGINE.batch([Document("late", {"title": "fox"})], 300, suite.SCHEMA, params)
        running.ask(late)
        requests = prepare([ENGINE.compile(FOX, suite.SCHEMA, params)])

        def kill(_completed: int, elapsed_ns: int, _recent: bytes) -> None:
            if elapsed_ns > 500_000_000 and running.lives():
                running.process.send_signal(signal.SIGKILL)

        trace = running.endpoint.drive(
            requests,
            Order(
                np.zeros(2, np.uint32),
                np.array([0, 1, 2], np.uint32),
                None,
                2,
                repeat=True,
                stop_ns=1_500_000_000,
            ),
            Manner(on_tick=kill),
        )
        outcomes = {_core.OUTCOMES[n] for n in samples_of(trace)["outcome"]}
        assert {"ok", "refused"} <= outcomes
        assert not {"partial", "http_error", "malformed"} & outcomes
        assert not running.lives()
    again = Deployment(ENGINE, params, tmp_path / "data", tmp_path / "run", (), suite.SCHEMA)
    with again:
        assert again.facts.documents == 300
        assert ids(again, FOX) == found
        # The stream goes on where the index on disk ends.
        again.ask(late)
        (settle,) = ENGINE.settle(suite.SCHEMA, params)
        assert ENGINE.check(again.ask(settle)) is None
        assert len(ids(again, FOX)) == len(found) + 1


def test_out_of_heap_it_ends_and_says_so(tmp_path: Path) -> None:
    schema = Schema((Field("k", FieldType.KEYWORD),))
    params = levels(heap_mb=32)
    running = Deployment(ENGINE, params, tmp_path / "data", tmp_path / "run", (), schema)
    with running:
        with pytest.raises(LabError):
            fill(running, 1_000_000)
        psutil.wait_procs([running.process], timeout=30)
        assert not running.lives()
        assert "OutOfMemoryError" in running.log_tail(20)


def fill(running: Deployment, most: int) -> None:
    """Documents of 2,000 bytes, which are kept in memory before they go to disk."""
    for at in range(0, most, 1000):
        each = [Document(str(n), {"k": f"{n:02000}"}) for n in range(at, at + 1000)]
        running.ask(ENGINE.batch(each, at, running.schema, running.params))


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/node1").write_text("a file where a directory should be")
    running = Deployment(ENGINE, levels(), tmp_path / "data", tmp_path / "run")
    with pytest.raises(LabError, match="exit code 2"), running:
        pass


def test_plain_columns_are_as_a_person_declares_them_and_take_no_portable_query() -> None:
    fields = (
        Field("color", FieldType.KEYWORD),
        Field("tags", FieldType.KEYWORDS),
        Field("price", FieldType.FLOAT),
        Field("new", FieldType.BOOLEAN),
        Field("contents", FieldType.TEXT),
    )
    schema = Schema(fields, Table("car", (Field("id", FieldType.INTEGER),)))
    params = levels(columns="plain")
    declared = ENGINE.service(params, schema).files["sensei/schema.xml"]
    assert '<column name="id" type="long" />' in declared
    assert '<facet name="price" type="range" />' in declared
    assert '<facet name="contents"' not in declared
    values = {"color": "red", "tags": ["a,b", "c"], "price": 2.5, "new": True, "contents": "x y"}
    (exchange,) = ENGINE.batch([Document("17", values)], 4, schema, params).exchanges
    event = orjson.loads(exchange.partition(b"\r\n\r\n")[2])
    del event["src_data"]
    assert event == {
        "uid": 17, "id": 17, "color": "red", "tags": "a\\,b,c", "price": 2.5, "new": "true",
        "contents": "x y",
    }  # fmt: skip
    with pytest.raises(Unsupported, match="cannot be asked portable queries of plain columns"):
        ENGINE.compile(FOX, schema, params)
