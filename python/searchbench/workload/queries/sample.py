"""Queries sampled from a corpus, so that every one of them matches something.

One streaming pass keeps a reservoir of candidates (Vitter's Algorithm L, "Random sampling with a
reservoir", doi 10.1145/3147.3165, in Li's form, doi 10.1145/198429.198435), so memory does not
grow with the corpus and most documents are not even analysed. Small corpora are passed over
again until there are enough distinct queries.

The words of a query come from one document: scattered over it, drawn from its different terms
without regard to how often they occur, or a contiguous run within one field, so that a phrase
matches. Where no document is long enough for a length that was drawn, the query is as long as
documents allow, and the set's mean number of terms shows it. For prefix queries every word is
cut, for fuzzy ones one character of it is changed.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from searchbench.errors import QueryError
from searchbench.workload.queries.algebra import Mode
from searchbench.workload.queries.analysis import terms

Distribution = Literal["geometric", "poisson"]  # of the numbers of words
Documents = Callable[[], Iterable[Mapping[str, object]]]
Candidate = tuple[tuple[int, str], ...]

# Nobody types longer words; they are encoded data.
_LONGEST_TERM = 40
# Passes over the corpus that may add nothing before it counts as exhausted.
_IDLE_PASSES = 3
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Lengths:
    """How many words a query has: ``weights[i]`` is the relative chance of i + 1 words."""

    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.weights or min(self.weights) < 0 or not 0 < sum(self.weights) < math.inf:
            raise QueryError("the weights of the lengths must be at least 0, and one above 0")

    @property
    def mean(self) -> float:
        """The mean number of words."""
        total = sum(self.weights)
        return sum(k * w for k, w in enumerate(self.weights, 1)) / total

    def counts(self, n: int, offset: float) -> Counter[int]:
        """How many of ``n`` queries have each length: systematic sampling, offset in 0..1.

        Each count is within one of its expectation, so the mean of a small set is no accident.
        """
        total = sum(self.weights)
        marks = [math.floor(w * n / total + offset) for w in itertools.accumulate(self.weights)]
        marks[-1] = n
        steps = zip(marks, [0, *marks[:-1]], strict=True)
        return Counter({k: mark - before for k, (mark, before) in enumerate(steps, 1)})

    @classmethod
    def of_mean(cls, mean: float, form: Distribution = "geometric", longest: int = 12) -> Lengths:
        """Lengths 1..``longest`` with exactly this mean.

        "geometric": weight q**(k-1); "poisson": rate**(k-1) / (k-1)!. Both are truncated, and
        their parameter is solved for the mean. QueryError where the mean is out of reach.
        """
        if longest < 1 or not 1 <= mean <= longest:
            raise QueryError(f"a mean of {mean:g} words is not between 1 and {longest}")
        if mean in (1, longest):
            return cls((0.0,) * (round(mean) - 1) + (1.0,))
        low, high = -40.0, 40.0
        for _ in range(200):
            middle = (low + high) / 2
            lengths = cls(_weights(middle, form, longest))
            low, high = (middle, high) if lengths.mean < mean else (low, middle)
        return cls(_weights((low + high) / 2, form, longest))


def _weights(log_parameter: float, form: Distribution, longest: int) -> tuple[float, ...]:
    logs = [
        k * log_parameter - (math.lgamma(k + 1) if form == "poisson" else 0.0)
        for k in range(longest)
    ]
    top = max(logs)
    return tuple(math.exp(value - top) for value in logs)


def sample(
    documents: Documents,
    text_fields: Sequence[str],
    *,
    distinct: int,
    mode: Mode,
    lengths: Lengths,
    contiguous: bool,
    distance: int = 1,
    seed: int = 0,
) -> list[tuple[str, ...]]:
    """The terms of ``distinct`` different queries, in an order made by the seed.

    ``documents()`` yields the values of one document after another, by field name, the same
    each time it is called. QueryError where the corpus does not have so many.
    """
    rng = random.Random(f"searchbench sample {seed}")
    longest = len(lengths.weights)
    needed = lengths.counts(distinct, rng.random())
    candidate = partial(_candidate, text_fields, longest, contiguous, rng)
    asked = partial(_asked, mode, distance, rng)
    found: dict[tuple[str, ...], None] = {}
    idle = 0
    for passes in itertools.count(1):
        pool = _reservoir(documents(), candidate, 2 * distinct + 64, rng)
        _shorten(needed, max(map(len, pool), default=0))
        before = needed.copy()
        for length in range(longest, 0, -1):
            pool = _take(pool, length, needed, found, asked)
        if len(found) == distinct:
            break
        idle = idle + 1 if needed == before else 0
        if idle == _IDLE_PASSES and needed.total() == needed[1]:
            raise QueryError(
                f"only {len(found)} of {distinct} distinct queries could be drawn from the corpus "
                f"(lengths of 1 to {longest} words); ask for fewer or for other lengths"
            )
        # Candidates are left, so those lengths did not want for candidates but for long ones.
        if passes >= _IDLE_PASSES and pool:
            for length in range(2, longest + 1):
                if needed[length] and needed[length] == before[length]:
                    _shorten(needed, length - 1, length)
                    idle = 0
    queries = list(found)
    rng.shuffle(queries)
    return queries


def _shorten(needed: Counter[int], longest: int, above: int | None = None) -> None:
    """Ask for ``longest`` words instead of ``above`` (None: instead of any more)."""
    for length in [n for n in needed if (n > longest if above is None else n == above)]:
        needed[max(1, longest)] += needed.pop(length)


def _take(
    pool: list[Candidate],
    length: int,
    needed: Counter[int],
    found: dict[tuple[str, ...], None],
    asked: Callable[[str], str],
) -> list[Candidate]:
    """Move queries of ``length`` words from the pool to ``found``; returns what is left."""
    left = []
    for candidate in pool:
        words = None
        if needed[length] > 0 and len(candidate) >= length:
            words = tuple(asked(word) for _, word in sorted(candidate[:length]))
        if words is None or words in found:
            left.append(candidate)
        else:
            found[words] = None
            needed[length] -= 1
    return left


def _reservoir(
    documents: Iterable[Mapping[str, object]],
    candidate: Callable[[Mapping[str, object]], Candidate],
    size: int,
    rng: random.Random,
) -> list[Candidate]:
    """Candidates from ``size`` documents chosen with equal chances, shuffled."""
    kept: list[Candidate] = []
    skips = _skips(size, rng)
    following = size
    for position, values in enumerate(documents):
        if position < size:
            kept.append(candidate(values))
            if position == size - 1:
                following += next(skips)
        elif position == following:
            kept[rng.randrange(size)] = candidate(values)
            following += next(skips) + 1
    rng.shuffle(kept)
    return kept


def _skips(size: int, rng: random.Random) -> Iterator[int]:
    """How many documents to pass over before the next that enters the reservoir."""
    weight = 1.0
    while True:
        weight *= math.exp(math.log(1.0 - rng.random()) / size)
        yield math.floor(math.log(1.0 - rng.random()) / math.log1p(-weight))


def _candidate(
    text_fields: Sequence[str],
    longest: int,
    contiguous: bool,
    rng: random.Random,
    values: Mapping[str, object],
) -> Candidate:
    """Up to ``longest`` (position, term) pairs, any beginning of which makes a query."""
    texts = [terms(str(values[name])) for name in text_fields if name in values]
    if contiguous:
        start = rng.randrange(max(1, sum(map(len, texts))))
        for words in texts:
            if start < len(words):
                run = words[start : start + longest]
                odd = next((i for i, w in enumerate(run) if len(w) > _LONGEST_TERM), len(run))
                return tuple(enumerate(run[:odd]))
            start -= len(words)
        return ()
    seen = dict.fromkeys(w for words in texts for w in words if len(w) <= _LONGEST_TERM)
    places = list(enumerate(seen))
    return tuple(rng.sample(places, min(longest, len(places))))


def _asked(mode: Mode, distance: int, rng: random.Random, word: str) -> str:
    """The word as the query has it: cut for prefix, misspelt for fuzzy, else as it is."""
    if mode is Mode.PREFIX:
        return word[: max(3, math.ceil(len(word) / 2))]
    if mode is Mode.FUZZY and len(word) > 3 * distance:
        for place in rng.sample(range(len(word)), distance):
            word = word[:place] + rng.choice(_LETTERS) + word[place + 1 :]
    return word
