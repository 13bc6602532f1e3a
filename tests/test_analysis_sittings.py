"""What was measured again later is no difference of the systems."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from records import Study, lognormal
from searchbench.analysis.compare.sittings import APART
from searchbench.analysis.judge import judge
from searchbench.record import Record, open_record


def studied(folder: Path) -> Record:
    """Of two systems, the second of which is 1.2 times as fast."""
    run = Study(blocks=4, seed=3, block_noise=0.01, trial_noise=0.003)
    for name, factor in (("x", 1.2), ("y", 1.0)):
        run.add(name, system=name, server=lognormal(0.004 * factor, 0.1), clients=4, seconds=8.0)
    return open_record(run.write(folder))


def measured_on(record: Record, days: dict[str, int]) -> Record:
    """The same, each trial as if begun on such a day, after those before it in the plan."""
    for number, trial in enumerate(record.trials):
        assert trial.drive is not None
        second = 86_400 * days.get(trial.trial, 0) + 10 * number
        drive = replace(trial.drive, started_unix_ns=10**18 + second * 10**9)
        path = record.path / "trials" / trial.trial / "trial.json"
        path.write_bytes(msgspec.json.encode(replace(trial, drive=drive)))
    return open_record(record.path)


@pytest.mark.parametrize(
    ("again", "resolved"),
    [
        ({("y", 1), ("y", 2), ("y", 3), ("y", 4)}, False),
        ({("y", 1), ("y", 2), ("x", 3)}, False),  # one block alone is of one sitting
        ({("y", 1), ("x", 3)}, True),
        ({(name, block) for name in "xy" for block in (1, 2, 3, 4)}, True),
        (set(), True),
    ],
)
def test_all_of_one_side_measured_again_later_may_be_another_machine(
    tmp_path: Path, again: set[tuple[str, int]], resolved: bool
) -> None:
    record = studied(tmp_path / "r")
    system = {t.id: t.system for t in record.plan.treatments}
    later = {t.trial: 1 for t in record.trials
             if (system[t.treatment], t.block) in again and not t.control}  # fmt: skip
    for name in later:
        (record.path / "void" / f"{name}.1").mkdir(parents=True)
    found = judge(measured_on(record, later))
    (c,) = (c for c in found.comparisons if c.metric == "throughput")
    assert (c.verdict == "faster") is resolved
    assert (APART in c.reason) is not resolved
    assert (found.verdict.best == "y") is resolved
    assert any(f.kind == "measured again" for f in found.findings) is bool(again)


@pytest.mark.parametrize(
    ("later", "resolved"),
    [
        ({"x": 1, "y": 2}, False),  # both were measured again, and not on the same day
        ({"x": 1, "y": 1}, True),
        ({"y": 1}, False),  # what failed is measured again too, and is not set aside
        ({}, True),
    ],
)
def test_a_sitting_goes_through_the_plan_in_its_order(
    tmp_path: Path, later: dict[str, int], resolved: bool
) -> None:
    record = studied(tmp_path / "r")
    system = {t.id: t.system for t in record.plan.treatments}
    days = {t.trial: later.get(system[t.treatment], 0) for t in record.trials if not t.control}
    found = judge(measured_on(record, days))
    (c,) = (c for c in found.comparisons if c.metric == "throughput")
    assert (c.verdict == "faster") is resolved
    assert (APART in c.reason) is not resolved
