"""Who answers at a target: which engine, which version; asked politely, before any load."""

from __future__ import annotations

from searchbench.engines import engine as engine_named
from searchbench.engines.engine import Engine, Facts, Hits, Request
from searchbench.engines.groonga import select_answer
from searchbench.engines.http_form import get, split
from searchbench.errors import LabError
from searchbench.lab.wire.exchange import Endpoint, Refused, ask

# In this order they are asked for. Of the two that answer each other's questions the root page
# says which it is.
_BY_ROOT = ((b"opensearch", "opensearch"), (b"elastic", "elasticsearch"))
_BY_WIRE = {
    "http": ("groonga", "droonga", "sensei"),
    "mysql": ("mariadb",),
    "postgres": ("postgresql",),
    "sphinxql": ("sphinx", "manticore"),
    "sphinx": ("sphinx-api",),
    "frames": ("null",),
}
_PATIENCE_S = 5.0
# Engines whose answers are those of Groonga's select, whatever columns they were asked for.
_SELECTS = ("groonga", "droonga")
_UNREAD = (ValueError, KeyError, TypeError, IndexError, AttributeError)
_NOT_TOLD = "not told"


class Tolerant:
    """Decodes what the engine can read; any other reply has no hits and is no error.

    Requests of one's own may ask for columns that our translator never asks for.
    """

    def __init__(self, engine: Engine | None) -> None:
        self._engine = engine

    def decode(self, reply: bytes) -> Hits:
        """The hits, or none."""
        if self._engine is None:
            return Hits(total=None)
        try:
            return self._engine.decode(reply)
        except _UNREAD:
            if self._engine.name not in _SELECTS:
                return Hits(total=None)
        try:
            return select_answer.decode(reply)
        except _UNREAD:
            return Hits(total=None)


def identify(
    url: str, endpoint: Endpoint, named: str, first: Request, timeout_s: float
) -> tuple[Engine | None, Facts]:
    """Ask one endpoint who it is; LabError where nothing answers, or not in that protocol.

    No engine where nobody known to us answers; then replies are not decoded. ``named``: the engine
    as the user says; "none" for no engine; empty: it is found out. ``first``: a request of the
    run, sent once where no engine is known, for its answer's own words.
    """
    _greet(endpoint, first, timeout_s)
    for name in (named,) if named else _names(endpoint):
        if name == "none":
            break
        engine = engine_named(name)
        found = _facts(engine, endpoint)
        if found is not None:
            return engine, found
        if named:
            raise LabError(
                f"what answers at {url} is no {engine.can.title} that can be asked; "
                "leave --engine away to have its replies taken as they are", "identify",
            )  # fmt: skip
    return None, Facts(_told(endpoint, first))


def _names(endpoint: Endpoint) -> tuple[str, ...]:
    """The engines that it may be, by what its root page says."""
    usual = _BY_WIRE[endpoint.wire]
    if endpoint.wire != "http":
        return usual
    try:
        page = ask(endpoint, [Request((get("/"),))], timeout_s=_PATIENCE_S)[0].lower()
    except Refused:
        return usual
    return tuple(name for mark, name in _BY_ROOT if mark in page)[:1] or usual


def _facts(engine: Engine, endpoint: Endpoint) -> Facts | None:
    try:
        reply = ask(endpoint, [engine.facts_request()], timeout_s=_PATIENCE_S)[0]
        facts = engine.facts(reply)
    except (Refused, *_UNREAD):
        return None
    extra = {"parameters": dict(facts.parameters), **facts.extra}
    return Facts(facts.version, extra=extra) if facts.version else None


def _greet(endpoint: Endpoint, first: Request, timeout_s: float) -> None:
    """Send one request of the run; a sentence where no answer of that protocol comes."""
    place = "{}:{}".format(*endpoint.target)
    try:
        ask(endpoint, [first], timeout_s=timeout_s)
    except Refused as error:
        said = str(error)
        why = {
            "refused": f"nothing listens at {place}; start the server, or see that the port is its",
            "timed_out": f"{place} took the connection and the request and never answered",
            "reset": f"{place} closed the connection without an answer; see that it speaks "
            f"{endpoint.wire}, and what its log says",
            "malformed": f"what answers at {place} does not speak {endpoint.wire}; name the "
            "protocol that it speaks: http://, mysql://, postgres://, sphinxql:// or sphinx://",
            "truncated": f"{place} promised a longer answer than it sent",
        }
        for outcome, sentence in why.items():
            if f"did not answer: {outcome}" in said:
                words = said.partition("(")[2].rstrip(")")
                raise LabError(sentence + (f" ({words})" if words else ""), "identify") from None
        raise LabError(said, "identify") from None


def _told(endpoint: Endpoint, first: Request) -> str:
    """The version in the server's own words: HTTP's Server header, else not told."""
    if endpoint.wire != "http":
        return _NOT_TOLD
    try:
        reply = split(ask(endpoint, [first], timeout_s=_PATIENCE_S)[0])[0]
    except (Refused, ValueError):
        return _NOT_TOLD
    return reply.headers.get("server") or _NOT_TOLD
