"""``searchbench plan``: what will be run, and how long it will take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from searchbench.cli.flags import Json, Only, Sets

if TYPE_CHECKING:
    from searchbench.study.plan import Plan


_USUAL_PER_S = 1000.0  # a window that needs less to be shown steady is not remarked on


def plan(study: Path, *, sets: Sets = None, only: Only = None, as_json: Json = False) -> int:
    """Show what a study will run, in which order, and about how long it will take.

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
        Print JSON: the plan as it will stand in the record.
    """
    import msgspec

    from searchbench.study.inputs import look
    from searchbench.study.left_out import left_out
    from searchbench.study.overrides import read_changed
    from searchbench.study.planner import make_plan
    from searchbench.terminal import out
    from searchbench.terminal.progress import outlook

    read = read_changed(study, sets or (), only or ())
    made = make_plan(read)
    told = look(read, made, alone=True)
    if as_json:
        out.as_json(msgspec.to_builtins(made))
        return 0
    out.say(made.question)
    out.say()
    treatments = [(t.id, t.system, t.label) for t in made.treatments]
    out.table(("treatment", "system", "what"), treatments, less=("system",))
    for sentence in left_out(made):
        out.say(sentence)
    out.say()
    for block in dict.fromkeys(t.block for t in made.trials):
        order = " ".join(
            t.treatment + ("(A/A)" if t.control else "") for t in made.trials if t.block == block
        )
        out.say(f"block {block}: {order}")
    if made.traced:
        out.say(f"traced: {' '.join(t.treatment for t in made.traced)}")
    if made.judging.promises:
        out.say("promises: " + "; ".join(made.judging.promises))
    out.say(f"\n{outlook(made)}")
    for words in (*told, *_guessed(made), *_too_short(made)):
        out.say(words)
    return 0


def _guessed(plan: Plan) -> Iterator[str]:
    """What the time rests on that nobody knows before: how long a request takes."""
    from searchbench.study.estimate import ROW_S, STATEMENT_S
    from searchbench.workload.loads import USUAL_REQUEST_S

    loads = [t.load for t in plan.treatments]
    if any(load.get("requests") and load.get("rate_per_s") is None for load in loads):
        more = ""
        if any(t.operation for t in plan.treatments):
            more = f", {1e3 * STATEMENT_S:g} ms for a statement and {1e3 * ROW_S:g} ms for a row"
        yield (
            "The load counts requests, and how long one takes is not known: the time above allows "
            f"{1e3 * USUAL_REQUEST_S:g} ms for each{more}. If yours take longer, so does the study."
        )


def _too_short(plan: Plan) -> Iterator[str]:
    """Of windows that can show only a fast system to be steady: how fast it has to be."""
    from searchbench.analysis.trial.steadiness import rate_needed

    loads = [t.load for t in plan.treatments]
    for seconds in sorted({load["seconds"] for load in loads if load.get("seconds")}):
        needed = rate_needed(seconds)
        rates = [load.get("rate_per_s", 0.0) for load in loads if load.get("seconds") == seconds]
        if needed > max(_USUAL_PER_S, min(rates)):
            yield (
                f"A window of {seconds:g} s shows that a system is steady only if it answers about "
                f"{float(f'{needed:.1g}'):,.0f} queries a second or more; else that stays unknown. "
                "A longer window needs fewer: raise `load.seconds`."
            )
