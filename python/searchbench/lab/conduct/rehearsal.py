"""Before anything is timed: is every statement of every method understood by its system?

Each system is made ready once, and each method is asked for two rows. What is refused then is a
mistake in its text, and ends the run with the server's words and the place. The index that was made
for it is measured afterwards.
"""

from __future__ import annotations

from dataclasses import replace

from searchbench.engines.engine import Request
from searchbench.errors import Complaint, StudyError
from searchbench.lab.conduct.asking import ignore
from searchbench.lab.conduct.conductor import Conductor
from searchbench.lab.conduct.session import Session
from searchbench.lab.drive.operations import Operations, RowReader
from searchbench.lab.wire.exchange import Endpoint, Refused, ask
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
    endpoint = tried.endpoint(running.endpoint, compiled, engine, levers)
    reader = tried.reader(engine, levers)
    who = session.opened.treatment.system
    if reader.dialect.native is not None:
        return _over_http(session, tried, reader, compiled.requests[0], endpoint, study)
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


def _over_http(
    session: Session,
    tried: Operations,
    reader: RowReader,
    request: Request,
    endpoint: Endpoint,
    study: str,
) -> list[Complaint]:
    """Each exchange by itself, as nothing belongs to a connection; then what rows came."""
    who, native = session.opened.treatment.system, reader.dialect.native
    assert native is not None
    sent = list(tried.sent(reader.dialect, session.levers))
    timed = []
    for each, exchange in zip(sent, request.exchanges, strict=True):
        try:
            (reply,) = ask(endpoint, [Request((exchange,))], timeout_s=_TIMEOUT_S)
        except Refused as refused:
            said = refused.words.strip(" ()") or refused.outcome
            return [_complaint(study, tried, each.line, f"{who} refuses it: {said}")]
        if words := next((w for w in native.rows_of(reply, (), ignore) if w), ""):
            words = words_of(reply, endpoint.wire) or words
            return [_complaint(study, tried, each.line, f"{who} refuses it: {words}")]
        if each.when == "timed":
            timed.append((each.line, reply))
    for at, (line, reply) in enumerate(timed):
        one = replace(reader, ignored=reader.ignored[at : at + 1], lines=[line],
                      places=reader.places[at : at + 1])  # fmt: skip
        try:
            error = one.decode(reply).error
        except ValueError as wrong:
            error = str(wrong)
        if error:
            return [_complaint(study, tried, line, f"{who} answers, and {error}")]
    return []


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
