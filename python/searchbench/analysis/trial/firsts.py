"""First asks: of a trial that is cold for each query, what its samples say.

Between two queries the system was stopped, its files were evicted, and it was started anew. That
time is nobody's waiting, so it is taken out: first asks follow one another without a gap, as if one
client had asked them. Their rate is then one over their mean time. Later asks of the same query are
figures beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from searchbench.analysis.judgement import Estimate, Finding
from searchbench.analysis.trial.measured import Trace, rows_by_ask
from searchbench.analysis.words import digits
from searchbench.record import Trial
from searchbench.record.trial import Asked

STATE = "each query, of files that are not in memory"
RESTARTED = "each query, after a restart, of files that are not in memory"


def state(trial: Trial) -> str:
    """In which state each of its queries was asked; "" of a trial that is not cold for each."""
    if not trial.asked:
        return ""
    return RESTARTED if trial.asked[0].restarted else STATE


def figures(whole: Trace, asked: Sequence[Asked]) -> dict[str, Estimate]:
    """By ask from the second on, the mean time: ``ask_2_mean``, ``ask_3_mean``, ..."""
    found = {}
    for number, rows in list(enumerate(rows_by_ask(asked), 1))[1:]:
        well = rows[(whole.outcome[rows] == 0) & (whole.done[rows] >= 0)]
        if well.size:
            took = (whole.done[well] - whole.sent[well]) / 1e9
            found[f"ask_{number}_mean"] = Estimate(float(took.mean()), "s", int(well.size))
    return found


def findings(trial: Trial) -> Iterator[Finding]:
    """That all of its figures are of first asks, and what was in memory before each."""
    if not trial.asked:
        return
    most = max(trial.asked, key=lambda one: one.after)
    restarted = trial.asked[0].restarted
    kept = "" if restarted else " What the process kept in its own memory stayed there."
    yield Finding(
        "cold for each query",
        "note",
        trial.trial,
        f"{len(trial.asked):,} queries; at most {digits(most.after)} of {digits(most.pages)} pages "
        "in memory before one",
        "Before each query the files were evicted from memory"
        f"{', and the system was started anew' if restarted else ''}. All figures are of first "
        f"asks, one at a time, without the time between them.{kept}",
        "Compare them only with figures of the same state.",
    )
