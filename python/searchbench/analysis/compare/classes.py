"""What two records say by class of queries, beside the whole: a sentence for each treatment.

The whole decides whether anything became slower (the exit status); a class that says something else
is named, because its users meet it and not the whole. A class whose requests fail is lost itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from searchbench.analysis.answer import Rank, Said
from searchbench.analysis.compare import classes_failed
from searchbench.analysis.compare.by_class import NAMED, greatest_first, size
from searchbench.analysis.compare.decision import as_good
from searchbench.analysis.compare.further import Further, gathered
from searchbench.analysis.compare.run import Run
from searchbench.analysis.judgement import ClassLine, RecordLine, TrialResult
from searchbench.analysis.trial import driven
from searchbench.analysis.words import digits, listed, percent, words

_SHOWN = 3  # treatments that get a sentence
_OF_CLASSES = ("response_p99", "service_p99")  # where that of the whole is throughput
_VERDICTS = ("slower", "differs", "faster")
_SAID = {"slower": "is slower", "differs": "differs", "faster": "is faster"}


def metric_of(found: Sequence[ClassLine], metric: str) -> str:
    """By which metric classes are told: that of the whole, if any class has it."""
    known = {one.line.metric for one in found if one.line.ratio}
    return next((name for name in (metric, *_OF_CLASSES) if name in known), metric)


def common(runs: Sequence[Run]) -> tuple[list[str], str]:
    """The classes that have the same queries in all runs, in the order of the first run; and what
    is left out, a sentence.
    """
    known = [run.classes for run in runs]
    if not any(known):
        return [], ""
    of_all = [one for one in known if one is not None]
    if len(of_all) < len(known):
        return [], "Not all runs have classes of queries, so no class was compared."
    first = of_all[0]
    same = [
        name for name in first.names
        if all(
            name in one.names and np.array_equal(first.members(name), one.members(name))
            for one in of_all
        )
    ]  # fmt: skip
    every = dict.fromkeys(name for one in of_all for name in one.names)
    other = [name for name in every if name not in same]
    if not other:
        return same, ""
    if len(other) == 1:
        return same, (
            f"The class {other[0]} does not have the same queries in all runs, so it was not "
            "compared."
        )
    which = f"The classes {listed(other)}" if len(other) <= NAMED else f"{len(other)} classes"
    return same, (f"{which} do not have the same queries in all runs, so they were not compared.")


def sentences(
    found: Sequence[ClassLine],
    lines: Sequence[RecordLine],
    metric: str,
    fails: Mapping[str, Sequence[str]],
) -> Iterator[Said]:
    """Of each treatment of which a class is resolved, at most of the first few. ``fails``: by label
    the classes of which the second surely fails requests.
    """
    metric = metric_of(found, metric)
    own: dict[str, list[ClassLine]] = {}
    for one in found:
        if one.line.metric == metric:
            own.setdefault(one.line.label, []).append(one)
    told = [
        label for label, of in own.items()
        if fails.get(label) or any(c.line.verdict in _VERDICTS for c in of)
    ]  # fmt: skip
    for label in told[:_SHOWN]:
        whole = next((x for x in lines if (x.label, x.metric) == (label, metric)), None)
        which = f" of {label}" if len(own) > 1 else ""
        yield Said(
            _of_treatment(own[label], whole, which, metric, fails.get(label, ())), Rank.DOUBT
        )
    if (more := len(told) - _SHOWN) > 0:
        yield Said(f"Classes differ in {more} more treatments.", Rank.MORE)


def failing(
    before: Sequence[Run],
    after: Sequence[Run],
    lines: Sequence[RecordLine],
    names: Sequence[str],
) -> tuple[Further, dict[str, list[str]]]:
    """What the second fails of these classes; and by label the classes that it surely fails.
    ``lines``: of the treatments or loads that both have.
    """
    labels, subjects, found = list[str](), list[str](), list[classes_failed.Case]()
    for line in {line.label: line for line in lines}.values():
        own = [*classes_failed.cases(_trials(before, line), _trials(after, line), names)]
        labels += [line.label] * len(own)
        subjects += [_subject(before[0], line)] * len(own)
        found += own
    each = [*zip(labels, classes_failed.together(found, subjects), strict=True)]
    lost = [(label, one) for label, one in each if one.sure]
    unsure = [(label, one) for label, one in each if one.likely and not one.sure]
    surely: dict[str, list[str]] = {}
    for label, one in lost:
        surely.setdefault(label, []).append(one.name)
    more = "; run both more often to know whether that is chance"
    rest = [(label, one) for label, one in each if one.more and not (one.sure or one.likely)]
    said = [f"{label}: {why}." for label, why in _whys(rest).items()]
    return Further(_whys(lost), not_known=_whys(unsure, more), said=said), surely


def _whys(found: Sequence[tuple[str, classes_failed.Case]], more: str = "") -> dict[str, str]:
    """By label a clause on its classes, those of which most failed first."""
    of: dict[str, list[classes_failed.Case]] = {}
    for label, one in found:
        of.setdefault(label, []).append(one)
    whys = []
    for label, own in of.items():
        own.sort(key=lambda one: -one.b.share)
        whys += [(label, _clause(one)) for one in own[:NAMED]]
        if (rest := len(own) - NAMED) > 0:
            whys.append((label, f"and it fails requests of {rest} more classes"))
    return {label: f"{why}{more}" for label, why in gathered(whys).items()}


def _clause(one: classes_failed.Case) -> str:
    a, b = one.a, one.b
    failing = f"all {b.requests:,}" if b.none_good else f"{percent(b.share)} of the"
    where = "" if b.none_good else f", in {b.fail} of {b.trials} trials"
    return (
        f"it fails {failing} requests of the class {one.name} in the second{where}, and "
        f"{percent(a.share) if a.failed else 'none'} in the first"
    )


def _subject(run: Run, line: RecordLine) -> str:
    """Of a load of a sweep, whose it is; else empty."""
    key = run.key_of(line)
    if run.judged.measure != "sweep" or key is None or key not in run.by_key:
        return ""
    return driven.subjects(run.record)[run.by_key[key].treatment]


def _trials(runs: Sequence[Run], line: RecordLine) -> list[TrialResult]:
    keys = [(run, key) for run in runs if (key := run.key_of(line)) in run.by_key]
    return [trial for run, key in keys if key for trial in classes_failed.counted(run.by_key[key])]


def _of_treatment(
    found: Sequence[ClassLine],
    whole: RecordLine | None,
    which: str,
    metric: str,
    fails: Sequence[str],
) -> str:
    parts = []
    for verdict in _VERDICTS:
        own = [one for one in found if one.line.verdict == verdict]
        if own:
            parts.append(f"{_SAID[verdict]} for {_named(own, metric)}")
    other = [one.name for one in found if one.line.verdict == "not resolved"]
    if fails:
        parts.append(f"fails requests of {_few(fails)}")
        other = [name for name in other if name not in fails]
    if other:
        parts.append(f"{'is ' if fails else ''}not shown to differ for {_few(other)}")
    but = ""
    if whole is not None and whole.verdict in _VERDICTS and any(_against(o, whole) for o in found):
        but = f"{_SAID[whole.verdict]} overall ({_ratio(whole)}) and "
    return f"By class of queries and {words(metric)}, the second{which} {but}{', '.join(parts)}."


def _few(names: Sequence[str]) -> str:
    return listed(names) if len(names) <= NAMED else f"{len(names)} classes"


def _against(one: ClassLine, whole: RecordLine) -> bool:
    """Whether a class is resolved the other way than the whole."""
    mine, of_all = one.line.ratio, whole.ratio
    if one.line.verdict not in _VERDICTS or mine is None or of_all is None:
        return False
    return (mine.value > 1) != (of_all.value > 1)


def _named(found: Sequence[ClassLine], metric: str) -> str:
    return greatest_first(
        [(size(one.line.ratio), f"{one.name} ({_ratio(one.line)})") for one in found]
    )


def _ratio(line: RecordLine) -> str:
    return f"{digits(line.ratio.value)}× {as_good(line.metric)}" if line.ratio else ""
