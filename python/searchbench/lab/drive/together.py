"""Several drives on one clock: the readers on the caller's thread, every other role on its own.

Each role has a measuring loop of its own with its own connections; all loops are told the same
instant, by which each sets the same clock of the machine to zero. Nothing of one waits for another.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from searchbench.engines.engine import Request
from searchbench.errors import LabError
from searchbench.lab.wire.exchange import Endpoint, Trace
from searchbench.lab.wire.order import Manner, Order

_T = TypeVar("_T")
# From now to the common start: for connections to be opened until then, each after the last.
_AHEAD_S, _CONNECTION_S = 1.5, 0.03


@dataclass
class Side:
    """A role beside the readers. ``asks``: it sends queries, whose answers have the marks of whole
    ones (``Service.whole``); answers to changes have none. ``act``: what it does in place of
    sending an order, told the Unix time in ns of the start. ``endpoint``: where it sends, if that
    is not where the readers do. ``over``: set where all is cut short.
    Afterwards: ``trace``, or ``error`` where it could not go on.
    """

    name: str
    requests: Sequence[Request] = ()
    order: Order | None = None
    manner: Manner = field(default_factory=Manner)
    asks: bool = False
    act: Callable[[int], object] | None = None
    endpoint: Endpoint | None = None
    over: threading.Event = field(default_factory=threading.Event)
    trace: Trace | None = None
    error: Exception | None = None

    def drive(self, endpoint: Endpoint, start_unix_ns: int, over: threading.Event) -> None:
        """To its end, or until ``over``."""
        self.over = over
        try:
            if self.act is not None:
                self.act(start_unix_ns)
            elif self.order is not None:
                manner = replace(
                    self.manner, start_unix_ns=start_unix_ns, on_tick=lambda *_: not over.is_set()
                )
                endpoint = self.endpoint or endpoint
                if not self.asks:
                    endpoint = replace(endpoint, whole=())
                self.trace = endpoint.send(self.requests, self.order, manner)
        except Exception as error:
            self.error = error


def together(
    main: Callable[[int], _T], connections: int, sides: Sequence[Side], endpoint: Endpoint
) -> _T:
    """What ``main`` gives, which is told the Unix time in ns of the start; the sides have ended.

    Sides end by themselves: nothing of theirs is begun after their orders' ends, and what is under
    way then is waited for. Where ``main`` fails, they are cut short.
    """
    connections += sum(side.order.connections for side in sides if side.order is not None)
    ahead_s = _AHEAD_S + _CONNECTION_S * connections
    start_unix_ns = time.time_ns() + round(ahead_s * 1e9)
    over = threading.Event()
    threads = [
        threading.Thread(
            target=side.drive, args=(endpoint, start_unix_ns, over), name=side.name, daemon=True
        )
        for side in sides
    ]
    for thread in threads:
        thread.start()
    try:
        found = main(start_unix_ns)
    except ValueError as error:
        over.set()
        if "start_unix_ns" not in str(error):
            raise
        raise LabError(
            f"{connections:,} connections of all roles were not open within {ahead_s:.1f} s: the "
            "machine or the server is too busy; give [load] or its roles fewer `connections`",
            "drive",
        ) from error
    except BaseException:
        over.set()
        raise
    finally:
        for thread in threads:
            thread.join()
    return found
