"""A closed loop sends nothing while its server hangs, so its requests do not show the hang."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from searchbench.analysis.sweep.promises import _unseen
from searchbench.analysis.trial.measured import Trace
from searchbench.workload.load_table import parse_promise

CLIENTS, SERVICE_S, SECONDS = 4, 0.001, 12.0
S = 10**9


def drive(hang_s: float) -> Trace:
    """Each client asks when it has its answer; from 6 s on nothing is answered for so long."""
    due, done = [], []
    for client in range(CLIENTS):
        at = 1e-4 * client
        while at < SECONDS:
            end = at + SERVICE_S
            if at <= 6.0 < end:
                end = 6.0 + hang_s + SERVICE_S
            due.append(at)
            done.append(end)
            at = end
    order = np.argsort(due, kind="stable")
    at_ns, done_ns = ((np.array(x)[order] * S).astype(np.int64) for x in (due, done))
    n = len(due)
    query, well = np.zeros(n, np.uint32), np.zeros(n, np.uint8)
    return Trace(query, well, at_ns, at_ns, at_ns, done_ns, (2 * S, round(SECONDS * S)))


@pytest.mark.parametrize(("hang_s", "told"), [(0.0, True), (2.0, False)])
def test_a_promise_is_not_kept_by_those_who_were_not_asked(hang_s: float, told: bool) -> None:
    parts: Any = [(c, None) for c in parse_promise("p99 < 50ms")]
    found, why = _unseen(parts, drive(hang_s), "0.01 % took 50 ms or more")
    assert found == ("kept" if told else "cannot tell")
    assert ("for 20 % of the window there was no reply at all" in why) is not told


def test_a_promise_about_errors_alone_has_no_times_that_a_hang_hides() -> None:
    parts: Any = [(c, None) for c in parse_promise("errors < 1%")]
    assert _unseen(parts, drive(2.0), "none failed")[0] == "kept"
