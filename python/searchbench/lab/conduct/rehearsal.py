"""Before anything is timed: is every statement understood by its system, and do methods agree?

Each system is made ready once, and each method is asked for two rows. What is refused then is a
mistake in its text, and ends the run with the server's words and the place. So do methods that
return other rows than the others, with the rows that differ: they would be compared with nothing,
hours later. What only more rows show is found in the trials. The index that was made for it is
measured afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from searchbench.engines.answer import Hits
from searchbench.engines.engine import Request
from searchbench.errors import Complaint, StudyError
from searchbench.lab.conduct.asking import ignore
from searchbench.lab.conduct.conductor import Conductor
from searchbench.lab.conduct.ended import ends_of, has_ended
from searchbench.lab.conduct.session import Session
from searchbench.lab.drive.drive import Broken
from searchbench.lab.drive.left_behind import remove
from searchbench.lab.drive.operations import ROWS, Operations, RowReader
from searchbench.lab.drive.portable import QueryReader
from searchbench.lab.wire.exchange import Endpoint, Refused, ask
from searchbench.lab.wire.words import words_of
from searchbench.study.plan import Plan, Treatment
from searchbench.workload.operations.differing import first_differing, told
from searchbench.workload.operations.model import fixed

_ROWS = 2
_TIMEOUT_S = 60.0
_END_SEEN_S = 0.5  # a connection is lost before its process is seen to have ended


_ROW = 160  # characters of a row that differs


@dataclass(frozen=True)
class _Answer:
    """What a method returned when it was tried."""

    tried: Operations
    system: str
    hits: Hits

    @property
    def digest(self) -> str:
        return str(self.hits.facets[ROWS][0][0])

    @property
    def count(self) -> int:
        return int(self.hits.facets[ROWS][0][1])


def rehearse(conductor: Conductor, plan: Plan, file: str) -> None:
    """StudyError with each statement that a system refuses, and with each method that does not
    return what the others do; nothing without operations.
    """
    systems: dict[str, list[Treatment]] = {}
    for treatment in plan.treatments:
        if treatment.operation:
            key = repr((treatment.system, sorted(treatment.parameters.items()), treatment.corpus))
            systems.setdefault(key, []).append(treatment)
    complaints: list[Complaint] = []
    asked_the_same: dict[str, list[_Answer]] = {}
    for treatments in systems.values():
        methods: dict[tuple[str, str], Treatment] = {}
        for each in sorted(treatments, key=_many_rows):
            methods.setdefault((each.operation["name"], each.operation["method"]), each)
        with conductor.made_ready(treatments[0]) as session:
            for each in methods.values():
                workload = conductor.openings.opened(each, plan.seed).workload
                assert isinstance(workload, Operations)
                tried = workload.tried(_ROWS)
                found = _tried(session, tried, file)
                if isinstance(found, Complaint):
                    how = _how_it_ended(session)
                    complaints.append(found if how is None else _of_end(file, tried, each, how))
                    if how is not None:  # nobody is there to try the others
                        break
                    continue
                asked = repr((tried.asked.name, tried.digest, each.corpus))
                answer = _Answer(tried, each.system, found)
                asked_the_same.setdefault(asked, []).append(answer)
    for answers in asked_the_same.values():
        complaints += _disagreeing(answers, file)
    if complaints:
        raise StudyError(list(dict.fromkeys(complaints)))


def _how_it_ended(session: Session) -> str | None:
    """How the server ended and what its log says last; None where it lives."""
    running = session.there()
    if not has_ended(running, _END_SEEN_S, lost=True):
        return None
    end = ends_of(running, "capture", Broken(lost=True, under_way=1), session.why())[0]
    return "; ".join(filter(None, [end.how, end.last_words]))


def _of_end(study: str, tried: Operations, treatment: Treatment, how: str) -> Complaint:
    sentence = f"{treatment.system} ended when it was tried with {_ROWS} rows{how and f': {how}'}"
    return _complaint(study, tried, tried.statements[0].line, sentence)


def _many_rows(treatment: Treatment) -> tuple[bool, int]:
    """Sorts those first that ask for the fewest rows, but for enough of them."""
    rows = int(treatment.operation["rows"])
    return rows < _ROWS, rows


def _disagreeing(answers: Sequence[_Answer], study: str) -> list[Complaint]:
    """Of methods that were asked the same, those that return something else than the most do."""
    kinds: dict[str, list[_Answer]] = {}
    for each in answers:
        kinds.setdefault(each.digest, []).append(each)
    most = max(kinds.values(), key=len, default=[])
    found = []
    several = len({each.system for each in answers}) > 1
    for others in kinds.values():
        for each in others if others is not most else ():
            a, b = (f"{x.tried.method}{f' of {x.system}' * several}" for x in (most[0], each))
            file, line = _place(study, most[0].tried, most[0].tried.statements[0].line)
            where = f" ({file}:{line})" if line else ""
            counts = (most[0].count, each.count)
            rows = [[h.id for h in x.hits.hits] for x in (most[0], each)]
            ordered = each.tried.asked.answer == "order"
            first = first_differing(rows[0], rows[1], counts, ordered=ordered)
            shown = told(a, b, first, _ROW)
            sentence = (
                f"{each.system} returns other rows than method {a}{where} for the same question: "
                f"{counts[0]} by {a}, {counts[1]} by {b}{f'; {shown}' if shown else ''}. Methods "
                "that do not return the same are not compared: correct one of them"
            )
            if each.tried.asked.answer != "count":
                sentence += (
                    ', or say answer = "count" if the question does not decide which rows come'
                )
            line = each.tried.statements[0].line
            found.append(_complaint(study, each.tried, line, sentence))
    return found


def _tried(session: Session, tried: Operations, study: str) -> Hits | Complaint:
    running = session.there()
    engine, levers = running.engine, session.levers
    compiled = tried.compiled(engine, levers)
    endpoint = tried.endpoint(running.endpoint, compiled, engine, levers)
    reader = tried.reader(engine, levers)
    who = session.opened.treatment.system
    if isinstance(reader, QueryReader):
        return _of_query(tried, reader, compiled.requests[0], endpoint, (who, study))
    if reader.dialect.native is not None:
        return _over_http(session, tried, reader, compiled.requests[0], endpoint, study)
    try:
        (reply,) = ask(endpoint, compiled.requests[:1], timeout_s=_TIMEOUT_S)
    except Refused as refused:
        remove(endpoint, compiled.requests[:1], _TIMEOUT_S)
        said = refused.words.strip(" ()") or f"{refused.outcome}"
        line = _line_of_prelude(tried, session, said)
        return _complaint(study, tried, line, f"{who} refuses it: {said}")
    hits = reader.decode(reply)
    error = words_of(reply, endpoint.wire) or hits.error
    if not error:
        return hits
    line = _line_of(tried, reader, reply, session)
    return _complaint(study, tried, line, f"{who} refuses it: {error}")


def _of_query(
    tried: Operations,
    reader: QueryReader,
    request: Request,
    endpoint: Endpoint,
    named: tuple[str, str],
) -> Hits | Complaint:
    """``named``: the system, and the study's file."""
    (who, study), line = named, tried.statements[0].line
    try:
        (reply,) = ask(endpoint, [request], timeout_s=_TIMEOUT_S)
        hits = reader.decode(reply)
    except Refused as refused:
        said = refused.words.strip(" ()") or f"{refused.outcome}"
        return _complaint(study, tried, line, f"{who} refuses it: {said}")
    except ValueError as wrong:
        return _complaint(study, tried, line, f"{who} answers, and {wrong}")
    if hits.error is not None:
        return _complaint(study, tried, line, f"{who} refuses it: {hits.error}")
    return hits


def _over_http(
    session: Session,
    tried: Operations,
    reader: RowReader,
    request: Request,
    endpoint: Endpoint,
    study: str,
) -> Hits | Complaint:
    """Each exchange by itself, as nothing belongs to a connection; then what rows came.

    After one that is refused only the clean-up is sent, as in a drive.
    """
    who, native = session.opened.treatment.system, reader.dialect.native
    assert native is not None
    sent = list(tried.sent(reader.dialect, session.levers))
    timed, first = [], None
    for each, exchange in zip(sent, request.exchanges, strict=True):
        if first is not None and each.when != "after":
            continue
        said = ""
        try:
            (reply,) = ask(endpoint, [Request((exchange,))], timeout_s=_TIMEOUT_S)
        except Refused as refused:
            said = refused.words.strip(" ()") or refused.outcome
        else:
            if words := next((w for w in native.rows_of(reply, (), ignore) if w), ""):
                said = words_of(reply, endpoint.wire) or words
            elif each.when == "timed":
                timed.append((each.line, reply))
        if said and first is None:
            first = _complaint(study, tried, each.line, f"{who} refuses it: {said}")
    if first is not None:
        return first
    for at, (line, reply) in enumerate(timed):
        one = replace(reader, ignored=reader.ignored[at : at + 1], lines=[line],
                      places=reader.places[at : at + 1])  # fmt: skip
        try:
            error = one.decode(reply).error
        except ValueError as wrong:
            error = str(wrong)
        if error:
            return _complaint(study, tried, line, f"{who} answers, and {error}")
    return reader.decode(b"".join(reply for _, reply in timed))


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
    of = f"{tried.asked.name}, method {tried.method}, line {line}: "
    return Complaint(*_place(study, tried, line), 1, of + sentence)


def _place(study: str, tried: Operations, line: int) -> tuple[str, int]:
    """The file and the line where a line of a method's text stands."""
    file, before = tried.where
    if file:
        return file, line
    return study, before + line if before else 0
