"""Main, delta, and what is rotated in, on the real searchd and indexer."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engines.reference import Reference
from engines.test_conformance import SCHEMA, Shelf
from engines.test_sphinx import ask, ids, served
from searchbench.corpora.corpus import Document
from searchbench.engines.engine import Level
from searchbench.engines.mysql_form import request, split
from searchbench.engines.sphinx import Sphinx, SphinxApi
from searchbench.engines.write import Placed, insert
from searchbench.errors import Unsupported
from searchbench.lab.conduct.serve import serving
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.workload.queries.algebra import Facet, In, Mode, Query, Range, Sort, Terms

pytestmark = pytest.mark.slow

SPHINX, API = Sphinx(), SphinxApi()
DOCUMENTS = list(Shelf().documents())
EVERY = Query(limit=400)
NEW = Query(Terms(Mode.ALL, ("quite", "new")), limit=400)


@pytest.fixture(autouse=True, scope="module")
def _here() -> None:
    if lacking := missing(SPHINX):
        pytest.skip(f"no Sphinx here: {lacking}")


@contextmanager
def main_and_delta(place: Path, **levers: Level) -> Iterator[Deployment]:
    with served(place, index="main+delta", **levers) as running:
        yield running


def changed(n: int, said: str = "quite new") -> Document:
    """A document with other words and values than it had."""
    return Document(DOCUMENTS[n].id, {"title": said, "body": said, "section": "changed", "size": 7})


def write(running: Deployment, kind: str, *placed: Placed) -> None:
    if kind == "insert":
        made = insert(SPHINX, placed, SCHEMA, running.params)
    else:
        how = getattr(SPHINX, kind)
        made = how(placed, SCHEMA, running.params)
    assert SPHINX.check(running.tell(made)) is None


def publish(running: Deployment) -> None:
    (made,) = SPHINX.publish(SCHEMA, running.params).requests
    assert SPHINX.check(running.tell(made)) is None


def held(running: Deployment, index: str) -> int:
    """How many documents one of the two indexes finds when it is asked alone."""
    reply = running.ask(request(f"SELECT id FROM {index} LIMIT 0,1; SHOW META"))
    rows = {row["Variable_name"]: row["Value"] for row in split(reply)[-1].dicts()}
    return int(rows["total_found"] or 0)


def test_a_change_shows_once_it_is_published_and_hides_what_was(tmp_path: Path) -> None:
    (word, *_) = DOCUMENTS[5].values["title"].split()
    old = Query(Terms(Mode.ALL, (word,), ("title",)), limit=400)
    with main_and_delta(tmp_path) as running:
        assert running.facts.parameters == {"index": "main+delta", "levels": 1, "parts": 1}
        assert running.facts.documents == 300
        was = ids(ask(running, old))
        assert DOCUMENTS[5].id in was
        write(running, "update", Placed(changed(5), 300, 5))
        write(running, "delete", Placed(DOCUMENTS[6], -1, 6))
        write(running, "insert", Placed(Document("another", {"title": "quite new"}), 300))
        assert ids(ask(running, old)) == was
        assert ids(ask(running, NEW)) == []
        publish(running)
        assert sorted(ids(ask(running, NEW))) == sorted(["another", DOCUMENTS[5].id])
        assert DOCUMENTS[5].id not in ids(ask(running, old))
        assert DOCUMENTS[6].id not in ids(ask(running, EVERY))
        assert ask(running, EVERY).total == 300
        assert (held(running, "main"), held(running, "delta")) == (300, 2)
        # Once more: the delta is what changed since main was made, not since the last publish.
        write(running, "update", Placed(changed(8), 301, 8))
        publish(running)
        assert len(ids(ask(running, NEW))) == 3
        assert (held(running, "main"), held(running, "delta")) == (300, 3)


@pytest.mark.parametrize("merge_every", [0, 1, 2])
def test_everything_is_found_sorted_and_counted_as_if_it_were_one_index(
    tmp_path: Path, merge_every: int
) -> None:
    with main_and_delta(tmp_path, merge_every=merge_every) as running:
        there = {d.id: d for d in DOCUMENTS}
        for step in range(3):
            first = 20 * step
            for n in range(first, first + 8):
                write(running, "update", Placed(changed(n), 300 + n, n))
                there[DOCUMENTS[n].id] = changed(n)
            for n in range(first + 8, first + 12):
                write(running, "delete", Placed(DOCUMENTS[n], -1, n))
                del there[DOCUMENTS[n].id]
            added = [Placed(Document(f"new/{step}/{i}", DOCUMENTS[i].values), 300 + 5 * step + i)
                     for i in range(5)]  # fmt: skip
            write(running, "insert", *added)
            there |= {each.document.id: each.document for each in added}
            publish(running)
        assert held(running, "delta") == {0: 39, 1: 0, 2: 13}[merge_every]
        assert held(running, "main") == 300 + {0: 0, 1: 15 - 12, 2: 10 - 8}[merge_every]
        reference = Reference(SCHEMA, list(there.values()))
        for query in (
            EVERY,
            NEW,
            Query(Terms(Mode.ANY, ("fox", "net")), limit=400),
            Query(Terms(Mode.PREFIX, ("qu",)), limit=400),
            Query(filters=(In("section", ("changed", "net")), Range("size", 3, 7)), limit=400),
            Query(sort=(Sort("section"), Sort("size", True)), limit=400),
            Query(facets=(Facet("section"), Facet("tags")), limit=400),
        ):
            hits = ask(running, query)
            assert sorted(ids(hits)) == sorted(reference.ids(query)), query
            assert hits.total == len(hits.hits)
            if query.sort:
                assert ids(hits) == reference.sorted_ids(query)
            for name, found in hits.facets.items():
                assert list(found) == reference.counts(query, name)


def test_who_asks_between_two_rotations_sees_each_document_once(tmp_path: Path) -> None:
    """searchd itself promises no more: a search that is under way when an index is exchanged reads
    the kill list of one delta, and the documents of the next.
    """
    asks, spans = list[tuple[float, float, int | None, int]](), list[tuple[float, float]]()
    over = threading.Event()
    with main_and_delta(tmp_path, merge_every=2) as running:
        asked = SPHINX.compile(EVERY, SCHEMA, running.params)

        def look() -> None:
            while not over.is_set():
                began = time.monotonic()
                hits = SPHINX.decode(running.ask(asked))
                found = len({hit.id for hit in hits.hits})
                asks.append((began, time.monotonic(), hits.total, found))

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            for step in range(6):
                write(running, "update", *(Placed(changed(n, f"at {step}"), 300, n)
                                           for n in range(100)))  # fmt: skip
                began = time.monotonic()
                publish(running)
                spans.append((began, time.monotonic()))
                seen = len(asks)
                while len(asks) < seen + 3 and watcher.is_alive():
                    time.sleep(0.005)
        finally:
            over.set()
            watcher.join()
        between = [(total, found) for began, ended, total, found in asks
                   if all(ended < start or began > end for start, end in spans)]  # fmt: skip
        assert len(between) >= 6
        assert set(between) == {(300, 300)}
        assert ask(running, Query(Terms(Mode.ALL, ("at", "5")), limit=400)).total == 100


def test_what_was_acknowledged_outlives_its_keeper(tmp_path: Path) -> None:
    with main_and_delta(tmp_path) as running:
        write(running, "update", Placed(changed(1), 300, 1))
        write(running, "delete", Placed(DOCUMENTS[2], -1, 2))
        (keeper,) = running.family("source")[:1]
        keeper.send_signal(signal.SIGKILL)
        keeper.wait(5)
        assert running.ended("source")
        with (tmp_path / "data" / "changes").open("ab") as file:
            file.write(b"+3\tcut of")  # what a crash left of a change that nobody acknowledged
        running.start_again("source")
        running.wait_until_ready()
        write(running, "update", Placed(changed(4), 300, 4))
        publish(running)
        assert sorted(ids(ask(running, NEW))) == sorted([DOCUMENTS[1].id, DOCUMENTS[4].id])
        assert ask(running, EVERY).total == 299
    # And the whole service, with what it had not published when it ended.
    with Deployment(SPHINX, running.params, tmp_path / "data", tmp_path / "run", (), SCHEMA) as it:
        write(it, "update", Placed(changed(9), 300, 9))
        publish(it)
        assert len(ids(ask(it, NEW))) == 3
        assert ask(it, EVERY).total == 299


def test_the_delta_is_made_by_itself_where_that_is_asked_for(tmp_path: Path) -> None:
    with main_and_delta(tmp_path, refresh_ms=50) as running:
        assert "every 50 ms" in SPHINX.publish(SCHEMA, running.params).unasked
        write(running, "update", Placed(changed(5), 300, 5))
        patience = threading.Event()
        for _ in range(400):
            if ids(ask(running, NEW)):
                break
            patience.wait(0.05)
        assert ids(ask(running, NEW)) == [DOCUMENTS[5].id]


def test_what_cannot_be_done_is_said_in_words(tmp_path: Path) -> None:
    with main_and_delta(tmp_path) as running:
        said = SPHINX.check(running.tell(request("SELECT 1")))
        assert said == "there is no statement 'SELECT 1' (error 1064)"
        assert "known by its number" in str(SPHINX.check(running.tell(request("DROP x"))))
        # Rows that indexer cannot read are no delta, and the one that was there stays.
        assert SPHINX.check(running.tell(request("PUT\n7\tshort"))) is None
        (made,) = SPHINX.publish(SCHEMA, running.params).requests
        assert "indexer ended with exit code" in str(SPHINX.check(running.tell(made)))
        assert ask(running, EVERY).total == 300
        write(running, "update", Placed(changed(6), 300, 6))
        publish(running)
        assert ids(ask(running, NEW)) == [DOCUMENTS[6].id]
        assert running.process is not None
        running.process.kill()
        running.process.wait(5)
        assert "NOT rotated" in str(SPHINX.check(running.tell(made)))


@pytest.mark.parametrize(
    ("levers", "said"),
    [
        ({"index": "main+delta", "parts": 2}, "there is one main and one delta"),
        ({"index": "main+delta", "workers": "fork"}, "workers = threads"),
        ({"merge_every": 3}, 'with index = "offline" there is none: say index = "main\\+delta"'),
        ({"index": "realtime", "refresh_ms": 9}, "or leave `refresh_ms` out"),
    ],
)
def test_levers_that_do_not_go_together_are_refused(levers: dict[str, Level], said: str) -> None:
    params = {**{p.name: p.default for p in SPHINX.parameters}, **levers}
    with pytest.raises(Unsupported, match=said):
        SPHINX.service(params, SCHEMA)
    if "merge_every" not in levers:
        assert said.replace("\\", "") in SPHINX.cannot_write(params)["update"]
    if levers.get("index") == "main+delta":
        with pytest.raises(Unsupported, match="use the engine `sphinx`"):
            API.service(params, SCHEMA)


def test_the_service_is_taken_down_with_all_that_it_started(tmp_path: Path) -> None:
    params = {**{p.name: p.default for p in SPHINX.parameters}, "index": "main+delta"}
    with serving(SPHINX, params, Shelf(), tmp_path) as (running, done):
        assert done.documents == 300
        every = list(running.processes)
        assert len(every) == 2
    assert not any(p.is_running() for p in every)
