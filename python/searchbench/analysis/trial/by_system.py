"""Which trials the system itself failed, and which the load generator or the machine spoilt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from searchbench.analysis.judgement import TreatmentResult, TrialResult
from searchbench.analysis.trial.kinds import ENDED, NOT_MEASURED, OTHERWISE
from searchbench.analysis.trial.served import UNSERVED
from searchbench.record import Trial

BY_SYSTEM = frozenset(
    (*ENDED, OTHERWISE, UNSERVED, "failed", "no answers", "errors", "partial results", "overload",
     "redirects", "writes lost", "writes not applied", "writes refused")
)  # fmt: skip

# Steps of a trial in which the machine, the load generator or the study is at work and the system
# is not: client machines, the probe, places, copies of an index. (What cannot be compiled may be
# what the system cannot be asked.)
_OURS = frozenset(
    ("clients", "probe", "trace", "host", "place", "copy", "prepare", "resolve", "pause")
)  # fmt: skip


def not_measured(trial: Trial) -> bool:
    """Whether a trial failed in a step that says nothing about the system."""
    return trial.status == "failed" and trial.stage in _OURS


def by_system(trial: TrialResult) -> bool:
    """Whether it is the system's doing that a trial is not valid."""
    kinds = {f.kind for f in trial.findings if f.severity == "invalid"}
    return (trial.status == "failed" and NOT_MEASURED not in kinds) or bool(kinds & BY_SYSTEM)


def often(n: int, of: int, what: str = "trials") -> str:
    """That the system failed in half of these trials or more, a clause; else empty: the figures are
    of those that survived.
    """
    return f"failed by itself in {n} of its {of} {what}" if n and 2 * n >= of else ""


def dying(treatments: Sequence[TreatmentResult]) -> dict[str, str]:
    """By system, that it failed in half of its trials or more where others of these are valid, a
    clause; of several treatments the one in which it did most often.
    """
    found: dict[str, tuple[float, str]] = {}
    several = Counter(t.system for t in treatments)
    for t in treatments:
        n, of = failed(t.trials)
        where = f" of {t.label}" if several[t.system] > 1 else ""
        if n < of and (why := often(n, of, f"trials{where}")):
            found[t.system] = max(found.get(t.system, (0.0, "")), (n / of, why))
    return {system: why for system, (_, why) in found.items()}


def failed(trials: tuple[TrialResult, ...]) -> tuple[int, int]:
    """In how many of its trials the system failed, and of how many; without those that others
    spoilt, and controls.
    """
    own = [t for t in trials if not t.control and (t.status == "valid" or by_system(t))]
    return sum(t.status != "valid" for t in own), len(own)
