"""What was measured again later is no difference of the systems."""

from __future__ import annotations

from pathlib import Path

import pytest

from records import Study, lognormal
from searchbench.analysis.compare.sittings import APART
from searchbench.analysis.judge import judge
from searchbench.record import open_record


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
    run = Study(blocks=4, seed=3, block_noise=0.01, trial_noise=0.003)
    for name, factor in (("x", 1.2), ("y", 1.0)):
        run.add(name, system=name, server=lognormal(0.004 * factor, 0.1), clients=4, seconds=8.0)
    record = open_record(run.write(tmp_path / "r"))
    system = {t.id: t.system for t in record.plan.treatments}
    for trial in record.trials:
        if (system[trial.treatment], trial.block) in again and not trial.control:
            (record.path / "void" / f"{trial.trial}.1").mkdir(parents=True)
    found = judge(record)
    (c,) = (c for c in found.comparisons if c.metric == "throughput")
    assert (c.verdict == "faster") is resolved
    assert (APART in c.reason) is not resolved
    assert (found.verdict.best == "y") is resolved
    assert any(f.kind == "measured again" for f in found.findings) is bool(again)
