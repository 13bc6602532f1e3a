"""First asks: before every query nothing of the system's files is in memory.

    (stop → place → deploy → drive) for each query → drive

A drive of the measuring loop for each query, closed, with one client, and the ordinary phases
around it. The system is stopped and started anew where the place says so; else it runs on, and what
it keeps in its own memory stays. At the end all drives are put on the clock of the first.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import numpy as np

from searchbench import _core
from searchbench.errors import LabError
from searchbench.lab.conduct.measuring import order_of
from searchbench.lab.conduct.session import Run
from searchbench.lab.drive.drive import Samples, decoded
from searchbench.lab.drive.refused import said
from searchbench.lab.place.cold import Evicted
from searchbench.lab.wire.exchange import prepare, samples_of
from searchbench.lab.wire.order import Manner, Order
from searchbench.lab.wire.trace import Gathered
from searchbench.record.drive import Drive
from searchbench.record.trial import Asked, Window

_INSTANTS = ("due", "free", "connect", "sent", "first_byte", "done")
# Of the accounting of a drive what adds up over drives.
_ADDED = ("connects", "reconnects", "refused_connects", "handshakes", "resumed", "partial_sends",
          "unsent", "unsolicited", "pauses", "pause_ns", "spilled_bytes")  # fmt: skip
_OF_A_THREAD = ("user_ns", "system_ns", "run_wait_ns", "voluntary_switches",
                "involuntary_switches", "minor_faults")  # fmt: skip

Phase = tuple[str, Callable[[Run], object]]


def phases_of(run: Run, deploy: Callable[[Run], object]) -> list[Phase]:
    """The phases of a drive of first asks. ``deploy``: starts the system in its place."""
    place = run.session.place
    assert place is not None
    if run.session.sitting.fleet is not None:
        raise LabError("each query is asked cold from this machine alone; leave out other client "
                       "machines", "drive")  # fmt: skip
    asking = Asking(run, place.asks, restarted=place.restart)
    anew: list[Phase] = [("stop", _stop)] if place.restart else []
    start: list[Phase] = [("deploy", deploy)] if place.restart else []
    found: list[Phase] = []
    for number in asking.requests:
        found += [*anew, ("place", asking.evict), *start, ("drive", partial(asking.ask, number))]
    return [*found, ("drive", asking.gather)]


class Asking:
    """Each query of a trial in turn. ``asks``: how often one is asked after an eviction.

    ``requests``: the numbers of the prepared requests, each once, in the order of the load.
    """

    def __init__(self, run: Run, asks: int, *, restarted: bool) -> None:
        self._asks, self._restarted = asks, restarted
        compiled, order = run.session.bytes(), order_of(run)
        assert order.stop_after is not None
        self.requests = list(dict.fromkeys(order.sequence.tolist()))[: order.stop_after]
        endpoint = run.session.there().endpoint
        self._prepared = prepare(endpoint.dressed(compiled.requests))
        self._traces: list[_core.Trace] = []
        self._evicted: list[Evicted] = []

    def evict(self, run: Run) -> None:
        """Have the kernel give up all pages of the files; LabError where some stay."""
        assert run.session.confines is not None
        self._evicted.append(run.session.confines.chill())

    def ask(self, number: int, run: Run) -> None:
        """Ask one query, so many times, over one connection."""
        if self._restarted:
            assert run.session.confines is not None
            run.session.confines.started()
        sitting, load = run.session.sitting, run.opened.load
        sequence = np.full(self._asks, number, np.uint32)
        ends = np.array([0, self._asks], np.uint32)
        order = Order(sequence, ends, None, 1, repeat=False, think_ns=load.think_ns)
        manner = Manner(
            timeout_s=load.timeout_s, capture_every=1, idle=load.idle,
            cpus=tuple(load.cpus or sitting.cores.client_cpus)[:1],
        )  # fmt: skip
        with run.machine.drive():
            endpoint = run.session.there().endpoint
            self._traces.append(endpoint.drive(self._prepared, order, manner))

    def gather(self, run: Run) -> None:
        """Put all drives on one clock, and on record."""
        if not self._traces:
            raise LabError("nothing was sent: the order is empty", "drive")
        session, compiled, running = run.session, run.session.bytes(), run.session.there()
        accounts = [json.loads(trace.accounting()) for trace in self._traces]
        zero = int(accounts[0]["started_unix_ns"])
        pieces: list[np.ndarray[tuple[int], np.dtype[np.void]]] = []
        kept: list[tuple[int, bytes]] = []
        asked, before = list[Asked](), 0
        for number, trace, about, evicted in zip(
            self.requests, self._traces, accounts, self._evicted, strict=True
        ):
            later = int(about["started_unix_ns"]) - zero
            pieces.append(_shifted(samples_of(trace), later))
            kept += [(before + index, reply) for index, reply in trace.replies()]
            before += len(trace)
            asked.append(
                Asked(
                    query=int(compiled.request_to_query[number]),
                    requests=len(trace),
                    start=later,
                    end=later + int(about["elapsed_ns"]),
                    pages=evicted.pages,
                    before=evicted.before,
                    after=evicted.after,
                    restarted=self._restarted,
                )
            )
        whole = Gathered(np.concatenate(pieces), kept, _together(accounts, asked[-1].end))
        run.samples = Samples(whole, compiled.request_to_query)
        run.about.drive = msgspec.convert(whole.about, Drive)
        run.about.asked, run.about.window = asked, Window(0, asked[-1].end + 1)
        run.under_load = decoded(running.decoder, whole, compiled, "under_load")
        run.probe = run.machine.table(zero)
        run.about.said = said(running, compiled, run.samples)
        session.sitting.watch.tick(before, asked[-1].end, b"")


def _stop(run: Run) -> None:
    """Stop the system; its place stays as it is."""
    session = run.session
    session.there().stop()
    session.running = None


def _shifted(
    raw: np.ndarray[tuple[int], np.dtype[np.void]], later: int
) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """A copy on a clock that began so many ns before."""
    found = raw.copy()
    for name in _INSTANTS:
        found[name][found[name] >= 0] += later
    return found


def _together(accounts: list[dict[str, Any]], end: int) -> dict[str, Any]:
    """The accounting of all drives as that of one that lasted until ``end``."""
    found = {**accounts[0], "elapsed_ns": end}
    for name in _ADDED:
        if name in found:
            found[name] = sum(int(about.get(name) or 0) for about in accounts)
    threads = [thread for about in accounts for thread in about.get("threads", [])[:1]]
    one = dict(threads[0]) if threads else {}
    for name in _OF_A_THREAD:
        if one.get(name) is not None:
            one[name] = sum(int(thread.get(name) or 0) for thread in threads)
    found["threads"] = [one] if one else []
    statuses: dict[str, int] = {}
    for about in accounts:
        for code, n in (about.get("statuses") or {}).items():
            statuses[code] = statuses.get(code, 0) + n
    return found | ({"statuses": statuses} if statuses else {})
