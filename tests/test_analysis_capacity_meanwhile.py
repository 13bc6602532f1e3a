"""A machine that becomes slower between two searches makes no server the better one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from queues import Serve, fixed
from searchbench.analysis.capacity import meanwhile
from searchbench.analysis.capacity.verdict import sustained
from searchbench.analysis.compare.same_work import SameWork
from searchbench.analysis.judge import judge
from searchbench.analysis.trial.measured import Samples
from searches import Lab

PROMISE = "p99 < 10ms"
SLOWER_PER_S = 0.01 / 60


def on_a_slowing_machine(serve: Serve) -> Serve:
    """The same server on a machine that becomes 1 % slower a minute, whoever is driven on it."""
    began_s = [0.0]

    def slowed(due: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        at = np.arange(0, 6 * due[-1] + 20, 0.005)
        speed = np.clip(1 - SLOWER_PER_S * (began_s[0] + at), 0.3, 3)
        work = np.concatenate([[0.0], np.cumsum(speed[:-1]) * 0.005])
        done, ok = serve(np.interp(due, at, work), rng)
        began_s[0] += float(due[-1]) + 1.0
        return np.interp(done, work, at), ok

    return slowed


@pytest.mark.parametrize("turns", [False, True])
def test_a_machine_that_becomes_slower_makes_no_subject_better(tmp_path: Path, turns: bool) -> None:
    serve = on_a_slowing_machine(fixed(4, 0.002))
    servers = dict.fromkeys(("a", "b", "c"), serve)
    lab = Lab(tmp_path / "r", servers, (PROMISE,), look_per_s=1500, turns=turns)
    found = judge(lab.run())
    assert (found.verdict.best, found.verdict.resolved) == (None, False)
    assert "sustains more" not in found.verdict.decision
    one_after_another = "A change of the machine from one search to the next would look the same."
    assert (one_after_another in found.verdict.decision) is not turns
    if not turns:
        assert found.capacity[1].speeds > 0
        assert "a and c are not told apart" in found.verdict.decision


@pytest.mark.parametrize(
    ("speeds", "turns", "sure"), [(0.0, False, True), (0.05, False, False), (0.05, True, True)]
)
def test_whoever_is_in_front_by_less_than_a_drift_may_make_only_leads(
    tmp_path: Path, speeds: float, turns: bool, sure: bool
) -> None:
    servers = {"a": fixed(4, 0.002), "b": fixed(4, 0.0015)}
    lab = Lab(tmp_path / "r", servers, (PROMISE,), effort=0.5, look_per_s=1500, turns=turns)
    record = lab.run()
    found = judge(record)
    assert [c.speeds for c in found.capacity] == [0.0, 0.0], "neither server changed"
    a, b = found.capacity
    changed = replace(found, capacity=(replace(a, speeds=speeds), b))
    again = sustained(changed, lambda x, y: SameWork(), Samples(record))
    assert meanwhile.apart(a, b, found.steps) is not turns
    assert again.verdict.best == ("b" if sure else None)
    assert (f"With {PROMISE}, b sustains more than a (" in again.verdict.decision) is sure
    assert (f"With {PROMISE}, b leads a (" in again.verdict.decision) is not sure


def test_a_drift_does_not_hide_that_a_server_is_twice_as_fast(tmp_path: Path) -> None:
    servers = {"a": fixed(1, 0.002), "b": fixed(2, 0.002)}
    record = Lab(tmp_path / "r", servers, (PROMISE,), effort=0.3, look_per_s=450).run()
    found = judge(record)
    a, b = found.capacity
    changed = replace(found, capacity=(replace(a, speeds=0.05), b))
    again = sustained(changed, lambda x, y: SameWork(), Samples(record))
    assert again.verdict.best == "b"
    twice = [replace(one, searches=2) for one in (a, b)]
    assert not meanwhile.apart(*twice, found.steps), "each interval covers several times"
