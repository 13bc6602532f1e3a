"""``searchbench check``: is this study file right?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from searchbench.cli.flags import Json


def check(study: Path, *, as_json: Json = False) -> int:
    """Find every mistake in a study file: line, column, what was expected, the nearest name.

    Also reads the headers, first rows and first lines of the documents and queries that the study
    names, and names each system that is not on this machine.

    Parameters
    ----------
    study
        The study file.
    as_json
        Print JSON.
    """
    from searchbench.errors import StudyError
    from searchbench.lab.get.install import lacking
    from searchbench.lab.place import abilities
    from searchbench.study import read_study
    from searchbench.study.inputs import look
    from searchbench.study.plan import measured
    from searchbench.study.planner import make_plan
    from searchbench.terminal import out

    try:
        read = read_study(study)
        plan = make_plan(read)
        told = look(read, plan)
    except StudyError as error:
        if not as_json:
            raise
        out.as_json({"ok": False, "complaints": [asdict(c) for c in error.complaints]})
        return error.exit_code
    if as_json:
        out.as_json(
            {
                "ok": True,
                "complaints": [],
                "measure": plan.judging.measure,
                "subjects": list(dict.fromkeys(t.subject for t in plan.treatments)),
                "treatments": len(plan.treatments),
                "trials": len(plan.trials),
                "excluded": len(plan.excluded),
                "told": told,
            }
        )
        return 0
    excluded = f", {len(plan.excluded)} crossings left out" if plan.excluded else ""
    for sentence in (*told, *lacking(plan), *abilities.lacking(plan)):
        out.say(sentence)
    out.say(f"{study}: right; {measured(plan)}{excluded}")
    return 0
