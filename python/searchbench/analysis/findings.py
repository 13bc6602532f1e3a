"""Findings about a record as a whole, and those of its trials that are said once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from searchbench.analysis.agreement.answers import AnswerBook
from searchbench.analysis.judgement import Agreement, Finding, TreatmentResult, TrialResult
from searchbench.analysis.trial.validity import gravest_first
from searchbench.analysis.words import listed
from searchbench.record import Record, Trial

HALF = 0.5  # of the queries must agree before a ratio goes unremarked
EMPTY = 0.2  # of the agreeing queries may find nothing on either side without a remark


def in_order(
    of_the_record: Iterable[Finding], treatments: Sequence[TreatmentResult]
) -> tuple[Finding, ...]:
    """Those of the record first, then those of its trials; the gravest of each first."""
    by_trial = (f for t in treatments for trial in t.trials for f in trial.findings)
    return *gravest_first(of_the_record), *gravest_first(by_trial)


def hoist(
    treatments: Sequence[TreatmentResult],
) -> tuple[list[TreatmentResult], list[Finding]]:
    """A finding that more than half of the trials have is one of the record, and said once."""
    driven = [t for r in treatments for t in r.trials if t.status != "failed"]
    by_kind: dict[tuple[str, str], list[Finding]] = {}
    for f in (f for trial in driven for f in trial.findings if f.severity != "invalid"):
        by_kind.setdefault((f.kind, f.severity), []).append(f)
    # A trial may have several of a kind: one for each of its roles, each of its servers.
    having = {key: len({f.trial for f in own}) for key, own in by_kind.items()}
    common = {key: by_kind[key] for key, n in having.items() if n > max(1, len(driven) // 2)}
    shared = []
    for key, found in common.items():
        eg = "e.g. " if len({f.number for f in found}) > 1 else ""
        number = f"{eg}{found[0].number} ({having[key]} of {len(driven)} trials)"
        shared.append(replace(found[0], trial="", number=number))

    def without_common(trial: TrialResult) -> TrialResult:
        kept = (f for f in trial.findings if (f.kind, f.severity) not in common)
        return replace(trial, findings=tuple(kept))

    return [replace(r, trials=tuple(map(without_common, r.trials))) for r in treatments], shared


def of_trials(
    record: Record,
    treatments: Sequence[TreatmentResult],
    controlled: bool,
    agreed: Sequence[Agreement],
    answers: AnswerBook,
) -> Iterator[Finding]:
    """Those of a record of independent trials. ``controlled``: it has A/A twins."""
    yield from incomplete(record)
    yield from measured_again(record)
    if not controlled and record.trials:
        planned = sum(trial.control for trial in record.plan.trials)
        yield _warning(
            "no A/A control",
            f"0 of {planned} pairs are valid" if planned else "it was off",
            "How much two measurements of the same thing differ here is unknown. So any difference "
            "that is more than chance counts, even if the machine alone could make it.",
            "See why the twins or their treatments are not valid, and measure again."
            if planned
            else "Turn it on ([control] aa = true) and measure again.",
        )
    for treatment in treatments:
        valid = sum(t.counts for t in treatment.trials)
        if treatment.trials and valid < 2:
            yield _warning(
                "too few replicates",
                f"{valid} valid of {treatment.label}",
                "With fewer than two valid trials it is unknown how certain its figures are.",
                "More replicates; five resolve most differences above the noise floor.",
            )
    yield from replaced(record, {t.treatment: t.label for t in treatments})
    yield from unstable(answers, {t.treatment: t.label for t in treatments})
    yield from disagreeing(agreed)


def unstable(answers: AnswerBook, names: Mapping[str, str]) -> Iterator[Finding]:
    """That the answers to a subject's queries changed from block to block, once for each subject.

    ``names``: what a treatment is said to be; of those of one name the one that changed most
    counts.
    """
    worst: dict[str, tuple[int, str]] = {}
    for treatment, changed in answers.unstable():
        name = names[treatment]
        many = max(changed.changed)
        if many > worst.get(name, (0, ""))[0]:
            of = changed.first.query.size
            where = f"in {len(changed.changed)} of {changed.trials} trials"
            worst[name] = many, f"{many} of {of} queries of {name} {where}"
    for _, number in worst.values():
        yield _warning(
            "answers changed",
            number,
            "The same queries got different answers in different blocks, so the index, its "
            "ranking, or the server is not the same each time. Only queries that are answered "
            "alike in every block count as answered alike.",
            "Settle the index fully (merge, commit) before measuring, and do not change a running "
            "server meanwhile.",
        )


def replaced(record: Record, names: Mapping[str, str]) -> Iterator[Finding]:
    """That a system was of several versions, by what it said of itself before each block."""
    versions: dict[str, dict[str, list[Trial]]] = {}
    for trial in record.trials:
        if trial.version and trial.treatment in names:
            of = versions.setdefault(names[trial.treatment], {})
            of.setdefault(trial.version, []).append(trial)
    for name, own in versions.items():
        if len(own) > 1:
            blocks = {version: sorted({t.block for t in of}) for version, of in own.items()}
            # A run that was interrupted within a block may have met two in it.
            shared = sum(map(len, blocks.values())) > len({b for of in blocks.values() for b in of})
            each = "; ".join(
                f"{version} in {'trial' if len(of) == 1 else 'trials'} "
                f"{listed([t.trial for t in of])}"
                if shared
                else f"{version} in {'block' if len(blocks[version]) == 1 else 'blocks'} "
                f"{listed([str(b) for b in blocks[version]])}"
                for version, of in own.items()
            )
            yield _warning(
                "another version",
                f"{name}: {each}",
                "The system was replaced while it was measured, so a mean over the blocks is not "
                "the speed of any one version.",
                "Measure each version into a record of its own, and compare the records.",
            )


def incomplete(record: Record) -> Iterator[Finding]:
    """That trials of the plan are not on record, or that the last one was cut short."""
    planned, there = len(record.plan.trials), len(record.trials)
    cut = [t for t in record.trials if t.drive is not None and t.drive.cut_short]
    if record.plan.judging.abort and cut:
        elapsed_s = cut[-1].drive.elapsed_ns / 1e9 if cut[-1].drive is not None else 0.0
        yield _warning(
            "aborted",
            f"{cut[-1].label} after {elapsed_s:.1f} s; {there} of {planned} steps",
            "So many requests broke a promise that the run was ended there, as asked for. What was "
            "in flight counts as unfinished.",
            "Leave out `abort` to drive every step to its end.",
        )
    elif there < planned:
        yield _warning(
            "incomplete",
            f"{there} of {planned} trials",
            "The measurement was interrupted; what is judged is what is there.",
            "Run the same command again: it continues where it stopped.",
        )


def measured_again(record: Record) -> Iterator[Finding]:
    """That trials were spoilt, set aside and measured once more."""
    if aside := record.set_aside:
        yield Finding(
            "measured again",
            "note",
            "",
            f"{len({*aside})} of {len(record.plan.trials)} trials",
            "These were invalid because others used the machine, and were measured once more (run "
            "--again), later than the others of their block. What was measured first is in the "
            "record's folder void and counts for nothing. A ratio is resolved only if two blocks "
            "or more have both of its sides from before, or both from then.",
            "Nothing, unless it is most of them: then a quieter machine.",
        )


def disagreeing(agreed: Sequence[Agreement]) -> Iterator[Finding]:
    """Pairs that answer less than half of the queries alike, or alike by finding nothing."""
    for pair in agreed:
        both = f"{pair.label_a} and {pair.label_b}"
        if pair.queries and pair.agreeing < HALF * pair.queries:
            why = ", ".join(f"{cause} {n}" for cause, n in pair.causes.items())
            yield _warning(
                "little agreement",
                f"{pair.agreeing} of {pair.queries} queries of {both} ({why})",
                f"The two return the same {pair.require} on less than half of the queries; a ratio "
                "over the rest says little.",
                "See the examples under Agreement and align analysis and operators first.",
            )
        if pair.empty and pair.empty >= EMPTY * pair.agreeing:
            yield _warning(
                "nothing found",
                f"{pair.empty} of {pair.agreeing} queries of {both}",
                "Neither of the two finds anything on these of the queries on which they agree; "
                "that they agree there says little, and such queries are cheap.",
                "Ask for terms that the corpus has, and check that the index is filled and that "
                "its fields are those searched.",
            )


def _warning(kind: str, number: str, meaning: str, remedy: str) -> Finding:
    return Finding(kind, "warning", "", number, meaning, remedy)
