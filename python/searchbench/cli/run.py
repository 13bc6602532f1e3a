"""``searchbench run``: measure a study, keep the record, write the page that answers."""

from __future__ import annotations

import sys
from pathlib import Path

from searchbench.cli.flags import Json


def run(
    study: Path,
    *,
    record: Path | None = None,
    work: Path | None = None,
    report: bool = True,
    as_json: Json = False,
) -> int:
    """Measure a study and write its report. Ctrl-C is safe; the same command continues.

    What is on record is not measured again; name another --record for that.

    Exits with 1 where a trial failed or none is valid (in a sweep or search: only if one failed).

    Parameters
    ----------
    study
        The study file.
    record
        The folder of the record; records/NAME by default.
    work
        Where indexes are built while measuring; the temporary directory by default.
    report
        Write the report at the end.
    as_json
        Print the judgement as JSON.
    """
    from searchbench.analysis.judge import to_json
    from searchbench.measure.kept import standing
    from searchbench.measure.run import run as measure
    from searchbench.record import open_record
    from searchbench.study import read_study
    from searchbench.study.inputs import look
    from searchbench.study.planner import make_plan
    from searchbench.terminal.answer import answer, not_again
    from searchbench.terminal.progress import Terminal, beginning

    read = read_study(study)
    plan = make_plan(read)
    place = record or Path("records") / read.name
    found = standing(plan, place)
    if not (found and found.whole):
        look(read, plan)
    sys.stderr.write(f"{beginning(plan, place, found)}\n")
    try:
        if not (found and found.whole):
            with Terminal(plan) as watch:
                measure(read, place, plan=plan, watch=watch, work=work)
    except KeyboardInterrupt:
        sys.stderr.write(
            f"\ninterrupted; what was measured is in {place}; the same command continues\n"
        )
        return 130
    opened = open_record(place)
    page = place / "report" if report else None
    judgement = answer(opened, page, plain=to_json if as_json else None)
    sys.stderr.write(not_again(judgement))
    judged = [t.status for r in judgement.treatments for t in r.trials]
    failed = any(t.status != "ok" for t in opened.trials)
    # As of `load`, a sweep or a search without a valid trial is void, which its answer says.
    void = judgement.measure == "trials" and "valid" not in judged
    return 1 if failed or void else 0
