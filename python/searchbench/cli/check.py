"""``searchbench check``: is this study file right?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from searchbench.cli.flags import Json, Only, Sets


def check(study: Path, *, sets: Sets = None, only: Only = None, as_json: Json = False) -> int:
    """Find every mistake in a study file, with its position and the remedy.

    Also reads the headers, first rows and first lines of the documents and queries that the study
    names. Says which fields and types it guessed, where a few values decide the type of a column,
    and which queries have operators that are taken as words. Names each system that is not on this
    machine: `run` refuses a study with such a system, but `check` does not count it as a mistake.

    Parameters
    ----------
    study
        The study file.
    sets
        Change the study: KEY=VALUE, as in load.seconds=3, systems.NAME.PARAMETER=4, seed=7. May be
        given several times.
    only
        Keep one level of a factor: FACTOR=LEVEL, as in system=NAME or load.clients=4. Give it
        several times to keep several levels.
    as_json
        Print JSON.
    """
    from searchbench.errors import StudyError
    from searchbench.lab.get.install import lacking
    from searchbench.lab.place import abilities
    from searchbench.study.inputs import look
    from searchbench.study.overrides import read_changed
    from searchbench.study.plan import measured
    from searchbench.study.planner import make_plan
    from searchbench.terminal import out

    try:
        read = read_changed(study, sets or (), only or ())
        plan = make_plan(read)
        told = look(read, plan, alone=True)
    except StudyError as error:
        if not as_json:
            raise
        out.as_json({"ok": False, "complaints": [asdict(c) for c in error.complaints]})
        return error.exit_code
    absent = [*lacking(plan), *abilities.lacking(plan)]
    told += [*abilities.untraced(plan), *abilities.beside_others(plan)]
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
                "lacking": absent,
            }
        )
        return 0
    excluded = f", {len(plan.excluded)} crossings left out" if plan.excluded else ""
    for sentence in (*told, *absent):
        out.say(sentence)
    but = ", but cannot be run here yet (see above)" if absent else ""
    out.say(f"{study}: right{but}; {measured(plan)}{excluded}")
    return 0
