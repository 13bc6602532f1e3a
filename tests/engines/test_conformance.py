"""Every engine, on its own wire, against the reference: same totals, same documents, same order."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from engines.reference import Reference
from searchbench.corpora.corpus import Document, Field, FieldType, Schema
from searchbench.engines import ENGINES, defaults
from searchbench.engines.answer import Hits
from searchbench.engines.engine import Capabilities, Engine, Parameters, Request
from searchbench.engines.features import refuse
from searchbench.engines.tantivy import Tantivy
from searchbench.errors import LabError, Unsupported
from searchbench.lab.conduct.serve import serving
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
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

pytestmark = pytest.mark.slow
SCHEMA = Schema(
    (
        Field("title", FieldType.TEXT),
        Field("body", FieldType.TEXT),
        Field("section", FieldType.KEYWORD),
        Field("tags", FieldType.KEYWORDS),
        Field("size", FieldType.INTEGER),
        Field("price", FieldType.FLOAT),
        Field("released", FieldType.DATE),
        Field("free", FieldType.BOOLEAN),
    )
)
WORDS = (
    *("search", "engine", "index", "query", "fast", "slow", "part", "merge", "net", "über"),
    *("straße", "naïve", "検索", "c3po", "x2", "data", "base", "quick", "brown", "fox", "dog"),
    *("lazy", "jump", "tree", "river"),
)
SEARCHES = [n for n, e in ENGINES.items() if n != "null" and not e.can.unavailable]


# They take a document without the value that does not fit, or say nothing of whose it was.
UNTOLD = [n for n in SEARCHES if "refusal" in ENGINES[n].can.cannot]


# They take seconds to start; over Debian's packages every system is started again, they too.
ON_A_JVM = ("lucene", "lucene10", "opensearch", "elasticsearch", "sensei")


class Shelf:
    """A small corpus with gaps, several values, accents, digits and odd punctuation.

    ``misfit``: its last document has a value that does not fit.
    """

    name = "shelf"
    schema = SCHEMA

    def __init__(self, *, misfit: bool = False) -> None:
        self.misfit = misfit

    def documents(self) -> Iterator[Document]:
        rng = random.Random(7)
        glue = [" ", ", ", "-", "/", " (", "_", "'", "…", "\n"]
        for number in range(300):
            values: dict[str, object] = {
                "title": " ".join(rng.choices(WORDS, k=rng.randint(1, 4))),
                "body": "".join(w + rng.choice(glue) for w in rng.choices(WORDS, k=30)),
            }
            optional = {
                "section": rng.choice(["net", "web", "data base", "ü"]),
                "tags": rng.sample(["a", "b", "c c", "d'd"], rng.randint(1, 3)),
                "size": rng.randint(-5, 50),
                "price": rng.choice([0.5, 1.25, 99.9, -3.0]),
                "released": rng.randint(0, 4) * 86_400_000,
                "free": rng.random() < 0.5,
            }
            values |= {k: v for k, v in optional.items() if rng.random() < 0.9}
            yield Document(f"doc/{number}", values)
        if self.misfit:
            yield Document("bad", {"title": "misfit", "size": "many"})


@pytest.fixture(scope="module", params=SEARCHES)
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    engine: Engine = ENGINES[request.param]
    if lacking := missing(engine):
        pytest.skip(f"no {engine.name} here: {lacking}")
    place: Path = tmp_path_factory.mktemp(engine.name)
    shelf = Shelf(misfit=engine.name not in UNTOLD)
    with serving(engine, defaults(engine), shelf, place) as (deployment, done):
        # The document that does not fit is refused with its id, and no other.
        assert done.documents == 300
        assert [r["id"] for r in done.refusals] == ["bad"] * shelf.misfit
        yield deployment


@pytest.fixture(scope="module")
def reference() -> Reference:
    return Reference(SCHEMA, list(Shelf().documents()))


def ask(deployment: Deployment, query: Query) -> Hits:
    """The answer, or a skip-free pass through Unsupported to the caller."""
    hits = deployment.engine.decode(
        deployment.ask(deployment.engine.compile(query, SCHEMA, deployment.params))
    )
    assert hits.error is None, hits.error
    return hits


def supported(deployment: Deployment, query: Query) -> bool:
    """False where the engine declares that it cannot."""
    return expressible(deployment.engine, query, deployment.params)


def expressible(engine: Engine, query: Query, params: Parameters) -> bool:
    """False where ``can.cannot`` names what the query needs; else its translator must take it."""
    try:
        refuse(engine.can, query)
    except Unsupported:
        return False
    engine.compile(query, SCHEMA, params)
    return True


def test_a_refusal_that_is_not_declared_is_a_failure() -> None:
    class Silent(Tantivy):
        """Refuses a phrase and declares that it cannot do facets."""

        can = Capabilities("Silent", "", cannot={"facets": "we could"})

        def compile(self, query: Query, schema: Schema, params: Parameters) -> Request:
            raise Unsupported("Silent cannot do phrase")

    assert not expressible(Silent(), Query(None, facets=(Facet("section"),)), {})
    with pytest.raises(Unsupported, match="phrase"):
        expressible(Silent(), Query(Terms(Mode.PHRASE, ("red", "fox"))), {})


def drawn(rng: random.Random, mode: Mode) -> Terms:
    words = [rng.choice(WORDS) for _ in range(rng.randint(1, 3))]
    words = [t for w in words for t in terms(w)]
    if mode is Mode.PREFIX:
        words = [w[: rng.randint(1, len(w))] for w in words]
    fields = rng.choice([(), ("title",), ("body",), ("title", "body")])
    return Terms(mode, tuple(words), fields, rng.randint(1, 2))


@pytest.mark.parametrize("mode", list(Mode))
def test_terms_find_the_same_documents_as_the_reference(
    running: Deployment, reference: Reference, mode: Mode
) -> None:
    rng = random.Random(str(mode))
    for _ in range(40):
        query = Query(drawn(rng, mode), limit=400)
        if not supported(running, query):
            continue
        hits = ask(running, query)
        assert sorted(h.id for h in hits.hits) == sorted(reference.ids(query)), query
        assert hits.total == len(hits.hits), query


def test_phrases_of_a_document_are_found_in_it(running: Deployment, reference: Reference) -> None:
    rng = random.Random(1)
    for i, words in enumerate(reference.words[:60]):
        body = words["body"]
        at = rng.randrange(len(body) - 3)
        query = Query(Terms(Mode.PHRASE, body[at : at + 3]), limit=400)
        found = {h.id for h in ask(running, query).hits}
        assert f"doc/{i}" in found
        assert found == set(reference.ids(query))


def test_booleans_filters_and_negation_find_the_same(
    running: Deployment, reference: Reference
) -> None:
    rng = random.Random(2)
    modes = [Mode.ANY, Mode.ALL, Mode.PHRASE]
    for _ in range(80):
        match = Boolean(
            must=tuple(drawn(rng, rng.choice(modes)) for _ in range(rng.randint(0, 2))),
            should=tuple(drawn(rng, rng.choice(modes)) for _ in range(rng.randint(0, 2))),
            must_not=tuple(drawn(rng, rng.choice(modes)) for _ in range(rng.randint(0, 1))),
        )
        filters = rng.sample(
            [
                Range("size", rng.randint(-5, 10), rng.randint(10, 50), rng.random() < 0.5, True),
                Range("price", None, 1.25, True, rng.random() < 0.5),
                Range("released", 86_400_000, None),
                In("section", ("net", "data base")),
                In("tags", ("a", "d'd")),
                NotIn("tags", ("b",)),
                NotIn("section", ("ü", "no such")),
                In("free", (True,)),
                Range("section", "net", "web", rng.random() < 0.5, rng.random() < 0.5),
                In("size", (1, 2, 3, 4, 5, 6, 7)),
            ],
            rng.randint(0, 3),
        )
        query = Query(rng.choice([None, match]), tuple(filters), limit=400)
        hits = ask(running, query)
        assert sorted(h.id for h in hits.hits) == sorted(reference.ids(query)), query
        assert hits.total == len(hits.hits)


def test_sorting_by_up_to_three_fields_is_the_same_to_the_last_tie(
    running: Deployment, reference: Reference
) -> None:
    rng = random.Random(3)
    for _ in range(40):
        keys = rng.sample(["section", "size", "price", "released", "free"], rng.randint(1, 3))
        query = Query(
            Terms(Mode.ANY, ("search", "fox")),
            sort=tuple(Sort(k, rng.random() < 0.5) for k in keys),
            offset=rng.choice([0, 7]),
            limit=25,
        )
        if supported(running, query):
            assert [h.id for h in ask(running, query).hits] == reference.sorted_ids(query), query


def test_facets_and_groups_count_the_same(running: Deployment, reference: Reference) -> None:
    for match in (None, Terms(Mode.ANY, ("fox",)), Terms(Mode.ALL, ("fox", "dog"))):
        query = Query(match, facets=(Facet("section", 3), Facet("tags", 10)), group_by="section")
        if not supported(running, query):
            continue
        hits = ask(running, query)
        assert list(hits.facets["section"]) == reference.counts(query, "section")[:3]
        assert list(hits.facets["tags"]) == reference.counts(query, "tags")
        assert list(hits.groups)[:10] == reference.counts(query, "section")[:10]


@pytest.mark.parametrize("field", ["section", "tags", "size", "free"])
def test_groups_by_any_kind_of_value_count_the_same(
    running: Deployment, reference: Reference, field: str
) -> None:
    query = Query(Terms(Mode.ANY, ("fox",)), group_by=field)
    if supported(running, query):
        assert list(ask(running, query).groups) == reference.counts(query, field)[:10]


def test_pages_follow_each_other_without_gap_or_overlap(running: Deployment) -> None:
    match = Terms(Mode.ANY, ("fox", "net"))
    whole = [h.id for h in ask(running, Query(match, limit=60)).hits]
    pages = [h.id for n in range(6) for h in ask(running, Query(match, offset=n * 10)).hits]
    assert pages == whole


def test_scores_do_not_rise_down_the_list(running: Deployment) -> None:
    scores = [h.score for h in ask(running, Query(Terms(Mode.ANY, ("fox", "net")), limit=50)).hits]
    assert len(scores) == 50
    assert all(a is not None and b is not None and a >= b for a, b in pairwise(scores))


def test_returned_fields_are_those_that_went_in(running: Deployment, reference: Reference) -> None:
    query = Query(Terms(Mode.ANY, ("fox",)), limit=5, fields=("title", "tags", "size", "released"))
    by_id = {d.id: d.values for d in reference.documents}
    for hit in ask(running, query).hits:
        wanted = {k: v for k, v in by_id[hit.id].items() if k in query.fields}
        assert {k: v for k, v in hit.fields.items() if v is not None} == wanted


@pytest.mark.parametrize("mode", [Mode.ANY, Mode.PHRASE, Mode.PREFIX])
def test_snippets_show_a_found_word_of_each_hit(running: Deployment, mode: Mode) -> None:
    words = ("lazy", "net") if mode is Mode.ANY else ("lazy",)
    query = Query(Terms(mode, words), limit=50, snippets=("title", "body"))
    if "snippets" in running.engine.can.cannot:
        with pytest.raises(Unsupported, match=r"snippets: (we could|upstream must|never)"):
            refuse(running.engine.can, query)
        return
    hits = ask(running, query)
    assert len(hits.hits) == 50
    for hit in hits.hits:
        shown = [piece for pieces in hit.snippets.values() for piece in pieces]
        assert any(word in piece.lower() for piece in shown for word in words), hit.id
        assert set(hit.snippets) <= set(query.snippets)


def test_the_engine_sees_the_declared_terms(running: Deployment) -> None:
    text = "Über-STRASSE x2, naïve_c3po (検索) 12.5"
    request = running.engine.analyse(text)
    if request is not None:
        assert running.engine.terms(running.ask(request)) == terms(text)


def test_hostile_terms_are_terms_and_not_syntax(running: Deployment) -> None:
    for word in ('"', "a OR b", "*", "title:", "'; drop table docs", "\\", "NEAR(", "\0"):
        hits = running.engine.decode(
            running.ask(
                running.engine.compile(Query(Terms(Mode.ALL, (word,))), SCHEMA, running.params)
            )
        )
        assert hits.error is not None or hits.total == 0


def test_it_tells_its_version_and_reads_its_levers_back(running: Deployment) -> None:
    assert running.facts.version[0].isdigit()
    # Asked again, because a server has no analysis to read back before it has an index.
    engine = running.engine
    facts = engine.facts(running.ask(engine.facts_request()))
    assert facts.version == running.facts.version
    unread = dict(engine.can.unread)
    assert all(
        reason.startswith(("we could", "upstream must", "never")) for reason in unread.values()
    )
    assert dict(facts.parameters) == {k: v for k, v in defaults(engine).items() if k not in unread}


def test_what_it_cannot_do_is_refused_with_a_reason(running: Deployment) -> None:
    query = Query(Terms(Mode.FUZZY, ("serch",)))
    if "fuzzy" in running.engine.can.cannot:
        with pytest.raises(Unsupported, match=r"fuzzy: (we could|upstream must|never)"):
            running.engine.compile(query, SCHEMA, running.params)
    else:
        assert ask(running, query).total


@pytest.mark.parametrize("name", UNTOLD)
def test_a_document_that_does_not_fit_and_is_not_refused_is_declared(
    name: str, tmp_path: Path
) -> None:
    engine = ENGINES[name]
    if lacking := missing(engine):
        pytest.skip(f"no {engine.name} here: {lacking}")

    class Bad:
        name = "bad"
        schema = Schema((Field("size", FieldType.INTEGER),))

        def documents(self) -> Iterator[Document]:
            yield Document("good", {"size": 1})
            yield Document("bad", {"size": "many"})

    said = "many"
    try:
        with serving(engine, defaults(engine), Bad(), tmp_path) as (running, done):
            # It takes the document without the value, and says nothing.
            asked = engine.compile(Query(), Bad.schema, running.params)
            assert (done.documents, done.refused) == (2, 0)
            assert [h.id for h in engine.decode(running.ask(asked)).hits] == ["good", "bad"]
    except LabError as error:
        # It says that a value did not fit, but not whose, so the ingest fails.
        said = str(error)
    assert "many" in said


@pytest.mark.parametrize("running", [n for n in SEARCHES if n not in ON_A_JVM], indirect=True)
def test_an_index_outlives_its_process(running: Deployment, reference: Reference) -> None:
    """The server of all these tests is stopped and started again, and serves on."""
    before = running.processes
    running.stop()
    assert not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in before)
    running.__enter__()
    assert running.facts.documents == 300
    fox = Query(Terms(Mode.ANY, ("fox",)), limit=400)
    assert sorted(h.id for h in ask(running, fox).hits) == sorted(reference.ids(fox))


def test_only_loopback_is_listened_on(running: Deployment) -> None:
    assert addresses(running) == {"127.0.0.1"}


def test_the_null_host_listens_on_loopback_only(tmp_path: Path) -> None:
    null = ENGINES["null"]
    with serving(null, defaults(null), Shelf(), tmp_path) as (deployment, _done):
        assert addresses(deployment) == {"127.0.0.1"}


def addresses(deployment: Deployment) -> set[str]:
    """Where the processes of a service, and theirs, listen."""
    found = set()
    for process in deployment.processes:
        for each in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):  # a server's helper may just end
                found |= {
                    c.laddr.ip.removeprefix("::ffff:")
                    for c in each.net_connections("inet")
                    if c.status == psutil.CONN_LISTEN
                }
    return found


def test_a_second_create_is_an_error_in_words(running: Deployment) -> None:
    if running.engine.offline(SCHEMA, running.params) is not None:
        return  # its index is made before it starts: there is nothing to create
    request, *_rest = running.engine.create(SCHEMA, running.params)
    trouble = running.engine.check(running.ask(request))
    assert trouble
    assert re.search("already|exists", trouble)


def test_a_service_that_cannot_start_says_why(tmp_path: Path) -> None:
    engine = ENGINES["tantivy"]
    wrong = {**defaults(engine), "merge": "sideways"}
    with (
        pytest.raises(LabError, match="sideways"),
        Deployment(engine, wrong, tmp_path / "data", tmp_path / "run"),
    ):
        pass
