"""What a JVM did beside answering: each finding at its threshold, and silence where unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import records
from records import Study, constant
from searchbench.analysis.judge import judge
from searchbench.analysis.trial.jvm import jvm
from searchbench.analysis.trial.measured import read_trace
from searchbench.record import open_record
from searchbench.record.trial import Trial


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A window of 5 s after a second of warm-up, of a server that no record calls a JVM."""
    study = Study(blocks=1, control=None, trial_noise=0, block_noise=0)
    study.add("t", server=constant(0.02), seconds=6.0, warmup_s=1.0)
    return study.write(tmp_path_factory.mktemp("plain") / "record")


@pytest.mark.parametrize(
    ("server", "kinds"),
    [
        ({}, []),
        ({"jvm_compilers_s": 0.0, "jvm_collectors_s": 0.0, "cpu_s": 4.0}, []),
        ({"jvm_compilers_s": 0.24, "jvm_collectors_s": 0.39, "cpu_s": 4.0}, []),
        ({"jvm_compilers_s": 0.26, "jvm_collectors_s": 0.0, "cpu_s": 4.0}, ["compilers busy"]),
        ({"jvm_compilers_s": 0.0, "jvm_collectors_s": 0.41, "cpu_s": 4.0}, ["garbage collection"]),
        # Below what ticks can tell of a server that hardly runs.
        ({"jvm_compilers_s": 0.0, "jvm_collectors_s": 0.04, "cpu_s": 0.1}, []),
    ],
)
def test_a_jvm_that_compiles_or_collects_is_found(
    plain: Path, server: dict[str, Any], kinds: list[str]
) -> None:
    record = open_record(plain)
    trial = records._with(record.trials[0], {"server": server})
    assert isinstance(trial, Trial)
    rows = list(jvm(trial, read_trace(record, trial)))
    assert [row[0] for row in rows] == kinds
    assert all(row[3].endswith(".") and row[4] for row in rows)


def test_what_compiling_took_is_in_the_audit_and_among_the_resources(tmp_path: Path) -> None:
    study = Study(blocks=1, control=None, trial_noise=0, block_noise=0)
    told = {"server": {"jvm_compilers_s": 1.0, "jvm_collectors_s": 0.5, "cpu_s": 4.0}}
    study.add("t", server=constant(0.02), seconds=6.0, warmup_s=1.0, extra=told)
    judgement = judge(open_record(study.write(tmp_path / "record")))
    ((trial,),) = (t.trials for t in judgement.treatments)
    found = {f.kind: f for f in trial.findings}
    assert found["compilers busy"].severity == "warning"
    assert found["compilers busy"].number == "20 % of a core, 1.00 CPU seconds in the window"
    assert found["compilers busy"].remedy == "Warm up 12 s."
    assert found["garbage collection"].severity == "note"
    (resources,) = judgement.resources.values()
    assert (resources["jvm_compilers_s"].value, resources["jvm_compilers_s"].unit) == (1.0, "s")


@pytest.mark.parametrize("measure", ["throughput", "sweep"])
@pytest.mark.parametrize("compiling", [("slow",), ("quick",), ()])
def test_the_verdict_says_that_the_slower_one_was_still_compiling(
    tmp_path: Path, measure: str, compiling: tuple[str, ...]
) -> None:
    run = Study(blocks=4, control=None, trial_noise=0.0, block_noise=0.0)
    if measure == "sweep":
        run.judging = {"measure": "sweep"}
    for name, service_s in (("slow", 0.004), ("quick", 0.002)):
        busy_s = 2.0 if name in compiling else 0.0
        told = {"jvm_compilers_s": busy_s, "jvm_collectors_s": 0.0, "cpu_s": 4.0}
        run.add(name, system=name, server=records.lognormal(service_s, 0.1), seconds=8.0,
                extra={"server": told})  # fmt: skip
    found = judge(open_record(run.write(tmp_path / "r"))).verdict
    assert found.best == "quick", found.decision
    said = "In most trials of slow the compilers of the JVM were still busy."
    assert (said in found.decision) is (compiling == ("slow",))
    assert any(said in point for point in found.points) is (compiling == ("slow",))
