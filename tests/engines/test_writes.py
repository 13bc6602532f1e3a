"""Documents inserted, replaced and deleted on every real engine that declares how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from searchbench.corpora.corpus import Document, Field, FieldType, Schema
from searchbench.engines import ENGINES, defaults
from searchbench.engines.engine import Engine
from searchbench.engines.write import Placed, TakesWrites, insert
from searchbench.lab.conduct.ingest import must
from searchbench.lab.conduct.serve import serving
from searchbench.lab.drive.changes import lookup
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment

pytestmark = pytest.mark.slow

SCHEMA = Schema(
    (
        Field("title", FieldType.TEXT),
        Field("tags", FieldType.KEYWORDS),
        Field("price", FieldType.INTEGER),
    )
)
LEVELS: dict[str, dict[str, Any]] = {
    "groonga": {},
    "sqlite": {"keys": True},
    "tantivy": {"keys": True, "parts": 2},
    "lucene": {"keys": True, "parts": 2},
    "mariadb": {},
    "postgresql": {"keys": True},
    "sphinx": {"index": "realtime", "parts": 2},
    "sphinx with a delta": {"index": "main+delta"},
    "opensearch": {},
    "sensei": {"parts": 2},
}


class Books:
    """Ten, each with a word of its own."""

    name = "books"
    schema = SCHEMA

    def documents(self) -> Iterator[Document]:
        return (book(n, "first") for n in range(10))


def book(n: int, *words: str) -> Document:
    said = " ".join([f"book{n}", *words])
    return Document(f"id-{n}", {"title": said, "tags": ["a", f"t{n}"], "price": n})


@pytest.fixture(scope="module", params=LEVELS)
def running(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Deployment]:
    engine = ENGINES[request.param.split()[0]]
    if lacking := missing(engine):
        pytest.skip(f"no {engine.name} here: {lacking}")
    folder: Path = tmp_path_factory.mktemp("writes")
    params = {**defaults(engine), **LEVELS[request.param]}
    with serving(engine, params, Books(), folder, (0,)) as (found, _done):
        yield found


def found(running: Deployment, word: str) -> list[str]:
    reply = running.ask(running.engine.compile(lookup(word, "title"), SCHEMA, running.params))
    hits = running.engine.decode(reply)
    assert hits.error is None
    assert hits.total == len(hits.hits)
    return sorted(hit.id for hit in hits.hits)


def count(running: Deployment) -> int | None:
    engine = running.engine
    return engine.facts(running.ask(engine.facts_request())).documents


def test_what_is_inserted_replaced_and_deleted_is_there_as_it_was_written(
    running: Deployment,
) -> None:
    engine: Engine = running.engine
    assert isinstance(engine, TakesWrites)
    assert set(engine.cannot_write(running.params)) <= {"publish"}

    def publish() -> None:
        for each in engine.publish(SCHEMA, running.params).requests:
            must(running, running.tell(each), "publish")

    def write(kind: str, placed: Sequence[Placed]) -> None:
        if kind == "insert":
            made = insert(engine, placed, SCHEMA, running.params)
        else:
            how = engine.update if kind == "update" else engine.delete
            made = how(placed, SCHEMA, running.params)
        reply = running.tell(made)
        must(running, reply, kind)
        assert engine.refused(reply) == ()
        publish()

    assert count(running) == 10
    write("insert", [Placed(book(n, "new"), n) for n in (10, 11, 12)])
    assert count(running) == 13
    assert found(running, "new") == ["id-10", "id-11", "id-12"]
    write("update", [Placed(book(n, "changed"), at, n) for at, n in ((13, 2), (14, 5))])
    assert count(running) == 13
    assert found(running, "changed") == ["id-2", "id-5"]
    assert found(running, "book5") == ["id-5"]
    assert "id-2" not in found(running, "first")
    write("delete", [Placed(book(n), -1, n) for n in (0, 1, 7)])
    assert count(running) == 10
    assert found(running, "book7") == []
    assert found(running, "first") == ["id-3", "id-4", "id-6", "id-8", "id-9"]
    write("insert", [Placed(book(7, "again"), 15)])
    assert found(running, "book7") == ["id-7"]
    assert count(running) == 11
