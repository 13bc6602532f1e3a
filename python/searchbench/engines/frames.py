"""The dialect of library hosts: JSON in the frames of FORMATS.md.

tantivy, SQLite FTS5 and the null host differ in parameters and in what they can do, not in
their words; each has a file of its own that fills in this one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from searchbench.corpora.corpus import Document, FieldType, Schema
from searchbench.engines.answer import Facts, Hit, Hits
from searchbench.engines.engine import Engine, Parameter, Parameters, Request, Service
from searchbench.engines.features import each, refuse
from searchbench.engines.write import Placed, Publish
from searchbench.workload.queries.algebra import Boolean, Match, Query, Terms
from searchbench.workload.queries.forms import to_json

FACTS, CREATE, BATCH, SETTLE, QUERY, ANALYSE, COMMIT, REPLACE, DELETE = range(1, 10)
OK, ERROR, UNSUPPORTED, PARTIAL = range(4)

_REQUEST = struct.Struct("<IB3x")
_REPLY = struct.Struct("<IB3xQ")


def frame(verb: int, payload: bytes = b"") -> Request:
    """One request frame."""
    return Request((_REQUEST.pack(len(payload), verb) + payload,))


def unframe(reply: bytes) -> tuple[int, bytes]:
    """Status and payload of one reply frame; ValueError where it is not whole."""
    if len(reply) < _REPLY.size:
        raise ValueError(f"a reply frame has at least {_REPLY.size} bytes, this has {len(reply)}")
    length, status, _host_ns = _REPLY.unpack_from(reply)
    if len(reply) != _REPLY.size + length:
        raise ValueError(f"the frame promises {length} bytes, {len(reply) - _REPLY.size} are here")
    return status, reply[_REPLY.size :]


class LibraryHost(Engine):
    """An engine behind the framed protocol; subclasses fill in the declarations."""

    def service(self, params: Parameters, schema: Schema) -> Service:
        """The host as a process of its own: our extension module, run as a server."""
        return Service(
            argv=(
                *("{python}", "-m", "searchbench.library_host", self.name),
                *host_options(self.parameters, params),
            ),
            wire="frames",
            ready=self.facts_request(),
        )

    def create(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """One request: the fields."""
        fields = [{"name": f.name, "type": f.type, "stored": f.stored} for f in schema.fields]
        return [frame(CREATE, orjson.dumps({"fields": fields}))]

    def batch(
        self, documents: Sequence[Document], start: int, schema: Schema, params: Parameters
    ) -> Request:
        """One document a line."""
        return frame(BATCH, _lines(documents))

    def settle(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """Commit, merge as the parameters say, reload."""
        return [frame(SETTLE, b"{}")]

    def cannot_write(self, params: Parameters) -> Mapping[str, str]:
        """Documents are found by their ids only where these are indexed."""
        if params.get("keys", True):
            return {}
        return dict.fromkeys(
            ("update", "delete"),
            f"{self.can.title} has no index of ids, by which a document could be found: say "
            "keys = true",
        )

    def update(self, changed: Sequence[Placed], schema: Schema, params: Parameters) -> Request:
        """One document a line, in place of the one with its id."""
        return frame(REPLACE, _lines([each.document for each in changed]))

    def delete(self, gone: Sequence[Placed], schema: Schema, params: Parameters) -> Request:
        """One id a line."""
        lines = [orjson.dumps({"id": each.document.id}) for each in gone]
        return frame(DELETE, b"\n".join(lines))

    def publish(self, schema: Schema, params: Parameters) -> Publish:
        """A commit, after which searches see what was written."""
        every = int(params.get("refresh_ms") or 0)
        unasked = f"it commits every {every} ms" if every else "nothing is ever visible"
        return Publish("commit", (frame(COMMIT, b"{}"),), f"{unasked} (refresh_ms = {every})")

    def compile(self, query: Query, schema: Schema, params: Parameters) -> Request:
        """The query as JSON; fields that were left open are spelled out."""
        refuse(self.can, query)
        text = tuple(f.name for f in schema.of_type(FieldType.TEXT))
        match = None if query.match is None else _spelled_out(query.match, text)
        return frame(QUERY, orjson.dumps(to_json(replace(query, match=match))))

    def decode(self, reply: bytes) -> Hits:
        """Hits, or the host's own error text."""
        status, answer = _answer(reply)
        if status in (ERROR, UNSUPPORTED):
            return Hits(total=None, error=str(answer.get("error", "no reason given")))
        return Hits(
            total=answer["total"],
            hits=tuple(_hit(*h) for h in answer["hits"]),
            total_exact=status != PARTIAL,
            partial=status == PARTIAL,
            facets={k: [(v, n) for v, n in f] for k, f in answer.get("facets", {}).items()},
            groups=[(v, n) for v, n in answer.get("groups", ())],
            warnings=tuple(answer.get("warnings", ())),
        )

    def facts_request(self) -> Request:
        """Verb 1."""
        return frame(FACTS)

    def facts(self, reply: bytes) -> Facts:
        """What the host says of itself."""
        answer = _ok(reply)
        return Facts(
            version=answer["version"],
            documents=answer.get("documents"),
            index_bytes=answer.get("index_bytes"),
            parameters=answer.get("parameters", {}),
            extra=answer.get("extra", {}),
        )

    def analyse(self, text: str) -> Request | None:
        """Verb 6."""
        return frame(ANALYSE, orjson.dumps({"text": text}))

    def terms(self, reply: bytes) -> tuple[str, ...]:
        """The terms in order."""
        return tuple(_ok(reply)["terms"])

    def check(self, reply: bytes) -> str | None:
        """The error text, or the reasons of refused documents."""
        status, answer = _answer(reply)
        return None if status == OK else str(answer.get("error", "no reason given"))

    def refused(self, reply: bytes) -> tuple[tuple[str, str], ...]:
        """Documents of a batch that the host refused: (id, reason)."""
        _status, answer = _answer(reply)
        return tuple((r["id"], r["reason"]) for r in answer.get("refused", ()))


def host_options(parameters: Iterable[Parameter], params: Parameters) -> list[str]:
    """The command line of every host: where it serves, and the levels as ``--name value``."""
    levels = [part for p in parameters for part in (f"--{p.name}", _option(params[p.name]))]
    return ["--port", "{port}", "--data", "{data}", *levels]


def _lines(documents: Sequence[Document]) -> bytes:
    return b"\n".join([orjson.dumps({"id": d.id, "v": d.values}) for d in documents])


def _answer(reply: bytes) -> tuple[int, Any]:
    status, payload = unframe(reply)
    return status, orjson.loads(payload)


def _ok(reply: bytes) -> Any:
    """What a host answers where nothing went wrong; else ValueError in its words."""
    status, answer = _answer(reply)
    if status != OK:
        raise ValueError(str(answer.get("error")))
    return answer


def _hit(
    name: str,
    score: float | None,
    fields: Mapping[str, Any] | None = None,
    snippets: Mapping[str, Sequence[str]] | None = None,
) -> Hit:
    """What follows the score is left out, or null, where it was not asked for."""
    return Hit(name, score, fields or {}, snippets or {})


def _option(level: object) -> str:
    return str(level).lower() if isinstance(level, bool) else str(level)


def _spelled_out(match: Match, text: tuple[str, ...]) -> Match:
    """The same match with the fields named where it means all text fields."""
    if isinstance(match, Terms):
        return replace(match, fields=match.fields or text)
    return Boolean(*map(tuple, each(match, lambda m: _spelled_out(m, text))))
