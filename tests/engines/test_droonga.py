"""Droonga's replies in the forms of a real one, and its requests put to Groonga, which knows them.

No registry has Droonga, so these tests hold the forms that engine 1.1.2 and HTTP server 1.1.3 were
seen to answer in, not a running system.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engines.test_conformance import SCHEMA, Shelf
from searchbench.corpora.corpus import Document, Field, FieldType, Schema
from searchbench.engines import defaults
from searchbench.engines.answer import CacheState
from searchbench.engines.groonga import Droonga, Groonga
from searchbench.errors import LabError
from searchbench.lab.conduct.ingest import ingest, spool
from searchbench.lab.get.install import missing
from searchbench.lab.system.address import target_of
from searchbench.lab.system.attach import Attached
from searchbench.lab.system.deploy import Deployment
from searchbench.workload.queries.algebra import Boolean, In, Mode, NotIn, Query, Range, Sort, Terms

ENGINE = Droonga()
GOLDEN = json.loads((Path(__file__).parent / "golden/droonga_replies.json").read_text())


def reply(name: str) -> bytes:
    """A golden reply as it comes: head and body."""
    golden = GOLDEN[name]
    body = (golden["text"] if "text" in golden else json.dumps(golden["body"])).encode()
    head = [f"HTTP/1.1 {golden['status']}", "Connection: keep-alive"]
    head += [f"{k}: {v}" for k, v in golden.get("headers", {}).items()]
    return "\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode() + body


def facts_reply(status: str, counted: str = "counted", cache: str = "cache statistics") -> bytes:
    return reply(status) + reply(cache) + reply(counted)


def test_a_found_page_has_hits_with_what_each_document_has() -> None:
    for name in ("found", "found in the cache of the front"):
        hits = ENGINE.decode(reply(name))
        assert (hits.total, hits.error) == (7, None)
        assert [(h.id, h.score, dict(h.fields)) for h in hits.hits] == [
            ("a", 3, {"the size": 0}),
            ("b", 1, {}),
        ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("error with return code 0, 404", "HTTP status 404: Droonga has no such table"),
        ("error with return code 0, 400", "HTTP status 400: Droonga cannot make anything of it"),
        ("a node is gone", "HTTP status 504: an engine node did not answer in time"),
        ("a node fails", "HTTP status 500: an engine node failed, or has just gone away"),
        ("the front reaches no node", "HTTP status 503: the HTTP front reached no engine node"),
        (
            "an error as an object, 500",
            "HTTP status 500: ProtocolAdapterError: Failed to adapt the message "
            '({"exception":"NoMethodError"})',
        ),
        (
            "an error as an object, 400",
            "HTTP status 400: UnknownType: The type of the message is unknown",
        ),
        ("error in Groonga's way", "Should not create anonymous table"),
    ],
)
def test_an_error_is_one_whatever_return_code_the_body_holds(name: str, said: str) -> None:
    hits = ENGINE.decode(reply(name))
    assert (hits.total, hits.hits) == (None, ())
    assert said in (hits.error or "")
    assert said in (ENGINE.check(reply(name)) or "")


def test_an_answer_without_a_count_is_no_answer() -> None:
    with pytest.raises(ValueError, match="no count"):
        ENGINE.decode(reply("no count"))


def test_status_is_read_in_both_forms() -> None:
    newer = ENGINE.facts(facts_reply("status since 1.1.1"))
    older = ENGINE.facts(facts_reply("status until 1.1.0"))
    assert (newer.version, older.version) == ("1.1.1 or later", "1.1.0 or before")
    assert newer.parameters == {"nodes": 2, "cache": True}
    assert older.parameters == {"nodes": 3, "cache": True}
    assert newer.extra["nodes"] == {
        "node0:10031/droonga": "active",
        "node1:10031/droonga": "active",
        "node2:10031/droonga": "dead",
    }
    # In percent, as it comes.
    assert newer.extra["cache_hit_rate_percent_since_start"] == 49.830717830807124
    assert newer.documents == 1500000


def test_no_table_is_no_document_and_a_silent_node_is_an_error() -> None:
    empty = facts_reply("status since 1.1.1", "error with return code 0, 404")
    assert ENGINE.facts(empty).documents is None
    with pytest.raises(ValueError, match="504"):
        ENGINE.facts(facts_reply("status since 1.1.1", "a node is gone"))
    with pytest.raises(ValueError, match="404"):  # somebody else's server
        ENGINE.facts(reply("error with return code 0, 404") * 3)


def test_a_front_that_was_started_without_a_cache_has_no_count_and_is_no_failure() -> None:
    without = "statistics of a front without a cache"
    found = ENGINE.facts(facts_reply("status since 1.1.1", cache=without))
    assert found.parameters == {"nodes": 2, "cache": False}
    assert found.documents == 1500000
    assert "cache_hits" not in found.extra
    assert ENGINE.cache_state(reply(without)) == CacheState(None, entries=0)
    with pytest.raises(ValueError, match="500"):
        ENGINE.facts(facts_reply("status since 1.1.1", cache="a node fails"))


def test_documents_that_it_drops_in_silence_are_counted() -> None:
    for name, taken in (
        ("load of two documents", 2),
        ("load with an unknown column", 1),
        ("load into a missing table", 0),
    ):
        assert ENGINE.check(reply(name)) is None
        assert ENGINE.taken(reply(name)) == taken
    with pytest.raises(ValueError, match="no count"):
        ENGINE.taken(reply("no count"))


class Front(BaseHTTPRequestHandler):
    """An HTTP front without a cache, whose engine has no column for the last document of a load."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        kind = self.path.partition("?")[0]
        answers = {
            "/droonga/system/status": "status since 1.1.1",
            "/statistics/cache": "statistics of a front without a cache",
            "/d/select": "error with return code 0, 404",
        }
        self.wfile.write(reply(answers.get(kind, "load of two documents")))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.wfile.write(reply("load with an unknown column"))

    def log_message(self, *_words: object) -> None:
        """Nothing is to be seen in the output of the tests."""


def test_an_ingest_of_which_it_drops_a_document_fails_and_says_so(tmp_path: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Front)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"127.0.0.1:{server.server_address[1]}"
        target = target_of("", [f"http://{address}"])
        with Attached(ENGINE, defaults(ENGINE), tmp_path / "run", target=target) as attached:
            assert attached.facts.parameters["cache"] is False
            batches = spool(ENGINE, Two(), tmp_path / "batches")
            with pytest.raises(LabError, match=r"Droonga took 1 of 2 documents.*column is missing"):
                ingest(attached, Two(), batches)
    finally:
        server.shutdown()
        server.server_close()


class Two:
    """A corpus of two documents."""

    name = "two"
    schema = Schema((Field("n", FieldType.INTEGER),))

    def documents(self) -> Iterator[Document]:
        yield Document("a", {"n": 1})
        yield Document("b", {"n": 2})


def test_it_is_never_started(tmp_path: Path) -> None:
    assert "attach" in (missing(ENGINE) or "")
    with (
        pytest.raises(LabError, match="no registry has it"),
        Deployment(ENGINE, defaults(ENGINE), tmp_path / "data", tmp_path / "run"),
    ):
        pass


@pytest.fixture(scope="module")
def groonga(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A Groonga that was given what Droonga would be given."""
    engine = Groonga()
    if lacking := missing(engine):
        pytest.skip(f"no groonga here: {lacking}")
    place = tmp_path_factory.mktemp("droonga")
    with Deployment(engine, defaults(engine), place / "data", place / "run") as running:
        params = defaults(ENGINE)
        documents = list(Shelf().documents())
        for request in (
            *ENGINE.create(SCHEMA, params),
            ENGINE.batch(documents, 0, SCHEMA, params),
            *ENGINE.settle(SCHEMA, params),
        ):
            assert engine.check(running.ask(request)) is None
        yield running


@pytest.mark.parametrize(
    "query",
    [
        Query(Terms(Mode.ANY, ("fox", "net")), limit=30, offset=5),
        Query(Terms(Mode.ALL, ("fox", "dog"), ("body",)), fields=("title", "size", "tags")),
        Query(Terms(Mode.PHRASE, ("quick", "brown")), limit=400),
        Query(Terms(Mode.PREFIX, ("fo",)), limit=400),
        Query(
            Boolean((Terms(Mode.ALL, ("fox",)),), (), (Terms(Mode.ANY, ("dog",)),)),
            (Range("size", 3, 40), NotIn("tags", ("b",)), In("section", ("net", "ü"))),
            (Sort("section", descending=True), Sort("size"), Sort("_score", descending=True)),
            limit=50,
        ),
        Query(None, sort=(Sort("price"),), limit=7),
        Query(Terms(Mode.ALL, ("nowhere",))),
    ],
    ids=str,
)
def test_groonga_understands_what_droonga_is_asked(groonga: Deployment, query: Query) -> None:
    same = groonga.engine.compile(query, SCHEMA, groonga.params)
    wanted = groonga.engine.decode(groonga.ask(same))
    found = ENGINE.decode(groonga.ask(ENGINE.compile(query, SCHEMA, {"nodes": 1})))
    assert found.error is None
    assert found.total == wanted.total
    if not query.filters:  # which add to the score
        assert found.hits == wanted.hits
    else:
        assert [h.id for h in found.hits] == [h.id for h in wanted.hits]
