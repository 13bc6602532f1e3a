"""Progress on a terminal: which trial, which stage, how fast, how long still. Silent in a pipe."""

from __future__ import annotations

import shutil
import signal
import sys
from collections import deque
from collections.abc import Collection, Sequence
from pathlib import Path
from types import FrameType
from typing import Self

from searchbench.measure.kept import Standing
from searchbench.record.trial import Trial as Kept
from searchbench.study.plan import Plan, Trial, measured
from searchbench.terminal.remaining import Remaining

_OVER_S = 1.0
_FOREIGN = (
    "Others use this machine's cores, and trials stay invalid while they do. Stop this run "
    "(Ctrl-C), then stop what else runs here; for steal, choose a quieter hour or another "
    "machine. If others always work here, set SEARCHBENCH_SHARED_MACHINE=1: foreign CPU and steal "
    "are then only warnings. Either way, name another --record."
)


class Terminal:
    """A ``lab.conduct.watch.Watch``: one live line on a terminal, one line a trial elsewhere."""

    def __init__(self, plan: Plan | None) -> None:
        self.plan = plan
        self.live = sys.stderr.isatty()
        self.head = ""
        self.now = ""
        self.done = self.of = 0
        self.interrupted = self.advised = False
        self.searching = plan is not None and plan.judging.measure == "capacity"
        self.remaining = Remaining(plan)

    def __enter__(self) -> Self:
        """Take Ctrl-C for the time being.

        Python drops a KeyboardInterrupt that happens to be raised inside a hook of its own (of
        fork, of logging), and the study would go on as if nothing had been said. So it is also
        noted, and raised again at the next stage.
        """
        self._usual = signal.signal(signal.SIGINT, self._interrupt)
        self._usual_hook, sys.unraisablehook = sys.unraisablehook, self._dropped
        return self

    def __exit__(self, *error: object) -> None:
        """Clear the live line, and leave Ctrl-C as it was."""
        self.close()
        signal.signal(signal.SIGINT, self._usual)
        sys.unraisablehook = self._usual_hook

    def _interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        self.interrupted = True
        raise KeyboardInterrupt

    def _dropped(self, dropped: sys.UnraisableHookArgs) -> None:
        if dropped.exc_type is not KeyboardInterrupt:
            self._usual_hook(dropped)

    def opening(self, what: str) -> None:
        """Documents or queries are being read."""
        self._heed()
        self._show(f"reading {what}")

    def told(self, text: str) -> None:
        """A line of its own."""
        self._line(text)

    def begins(self, trial: Trial, label: str, done: int, of: int) -> None:
        """The next trial."""
        self._heed()
        self.done, self.of = done, of
        self.remaining.begins(done, of)
        count = f"{done + 1}/{of}" if of else f"trial {done + 1}"
        kind = " (A/A)" if trial.control else " (traced)" if trial.traced else ""
        self.head = f"[{count}] {label}{kind}"
        self._show("")

    def stage(self, name: str) -> None:
        """What it is doing."""
        self._heed()
        self.now = name
        self._show(name)

    def asks(self, classes: Sequence[str]) -> None:
        """Nothing of it is shown."""

    def tick(self, completed: int, elapsed_ns: int, recent: bytes) -> None:
        """Requests completed so far in the drive."""
        self._heed()
        rate = completed / max(elapsed_ns / 1e9, 1e-9)
        self._show(f"{self.now} {elapsed_ns / 1e9:.1f} s, {completed:,} requests, {rate:,.0f}/s")

    def ends(self, trial: Trial, about: Kept, invalid: str) -> None:
        """A trial is on record; one that failed or is invalid says why at once."""
        self.done += 1
        self.remaining.ends(about)
        if about.status != "ok":
            self._line(f"{self.head}: failed at {about.stage}: {about.reason}")
        elif invalid:
            self._line(f"{self.head}: done, but invalid: {invalid}{self._left()}")
            more = self.searching or self.done < self.of
            if ("foreign CPU: " in invalid or "steal: " in invalid) and more and not self.advised:
                self.advised = True
                self._line(_FOREIGN)
        elif not self.live:
            self._line(f"{self.head}: done{self._left()}")

    def close(self) -> None:
        """Clear the live line."""
        if self.live:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _heed(self) -> None:
        if self.interrupted:
            raise KeyboardInterrupt

    def _left(self) -> str:
        left = _takes(self.remaining)
        return left and f"{left} left"

    def _show(self, what: str) -> None:
        if self.live:
            text = f"{self.head}  {what}{self._left()}"
            sys.stderr.write("\r\x1b[K" + text[: shutil.get_terminal_size((80, 24)).columns - 1])
            sys.stderr.flush()

    def _line(self, text: str) -> None:
        self.close()
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


class LiveLine(Terminal):
    """How a load run fares: rate, median, p99, errors and lateness of the last requests.

    The rate is of about the last second. The quantiles are of the requests that the measuring
    loop finished last, up to some thousands: an impression, which the record does not rest on.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._ticks: deque[tuple[int, int]] = deque()

    def stage(self, name: str) -> None:
        """A new stage begins with no past."""
        self._ticks.clear()
        super().stage(name)

    def tick(self, completed: int, elapsed_ns: int, recent: bytes) -> None:
        """Show what ``recent`` (samples) say."""
        self._heed()
        self._ticks.append((elapsed_ns, completed))
        while len(self._ticks) > 1 and elapsed_ns - self._ticks[0][0] > _OVER_S * 1e9:
            self._ticks.popleft()
        since_ns, before = self._ticks[0]
        rate = (completed - before) / max((elapsed_ns - since_ns) / 1e9, 1e-9)
        self._show(f"{elapsed_ns / 1e9:.1f} s, {rate:,.0f}/s{_said(recent)}")


def _said(recent: bytes) -> str:
    """The rest of the line, from samples in the core's own form."""
    import numpy as np  # here, not above: `searchbench plan` has no use for it

    from searchbench import _core

    samples = np.frombuffer(recent, dtype=np.dtype(_core.SAMPLE_DTYPE))
    if not len(samples):
        return ""
    ok = samples[(samples["outcome"] == 0) & (samples["done"] >= 0)]
    parts = []
    if len(ok):
        p50, p99 = np.quantile(ok["done"] - ok["due"], (0.5, 0.99)) / 1e6
        late = np.maximum(0, ok["sent"] - np.maximum(ok["due"], ok["free"]))
        parts = [f"p50 {p50:.3g} ms", f"p99 {p99:.3g} ms"]
        parts.append(f"late p99 {np.quantile(late, 0.99) / 1e3:.3g} µs")
    failed = len(samples) - int(np.count_nonzero(samples["outcome"] == 0))
    parts.insert(2, f"errors {failed / len(samples):.2%}" if failed else "no errors")
    return ", " + ", ".join(parts)


def outlook(plan: Plan) -> str:
    """What is measured, and about how long it takes."""
    first = "first look, which decides nothing: " if plan.judging.first_look else ""
    return f"{first}{measured(plan)}{_takes(Remaining(plan))}"


def _takes(remaining: Remaining) -> str:
    left = remaining.left()
    return "" if left is None else f", {left}"


def set_aside(trials: Collection[str]) -> str:
    """What --again measures once more, a line."""
    if not trials:
        return "No trial on record is invalid only because others used the machine."
    n = len(trials)
    return (
        f"{n} of these {'is' if n == 1 else 'are'} on record and invalid only because "
        f"others used the machine: measured once more; {'it is' if n == 1 else 'they are'} "
        "kept in the record's folder void."
    )


def beginning(plan: Plan, place: Path, found: Standing | None) -> str:
    """The line before a measurement: what is driven now, and what is on record already."""
    if found is None:
        return f"{outlook(plan)}; record: {place}"
    if found.whole:
        trials = f"All {found.kept} trials are" if found.kept > 1 else "The only trial is"
        return (
            f"{trials} on record in {place} since {found.since}; nothing was measured now. To "
            "measure again, name another --record."
        )
    since = f"on record in {place} since {found.since}, and not measured again"
    are = "is" if found.kept == 1 else "are"
    if plan.judging.measure == "capacity":
        trials = "trial" if found.kept == 1 else "trials"
        return f"{found.kept} {trials} {are} {since}; the search goes on"
    n, of = len(found.left), len(plan.every)
    return (
        f"{found.kept} of {of} trials {are} {since}; {n} {'is' if n == 1 else 'are'} driven now"
        f"{_takes(Remaining(plan, of - n))}"
    )
