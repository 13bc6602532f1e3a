"""A plan in a sentence."""

from __future__ import annotations

from searchbench.study.plan import Plan


def measured(plan: Plan) -> str:
    """What is measured: "3 configurations, each a sweep of 4 steps"."""
    subjects = len(dict.fromkeys(t.subject for t in plan.treatments))
    judging = plan.judging
    if judging.measure == "trials":
        return f"{_count(len(plan.treatments), 'treatment')} in {_count(len(plan.trials), 'trial')}"
    times = f", {judging.replicates} times" if judging.replicates > 1 else ""
    who = _count(subjects, "configuration") + (", each " if subjects > 1 else ", ")
    if judging.measure == "capacity":
        return f"{who}a search for {_count(len(judging.promises), 'promise')}{times}"
    steps = [
        sum(t.subject == s for t in plan.treatments) for s in {t.subject for t in plan.treatments}
    ]
    of = (
        _count(max(steps), "step")
        if min(steps) == max(steps)
        else f"{min(steps)} to {max(steps)} steps"
    )
    return f"{who}a sweep of {of}{times}"


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
