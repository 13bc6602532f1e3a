"""Did each step keep its promise? Kept, broken, or it cannot be told: a sweep with ``slo``.

A window is held to a promise as in a search for capacity (analysis/capacity/promise.py), which is
where the interval of a share comes from. A closed loop cannot fall behind, so there the conditions
alone decide.

Replies that are other answers than those asked for came in time and would count as good. So the
share that they may have by the sampled ones (the exact upper limit) counts as failed too before a
promise is called kept; where none was seen, nothing is added. Of replies that were not read, their
sizes are all that is known: where these are others under load, no promise is called kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.capacity import stalls
from searchbench.analysis.capacity.pace import CLUSTERS
from searchbench.analysis.capacity.promise import (
    Judged,
    Kept,
    builds_up,
    judge,
    others_at_most,
)
from searchbench.analysis.judgement import (
    Estimate,
    Interval,
    Promised,
    PromiseVerdict,
    Steadiness,
    Step,
)
from searchbench.analysis.live import SAMPLE, Fresh
from searchbench.analysis.stats import within
from searchbench.analysis.stats.distributions import share_at_least
from searchbench.analysis.sweep import points as at
from searchbench.analysis.trial import silence, throughput
from searchbench.analysis.trial.classes import Classes
from searchbench.analysis.trial.measured import Trace
from searchbench.analysis.words import digits, listed, plural, upper
from searchbench.record import Trial
from searchbench.workload.load_table import Condition, parse_promise, quoted

SURE = 1e-4  # of a look while the drive runs: the chance that a promise just kept is called broken
NEAR = 1 / 3  # of what is allowed; an interval that ends below is far from it
_FIRST_NS, _LOOKS = 1_000_000_000, 1.1  # then whenever the window has grown by a tenth
# Where the times changed, and 1 where longer ones are of a system that becomes slower.
_WHERE = {"window": 1, "last fifth": 1, "first fifth": -1}
Others = tuple[int, int]
_UNITS = {"closed": "clients", "open": "requests per second", "replay": "times the log's speed"}


def of_step(
    texts: Sequence[str],
    trial: Trial,
    trace: Trace,
    void: str,
    others: Others = (0, 0),
    sizes: str = "",
) -> tuple[Promised, ...]:
    """Every promise against the window of one trial. ``void``: why it cannot be believed.

    ``others``: of the replies sampled under load those that are other answers, and how many.
    ``sizes``: of replies that were not read, how many had another size than alone; empty: not more
    than may be.
    """
    return tuple(_promised(text, trial, trace, void, others, sizes) for text in texts)


def of_state(found: Sequence[Promised], tested: Steadiness) -> tuple[Promised, ...]:
    """The same, where the state of the system at another time might say otherwise: of one that
    became faster within the window what is broken, of one that became slower what is kept.
    """
    spans = [(e.interval, sign) for name, sign in _WHERE.items()
             if (e := tested.changes.get(name)) is not None and e.interval is not None]  # fmt: skip
    faster, slower = (
        any((s.high < 0 if sign == way else s.low > 0) for s, sign in spans) for way in (1, -1)
    )
    if tested.answer != "not steady" or faster == slower:
        return tuple(found)
    doubted, became = ("broken", "faster") if faster else ("kept", "slower")
    why = (
        f"the system became {became} within the window, so this is not what it does in the long "
        "run: " + ("warm it up longer" if faster else "look for what makes it slower")
    )
    return tuple(
        replace(p, verdict="cannot tell", why=f"{why} ({p.why})") if p.verdict == doubted else p
        for p in found
    )


def _promised(
    text: str, trial: Trial, trace: Trace, void: str, others: Others, sizes: str
) -> Promised:
    if void:
        return Promised(text, "cannot tell", f"the step is void ({void})")
    whole = judge((), _resolved(None, trial, trace))
    parts = [(c, judge((c,), _resolved(c.limit_ns, trial, trace))) for c in parse_promise(text)]
    if any(judged.own_fault for _, judged in parts):
        return Promised(text, "cannot tell", "the load generator itself sent too many requests "
                        "late; give it a processor of its own (--cpus)")  # fmt: skip
    worst = max((judged.kept[0] for _, judged in parts), key=_excess)
    if not worst.requests:
        of = worst.condition.of_class
        which = f"no request of the class {quoted(of)}" if of else "no request"
        return Promised(text, "cannot tell", f"{which} was due within the window")
    method = "exact binomial of the effective requests"
    span = Interval(worst.low, worst.high, within.LEVEL, method)
    share = Estimate(worst.share, "share", worst.requests, span)
    closed = trial.load.kind == "closed"
    found, why = _weighed(worst, whole, closed=closed)
    if found == "kept" and closed:
        found, why = _unseen(parts, trace, why)
    if found == "kept" and not closed:
        found, why = _in_the_long_run(parts, trial, trace, why)
    by_others = False
    if found == "kept" and others[0]:
        most = others_at_most(*others)
        failing = [c for c, judged in parts if judged.kept[0].high + most >= c.allowed]
        found, why = _with_others(why, failing, others, most)
        by_others = bool(failing)
    if found == "kept" and sizes:
        found, by_others = "cannot tell", True
        why = (
            f"{sizes} had another size under load than when asked alone, so they may be other "
            "answers, and if these count as failed, it may be broken"
        )
    condition = worst.condition
    each = {c.text: _ALONE[judged.kept[0].verdict] for c, judged in parts}
    if any(c.of_class for c, _ in parts) and found == "broken":
        why += _besides(condition, each)
    return Promised(text, found, why, condition.text, share, condition.allowed, by_others, each)


_ALONE: Mapping[str, PromiseVerdict] = {
    "holds": "kept", "fails": "broken", "unclear": "cannot tell",
}  # fmt: skip


def _besides(worst: Condition, each: Mapping[str, PromiseVerdict]) -> str:
    """Of a promise for classes that was broken: what became of its other conditions, a clause."""
    told = []
    for verdict, said in (("broken", "also broken"), ("cannot tell", "not told"), ("kept", "kept")):
        if own := [t for t, found in each.items() if found == verdict and t != worst.text]:
            told.append(f"{said}: {listed(own)}")
    return f" ({'; '.join(told)})" if told else ""


def _with_others(
    why: str, failing: Sequence[Condition], others: Others, most: float
) -> tuple[PromiseVerdict, str]:
    """The verdict on what seems kept. ``failing``: the conditions that are not sure to be kept if
    as many replies as ``most`` count as failed."""
    n, of = others
    some = (
        f"{n:,} of {of:,} sampled replies {plural(n, 'was another answer', 'were other answers')}"
    )
    limit = f"up to {100 * most:.2g} % of all replies may be"
    if failing:
        which = listed([c.text for c in failing])
        return "cannot tell", (
            f"{some} than when asked alone ({limit}), and if these count as failed, {which} may be "
            "broken"
        )
    return "kept", f"{why}. Even if other answers count as failed, it is kept: {some} ({limit})"


def _weighed(worst: Kept, whole: Judged, *, closed: bool) -> tuple[PromiseVerdict, str]:
    """The verdict, and why; ``worst``: the condition that fared worst."""
    said = _share(worst)
    if worst.verdict == "fails":
        return "broken", said
    if not closed and whole.achieved < throughput.KEEPS_UP:
        behind = f"{100 * whole.achieved:.3g} % of what was offered got a reply within the window"
        if whole.achieved_high < throughput.KEEPS_UP:
            if whole.levelled:
                return "cannot tell", (
                    f"{behind}, because waits grew, but no longer in the last third of the window; "
                    "a longer warm-up would show it"
                )
            return "broken", f"{behind}, and a promise asks for 99 %"
        return "cannot tell", (
            f"{behind}, which may be due to how these requests happened to arrive; a longer window "
            "would show it"
        )
    if worst.verdict == "holds":
        return "kept", said
    return "cannot tell", f"{said}; a longer window would show it"


def _unseen(
    parts: Sequence[tuple[Condition, Judged]], trace: Trace, said: str
) -> tuple[PromiseVerdict, str]:
    """What seems kept by a closed loop: not told where the server gave no reply for as long a share
    of the window as may be late. Its clients sent nothing meanwhile, so hardly a request was.
    """
    least = min((c.allowed for c, _ in parts if c.limit_ns is not None), default=math.inf)
    stalled = silence.share(trace, closed=True)
    if stalled < least:
        return "kept", said
    return "cannot tell", (
        f"{said}; but for {_percent(stalled)} of the window there was no reply at all, and a "
        "closed loop sends nothing meanwhile; an open loop (a rate) would show how many are late"
    )


def _in_the_long_run(
    parts: Sequence[tuple[Condition, Judged]], trial: Trial, trace: Trace, said: str
) -> tuple[PromiseVerdict, str]:
    """What seems kept: not told where waits build up, which a closed loop holds back itself, or
    where a window that is not far below what is allowed met too few clusters of late requests.
    """
    building = [c for c, _ in parts if builds_up(c, _resolved(c.limit_ns, trial, trace))]
    few = [clusters for c, judged in parts if (clusters := _too_few(c, judged.kept[0]))]
    if few and not building:
        return "cannot tell", (
            f"{said}; but late requests came in only about {min(few):.2g} clusters, which is too "
            "few to say how many come in the long run; a longer window would show it"
        )
    if not building:
        return "kept", said
    half = digits((building[0].limit_ns or 0.0) / 2e6)
    return "cannot tell", (
        f"{said}; but waits build up: so many took {half} ms or more that in the long run more "
        f"than {_percent(building[0].allowed)} may be late; a longer window would show it"
    )


def _too_few(condition: Condition, kept: Kept) -> float:
    """In about how many clusters late requests came, where these are too few; else 0, as of a
    condition without a time.

    Of heavy tails a window sees a few clusters, and no rare great one, by which it could tell how
    little its few are worth.
    """
    clusters = kept.share * kept.effective
    near = kept.high > NEAR * condition.allowed
    late = condition.limit_ns is not None and kept.share > 0
    return clusters if late and clusters < CLUSTERS and near else 0.0


def _resolved(limit_ns: float | None, trial: Trial, trace: Trace) -> Trace:
    """Without the requests that were in flight when the drive was cut short, where that hides how
    they fared: those younger than the limit, and without a limit all of them."""
    if trial.drive is None or not trial.drive.cut_short or "unfinished" not in trial.outcomes:
        return trace
    young = trace.outcome == trial.outcomes.index("unfinished")
    if limit_ns is not None:
        young &= trial.drive.elapsed_ns - trace.due < limit_ns
    return _some(trace, ~young)


def _some(trace: Trace, rows: NDArray[np.bool_]) -> Trace:
    columns = ("query", "outcome", "due", "free", "sent", "done")
    return replace(trace, **{name: getattr(trace, name)[rows] for name in columns})


def _excess(kept: Kept) -> tuple[int, float]:
    """The worst condition last: one that surely failed, then by how much of its share it used."""
    return ("holds", "unclear", "fails").index(kept.verdict), kept.share / kept.condition.allowed


def _share(kept: Kept) -> str:
    """How many requests broke the condition, how sure that is, and how many may."""
    condition = kept.condition
    what = "failed"
    if condition.limit_ns is not None:
        what = f"took {digits(condition.limit_ns / 1e6)} ms or more, or failed"
    span = f"{_percent(kept.low)} to {_percent(kept.high)}"
    of_class = f" of the class {quoted(condition.of_class)}" if condition.of_class else ""
    return (
        f"{_percent(kept.share)} of {kept.requests:,} requests{of_class} {what} (95 % interval "
        f"{span}), and fewer than {_percent(condition.allowed)} may"
    )


def _percent(share: float) -> str:
    return f"{digits(round(100 * share, 6))} %"


def sentences(steps: Sequence[Step]) -> list[str]:
    """The answer for each subject and promise: at which loads it is kept, broken, or unknown."""
    judged = [(step, promised) for step in steps for promised in step.promises]
    subjects = list(dict.fromkeys(step.subject for step, _ in judged))
    said = []
    for subject in subjects:
        for text in dict.fromkeys(p.promise for _, p in judged):
            own = [(s, p) for s, p in judged if (s.subject, p.promise) == (subject, text)]
            who = f"{subject}, {text}" if len(subjects) > 1 else text
            said.append(f"{who}: {_answer(own)}")
    return said


def _answer(own: Sequence[tuple[Step, Promised]]) -> str:
    by_load: dict[float, list[Promised]] = {}
    for step, promised in own:
        by_load.setdefault(at.level_of(step), []).append(promised)
    loads: dict[PromiseVerdict, list[str]] = {}
    for load, found in sorted(by_load.items()):
        loads.setdefault(verdict([p.verdict for p in found]), []).append(digits(load))
    unit = _UNITS[own[0][0].kind]
    parts = [f"{_SAID[what]} at {listed(loads[what])}" for what in _WORST if what in loads]
    if by_load.keys() == {1.0}:
        unit = unit.removesuffix("s") if own[0][0].kind == "closed" else unit
    # What is worst is explained; of what was kept all along, the greatest load.
    step, worst = min(reversed(own), key=lambda pair: _WORST.index(pair[1].verdict))
    why = f"at {digits(at.level_of(step))}, {worst.why}" if len(by_load) > 1 else worst.why
    drives = by_load[at.level_of(step)]
    if len(drives) > 1:
        so = sum(p.verdict == worst.verdict for p in drives)
        few = f", {so} of which broke it" if worst.verdict == "broken" and so < len(drives) else ""
        why += f" (one of {len(drives)} drives{few})"
    said = f"{', '.join(parts)} {unit}{_by_classes([p for _, p in own])}"
    return f"{said}: {why}." if worst.by_others else f"{said}. {upper(why)}."


def _by_classes(found: Sequence[Promised]) -> str:
    """Which conditions broke a promise with conditions for classes; empty where none has."""
    texts = list(dict.fromkeys(t for p in found for t, v in p.conditions.items() if v == "broken"))
    of_classes = any(c.of_class for p in found[:1] for c in parse_promise(p.promise))
    return f", by {listed(texts)}" if texts and of_classes else ""


def watched(steps: Sequence[Step]) -> str:
    """For how long that was watched which kept a promise; empty where nothing did.

    An interval is of what its windows saw: a stall that none of them met is in none.
    """
    keeping = {s.subject for s in steps if any(p.verdict == "kept" for p in s.promises)}
    if not keeping:
        return ""
    own = [[s.window_s for s in steps if s.subject == name and at.valid(s)] for name in keeping]
    least_s = min(sum(windows) for windows in own)
    return stalls.watched(least_s, "The server" if len(keeping) == 1 else "Each of the servers")


_WORST: tuple[PromiseVerdict, ...] = ("broken", "cannot tell", "kept")
_SAID = {"broken": "broken", "cannot tell": "it cannot be told", "kept": "kept"}


def verdict(found: Sequence[PromiseVerdict]) -> PromiseVerdict:
    """Of several: broken if any is, kept if all are."""
    return min(found, key=_WORST.index)


class Breach:
    """Watches one drive: has it surely broken a promise by now? Used to end a drive early.

    ``window``: of the drive, in ns. ``classes``: the class of each request, by its number; empty:
    they have none. What it sees are samples in the core's own form; those it saw before are passed
    over. It looks at the whole window so far, now and then, and asks for far more
    certainty than a judgement does, as it looks often. Nothing of it is kept: the record is judged
    by itself.
    """

    def __init__(
        self, texts: Sequence[str], window: tuple[int, int], classes: Sequence[str] = ()
    ) -> None:
        self._promises = [parse_promise(text) for text in texts]
        self._window = window
        self._classes = Classes.of(classes) if classes else None
        self._next_ns = window[0] + _FIRST_NS
        self._fresh, self._seen = Fresh(), np.empty(0, SAMPLE)
        self._new: list[NDArray[Any]] = []

    def saw(self, elapsed_ns: int, recent: bytes) -> bool:
        """Take in the samples finished last; True where a promise is surely broken."""
        self._new.append(self._fresh.of(recent))
        start, end = self._window
        if elapsed_ns < self._next_ns:
            return False
        self._next_ns = start + round((elapsed_ns - start) * _LOOKS)
        seen = self._seen = np.concatenate([self._seen, *self._new])
        self._new.clear()
        trace = Trace(
            query=seen["request"], outcome=seen["outcome"], due=seen["due"], free=seen["free"],
            sent=seen["sent"], done=seen["done"], window=(start, min(end, elapsed_ns)),
            classes=self._classes,
        )  # fmt: skip
        return any(self._broken(judge(promise, trace)) for promise in self._promises)

    def _broken(self, judged: Judged) -> bool:
        if judged.own_fault:
            return False
        return any(_surely(kept) for kept in judged.kept)


def _surely(kept: Kept) -> bool:
    """Whether the share's lower bound at the level ``SURE`` is beyond what is allowed."""
    low = share_at_least(SURE, kept.share * kept.effective, kept.effective)
    return kept.share > 0 and low >= kept.condition.allowed
