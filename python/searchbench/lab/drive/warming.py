"""A warm-up until steady: who judges sees the samples so far and says when the system is warm.

The drive knows nothing of it: it is planned for the longest warm-up, its window begins where the
judge said, and it is cut short once the window has ended and its requests were answered. So there
is no pause between the two in which a server could cool or a queue could empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench import _core
from searchbench.lab.wire.order import U32
from searchbench.record.samples import SoFar
from searchbench.record.trial import Warmup, Window

IsWarm = Callable[[SoFar], bool]

_FIRST_LOOK_S = 0.5
_NEXT_LOOK = 1.15  # times as old as at the last one
_LAST_LOOK = 0.98  # of the limit: who is warm by then shall not end there for want of a look
# After the window requests are waited for so many times as long as the longest took until now.
_PATIENCE = 3.0
_LEAST_PATIENCE_NS = 250_000_000


class Warming:
    """Follows one drive by its ticks; ``tick`` is False once the drive is to be cut short.

    ``limit_s``: the latest end of the warm-up. ``asked``: by query, whether it was asked since the
    system was made ready; what is seen is added. ``clients``: connections of a closed loop, each
    of which is used all the time; 0 where that is not so. ``began``: called when the window begins.
    """

    def __init__(
        self,
        is_warm: IsWarm,
        *,
        limit_s: float,
        seconds: float,
        timeout_s: float,
        closed: bool,
        clients: int,
        request_to_query: U32,
        asked: NDArray[np.bool_],
        began: Callable[[], object],
    ) -> None:
        self._is_warm, self._closed, self._clients, self._began = is_warm, closed, clients, began
        self._limit_s, self._limit_ns = limit_s, round(limit_s * 1e9)
        self._window_ns, self._timeout_ns = round(seconds * 1e9), round(timeout_s * 1e9)
        self._query, self._asked = request_to_query, asked
        self._distinct = len(np.unique(request_to_query))
        self._samples: list[tuple[NDArray[Any], ...]] = []
        self._seen_ns = -1
        self._longest_ns = 0
        self._next_ns = round(_FIRST_LOOK_S * 1e9)
        self._warm = False
        self._through: set[int] = set()  # connections that have begun anew after the window
        self.start_ns: int | None = None
        self.requests = 0

    @property
    def window(self) -> Window:
        """What is measured: from when it was warm, or from the limit on."""
        start = self._limit_ns if self.start_ns is None else self.start_ns
        return Window(start, start + self._window_ns)

    @property
    def warm(self) -> bool:
        """Whether it was seen to be warm: the window begins with the next tick, or has begun."""
        return self._warm

    @property
    def on_record(self) -> Warmup:
        """How it ended."""
        return Warmup(
            seconds=self.window.start / 1e9, requests=self.requests, at_limit=not self._warm
        )

    def tick(self, completed: int, elapsed_ns: int, recent: bytes) -> bool:
        """As ``_core.drive`` calls ``on_tick``."""
        samples = np.frombuffer(recent, dtype=np.dtype(_core.SAMPLE_DTYPE))
        # Two ticks may have the same samples; of threads that lag behind a few are passed over.
        fresh = samples[(samples["outcome"] == 0) & (samples["done"] > self._seen_ns)]
        if len(fresh):
            self._seen_ns = int(fresh["done"].max())
            self._longest_ns = max(self._longest_ns, int((fresh["done"] - fresh["due"]).max()))
        if self.start_ns is not None:
            # At the limit the drive ends by itself, when all is answered.
            return not (self._warm and self._over(fresh, elapsed_ns))
        self._gather(fresh)
        # The window begins a tick after the last look, so that no judging falls into it.
        if self._warm or elapsed_ns >= self._limit_ns:
            self.start_ns, self.requests = min(elapsed_ns, self._limit_ns), completed
            self._samples.clear()
            self._began()
        elif elapsed_ns >= self._next_ns:
            self._next_ns = self._next_look(elapsed_ns)
            self._warm = self._is_warm(self._so_far(elapsed_ns))
        return True

    def _next_look(self, elapsed_ns: int) -> int:
        due, last = round(_NEXT_LOOK * elapsed_ns), round(_LAST_LOOK * self._limit_ns)
        return min(due, last) if elapsed_ns < last else due

    def _gather(self, fresh: NDArray[Any]) -> None:
        query = self._query[fresh["request"]].astype(np.uint32)
        first = np.zeros(len(query), dtype=np.bool_)
        _, at = np.unique(query, return_index=True)
        first[at] = ~self._asked[query[at]]
        self._asked[query] = True
        instants = (np.ascontiguousarray(fresh[name]) for name in ("due", "sent", "done"))
        self._samples.append((query, *instants, first))

    def _so_far(self, elapsed_ns: int) -> SoFar:
        query, due, sent, done, first = map(np.concatenate, zip(*self._samples, strict=True))
        self._samples = [(query, due, sent, done, first)]
        return SoFar(
            query, due, sent, done, first,
            closed=self._closed, distinct=self._distinct, at_s=elapsed_ns / 1e9,
            limit_s=self._limit_s,
        )  # fmt: skip

    def _over(self, fresh: NDArray[Any], elapsed_ns: int) -> bool:
        """Has the window ended, and was what was due in it answered, as far as can be told?"""
        end_ns = self.window.end
        if elapsed_ns < end_ns:
            return False
        if self._clients:
            self._through |= set(fresh["connection"][fresh["due"] >= end_ns].tolist())
            patience_ns = self._timeout_ns
            if len(self._through) >= self._clients:
                return True
        else:
            patience_ns = min(self._timeout_ns, round(_PATIENCE * self._longest_ns))
        return elapsed_ns >= end_ns + max(patience_ns, _LEAST_PATIENCE_NS)
