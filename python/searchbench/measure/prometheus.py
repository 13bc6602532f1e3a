"""Figures of a run while it runs, for Prometheus: to be laid over a server's own graphs.

An impression, which the record does not rest on: it holds every request as it ends, warm-up too,
except for those of the last tenth of a second of a drive, and those above 40,000 a second and
measuring thread, which are counted as unseen. It is served on loopback alone.

Where requests have classes, counters and histograms have a label ``class``, and add up to those of
the step. Quantiles do not add up: they are there for the step, without that label, and by class.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from searchbench import _core
from searchbench.analysis.live import Fresh
from searchbench.analysis.trial.classes import Classes
from searchbench.errors import SearchbenchError

if TYPE_CHECKING:
    from searchbench.lab.conduct.watch import Watch
    from searchbench.record.trial import Trial as Kept
    from searchbench.study.plan import Trial

# A microsecond to a quarter of an hour, each bound 1 % above the one before; Prometheus gets every
# fortieth, so its buckets are exact.
_BOUNDS_S = 1e-6 * 1.01 ** np.arange(2081)
_EVERY = 40
_QUANTILES = (0.5, 0.9, 0.99, 0.999)
_TIMES = {
    "response": "From when a request was due to its last byte, of requests that ended well.",
    "service": "From its first byte sent to its last byte received, of requests that ended well.",
    "lateness": "Sent late by the load generator's own doing.",
}


class Histogram:
    """Counts of times: one within 1 % of every other in its bin."""

    def __init__(self) -> None:
        self.counts = np.zeros(_BOUNDS_S.size + 1, np.int64)
        self.sum_s = 0.0

    def add(self, times_ns: NDArray[np.int64]) -> None:
        """More times."""
        times_s = times_ns / 1e9
        self.counts += np.bincount(np.searchsorted(_BOUNDS_S, times_s), minlength=self.counts.size)
        self.sum_s += float(times_s.sum())

    def quantile_s(self, q: float) -> float:
        """The upper bound of the bin that holds it (nearest rank); NaN of none."""
        total = int(self.counts.sum())
        if not total:
            return float("nan")
        at = int(np.searchsorted(np.cumsum(self.counts), max(1, np.ceil(q * total))))
        return float(_BOUNDS_S[min(at, _BOUNDS_S.size - 1)])


class Seen:
    """What is known of requests so far."""

    def __init__(self) -> None:
        self.outcomes = np.zeros(len(_core.OUTCOMES), np.int64)
        self.times = {name: Histogram() for name in _TIMES}

    def add(self, fresh: NDArray[Any]) -> None:
        """Samples that were not seen before."""
        self.outcomes += np.bincount(fresh["outcome"], minlength=self.outcomes.size)
        sent = fresh[fresh["sent"] >= 0]
        late = sent["sent"] - np.maximum(sent["due"], sent["free"])
        self.times["lateness"].add(np.maximum(0, late))
        ok = fresh[(fresh["outcome"] == 0) & (fresh["done"] >= 0)]
        self.times["response"].add(ok["done"] - ok["due"])
        self.times["service"].add(ok["done"] - ok["sent"])


class Step:
    """What is known of one step so far: of all its requests, and of each class of them (of "" what
    was asked before the classes were known, or where there are none).
    """

    def __init__(self) -> None:
        self.whole = Seen()
        self.by_class: dict[str, Seen] = {}
        self.completed = 0
        self.rate_per_s = 0.0

    def add(self, fresh: NDArray[Any], classes: Classes | None) -> None:
        """Samples that were not seen before, by the numbers of their requests."""
        self.whole.add(fresh)
        if classes is None:
            self.by_class.setdefault("", Seen()).add(fresh)
            return
        numbers = classes.of_query[fresh["request"]]
        for number in np.unique(numbers).tolist():
            own = self.by_class.setdefault(classes.names[number], Seen())
            own.add(fresh[numbers == number])


class Exporter:
    """A Watch that passes on what it hears, and serves it at http://127.0.0.1:PORT/metrics."""

    def __init__(self, watch: Watch, port: int) -> None:
        self._watch, self._lock = watch, threading.Lock()
        self._steps: dict[str, Step] = {}
        self._step, self._fresh = Step(), Fresh()
        self._classes: Classes | None = None
        self._ticked = (0, 0)  # nanoseconds since the start, completed: where the rate counts from
        self._completed = 0  # of this drive
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = self.path in ("/", "/metrics")
                body = exporter.text().encode() if found else b"see /metrics\n"
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing on the terminal."""

        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SearchbenchError(
                f"--prometheus {port}: 127.0.0.1:{port} cannot be served ({reason}); name a free "
                "port, or 0 for any"
            ) from None
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/metrics"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        """Serve from now on."""
        self._thread.start()
        self._watch.told(f"figures while it runs: {self.url}")
        return self

    def __exit__(self, *error: object) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def opening(self, what: str) -> None:
        """Passed on."""
        self._watch.opening(what)

    def told(self, text: str) -> None:
        """Passed on."""
        self._watch.told(text)

    def begins(self, trial: Trial, label: str, done: int, of: int) -> None:
        """A step begins; the same one again adds to what it had."""
        with self._lock:
            self._step = self._steps.setdefault(label, Step())
            self._classes = None
        self._watch.begins(trial, label, done, of)

    def stage(self, name: str) -> None:
        """A new drive begins with no past."""
        self._fresh, self._ticked, self._completed = Fresh(), (0, 0), 0
        self._watch.stage(name)

    def asks(self, classes: Sequence[str]) -> None:
        """From now on figures are by class."""
        with self._lock:
            self._classes = Classes.of(classes).shown if classes else None
        self._watch.asks(classes)

    def tick(self, completed: int, elapsed_ns: int, recent: bytes) -> None:
        """Take in what is new."""
        before_ns, before = self._ticked
        if elapsed_ns - before_ns >= 1e9:
            self._step.rate_per_s = (completed - before) / (elapsed_ns - before_ns) * 1e9
            self._ticked = (elapsed_ns, completed)
        with self._lock:
            self._step.completed += completed - self._completed
            self._completed = completed
            self._step.add(self._fresh.of(recent), self._classes)
        self._watch.tick(completed, elapsed_ns, recent)

    def ends(self, trial: Trial, about: Kept, invalid: str) -> None:
        """Nothing is sent any more."""
        self._step.rate_per_s = 0.0
        self._watch.ends(trial, about, invalid)

    def text(self) -> str:
        """All of it in Prometheus' text format."""
        with self._lock:
            return "\n".join(_lines(self._steps)) + "\n"


def exported(watch: Watch, port: int | None) -> AbstractContextManager[Watch]:
    """The watch, served at the port; without one as it is."""
    return nullcontext(watch) if port is None else Exporter(watch, port)


def _lines(steps: dict[str, Step]) -> Iterator[str]:
    named = {_label("step", step): found for step, found in steps.items()}
    # Their sums are those of the step, so that it is not there a second time.
    classed = {
        ",".join(filter(None, (step, name and _label("class", name)))): own
        for step, found in named.items()
        for name, own in (found.by_class or {"": found.whole}).items()
    }
    of_all = {step: found.whole for step, found in named.items()}
    yield from _head("requests_total", "counter", "Requests that ended, by outcome.")
    for labels, seen in classed.items():
        for outcome, count in zip(_core.OUTCOMES, seen.outcomes.tolist(), strict=True):
            if count:
                yield f'searchbench_requests_total{{{labels},outcome="{outcome}"}} {count}'
    yield from _head("requests_unseen_total", "counter", "Requests that ended and are in no other "
                     "figure.")  # fmt: skip
    for step, found in named.items():
        unseen = max(0, found.completed - int(found.whole.outcomes.sum()))
        yield f"searchbench_requests_unseen_total{{{step}}} {unseen}"
    yield from _head("rate_per_second", "gauge", "Requests that ended in the last second.")
    for step, found in named.items():
        yield f"searchbench_rate_per_second{{{step}}} {found.rate_per_s:.6g}"
    for name, meaning in _TIMES.items():
        yield from _head(f"{name}_seconds", "histogram", meaning)
        for labels, seen in classed.items():
            yield from _buckets(f"searchbench_{name}_seconds", labels, seen.times[name])
        yield from _head(f"{name}_quantile_seconds", "gauge", f"{meaning} Of the whole step, to "
                         "within 1 %.")  # fmt: skip
        for labels, seen in (classed | of_all).items():
            for q in _QUANTILES:
                value = seen.times[name].quantile_s(q)
                yield f'searchbench_{name}_quantile_seconds{{{labels},quantile="{q}"}} {value:.6g}'


def _buckets(name: str, labels: str, times: Histogram) -> Iterator[str]:
    below = np.cumsum(times.counts)
    for at in range(0, _BOUNDS_S.size, _EVERY):
        yield f'{name}_bucket{{{labels},le="{_BOUNDS_S[at]:.6g}"}} {below[at]}'
    yield f'{name}_bucket{{{labels},le="+Inf"}} {below[-1]}'
    yield f"{name}_sum{{{labels}}} {times.sum_s:.9g}"
    yield f"{name}_count{{{labels}}} {below[-1]}"


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP searchbench_{name} {meaning}"
    yield f"# TYPE searchbench_{name} {kind}"


def _label(name: str, value: str) -> str:
    escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'{name}="{escaped}"'
