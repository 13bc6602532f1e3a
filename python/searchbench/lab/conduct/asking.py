"""What operations need of a system beside a drive: a prelude, a reader, statements sent once."""

from __future__ import annotations

from searchbench.engines.dialects import dialect_for
from searchbench.engines.engine import Request
from searchbench.errors import LabError
from searchbench.lab.conduct.session import Session
from searchbench.lab.drive.operations import Operations
from searchbench.lab.wire.words import words_of

_TIMEOUT_S = 3600.0


def ask_operations(session: Session) -> None:
    """From now on every connection begins with the prelude, and answers are rows."""
    workload = session.opened.workload
    if not isinstance(workload, Operations):
        return
    running = session.there()
    compiled = session.bytes()
    running.endpoint = workload.endpoint(running.endpoint, compiled, running.engine, session.levers)
    running.reader = workload.reader(running.engine, session.levers)


def once(session: Session) -> None:
    """Send what is sent once to a system whose documents are in; LabError with its words."""
    workload, running = session.opened.workload, session.there()
    assert isinstance(workload, Operations)
    wire = running.endpoint.wire
    for language, sent in workload.once_in(session.levers):
        dialect = dialect_for(running.engine, wire, language)
        reply = running.ask(Request((dialect.text(sent.text),)), _TIMEOUT_S)
        words = words_of(reply, wire)
        if not words and dialect.native is not None:
            words = next((w for w in dialect.native.rows_of(reply, (), ignore) if w), "")
        if words:
            first = " ".join(sent.text.split())[:80]
            raise LabError(f"{first!r}, which is sent @once, was refused: {words}", "ingest")


def ignore(_: bytes) -> None:
    """A row that is no part of an answer."""


def made_once(session: Session) -> str:
    """What an index depends on beside its documents: the statements that are sent once."""
    workload = session.opened.workload
    if not isinstance(workload, Operations):
        return ""
    return "; ".join(sent.text for sent in workload.sent_once(session.levers))
