"""What would change the answer about two records, the most effective first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from searchbench.analysis.compare import answered, standing
from searchbench.analysis.compare.decision import remedy
from searchbench.analysis.judgement import Agreement, Finding, Judgement, RecordLine
from searchbench.analysis.stats.distributions import student
from searchbench.analysis.stats.intervals import LEVEL, runs_to_resolve
from searchbench.analysis.words import plural

_MORE = 3  # further runs of either side that are looked at where there are none
_SHOWN = 3  # treatments that are named for one reason


def would_change(
    lines: Sequence[RecordLine],
    metric: str,
    agreed: Mapping[str, Agreement],
    findings: Sequence[Finding],
    sides: Sequence[Judgement],
    threshold: float,
    lost: Mapping[str, str],
) -> tuple[str, ...]:
    """A sentence for each. ``metric``: the one that decides; ``sides``: first and second.

    ``lost``: by label, why the second has no valid trial.
    """
    own = [line for line in lines if line.metric == metric]
    noise = [*_unrepeated(own)], [*_unresolved(own, tests=len(lines))]
    # Where the two runs do not differ by more than the noise within them, that comes first.
    first, then = noise if any(line.verdict == "differs" for line in own) else noise[::-1]
    return (
        *_of_lost(lost, "trials" in (side.measure for side in sides)),
        *_not_comparable([line for line in own if line.label not in lost]),
        *_doubts(own),
        *_few_queries(own),
        *_of_kinds(findings, "other machine", "CPU frequency"),
        *first,
        *then,
        *_of_kinds(findings, "not interleaved", "not the same"),
        *_answers(agreed),
        *_trials(sides),
        *(() if lost else _at_threshold(lines, threshold)),
    )  # fmt: skip


def _of_kinds(findings: Sequence[Finding], *kinds: str) -> Iterator[str]:
    yield from (f"{f.meaning} {f.remedy}" for f in findings if f.kind in kinds)


def _of_lost(lost: Mapping[str, str], trials: bool) -> Iterator[str]:
    how = "has no valid trial of" if trials else "failed at"
    for label, why in [*lost.items()][:_SHOWN]:
        yield f"The second {how} {label} ({why}): fix that and run it again."
    if len(lost) > _SHOWN:
        yield f"The same holds for {len(lost) - _SHOWN} more: see `lost` in the JSON."


def _not_comparable(lines: Sequence[RecordLine]) -> Iterator[str]:
    reasons = Counter(line.reason for line in lines if line.verdict == "not comparable")
    for reason, n in reasons.most_common():
        many = plural(n, "treatment", "treatments")
        what = (
            "fix what spoils trials and run it" if "valid trial" in reason else "measure the same"
        )
        again = "again" if "valid trial" in reason else "in both records"
        yield f"Of {n} {many} nothing is known, because {reason}: {what} {again}."


def _doubts(lines: Sequence[RecordLine]) -> Iterator[str]:
    found = [(line, said) for line in lines if (said := remedy(line))]
    yield from (f"{line.label}: {line.reason}. {said}" for line, said in found[:_SHOWN])


def _few_queries(lines: Sequence[RecordLine]) -> Iterator[str]:
    found = [line for line in lines if standing.few([line])]
    for line in found[:_SHOWN]:
        yield (
            f"{line.label}: only {line.queries_measured} of {line.queries_used} queries were "
            "measured on both sides in one block: measure longer, or draw fewer distinct queries."
        )


def _unrepeated(lines: Sequence[RecordLine]) -> Iterator[str]:
    """Further runs: what they would have to show for the greatest difference."""
    if single := next((line.single for line in lines if line.single), ""):
        flag = "--same" if single == "first" else "--same-b"
        yield (
            f"Further runs of the {single} ({flag}, three or more) would show how much its own "
            "starts differ; until then no difference is called faster or slower."
        )
    own = [line for line in lines if line.ratio and line.run_sd is None]
    if not own:
        return
    said = (
        "Further runs of both (--same and --same-b, three or more of each, in turns) would show "
        "how much runs of the same thing differ."
    )
    found = [line for line in own if line.verdict == "differs" and line.ratio]
    if found:
        most = max(found, key=_size)
        per_sd = student(0.5 + LEVEL / 2, 2 * _MORE) * math.sqrt(2 / (1 + _MORE))
        said += (
            f" With {_MORE} more of each, {most.label} ({_said(most)}) is resolved, before the "
            "correction for all comparisons, if runs of the same thing differ by less than about "
            f"{100 * math.expm1(_size(most) / per_sd):.1f} % (standard deviation)."
        )
    yield said


def _unresolved(lines: Sequence[RecordLine], tests: int) -> Iterator[str]:
    """What would resolve what is not resolved: runs, or trials where the noise is within runs."""
    open_ = [
        line
        for line in lines
        if line.verdict == "not resolved" and line.ratio and not remedy(line)
        and not (line.answers_doubt and line.answers_doubt in line.reason)
    ]  # fmt: skip
    within = [line.label for line in open_ if _by_trials(line)]
    if within:
        more = f" and {len(within) - _SHOWN} more" if len(within) > _SHOWN else ""
        yield (
            f"The noise of the trials within a run decides the interval of "
            f"{', '.join(within[:_SHOWN])}{more}: more trials in each run (replicates), or longer "
            "ones, would narrow it."
        )
    own = [
        (line, found)
        for line in open_
        if line.run_sd is not None and not _by_trials(line)
        and (found := runs_to_resolve(_log(line), line.run_sd, sum(line.runs) - 2, tests))
    ]  # fmt: skip
    for line, (least, most) in sorted(own, key=lambda one: one[1][0])[:_SHOWN]:
        runs = f"{least} or more" if most is None else f"{least} to {most}"
        yield (
            f"About {least if most == least else runs} runs of each would resolve the difference "
            f"of {line.label}, if it is as large as it looks ({_said(line)})."
        )


def _by_trials(line: RecordLine) -> bool:
    """Whether the interval is that within runs, and not that between them."""
    return line.run_sd is None or line.within


def _answers(agreed: Mapping[str, Agreement]) -> Iterator[str]:
    differ = {
        label: own for label, a in agreed.items() if (own := answered.with_failed(a)).differing
    }
    if differ:
        label, worst = max(differ.items(), key=lambda one: one[1].differing)
        yield (
            "The ratios leave out the queries that the two answer differently ("
            f"{label}: {worst.differing} of {worst.queries}), except where the loss over "
            "everything asked is greater. If that change was not meant, fix it and run the second "
            "again."
        )


def _trials(sides: Sequence[Judgement]) -> Iterator[str]:
    """Trials that could not be used, and warnings on those that were."""
    for which, side in zip(("first", "second"), sides, strict=True):
        trials = [t for treatment in side.treatments for t in treatment.trials]
        bad = [t for t in trials if t.status != "valid"]
        if bad:
            grave = (f.kind for t in bad for f in t.findings if f.severity == "invalid")
            kinds = ", ".join(dict.fromkeys(grave)) or "they failed"
            yield (
                f"{len(bad)} of {len(trials)} trials of the {which} could not be used ({kinds}): "
                "see its report for the remedies, and run it again."
            )
        counts = Counter(f.kind for f in side.findings if f.severity == "warning")
        if counts:
            kinds = ", ".join(
                f"{kind} ({n})" if n > 1 else kind for kind, n in counts.most_common()
            )
            yield f"Warnings in the {which}: {kinds}. Its report says what to do about each."


def _at_threshold(lines: Sequence[RecordLine], threshold: float) -> Iterator[str]:
    losses = [
        1 - line.ratio.value
        for line in lines
        if line.verdict in ("slower", "differs") and line.ratio and line.ratio.value < 1
    ]
    # Rounded to the side on which the sentence holds.
    tenths = 1000 * max(losses, default=0.0)
    if losses and max(losses) > threshold:
        least = math.ceil(tenths) / 10
        yield f"With a threshold of {least:.1f} % or more, no loss would be beyond it."
    elif losses:
        yield f"With a threshold below {math.floor(tenths) / 10:.1f} %, a loss would be beyond it."


def _log(line: RecordLine) -> float:
    return math.log(line.ratio.value) if line.ratio else 0.0


def _size(line: RecordLine) -> float:
    """How far a ratio is from 1, on logs, which for small differences is a share."""
    return abs(_log(line))


def _said(line: RecordLine) -> str:
    change = line.ratio.value - 1 if line.ratio else 0.0
    return f"{100 * abs(change):.1f} % {'better' if change > 0 else 'worse'}"
