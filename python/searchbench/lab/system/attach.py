"""A system that already runs: asked, perhaps ingested into, never started, changed or stopped.

Who answers at its target (which engine, which version) is asked politely, before any load.
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

import psutil

from searchbench import engines
from searchbench.corpora.corpus import Schema
from searchbench.engines.answer import Facts, Hits
from searchbench.engines.engine import Engine, Parameters, Request
from searchbench.engines.groonga import select_answer
from searchbench.engines.http_form import get, split
from searchbench.errors import LabError
from searchbench.lab.system.address import Target, variables
from searchbench.lab.system.running import NO_FIELDS, Running
from searchbench.lab.wire.exchange import Decoder, Endpoint, Refused, Tls, ask

_READY_TIMEOUT_S = 5.0
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
_TLS_THERE = "{} speaks TLS, and was asked in plain text: write https:// in place of http://"
# nginx, Apache and Go say so in a reply to what they were sent in plain text.
_ASK_OVER_TLS = re.compile(rb"(?i)HTTPS (?:port|server)|SSL-enabled")
_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


class Attached(Running):
    """A system at a target, whose engine the study names.

    User, password and database come from the environment (``address.variables``), else they are
    those that the engine would have been started with. ``processes`` are those of this machine that
    listen at the addresses, for the probe alone; there are none where that is not seen.
    """

    def __init__(
        self,
        engine: Engine,
        params: Parameters,
        run: Path,
        target: Target,
        schema: Schema = NO_FIELDS,
    ) -> None:
        super().__init__(engine, params, run, schema)
        self.place = target

    def __enter__(self) -> Self:
        """Ask who is there; LabError (stage ``deploy``) where it is not this engine."""
        self._speak()
        self.run.mkdir(parents=True, exist_ok=True)
        self._identify()
        # How it is asked, and what a whole answer is, may hang on the levers that it has.
        known = {p.name for p in self.engine.parameters}
        found = {k: v for k, v in self.facts.parameters.items() if k in known}
        self.params = {**self.params, **found}
        self._speak()
        self.processes = processes_at(self.endpoint)
        return self

    def _speak(self) -> None:
        service = self.service = self.engine.service(self.params, self.schema)
        target = self.place.spoken(service.wire, service.login)
        if dict(target.headers).get("Accept-Encoding") and service.whole:
            raise LabError(
                f"whether an answer of {self.engine.can.title} is whole is seen in its first "
                "bytes, which gzip hides: leave `compressed` away",
                "compile",
            )
        self.endpoint = target.endpoint(service.whole)

    def _identify(self) -> None:
        give_up = time.monotonic() + _READY_TIMEOUT_S
        while True:
            try:
                self.facts = self.engine.facts(self.ask(self.service.ready, timeout_s=2.0))
            except (Refused, *_UNREAD) as error:
                # What TLS or a login refuses, it refuses again.
                final = isinstance(error, Refused) and error.words
                if final or time.monotonic() > give_up:
                    silent = isinstance(error, Refused) and error.outcome == "refused"
                    if silent and not final:
                        raise LabError(_silent(self.endpoint.target), "deploy") from None
                    raise LabError(_not_it(self.engine, self.place, error), "deploy") from None
                time.sleep(0.2)
            else:
                break
        if not self.facts.version:
            raise LabError(
                f"what answers at {self.place.url} does not report its version: no version, "
                "no measurement",
                "deploy",
            )


class Found(Running):
    """Whoever answers at a target, for verbatim requests: recognised if it can be.

    ``named``: the engine as the user says; "none": its replies are taken as they are; empty: it
    is found out. ``first``: a request of the workload, sent once to see who answers.
    """

    def __init__(
        self, run: Path, target: Target, *, named: str, first: Request, timeout_s: float
    ) -> None:
        super().__init__(None, {}, run)
        self.place, self.named, self.first, self.timeout_s = target, named, first, timeout_s

    def __enter__(self) -> Self:
        """Ask who is there; LabError where nothing answers, or not in that protocol."""
        at = self.place
        self.endpoint = at.endpoint()
        alone = replace(self.endpoint, others=())
        self.known, self.facts = _identify(at.url, alone, self.named, self.first, self.timeout_s)
        self.processes = processes_at(self.endpoint)
        return self

    @property
    def decoder(self) -> Decoder:
        """Its engine where that can read a reply; any other reply has no hits and is no error."""
        return Tolerant(self.known)


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


def _identify(
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
        engine = engines.engine(name)
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


def knock(target: Target) -> None:
    """LabError with the remedy where an address of a target takes no connection."""
    for at in target.resolved:
        try:
            socket.create_connection(at, _PATIENCE_S).close()
        except ConnectionRefusedError:
            raise LabError(_silent(at), "deploy") from None
        except OSError as error:
            why = error.strerror or str(error)
            remedy = "check the address, and that no firewall blocks it"
            raise LabError("{}:{} takes no connection: {}; ".format(*at, why) + remedy) from None


def _not_it(engine: Engine, place: Target, error: Exception) -> str:
    """What is wrong with who answers there: refuses us, says no, or speaks of something else."""
    named = f"credentials are read from {', '.join(variables(place.name))}"
    if isinstance(error, Refused):
        return f"at {place.url} there is no {engine.can.title} that can be asked: {error}; {named}"
    if isinstance(error, ValueError) and not isinstance(error, json.JSONDecodeError):
        if "denied" in str(error):
            return (
                f"{engine.can.title} at {place.url} does not tell this user its state ({error}); "
                f"grant the user what it asks for, or log in as another; {named}"
            )
        return (
            f"what answers at {place.url} does not reply as {engine.can.title} does ({error}); "
            f"check the port; {named}"
        )
    return (
        f"what answers at {place.url} is not {engine.can.title}: asked for its status, it replies "
        "in another form; check the port, or name its engine"
    )


def _silent(at: tuple[str, int]) -> str:
    return "nothing listens at {}:{}; start the server, or check the port".format(*at)


def _greet(endpoint: Endpoint, first: Request, timeout_s: float) -> None:
    """Send one request of the run; a sentence where no answer of that protocol comes."""
    place = "{}:{}".format(*endpoint.target)
    try:
        (reply,) = ask(endpoint, [first], timeout_s=timeout_s)
        _insist_on_plain(endpoint, reply)
    except ValueError as error:  # of certificates and keys
        raise LabError(f"{place}: {error}", "resolve") from None
    except Refused as error:
        if endpoint.tls is not None and error.words:
            raise LabError(f"{place}: {error.words[2:-1]}", "identify") from None
        if error.outcome in ("reset", "malformed", "truncated") and _speaks_tls(endpoint):
            raise LabError(_TLS_THERE.format(place), "identify") from None
        why = {
            "refused": _silent(endpoint.target),
            "timed_out": f"{place} took the connection and the request and never answered",
            "reset": f"{place} closed the connection without an answer; check that it speaks "
            f"{endpoint.wire}, and what its log says",
            "malformed": f"what answers at {place} does not speak {endpoint.wire}, or sent more "
            "than was asked for; if it speaks another protocol, name that: http://, mysql://, "
            "postgres://, sphinxql:// or sphinx://",
            "truncated": f"{place} promised a longer answer than it sent",
        }
        known = why.get(error.outcome)
        sentence = str(error) if known is None else known + error.words
        raise LabError(sentence, "identify") from None


def _insist_on_plain(endpoint: Endpoint, reply: bytes) -> None:
    """LabError where a server answers, in plain text, that it is to be asked over TLS."""
    plain = endpoint.wire == "http" and endpoint.tls is None
    if plain and reply[9:12] == b"400" and _ASK_OVER_TLS.search(reply):
        raise LabError(_TLS_THERE.format("{}:{}".format(*endpoint.target)), "identify")


def _speaks_tls(endpoint: Endpoint) -> bool:
    """Whether what answers in no way that is understood answers over TLS."""
    if endpoint.wire != "http" or endpoint.tls is not None:
        return False
    secured = replace(endpoint, tls=Tls(insecure=True), headers=(), login=None)
    try:
        ask(secured, [Request((get("/"),))], timeout_s=_PATIENCE_S)
    except Refused as error:
        return (
            bool(error.words)
            and "does not speak TLS" not in error.words
            and ("closed the connection" not in error.words)
        )
    return True


def _told(endpoint: Endpoint, first: Request) -> str:
    """The version in the server's own words: HTTP's Server header, else not told."""
    if endpoint.wire != "http":
        return _NOT_TOLD
    try:
        reply = split(ask(endpoint, [first], timeout_s=_PATIENCE_S)[0])[0]
    except (Refused, ValueError):
        return _NOT_TOLD
    return reply.headers.get("server") or _NOT_TOLD


def processes_at(endpoint: Endpoint) -> list[psutil.Process]:
    """Processes of this machine that listen at any address of an endpoint."""
    return [p for at in dict.fromkeys(endpoint.addresses) for p in listening_at(at)]


def listening_at(target: tuple[str, int]) -> list[psutil.Process]:
    """Processes that listen at the address, without those that another of them started.

    There are none where the address is not one of this machine: who listens on the same port here
    is somebody else. Of several listeners that fit, the kernel takes the most particular.
    """
    wanted = _address(target[0])
    if not _is_of_this_machine(wanted):
        return []
    found: dict[int, set[int]] = {}
    for one in psutil.net_connections("tcp"):
        at = one.laddr
        if one.status == psutil.CONN_LISTEN and one.pid and at and at.port == target[1]:
            found.setdefault(_fit(_address(at.ip), wanted), set()).add(one.pid)
    fit = max(found, default=0)
    return _without_children(found[fit]) if fit else []


def _fit(listener: _Ip, wanted: _Ip) -> int:
    """How well: 0 not at all, 1 any address of IPv6 (IPv4 too), 2 any of its own, 3 this one."""
    if listener == wanted:
        return 3
    if not listener.is_unspecified:
        return 0
    return 2 if listener.version == wanted.version else int(listener.version == 6)


def _address(text: str) -> _Ip:
    """Without the zone of IPv6; an IPv4 address that is written as one of IPv6 is that of IPv4."""
    found = ipaddress.ip_address(text.partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None)
    return found if mapped is None else _address(str(mapped))


def _is_of_this_machine(address: _Ip) -> bool:
    if address.is_loopback:
        return True
    cards = psutil.net_if_addrs().values()
    families = (socket.AF_INET, socket.AF_INET6)
    return any(address == _address(a.address) for each in cards for a in each
               if a.family in families)  # fmt: skip


def _without_children(pids: set[int]) -> list[psutil.Process]:
    found = []
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            if process.ppid() not in pids:
                found.append(process)
    return found
