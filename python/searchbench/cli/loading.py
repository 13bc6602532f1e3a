"""A load run from its options to its answer on the terminal, for the verbs that have one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from searchbench.measure.load import Asked


def carry_out(
    asked: Asked,
    record: Path | None,
    *,
    report: bool = True,
    as_json: bool = False,
    finish: Callable[[Any, Any], None] | None = None,
) -> int:
    """The whole run; the exit code. ``finish``: called with the record and its judgement."""
    from searchbench.cli.live import LiveLine
    from searchbench.cli.progress import duration
    from searchbench.measure.load import study_of, usual_record
    from searchbench.measure.run import run
    from searchbench.record import open_record
    from searchbench.study.planner import make_plan

    study = study_of(asked)
    plan = make_plan(study)
    place = record or usual_record()
    what = "a search for capacity"
    if plan.trials:
        what = f"{len(plan.trials)} load steps, about {duration(plan.estimated_s)}"
    sys.stderr.write(f"{what}; record: {place}\n")
    try:
        with LiveLine() as watch:
            kept = run(study, place, plan=plan, watch=watch)
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        if any((place / "trials").glob("*/trial.json")):
            show(open_record(place), report=report, as_json=as_json, finish=finish)
        return 130
    return show(kept, report=report, as_json=as_json, finish=finish)


def show(
    kept: Any, *, report: bool, as_json: bool, finish: Callable[[Any, Any], None] | None
) -> int:
    """Judge the record, print the answer, write the page; 1 where a trial failed."""
    from searchbench.analysis.judge import judge, steps_json
    from searchbench.cli import out
    from searchbench.cli.report import show as show_judgement

    judgement = judge(kept)
    if as_json:
        out.as_json(steps_json(judgement))
    else:
        show_judgement(judgement)
    if report:
        from searchbench.report import write_report

        written = write_report(kept, judgement, kept.path / "report")
        if not as_json:
            out.say(f"\nreport: {written.html}")
    if finish is not None:
        finish(kept, judgement)
    return 1 if any(t.status != "ok" for t in kept.trials) else 0
