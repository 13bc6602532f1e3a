"""What an engine declares beside ``Engine`` if documents can be written to it while it is asked.

Declared, never done here: how changes become requests, and what makes them visible. An insert goes
the way of an ingest (but see ``InsertsApart``); ``lab`` sends all of it, to where the service is
asked, or to where it says that it is written to (``Service.writing``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from searchbench.corpora.corpus import Document, Schema
from searchbench.engines.engine import Engine, Parameters, Request
from searchbench.workload.queries.algebra import Query


class Placed(NamedTuple):
    """A document and its number in the order of all that were put in, from 0.

    ``was``: of an update or a delete the number that the document had until then. An updated
    document is the last of all: an engine may number it anew.
    """

    document: Document
    at: int
    was: int = -1


@dataclass(frozen=True, slots=True)
class Publish:
    """What makes written documents visible to a question that is asked later.

    ``how``: what the engine calls it, or ``workload.roles.NOTHING``. ``requests``: which ask for
    it; none where there is nothing to ask for. ``unasked``: in a clause, what happens where nobody
    asks.
    """

    how: str
    requests: tuple[Request, ...]
    unasked: str


@runtime_checkable
class TakesWrites(Protocol):
    """What an engine has beside ``Engine`` if its index can be changed while it is asked.

    ``check``, ``refused`` and ``taken`` of the engine read the replies to all three.
    """

    def cannot_write(self, params: Parameters) -> Mapping[str, str]:
        """Of "insert", "update" and "delete" what it cannot do with these levers, and why.

        And "publish", where that cannot be asked for while documents are written.
        """

    def update(self, changed: Sequence[Placed], schema: Schema, params: Parameters) -> Request:
        """One request that replaces these documents, each by what it is now."""

    def delete(self, gone: Sequence[Placed], schema: Schema, params: Parameters) -> Request:
        """One request that removes these documents."""

    def publish(self, schema: Schema, params: Parameters) -> Publish:
        """What makes all that was written until then visible."""


@runtime_checkable
class InsertsApart(Protocol):
    """What an engine has besides where an insert does not always go the way of an ingest."""

    def insert(self, added: Sequence[Placed], schema: Schema, params: Parameters) -> Request:
        """One request that puts these documents in, whose numbers follow one another."""


@runtime_checkable
class FindsWords(Protocol):
    """What an engine has besides where there are levers with which it takes no portable query.

    Written documents are found by their words all the same.
    """

    def find(self, query: Query, schema: Schema, params: Parameters) -> Request:
        """Which documents have one of these words? ``query`` has words, a limit, and no more.

        ``decode`` reads the reply. Unsupported where it cannot be asked.
        """


def insert(engine: Engine, added: Sequence[Placed], schema: Schema, params: Parameters) -> Request:
    """One request that puts these documents in, whose numbers follow one another."""
    if isinstance(engine, InsertsApart):
        return engine.insert(added, schema, params)
    return engine.batch([each.document for each in added], added[0].at, schema, params)
