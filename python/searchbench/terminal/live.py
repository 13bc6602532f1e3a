"""The live line of a load run: rate, median, p99, errors and lateness of the last requests."""

from __future__ import annotations

from collections import deque

import numpy as np

from searchbench import _core
from searchbench.terminal.progress import Terminal

_OVER_S = 1.0


class LiveLine(Terminal):
    """A ``lab.conduct.watch.Watch`` that says how the load fares while it runs.

    The rate is of about the last second. The quantiles are of the requests that the measuring
    loop finished last, up to some thousands: an impression, which the record does not rest on.
    """

    def __init__(self) -> None:
        super().__init__(None)
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
        self._show(f"{elapsed_ns / 1e9:.1f} s, {rate:,.0f}/s{said(recent)}")


def said(recent: bytes) -> str:
    """The rest of the line, from samples in the core's own form."""
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
