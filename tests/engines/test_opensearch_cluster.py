"""OpenSearch as three nodes, one of them killed; and starts that fail, each with its sentence."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from engines.reference import Reference
from engines.test_conformance import SCHEMA, Shelf
from searchbench import _core
from searchbench.corpora.corpus import Schema
from searchbench.engines import defaults
from searchbench.engines.answer import Hits
from searchbench.engines.engine import Parameters, Request, Service
from searchbench.engines.http_form import put
from searchbench.engines.opensearch import OpenSearch
from searchbench.engines.opensearch.http import health
from searchbench.errors import LabError
from searchbench.lab.conduct.ingest import spool
from searchbench.lab.conduct.serve import serving
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.wire.exchange import prepare, samples_of
from searchbench.lab.wire.order import Manner, Order
from searchbench.workload.queries.algebra import Facet, Mode, Query, Sort, Terms

ENGINE = OpenSearch()
QUERIES = [
    *(Query(Terms(mode, ("fox", "net")), facets=(Facet("tags"),), limit=400) for mode in Mode),
    Query(Terms(Mode.ANY, ("fox",)), sort=(Sort("section"), Sort("size", True)), limit=400),
]


@pytest.fixture(autouse=True, scope="module")
def _here() -> None:
    if lacking := missing(ENGINE):
        pytest.skip(f"no opensearch here: {lacking}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Three nodes; the index has three shards with a copy of each."""
    levels = {**defaults(ENGINE), "nodes": 3, "shards": 3, "replicas": 1, "heap_mb": 256}
    place: Path = tmp_path_factory.mktemp("cluster")
    with serving(ENGINE, levels, Shelf(), place) as (running, done):
        assert (done.documents, done.refused) == (300, 0)
        yield running


class Alone(OpenSearch):
    """The same words for an index of another name, without copies."""

    def elsewhere(self, request: Request) -> Request:
        return Request(tuple(e.replace(b" /docs", b" /alone", 1) for e in request.exchanges))


def ask(running: Deployment, query: Query) -> Hits:
    return ENGINE.decode(running.ask(ENGINE.compile(query, SCHEMA, running.params)))


def agree(running: Deployment) -> None:
    """Every answer is whole and the reference's."""
    reference = Reference(SCHEMA, list(Shelf().documents()))
    for query in QUERIES:
        hits = ask(running, query)
        assert (hits.error, hits.partial, hits.warnings) == (None, False, ())
        if query.sort:
            assert [h.id for h in hits.hits] == reference.sorted_ids(query)
        else:
            assert sorted(h.id for h in hits.hits) == sorted(reference.ids(query))
            assert list(hits.facets["tags"]) == reference.counts(query, "tags")
        assert hits.total == len(hits.hits)


def test_three_nodes_answer_like_one_index_and_read_their_levers_back(cluster: Deployment) -> None:
    facts = ENGINE.facts(cluster.ask(ENGINE.facts_request()))
    unread = ENGINE.can.unread
    assert dict(facts.parameters) == {k: v for k, v in cluster.params.items() if k not in unread}
    assert (facts.documents, facts.extra["status"]) == (300, "green")
    assert sorted(facts.extra["nodes"]) == ["n1", "n2", "n3"]
    agree(cluster)


def test_a_node_killed_while_asked_is_seen_in_answers_and_its_copies_take_over(
    cluster: Deployment, tmp_path: Path
) -> None:
    alone, levels = Alone(), {**cluster.params, "replicas": 0}
    batches = spool(ENGINE, Shelf(), tmp_path / "batches", levels)
    data = batches.path.read_bytes()
    edges = [0, *(int(end) for end in batches.exchange_ends)]
    puts = [Request((data[a:b],)) for a, b in itertools.pairwise(edges)]
    for request in (*ENGINE.create(SCHEMA, levels), *puts, *ENGINE.settle(SCHEMA, levels)):
        assert ENGINE.check(cluster.ask(alone.elsewhere(request))) is None
    query = ENGINE.compile(Query(limit=1), SCHEMA, levels)
    whole = ENGINE.decode(cluster.ask(alone.elsewhere(query)))
    assert (whole.total, whole.partial) == (300, False)

    victim = cluster.processes[-1]
    killed: list[int] = []

    def tick(done: int, _elapsed_ns: int, _recent: bytes) -> None:
        if done > 50 and not killed:
            killed.append(done)
            victim.kill()

    count = 100_000
    trace = cluster.endpoint.drive(
        prepare([alone.elsewhere(query)]),
        Order(
            np.zeros(count, np.uint32),
            np.array([0, count], np.uint32),
            None,
            1,
            stop_ns=4_000_000_000,
        ),
        Manner(timeout_s=30.0, capture_every=1, on_tick=tick),
    )
    assert killed
    assert not cluster.lives()
    replies = dict(trace.replies())
    hits = [ENGINE.decode(replies[n]) for n in range(len(replies))]
    outcomes = [_core.OUTCOMES[int(s["outcome"])] for s in samples_of(trace)]
    # Nothing is silently too small: what the server calls a success says what is missing.
    assert outcomes[0] == "ok"
    assert outcomes[-1] == "partial"
    # (A shard that answered and was gone before its hit was fetched is partial with all counted.)
    for outcome, hit in zip(outcomes, hits, strict=True):
        assert outcome != "ok" or (hit.total, hit.partial, hit.error) == (300, False, None)
        assert (outcome == "partial") == hit.partial
    last = hits[-1]
    assert last.partial
    assert 0 < (last.total or 0) < 300
    assert any("of 3" in warning for warning in last.warnings)

    # The other index had a copy of each shard: whole again, and then green, with two nodes.
    cluster.params = {**cluster.params, "nodes": 2}
    give_up = time.monotonic() + 60
    # By default it is waited a minute whether the node comes back.
    at_once = put("/docs/_settings", [], b'{"index.unassigned.node_left.delayed_timeout":"0"}')
    assert ENGINE.check(cluster.ask(Request((at_once,)))) is None
    gone = Request((b"DELETE /alone HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",))
    assert ENGINE.check(cluster.ask(gone)) is None
    trouble: str | None = "not asked"
    while trouble and time.monotonic() < give_up:
        trouble = ENGINE.check(cluster.ask(Request((health(cluster.params, "30s"),))))
    assert trouble is None
    agree(cluster)


class Impatient(OpenSearch):
    """Waits for less than a JVM takes to start."""

    def service(self, params: Parameters, schema: Schema) -> Service:
        return replace(super().service(params, schema), ready_timeout_s=0.5)


def test_a_start_that_takes_too_long_is_given_up_with_a_sentence(tmp_path: Path) -> None:
    engine = Impatient()
    running = Deployment(engine, defaults(engine), tmp_path / "data", tmp_path / "run")
    with pytest.raises(LabError, match=r"opensearch was not ready after 0\.5 s"), running:
        pass
    assert not running.lives()


def test_a_heap_too_small_to_start_in_is_named(tmp_path: Path) -> None:
    levels = {**defaults(ENGINE), "heap_mb": 16}
    running = Deployment(ENGINE, levels, tmp_path / "data", tmp_path / "run")
    with pytest.raises(LabError, match=r"ended while starting.*(OutOfMemoryError|heap)"), running:
        pass


def test_nothing_of_a_server_is_left_behind(cluster: Deployment) -> None:
    """Runs last in this file: what it starts is stopped with all its nodes."""
    processes = list(cluster.processes)
    cluster.stop()
    assert not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes)
