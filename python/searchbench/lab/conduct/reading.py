"""Roles that read: further readers beside those of the study, with queries and a load of their own.

What they ask is asked alone before the drive, as what the readers ask is, so that answers under
load can be compared with those. Who asks the same of an index that another trial asked it of takes
the answers of that one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from searchbench.engines.engine import Engine
from searchbench.errors import LabError
from searchbench.lab.conduct.session import Captured, Run, Session
from searchbench.lab.drive.drive import Samples, decoded
from searchbench.lab.drive.drive import capture as ask_each
from searchbench.lab.drive.left_behind import clean_up
from searchbench.lab.drive.workload import Compiled, PortableQueries, Spread, in_order
from searchbench.lab.wire.exchange import Endpoint, Trace
from searchbench.record.queries import Unsupported
from searchbench.record.samples import SAMPLES
from searchbench.record.trial import Captured as CapturedAbout
from searchbench.workload.reading import due_ns, load_of, seed_of

if TYPE_CHECKING:
    from searchbench.lab.conduct.beside import Part

_ALONE_S = 60.0  # for one query that is asked alone, at least
# So many replies of a drive are kept, about.
_SAMPLED_REPLIES = 200
_BY_A_ROLE = "by a role"  # the readers' own answers to the same have more beside them


@dataclass
class Reading:
    """What a role asks, in the system's bytes. ``captured``: the answers, asked alone."""

    asked: PortableQueries
    compiled: Compiled
    captured: Captured | None = None


def prepare(session: Session, part: Part, begin_ns: int, stop_ns: int) -> None:
    """Everything that it will ask, and when; LabError where that is nothing."""
    opened, run, keys = session.opened, part.run, part.run.keys
    asked = opened.reads[run.name]
    run.queries = asked.about()
    if run.idle:
        return
    engine, there = opened.engine, session.running  # there: of a system that ran already
    assert engine is not None
    levers = session.levers if there is None else there.params
    endpoints = 1 if there is None else len(there.endpoint.addresses)
    try:
        compiled = asked.compiled(engine, levers, endpoints)
    except LabError as error:
        raise LabError(f"the role {run.name}: {error}", "prepare") from None
    run.unsupported = [Unsupported(query, reason) for query, reason in compiled.unsupported]
    seed, load = seed_of(run.name, opened.seed), load_of(keys, opened.load)
    log, times_s = asked.logged(load, compiled, seed)
    due = due_ns(keys, begin_ns, stop_ns, seed, opened.base, times_s)
    if due is not None and not len(due):
        raise LabError(f"the role {run.name} asks nothing in this drive: make the window longer, "
                       "or have it ask more often", "prepare")  # fmt: skip
    spread: Spread = "round" if opened.treatment.load.get("spread") == "round" else "keep"
    order = compiled.routed(in_order(load, log, due, seed), spread)
    run.planned = 0 if due is None else len(due)
    part.reading = Reading(asked, compiled)
    part.side.requests, part.side.order, part.side.asks = compiled.requests, order, True
    part.side.manner = replace(part.side.manner, timeout_s=load.timeout_s, idle=load.idle)


def take_captured(session: Session) -> bool:
    """Use the answers that an earlier trial captured on the same index; has every role its own?"""
    parts = _parts(session)
    for part in parts:
        assert part.reading is not None
        if session.index is not None:
            key = session.asked_of(part.reading.asked.digest, _BY_A_ROLE)
            part.reading.captured = session.index.captured.get(key)
    return all(part.reading and part.reading.captured for part in parts)


def capture(session: Session) -> None:
    """Ask each distinct query of every role once, alone, where no earlier trial has."""
    for part in _parts(session):
        reading = part.reading
        assert reading is not None
        if reading.captured is not None:
            continue
        replies, mean_s = _ask_each(session, part, reading, session.sitting.shelf.root.parent)
        about = CapturedAbout(
            distinct=reading.compiled.single, mean_s=mean_s, made_by=session.made_by
        )
        reading.captured = Captured(replies, about)
        if session.index is not None and not session.attached:
            key = session.asked_of(reading.asked.digest, _BY_A_ROLE)
            session.index.captured[key] = reading.captured


def begin(run: Run) -> None:
    """Which replies of a drive are kept, once it is known how long one takes."""
    for part in _parts(run.session):
        reading, order = part.reading, part.side.order
        assert reading is not None
        assert order is not None
        mean_s = 0.001 if reading.captured is None else reading.captured.about.mean_s
        # Odd, so that it does not keep step with an even number of distinct queries.
        every = max(1, order.expected_requests(mean_s) // _SAMPLED_REPLIES) | 1
        part.side.manner = replace(part.side.manner, capture_every=every, spill=run.spill)


def kept(
    run: Run, part: Part, reading: Reading, trace: Trace, phase: str
) -> dict[str, pa.Table | Samples]:
    """The tables of what it recorded, by the names of their files. ``phase``: of its replies."""
    compiled, name = reading.compiled, part.run.name
    clean_up(_endpoint(run.session), compiled.requests, trace, part.side.manner.timeout_s)
    replies = decoded(_engine(run.session), trace, compiled, phase)
    if reading.captured is not None:
        replies = pa.concat_tables([reading.captured.replies, replies])
    samples: pa.Table | Samples = Samples(trace, compiled.request_to_query, part.run.number)
    if not len(trace):  # all was cut short before anything was due
        samples = SAMPLES.empty_table()
    return {name: samples, f"{name}.replies": replies}


def again(run: Run, phase: str) -> None:
    """Each distinct query of every role once more, now that all is over."""
    beside = run.session.beside
    assert beside is not None
    for part in _parts(run.session):
        name = f"{part.run.name}.replies"
        before = beside.tables.get(name)
        if part.reading is None or not isinstance(before, pa.Table):
            continue
        replies, _ = _ask_each(run.session, part, part.reading, run.spill)
        at = replies.schema.get_field_index("phase")
        named = replies.set_column(at, "phase", pa.array([phase] * replies.num_rows))
        beside.tables[name] = pa.concat_tables([before, named])


def _ask_each(
    session: Session, part: Part, reading: Reading, spill: Path
) -> tuple[pa.Table, float]:
    timeout_s = max(_ALONE_S, part.side.manner.timeout_s)
    alone = ask_each(_endpoint(session), _engine(session), reading.compiled, timeout_s, spill)
    return alone.replies, alone.mean_s


def _parts(session: Session) -> list[Part]:
    """The roles that read, and are not idle."""
    parts = [] if session.beside is None else session.beside.parts
    return [part for part in parts if part.reading is not None]


def _endpoint(session: Session) -> Endpoint:
    """Where they ask: with the marks of the engine's own answers."""
    running = session.there()
    return replace(running.endpoint, prelude=(), whole=running.service.whole)


def _engine(session: Session) -> Engine:
    return session.there().engine
