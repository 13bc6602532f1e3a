"""What a writer sends: which documents are inserted, updated and deleted, in which requests.

All of it is drawn with the seed and turned into the engine's bytes before the clock starts. A
document is inserted, updated or deleted once at most, so that the order in which several
connections are served cannot change what is there in the end.

Some documents carry a word more, by which they are known: a *marker* has the word of all markers,
so that one question tells which of them can be found, and a word of its own; a *drawn* one has a
word of its own alone, and is asked for once all is over.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from searchbench.corpora.corpus import Corpus, Document, FieldType, Schema
from searchbench.engines.engine import Engine, Parameters, Request
from searchbench.engines.write import Placed, TakesWrites, insert
from searchbench.errors import LabError
from searchbench.lab.wire.order import I64, Order, each_once
from searchbench.workload.changes import KINDS, allowed, due_ns, lacking, shares
from searchbench.workload.queries.algebra import Mode, Query, Terms
from searchbench.workload.roles import is_random
from searchbench.workload.shape import stages_of, starts_of

MARKER = "sbmarker"
"""The word of all markers."""
UPDATED = "sbupdated"
"""The word of all updated documents, by which those that were applied are counted."""
_DRAWN = 40  # documents of each kind beside the markers
_MOST_MARKERS = 1000
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Change:
    """One request of a writer: what is done to which documents. ``marker``: the id of one."""

    kind: str
    placed: tuple[Placed, ...]
    marker: str = ""


@dataclass(frozen=True, slots=True)
class Word:
    """A word that one written document alone has."""

    word: str
    id: str
    kind: str
    request: int


@dataclass(frozen=True)
class Changes:
    """All requests of a writer, and when they are sent. ``text``: the field that words are added
    to; "" where the corpus has none.
    """

    each: tuple[Change, ...]
    requests: tuple[Request, ...]
    order: Order
    words: tuple[Word, ...] = ()
    text: str = ""
    asked: Query | None = None


def changes(
    table: Mapping[str, Any],
    engine: Engine,
    base: Corpus,
    count: int,
    kept: Iterable[Document],
    params: Parameters,
    *,
    begin_ns: int,
    stop_ns: int,
    seed: int,
    base_folder: Path | None = None,
) -> Changes:
    """What the role of this table (complete) writes in a drive that ends at ``stop_ns``.

    ``base``: the corpus that is there, ``count`` documents; ``kept``: those that were kept back.
    ``begin_ns``: the beginning of the window; ``base_folder``: what a file of times is relative to.
    LabError (``prepare``) where there are too few
    documents for its clock.
    """
    schema = base.schema
    text = next((f.name for f in schema.of_type(FieldType.TEXT)), "")
    due = due_ns(table, begin_ns, stop_ns, seed, base_folder)
    batch, spare = int(table["batch"]), list(kept)
    wanted = None if due is None else len(due)
    each = _kinds(table, wanted, len(spare), count)
    numbers = {kind: sum(k == kind for k in each) * batch for kind in KINDS}
    found = _documents(base, count, numbers["update"] + numbers["delete"], seed)
    random.Random(f"searchbench kept back, in order {seed}").shuffle(spare)
    marked, due = _marked(table, each, due, text, seed)
    drawn = _drawn(each, seed) if text else frozenset[int]()
    made, words = [], list[Word]()
    at, new, old = count, iter(spare), iter(found)
    for number, kind in enumerate(each):
        placed = []
        for place in range(batch):
            if kind == "insert":
                document, was = next(new), -1
            else:
                was, document = next(old)
            more = []
            if place == batch - 1 and kind != "delete" and (number in marked or number in drawn):
                own = f"{MARKER}{number:07d}" if number in marked else f"sbdrawn{number:07d}"
                more = [MARKER, own] if number in marked else [own]
                words.append(Word(own, document.id, kind, number))
            if kind == "update" and text:
                more.append(UPDATED)
            placed.append(Placed(_with_words(document, text, more), at, was))
            at += kind != "delete"
        made.append(Change(kind, tuple(placed), placed[-1].document.id * (number in marked)))
    markers = [change.marker for change in made if change.marker]
    asked = None
    if markers:
        match = Terms(Mode.ANY, (MARKER,), (text,))
        asked = Query(match=match, limit=min(_MOST_MARKERS, len(markers)))
    return Changes(
        tuple(made),
        tuple(_request(engine, change, schema, params) for change in made),
        _order(table, len(made), due, stop_ns),
        tuple(words),
        text,
        asked,
    )


def lookup(word: str, text: str) -> Query:
    """Which documents have a word?"""
    return Query(match=Terms(Mode.ANY, (word,), (text,)), limit=10)


def _kinds(table: Mapping[str, Any], wanted: int | None, spare: int, count: int) -> list[str]:
    """The kind of each request, spread evenly. As many as are wanted, or as there are documents."""
    if why := lacking(table, wanted, spare, count):
        raise LabError(why, "prepare")
    number = allowed(table, spare, count)[0] if wanted is None else wanted
    each = shares(table)
    owed = dict.fromkeys(each, 0.0)
    found = []
    for _ in range(number):
        for kind, share in each.items():
            owed[kind] += share
        kind = max(owed, key=lambda k: owed[k])
        owed[kind] -= 1
        found.append(kind)
    return found


def _documents(base: Corpus, count: int, wanted: int, seed: int) -> list[tuple[int, Document]]:
    """So many documents that are there, in random order, each with its number."""
    draw = random.Random(f"searchbench changed {seed}")
    numbers = draw.sample(range(count), min(wanted, count))
    chosen = set(numbers)
    there = {at: d for at, d in enumerate(base.documents()) if at in chosen} if chosen else {}
    return [(at, there[at]) for at in numbers]


def _marked(
    table: Mapping[str, Any], each: Sequence[str], due: I64 | None, text: str, seed: int
) -> tuple[frozenset[int], I64 | None]:
    """Which requests end with a marker; and when all are due, the markers at random instants.

    Once in each ``marker_every_s`` there is one, at an instant that is drawn uniformly in that
    time: a clock that publishes would otherwise always meet markers at the same phase, and be
    known by that phase alone. A marker moves by no more than the time since the request before it,
    and not into another stage. A writer with ``every_s`` or ``times`` keeps its clock, and random
    arrivals have no phase; there it is drawn which of the requests has the marker.
    """
    every_s = float(table["marker_every_s"])
    able = [i for i, kind in enumerate(each) if kind != "delete"]
    if not text or not every_s or not able:
        return frozenset(), due
    if due is None:  # nobody knows when each will be sent
        return frozenset(able[:: max(1, -(-len(able) // _MOST_MARKERS))]), None
    ends, last = [], -every_s * _NS
    for i in able:
        if due[i] >= last + every_s * _NS * (1 - 1e-9):
            ends.append(i)
            last = float(due[i])
    ends = ends[:: max(1, -(-len(ends) // _MOST_MARKERS))]
    draw = random.Random(f"searchbench markers {seed}")
    moved, found = due.copy(), []
    stages = table.get("stages")
    moves = (table.get("documents_per_s") or stages) and not is_random(table)
    starts = np.array(starts_of(stages_of(stages)) if stages else [0.0]) * _NS
    able_due = due[np.array(able)]
    begins = [0, *(int(due[i]) for i in ends[:-1])]
    for begin, end in zip(begins, ends, strict=True):
        at = int(due[end] - draw.random() * (due[end] - begin))
        number = able[int(np.searchsorted(able_due, at))]
        found.append(number)
        if moves:
            stage = int(starts[np.searchsorted(starts, due[number], side="right") - 1])
            moved[number] = max(at, stage, int(due[number - 1]) + 1 if number else 0)
    return frozenset(found), moved


def _drawn(each: Sequence[str], seed: int) -> frozenset[int]:
    """Some requests of each kind, whose last document will be asked for."""
    draw = random.Random(f"searchbench asked for {seed}")
    found: list[int] = []
    for kind in KINDS[:2]:
        own = [i for i, k in enumerate(each) if k == kind]
        found += draw.sample(own, min(_DRAWN, len(own)))
    return frozenset(found)


def _with_words(document: Document, text: str, more: Sequence[str]) -> Document:
    if not more:
        return document
    said = " ".join([*filter(None, [str(document.values.get(text, ""))]), *more])
    return Document(document.id, {**document.values, text: said})


def _request(engine: Engine, change: Change, schema: Schema, params: Parameters) -> Request:
    if change.kind == "insert":
        return insert(engine, change.placed, schema, params)
    assert isinstance(engine, TakesWrites)
    how = engine.update if change.kind == "update" else engine.delete
    return how(change.placed, schema, params)


def _order(table: Mapping[str, Any], count: int, due: I64 | None, stop_ns: int) -> Order:
    if due is None:
        order = each_once(count, int(table["clients"]))
        return Order(
            order.sequence, order.client_starts, None, order.connections, repeat=False,
            stop_ns=stop_ns,
        )  # fmt: skip
    sequence = np.arange(count, dtype=np.uint32)
    connections = int(table.get("connections") or 1)
    return Order(sequence, None, due, connections, repeat=False, stop_ns=stop_ns)


def rows(made: Changes) -> Iterator[dict[str, Any]]:
    """What each request is, as the record keeps it, before anything came of it."""
    for number, change in enumerate(made.each):
        yield {
            "request": number, "kind": change.kind, "documents": len(change.placed),
            "marker": change.marker or None, "refused": 0, "error": None,
        }  # fmt: skip
