"""What the core is to send when, and how its loop goes about it: fixed before the first request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]
Idle = Literal["block", "hybrid", "spin"]

# Requests completed, nanoseconds since the start, and the samples finished last.
Progress = Callable[[int, int, bytes], object]

# Samples of a drive held in memory before they are spilled: two million.
_SPILL_AFTER_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class Order:
    """What to send when. Closed loop: ``client_starts``. Open loop and replay: ``due_ns``.

    ``request_targets``: for each prepared request which endpoint it goes to (None: the first);
    ``request_timeouts_ns``: for each its own timeout (None: that of the drive).
    """

    sequence: U32
    client_starts: U32 | None
    due_ns: I64 | None
    connections: int
    think_ns: int = 0
    repeat: bool = True
    stop_ns: int | None = None
    stop_after: int | None = None
    request_targets: U16 | None = None
    request_timeouts_ns: I64 | None = None

    def expected_requests(self, mean_service_s: float) -> int:
        """About how many requests it comes to, for choosing how many replies to keep."""
        if self.due_ns is not None:
            return len(self.due_ns)
        if self.stop_after is not None:
            return self.stop_after
        cycle_s = max(mean_service_s + self.think_ns / 1e9, 1e-6)
        return int(self.connections * (self.stop_ns or 0) / 1e9 / cycle_s)


def one_by_one(count: int) -> Order:
    """Every prepared request once, one after another, over one connection."""
    sequence = np.arange(count, dtype=np.uint32)
    return Order(sequence, np.array([0, count], np.uint32), None, 1, repeat=False)


def each_once(count: int, connections: int) -> Order:
    """Every prepared request once, in turn over so many connections, which do not wait for others.

    Over one they arrive in their order.
    """
    connections = max(1, min(connections, count))
    dealt = [np.arange(first, count, connections, dtype=np.uint32) for first in range(connections)]
    starts = np.cumsum([0, *map(len, dealt)], dtype=np.uint32)
    return Order(np.concatenate(dealt), starts, None, connections, repeat=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How the measuring loop goes about an order.

    ``capture_every``: keep the reply of every n-th request (0: of none). ``exchange_times``: keep
    when each exchange of a request was sent and answered. ``spill``: an existing folder for samples
    and kept replies that exceed memory. ``start_unix_ns``: when the clock is at zero; None: as soon
    as all connections are open.
    """

    timeout_s: float = 60.0
    capture_every: int = 0
    exchange_times: bool = False
    cpus: tuple[int, ...] = ()
    idle: Idle = "block"
    realtime: bool = False
    spill: Path | None = None
    on_tick: Progress | None = None
    start_unix_ns: int | None = None


def arguments(order: Order, manner: Manner) -> dict[str, Any]:
    """Both as ``_core.drive`` takes them by name: those of an order are its fields'."""
    at = {} if manner.start_unix_ns is None else {"start_unix_ns": manner.start_unix_ns}
    return {
        **at,
        **{each.name: getattr(order, each.name) for each in fields(order)},
        "timeout_ns": int(manner.timeout_s * 1e9),
        "capture_every": manner.capture_every,
        **({"exchange_times": True} if manner.exchange_times else {}),
        "cpus": list(manner.cpus),
        "idle": manner.idle,
        "realtime": manner.realtime,
        "on_tick": manner.on_tick,
        "spill": None if manner.spill is None else str(manner.spill),
        "spill_after_bytes": _SPILL_AFTER_BYTES,
    }
