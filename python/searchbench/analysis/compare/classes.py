"""What two records say by class of queries, beside the whole: a sentence for each treatment.

The whole decides whether anything was lost (the exit status); a class that says something else is
named, because its users meet it and not the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from searchbench.analysis.answer import Rank, Said
from searchbench.analysis.compare.by_class import NAMED, greatest_first, size
from searchbench.analysis.compare.decision import as_good
from searchbench.analysis.judgement import ClassLine, RecordLine
from searchbench.analysis.words import digits, listed, words

_SHOWN = 3  # treatments that get a sentence
_OF_CLASSES = ("response_p99", "service_p99")  # where that of the whole is throughput
_VERDICTS = ("slower", "differs", "faster")
_SAID = {"slower": "is slower", "differs": "differs", "faster": "is faster"}


def metric_of(found: Sequence[ClassLine], metric: str) -> str:
    """By which metric classes are told: that of the whole, if any class has it."""
    known = {one.line.metric for one in found if one.line.ratio}
    return next((name for name in (metric, *_OF_CLASSES) if name in known), metric)


def sentences(
    found: Sequence[ClassLine], lines: Sequence[RecordLine], metric: str
) -> Iterator[Said]:
    """Of each treatment of which a class is resolved, at most of the first few."""
    metric = metric_of(found, metric)
    own: dict[str, list[ClassLine]] = {}
    for one in found:
        if one.line.metric == metric:
            own.setdefault(one.line.label, []).append(one)
    told = [label for label, of in own.items() if any(c.line.verdict in _VERDICTS for c in of)]
    for label in told[:_SHOWN]:
        whole = next((x for x in lines if (x.label, x.metric) == (label, metric)), None)
        which = f" of {label}" if len(own) > 1 else ""
        yield Said(_of_treatment(own[label], whole, which, metric), Rank.DOUBT)
    if (more := len(told) - _SHOWN) > 0:
        yield Said(f"Classes differ in {more} more treatments.", Rank.MORE)


def _of_treatment(
    found: Sequence[ClassLine], whole: RecordLine | None, which: str, metric: str
) -> str:
    parts = []
    for verdict in _VERDICTS:
        own = [one for one in found if one.line.verdict == verdict]
        if own:
            parts.append(f"{_SAID[verdict]} for {_named(own, metric)}")
    other = [one.name for one in found if one.line.verdict == "not resolved"]
    if other:
        few = listed(other) if len(other) <= NAMED else f"{len(other)} classes"
        parts.append(f"not shown to differ for {few}")
    but = ""
    if whole is not None and whole.verdict in _VERDICTS and any(_against(o, whole) for o in found):
        but = f"{_SAID[whole.verdict]} overall ({_ratio(whole)}) and "
    return f"By class of queries and {words(metric)}, the second{which} {but}{', '.join(parts)}."


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
