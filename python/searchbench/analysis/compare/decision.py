"""What is said of two records: the decision, what it rests on, a table for the terminal.

Longer than most files, because sentences that stand side by side are written side by side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from searchbench.analysis.answer import Rank, Said, said
from searchbench.analysis.compare import (
    answered,
    builds,
    late,
    less_beside,
    standing,
    taken,
    uncounted,
    unread,
)
from searchbench.analysis.compare.further import Further
from searchbench.analysis.compare.lost import Lost
from searchbench.analysis.compare.state import REMEDIES
from searchbench.analysis.compare.sweeps import Matched
from searchbench.analysis.compare.verdict import clip
from searchbench.analysis.judgement import (
    ClassLine,
    Estimate,
    Interval,
    Judgement,
    RecordLine,
)
from searchbench.analysis.stats.intervals import ALPHA, LEVEL
from searchbench.analysis.words import (
    digits,
    listed,
    most_frequent,
    of_job,
    percent,
    plural,
    told,
    upper,
)

WIDTH_LABEL = 24
_TIMES = ((1e6, "µs"), (1e3, "ms"), (1.0, "s"))
_SHOWN = 4  # treatments that are named
_NAMED = 20  # of those that are on one record alone
OVER = {
    "asked": ", over everything asked, whatever is answered",
    "counted": ", over all requests, each at the usual cost of its query",
}
RUNS_UNKNOWN = (
    "How much runs of the same thing differ is not known, and no interval covers it: run both "
    "again, in turns, and give those records with --same and --same-b."
)

MEND = "Find out why these requests fail, fix that, and run it again."
BUILD = 'Build the index in each block ([ingest] index = "per-block"), or for each of several runs.'
AGAIN = (
    "give further runs of both, each on a start of its own that searchbench makes (--same and "
    "--same-b), as no record says when a system that ran already was started"
)
MIXED = "runs of one side are not of the same version and settings"
APART = "Give only runs of one version, with the same settings, for each side."
OTHER_MACHINE = "all runs of one side were made on another machine than those of the other"
OTHER_CLOCK = "the CPU frequency was lower in all runs of one side than in any run of the other"
ONE_DRAW = (
    "several runs of one side sent their requests in the same order and at the same times, and "
    "another order could change the result"
)
DRAW = (
    "Run both again without draw_seed (searchbench load: without --seed), so that each run draws "
    "an order of its own."
)
START = f"To know how much starts differ, {AGAIN}."


def sentences(
    lines: Sequence[RecordLine],
    worse: Sequence[RecordLine],
    found: Matched,
    metric: str,
    threshold: float,
    gone: Lost,
    dropped: Mapping[str, str],
    require: str,
    of_classes: Sequence[str] = (),
    further: Further | None = None,
) -> list[Said]:
    """The decision, by ``metric``; ``worse``: lines whose loss is beyond the threshold.
    ``of_classes``: those of which a loss is (``classes_lost``).

    ``gone``: what the second lost, and of what nothing can be told; ``dropped``: by label, which
    answers it lost. ``require``: what agreeing means. ``further``: what else it lost.
    """
    lost, further = gone.lost, further or Further()
    own = [line for line in lines if line.metric == metric]
    if own:
        counts = {
            verdict: sum(line.verdict == verdict for line in own)
            for verdict in ("faster", "slower", "differs", "not resolved", "not comparable")
        }
        parts = ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n)
        one = next((line.single for line in own if line.single), "")
        which = f"in the only run of the {one}" if one else "in these two runs"
        if any(OTHER_MACHINE in line.reason for line in own):
            which = "on two machines"
        elif any(OTHER_CLOCK in line.reason for line in own):
            which = "at two CPU frequencies"
        parts = parts.replace("differs", f"different {which}")
        many = plural(len(own), "treatment", "treatments")
        told = [Said(f"By {metric.replace('_', ' ')}, of {len(own)} {many}: {parts}.")]
    else:
        none = "The records have no treatment in common, so there is nothing to compare."
        told = [Said(none, Rank.ANSWER)]
    answer = [
        _of_lost(lost, found.unit),
        _of_dropped(dropped),
        *_of_further(further),
        _of_unknown(gone.not_known),
    ]
    other = "; the second may give other answers" if any(map(_otherwise, own)) else ""
    if worse:
        _, ratio, worst = min(
            ((line.run_sd is None, line.ratio.value, line) for line in worse if line.ratio),
            key=lambda one: one[:2],
        )
        how = (
            f"{worst.label} by {worst.metric.replace('_', ' ')} is {100 * (1 - ratio):.1f} % worse"
            f"{_between(worst)}"
        )
        few = standing.few([worst]) + OVER.get(worst.over, "")
        beyond = f"{100 * threshold:g} %"
        answer.append(
            f"{_differ(worst, beyond)}: {how} in the second{few}{other}."
            if worst.verdict == "differs"
            else f"A regression beyond {beyond}: {how} than before{few}{other}."
        )
    elif any(line.ratio for line in own):
        beyond = f"resolved loss exceeds {100 * threshold:g} %{standing.few(own)}"
        named = {**lost, **dropped, **gone.not_known}
        others = any(line.ratio and line.label not in named for line in own)
        which = "Of the others, no" if named and others else "No"
        if which == "No" and (named or further.worse or further.not_known):
            which = "Otherwise no"
        but = f", but {_more(of_classes)}" if of_classes else ""
        which = "Over all queries no" if but and which == "No" else which
        answer.append(f"{which} {beyond}{_not_excluded(own, lines, threshold)}{other}{but}.")
    elif own and not any(line.label not in gone.not_known for line in own):
        pass  # the reason is told already
    elif own:
        why, _ = most_frequent([line.reason for line in own])
        answer.append(f"No speed could be compared between the two records: {why}.")
    told += said(answer, Rank.ANSWER)
    told += said(
        [_of_absent(found.absent), _only_in_first(found, {**lost, **gone.not_known})], Rank.DOUBT
    )
    told += said([*gone.partly, *further.said], Rank.DOUBT)
    counted = uncounted.sentence(lines, gone.not_known)
    told += said([counted, _only_leads(own, found.unit)], Rank.DOUBT)
    told += said([_of_queries(own, require, found.unit)], Rank.MORE)
    built = builds.sentence([line.build_floor for line in own])
    ran = any(line.ran_already for line in own)
    started = builds.of_starts([line.start_floor for line in own], AGAIN, found=ran)
    told += said([_of_doubts(own), _of_failed(own), built, started], Rank.DOUBT)
    runs = _of_runs(own)
    told += said([runs], Rank.DOUBT if runs == RUNS_UNKNOWN else Rank.ASIDE)
    told += said([answered.sentence(found.agreed), unread.sentence(found.unread)], Rank.DOUBT)
    told += said([_named("Only in the second", found.only[1])], Rank.MORE)
    return told


def classes_lost(found: Sequence[ClassLine], threshold: float) -> list[str]:
    """The classes of which a loss beyond the threshold is resolved, by any metric."""
    lost = (
        one.name
        for one in found
        if one.line.verdict in ("slower", "differs")
        and one.line.ratio
        and one.line.ratio.value < 1 - threshold
    )
    return [*dict.fromkeys(lost)]


def _more(names: Sequence[str]) -> str:
    what = "the class" if len(names) == 1 else "the classes"
    return f"{what} {listed(names) if len(names) <= _SHOWN else _all(names)} lost more than that"


def _otherwise(line: RecordLine) -> bool:
    """Whether its second side may give other answers, as far as that matters."""
    return bool(line.answers_doubt) and (
        math.isinf(line.answers_floor) or line.answers_doubt in line.reason
    )


def _only_leads(lines: Sequence[RecordLine], unit: str) -> str:
    """That the second is in front, perhaps by other answers; empty: it is not."""
    ahead = [
        line
        for line in lines
        if line.answers_doubt and line.answers_doubt in line.reason and line.ratio
        and line.ratio.value > 1 and (line.p_value is None or line.p_value < ALPHA)
    ]  # fmt: skip
    if not ahead:
        return ""
    n, of = len(ahead), len(lines)
    where = f" in {n} of {of} {unit}s" if of > 1 else ""
    metric, why = ahead[0].metric.replace("_", " "), ahead[0].answers_doubt
    return f"By {metric} the second leads{where}, which is not resolved: {why}."


def _differ(line: RecordLine, beyond: str) -> str:
    """That two runs differ, or that the only run of one side lies outside those of the other."""
    if OTHER_MACHINE in line.reason:
        return (
            f"The two were run on two machines, and differ by more than {beyond}; the machine may "
            "be the reason"
        )
    if OTHER_CLOCK in line.reason:
        return (
            f"The two were run at two CPU frequencies, and differ by more than {beyond}; the CPU "
            "frequency may be the reason"
        )
    if not line.single:
        return (
            f"These two runs differ by more than {beyond}, and by more than the noise within them"
        )
    other = "second" if line.single == "first" else "first"
    return (
        f"The only run of the {line.single} differs from the {max(line.runs)} runs of the {other} "
        f"by more than {beyond}, and by more than these differ among themselves"
    )


def _of_absent(names: Sequence[str]) -> str:
    """By name, what the second has nothing of, so that no line is about it; empty: nothing."""
    if not names:
        return ""
    is_, it, them = ("is", "it", "it") if len(names) == 1 else ("are", "they", "them")
    return (
        f"{_all(names)} {is_} only in the first record, so whether {it} changed is not known: "
        f"measure {them} in the second too."
    )


def _only_in_first(found: Matched, lost: Mapping[str, str]) -> str:
    """What else the first record alone has."""
    said_before = {*found.absent, *lost}
    return _named("Only in the first", [x for x in found.only[0] if x not in said_before])


def _named(where: str, labels: Sequence[str]) -> str:
    return f"{where}: {_all(labels)}." if labels else ""


def _all(names: Sequence[str]) -> str:
    """Every name, but of very many."""
    shown = [*names[:_NAMED]] + ([f"{len(names) - _NAMED} more"] if len(names) > _NAMED else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _between(line: RecordLine) -> str:
    """The interval of a loss; empty where it is not known, as of a bound."""
    span = line.ratio.interval if line.ratio else None
    if span is None:
        return ""
    return f" (95 % interval {100 * (1 - span.high):.1f} to {100 * (1 - span.low):.1f} %)"


def _with_reasons(whys: Mapping[str, str]) -> str:
    """The first of these, each with its reason, and how many more there are."""
    named = [f"{label} ({why})" for label, why in [*whys.items()][:_SHOWN]]
    more = [f"and {len(whys) - _SHOWN} more"] if len(whys) > _SHOWN else []
    return "; ".join([*named, *more])


def _of_lost(lost: Mapping[str, str], unit: str) -> str:
    """What worked in the first and not in the second, with the reasons."""
    if not lost:
        return ""
    how = "answered well in the first and not in the second"
    if unit != "trial" and any(why.endswith(" runs") for why in lost.values()):
        how = "answered well in the first, and not in half of the second's runs or more"
    if unit == "trial":
        how = "with valid trials in the first and none in the second"
        if any(why.endswith(" runs") for why in lost.values()):
            how = "with valid trials in the first, and none in half of the second's runs or more"
    return f"Lost, {how}: {_with_reasons(lost)}."


def _of_dropped(dropped: Mapping[str, str]) -> str:
    """Which answers the second lost; empty: none."""
    if not dropped:
        return ""
    return f"Lost answers: {_with_reasons(dropped)}."


def _of_further(found: Further) -> Iterator[str]:
    """What was lost that no line of times shows, and of what that is not known."""
    if found.lost:
        yield f"Lost: {_with_reasons(found.lost)}."
    if found.later:
        later = "Answers were normal again later in the second than in the first"
        yield f"{later}: {_with_reasons(found.later)}."
    if found.not_known:
        yield f"Cannot tell whether this is a loss: {_with_reasons(found.not_known)}."


def _of_unknown(not_known: Mapping[str, str]) -> str:
    """Of what it cannot be told whether it became slower; empty: of nothing."""
    if not not_known:
        return ""
    return f"Cannot tell whether these became slower: {_with_reasons(not_known)}."


def _not_excluded(
    lines: Sequence[RecordLine], every: Sequence[RecordLine], threshold: float
) -> str:
    """What loss may be hidden, also by another metric; empty where none beyond the threshold is."""
    most, by_failed = hidden_loss(lines)
    said = f", but one of {100 * most:.1f} % is not excluded" if most > threshold else ""
    own = {line.metric for line in lines}
    others = [(hidden_loss([line])[0], line) for line in every if line.metric not in own]
    further, line = max(others, key=lambda one: one[0], default=(0.0, None))
    if line is not None and further > max(most, threshold):
        by = f"by {line.metric.replace('_', ' ')}"
        more = f"one of {100 * further:.1f} % {by}"
        said = f"{said}, nor {more}" if said else f", but {more} is not excluded"
    of_times = (line for line in lines if not line.metric.startswith("capacity"))
    if any(line.ratio and line.ratio.interval is None for line in of_times):
        said = said or ", but how large a one may be is not known, as there is no interval"
    return said or (", but what the second failed to answer may hide one" if by_failed else "")


def hidden_loss(lines: Sequence[RecordLine]) -> tuple[float, bool]:
    """The greatest loss that intervals, builds and starts do not exclude, as a share; and whether
    the second failed more requests than the first, which may hide any.
    """
    own = [line for line in lines if line.ratio]
    lows = [line.ratio.interval.low / max(line.build_floor, line.start_floor)
            for line in own if line.ratio and line.ratio.interval]  # fmt: skip
    return 1 - min(lows, default=1.0), any(line.failed[1] > line.failed[0] for line in own)


def _of_queries(lines: Sequence[RecordLine], require: str, unit: str) -> str:
    """Over how many queries the ratios are, those that rest on the fewest first."""
    found = [line for line in lines if line.ratio and line.queries_measured is not None]
    if not found:
        return ""
    least = min(found, key=lambda one: (one.queries_measured or 0) / max(1, one.queries_used))
    used, measured = least.queries_used, least.queries_measured
    which = f"the {used} queries on which both return the same {require}"
    if require == "none":
        which = f"all {used} queries, whatever they return"
    if least.over != "alike":
        which = f"the {used} queries that either measured, whatever is answered"
    if unit == "step":
        which = f"the {used} queries that either measured"
        if "queries that both answer alike" in least.reason:
            which = f"the {used} queries that either measured and that both answer alike"
    if not standing.covered(least):
        return (
            f"Of {which}, only {measured} were measured on both sides in one block of "
            f"{least.label}; how fast the others are is unknown."
        )
    count = "all" if measured == used else f"at least {measured}"
    alike = len({(line.queries_used, line.queries_measured) for line in found}) == 1
    first = "Ratios are" if alike else "Where they rest on the fewest queries, ratios are"
    return f"{first} over {which}, {count} of them measured on both sides."


def _of_failed(lines: Sequence[RecordLine]) -> str:
    """That requests failed, which no figure holds."""
    found = [
        f"of those to {line.label} {percent(line.failed[0])} in the first, "
        f"{percent(line.failed[1])} in the second"
        for line in lines
        if line.ratio and any(line.failed)
    ]
    return f"Failed requests are in none of these figures: {'; '.join(found)}." if found else ""


def _of_doubts(lines: Sequence[RecordLine]) -> str:
    """What is not resolved although it is more than chance, and the remedies."""
    own = [line for line in lines if (line.p_value or 0) < ALPHA]  # single searches have none
    found = [(line, said) for line in own if (said := remedy(line))]
    each = " ".join(f"{line.label}: {line.reason}. {of}" for line, of in found[:_SHOWN])
    more = len(found) - _SHOWN
    return each + (f" The same holds for {more} more." if more > 0 else "")


def remedy(line: RecordLine) -> str:
    """What would lift that which keeps its ratio from being resolved, other than noise."""
    if line.ratio is None or line.verdict != "not resolved":
        return ""
    if line.p_value is None and not line.metric.startswith("capacity"):
        return ""  # without a p its interval is not known, whatever else is
    floors = (
        (line.state_floor, REMEDIES.get(line.state, "")),
        (line.failed_floor, MEND),
        (line.build_floor, BUILD),
        (line.start_floor, START),
    )
    size = abs(math.log(line.ratio.value))
    found = [said for most, said in floors if most > 1 and said and size <= math.log(most)]
    said = (
        (late.LATE, late.REMEDY),
        (taken.TAKEN, taken.REMEDY),
        (less_beside.FEWER, less_beside.REMEDY),
        (ONE_DRAW, DRAW),
        (MIXED, APART),
    )
    return " ".join([*found, *(remedy for why, remedy in said if why in line.reason)])


def _of_runs(lines: Sequence[RecordLine]) -> str:
    """What is known of how much runs of one thing differ."""
    own = [line for line in lines if line.ratio]
    known = [line for line in own if line.run_sd is not None]
    if not known:
        return RUNS_UNKNOWN if own else ""
    single = next((line.single for line in known if line.single), "")
    sides = [
        f"{'those' if said else 'Runs'} of the {which} differ by {said_of}"
        for said, which, said_of in _sides(known)
    ]
    said = f"{' and '.join(sides)} (standard deviation)"
    unknown = len(own) - len(known)
    rest = f"; of {unknown} of {len(own)} treatments it is not known" if unknown else ""
    if not single:
        return f"{said}, and the intervals cover it{rest}."
    flag = "--same" if single == "first" else "--same-b"
    return (
        f"{said}{rest}. How much runs of the {single} differ is not known: the intervals assume "
        "that they differ as much, but each start may have a speed of its own. Run it again, and "
        f"give those records with {flag}."
    )


def _sides(known: Sequence[RecordLine]) -> Iterator[tuple[bool, str, str]]:
    """Of each side of which it is known how much its runs differ: whether one was before, which it
    is, and by how much, over how few runs.
    """
    before = False
    for at, which in enumerate(("first", "second")):
        found = [(sd, line.runs[at]) for line in known if (sd := line.run_sds[at]) is not None]
        if found:
            shares = [f"{100 * math.expm1(sd):.1f}" for sd, _ in (min(found), max(found))]
            runs = min(n for _, n in found)
            yield before, which, f"{' to '.join(dict.fromkeys(shares))} % in {runs} runs"
            before = True


def table(
    lines: Sequence[RecordLine], metric: str
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Header and rows for a terminal, those of ``metric`` first.

    Both values stand beside the ratio and its cell is words, because a ratio of speeds beside a
    latency is else read as one of times, upside down.
    """
    rows = tuple(
        (clip(line.label, WIDTH_LABEL), line.metric.replace("_", " "), *cells(line))
        for line in sorted(lines, key=lambda line: line.metric != metric)
    )
    return ("treatment", "metric", *VALUES), rows


VALUES = ("first", "second", "second is", "95 %", "verdict")


def cells(line: RecordLine) -> tuple[str, ...]:
    """The cells of a line on a terminal, below ``VALUES``."""
    ratio, span = line.ratio, line.ratio.interval if line.ratio else None
    return (
        _value(line.value_a),
        _value(line.value_b),
        f"{ratio.value:.3f}× {as_good(line.metric)}" if ratio else "-",
        _ends(span) if span and not is_rough(ratio) else "-",
        line.verdict,
    )


def _ends(span: Interval) -> str:
    return f"{span.low:.2f}–{span.high:.2f}" if told(span) else "not known"


def is_rough(estimate: Estimate | None) -> bool:
    """Whether its interval holds the truth in fewer than 95 % of cases: of too little effort."""
    span = estimate.interval if estimate else None
    return span is not None and span.level < LEVEL


def as_good(metric: str) -> str:
    """What a ratio above 1 says of the second: "as fast", of rates "as much", else "as good"."""
    if metric == "throughput" or metric.startswith("capacity"):
        return "as much"
    timed = metric.startswith(("service_", "response_")) or of_job(metric)
    return "as fast" if timed else "as good"


def _value(figure: Estimate | None) -> str:
    if figure is None:
        return "-"
    if figure.unit == "s":
        by, unit = next((one for one in _TIMES if figure.value * one[0] < 1000), _TIMES[-1])
        return f"{digits(figure.value * by)} {unit}"
    return digits(figure.value) + {"queries/s": "/s", "1/s": "/s"}.get(
        figure.unit, f" {figure.unit}"
    )


def reasons(lines: Sequence[RecordLine], metric: str) -> Iterator[str]:
    """Why lines are not resolved or not comparable, those of ``metric`` first: a sentence each."""
    found: dict[tuple[str, str], list[str]] = {}
    for line in sorted(lines, key=lambda line: line.metric != metric):
        if line.reason and line.verdict in ("not resolved", "not comparable"):
            name = f"{line.label} by {line.metric.replace('_', ' ')}"
            found.setdefault((line.verdict, line.reason), []).append(name)
    for (verdict, reason), names in found.items():
        yield f"{upper(verdict)}: {listed(names)} ({reason})."


def around(
    decision: Sequence[Said],
    sides: Sequence[Judgement],
    lines: Sequence[RecordLine],
    note: str,
    gone: bool,
) -> Iterator[Said]:
    """The decision on two sweeps or searches, after what is void and before what is not known.

    What is void in a search that has an interval all the same comes after the decision. So does
    what is void where something is lost or unknown (``gone``): of that the decision has the reason.
    """
    void: dict[bool, list[str]] = {True: [], False: []}
    for which, side in zip(("first", "second"), sides, strict=True):
        told = side.void.replace("Void:", f"Void, in the {which} record:", 1)
        void[side.void_first and not gone].append(told)
    yield from said(void[True], Rank.ANSWER)
    yield from decision
    yield from said(void[False], Rank.DOUBT)
    behind = [line for line in lines if "keep up with this rate" in line.reason]
    yield from said((f"{line.label}: {line.reason}." for line in behind[:3]), Rank.DOUBT)
    yield from said([note], Rank.DOUBT)
