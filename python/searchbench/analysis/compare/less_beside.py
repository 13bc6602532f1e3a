"""Who is in front may be so because it did less of what goes on beside its readers.

Roles that were asked for the same may get other amounts done: a client that waits for its answers
sends less to a slow system, and one whose clock goes on leaves the rest unsent. Then the readers
did not stand beside the same work. (Where roles were asked for other amounts, that is what is
compared.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from searchbench.analysis.judgement import Comparison, TreatmentResult, TrialResult, Worked
from searchbench.analysis.words import digits, of_job

LEAST = 0.95  # of the rival's: with so much or more, the work was about the same
GRAINS = 1.5  # times: a window begins and ends between two of them, so one more may be chance
FEWER = "while its readers searched"  # in whatever says that it may have made a ratio
REMEDY = "Give the roles of both a rate that both systems keep up with."
_FEWER = {
    "write": "fewer documents were written to {winner}",
    "read": "{winner} answered fewer other requests",
    "publish": "{winner} published less often",
    "job": "{winner} ran the job less often",
}
Key = tuple[str, str, str]  # role, what it does, what it was asked for


def against(c: Comparison, by_id: Mapping[str, TreatmentResult]) -> str:
    """Why roles keep a ratio from being resolved, a clause; empty: they do not."""
    if c.ratio is None or of_job(c.metric):
        return ""
    a, b = by_id[c.a], by_id[c.b]
    winner, rival = (b, a) if c.ratio.value > 1 else (a, b)
    of = [[x for x in t.trials if x.counts] for t in (winner, rival)]
    return said(of[0], of[1], winner.label, rival.label)


def said(
    winners: Sequence[TrialResult], rivals: Sequence[TrialResult], winner: str, rival: str
) -> str:
    """That the winner did less for a role that was asked for the same beside both, a clause; empty:
    there is none such.
    """
    mine, others = by_key(winners), by_key(rivals)
    for key, theirs in others.items():
        role, does, _ = key
        if key not in mine or not less(mine[key], theirs):
            continue
        much = f"{role}: {digits(mean(mine[key]))} a second; {rival}: {digits(mean(theirs))}"
        fewer = _FEWER[does].format(winner=winner)
        return f"{fewer} {FEWER} ({much}), which may leave those readers more of the machine"
    return ""


def by_key(trials: Sequence[TrialResult]) -> dict[Key, list[Worked]]:
    """By role and what it was asked for, what it got done in each trial."""
    found: dict[Key, list[Worked]] = {}
    for trial in trials:
        for one in trial.worked:
            found.setdefault(_key(one), []).append(one)
    return found


def less(mine: Sequence[Worked], theirs: Sequence[Worked]) -> bool:
    """Whether less was done than by the others, by more than where the windows happened to lie."""
    more = mean(theirs) - mean(mine)
    return more > (1 - LEAST) * mean(theirs) and more >= GRAINS * grain(mine, theirs)


def grain(*sides: Sequence[Worked]) -> float:
    """By how much one time more in each trial would change what a side did a second."""
    return max(fmean(one.grain for one in side) for side in sides)


def mean(done: Sequence[Worked]) -> float:
    """What was done a second."""
    return fmean(one.per_s for one in done)


def _key(one: Worked) -> Key:
    return one.role, one.does, one.asked
