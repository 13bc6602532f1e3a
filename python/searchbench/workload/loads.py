"""Loads: when requests are to be sent. A load is a value; nothing here sends anything.

    ClosedLoop   each client asks, waits for the answer, thinks, asks again
    OpenLoop     requests are due at a rate, answered or not
    Replay       requests are due when a log says they were asked, or at a multiple of that speed

``Load`` puts one of them beside its window and the ways of the measuring loop. All due times
are known beforehand and never depend on completions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from searchbench.errors import Complaint, StudyError
from searchbench.packed import inner_suffix, lines
from searchbench.spec import SpecKey, defaults

_NS = 1_000_000_000
_MOST_CONNECTIONS = 65_535  # a sample names its connection in 16 bits

SPEC_KEYS: tuple[SpecKey, ...] = (
    SpecKey("kind", "text", None, "default: by the keys given", ("closed", "open", "replay")),
    SpecKey("clients", "integer", 1, "closed loop: clients, a connection each",
            minimum=1, maximum=_MOST_CONNECTIONS),
    SpecKey("think_s", "number", 0.0, "closed loop: pause after each answer", minimum=0,
            maximum=3600),
    SpecKey("rate_per_s", "number", None, "open loop: requests a second", above=0,
            maximum=10_000_000),
    SpecKey("arrivals", "text", "poisson", "open loop: gaps random (exponential) or all the same",
            ("poisson", "constant")),
    SpecKey("connections", "integer", 64, "open loop and replay: size of the pool",
            minimum=1, maximum=_MOST_CONNECTIONS),
    SpecKey("times", "path", None, "replay: seconds, one a line, or JSONL with `t`; default: the "
            "query log's own"),
    SpecKey("speed", "number", 1.0, "replay: multiple of the log's own speed", above=0,
            maximum=1_000_000),
    SpecKey("order", "text", "logged", "in which order the log is asked",
            ("logged", "shuffled", "drawn")),
    SpecKey("warmup_s", "number", None, "seconds before the measured window (default 1)",
            minimum=0, maximum=86_400),
    SpecKey("seconds", "number", None, "length of the measured window (default 10)", above=0,
            maximum=86_400),
    SpecKey("warmup_requests", "integer", None, "requests before the measured ones", minimum=0,
            maximum=1_000_000_000),
    SpecKey("requests", "integer", None, "measured requests, instead of `seconds`", minimum=1,
            maximum=1_000_000_000),
    SpecKey("timeout_s", "number", 10.0, "an answer later than this is a timeout", above=0,
            maximum=3600),
    SpecKey("idle", "text", "hybrid", "how the measuring loop waits", ("hybrid", "block", "spin")),
    SpecKey("cpus", "numbers", None, "processors for the measuring loop, a pinned thread each"),
)  # fmt: skip

# Which keys belong to one kind alone, and decide it where `kind` is not given.
_OF_KIND: Mapping[str, tuple[str, ...]] = {
    "closed": ("clients", "think_s"),
    "open": ("rate_per_s", "arrivals"),
    "replay": ("times", "speed"),
}


@dataclass(frozen=True, slots=True)
class Window:
    """What is measured, after a warm-up: so many seconds, or so many requests.

    Exactly one of ``seconds`` and ``requests`` is set, and the warm-up is counted likewise.
    """

    seconds: float | None = None
    warmup_s: float = 0.0
    requests: int | None = None
    warmup_requests: int = 0

    def __post_init__(self) -> None:
        if (self.seconds is None) == (self.requests is None):
            raise ValueError("a window is so many seconds or so many requests")
        if (self.seconds is None and self.warmup_s) or (
            self.requests is None and self.warmup_requests
        ):
            raise ValueError("the warm-up is counted as the window is")

    @property
    def horizon_s(self) -> float | None:
        """Seconds of warm-up and window together; None if counted in requests."""
        return None if self.seconds is None else self.warmup_s + self.seconds

    @property
    def count(self) -> int | None:
        """Requests of warm-up and window together; None if counted in seconds."""
        return None if self.requests is None else self.warmup_requests + self.requests

    def bounds_ns(self, due_ns: NDArray[np.int64]) -> tuple[int, int]:
        """Start and end of the measured window, from when requests were due.

        Counted in seconds it does not depend on them; counted in requests it begins with the
        due time of the first measured one and ends just after that of the last.
        """
        if self.seconds is not None:
            start = round(self.warmup_s * _NS)
            return start, start + round(self.seconds * _NS)
        ordered = np.sort(due_ns)
        if len(ordered) == 0:
            return 0, 0
        first = min(self.warmup_requests, len(ordered) - 1)
        last = min(self.count or 0, len(ordered)) - 1
        return int(ordered[first]), int(ordered[max(first, last)]) + 1


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """``clients`` that each have one request under way at most."""

    clients: int = 1
    think_s: float = 0.0

    @property
    def kind(self) -> Literal["closed"]:
        """Its name in a record."""
        return "closed"

    @property
    def connections(self) -> int:
        """A connection for each client."""
        return self.clients

    def due_ns(
        self, window: Window, seed: int, logged_s: NDArray[np.float64] | None = None
    ) -> None:
        """None: a closed loop has no due times beforehand."""


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """Requests due at ``rate_per_s`` over a pool of ``connections``."""

    rate_per_s: float
    arrivals: Literal["poisson", "constant"] = "poisson"
    connections: int = 64

    @property
    def kind(self) -> Literal["open"]:
        """Its name in a record."""
        return "open"

    def due_ns(
        self, window: Window, seed: int, logged_s: NDArray[np.float64] | None = None
    ) -> NDArray[np.int64]:
        """Due times, int64, never decreasing, for the whole window with its warm-up.

        "constant": i / rate. "poisson": a Poisson process, its gaps exponential with mean
        1 / rate; the same seed gives the same times, and a longer window begins with those of
        a shorter one.
        """
        horizon, count = window.horizon_s, window.count
        if self.arrivals == "constant":
            # The tolerance keeps 3 s at 0.1/s from being 1 request by a rounding error.
            n = math.ceil((horizon or 0) * self.rate_per_s - 1e-9) if count is None else count
            return _ns(np.arange(n) * (_NS / self.rate_per_s))
        rng = np.random.default_rng([seed, 0x64756573])
        parts: list[NDArray[np.float64]] = []
        at, size = 0.0, 0
        while (size < count) if count is not None else (at < (horizon or 0)):
            # A fixed size of draw, so that the stream does not depend on the window.
            part = at + np.cumsum(rng.exponential(1 / self.rate_per_s, 4096))
            parts.append(part)
            at, size = float(part[-1]), size + len(part)
        due = np.concatenate(parts) if parts else np.empty(0)
        due = due[:count] if count is not None else due[due < (horizon or 0)]
        return _ns(due * _NS)


@dataclass(frozen=True, slots=True)
class Replay:
    """Requests due when the log says, ``speed`` times as fast. ``times`` None: the log's own."""

    times: Path | None = None
    speed: float = 1.0
    connections: int = 64

    @property
    def kind(self) -> Literal["replay"]:
        """Its name in a record."""
        return "replay"

    def due_ns(
        self, window: Window, seed: int, logged_s: NDArray[np.float64] | None = None
    ) -> NDArray[np.int64]:
        """Due times, int64, the first 0, cut where the window ends.

        ``logged_s``: the times of the query log, used where there is no file of them.
        StudyError where there are none, or where they go backwards.
        """
        times = logged_s if self.times is None else read_times(self.times)
        where = "the query log" if self.times is None else str(self.times)
        if times is None or len(times) == 0:
            raise _wrong(where, "has no times to replay; give each query its `t`, or `load.times`")
        back = np.flatnonzero(np.diff(times) < 0)
        if len(back):
            raise _wrong(where, f"goes back in time at query {back[0] + 2}; sort it by time")
        due = _ns((times - times[0]) / self.speed * _NS)
        if window.count is not None:
            return due[: window.count]
        return due[due < round((window.horizon_s or 0) * _NS)]


@dataclass(frozen=True, slots=True)
class Load:
    """A loop, its window, and how the measuring loop is to go about it.

    ``cpus`` empty: the lab chooses. ``order``: how the query log is arranged.
    """

    loop: ClosedLoop | OpenLoop | Replay
    window: Window
    order: Literal["logged", "shuffled", "drawn"] = "logged"
    timeout_s: float = 10.0
    idle: Literal["hybrid", "block", "spin"] = "hybrid"
    cpus: tuple[int, ...] = ()

    def due_ns(
        self, seed: int, logged_s: NDArray[np.float64] | None = None
    ) -> NDArray[np.int64] | None:
        """Due times of every request, nanoseconds since the start; None for a closed loop."""
        return self.loop.due_ns(self.window, seed, logged_s)

    @property
    def connections(self) -> int:
        """Connections to open."""
        return self.loop.connections

    @property
    def think_ns(self) -> int:
        """Pause of a client after each answer; 0 but for closed loops."""
        return round(self.loop.think_s * _NS) if isinstance(self.loop, ClosedLoop) else 0

    @property
    def stop_ns(self) -> int | None:
        """Nothing is begun after it; None where requests are counted."""
        horizon = self.window.horizon_s
        return None if horizon is None else round(horizon * _NS)

    @property
    def stop_after(self) -> int | None:
        """Nothing is begun after so many requests; None where seconds are counted."""
        return self.window.count if isinstance(self.loop, ClosedLoop) else None

    def expected_s(self, request_s: float = 0.001) -> float:
        """About how long it lasts; ``request_s`` is a guess for one request in a closed loop."""
        if self.window.horizon_s is not None:
            return self.window.horizon_s
        count = self.window.count or 0
        if isinstance(self.loop, OpenLoop):
            return count / self.loop.rate_per_s
        pause = self.loop.think_s if isinstance(self.loop, ClosedLoop) else 0.0
        return count * (request_s + pause) / self.connections


def kind_of(given: Mapping[str, Any]) -> str:
    """The kind of a ``[load]`` table, by ``kind`` or by the keys given."""
    if given.get("kind"):
        return str(given["kind"])
    for kind in ("open", "replay"):
        if any(given.get(key) is not None for key in _OF_KIND[kind]):
            return kind
    return "closed"


def problems(
    given: Mapping[str, Any], varied: frozenset[str] = frozenset()
) -> Iterator[tuple[str, str]]:
    """(key, sentence) for everything wrong with a table whose single values fit their keys.

    ``given`` has only keys that were given; ``varied`` are those that are factors.
    """
    kind = kind_of(given)
    if "kind" not in varied:
        for other, keys in _OF_KIND.items():
            for key in keys:
                if other != kind and given.get(key) is not None:
                    loop = {"open": "an open loop", "closed": "a closed loop"}.get(
                        other, "a replay"
                    )
                    yield key, f"`{key}` is for {loop}, and this load is {kind}"
        if kind == "closed" and given.get("connections") is not None:
            yield "connections", "a closed loop has a connection for each client; say `clients`"
        if kind == "open" and given.get("rate_per_s") is None:
            yield "kind" if "kind" in given else "arrivals", "an open loop needs `rate_per_s`"
        if kind == "replay" and given.get("order") not in (None, "logged"):
            yield "order", 'a replay asks the log as it was: `order = "logged"`'
    for by_count, by_time in (
        ("requests", "seconds"),
        ("requests", "warmup_s"),
        ("warmup_requests", "seconds"),
    ):
        if given.get(by_count) is not None and given.get(by_time) is not None:
            yield by_count, f"give `{by_count}` or `{by_time}`, not both: one window, one measure"
    if given.get("warmup_requests") is not None and given.get("requests") is None:
        yield "warmup_requests", "`warmup_requests` goes with `requests`; say `warmup_s`"
    cpus = given.get("cpus") or []
    if any(c < 0 or c != int(c) for c in cpus) or len(set(cpus)) != len(cpus):
        yield "cpus", "`cpus` must be different numbers of processors, from 0"


def resolve(given: Mapping[str, Any]) -> dict[str, Any]:
    """The whole table: every key, ``kind`` decided, the window's defaults put in."""
    full = {**defaults(SPEC_KEYS), **given}
    full["kind"] = kind_of(given)
    if full["requests"] is None:
        full["seconds"] = 10.0 if full["seconds"] is None else full["seconds"]
        full["warmup_s"] = 1.0 if full["warmup_s"] is None else full["warmup_s"]
    return full


def resolve_told(given: Mapping[str, Any]) -> dict[str, Any]:
    """The whole table without the keys that are not set or belong to another kind."""
    full = resolve(given)
    foreign = {k for kind, keys in _OF_KIND.items() if kind != full["kind"] for k in keys}
    if full["kind"] == "closed":
        foreign.add("connections")
    return {k: v for k, v in full.items() if v is not None and k not in foreign}


def open_load(spec: Mapping[str, Any], base: Path) -> Load:
    """The load that a ``[load]`` table means; absent keys have their defaults.

    ``base`` is the directory that ``times`` is relative to. StudyError with every reason.
    """
    wrong = [Complaint("[load]", 0, 0, reason) for _, reason in problems_of_whole(spec)]
    if wrong:
        raise StudyError(wrong)
    full = resolve({key: value for key, value in spec.items() if value is not None})
    loop: ClosedLoop | OpenLoop | Replay
    if full["kind"] == "closed":
        loop = ClosedLoop(full["clients"], float(full["think_s"]))
    elif full["kind"] == "open":
        loop = OpenLoop(float(full["rate_per_s"]), full["arrivals"], full["connections"])
    else:
        times = None if full["times"] is None else base / full["times"]
        loop = Replay(times, float(full["speed"]), full["connections"])
    if full["requests"] is None:
        window = Window(seconds=float(full["seconds"]), warmup_s=float(full["warmup_s"]))
    else:
        window = Window(requests=full["requests"], warmup_requests=full["warmup_requests"] or 0)
    return Load(
        loop,
        window,
        full["order"],
        float(full["timeout_s"]),
        full["idle"],
        tuple(int(c) for c in full["cpus"] or ()),
    )


def problems_of_whole(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """``problems`` of a table that may be whole: keys at their default say nothing."""
    usual = defaults(SPEC_KEYS)
    told = {k: v for k, v in spec.items() if v is not None and (k == "kind" or v != usual.get(k))}
    yield from problems(told)


def read_times(path: Path) -> NDArray[np.float64]:
    """Seconds from a file: a number a line, or the key ``t`` of JSON lines; StudyError."""
    structured = inner_suffix(path) in (".jsonl", ".ndjson")
    times: list[float] = []
    try:
        # extend() keeps what came before a bad line, so its number is known.
        times.extend(float(orjson.loads(x)["t"] if structured else x) for x in lines(path))
    except OSError as error:
        raise _wrong(str(path), f"cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        what = "an object with a number `t`" if structured else "a number of seconds"
        raise StudyError(
            [Complaint(str(path), len(times) + 1, 1, f"this is not {what}")]
        ) from error
    found = np.array(times, dtype=np.float64)
    if not bool(np.isfinite(found).all()):
        raise _wrong(str(path), "has a time that is not finite")
    return found


def _ns(values: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    whole: NDArray[np.int64] = np.rint(values).astype(np.int64)
    return whole


def _wrong(where: str, what: str) -> StudyError:
    return StudyError([Complaint(where, 0, 0, f"{where} {what}")])
