"""Two records whose replies nobody read: what their sizes say, and what a gain then is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from searchbench.analysis.compare.standing import MOST
from searchbench.analysis.judgement import Agreement, Finding
from searchbench.analysis.words import listed, plural
from searchbench.record import Trial

KIND = "answers not compared"  # of findings
OTHER = 1.1  # times as large: a reply holds times, dates and versions, which move its size by less
LOOK = "Look at a reply of each, or name the engine if it is one that is known (--engine)."


@dataclass(frozen=True, slots=True)
class Unread:
    """Of how many requests both records have the size of a reply to it alone; of how many of these
    it is another, and then typically how many bytes, headers included.
    """

    requests: int
    other: int
    bytes_a: int = 0
    bytes_b: int = 0

    @property
    def said(self) -> str:
        """What the sizes say, a clause; empty: there are none, or they are the same."""
        if not self.other:
            return ""
        which = f"{self.other} of {self.requests}"
        return (
            f"the replies to {which} requests have other sizes (typically {self.bytes_a:,} bytes "
            f"in the first and {self.bytes_b:,} in the second)"
        )


def unread(a: Trial, b: Trial) -> Unread:
    """What is known of the replies of two trials that were asked the same."""
    x, y = (t.captured.sizes if t.captured is not None else {} for t in (a, b))
    both = [(x[query], y[query]) for query in x if query in y]
    other = [pair for pair in both if max(pair) > OTHER * min(pair)]
    typical = [int(median(side)) for side in zip(*other, strict=True)]
    return Unread(len(both), len(other), *typical)


def gain_in_doubt(agreed: Agreement | None, unread: Unread | None) -> str:
    """Why a gain of the second may be that of other answers, a clause; empty: nothing says so.

    A loss stands: what became slower did so, whatever it says.
    """
    if unread is not None and unread.other > (1 - MOST) * unread.requests:
        return f"{unread.said}, so they may be other answers"
    if agreed is None or not agreed.queries:
        return ""
    if agreed.empty == agreed.queries:
        return "neither finds anything on any query, so that no answers are compared"
    if agreed.differing > (1 - MOST) * agreed.queries:
        return (
            f"{agreed.differing} of {agreed.queries} queries are answered differently, so other "
            "answers may explain it"
        )
    return ""


def sentence(several: Mapping[str, Unread]) -> str:
    """That nobody read the replies, and what their sizes say; empty: all were read."""
    if not several:
        return ""
    worst = max(several.values(), key=lambda one: one.other / max(1, one.requests))
    of = f" of {listed(list(several))}" if len(several) > 1 else ""
    told = f"The replies{of} were not read, so whether both answer the same is not known"
    if worst.said:
        return f"{told}; {worst.said}: they may be other answers. {LOOK}"
    if worst.requests:
        many = plural(worst.requests, "request", "requests")
        told += f"; those to {worst.requests} {many} are of about the same size in both"
    return f"{told}."


def findings(several: Mapping[str, Unread]) -> Iterator[Finding]:
    """A finding for each subject."""
    for label, one in several.items():
        yield Finding(
            KIND,
            "warning" if one.other else "note",
            "",
            f"{label}: {one.said or 'no reply was read'}",
            "The replies are not read, as no engine answers that is known here, or none of them "
            "could be read. So whether both records answer the same is not known.",
            LOOK,
        )
