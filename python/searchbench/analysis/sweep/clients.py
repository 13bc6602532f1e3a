"""What clients in a closed loop get: the most, from where on more of them bring nothing, the price.

That more clients bring nothing is a claim and no lack of evidence: it is made where they bring less
than ``NOTHING`` more, with the interval of every step beyond. Of steps that were driven once no
window tells how far two drives differ; if they are a plateau, how they scatter about it does.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from searchbench.analysis.judgement import Estimate
from searchbench.analysis.stats import within
from searchbench.analysis.stats.distributions import student
from searchbench.analysis.sweep import points as at
from searchbench.analysis.sweep import scatter
from searchbench.analysis.sweep.points import Point
from searchbench.analysis.words import amount, digits, listed, percent, times, upper

FALLS = 0.97  # the peak is partly luck, so a decline of less than 3 % is not reported
NOTHING = 1.05  # less than this over what fewer clients get is no more
CLOSE = "The drives that show this were close together in time"
SCATTERED = "Other drives of one load differ by as much from pass to pass"
NOT_KNOWN = f"{CLOSE}, so it is not known whether the load is the reason."


@dataclass(frozen=True)
class Knee:
    """Where throughput ends to grow, of points that can be told apart.

    ``most``: where the most was answered; ``rivals``: how many points it is not told apart from,
    with itself. ``first``: the first beyond which none is resolved to bring more, and by how much
    one may at most (a ratio; None: none is beyond). ``flat``: the first beyond which none may bring
    ``NOTHING`` or more; ``last`` if there is no such. ``by_drives``: ``first`` would be it if two
    drives of one load did not differ.
    """

    most: Point
    rivals: int
    first: Point
    at_most: float | None
    flat: Point
    last: Point
    by_drives: bool = False


def knee(own: Sequence[Point]) -> Knee:
    """``own``: points by ascending number of clients, at least one.

    Beside the greatest, a point without an interval, not steady or with stalls can be told from
    nothing.
    """
    known = [p for p in own if p.of("answered") is not None] or own
    most = max(known, key=_answered)
    usable = [p for p in known if p is most or (_interval(p) and not _moved(p))]
    first, flat, at_most, by_drives = usable[-1], usable[-1], None, False
    for i, point in reversed(list(enumerate(usable[:-1]))):
        ratios = [found for other in usable[i + 1 :] if (found := _over(point, other)) is not None]
        if any(within.resolved(ratio) and ratio.value > 1 for ratio in ratios):
            continue
        ends = [ratio.interval.high for ratio in ratios if ratio.interval is not None]
        first, at_most = point, max(ends, default=None)
        by_drives = False
        if at_most is not None and at_most < NOTHING:
            by_drives = _of_drives(point, usable[i + 1 :]) >= NOTHING
            flat = flat if by_drives else point
    rivals = sum(p is most or not _told(p, most) for p in usable)
    return Knee(most, rivals, first, at_most, flat, usable[-1], by_drives)


def sentences(
    name: str,
    own: Sequence[Point],
    *,
    drifts: bool = False,
    hidden: bool = False,
    close: Collection[float] = (),
    failed_at: float = 0.0,
) -> list[str]:
    """What one subject answers to so many clients. ``own``: as of ``knee``; ``failed_at``: the most
    clients of a step that came to nothing.

    ``drifts``: its speed changed with the time, which no comparison of two of its steps leaves out;
    ``hidden``: it would not show if it did, as every pass was in one order. ``close``: the loads
    that all passes drove at about the same time, so that a slow spell could have met all of them.
    """
    found = knee(own)
    most, first = found.most, found.first
    answered = _best_of(most.of("answered"), found.rivals)
    if answered is None or not answered.value:
        return [f"{name} answered no request well."]
    if len(own) == 1:
        p99 = most.of("response_p99")
        tail = f", with a response p99 of {amount(p99)}" if p99 else ""
        return [
            f"{name} answers {amount(answered)} to {counted(most.x)}{tail}. That is the only "
            "usable step, so nothing is known about more or fewer clients."
        ]
    said = [f"{name} answered up to {amount(answered)}, at {counted(most.x)}."]
    few = [p for p in own if p.of("answered") is not None and not _interval(p)]
    if most in few:
        said.append(
            "It answered too few requests to say how certain that is, or how many clients are "
            "enough: longer steps would show it."
        )
    elif drifts or _moved(most):
        how = "had stalls" if at.stalled(most) else "was not steady"
        why = f"the step with {counted(most.x)} {how}"
        if drifts:
            why = "its speed changed from step to step with the time"
        said.append(f"How many clients are enough is unknown, because {why}.")
    elif found.at_most is not None:
        said += _no_more(found, own, close)
    if few and most not in few:
        counts = listed([counted(p.x) for p in few])
        rates = listed([digits(e.value) for p in few if (e := p.of("answered")) is not None])
        said.append(
            f"At {counts} too few requests were answered to be compared ({rates} per second)."
        )
    if first is found.last:
        # What answered next to nothing with more clients may not sustain more.
        stuck = failed_at > first.x or any(p.x > first.x for p in few)
        more = ", so it may sustain more" if first.errors <= at.ERRORS and not stuck else ""
        said.append(
            f"That is the last usable step{more}: nothing is known beyond {counted(first.x)}."
        )
    passes = scatter.of_passes(own)
    falling = [
        (p, ratio)
        for p in own
        if p.x > most.x
        and not drifts
        and at.resolved(most, p, ratio := _over(most, p), "answered")
        and ratio is not None
        and ratio.interval is not None
        and ratio.interval.high < FALLS
        and not _moved(p)
    ]
    if falling:
        point, ratio = min(falling, key=lambda pair: pair[1].value)
        less = f"at {counted(point.x)} {times(ratio)} as much as at {counted(most.x)}"
        once = len(most.values("answered").keys() & point.values("answered").keys()) < 2
        met = point.x in close
        loose = ratio.value * math.exp(max(passes.means, passes.drives)) >= FALLS
        why = "All blocks drove the loads in the same order"
        why = "Each was driven once" if once else why if hidden else CLOSE if met else SCATTERED
        said.append(
            f"In these drives, it answered less with more clients: {less}. {why}, so it is not "
            "known whether the load is the reason."
            if once or hidden or met or loose
            else f"With more clients it answers less: {less}."
        )
    return said


def _no_more(found: Knee, own: Sequence[Point], close: Collection[float]) -> list[str]:
    """From where on more clients bring nothing, or that this is not resolved; what they cost."""
    first, here = found.first, found.first.of("answered")
    bring = f"more than {counted(first.x)} {'brings' if first.x == 1 else 'bring'}"
    more = percent(max(0.0, (found.at_most or 1.0) - 1), signed=True)
    costs = _costs(first, [p for p in own if p.x > first.x])
    if found.flat is not first:
        remedy = f"up to {more}; longer steps would show it"
        if found.by_drives:
            remedy = (
                "each was driven once, and two drives of one load may differ by more than their "
                "windows show"
            )
        start = f"Whether {bring} more throughput is not resolved ({remedy}){costs}."
        if found.flat is found.last:
            return [start, f"Nothing is known beyond {counted(found.last.x)}."]
        unsure = _unsure(found.flat, own, close)
        how = "In these drives, more" if unsure else "More"
        verb = "brought" if unsure else "bring"
        return [start, f"{how} than {counted(found.flat.x)} {verb} no more.", *unsure]
    start = upper(f"{bring} no more throughput")
    unsure = _unsure(first, own, close)
    if unsure:
        start = f"In these drives, more than {counted(first.x)} brought no more throughput"
    if first is not found.most and here is not None:
        start += (
            f": {digits(here.value)} per second there is not told apart from the most (up to "
            f"{more})"
        )
    return [f"{start}{costs}.", *unsure]


def _unsure(first: Point, own: Sequence[Point], close: Collection[float]) -> list[str]:
    """Why it is not known whether more clients bring nothing; empty: it is.

    All passes drove all loads beyond the first at about the same time; or by what all loads scatter
    from pass to pass, one of them may bring ``NOTHING`` or more.
    """
    beyond = [p for p in own if p.x > first.x]
    if beyond and all(p.x in close for p in beyond):
        return [NOT_KNOWN]
    ratios = [found for other in beyond if (found := _over(first, other)) is not None]
    reach = math.exp(scatter.of_passes(own).means)
    if any(ratio.value * reach >= NOTHING for ratio in ratios):
        return [f"{SCATTERED}, so it is not known whether more clients bring more."]
    return []


def _costs(base: Point, beyond: Sequence[Point]) -> str:
    """A clause: how the tail grows from one point to the last; empty where that is not known."""
    costs = [(p, e) for p in beyond if (e := p.of("response_p99")) is not None]
    here = base.of("response_p99")
    if not costs or here is None:
        return ""
    last, p99 = costs[-1]
    ratio, _ = at.against(base, last, "response_p99")
    said = (
        f"; the response p99 goes from {amount(here)} there to {amount(p99)} at {counted(last.x)}"
    )
    unresolved = not at.resolved(base, last, ratio, "response_p99")
    return said + (", which is not resolved" if unresolved else "")


def _best_of(found: Estimate | None, rivals: int) -> Estimate | None:
    """With the interval of the greatest of several that are not told apart, of which each could
    have been it by chance (Šidák 1967): all of them hold the truth with 95 %.
    """
    if found is None or found.interval is None or rivals < 2:
        return found
    level = within.LEVEL ** (1 / rivals)
    wider = student(0.5 + level / 2, within.SLICES - 1) / within.T
    span, value = found.interval, found.value
    low, high = (value + wider * (end - value) for end in (span.low, span.high))
    method = f"{span.method}; the greatest of {rivals} steps"
    return replace(found, interval=replace(span, low=max(0.0, low), high=high, method=method))


def _answered(p: Point) -> float:
    found = p.of("answered")
    return found.value if found is not None else 0.0


def _interval(p: Point) -> bool:
    found = p.of("answered")
    return found is not None and found.interval is not None


def _moved(p: Point) -> bool:
    """Whether its windows are no measure of what so many clients get."""
    return p.state.answer == "not steady" or at.stalled(p)


def _over(a: Point, b: Point) -> Estimate | None:
    return at.against(a, b, "answered")[0]


def _of_drives(point: Point, beyond: Sequence[Point]) -> float:
    """How much more the points ``beyond`` may bring together, at most, if all are one plateau and
    what they scatter by is how drives scatter: a ratio; 0 where each was driven several times.
    """
    blocks = point.values("answered").keys()
    once = [p for p in beyond if len(blocks & p.values("answered").keys()) < 2]
    logs = [math.log(rate) for p in (point, *once) if (rate := _answered(p)) > 0]
    if len(logs) < 2:
        return 0.0
    n = len(logs) - 1
    more = math.fsum(logs[1:]) / n - logs[0]
    reach = student(0.5 + within.LEVEL / 2, n) * statistics.stdev(logs) * math.sqrt(1 + 1 / n)
    return math.exp(more + reach)


def _told(a: Point, b: Point) -> bool:
    ratio = _over(a, b)
    return ratio is not None and within.resolved(ratio)


def counted(clients: float) -> str:
    """How many clients, in words."""
    return "1 client" if clients == 1 else f"{clients:g} clients"
