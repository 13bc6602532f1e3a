"""Findings about a record as a whole, and those of its trials that are said once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from searchbench.analysis.agreement.answers import AnswerBook
from searchbench.analysis.judgement import Agreement, Finding, TreatmentResult
from searchbench.record import Record

HALF = 0.5  # of the queries must agree before a ratio goes unremarked
_RANK = {"invalid": 0, "warning": 1, "note": 2}


def in_order(
    of_the_record: Sequence[Finding], treatments: Sequence[TreatmentResult]
) -> tuple[Finding, ...]:
    """Those of the record first, then those of its trials; the gravest of each first."""
    by_trial = [f for t in treatments for trial in t.trials for f in trial.findings]
    return (
        *sorted(of_the_record, key=lambda f: _RANK[f.severity]),
        *sorted(by_trial, key=lambda f: _RANK[f.severity]),
    )


def hoist(
    treatments: Sequence[TreatmentResult],
) -> tuple[list[TreatmentResult], list[Finding]]:
    """A finding that more than half of the trials have is one of the record, and said once."""
    driven = [t for r in treatments for t in r.trials if t.status != "failed"]
    counts: dict[tuple[str, str], list[Finding]] = {}
    for trial in driven:
        for f in trial.findings:
            if f.severity != "invalid":
                counts.setdefault((f.kind, f.severity), []).append(f)
    common = {key: found for key, found in counts.items() if len(found) > max(1, len(driven) // 2)}
    shared = []
    for found in common.values():
        same = len({f.number for f in found}) == 1
        number = found[0].number if same else f"e.g. {found[0].number}"
        number = f"{number} ({len(found)} of {len(driven)} trials)"
        shared.append(replace(found[0], trial="", number=number))
    changed = []
    for result in treatments:
        trials = tuple(
            replace(t, findings=tuple(f for f in t.findings if (f.kind, f.severity) not in common))
            for t in result.trials
        )
        changed.append(replace(result, trials=trials))
    return changed, shared


def of_trials(
    record: Record,
    treatments: Sequence[TreatmentResult],
    controlled: bool,
    agreed: Sequence[Agreement],
    answers: AnswerBook,
) -> list[Finding]:
    """Those of a record of independent trials. ``controlled``: it has A/A twins."""
    found = incomplete(record)
    there = len(record.trials)
    if not controlled and there:
        found.append(
            Finding(
                "no A/A control",
                "warning",
                "",
                "0 pairs",
                "No valid pair of a treatment and its own twin: the noise floor is unknown, and "
                "differences count as soon as their interval leaves out 1.",
                "Leave the control on, and see why its trials are not valid.",
            )
        )
    for treatment in treatments:
        valid = [t for t in treatment.trials if t.status == "valid" and not t.control]
        if treatment.trials and len(valid) < 2:
            found.append(
                Finding(
                    "too few replicates",
                    "warning",
                    "",
                    f"{len(valid)} valid of {treatment.label}",
                    "Below two valid trials nothing can be said of how sure its figures are.",
                    "More replicates; five resolve most differences above the noise floor.",
                )
            )
    for label, number in answers.unstable():
        found.append(
            Finding(
                "answers changed",
                "warning",
                "",
                f"{number} queries of {label}",
                "Replicates of one treatment answered differently, so its index or its ranking is "
                "not the same each time.",
                "Settle the index fully (merge, commit) before measuring.",
            )
        )
    return found + disagreeing(agreed)


def incomplete(record: Record) -> list[Finding]:
    """That trials of the plan are not on record."""
    found = []
    planned, there = len(record.plan.trials), len(record.trials)
    if there < planned:
        found.append(
            Finding(
                "incomplete",
                "warning",
                "",
                f"{there} of {planned} trials",
                "The measurement was interrupted; what is judged is what is there.",
                "Run the same command again: it continues where it stopped.",
            )
        )
    return found


def disagreeing(agreed: Sequence[Agreement]) -> list[Finding]:
    """Pairs that answer less than half of the queries alike."""
    found = []
    for pair in agreed:
        if pair.queries and pair.agreeing < HALF * pair.queries:
            why = ", ".join(f"{cause} {n}" for cause, n in pair.causes.items())
            found.append(
                Finding(
                    "little agreement",
                    "warning",
                    "",
                    f"{pair.agreeing} of {pair.queries} queries",
                    f"{pair.label_a} and {pair.label_b} return the same {pair.require} on less "
                    f"than half of the queries ({why}); a ratio over the rest says little.",
                    "See the examples under Agreement and align analysis and operators first.",
                )
            )
    return found
