"""Replies that nobody read: what their sizes say of two sides, and the words of two records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median

from searchbench.analysis.judgement import Finding
from searchbench.analysis.words import listed, plural
from searchbench.record import Trial

KIND = "answers not compared"  # of findings
OTHER = 1.1  # times as large: a reply holds times, dates and versions, which move its size by less
LOOK = "Look at a reply of each, or name the engine if it is one that is known (--engine)."


@dataclass(frozen=True, slots=True)
class Unread:
    """Of how many requests the size of a reply is known on both sides; of how many of these it is
    another, and then typically how many bytes, headers included. ``alike``, ``differing``: their
    numbers.
    """

    requests: int
    other: int
    bytes_a: int = 0
    bytes_b: int = 0
    alike: frozenset[int] = frozenset()
    differing: frozenset[int] = frozenset()

    def only(self, members: Iterable[int]) -> Unread:
        """The same of these requests alone; the bytes are typical of all."""
        own = frozenset(int(query) for query in members)
        alike, differing = self.alike & own, self.differing & own
        n = len(alike) + len(differing)
        return replace(self, requests=n, other=len(differing), alike=alike, differing=differing)

    def said(self, names: tuple[str, str] = ("the first", "the second")) -> str:
        """What the sizes say, a clause; empty: there are none, or they are the same."""
        if not self.other:
            return ""
        which = f"{self.other} of {self.requests}"
        return (
            f"the replies to {which} requests have other sizes (typically {self.bytes_a:,} bytes "
            f"in {names[0]} and {self.bytes_b:,} in {names[1]})"
        )


def unread(a: Trial, b: Trial) -> Unread:
    """What is known of the replies of two trials that were asked the same, each alone."""
    x, y = (t.captured.sizes if t.captured is not None else {} for t in (a, b))
    return of_sizes((int(query), x[query], y[query]) for query in x if query in y)


def of_sizes(found: Iterable[tuple[int, int, int]]) -> Unread:
    """Of requests: the number of each, and the bytes of the reply to it on either side."""
    alike, differing, other = set(), set(), []
    for query, *sizes in found:
        if max(sizes) > OTHER * min(sizes):
            differing.add(query)
            other.append(sizes)
        else:
            alike.add(query)
    n, a, b = len(alike) + len(other), 0, 0
    if other:
        a, b = (int(median(side)) for side in zip(*other, strict=True))
    return Unread(n, len(other), a, b, frozenset(alike), frozenset(differing))


def sentence(several: Mapping[str, Unread]) -> str:
    """That nobody read the replies, and what their sizes say; empty: all were read."""
    if not several:
        return ""
    worst = max(several.values(), key=lambda one: one.other / max(1, one.requests))
    of = f" of {listed(list(several))}" if len(several) > 1 else ""
    told = f"The replies{of} were not read, so whether both answer the same is not known"
    if worst.other:
        return f"{told}; {worst.said()}: they may be other answers. {LOOK}"
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
            f"{label}: {one.said() or 'no reply was read'}",
            "The replies were not read: either the engine is not known here, or none of them could "
            "be read. So whether both records answer the same is not known.",
            LOOK,
        )
