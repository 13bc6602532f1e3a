"""The phases of a trial, and in which order which trial has them.

    started             compile → prepare → deploy → ingest → stop → deploy → identify → capture
                        → stop → deploy → identify | drive → totals → answers | stop
    keeps no index      compile → prepare → deploy → ingest → identify → capture | drive → ..
    attached            prepare → deploy → ingest → compile → identify → capture | drive → ..
    verbatim requests   compile → deploy → capture | drive → totals → answers
    captures afterwards ..  deploy → identify | drive → totals → capture → answers | stop

What is before the first bar opens a session, and is done once for all trials driven on it. The
process that is measured has always just opened a finished index: it is neither the one that built
it nor the one that was asked for the captures, so that the first treatment on an index has nothing
over the others. (An engine that keeps no index is ingested into before it is driven.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from searchbench.lab.conduct import measuring, opening
from searchbench.lab.conduct.session import Run, Session
from searchbench.lab.conduct.shelf import Shelf
from searchbench.lab.drive.workload import VerbatimRequests
from searchbench.places import Place

Phase = tuple[str, Callable[[], object]]


def preparing(session: Session, shelf: Shelf) -> list[Phase]:
    """What comes before anything is deployed, where it is needed."""
    found: list[Phase] = [("host", partial(opening.fit, session))]
    if isinstance(session.opened.workload, VerbatimRequests):
        return [*found, ("compile", partial(opening.encode, session))]
    if not session.attached:
        found.append(("compile", partial(opening.compile_queries, session)))
    if session.rules.ingest != "as-found" or not session.attached:
        found.append(("prepare", partial(opening.prepare, session, shelf)))
    return found


def opening_of(session: Session, shelf: Shelf, place: Place, *, timed: bool) -> list[Phase]:
    """From a prepared workload to a system that can be driven."""

    def do(name: str, what: Callable[..., object], *more: object) -> Phase:
        return name, partial(what, session, *more)

    deploy, stop = do("deploy", opening.deploy, place), do("stop", opening.stop)
    identify = do("identify", opening.identify, place)
    capture = [] if captures_after(session) and timed else [do("capture", opening.capture, shelf)]
    if isinstance(session.opened.workload, VerbatimRequests):
        find, know = do("deploy", opening.find), do("identify", opening.know_again)
        return [find, know] if not capture else [find, know, do("capture", opening.capture_some)]
    if session.attached:
        fill = [do("ingest", opening.fill)] if session.batches is not None else []
        attach, compiling = do("deploy", opening.attach), do("compile", opening.compile_queries)
        return [attach, *fill, compiling, identify, *capture]
    engine, index = session.opened.engine, session.index
    assert engine is not None
    assert index is not None
    if not engine.can.keeps_index:
        return [deploy, do("ingest", opening.ingest_for_now), identify, *capture]
    found: list[Phase] = []
    if not index.finished:
        if opening.made_offline(session):
            found += [do("ingest", opening.index_by_program), deploy]
        else:
            found += [deploy, do("ingest", opening.ingest_to_keep)]
        found += [do("ingest", opening.count_documents), stop, do("ingest", opening.finish)]
    found.append(do("ingest", opening.ingested))
    if capture and not opening.take_captured(session, shelf):
        found += [deploy, identify, *capture, stop]
    return [*found, deploy, identify] if timed else found


def measuring_of(run: Run, place: Place, hooks: measuring.Hooks) -> list[Phase]:
    """One drive and what is to be known of it."""
    found: list[Phase] = [
        ("drive", partial(measuring.drive_it, run, place, hooks)),
        ("totals", partial(measuring.totals_of, run)),
    ]
    if captures_after(run.session):
        verbatim = isinstance(run.opened.workload, VerbatimRequests)
        how = opening.capture_some if verbatim else partial(opening.capture, shelf=None)
        found.append(("capture", partial(how, run.session)))
    return [*found, ("totals", partial(measuring.answers, run))]


def captures_after(session: Session) -> bool:
    """Are the distinct queries asked alone after the drive, so that it meets first asks?"""
    return session.rules.agreement.capture == "after"


def go(session: Session, phases: Sequence[Phase]) -> None:
    """Do them in their order, each timed; what one raises ends them."""
    for name, phase in phases:
        with session.phases(name):
            phase()
