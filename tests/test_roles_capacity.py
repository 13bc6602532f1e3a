"""Capacity searches beside roles on real engines. (Truths are in test_analysis_capacity_beside.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from searchbench.analysis.judge import judge
from searchbench.analysis.roles import truth
from searchbench.engines.sphinx import Sphinx
from searchbench.lab.get.install import missing
from searchbench.measure.run import run as measure
from searchbench.record import Record
from searchbench.report.write import write_report

pytestmark = pytest.mark.slow
SQLITE = """
question = "How many searches does SQLite sustain while documents come in?"
[corpus]
family = "generated"
documents = 1500
[queries]
distinct = 20
[systems.sqlite]
[roles.writer]
does = "write"
share = 0.4
marker_every_s = 0.5
[roles.publisher]
does = "publish"
every_s = 0.5
[load]
find_capacity = true
slo = "p90 < 200ms"
effort = 0.03
warmup_s = 0.5
connections = 4
[factors]
meanwhile = [
  { name = "nothing", set = { "roles.writer.documents_per_s" = 0, "roles.publisher.idle" = true } },
 { name = "writing", set = {"roles.writer.documents_per_s" = 20, "roles.publisher.idle" = false} },
]
"""

LOST = """
question = "What does Sphinx sustain without one of its parts?"
[corpus]
family = "generated"
documents = 600
[queries]
distinct = 10
[systems.sphinx]
parts = 2
part_kind = "agent"
[roles.loss]
does = "fault"
fault = "kill"
of = "p1"
[load]
find_capacity = true
slo = "p90 < 200ms"
effort = 0.03
warmup_s = 0.5
connections = 4
"""


def run(text: str, folder: Path) -> Record:
    path = folder / "study.toml"
    path.write_text(text)
    return measure(path, folder / "record", work=folder / "work")


def test_a_real_engine_is_searched_on_a_copy_for_each_rate(tmp_path: Path) -> None:
    record = run(SQLITE, tmp_path)
    assert {trial.status for trial in record.trials} == {"ok"}, record.trials[-1].reason
    nothing, writing = "meanwhile=nothing", "meanwhile=writing"
    kept = 900
    for trial in record.trials:
        assert trial.facts is not None
        assert trial.facts.documents == kept, "each begins with the same documents"
        assert (trial.load.warmup_s or 0.0) >= 0.5
        writer, *others = trial.beside
        assert writer.idle == (trial.subject == nothing)
        assert not [f for f in truth.findings(record, trial) if f.severity == "invalid"]
        if trial.load.kind == "open":
            assert (trial.load.seconds or 0.0) % 0.5 == pytest.approx(0.0, abs=1e-6)
        if not writer.idle:
            assert writer.applied is not None
            assert writer.applied.after == kept + writer.planned
            publisher = next(r for r in others if r.does == "publish")
            assert publisher.drive is not None
    judged = judge(record)
    assert [c.subject for c in judged.capacity] == [nothing, writing]
    assert judged.roles is not None
    (found,) = judged.roles.capacity
    assert (found.subject, found.idle) == (writing, nothing)
    (pace,) = found.paces
    assert pace.asked_per_s == pytest.approx(20, rel=0.25)
    report = write_report(record, judged, tmp_path / "report")
    page = report.html.read_text(encoding="utf-8")
    assert "The capacity of the readers, compared with every role idle." in page
    assert "capacity_beside.csv" in {path.name for path in report.csv}


def test_a_part_that_is_lost_is_away_for_all_of_each_trial(tmp_path: Path) -> None:
    if lacking := missing(Sphinx()):
        pytest.skip(f"no sphinx here: {lacking}")
    record = run(LOST, tmp_path)
    assert {trial.status for trial in record.trials} == {"ok"}, record.trials[-1].reason
    for trial in record.trials:
        assert trial.window is not None
        assert trial.fault is not None
        assert trial.fault.begun is not None
        assert trial.fault.begun < trial.window.start
        assert trial.fault.again is not None
        assert trial.fault.again >= trial.window.end
    judged = judge(record)
    (found,) = judged.capacity
    # Without a part all answers are in part, which is no rate's fault.
    assert found.holds is None
    (*_, least) = sorted(judged.steps, key=lambda s: s.rate_asked_per_s or 0.0, reverse=True)
    assert least.outcomes.get("partial", 0) > 0.9 * least.requests
