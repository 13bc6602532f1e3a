"""Before anything is timed: is every statement of every method understood by its system?

Each system is made ready once, and each method is asked for two rows. What is refused then is a
mistake in its text, and ends the run with the server's words and the place. The index that was made
for it is measured afterwards.
"""

from __future__ import annotations

from dataclasses import replace

from searchbench.errors import Complaint, StudyError
from searchbench.lab.conduct.conductor import Conductor
from searchbench.lab.conduct.session import Session
from searchbench.lab.drive.operations import Operations, RowReader
from searchbench.lab.wire.exchange import Refused, ask
from searchbench.lab.wire.words import words_of
from searchbench.study.plan import Plan, Treatment
from searchbench.workload.operations.model import fixed

_ROWS = 2
_TIMEOUT_S = 60.0


def rehearse(conductor: Conductor, plan: Plan, file: str) -> None:
    """StudyError with each statement that a system refuses; nothing without operations."""
    systems: dict[str, list[Treatment]] = {}
    for treatment in plan.treatments:
        if treatment.operation:
            key = repr((treatment.system, sorted(treatment.parameters.items()), treatment.corpus))
            systems.setdefault(key, []).append(treatment)
    complaints: list[Complaint] = []
    for treatments in systems.values():
        methods: dict[tuple[str, str], Treatment] = {}
        for each in treatments:
            methods.setdefault((each.operation["name"], each.operation["method"]), each)
        with conductor.made_ready(treatments[0]) as session:
            for each in methods.values():
                workload = conductor.openings.opened(each, plan.seed).workload
                assert isinstance(workload, Operations)
                complaints += _refused(session, workload.tried(_ROWS), file)
    if complaints:
        raise StudyError(list(dict.fromkeys(complaints)))


def _refused(session: Session, tried: Operations, study: str) -> list[Complaint]:
    running = session.there()
    engine, levers = running.engine, session.levers
    compiled = tried.compiled(engine, levers)
    endpoint = replace(running.endpoint, prelude=compiled.prelude)
    reader = tried.reader(engine, levers)
    who = session.opened.treatment.system
    try:
        (reply,) = ask(endpoint, compiled.requests[:1], timeout_s=_TIMEOUT_S)
    except Refused as refused:
        said = refused.words.strip(" ()") or f"{refused.outcome}"
        line = _line_of_prelude(tried, session, said)
        return [_complaint(study, tried, line, f"{who} refuses it: {said}")]
    words = words_of(reply, endpoint.wire)
    error = words or reader.decode(reply).error
    if not error:
        return []
    line = _line_of(tried, reader, reply, session)
    return [_complaint(study, tried, line, f"{who} refuses it: {error}")]


def _line_of(tried: Operations, reader: RowReader, reply: bytes, session: Session) -> int:
    """Where the statement begins that was refused."""
    line = reader.failed_at(reply)
    first = next(iter(tried.sent(reader.dialect, session.levers)))
    # What was refused in its set-up has no other reply.
    return first.line if line is None or (first.when == "before" and _alone(reply)) else line


def _alone(reply: bytes) -> bool:
    return reply[4:5] == b"\xff"


def _line_of_prelude(tried: Operations, session: Session, said: str) -> int:
    """Of what opens a connection, by the number that the core says; else the first statement."""
    number = next((int(word) for word in said.split() if word.isdigit()), 1)
    lines = [sent.line for sent in fixed(tried.statements, "connection", session.levers)]
    prepared = dict.fromkeys(s.line for s in tried.statements if s.prepared)
    lines += list(prepared)
    return lines[min(number, len(lines)) - 1] if lines else tried.statements[0].line


def _complaint(study: str, tried: Operations, line: int, sentence: str) -> Complaint:
    file, before = tried.where
    of = f"{tried.asked.name}, method {tried.method}, line {line}: "
    if file:
        return Complaint(file, line, 1, of + sentence)
    at = before + line if before else 0
    return Complaint(study, at, 1, of + sentence)
