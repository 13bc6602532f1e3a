"""Loads: when requests are to be sent. A load is a value; nothing here sends anything.

    ClosedLoop   each client asks, waits for the answer, thinks, asks again
    OpenLoop     requests are due at a rate, or at several one after another, answered or not
    Replay       requests are due when a log says they were asked, or at a multiple of that speed

``Load`` puts one of them beside its window and the ways of the measuring loop. All due times
are known beforehand and never depend on completions.

The table that names a load, with its keys, is in load_table.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from searchbench.errors import Complaint, StudyError
from searchbench.packed import inner_suffix, lines
from searchbench.spec import defaults
from searchbench.workload.load_table import SPEC_KEYS, problems, resolve
from searchbench.workload.shape import Shape, shape_of

_NS = 1_000_000_000
# A replay's window ends so long after its last request is due, so that the last one is in it.
_AFTER_LAST_NS = 1_000_000
_USUAL_WARMUP_S = 3.0  # of one until steady
USUAL_REQUEST_S = 0.001  # a guess for a request of which nothing is known


@dataclass(frozen=True, slots=True)
class Window:
    """What is measured, after a warm-up: so many seconds, so many requests, or the whole log.

    Exactly one of ``seconds``, ``requests`` and ``whole`` is set, and the warm-up is counted
    likewise. ``whole`` is for replays: until just after the last request is due.
    ``until_steady``: the warm-up ends as soon as the system is warm, ``warmup_s`` is its limit.
    ``after_s``: how long requests are due after a window of seconds.
    """

    seconds: float | None = None
    warmup_s: float = 0.0
    requests: int | None = None
    warmup_requests: int = 0
    whole: bool = False
    until_steady: bool = False
    after_s: float = 0.0

    def __post_init__(self) -> None:
        if (self.seconds is not None) + (self.requests is not None) + self.whole != 1:
            raise ValueError("a window is so many seconds, so many requests, or a whole log")
        if (self.requests is not None and self.warmup_s) or (
            self.requests is None and self.warmup_requests
        ):
            raise ValueError("the warm-up is counted as the window is")

    @property
    def horizon_s(self) -> float | None:
        """Seconds of warm-up, window and what follows, at most; None where requests end it."""
        return None if self.seconds is None else self.warmup_s + self.seconds + self.after_s

    @property
    def usual_s(self) -> float | None:
        """The same, as long as it will be about."""
        if self.seconds is None or not self.until_steady:
            return self.horizon_s
        return min(self.warmup_s, _USUAL_WARMUP_S) + self.seconds

    @property
    def count(self) -> int | None:
        """Requests of warm-up and window together; None where they are not counted."""
        return None if self.requests is None else self.warmup_requests + self.requests

    def bounds_ns(self, due_ns: NDArray[np.int64]) -> tuple[int, int]:
        """Start and end of the measured window, from when requests were due.

        Counted in seconds it does not depend on them (a warm-up until steady: at its limit);
        counted in requests it begins with the due time of the first measured one and ends just
        after that of the last; a whole log ends a millisecond after its last.
        """
        if self.seconds is not None:
            start = round(self.warmup_s * _NS)
            return start, start + round(self.seconds * _NS)
        if len(due_ns) == 0:
            return 0, 0
        if self.whole:
            start, last = round(self.warmup_s * _NS), int(due_ns.max())
            return start, max(start, last) + _AFTER_LAST_NS
        ordered = np.sort(due_ns)
        first = min(self.warmup_requests, len(ordered) - 1)
        last = min(self.count or 0, len(ordered)) - 1
        return int(ordered[first]), int(ordered[max(first, last)]) + 1


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """``clients`` that each have one request under way at most."""

    clients: int = 1
    think_s: float = 0.0

    @property
    def connections(self) -> int:
        """A connection for each client."""
        return self.clients


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """Requests due at ``rate_per_s`` over a pool of ``connections``.

    ``shape``: the rates before, in and after the window, which has ``rate_per_s``.
    """

    rate_per_s: float
    arrivals: Literal["poisson", "constant"] = "poisson"
    connections: int = 64
    shape: Shape | None = None

    def due_ns(self, window: Window, seed: int) -> NDArray[np.int64]:
        """Due times, int64, never decreasing, for the whole window with its warm-up.

        "constant": i / rate. "poisson": a Poisson process, its gaps exponential with mean
        1 / rate; the same seed gives the same times, and a longer window begins with those of
        a shorter one.
        """
        if self.shape is not None:
            return self.shape.due_ns(self.arrivals, seed)
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

    def due_ns(
        self, window: Window, logged_s: NDArray[np.float64] | None = None
    ) -> NDArray[np.int64]:
        """Due times, int64, the first 0, cut where the window ends; a whole log is not cut.

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
        if window.whole:
            return due
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
    order: Literal["stretches", "logged", "shuffled", "drawn"] = "stretches"
    timeout_s: float = 10.0
    idle: Literal["hybrid", "block", "spin"] = "hybrid"
    cpus: tuple[int, ...] = ()

    def due_ns(
        self, seed: int, logged_s: NDArray[np.float64] | None = None
    ) -> NDArray[np.int64] | None:
        """Due times of every request, nanoseconds since the start; None for a closed loop."""
        if isinstance(self.loop, ClosedLoop):
            return None
        if isinstance(self.loop, OpenLoop):
            return self.loop.due_ns(self.window, seed)
        return self.loop.due_ns(self.window, logged_s)

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
        """Nothing is begun after it; None where the requests themselves come to an end."""
        horizon = self.window.horizon_s
        return None if horizon is None else round(horizon * _NS)

    @property
    def stop_after(self) -> int | None:
        """Nothing is begun after so many requests; None where seconds are counted."""
        return self.window.count if isinstance(self.loop, ClosedLoop) else None

    def expected_s(self, request_s: float = USUAL_REQUEST_S, logged_s: float = 0.0) -> float:
        """About how long it lasts.

        ``request_s``: a guess for one request in a closed loop. ``logged_s``: from the first to
        the last request of the log, for a replay of all of it.
        """
        if self.window.usual_s is not None:
            return self.window.usual_s
        if self.window.whole:
            return logged_s / self.loop.speed if isinstance(self.loop, Replay) else 0.0
        count = self.window.count or 0
        if isinstance(self.loop, OpenLoop):
            return count / self.loop.rate_per_s
        pause = self.loop.think_s if isinstance(self.loop, ClosedLoop) else 0.0
        return count * (request_s + pause) / self.connections


def open_load(spec: Mapping[str, Any], base: Path) -> Load:
    """The load that a ``[load]`` table means; absent keys have their defaults.

    ``base`` is the directory that ``times`` is relative to. StudyError with every reason.
    """
    usual = defaults(SPEC_KEYS)
    # The table may be whole: keys at their default say nothing.
    given = {k: v for k, v in spec.items() if v is not None and (k == "kind" or v != usual.get(k))}
    if wrong := [Complaint("[load]", 0, 0, reason) for _, reason in problems(given)]:
        raise StudyError(wrong)
    full = resolve({key: value for key, value in spec.items() if value is not None})
    loop: ClosedLoop | OpenLoop | Replay
    if full["kind"] == "closed":
        loop = ClosedLoop(full["clients"], float(full["think_s"]))
    elif full["kind"] == "open":
        stages = full["stages"]
        known = (full["judged_stage"], full["capacity_per_s"])
        shape = None if stages is None else shape_of(stages, *known)
        loop = OpenLoop(float(full["rate_per_s"]), full["arrivals"], full["connections"], shape)
    else:
        times = None if full["times"] is None else base / full["times"]
        loop = Replay(times, float(full["speed"]), full["connections"])
    if full["requests"] is not None:
        window = Window(requests=full["requests"], warmup_requests=full["warmup_requests"] or 0)
    else:
        seconds = None if full["seconds"] is None else float(full["seconds"])
        until_steady = full["warmup_s"] is None
        warmup_s = float(full["warmup_limit_s" if until_steady else "warmup_s"])
        shape = loop.shape if isinstance(loop, OpenLoop) else None
        after_s = 0.0 if shape is None else shape.starts[-1] - warmup_s - (seconds or 0.0)
        window = Window(
            seconds, warmup_s, whole=seconds is None, until_steady=until_steady, after_s=after_s
        )
    cpus = tuple(int(cpu) for cpu in full["cpus"] or ())
    return Load(loop, window, full["order"], float(full["timeout_s"]), full["idle"], cpus)


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
