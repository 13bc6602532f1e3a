"""What each class of requests met: its share of the load, its times, its errors.

Figures of a class are taken from the samples as those of the whole are, so a class with few
requests has fewer quantiles and wider intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import ClassSeen, Estimate
from searchbench.analysis.stats import within
from searchbench.analysis.trial import latency
from searchbench.analysis.trial.classes import Classes
from searchbench.analysis.trial.measured import Measured, Trace
from searchbench.analysis.trial.pooled import of_figure, pooled_quantile

ByClass = Mapping[str, tuple[NDArray[np.int64], NDArray[np.int64]]]


def of_window(trace: Trace) -> tuple[ClassSeen, ...]:
    """What each class met in the window; classes of which nothing was due are left out."""
    if trace.classes is None:
        return ()
    shown, inside = trace.classes.shown, trace.measured()
    good = inside & (trace.outcome == 0) & (trace.done >= 0) & (trace.sent >= 0)
    found, first = [], _first_asks(trace)
    for name in shown.names:
        own = shown.rows(trace.query, name)
        if seen := _seen(name, trace, own, inside, good, first):
            found.append(seen)
    return tuple(found)


def _seen(
    name: str,
    trace: Trace,
    own: NDArray[np.bool_],
    inside: NDArray[np.bool_],
    good: NDArray[np.bool_],
    first: NDArray[np.bool_],
) -> ClassSeen | None:
    mine, window = inside & own, trace.window
    n = int(np.count_nonzero(mine))
    if not n:
        return None
    due, well = trace.due[mine], good & own
    figures: dict[str, Estimate | None] = {
        "share": within.share(own[inside], trace.due[inside], window),
        "throughput": within.rate(trace.due[well], window),
        "error_share": within.share(trace.outcome[mine] != 0, due, window),
        "first_asks": Estimate(float(np.count_nonzero(mine & first)) / n, "share", n),
    }
    for kind, since in (("service", trace.sent), ("response", trace.due)):
        times = within.quantiles((trace.done - since)[well], trace.due[well], window)
        figures |= {f"{kind}_{quantile}": estimate for quantile, estimate in times.items()}
    return ClassSeen(name, n, {key: e for key, e in figures.items() if e is not None})


def _first_asks(trace: Trace) -> NDArray[np.bool_]:
    """Of each request whether it was the first of its query in the whole drive."""
    first = np.zeros(trace.due.size, np.bool_)
    order = np.argsort(trace.due, kind="stable")
    first[order[np.unique(trace.query[order], return_index=True)[1]]] = True
    return first


def durations(measured: Measured, classes: Classes) -> ByClass:
    """By class that is shown, the ascending durations of a trial: service and response, in ns."""
    found = {}
    for name in classes.shown.names:
        own = classes.shown.rows(measured.query, name)
        found[name] = np.sort(measured.service_ns[own]), np.sort(measured.response_ns[own])
    return found


def over_trials(
    seen: Sequence[Sequence[ClassSeen]], pooled: Sequence[ByClass]
) -> tuple[ClassSeen, ...]:
    """What each class met in all trials of a treatment together, as it is said of the whole.

    ``seen``, ``pooled``: of each trial what ``of_window`` and ``durations`` give.
    """
    found = []
    for name in dict.fromkeys(one.name for trial in seen for one in trial):
        own = [one for trial in seen for one in trial if one.name == name]
        each: dict[str, list[Estimate]] = {}
        for figure, estimate in (item for one in own for item in one.figures.items()):
            each.setdefault(figure, []).append(estimate)
        figures = {figure: of_figure(figure, several) for figure, several in each.items()}
        for at, kind in enumerate(("service", "response")):
            parts = [trial[name][at] for trial in pooled if name in trial]
            # Stable sorting of ascending runs is a merge.
            every = np.sort(np.concatenate([np.empty(0, np.int64), *parts]), kind="stable")
            for quantile, q in latency.LANDMARKS.items():
                if estimated := pooled_quantile(parts, every, q):
                    figure = f"{kind}_{quantile}"
                    single = len(each.get(figure, [])) == len(pooled) == 1
                    figures[figure] = each[figure][0] if single else estimated
        found.append(ClassSeen(name, sum(one.requests for one in own), figures))
    return tuple(found)
