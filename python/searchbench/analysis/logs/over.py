"""What is over-represented in a band of times: classes, indexes and numbers of words.

Named is what makes up a twentieth of a band or more, is in it at least half as often again as in
the whole log, and is not there by chance. The last is a binomial test, at one in a hundred for
everything that is large enough to be named, in all bands together (Bonferroni).

Not lines are counted but effective numbers, because a query that is asked again mostly takes as
long as before: a thousand lines may be ten queries. n searches are worth n / (1 + r (m - 1)) of
them, where r is how alike two searches of one query are in this band (their correlation, from the
queries that were asked twice, and its upper end of 95 %; 1 where there are too few), and m how
often the query of a search is asked, on average over the searches of the group. Which of the
queries asked most belong to an index is known by their hash, and to a number of words by their
text. Of classes it is not known, so they are held to have the heaviest that fit.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from searchbench import _core
from searchbench.analysis.logs.bands import Bands
from searchbench.analysis.logs.clock import Clock
from searchbench.analysis.logs.groups import Groups
from searchbench.analysis.logs.spread import Numbers, Spread
from searchbench.logs.counts import Counts

_KINDS = ("class", "index", "words")
_SHARE = 0.05  # of a band
_TIMES = 1.5  # as often as in the whole log
_MORE_THAN = 20  # searches
_CHANCE = 0.01  # of logs without a cause, in how many something is named at most
_PAIRS = 30  # queries asked twice, from which on their likeness is estimated
_HEAVY = 4096  # queries that are looked at one by one
_SHOWN = 200  # bytes of a text; one that was cut off may have more words
_NAMED = 3  # of a band
_WORD = re.compile(r"[^\W_]+")


def in_bands(
    counts: Counts, groups: Groups, found: Bands, times: Spread, clock: Clock | None
) -> tuple[tuple[str, ...], ...]:
    """Of each band what is over-represented in it, as sentences, the largest first."""

    def seen(of: Spread) -> Spread:
        return of if clock is None else clock.seen(of)

    rows = [(kind, i, seen(groups.spread([i]))) for kind in _KINDS for i in groups.rows_of(kind)]
    bands = []
    tests = 0
    for band in found.bands:
        # An edge comes out of a logarithm, and may be a hair off what lies on it.
        low, high = band.low_s * 1e9 * (1 - 1e-9), band.high_s * 1e9 * (1 - 1e-9)
        inside = _between(times, low, high)
        bands.append((low, high, inside))
        tests += sum(own.count >= max(_SHARE * inside, _MORE_THAN) for _, _, own in rows)
    asked = _Asked.of(counts) if tests else None
    said = []
    for low, high, inside in bands:
        over: list[tuple[float, str]] = []
        for kind, i, own in rows:
            here = _between(own, low, high)
            expected = own.count / max(1, times.count) * inside
            if here < max(_SHARE * inside, _TIMES * expected) or here <= _MORE_THAN:
                continue
            assert asked is not None  # what is so large was counted as a test
            alike = asked.alike(low, high, clock)
            name = groups.names[i]
            own_worth = asked.worth(kind, name, own.count, alike)
            rest_worth = asked.worth_of_rest(times.count - own.count, alike)
            chance = _chance(
                math.floor(here / own_worth),
                math.ceil(own.count / own_worth),
                (inside - here) / rest_worth,
                (times.count - own.count) / rest_worth,
            )
            if chance * tests <= _CHANCE:
                told = f"{100 * here / inside:.0f} % of it, {here / expected:.1f}× its share"
                name = f"{name} words" if kind == "words" else name
                over.append((here / inside, f"{name or '(none)'}: {told}"))
        said.append(tuple(text for _, text in sorted(over, reverse=True)[:_NAMED]))
    return tuple(said)


def _chance(here: int, own: int, elsewhere: float, others: float) -> float:
    """How probable it is that so many of a group are in a band, if it were no other than the rest.

    The share of the band is that of both together, so the group takes part in it. It is then a
    little more probable than it would be by Fisher's exact test, which takes long for large logs.
    """
    share = (here + elsewhere) / (own + others)
    return float(special.bdtrc(here - 1, own, share)) if here > 0 else 1.0


def _between(of: Spread, low: float, high: float) -> int:
    return int(of.n[(of.low >= low) & (of.low < high)].sum())


@dataclass(frozen=True, eq=False)
class _Asked:
    """How often queries were asked.

    ``n``, ``hashes``, ``texts``: of the heavy ones, the heaviest first. ``tail``: how often the
    heaviest of all others was asked; ``tail_squares``: the sum of the squares of those. ``pairs``:
    both times of the queries asked twice, in nanoseconds.
    """

    n: Numbers
    hashes: NDArray[np.uint64]
    texts: list[bytes]
    tail: float
    tail_squares: float
    pairs: tuple[Numbers, Numbers]

    @classmethod
    def of(cls, counts: Counts) -> _Asked:
        n = counts.numbers("queries", "n").astype(float)
        order = np.argsort(-n, kind="stable")
        heavy, rest = order[:_HEAVY], n[order[_HEAVY:]]
        twice = n == 2
        longer = counts.numbers("queries", "max_ns")[twice].astype(float)
        shorter = counts.numbers("queries", "sum_ns")[twice].astype(float) - longer
        return cls(
            n[heavy],
            counts.numbers("queries", "hash")[heavy],
            counts.tables["queries"].column("text").take(heavy).to_pylist(),
            float(rest.max(initial=0.0)),
            float((rest**2).sum()),
            (shorter, longer),
        )

    def alike(self, low: float, high: float, clock: Clock | None) -> float:
        """How alike two searches of one query are in being in a band or not: 0 to 1."""
        pairs = len(self.pairs[0])
        if pairs < _PAIRS:
            return 1.0
        first, second = (
            (at >= low) & (at < high) for at in (_seen(part, clock) for part in self.pairs)
        )
        share = (first.mean() + second.mean()) / 2
        if not 0 < share < 1:
            return 1.0
        both = (first & second).mean()
        found = float((both - share**2) / (share * (1 - share)))
        return min(1.0, max(0.0, found) + 1.645 / math.sqrt(pairs))

    def worth(self, kind: str, name: str, searches: int, alike: float) -> float:
        """How many searches of a group are worth one that depends on no other."""
        heavy = self._heavy(kind, name, searches)
        left = max(0.0, searches - float(heavy.sum()))
        squares = float((heavy**2).sum()) + min(self.tail * left, self.tail_squares)
        return 1 + alike * max(0.0, squares / max(1, searches) - 1)

    def worth_of_rest(self, searches: int, alike: float) -> float:
        """The same of all searches but those of a group, which may be those of any queries."""
        squares = float((self.n**2).sum()) + self.tail_squares
        return 1 + alike * max(0.0, squares / max(1, searches) - 1)

    def _heavy(self, kind: str, name: str, searches: int) -> Numbers:
        """How often those of the heavy queries were asked that may be of a group."""
        if kind == "class":
            at = np.ones(len(self.n), bool)
        else:
            at = np.array([len(text) >= _SHOWN - 3 for text in self.texts], bool)
            if kind == "index":
                given = _core.query_hashes([name.encode()], self.texts)
                at |= np.frombuffer(given, np.uint64) == self.hashes
            else:
                at |= np.array([_words(text) == name for text in self.texts], bool)
        # More than there are cannot be of it: of those that may be, the heaviest that fit.
        found: list[float] = []
        left = float(searches)
        for n in self.n[at].tolist():
            if n <= left:
                found.append(n)
                left -= n
        return np.array(found)


def _words(text: bytes) -> str:
    return str(len(_WORD.findall(text.decode("utf-8", errors="replace"))))


def _seen(ns: Numbers, clock: Clock | None) -> Numbers:
    if clock is None:
        return ns
    one = np.ones(len(ns))
    return clock.seen(Spread(ns, one, one.astype(np.int64), 0, 1)).low
