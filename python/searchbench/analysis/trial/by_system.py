"""Which trials the system itself failed, and which the load generator or the machine spoilt."""

from __future__ import annotations

from searchbench.analysis.judgement import TrialResult
from searchbench.analysis.trial.kinds import ENDED, OTHERWISE
from searchbench.analysis.trial.served import UNSERVED

BY_SYSTEM = frozenset(
    (*ENDED, OTHERWISE, UNSERVED, "failed", "no answers", "errors", "partial results", "overload",
     "redirects", "writes lost", "writes not applied", "writes refused")
)  # fmt: skip


def by_system(trial: TrialResult) -> bool:
    """Whether it is the system's doing that a trial is not valid."""
    kinds = {f.kind for f in trial.findings if f.severity == "invalid"}
    return trial.status == "failed" or bool(kinds & BY_SYSTEM)


def failed(trials: tuple[TrialResult, ...]) -> tuple[int, int]:
    """In how many of its trials the system failed, and of how many; without those that others
    spoilt, and controls.
    """
    own = [t for t in trials if not t.control and (t.status == "valid" or by_system(t))]
    return sum(t.status != "valid" for t in own), len(own)
