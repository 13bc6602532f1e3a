"""One trial's samples as arrays: the whole trace for the audit, the measured ones for figures.

Columns are read one at a time, so that ten million samples need a few hundred megabytes.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.stats import within
from searchbench.analysis.trial import classes
from searchbench.analysis.trial.classes import Classes
from searchbench.record import Record, Trial
from searchbench.record.trial import Asked

NEVER = -1  # an instant that did not happen
INSTANTS = ("due", "free", "sent", "done")
KEPT_ROWS = 20_000_000  # measured samples kept in memory: 39 bytes each

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Trace:
    """Every request of a trial. Instants in ns since the start of the drive, -1 for never.

    Invariant: all arrays have the same length. ``window``: start and end in ns. ``client``: which
    client of a closed loop asked; None: not on record. ``classes``: of its queries; None: they have
    none. ``replay``: of a log, whose rate is not the same all the time.
    """

    query: NDArray[np.uint32]
    outcome: NDArray[np.uint8]
    due: Ints
    free: Ints
    sent: Ints
    done: Ints
    window: tuple[int, int]
    client: NDArray[np.uint16] | None = None
    classes: Classes | None = None
    replay: bool = False

    @property
    def window_s(self) -> float:
        """The length of the measured window."""
        return (self.window[1] - self.window[0]) / 1e9

    def measured(self) -> NDArray[np.bool_]:
        """Which requests belong to the window: start ≤ due < end."""
        return (self.due >= self.window[0]) & (self.due < self.window[1])


@dataclass(frozen=True, slots=True)
class Measured:
    """The requests of the window that ended well (outcome ok), for figures.

    ``part``: the slice of the window that each was due in. ``client``: as of ``Trace``. ``due_ns``:
    when each was due; None: not known. ``failed``: those that did not end well, with how long they
    lasted all the same; None: not known. ``lag_ns``: by how much the generator sent each late;
    None: not known. Invariant: all arrays have the same length.
    """

    query: NDArray[np.uint32]
    service_ns: Ints
    response_ns: Ints
    part: NDArray[np.uint8]
    window_s: float
    client: NDArray[np.uint16] | None = None
    due_ns: Ints | None = None
    failed: Measured | None = None
    lag_ns: Ints | None = None


def read_trace(record: Record, trial: Trial) -> Trace:
    """The whole trace of a trial; of one that is cold for each query, its first asks.

    RecordError where its samples are damaged.
    """
    found = whole_trace(record, trial)
    return first_asks(found, trial.asked) if trial.asked else found


def first_asks(trace: Trace, asked: Sequence[Asked]) -> Trace:
    """The first asks of a whole trace, one after another without what was between them.

    Between two queries the system was stopped, its files were evicted, and it was started anew:
    nobody waited for an answer then.
    """
    rows = rows_by_ask(asked)[0]
    due, free, sent, done = (x[rows] for x in (trace.due, trace.free, trace.sent, trace.done))
    lasted = np.maximum(1, np.maximum(np.maximum(sent, done), due) - due)
    begins = np.concatenate([[0], np.cumsum(lasted)]).astype(np.int64)
    earlier = due - begins[:-1]

    def moved(instants: Ints) -> Ints:
        return np.where(instants == NEVER, NEVER, instants - earlier)

    return Trace(
        query=trace.query[rows],
        outcome=trace.outcome[rows],
        due=moved(due),
        free=np.minimum(moved(free), moved(due)),
        sent=moved(sent),
        done=moved(done),
        window=(0, int(begins[-1])),
        classes=trace.classes,
    )


def rows_by_ask(asked: Sequence[Asked]) -> list[Ints]:
    """The rows of the first asks, of the second, and so on; each drive's rows stand together."""
    counts = np.array([one.requests for one in asked], dtype=np.int64)
    first = np.cumsum(counts) - counts
    return [first[counts > n] + n for n in range(int(counts.max(initial=1)))]


def whole_trace(record: Record, trial: Trial) -> Trace:
    """Every request of a trial, on the clock on which it was driven."""
    name, window = trial.trial, trial.window
    instants = {column: _column(record, name, column) for column in INSTANTS}
    last = int(instants["done"].max(initial=0))
    return Trace(
        query=_column(record, name, "query").astype(np.uint32, copy=False),
        outcome=_column(record, name, "outcome").astype(np.uint8, copy=False),
        window=(window.start, window.end) if window is not None else (0, last + 1),
        client=_clients(record, trial),
        classes=classes.of_trial(record, trial),
        replay=trial.load.kind == "replay",
        **instants,
    )


def measured_of(trace: Trace, timeout_s: float | None = None) -> Measured:
    """The measured requests of a trace that ended well, and those that failed. ``timeout_s``: after
    which a request was given up; None: at the end of the window.
    """
    kept = trace.measured()
    well = kept & (trace.outcome == 0) & (trace.done >= 0) & (trace.sent >= 0)
    failed = _some(trace, kept & ~well, _ended(trace, timeout_s))
    return replace(_some(trace, well, trace.done), failed=failed)


def _some(trace: Trace, kept: NDArray[np.bool_], ended: Ints) -> Measured:
    done, due = ended[kept], trace.due[kept]
    sent = np.where(trace.sent[kept] >= 0, trace.sent[kept], due)
    return Measured(
        query=trace.query[kept],
        service_ns=done - sent,
        response_ns=done - due,
        part=within.slices(due, trace.window).astype(np.uint8),
        window_s=trace.window_s,
        client=None if trace.client is None else trace.client[kept],
        due_ns=due,
        lag_ns=np.maximum(0, sent - np.maximum(due, trace.free[kept])),
    )


def _ended(trace: Trace, timeout_s: float | None) -> Ints:
    """When each request ended; when it was given up at the latest, where that is not on record."""
    begun = np.maximum(trace.due, trace.sent)
    least = np.maximum(begun, trace.window[1])
    timeout = math.inf if timeout_s is None else timeout_s
    given_up = np.minimum(begun + int(min(timeout * 1e9, 2.0**61)), least)
    given_up = np.where(trace.sent >= 0, given_up, trace.due)  # what was never sent took no time
    found: Ints = np.where(trace.done >= 0, trace.done, given_up)
    return found


class Samples:
    """Measured samples of a record's trials, the last used kept in memory up to a budget."""

    def __init__(self, record: Record, rows: int = KEPT_ROWS) -> None:
        self._record = record
        self._rows = rows
        self._kept: OrderedDict[str, Measured] = OrderedDict()
        self._trials = {trial.trial: trial for trial in record.trials}
        self._sizes: dict[str, tuple[Ints, Ints]] = {}

    def asked(self, trial: str) -> str:
        """The digest of the list of requests that a trial asked from; empty: not on record."""
        return self._trials[trial].queries.digest

    def trace(self, trial: str) -> Trace:
        """The whole trace, read now."""
        return read_trace(self._record, self._trials[trial])

    def sizes(self, trial: str) -> tuple[Ints, Ints]:
        """By the number of a request, how many replies to it were measured, and their bytes."""
        if trial not in self._sizes:
            trace = self.trace(trial)
            every = _column(self._record, trial, "bytes")
            if every.size != trace.query.size:  # cold for each query: of its first asks
                every = every[rows_by_ask(self._trials[trial].asked)[0]]
            good = trace.measured() & (trace.outcome == 0) & (trace.done >= 0)
            query = trace.query[good]
            total = np.bincount(query, every[good]).astype(np.int64)
            self._sizes[trial] = np.bincount(query).astype(np.int64), total
        return self._sizes[trial]

    def keep(self, trial: str, measured: Measured) -> None:
        """Put a trial's measured samples into memory, the longest unused leaving first."""
        self._kept[trial] = measured
        self._kept.move_to_end(trial)
        while len(self._kept) > 1 and sum(m.query.size for m in self._kept.values()) > self._rows:
            self._kept.popitem(last=False)

    def measured(self, trial: str) -> Measured:
        """The trial's measured samples, from memory or read again."""
        if trial not in self._kept:
            timeout_s = self._trials[trial].load.timeout_s
            self.keep(trial, measured_of(self.trace(trial), timeout_s))
        self._kept.move_to_end(trial)
        return self._kept[trial]


def _clients(record: Record, trial: Trial) -> NDArray[np.uint16] | None:
    """By request, the client of a closed loop that asked; None of other loads.

    A client has one connection, but one to each target that it asks: of several targets the record
    does not say which connections are of one client.
    """
    if trial.load.kind != "closed":
        return None
    connection = _column(record, trial.trial, "connection")
    return None if int(connection.max(initial=0)) >= (trial.load.clients or 1) else connection


def _column(record: Record, trial: str, name: str) -> NDArray[Any]:
    """One column as an array; a missing instant becomes -1."""
    column = record.samples(trial, [name]).column(0)
    if column.null_count:
        column = column.fill_null(NEVER)
    array: NDArray[Any] = column.to_numpy()
    return array
