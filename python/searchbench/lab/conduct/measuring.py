"""The phases of one drive: the order is sent, totals are taken, answers are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from searchbench.engines.engine import CacheState
from searchbench.lab.conduct import totals
from searchbench.lab.conduct.session import Run, Session
from searchbench.lab.drive.compiled import Spread
from searchbench.lab.drive.drive import Samples, accounted, drive
from searchbench.lab.drive.probe import Probe
from searchbench.lab.drive.workload import VerbatimRequests
from searchbench.lab.fleet.fleet import Fleet, FleetEndpoint
from searchbench.lab.fleet.parts import FleetError
from searchbench.lab.system import cachecount
from searchbench.lab.wire.exchange import prepare
from searchbench.lab.wire.order import Manner, Order, Progress
from searchbench.places import Place
from searchbench.record.trial import Cache, Note, UnderLoad


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a drive needs around it. ``fleet``: several client machines; None: this one alone."""

    on_tick: Progress | None
    announce: Callable[[str], object]
    fleet: Fleet | None = None


def drive_it(run: Run, place: Place, hooks: Hooks) -> None:
    """Send the load and record every request."""
    session, running, load = run.session, run.session.there(), run.opened.role.load
    compiled = session.bytes()
    fleet = hooks.fleet
    running.fleet = None if fleet is None else lambda endpoint: FleetEndpoint(fleet, endpoint)
    order = order_of(run)
    if session.cache is not None and not session.filled:
        _fill(session, run.opened.seed, hooks)
    before = CacheState()
    if session.cache is not None:
        before = cachecount.read(running.endpoint, running.known)
    manner = Manner(
        timeout_s=load.timeout_s,
        cpus=_cores(load.cpus, order, place, fleet),
        idle=load.idle,
        realtime=bool(run.opened.treatment.load.get("realtime")),
        spill=run.spill,
        on_tick=hooks.on_tick,
    )
    captured = session.captured
    expected = order.expected_requests(0.001 if captured is None else captured.mean_s)
    with Probe(running.processes) as probe:
        try:
            driven = drive(running.sender, running.decoder, compiled, order, manner, expected)
        except FleetError as error:
            if error.gathered is not None:
                # What the other machines measured until then: kept, and not judged.
                run.about.drive = accounted(
                    {k: v for k, v in error.gathered.about.items() if k != "notes"}
                )
                run.samples = Samples(error.gathered, compiled.request_to_query)
            raise
    lived = probe.server_lived()
    run.driven, run.samples = driven, driven.samples
    run.about.drive = driven.accounting
    run.probe = probe.table(driven.accounting.started_unix_ns)
    run.about.notes += driven.notes
    if fleet is not None:
        run.about.notes += fleet.notes()
    if session.cache is not None:
        run.about.cache = _cache(run, before)
    if not lived:
        run.note(_ended(running.log_tail()))


def order_of(run: Run) -> Order:
    """What the role's load sends when."""
    opened, compiled = run.opened, run.session.bytes()
    spread: Spread = "round" if opened.treatment.load.get("spread") == "round" else "keep"
    workload, load = opened.workload, opened.role.load
    if isinstance(workload, VerbatimRequests):
        return workload.order(load, compiled, opened.seed, spread, run.session.cache)
    return workload.order(load, compiled, opened.seed, spread)


def totals_of(run: Run) -> None:
    """Sums over the measured window, once the clock has stopped."""
    assert run.driven is not None
    assert run.probe is not None
    window = run.about.window = totals.window(run.driven.samples, run.opened.role.load)
    if run.session.there().processes:
        run.about.server = totals.server(run.probe, window)
    run.about.host_window = totals.machine(run.probe, window)


def answers(run: Run) -> None:
    """Were answers under load those that were captured alone?"""
    driven, captured = run.driven, run.session.captured
    assert driven is not None
    assert captured is not None
    run.fill_in()
    if run.session.there().known is None:
        run.replies = captured.replies
        return
    changed, compared = totals.changed_under_load(captured.replies, driven.replies)
    run.about.answers_under_load = UnderLoad(compared=compared, changed=changed)
    run.replies = pa.concat_tables([captured.replies, driven.replies])


def _cores(
    wanted: Sequence[int], order: Order, place: Place, fleet: Fleet | None
) -> tuple[int, ...]:
    """A measuring thread each; never more than there are connections."""
    if wanted:
        return tuple(wanted)[: order.connections]
    return () if fleet is not None else place.client_cpus[: order.connections]


def _ended(log: str) -> Note:
    return Note(
        kind="server ended",
        number=f"its log ends: {log}" if log else "",
        meaning="the server's process ended while it was driven",
        remedy="look at server.log beside this trial's samples"
        if log
        else "look at the server's own log",
    )


def _fill(session: Session, seed: int, hooks: Hooks) -> None:
    """Fill the system's caches before its first drive, whose hits would lack; not on record.

    From this machine, whoever sends the load.
    """
    session.filled = True
    workload, running, compiled = session.opened.workload, session.there(), session.bytes()
    assert isinstance(workload, VerbatimRequests)
    assert session.cache is not None
    hooks.announce("filling the cache")
    order = workload.filling(compiled, session.cache, seed)
    timeout_s = session.opened.role.load.timeout_s
    running.endpoint.drive(
        prepare(compiled.requests), order, Manner(timeout_s=timeout_s, on_tick=hooks.on_tick)
    )
    hooks.announce("drive")


def _cache(run: Run, before: CacheState) -> Cache:
    """How requests were drawn, and how often the cache was hit: by the server's count, or else by
    a header of the replies."""
    session, driven, running = run.session, run.driven, run.session.there()
    assert session.cache is not None
    assert driven is not None
    counted = cachecount.between(before, cachecount.read(running.endpoint, running.known))
    if isinstance(counted, cachecount.Uncounted) and running.endpoint.wire == "http":
        counted = cachecount.of_replies(driven.raw) or counted
    return cachecount.on_record(session.cache, counted)
