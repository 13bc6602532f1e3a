"""Answers on a terminal: a judgement as a table and a paragraph; a load run from its options on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from searchbench.measure.load import Asked

# Findings of a step by which the server itself is gone, or never answered.
_SERVER_GONE = {"server ended", "server died", "no answers"}


def carry_out(
    asked: Asked,
    record: Path | None,
    *,
    report: bool = True,
    as_json: bool = False,
    finish: Callable[[Any, Any], None] | None = None,
) -> int:
    """The whole run; the exit code. ``finish``: called with the record and its judgement."""
    from searchbench.measure.load import study_of, usual_record
    from searchbench.measure.run import run
    from searchbench.record import open_record
    from searchbench.study.plan import measured
    from searchbench.study.planner import make_plan
    from searchbench.terminal.live import LiveLine
    from searchbench.terminal.progress import duration

    study = study_of(asked)
    plan = make_plan(study)
    place = record or usual_record()
    about = f"{measured(plan)}, about {duration(plan.estimated_s)}"
    sys.stderr.write(f"{about}; record: {place}\n")
    try:
        with LiveLine() as watch:
            kept = run(study, place, plan=plan, watch=watch)
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        if any((place / "trials").glob("*/trial.json")):
            finished(open_record(place), report=report, as_json=as_json, finish=finish)
        return 130
    return finished(kept, report=report, as_json=as_json, finish=finish)


def finished(
    kept: Any, *, report: bool, as_json: bool, finish: Callable[[Any, Any], None] | None
) -> int:
    """Judge the record, print the answer, write the page; 1 where a trial failed."""
    from searchbench.analysis.judge import judge, steps_json
    from searchbench.terminal import out

    judgement = judge(kept)
    if as_json:
        out.as_json(steps_json(judgement))
    else:
        show(judgement)
    if report:
        from searchbench.report import write_report

        written = write_report(kept, judgement, kept.path / "report")
        if not as_json:
            out.say(f"\nreport: {written.html}")
    if finish is not None:
        finish(kept, judgement)
    spoilt = {f.kind for step in judgement.steps for f in step.findings} & _SERVER_GONE
    return 1 if spoilt or any(t.status != "ok" for t in kept.trials) else 0


def show(judgement: object) -> None:
    """The verdict as a short table and its paragraph."""
    from searchbench.analysis.judgement import Judgement
    from searchbench.terminal import out as printer

    assert isinstance(judgement, Judgement)
    verdict = judgement.verdict
    if judgement.void:  # before anything else
        printer.say(judgement.void)
    printer.say()
    if verdict.lines:
        printer.table(verdict.header, verdict.lines)
        printer.say()
    printer.say(verdict.decision.removeprefix(judgement.void).strip())
    invalid = [f for f in judgement.findings if f.severity == "invalid"]
    for finding in invalid[:3]:
        place = f"{finding.trial}: " if finding.trial else ""
        printer.say(f"! {place}{finding.kind}: {finding.number}. {finding.meaning}")
    if len(invalid) > 3:
        printer.say(f"! and {len(invalid) - 3} more findings that make trials invalid")
