"""What others took from one of two servers while it was searched is no difference of the two."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from queues import fixed
from searchbench.analysis.compare.taken import TAKEN
from searchbench.analysis.judge import judge
from searchbench.record import open_record
from searches import Lab

PROMISE = "p99 < 10ms"


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("searched") / "r"
    servers = {"a": fixed(4, 0.0028), "b": fixed(4, 0.002)}
    return Lab(path, servers, (PROMISE,), effort=0.5, look_per_s=1500).run().path


@pytest.mark.parametrize(
    ("stolen", "sure"), [((), True), (("a",), False), (("b",), True), (("a", "b"), True)]
)
def test_what_others_took_from_the_lesser_one_may_have_made_it_the_lesser(
    searched: Path, tmp_path: Path, stolen: tuple[str, ...], sure: bool
) -> None:
    """On a machine that is said to be shared, where such trials count."""
    copy = tmp_path / "r"
    shutil.copytree(searched, copy)
    record = open_record(copy)
    subject = {t.id: t.subject for t in record.plan.treatments}
    for trial in record.trials:
        if subject[trial.treatment] not in stolen or trial.window is None:
            continue
        about = copy / "trials" / trial.trial / "trial.json"
        told = json.loads(about.read_text())
        seconds = (trial.window.end - trial.window.start) / 1e9
        told["host_window"] = {"shared": True, "cores": 2, "steal_s": 0.3 * seconds}
        about.write_text(json.dumps(told))
    verdict = judge(open_record(copy)).verdict
    assert (f"With {PROMISE}, b sustains more than a (" in verdict.decision) is sure
    assert (f"{TAKEN} a, which could make " in verdict.decision) is not sure
    assert (verdict.best == "b") is sure
