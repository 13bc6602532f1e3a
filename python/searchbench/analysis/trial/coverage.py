"""How much of the log was sent: a part in one piece need not be like the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Finding
from searchbench.analysis.trial.measured import Trace
from searchbench.analysis.words import percent
from searchbench.record import Trial
from searchbench.record.queries import Queries
from searchbench.record.trial import Load
from searchbench.study.plan import Treatment

MOST = 0.9  # of the log; what is left out of it then changes little
_IN_ONE_PIECE = "logged"
_LIKE_THE_REST = (
    "They are from all over the log, so they are like the rest of it. But the server was asked "
    "fewer different requests than in the log, so its caches may have held more of them."
)


@dataclass(frozen=True, slots=True)
class Sent:
    """What one drive sent, warm-up included: how many requests, and which distinct ones."""

    load: Load
    log: Queries
    requests: int
    distinct: NDArray[np.int64]
    unsupported: int


@dataclass(frozen=True, slots=True)
class Part:
    """What the drives of one configuration sent ``of`` the log: ``sent`` lines in one piece or
    several, or that many distinct requests. ``own``: the log is in an order of its own, in which
    times of day and users follow each other; not made by lot.
    """

    sent: int
    of: int
    lines: bool
    own: bool
    load: Load

    @property
    def share(self) -> float:
        """0..1."""
        return self.sent / self.of

    @property
    def said(self) -> str:
        """In words, as "2,200 of 300,000 lines (0.73 %)"."""
        what = "lines" if self.lines else "distinct requests"
        return f"{self.sent:,} of {self.of:,} {what} ({percent(self.share)})"


def sent_by(trial: Trial, trace: Trace) -> Sent | None:
    """What a drive sent of its log; None where it was drawn for a cache, or the log is unknown."""
    drawn = trial.cache is not None and trial.cache.wanted_hit is not None
    if drawn or not trial.queries.logged or not trial.queries.distinct or not trace.query.size:
        return None
    asked = np.flatnonzero(np.bincount(trace.query))
    n, unsupported = int(trace.query.size), len(trial.unsupported)
    return Sent(trial.load, trial.queries, n, asked, unsupported)


def least(drives: Mapping[str, Sequence[Sent]], planned: Mapping[str, Treatment]) -> Part | None:
    """The least that any configuration was sent of its log, where that is less than ``MOST``.

    ``drives``: by configuration; ``planned``: one treatment of each.
    """
    found = []
    for name, own in drives.items():
        by_log: dict[str, list[Sent]] = {}
        for one in own:
            by_log.setdefault(one.log.digest, []).append(one)
        found += [_part(several, _own_order(planned[name])) for several in by_log.values()]
    # A part in one piece says more against the answer than a smaller one from all over the log.
    few = [p for p in found if p.share < MOST]
    return min(few, key=lambda p: (not (p.lines and p.own), p.share), default=None)


def finding(part: Part | None) -> Iterator[Finding]:
    """That only a part of the log was sent: a warning where it was in one piece, else a note."""
    if part is None:
        return
    doubtful = part.lines and part.own
    yield Finding(
        "part of the log",
        "warning" if doubtful else "note",
        "",
        part.said,
        _meaning(part) if doubtful else _LIKE_THE_REST,
        _remedy(part) if doubtful else "Longer drives ask more of it.",
    )


def sentence(found: Sequence[Finding]) -> str:
    """The same in the answer, where what was sent may be unlike the rest; else empty."""
    said = (
        f"Of the log only {f.number} were sent. {f.meaning} {f.remedy}"
        for f in found
        if f.severity == "warning"
    )
    return " ".join(said)


def _meaning(part: Part) -> str:
    where = "its beginning" if part.load.from_line is None else "a stretch of it"
    return f"They are {where}: requests that are asked at other times may cost more or less."


def _remedy(part: Part) -> str:
    if part.load.kind == "replay":
        return "Replay all of it, or one that is of the times that matter."
    return "Let them come from all over the log (--order stretches), or drive longer."


def _own_order(planned: Treatment) -> bool:
    """Whether the log came with its order, and was neither sampled nor made by repetition."""
    if planned.requests:
        return bool(planned.requests.get("file"))
    spec = planned.queries
    read = spec.get("file") or spec.get("files")
    return bool(read) and spec.get("repetition") is None and spec.get("logged") is None


def _part(drives: Sequence[Sent], own: bool) -> Part:
    """What several drives sent together of one log."""
    first = drives[0]
    if first.load.order == _IN_ONE_PIECE:
        return Part(_lines(drives), first.log.logged or 1, True, own, first.load)
    asked = np.unique(np.concatenate([d.distinct for d in drives])).size
    # What the system cannot express is a finding by itself.
    of = max(asked, (first.log.distinct or 1) - min(d.unsupported for d in drives))
    return Part(asked, of, False, own, first.load)


def _lines(drives: Sequence[Sent]) -> int:
    """How many lines were sent by drives in one piece, or in a piece for each client."""
    logged = drives[0].log.logged or 1
    sent = np.zeros(logged, np.bool_)
    for d in drives:
        start = (d.load.from_line or 1) - 1
        pieces = (d.load.clients or 1) if d.load.kind == "closed" else 1
        length = min(-(-d.requests // pieces), -(-logged // pieces))
        for piece in range(pieces):
            begin = (start + piece * logged // pieces) % logged
            sent[begin : begin + length] = True
            sent[: max(0, begin + length - logged)] = True
    return int(np.count_nonzero(sent))
