"""Did two sides answer the same? If not, a gain may be that of other answers.

One rule for the subjects of a sweep or of a search, and for two records. Replies that were read are
compared by what they say, those that nobody read by their sizes: alone, and under load.

- Of which nothing agrees, or of which one side alone could be read, is not comparable.
- Where less than ``MOST`` is answered alike, whoever is in front only leads.
- A ratio over a mix is over what both answer alike. One over all requests stands only if what is
  answered otherwise could not have made it (``otherwise``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.agreement import agreement
from searchbench.analysis.agreement.agreement import Answers, Pair
from searchbench.analysis.agreement.answers import same_question
from searchbench.analysis.compare import otherwise, pairs, standing
from searchbench.analysis.compare.standing import MOST
from searchbench.analysis.compare.unread import Unread, of_sizes, unread
from searchbench.analysis.stats.distributions import share_at_least

Ints = NDArray[np.int64]
Names = tuple[str, str]
SIDES: Names = "the first", "the second"
NOT_READ = "the replies were not read"
NO_ANSWERS = "it is not known whether they answer the same, as their answers are not on record"
OTHER_REQUESTS = "they were not asked the same requests"


def _none() -> Ints:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class SameWork:
    """What is known of whether two sides answer the same; by default nothing.

    ``pair``: how their replies agree, if those of both were read. ``alone``, ``loaded``: the sizes
    of replies that nobody read, asked alone and under one load. ``blind``: which of the two (0, 1)
    has no reply that could be read, while the other has. ``changed``: that one's replies under load
    have other sizes than alone, a clause. ``other``: the numbers of the requests that are answered
    otherwise, or well by one side only. ``unknown``: why none of this could be found, a clause.
    ``beside``: of one class, the same in all others.
    """

    pair: Pair | None = None
    alone: Unread | None = None
    loaded: Unread | None = None
    blind: int | None = None
    changed: str = ""
    other: Ints = field(default_factory=_none)
    unknown: str = ""
    beside: Ints = field(default_factory=_none)

    @property
    def not_read(self) -> bool:
        """Whether nobody read the replies of either side."""
        return self.alone is not None

    @property
    def same(self) -> Ints | None:
        """The numbers of the requests that count in a mix; None: all, as nothing is known."""
        if self.pair is not None:
            return self.pair.agreeing
        sized = [one for one in (self.alone, self.loaded) if one is not None]
        like = {query for one in sized for query in one.alike}
        if not like and not self.other.size:
            return None
        return np.setdiff1d(np.array(sorted(like), np.int64), self.other)

    @property
    def known(self) -> int:
        """Of how many requests it is known whether both answer alike."""
        same = self.same
        return 0 if same is None else int(same.size + self.other.size)

    def only(self, members: Ints) -> SameWork:
        """The same of these requests alone. What is known of first hits is of all."""
        pair, other = self.pair, np.intersect1d(self.other, members)
        if pair is not None:
            agreeing = np.intersect1d(pair.agreeing, members)
            n = int(agreeing.size)
            counts = replace(
                pair.agreement, queries=n + int(other.size), agreeing=n,
                differing=int(other.size), empty=0, causes={}, dropped_a=0, dropped_b=0,
                uncompared=max(0, int(members.size) - n - int(other.size))
                if pair.agreement.uncompared else 0,
            )  # fmt: skip
            pair = Pair(counts, agreeing)
        sized = [one and one.only(members) for one in (self.alone, self.loaded)]
        beside = np.union1d(self.beside, np.setdiff1d(self.other, members))
        return replace(self, pair=pair, alone=sized[0], loaded=sized[1], other=other, beside=beside)

    def apart(self, names: Names = SIDES) -> str:
        """Why the two are not comparable, a clause; empty: they are, or nothing is known."""
        if self.blind is not None:
            blind, other = names[self.blind], names[1 - self.blind]
            return (
                f"no reply of {blind} could be read, and those of {other} could, so {blind} "
                "answers otherwise or not at all"
            )
        if self.pair is None:
            return ""
        found = self.pair.agreement
        if found.queries and not found.agreeing:
            return f"on none of {found.queries} requests do both return the same total"
        if not found.agreeing:
            return "there is no request that both answered when asked alone"
        return pairs.all_empty(self.pair)

    def doubt(self, names: Names = SIDES) -> str:
        """Why whoever is in front only leads, a clause; empty: most is answered alike. Of requests
        that find nothing on either side nothing is learnt.
        """
        if self.unknown:
            return self.unknown
        if self.blind is not None:
            return self.apart(names)
        for one, when in ((self.alone, ""), (self.loaded, "under load ")):
            if one is not None and one.other > (1 - MOST) * one.requests:
                return f"{when}{one.said(names)}, so they may be other answers"
        if self.changed:
            return self.changed
        if self.pair is None or self.pair.agreement.require == "none":
            return ""
        found = self.pair.agreement
        if found.queries and found.empty == found.queries:
            return "neither finds anything on any query, so that no answers are compared"
        of = found.queries + found.causes.get(agreement.ERROR, 0) - found.empty
        of += found.dropped_a + found.dropped_b
        agree = found.agreeing - found.empty
        if agree < MOST * of:
            which = " that find something" if found.empty else ""
            return f"they answer only {agree} of {of} requests{which} alike"
        return self.few or standing.unlike(found)

    @property
    def few(self) -> str:
        """That too few requests were compared to know that most of all are answered alike, a
        clause; empty: enough were, or it is known that they are not. Those that are asked alone are
        spread evenly over the list, so they are taken for a sample of it: of the others, as many
        count as alike as the lower limit (95 %) of the share that was seen.
        """
        if self.pair is None or not (more := self.pair.agreement.uncompared):
            return ""
        found = self.pair.agreement
        agree, of = found.agreeing - found.empty, found.queries - found.empty
        if found.require == "none" or of <= 0 or agree < MOST * of:
            return ""
        if agree + share_at_least(0.05, agree, of) * more >= MOST * (of + more):
            return ""
        aside = " that find something" if found.empty else ""
        return (
            f"only {of} of {of + more} requests{aside} were compared ({agree} are answered alike), "
            f"too few to show that {100 * MOST:g} % of all are"
        )

    def in_part(self, names: Names = SIDES) -> str:
        """That not all requests were compared, a sentence; empty: all were, or nothing is known."""
        if self.pair is None or not (more := self.pair.agreement.uncompared):
            return ""
        n = self.pair.agreement.queries
        return (
            f"The answers of {names[0]} and {names[1]} were compared on {n:,} of {n + more:,} "
            "distinct requests: those that were asked alone, and those for which replies under "
            "load were kept from both. It is not known whether they answer the others alike. To "
            "ask more of them alone, raise --captures."
        )

    @property
    def made(self) -> str:
        """Why a ratio is not resolved that is not beyond what ``other`` could make, a clause."""
        what = "whose replies have other sizes" if self.not_read else "that they answer otherwise"
        return (
            f"the {self.other.size} of {self.known} requests {what} could make the whole difference"
        )

    @property
    def shared(self) -> str:
        """The same of a ratio over the rest alone."""
        if self.not_read:
            return self.made
        return otherwise.said(int(self.other.size), self.known, "requests")

    @property
    def elsewhere(self) -> Ints:
        """All that a server was asked and that both do not answer alike, whatever its class."""
        return np.union1d(self.other, self.beside)


def same_work(a: Answers | None, b: Answers | None, agree: Callable[[], Pair | None]) -> SameWork:
    """What is known of two sides by what they answered when asked alone. ``agree``: as their
    replies agree, asked only if those of both could be read. None: none is on record.
    """
    if a is None or b is None:
        return SameWork(unknown=NO_ANSWERS)
    if not same_question(a.about, b.about):
        return SameWork(unknown=OTHER_REQUESTS)
    if a.readable and b.readable:
        pair = agree()
        if pair is None:
            return SameWork(unknown=OTHER_REQUESTS)
        return SameWork(pair, other=_otherwise(a, b, pair))
    if a.readable or b.readable:
        return SameWork(blind=0 if b.readable else 1)
    return _sized(SameWork(alone=unread(a.about, b.about)))


def under_load(found: SameWork, a: Ints, b: Ints, changed: str = "") -> SameWork:
    """The same at one load, if nobody read the replies. ``a``, ``b``: by request, the mean size of
    a reply to it; 0: not known. ``changed``: as of ``SameWork``.
    """
    if not found.not_read:
        return found
    n = min(a.size, b.size)
    both = np.flatnonzero((a[:n] > 0) & (b[:n] > 0)).tolist()
    sizes = of_sizes((query, int(a[query]), int(b[query])) for query in both)
    return _sized(replace(found, loaded=sizes if sizes.requests else None, changed=changed))


def _sized(found: SameWork) -> SameWork:
    """With the requests whose replies have other sizes."""
    each: Iterable[Unread] = (one for one in (found.alone, found.loaded) if one is not None)
    differ = {query for one in each for query in one.differing}
    return replace(found, other=np.array(sorted(differ), np.int64))


def _otherwise(a: Answers, b: Answers, pair: Pair) -> Ints:
    """What both were asked and do not answer alike, or what one answered well alone, as the other
    failed or cannot be asked it: who is spared it has its server free for the rest.
    """
    asked, at_a, at_b = np.intersect1d(a.query, b.query, return_indices=True)
    well: Ints = asked[a.ok[at_a] | b.ok[at_b]]
    spared = np.union1d(_spared(a, b), _spared(b, a))
    return np.setdiff1d(np.union1d(well, spared), pair.agreeing)


def _spared(a: Answers, b: Answers) -> Ints:
    """What ``a`` answered well and ``b`` cannot be asked."""
    barred = np.fromiter(b.unsupported, np.int64, len(b.unsupported))
    found: Ints = np.intersect1d(a.query[a.ok], barred)
    return found
