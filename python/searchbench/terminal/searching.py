"""How much longer a search for capacity takes at most; it ends sooner where it is sure sooner."""

from __future__ import annotations

from searchbench.analysis.capacity.pace import longest_s, most_trials
from searchbench.record.trial import Trial as Kept
from searchbench.study.plan import Plan

_BETWEEN_S = 1.5  # starting to drive, writing and judging, for each trial
_LOOK_S, _WARM_S = 3.0, 60.0  # the opening loop, and the longest warm-up before it


class Searching:
    """All searches of a plan, by the trials that ended in this sitting."""

    def __init__(self, plan: Plan) -> None:
        self.effort = plan.judging.effort
        self.promises = len(plan.judging.promises)
        self.most = most_trials(self.promises)
        subjects = {t.subject for t in plan.treatments if "rate_per_s" not in t.load}
        # With roles each trial has a warm-up of its own, of a system that was just started.
        self.warm_s = max(
            (float(t.load.get("warmup_s") or 0.0) for t in plan.treatments
             if t.roles and "rate_per_s" not in t.load),
            default=0.0,
        )  # fmt: skip
        self.attached = {t.subject for t in plan.treatments if t.attach}
        self.searches = len(subjects) * plan.judging.replicates
        self.driven: dict[tuple[str, int], int] = {}
        self.full_s: dict[tuple[str, int], float] = {}

    def ends(self, about: Kept) -> None:
        """A trial is on record."""
        which, is_rate = (about.subject, about.block), about.load.kind != "closed"
        self.driven[which] = self.driven.get(which, 0) + is_rate
        # Trials for another promise may be of any length.
        if about.load.full and about.load.seconds and self.promises == 1:
            self.full_s[which] = max(self.full_s.get(which, 0.0), about.load.seconds)

    def most_s(self) -> float:
        """Seconds from now on, if every search needs as many trials as it may have, and as long."""
        between_s = _BETWEEN_S + self.warm_s
        each_s = longest_s(self.effort) + between_s
        look_s = _LOOK_S + _WARM_S * min(1.0, self.effort)
        found = (self.searches - len(self.driven)) * (look_s + self.most * each_s)
        if self.driven:  # under way are the last that has begun, and those that take turns with it
            *_, last = self.driven
            found += sum(
                max(0, self.most - driven)
                * (longest_s(self.effort, self.full_s.get(which)) + between_s)
                for which, driven in self.driven.items()
                if which == last or (which[1] == last[1] and {which[0], last[0]} <= self.attached)
            )
        return found
