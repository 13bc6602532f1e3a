"""``searchbench plan``: what will be run, and how long it will take."""

from __future__ import annotations

from pathlib import Path

from searchbench.cli.flags import Json, Only, Sets


def plan(study: Path, *, sets: Sets = None, only: Only = None, as_json: Json = False) -> int:
    """Show what a study will run, in which order, and about how long it will take.

    Parameters
    ----------
    study
        The study file.
    sets
        Change the study: KEY=VALUE, as in load.seconds=3, systems.NAME.PARAMETER=4, seed=7.
    only
        Measure one level of a factor: FACTOR=LEVEL, as in system=NAME or load.clients=4; given
        several times, all of those.
    as_json
        Print JSON: the plan as it will stand in the record.
    """
    import msgspec

    from searchbench.study.overrides import read_changed
    from searchbench.study.planner import make_plan
    from searchbench.terminal import out
    from searchbench.terminal.progress import outlook

    made = make_plan(read_changed(study, sets or (), only or ()))
    if as_json:
        out.as_json(msgspec.to_builtins(made))
        return 0
    out.say(made.question)
    out.say()
    out.table(("treatment", "system", "what"), [(t.id, t.system, t.label) for t in made.treatments])
    for excluded in made.excluded:
        levels = ", ".join(f"{k} = {v}" for k, v in excluded.levels.items())
        out.say(f"left out: {levels}: {excluded.reason}")
    out.say()
    for block in dict.fromkeys(t.block for t in made.trials):
        order = " ".join(
            t.treatment + ("(A/A)" if t.control else "") for t in made.trials if t.block == block
        )
        out.say(f"block {block}: {order}")
    if made.judging.promises:
        out.say("promises: " + "; ".join(made.judging.promises))
    out.say(f"\n{outlook(made)}")
    return 0
