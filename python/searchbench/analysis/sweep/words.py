"""The sentences of a sweep's verdict, one function for each kind of load.

Longer than most files, because sentences that stand side by side are written side by side.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

from searchbench.analysis.compare import standing, state, systems
from searchbench.analysis.judgement import Comparison, Estimate, Step
from searchbench.analysis.stats import within
from searchbench.analysis.stats.intervals import ALPHA
from searchbench.analysis.sweep import clients, scatter
from searchbench.analysis.sweep import points as at
from searchbench.analysis.sweep.mixed import MAY_DIFFER
from searchbench.analysis.sweep.points import Point
from searchbench.analysis.sweep.steps import OF_WARM_UP
from searchbench.analysis.trial import pool, throughput
from searchbench.analysis.trial.kinds import ENDED, OTHERWISE
from searchbench.analysis.trial.replies import REDIRECTS, SIZES
from searchbench.analysis.trial.served import UNSERVED
from searchbench.analysis.trial.silence import KIND as STALLS
from searchbench.analysis.words import amount, digits, listed, times, words
from searchbench.analysis.words import percent as two_digits

Found = Mapping[str, Sequence[Point]]
LEAST = 1e-4  # a share that is called one
FEW = 3  # comparisons that are named for what is in their way
METRICS = ("response_p99", "throughput")
MANY = 0.5  # of the requests of a void step failed: then that is the first thing to look into
EQUAL_LOADS = "equal loads"


def _dead(own: Sequence[Point]) -> list[Point]:
    """Points at which not one request was answered well."""
    return [p for p in own if (e := p.of("answered")) is None or not e.value]


def of_points(
    name: str,
    own: Sequence[Point],
    drifts: bool = False,
    hidden: bool = False,
    close: Collection[float] = (),
    failed_at: float = 0.0,
) -> list[str]:
    """What one subject sustains. ``own``: its points by ascending load, at least one.

    ``drifts``: its speed changed with the time too; ``hidden``: that it did would not show;
    ``close``: the loads that all passes drove at one time (all three: ``sweep.drift``);
    ``failed_at``: the greatest load at which a step of it came to nothing.
    """
    kind, dead = own[0].kind, _dead(own)
    if dead and len(dead) < len(own) and kind != "replay":
        alive = [p for p in own if p not in dead]
        unit = "clients" if kind == "closed" else "requests per second"
        stopped = (
            f"At {listed([digits(p.x) for p in dead])} {unit} {name} answered no request well, so "
            "what it sustains there is unknown: look at the outcomes and at its log."
        )
        failed_at = max(failed_at, *(p.x for p in dead))
        of_alive = of_points(name, alive, drifts, hidden, close, failed_at)
        return [*of_alive, stopped, *_errors(name, dead)]
    say: dict[str, Callable[[str, Sequence[Point]], list[str]]] = {
        "closed": partial(
            clients.sentences, drifts=drifts, hidden=hidden, close=close, failed_at=failed_at
        ),
        "open": partial(_rates, close=close),
        "replay": _replay,
    }
    return say[kind](name, own) + connections(own) + _not_steady(name, own) + _errors(name, own)


def so_far(name: str, own: Sequence[Point]) -> list[str]:
    """The figures of a first look at one subject, from which nothing follows."""
    found = [(p, e) for p in own if (e := p.of("answered")) is not None and e.value]
    said = []
    if found:
        rates = listed([digits(e.value) for _, e in found])
        loads = loads_of([p for p, _ in found])
        said = [f"So far, {name} answered {rates} queries per second at {loads}."]
    return said + connections(own) + _errors(name, own)


def connections(own: Sequence[Point]) -> list[str]:
    """At which loads all connections were busy, so that these are or may be the limit."""
    busy = [(p, [f for s in p.steps for f in s.findings if f.kind == pool.KIND]) for p in own]
    if not any(found for _, found in busy):
        return []
    found = [f for _, several in busy for f in several]
    eg = "e.g. " if len({f.number for f in found}) > 1 else ""
    loads, f = loads_of([p for p, several in busy if several]), found[-1]
    return [f"At {loads} {eg}{f.number}. {f.meaning} {f.remedy}"]


def _not_steady(name: str, own: Sequence[Point]) -> list[str]:
    """At which loads it was not steady, so that these steps are shown and resolve nothing."""
    found = [p for p in own if p.state.answer == "not steady"]
    if not found:
        return []
    remedies = [
        f.remedy
        for p in found
        for s in p.steps
        for f in s.findings
        if s.steadiness == "not steady" and f.kind in OF_WARM_UP
    ]
    said = (
        f"{name} was not steady at {loads_of(found)}: its times still changed, so its figures "
        "there decide nothing."
    )
    return [" ".join([said, *remedies[:1]])]


def otherwise(name: str, own: Sequence[Point]) -> list[str]:
    """At which loads it gave other answers. ``own``: points of steps that are void for it."""
    return [
        f"At {loads} {name} gave other answers than when asked alone ({number}), so its times "
        f"there are not those of the answers asked for. {remedy}"
        for loads, number, remedy in _found(own, OTHERWISE)
    ]


def ended(name: str, own: Sequence[Point]) -> list[str]:
    """At which loads it ended. ``own``: points of steps that are void for it."""
    return [
        f"At {loads_of([p])} {name} ended ({f.number}), so what it sustains there is unknown. "
        f"{f.remedy}"
        for p in own
        for f in [f for s in p.steps for f in s.findings if f.kind in ENDED][:1]
    ]


def unserved(name: str, own: Sequence[Point]) -> list[str]:
    """At which loads clients got no answer. ``own``: points of steps that are void for it."""
    return [
        f"At {loads} {name} did not serve all clients: {number}. {remedy}"
        for loads, number, remedy in _found(own, UNSERVED)
    ]


def _found(own: Sequence[Point], kind: str) -> Iterator[tuple[str, str, str]]:
    """The loads of these points, each with such a finding, and of the last its number and remedy;
    of no points nothing.
    """
    found = [f for p in own for s in p.steps for f in s.findings if f.kind == kind]
    if found:
        eg = "e.g. " if len(found) > 1 else ""
        yield loads_of(own), f"{eg}{found[-1].number}", found[-1].remedy


def no_answers(name: str, own: Sequence[Point]) -> list[str]:
    """At which loads replies that count as answered may be none (redirects, other sizes), and at
    which there were stalls.
    """
    said = []
    for kind in (REDIRECTS, SIZES, STALLS):
        found = {id(p): f for p in own for s in p.steps for f in s.findings if f.kind == kind}
        if found:
            f, eg = [*found.values()][-1], "e.g. " if len(found) > 1 else ""
            loads = loads_of([p for p in own if id(p) in found])
            said.append(
                f"At {loads} {name} answered with {kind} ({eg}{f.number}). {f.meaning} {f.remedy}"
            )
    return said


def _rates(name: str, own: Sequence[Point], close: Collection[float]) -> list[str]:
    over = [p for p in own if p.keeps_up is False]
    unclear = [p for p in own if p.keeps_up is None]
    levelled = [p for p in unclear if _levelled(p)]
    unclear = [p for p in unclear if p not in levelled]
    # Above a rate that was not kept up no lower bound is claimed.
    kept = [p for p in own if p.keeps_up and all(p.x < other.x for other in over)]
    said = []
    # A rate that was not kept up with below one that was: time as well as load.
    top = max((p.x for p in own if p.keeps_up), default=0.0)
    if odd := [p for p in over if p.x < top and not _in_some(p)]:
        said.append(_below_others(name, odd, [p for p in own if p.keeps_up and p.x > odd[0].x]))
    if kept:
        best = kept[-1]
        p99 = best.of("response_p99")
        tail = f"; the response p99 there is {amount(p99)}" if p99 else ""
        said.append(
            f"{name} keeps up with {digits(best.x)} requests per second: "
            f"{_achieved(best)} of the load was answered within the window"
            f"{_resolution(best)}{tail}."
        )
    if over:
        worst = over[0]
        always = next((p for p in over if not _in_some(p) and p not in odd), None)
        if worst is not always and worst not in odd:
            said.append(_at_times(name, worst))
        if always is not None:
            unsure = always.x in close
            how = f"In these drives, {name} did not keep" if unsure else f"{name} does not keep"
            said.append(
                f"{how} up with {digits(always.x)} requests per second: {_why_not(always)}."
                + (f" {clients.NOT_KNOWN}" if unsure else "")
            )
        if not kept:
            mend = "" if worst.falls_behind else "mend what fails, or "
            said.append(f"What {name} sustains is not known: {mend}drive lower rates.")
    elif kept and kept[-1] is own[-1]:
        said.append(
            f"That is the highest rate of a usable step, so {name} may sustain more: drive higher "
            "rates."
        )
    if unclear:
        rates = listed([digits(p.x) for p in unclear])
        said.append(
            f"At {rates} requests per second the window is too short to say whether {name} keeps "
            "up: drive longer."
        )
    if levelled:
        rates = listed([digits(p.x) for p in levelled])
        said.append(
            f"At {rates} requests per second {name} answered more and more slowly, but no longer "
            "in the last third of the window, so the window does not say whether it keeps up: "
            "drive with a longer warm-up."
        )
    return said


def _levelled(point: Point) -> bool:
    """Whether less than 99 % was surely answered in a window, and yet nothing fell behind: the
    queue had levelled in the end.
    """
    spans = [s.achieved.interval for s in point.steps if s.achieved is not None]
    return any(span is not None and span.high < throughput.KEEPS_UP for span in spans)


def _resolution(point: Point) -> str:
    """How little may be lacking at a rate that is kept up with, a clause; empty: not known.

    What lacks is a queue that grows without end, so a greatest rate is known to within this. Of
    random arrivals fewer may have come than were asked for.
    """
    lacks = [
        1 - s.achieved.interval.low * min(1.0, s.offered.value / (s.rate_asked_per_s or math.inf))
        if s.kind == "open" and s.offered is not None
        else 1 - s.achieved.interval.low
        for s in point.steps
        if s.achieved is not None and s.achieved.interval is not None
    ]
    if not lacks:
        return ""
    lack = max(lacks)
    seconds = min(s.window_s for s in point.steps)
    return (
        f" (in the long run up to {percent(max(lack, LEAST))} of it may be lacking, as far as "
        f"{digits(seconds)} s show)"
    )


def _in_some(point: Point) -> bool:
    """Whether a rate that was not kept up with in some passes was kept up with in others."""
    return any(step.keeps_up for step in point.steps)


def _at_times(name: str, point: Point) -> str:
    """Of a rate that was kept up with in some passes: that is time as well as load."""
    failed = tuple(step for step in point.steps if step.keeps_up is False)
    return (
        f"In {len(failed)} of {len(point.steps)} drives at {digits(point.x)} requests per second, "
        f"{name} did not keep up: {_why_not(replace(point, steps=failed))}. In others it did, so "
        "it is not known whether the load is the reason."
    )


def _below_others(name: str, odd: Sequence[Point], higher: Sequence[Point]) -> str:
    """Of rates that were not kept up with, though higher ones were."""
    each = [
        f"{digits(p.x)} requests per second"
        + (f" in {len(p.steps)} drives" if len(p.steps) > 1 else "")
        + f" ({_why_not(p)})"
        for p in odd
    ]  # fmt: skip
    with_ = listed([digits(p.x) for p in higher])
    return (
        f"{name} did not keep up with {listed(each)}, though it did with {with_}. So it is not "
        "known whether the load is the reason: drive these rates again, in several passes "
        "(--repeat 5)."
    )


def _why_not(point: Point) -> str:
    """Why a rate is not kept up with, a clause: it fell behind, or too many requests failed."""
    if not point.falls_behind and point.errors > at.ERRORS:
        return f"it did not fall behind, but {percent(point.errors)} of the requests failed"
    answered = point.of("answered")
    per_s = f", {amount(answered)}" if answered else ""
    grew = max((s.response_growth or 0.0 for s in point.steps), default=0.0)
    queue = f", and waits grew by {digits(grew * 1e3)} ms each second" if grew > 0.001 else ""
    return f"{_achieved(point)} of the load was answered within the window{per_s}{queue}"


def _replay(name: str, own: Sequence[Point]) -> list[str]:
    said = []
    for p in own:
        answered, p99 = p.of("answered"), p.of("response_p99")
        offered = p.steps[0].offered
        if offered is None or answered is None:
            continue
        kept = {True: "keeps up with", False: "does not keep up with", None: "answers"}[p.keeps_up]
        if p.keeps_up is False and _in_some(p):
            often = sum(s.keeps_up is True for s in p.steps)
            kept = f"kept up, in {often} of {len(p.steps)} drives, with"
        tail = f"; the response p99 is {amount(p99)}" if p99 else ""
        tail = f"{_resolution(p) if p.keeps_up else ''}{tail}"
        said.append(
            f"{name} {kept} the log at {digits(p.x)} times its own speed: {digits(offered.value)} "
            f"requests per second were due, and {_achieved(p)} of them were answered within the "
            f"window{tail}."
        )
        worst = max((s.worst_minute for s in p.steps if s.worst_minute),
                    key=lambda m: m["response_p99"], default=None)  # fmt: skip
        if worst:
            said.append(
                f"In the worst minute, from {digits(worst['from_s'])} s of the window on, the p99 "
                f"was {digits(worst['response_p99'] * 1e3)} ms."
            )
    return said or [f"{name} answered no request well."]


def refused(steps: Sequence[Step]) -> list[str]:
    """What the server refused in steps that are void for another reason, which hides it."""
    found = [
        (s.error_share.value, s, f)
        for s in steps
        if s.status == "void" and s.error_share is not None and s.error_share.value > MANY
        for f in s.findings
        if f.kind in ("errors", "no answers")
    ]
    if not found:
        return []
    share, step, finding = max(found, key=lambda one: one[0])
    _, told, words_of_it = finding.meaning.partition("The server said: ")
    counts = {k.replace("_", " "): n for k, n in step.outcomes.items() if k != "ok" and n}
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in counts.items())
    cause = f"The server said: {words_of_it.rstrip('.')}." if told else "See its log."
    if any(status in words_of_it for status in ("401", "403")):
        cause += " Is a header or a password missing?"
    return [f"{percent(share)} of the requests failed at {step.label} ({kinds}). {cause}"]


def _errors(name: str, own: Sequence[Point]) -> list[str]:
    bad = [p for p in own if p.errors > at.ERRORS]
    if not bad:
        return []
    from_there = own[own.index(bad[0]) :]
    worst = max(bad, key=lambda p: p.errors)
    counts: Counter[str] = Counter()
    for step in worst.steps:
        counts.update({k.replace("_", " "): n for k, n in step.outcomes.items() if k != "ok"})
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in counts.most_common())
    unit = {"closed": "clients", "open": "requests per second", "replay": "times the speed"}
    others = "Latencies are those of the others."
    if all(_failing(p) == len(p.steps) for p in from_there):
        return [
            f"From {digits(bad[0].x)} {unit[worst.kind]} on, more than 1 % of the requests to "
            f"{name} failed: {percent(worst.errors)} at {digits(worst.x)} ({kinds}). {others}"
        ]
    where = loads_of(bad)
    part = any(_failing(p) < len(p.steps) for p in bad)
    drives = sum(len(p.steps) for p in bad)
    where = f"In {sum(map(_failing, bad))} of {drives} drives at {where}" if part else f"At {where}"
    most = percent(worst.errors)
    if len(bad) > 1 or part:
        most = f"at most {most}, at {digits(worst.x)}"
    return [f"{where}, more than 1 % of the requests to {name} failed: {most} ({kinds}). {others}"]


def _failing(point: Point) -> int:
    """In how many of its steps more than 1 % of the requests failed."""
    return sum(s.error_share.value > at.ERRORS for s in point.steps if s.error_share)


def of_subjects(
    found: Found,
    compared: Sequence[Comparison],
    agreeing: Mapping[tuple[str, str], tuple[int, int]],
    dies: Mapping[str, str] = systems.NONE,
) -> list[str]:
    """Which of several subjects sustains more, at equal load, pair by pair. ``dies``: by subject,
    that it failed in many of its drives, a clause.
    """
    names = [name for name, own in found.items() if own]
    if len(names) < 2:
        return []
    by_pair = of_pairs(found, compared)
    said = []
    if together(names, compared):
        for metric in METRICS:
            own = {pair: _of(several, metric) for pair, several in by_pair.items()}
            own = {pair: several for pair, several in own.items() if several}
            many = systems.many(names, own, metric, EQUAL_LOADS, "configurations", dies)
            said += [one for one in many if one not in said]
        differing = sum(agree < of for agree, of in (agreeing.get(p, (0, 0)) for p in by_pair))
        if differing:
            said.append(f"In {differing} of {len(by_pair)} pairs the two return different totals.")
        doubts = {
            pair: c.answers_doubt
            for pair, several in by_pair.items()
            for c in several
            if c.answers_doubt and _apart(c)
        }
        if doubts:
            (a, b), why = next(iter(doubts.items()))
            said.append(
                f"In {len(doubts)} of {len(by_pair)} pairs whoever is in front only leads: of {a} "
                f"and {b}, {why}."
            )
        not_read = sum(any(c.not_read for c in several) for several in by_pair.values())
        if not_read:
            said.append(
                f"In {not_read} of {len(by_pair)} pairs the replies were not read, so whether both "
                "answer the same is not known."
            )
        return said or ["Which of them sustains most is not resolved."]
    for (a, b), several in by_pair.items():
        said += _pair(a, b, several)
        agree, of = agreeing.get((a, b), (0, 0))
        if 0 < agree < of or (of and not agree and not several):
            said.append(disagreement(a, b, agree, of))
    return said + systems.of_dying(dies)


def together(names: Sequence[str], compared: Sequence[Comparison]) -> bool:
    """Whether subjects are spoken of together, and not pair by pair: there are many, or several
    and nothing is resolved of any.
    """
    least = 2 if not any(c.verdict in ("faster", "slower") for c in compared) else systems.FEW
    return len(names) > least


def disagreement(a: str, b: str, agree: int, of: int) -> str:
    """That two subjects do not answer alike, in a sentence."""
    if not agree:
        return f"{a} and {b} are not comparable: they return different totals on all {of} requests."
    return f"{a} and {b} return different totals on {of - agree} of {of} requests."


def in_doubt(found: Found, compared: Sequence[Comparison]) -> list[str]:
    """What keeps the ratio of two subjects from telling which is better: they may not have done
    the same work. With many subjects, of how many pairs that holds.
    """
    pairs = of_pairs(found, compared)
    hits, lists = [], []
    for (a, b), several in pairs.items():
        with_ratio = [c for c in several if c.ratio is not None]
        if other := [c for c in with_ratio if standing.other_hits(c)]:
            hits.append(
                f"On none of the {_finding(other[0])} requests with the same total were {a} and "
                f"{b} seen to return the same first hits, so whether they did the same work is "
                "unknown: look at what each returns."
            )
        elif other := [c for c in with_ratio if standing.other_ranking(c)]:
            _, of = other[0].ranked_alike or (0, 0)
            hits.append(
                f"On none of the {of} requests with the same total that could show how both rank "
                f"were {a} and {b} seen to rank hits alike, so whether they did the same work is "
                "unknown: look at what each returns."
            )
        if any(MAY_DIFFER in c.reason for c in with_ratio):
            lists.append(
                f"The requests of {a} and {b} are not the same list, so one may have been asked "
                "cheaper ones: send both the same."
            )
    if len(pairs) <= FEW:
        return hits + lists
    what = (
        (
            hits,
            "first hits or their ranking were never seen to be the same, so look at what each "
            "returns",
        ),
        (lists, "requests are not of one list, so ask all the same"),
    )
    return [f"In {len(own)} of {len(pairs)} pairs the {why}." for own, why in what if own]


def same_hits(found: Found, compared: Sequence[Comparison]) -> list[str]:
    """Of two or three subjects, on how many requests with the same total the first hits agree."""
    said = []
    for (a, b), several in of_pairs(found, compared).items():
        c = next((c for c in several if c.ratio is not None and c.same_top_k is not None), None)
        if c and 0 < (same := c.same_top_k or 0) < c.queries_used - c.empty:
            said.append(
                f"On {same} of the {_finding(c)} requests with the same total {a} and {b} "
                "return the same first hits too."
            )
    return said if len(said) <= FEW else []


def _finding(c: Comparison) -> str:
    """How many requests can have first hits; those that find nothing are counted beside them."""
    aside = f" (and {c.empty} that find nothing)" if c.empty else ""
    return f"{c.queries_used - c.empty}{aside}"


def in_the_way(compared: Sequence[Comparison], labels: Mapping[str, str]) -> list[str]:
    """What differs by more than chance and is not resolved, with the reason and the remedy.

    That of a state which was not steady stands beside what the subject sustains.
    """
    said = [
        f"In the two drives alone, {labels[c.b]} is {times(c.ratio)} as good as {labels[c.a]} by "
        f"{words(c.metric)}; which is better is not resolved: {c.reason}. Drive each several times "
        "(--repeat 5), or more loads."
        for c in compared
        if c.p_value is None and scatter.NOT_KNOWN in c.reason and _apart(c) and not c.answers_doubt
    ]
    said += [
        f"{labels[c.b]} against {labels[c.a]} by {words(c.metric)} is not resolved: {c.reason}."
        + (f" {state.REMEDIES[c.state]}" if c.state not in ("steady", "not steady", "") else "")
        for c in compared
        if c.verdict == "not resolved" and (c.p_value or 1.0) < ALPHA and not c.answers_doubt
    ]
    more = len(said) - FEW
    return said[:FEW] + ([f"The same holds for {more} more."] if more > 0 else [])


def _apart(c: Comparison) -> bool:
    """Whether its interval leaves out 1."""
    return c.ratio is not None and within.resolved(c.ratio)


def _pair(a: str, b: str, several: Sequence[Comparison]) -> list[str]:
    if not several:
        return [f"{a} and {b} have no usable steps at the same load."]
    if all(c.verdict == "not comparable" for c in several):
        return [f"{a} and {b} are not comparable: {several[0].reason}."]
    return [
        systems.pair(a, b, own, metric, EQUAL_LOADS, standing.part(own))
        or _leads(a, b, own, metric)
        or f"By {words(metric)}, which of {a} and {b} is better is not resolved at "
        + (f"any of {len(own)} equal loads." if len(own) > 1 else "their one equal load.")
        for metric in METRICS
        if (own := _of(several, metric))
    ]


def _leads(a: str, b: str, own: Sequence[Comparison], metric: str) -> str:
    """That one of the two is in front, perhaps by other answers; empty: that is no matter."""
    ahead = [c for c in own if c.answers_doubt and c.ratio is not None and _apart(c)]
    won = sum(c.ratio.value > 1 for c in ahead if c.ratio is not None)
    if not ahead or 0 < won < len(ahead):
        return ""
    why = list(dict.fromkeys(c.answers_doubt for c in ahead))
    first, second = (b, a) if won else (a, b)
    n, of = len(ahead), len(own)
    where = f"{n} of {of} {EQUAL_LOADS}" if of > 1 else "their one equal load"
    return (
        f"By {words(metric)}, {first} leads {second} at {where}, which is not resolved: {why[0]}."
    )


def _of(own: Sequence[Comparison], metric: str) -> list[Comparison]:
    return [c for c in own if c.metric == metric]


def of_pairs(
    found: Found, compared: Sequence[Comparison]
) -> dict[tuple[str, str], list[Comparison]]:
    """The comparisons of every two subjects, b against a."""
    treatments = {name: {p.treatment for p in own} for name, own in found.items()}
    return {
        (a, b): [c for c in compared if c.a in treatments[a] and c.b in treatments[b]]
        for a, b in combinations([name for name, own in found.items() if own], 2)
    }


def percent(share: float) -> str:
    """A share as per cent, never rounded to all or nothing."""
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    return two_digits(share) if share < 0.1 else f"{digits(100 * share)} %"


def _achieved(point: Point) -> str:
    shares: list[Estimate] = [s.achieved for s in point.steps if s.achieved is not None]
    if not shares:
        return "all"
    least = min(e.value for e in shares)
    return "all" if least >= 1 else percent(least)


def loads_of(own: Sequence[Point]) -> str:
    """The loads of points of one kind, in words."""
    unit = {"open": "requests per second", "replay": "times the log's speed"}
    return listed(
        [
            clients.counted(p.x) if p.kind == "closed" else f"{digits(p.x)} {unit[p.kind]}"
            for p in own
        ]
    )
