"""The phases of one drive: the order is sent, totals are taken, answers are compared."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from functools import partial

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import convert

from searchbench.errors import LabError
from searchbench.lab.conduct import beside, caches
from searchbench.lab.conduct.ended import DYING_S, ends_of, has_ended, note
from searchbench.lab.conduct.session import Run
from searchbench.lab.drive.drive import Broken, Samples, broken_in, decoded
from searchbench.lab.drive.left_behind import clean_up
from searchbench.lab.drive.operations import Operations
from searchbench.lab.drive.refused import said
from searchbench.lab.drive.warming import Warming
from searchbench.lab.drive.workload import (
    DocumentsAlone,
    PortableQueries,
    Spread,
    VerbatimRequests,
)
from searchbench.lab.fleet.fleet import FleetEndpoint
from searchbench.lab.fleet.parts import FleetError
from searchbench.lab.probe.totals import machine_totals, server_totals, spent
from searchbench.lab.wire.exchange import Trace, exchanges_of, replies_of
from searchbench.lab.wire.order import Manner, Order, Progress
from searchbench.record import statements_table
from searchbench.record.drive import Drive
from searchbench.record.trial import Note, ServerTotals, UnderLoad, Window

# So many replies of a drive are kept, about.
_SAMPLED_REPLIES = 200
# A window that begins within so much is about to: two ticks and some.
_SOON_NS = 250_000_000
_SLOW_OPENING_S = 1.0


def drive_it(run: Run) -> None:
    """Send the load and record every request."""
    session, running, load = run.session, run.session.there(), run.opened.load
    compiled, fleet = session.bytes(), session.sitting.fleet
    order = order_of(run)
    if session.cache is not None and not session.filled:
        _fill(run)
    counting = caches.Counting(running)
    # A measuring thread each; never more than there are connections.
    cpus = load.cpus or (() if fleet is not None else session.sitting.cores.client_cpus)
    mean_s = 0.001 if session.captured is None else session.captured.about.mean_s
    warming = _warming(run, order) if load.window.until_steady else None
    # Of a drive that will be cut short, those of the part that is driven in any case.
    driven = (
        1.0 if warming is None else (load.window.seconds or 0.0) / (load.window.horizon_s or 1.0)
    )
    manner = Manner(
        timeout_s=load.timeout_s,
        # Odd, so that it does not keep step with an even number of distinct queries.
        capture_every=max(1, int(order.expected_requests(mean_s) * driven) // _SAMPLED_REPLIES) | 1,
        cpus=tuple(cpus)[: order.connections],
        idle=load.idle,
        exchange_times=_statement_times(run),
        realtime=bool(run.opened.treatment.load.get("realtime")),
        spill=run.spill,
        on_tick=_progress(run, order, warming, counting),
    )
    sender = running.endpoint if fleet is None else FleetEndpoint(fleet, running.endpoint)
    asked_unix_ns = time.time_ns()
    with run.machine.drive():
        try:
            if session.beside is None:
                trace = sender.send(compiled.requests, order, manner)
            else:
                trace = beside.drive(
                    run, order,
                    lambda at: sender.send(
                        compiled.requests, order, replace(manner, start_unix_ns=at)
                    ),
                )  # fmt: skip
        except FleetError as error:
            if error.gathered is not None:
                # What the other machines measured until then: kept, and not judged.
                _account(run, error.gathered)
            raise
        if fleet is None:
            clean_up(running.endpoint, compiled.requests, trace, load.timeout_s)
        if not len(trace):
            raise LabError("nothing was sent: the order is empty", "drive")
        accounting = _account(run, trace)
        if why := running.lost():  # what was measured until then is kept, and not judged
            raise LabError(why, "drive")
        assert run.samples is not None
        opening_s = (accounting.started_unix_ns - asked_unix_ns) / 1e9
        if fleet is None and session.beside is None and opening_s > _SLOW_OPENING_S:
            session.sitting.watch.told(
                f"it took {opening_s:.1f} s to open {order.connections:,} connections, before the "
                "load began: the server accepts them slowly; fewer (`connections`), or a longer "
                "accept queue of the server, takes less"
            )
        written = session.beside is not None and session.beside.active
        phase = beside.WHILE_WRITTEN if written else "under_load"
        run.under_load = decoded(running.decoder, trace, compiled, phase)
    operations = isinstance(run.opened.workload, Operations)
    broken = Broken(lost=False, under_way=0)
    if operations or not running.lives():
        broken = broken_in(run.samples.raw())
    # Of an operation the end is a result, and a connection is lost before the process is gone.
    lost = operations and broken.lost
    ended = has_ended(running, DYING_S if lost else 0.0, lost=lost)
    if warming is not None:
        run.about.warmup, run.about.window = warming.on_record, warming.window
    run.probe = run.machine.table(accounting.started_unix_ns)
    # What several client machines have to say of their clocks.
    run.about.notes += convert(json.loads(trace.accounting()).get("notes", []), list[Note])
    if fleet is not None:
        run.about.notes += fleet.notes()
    run.about.cache = counting.on_record(session.cache, (b"".join(r) for _, r in replies_of(trace)))
    run.about.said = said(running, compiled, run.samples)
    gone = session.beside is not None and session.beside.gone
    if ended and not gone:  # what did not come back from a fault is told with it
        session.gone = True
        ends = ends_of(running, "drive", broken, session.why())
        run.about.server_ends += ends
        run.about.notes.append(note(ends))


def _progress(
    run: Run, order: Order, warming: Warming | None, counting: caches.Counting
) -> Progress:
    """Who hears of the drive while it runs, and may end it."""
    sitting, window = run.session.sitting, run.opened.load.window
    running = run.session.there()
    broken, classes = None, _classes_by_request(run)
    sitting.watch.asks(classes)
    # A study that may be ended has a fixed warm-up: the window is known beforehand.
    if warming is None and sitting.breach is not None and sitting.rules.abort:
        due_ns = np.empty(0, np.int64) if order.due_ns is None else order.due_ns
        broken = sitting.breach(sitting.rules.promises, window.bounds_ns(due_ns), classes)

    latest_ns = round(window.warmup_s * 1e9)  # by then the window has begun
    opening = False

    def on_tick(completed: int, elapsed_ns: int, recent: bytes) -> bool:
        nonlocal opening
        if opening is not (elapsed_ns == 0):  # the clock starts when all connections are open
            opening = elapsed_ns == 0
            usual = "drive" if warming is None else "warm-up"
            sitting.watch.stage(f"opening {order.connections:,} connections" if opening else usual)
        if opening:
            return True
        sitting.watch.tick(completed, elapsed_ns, recent)
        goes_on = warming is None or warming.tick(completed, elapsed_ns, recent)
        _before_the_window(warming, counting, latest_ns, elapsed_ns)
        if running.lost():
            return False
        return goes_on and (broken is None or not broken(elapsed_ns, recent))

    return on_tick


def _classes_by_request(run: Run) -> list[str]:
    """The class of each request by its number, as the samples of the core have it; empty: none."""
    workload = run.opened.workload
    if not isinstance(workload, PortableQueries | VerbatimRequests) or not workload.asked.classes:
        return []
    of_query = workload.asked.classes
    return [of_query[int(query)] for query in run.session.bytes().request_to_query]


def _before_the_window(
    warming: Warming | None, counting: caches.Counting, latest_ns: int, elapsed_ns: int
) -> None:
    """Let the counter of a cache be read if the window is about to begin, and not once it has.

    ``latest_ns``: by then it has begun.
    """
    soon = elapsed_ns >= latest_ns - _SOON_NS or (warming is not None and warming.warm)
    begun = elapsed_ns >= latest_ns or (warming is not None and warming.start_ns is not None)
    if soon and not begun:
        counting.window_begins(elapsed_ns)


def totals_of(run: Run) -> None:
    """Sums over the measured window, once the clock has stopped."""
    assert run.samples is not None
    assert run.probe is not None
    load, window, drive = run.opened.load.window, run.about.window, run.about.drive
    if run.about.asked and window is not None:
        # Most of this time the system was stopped or started: only its peak says something.
        peak = spent(run.probe, window, started=True)
        run.about.server = ServerTotals(
            peak_rss_bytes=peak.peak_rss_bytes, peak_pss_bytes=peak.peak_pss_bytes
        )
        run.about.host_window = machine_totals(run.probe, window, run.machine.others)
        return
    if window is None:
        due_ns = run.samples.due_ns() if load.seconds is None else np.empty(0, np.int64)
        start, end = load.bounds_ns(due_ns)
        if drive is not None and drive.cut_short:  # nothing was due after that
            end = max(start, min(end, drive.elapsed_ns))
        window = run.about.window = Window(start, end)
    if drive is not None and run.session.confines is not None:
        zero = drive.started_unix_ns
        run.about.elsewhere = run.session.confines.elsewhere(zero + window.start, zero + window.end)
    beside_it = run.session.beside
    if beside_it is not None and beside_it.faulted:
        # Counters begin anew with a process; what it used before was counted until then.
        run.about.server = spent(run.probe, window, started=False)
    elif run.session.there().processes:
        run.about.server = server_totals(run.probe, window)
    elif run.about.elsewhere:  # nothing of the system is on this machine
        run.about.server = ServerTotals(cpu_s=0.0)
    run.about.host_window = machine_totals(run.probe, window, run.machine.others)


def answers(run: Run) -> None:
    """Were answers under load those that were captured alone?"""
    under_load, captured = run.under_load, run.session.captured
    assert under_load is not None
    assert captured is not None
    run.fill_in()
    run.replies = captured.replies
    if run.session.there().known is not None:
        if run.session.beside is None or not run.session.beside.active:
            changed = _changed_under_load(captured.replies, under_load)
            run.about.answers_under_load = changed
        run.replies = pa.concat_tables([captured.replies, under_load])
        if run.session.beside is not None:
            beside.after(run)


def _account(run: Run, trace: Trace) -> Drive:
    """Keep what the measuring loop recorded, and what it says of itself."""
    run.samples = Samples(trace, run.session.bytes().request_to_query)
    if _statement_times(run):
        run.statements = statements_table(exchanges_of(trace))
    run.about.drive = msgspec.json.decode(trace.accounting(), type=Drive)
    return run.about.drive


def _statement_times(run: Run) -> bool:
    """Are the instants of single statements asked for?"""
    return isinstance(run.opened.workload, Operations) and run.opened.workload.statement_times


def _warming(run: Run, order: Order) -> Warming:
    """The warm-up of a drive that ends once the system is warm."""
    session, load, watch = run.session, run.opened.load, run.session.sitting.watch
    compiled, window = session.bytes(), load.window
    if session.asked_queries is None:
        session.asked_queries = np.zeros(int(compiled.request_to_query.max()) + 1, np.bool_)
    assert session.sitting.is_warm is not None
    closed = order.due_ns is None
    # Of several endpoints a client keeps connections that it may not use for long; several
    # machines each number their own.
    in_use = closed and compiled.copies == 1 and session.sitting.fleet is None
    watch.stage("warm-up")
    return Warming(
        session.sitting.is_warm,
        limit_s=window.warmup_s,
        seconds=window.seconds or 0.0,
        timeout_s=load.timeout_s,
        closed=closed,
        clients=order.connections if in_use else 0,
        request_to_query=compiled.request_to_query,
        asked=session.asked_queries,
        began=partial(watch.stage, "drive"),
    )


def order_of(run: Run) -> Order:
    """What the load sends when."""
    opened, compiled = run.opened, run.session.bytes()
    assert not isinstance(opened.workload, DocumentsAlone)
    spread: Spread = "round" if opened.treatment.load.get("spread") == "round" else "keep"
    if run.session.cache is None:
        line = opened.workload.from_line(opened.load, opened.seed)
        run.about.load = msgspec.structs.replace(run.about.load, from_line=line)
    if isinstance(opened.workload, VerbatimRequests):
        order = opened.workload.order(opened.load, opened.seed, run.session.cache)
    else:
        order = opened.workload.order(opened.load, compiled, opened.seed)
    if isinstance(opened.workload, Operations):
        order = _as_often_as_tells(run, order)
    return compiled.routed(order, spread)


def _as_often_as_tells(run: Run, order: Order) -> Order:
    """The same, but of draws that all ran out of time when asked alone each is asked once more.

    That they still do is then on record. To wait for the time limit again and again tells no more.
    """
    load, captured = run.opened.load, run.session.captured
    if order.stop_after is None or captured is None or captured.about.mean_s < load.timeout_s:
        return order
    each_once = load.window.warmup_requests + len(run.session.bytes().requests)
    return replace(order, stop_after=min(order.stop_after, each_once))


def _fill(run: Run) -> None:
    """Fill the system's caches before its first drive, whose hits would lack; not on record.

    From this machine, whoever sends the load.
    """
    session, opened, compiled = run.session, run.opened, run.session.bytes()
    session.filled = True
    assert isinstance(opened.workload, VerbatimRequests)
    assert session.cache is not None
    watch = session.sitting.watch
    watch.stage("filling the cache")
    order = opened.workload.filling(compiled.several, session.cache, opened.seed)
    manner = Manner(timeout_s=opened.load.timeout_s, on_tick=watch.tick)
    session.there().endpoint.send(compiled.requests, compiled.routed(order), manner)
    watch.stage("drive")


def _changed_under_load(captured: pa.Table, under_load: pa.Table) -> UnderLoad:
    """Sampled replies whose total or ids differ from the captured ones.

    Replies that carry an error are outcomes already and not counted here.
    """
    alone, loaded = (
        [
            (row["query"], (row["total"], row["ids"]))
            for row in table.select(["query", "total", "ids", "error"]).to_pylist()
            if row["error"] is None
        ]
        for table in (captured, under_load)
    )
    known = dict(alone)
    changed = [known[query] != answer for query, answer in loaded if query in known]
    return UnderLoad(compared=len(changed), changed=sum(changed))
