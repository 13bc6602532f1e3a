"""One method of a study's operations on the wire: what it sends for a few rows, what comes back."""

from __future__ import annotations

from dataclasses import dataclass

from searchbench.errors import LabError
from searchbench.lab.conduct.openings import Openings
from searchbench.lab.conduct.studies import conducting
from searchbench.lab.conduct.watch import Silence
from searchbench.lab.drive.operations import Operations
from searchbench.lab.wire.exchange import Refused, ask
from searchbench.lab.wire.words import words_of
from searchbench.study import Study
from searchbench.study.plan import Plan, Treatment
from searchbench.study.planner import make_plan

_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Tapped:
    """``sent``: each exchange with when it is sent: on each connection, or before, within or after
    what is timed. ``received``: the reply to what is timed, whole; ``lines``: its rows.
    """

    system: str
    version: str
    method: str
    rows: int
    sent: tuple[tuple[str, bytes], ...]
    received: bytes
    lines: tuple[str, ...]
    error: str = ""


def tap_operation(study: Study, method: str, rows: int, system: str = "") -> Tapped:
    """Make the study's system ready, and send one operation of ``METHOD`` or ``OPERATION/METHOD``.

    ``system`` "": the first that the method is for. LabError where there is no such method.
    """
    plan = make_plan(study)
    treatment = _chosen(plan, method, system, rows)
    openings = Openings(study.base, study.seed, Silence())
    with (
        # As if it were to be driven: then the system is left running.
        conducting(openings, plan, None, lambda _: True) as conductor,
        conductor.made_ready(treatment) as session,
    ):
        workload = openings.opened(treatment, plan.seed).workload
        assert isinstance(workload, Operations)
        tried, running = workload.tried(rows), session.there()
        compiled = tried.compiled(running.engine, session.levers)
        request = compiled.requests[0]
        end = len(request.exchanges) - request.after
        sent = [("on each connection", exchange) for exchange in compiled.prelude]
        for number, exchange in enumerate(request.exchanges):
            when = "before" if number < request.before else "after" if number >= end else "timed"
            sent.append((when, exchange))
        endpoint = tried.endpoint(running.endpoint, compiled, running.engine, session.levers)
        reply, error = b"", ""
        lines: tuple[str, ...] = ()
        try:
            (reply,) = ask(endpoint, [request], timeout_s=_TIMEOUT_S)
        except Refused as refused:
            error = refused.words.strip(" ()") or refused.outcome
        else:
            hits = tried.reader(running.engine, session.levers).decode(reply)
            error = hits.error or ""
            lines = tuple(hit.id for hit in hits.hits)
        if error:
            error = words_of(reply, endpoint.wire) or error
        return Tapped(
            treatment.system, running.facts.version, method, tried.asked.rows, tuple(sent), reply,
            lines, error,
        )  # fmt: skip


def _chosen(plan: Plan, method: str, system: str, rows: int) -> Treatment:
    """Of the first system that the method is for, the treatment whose draws have the rows: with the
    fewest that are enough, else with the most.
    """
    operation, _, name = method.rpartition("/")
    known, fitting = [], list[Treatment]()
    for each in plan.treatments:
        own = each.operation
        if not own:
            continue
        known.append(f"{own['name']}/{own['method']}")
        if own["method"] == name and operation in ("", own["name"]) and system in ("", each.system):
            fitting.append(each)
    if fitting:
        first = [each for each in fitting if each.system == fitting[0].system]
        counts = {int(each.operation["rows"]): each for each in reversed(first)}
        return counts[min((n for n in counts if n >= rows), default=max(counts))]
    there = ", ".join(dict.fromkeys(known)) or "none: it has no [operations]"
    of = f" for {system}" if system else ""
    raise LabError(f"the study has no method {method!r}{of}; it has {there}", "compile")
