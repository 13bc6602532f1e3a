"""What was published of a log beside what this log has: of each statement one of three answers.

- *the same*: it holds here, as closely as the published figure was given.
- *differs*: it does not.
- *cannot be told here*: this log does not know, and ``why`` says what it lacks.

A number was given to its last digit that is not nought (453,000,000: to a million; at most to half
a percent), a share to a percent. A band is the same if it lies within a quarter of a decade. Groups
(by words, by size of the index) are held against each other by their p95, with intervals as of
``Spread.between_s``: those of neighbours must not touch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from searchbench.analysis.logs.bands import Band
from searchbench.analysis.logs.groups import Groups
from searchbench.analysis.logs.model import LogJudgement, Statement
from searchbench.analysis.logs.remarks import seconds, threshold
from searchbench.study.published import Published

Verdict = Literal["the same", "differs", "cannot be told here"]
SAME: Verdict = "the same"
DIFFERS: Verdict = "differs"
UNKNOWN: Verdict = "cannot be told here"

_PART = 0.005  # of a number that was rounded to noughts: it is known at least so well
_POINT = 0.005  # half a percent, to which shares are given
_NEAR = 10**0.25  # a band is where it was published, or not
_LEAST = 100  # searches of a group that is held against others
_MOST_NAMES = 20_000  # of a kind are told apart


def beside(
    published: Published, of: LogJudgement, groups: Groups, sizes: Mapping[str, int]
) -> tuple[Statement, ...]:
    """Each published statement with what a log says to it, in the order of the file's keys."""
    return tuple(_statements(published, of, groups, sizes))


def _statements(
    published: Published, of: LogJudgement, groups: Groups, sizes: Mapping[str, int]
) -> Iterator[Statement]:
    if published.queries is not None:
        n = of.all.n if of.all else 0
        yield _number("queries", published.queries, n)
    if published.servers is not None:
        yield _named("servers", published.servers, groups, "server")
    if published.indexes is not None:
        yield _named("indexes", published.indexes, groups, "index")
    untimed = _untimed(of)
    for limit_s, share in published.within:
        yield untimed(f"within {seconds(limit_s)}", _percent(share)) or _within(of, limit_s, share)
    if published.bands:
        many = len(published.bands)
        yield untimed("bands", str(many)) or _how_many(many, of)
    for at_s, below in published.bands:
        text = f"below {seconds(at_s)}" if below else seconds(at_s)
        yield untimed("a band", text) or _band(text, at_s, of, below=below)
    words = {"fastest": published.fastest, "slowest": published.slowest}
    # What a clock that steps shows may be one step off; a finer log cuts off, and keeps the order.
    step_s = max((clock.step_s for clock in of.clocks), default=0.0)
    for which, span in words.items():
        if span is not None:
            what = f"{which} by words"
            slowest = which == "slowest"
            yield (
                untimed(what, _words(span))
                or _of_words(what, span, groups, step_s, slowest=slowest)
            )  # fmt: skip
    if published.larger:
        yield (
            untimed("larger indexes", published.larger)
            or _of_sizes(published.larger, published.sizes_from, groups, sizes, step_s)
        )  # fmt: skip


def _number(what: str, published: int, here: int) -> Statement:
    unit = 1
    while published % (unit * 10) == 0:
        unit *= 10
    same = abs(here - published) <= min(unit / 2, _PART * published)
    return Statement(what, f"{published:,}", f"{here:,}", SAME if same else DIFFERS)


def _named(what: str, published: int, groups: Groups, kind: str) -> Statement:
    names = {groups.names[i] for i in groups.rows_of(kind)}
    if not names - {""}:
        return Statement(what, f"{published:,}", "–", UNKNOWN, f"the log names no {kind}")
    if len(names) >= _MOST_NAMES:
        why = f"no more than {_MOST_NAMES:,} {what} are told apart"
        return Statement(what, f"{published:,}", f"{len(names):,} or more", UNKNOWN, why)
    return _number(what, published, len(names - {""}))


def _untimed(of: LogJudgement) -> Callable[[str, str], Statement | None]:
    """Why nothing of the times can be told, if nothing can."""
    why = ""
    if of.all is None or not of.spread.count:
        why = "the log does not say how long its searches took"
    elif (cut := threshold(of)) is not None:
        has = "seems to have" if cut.sure else "may have"
        why = f"the log {has} only searches that took longer than a threshold of its server"

    def unknown(what: str, published: str) -> Statement | None:
        return Statement(what, published, "–", UNKNOWN, why) if why else None

    return unknown


def _within(of: LogJudgement, limit_s: float, share: float) -> Statement:
    what = f"within {seconds(limit_s)}"
    if of.spread.count < _LEAST:
        why = f"the log has fewer than {_LEAST} searches whose times are known"
        return Statement(what, _percent(share), "–", UNKNOWN, why)
    surely, perhaps = of.spread.share_within(limit_s), of.spread.share_not_above(limit_s)
    here = _percent(surely)
    if _percent(perhaps) != here:
        here = f"{here} to {_percent(perhaps)}"
    # A hair more, because a share is no exact number: 0.6 is 0.605 - 0.005, nearly.
    ends = [_side(end, share) for end in (surely, perhaps)]
    if ends[0] != ends[1]:
        why = f"the log has times to {seconds(of.resolution_s)}, which leaves this open"
        return Statement(what, _percent(share), here, UNKNOWN, why)
    return Statement(what, _percent(share), here, DIFFERS if ends[0] else SAME)


def _side(share: float, published: float) -> int:
    """Whether a share is less than the published one (-1), as it was given (0), or more (1)."""
    apart = share - published
    return 0 if abs(apart) <= _POINT + 1e-9 else -1 if apart < 0 else 1


def _how_many(published: int, of: LogJudgement) -> Statement:
    here, doubted = len(of.bands.bands), len(of.bands.doubted)
    if here < published <= here + doubted:
        why = "; ".join(f"one near {seconds(at)} is not told apart: {w}"
                        for at, w in of.bands.doubted[:3])  # fmt: skip
        return Statement("bands", str(published), str(here), UNKNOWN, why)
    return Statement("bands", str(published), str(here), SAME if here == published else DIFFERS)


def _band(text: str, at_s: float, of: LogJudgement, *, below: bool) -> Statement:
    what = "a band"
    resolution = of.resolution_s or 0.0
    found = of.bands.bands
    if below:
        near = [b for b in found if (b.at_s or 0.0) < at_s]
        if near and near[0].at_s is None and resolution > at_s * 1.001:
            least = f"below {seconds(resolution)}"
            return Statement(what, text, least, UNKNOWN, f"the log does not show times {least}")
        if near:
            return Statement(what, text, _where(near[0], resolution), SAME)
    else:
        if at_s < 2 * resolution:
            why = f"the log has times to {seconds(resolution)}, too coarse for this band"
            return Statement(what, text, "–", UNKNOWN, why)
        near = [b for b in found if b.at_s and at_s / _NEAR <= b.at_s <= at_s * _NEAR]
        if near:
            closest = min(near, key=lambda b: abs((b.at_s or 0.0) - at_s))
            return Statement(what, text, _where(closest, resolution), SAME)
        for doubted_s, why in of.bands.doubted:
            if at_s / _NEAR <= doubted_s <= at_s * _NEAR:
                here = f"perhaps {seconds(doubted_s)}"
                return Statement(what, text, here, UNKNOWN, f"it is not told apart: {why}")
    here = ", ".join(_where(b, resolution) for b in found) or "none"
    return Statement(what, text, here, DIFFERS)


def _where(band: Band, resolution_s: float) -> str:
    if band.at_s is not None:
        return seconds(band.at_s)
    return f"below {seconds(resolution_s)}" if resolution_s else "below the resolution"


@dataclass(frozen=True, slots=True)
class _Side:
    """A group with its p95 and the ends of the interval of that."""

    name: str
    p95_s: float
    low_s: float
    high_s: float


def _p95(name: str, rows: Sequence[int], groups: Groups) -> _Side | None:
    """None where there are too few searches."""
    times = groups.spread(rows)
    if times.count < _LEAST:
        return None
    low, high = times.between_s(0.95) or (0.0, 0.0)
    return _Side(name, times.quantile_s(0.95) or 0.0, low, high)


def _of_words(
    what: str, span: tuple[int, int], groups: Groups, step_s: float, *, slowest: bool
) -> Statement:
    """Searches of so many words against those of fewer, and against those of more. A single other
    number of words that surely has the p95 that these should have says the opposite.
    """
    numbers = {i: _least(groups.names[i]) for i in groups.rows_of("words")}
    # What lies between the two ends of the published range, below it, and above it; no words at
    # all is another question.
    inside = [i for i, n in numbers.items() if span[0] <= n <= span[1]]
    fewer = [i for i, n in numbers.items() if 0 < n < span[0]]
    more = [i for i, n in numbers.items() if n > span[1]]
    own = _p95(_words(span), inside, groups)
    others, each, left_out = list[_Side](), list[_Side](), list[str]()
    for name, rows in ((f"fewer than {span[0]}", fewer), (f"more than {span[1]}", more)):
        if rows and (together := _p95(name, rows, groups)):
            others.append(together)
        sides = [(i, _p95(_of_number(groups.names[i]), [i], groups)) for i in rows]
        each += [side for _, side in sides if side is not None]
        few = [i for i, side in sides if side is None]
        if n := groups.total(few)["n"] if few and not _p95(name, few, groups) else 0:
            left_out.append(f"{_these(few, groups)}: only {n} {'search' if n == 1 else 'searches'}")
    if own is None or not others:
        which = _words(span) if own is None else f"other than {_words(span)}"
        why = f"the log has fewer than {_LEAST} searches of {which}"
        return Statement(what, _words(span), "–", UNKNOWN, why)
    sign = 1 if slowest else -1
    against = [side for side in (*others, *each) if _apart(own, side, step_s) * sign < 0]
    shown = [own, *others, *(side for side in against if side in each)]
    told = "; ".join([*(f"{one.name}: p95 {seconds(one.p95_s)}" for one in shown), *left_out])
    if against:
        return Statement(what, _words(span), told, DIFFERS)
    if all(_apart(own, side, step_s) * sign > 0 for side in others):
        return Statement(what, _words(span), told, SAME)
    return Statement(what, _words(span), told, UNKNOWN, "their p95 cannot be told apart")


def _these(rows: Sequence[int], groups: Groups) -> str:
    """Numbers of words: "12 words", "12, 14 and more than 20 words"."""
    names = [groups.names[i] for i in rows]
    if len(names) == 1:
        return _of_number(names[0])
    numbers = [f"more than {n[1:]}" if n.startswith(">") else n for n in sorted(names, key=_least)]
    return f"{', '.join(numbers[:-1])} and {numbers[-1]} words"


def _least(name: str) -> int:
    return 10**9 if name.startswith(">") else int(name)


def _of_number(name: str) -> str:
    """ "4 words"; of all above the greatest number that is counted "more than 20 words"."""
    number = name.removeprefix(">")
    more = "more than " if name != number else ""
    return f"{more}{number} {'word' if number == '1' and not more else 'words'}"


def _apart(one: _Side, other: _Side, step_s: float) -> int:
    """1: the first is slower for certain; -1: faster; 0: not told apart."""
    if one.low_s > other.high_s + step_s:
        return 1
    return -1 if one.high_s + step_s < other.low_s else 0


def _of_sizes(
    larger: str, given: Sequence[int], groups: Groups, sizes: Mapping[str, int], step_s: float
) -> Statement:
    """Groups of indexes, from the smallest to the largest."""
    what = "larger indexes"
    if not sizes:
        return Statement(what, larger, "–", UNKNOWN, "the sizes of indexes are not given (--sizes)")
    begins = tuple(given) or tuple(10**power for power in range(13))
    found: dict[int, list[int]] = {}
    for i in groups.rows_of("index"):
        size = sizes.get(groups.names[i])
        at = sum(size >= begin for begin in begins) - 1 if size is not None else -1
        if at >= 0:
            found.setdefault(at, []).append(i)
    sides = []
    for at in sorted(found):
        name = f"from {_bytes(begins[at])}"
        if side := _p95(name, found[at], groups):
            sides.append(side)
    if len(sides) < 2:
        why = f"fewer than two groups of indexes have {_LEAST} searches"
        return Statement(what, larger, "–", UNKNOWN, why)
    told = "; ".join(f"{side.name}: p95 {seconds(side.p95_s)}" for side in sides)
    sign = 1 if larger == "slower" else -1
    apart = [_apart(b, a, step_s) * sign for a, b in pairwise(sides)]
    if all(one > 0 for one in apart):
        return Statement(what, larger, told, SAME)
    if any(one < 0 for one in apart):
        return Statement(what, larger, told, DIFFERS)
    return Statement(
        what, larger, told, UNKNOWN, "the p95 of some neighbouring groups cannot be told apart"
    )


def _bytes(size: int) -> str:
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} B"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _words(span: tuple[int, int]) -> str:
    low, high = span
    return f"{low} words" if low == high else f"{low}–{high} words"
