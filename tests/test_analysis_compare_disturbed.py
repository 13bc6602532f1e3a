"""What `compare` says beside its decision: what disturbed the machine, what loss is hidden."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from records import Study, _core, lognormal
from searchbench.analysis.compare.records import compare_records
from searchbench.record import Record, open_record

WINDOW_S = 8.0


def attached(path: Path, seed: int, mean_s: float, *, foreign: bool) -> Record:
    """A run of a system that ran already; others use nearly all of both cores, or nothing."""
    study = Study(blocks=3, seed=seed, trial_noise=0.003, block_noise=0.003,
                  judging={"ingest": "as-found"})  # fmt: skip
    extra: dict[str, object] = {"attached": "127.0.0.1:1"}
    if foreign:
        cores = [msgspec.to_builtins(_core(c, 0.97 * WINDOW_S, WINDOW_S)) for c in (0, 1)]
        busy = {"busy_s": 1.95 * WINDOW_S, "idle_s": 0.05 * WINDOW_S, "by_core": cores}
        extra["host_window"] = busy
    study.add("x", system="x", server=lognormal(mean_s, 0.1), seconds=WINDOW_S + 1, extra=extra)
    return open_record(study.write(path))


def test_what_others_took_while_the_second_ran_stands_beside_the_decision(tmp_path: Path) -> None:
    def said(foreign: bool) -> str:
        first = [attached(tmp_path / f"{foreign}a{i}", i, 0.004, foreign=False) for i in range(2)]
        second = [
            attached(tmp_path / f"{foreign}b{i}", 10 + i, 0.0052, foreign=foreign) for i in range(2)
        ]
        found = compare_records(first[0], second[0], 0.05, first[1:], second[1:])
        return found.decision

    disturbed = "The machine was disturbed: in the second by foreign CPU in 2 of 2 runs. "
    assert disturbed in said(foreign=True)
    assert "disturbed" not in said(foreign=False)


class Scattering(Study):
    """Of 2 % of the requests the time is another in each trial."""

    rare_s = 0.006
    of_trial = 1.0

    def _write_trial(self, writer: Any, planned: Any, position: int, *rest: Any) -> None:
        own = np.random.default_rng([self.seed, position])
        self.of_trial = float(np.exp(0.5 * own.standard_normal()))
        super()._write_trial(writer, planned, position, *rest)

    def serve(self, due: Any, query: Any, rng: np.random.Generator) -> Any:
        """Four milliseconds, and for the rare ones what this trial has."""
        times = lognormal(0.004, 0.05)(due, query, rng)
        rare = self.rare_s * self.of_trial * np.exp(0.05 * rng.standard_normal(times.size))
        return np.where(rng.random(times.size) < 0.02, rare, times)


def test_a_loss_that_another_metric_does_not_exclude_is_named(tmp_path: Path) -> None:
    """Throughput is the same, and the p99 is not known well."""
    records = []
    for seed, rare_s in ((5, 0.006), (6, 0.012)):
        study = Scattering(blocks=4, seed=seed, trial_noise=0.002, block_noise=0.002, control=None)
        study.rare_s = rare_s
        study.add("x", system="x", server=study.serve, seconds=11.0, clients=8)
        records.append(open_record(study.write(tmp_path / str(seed))))
    found = compare_records(*records)
    assert [line.verdict for line in found.comparisons if line.metric == "service_p99"] == [
        "not resolved"
    ]
    assert re.search(
        r"No resolved loss exceeds 5 %, .*one of [\d.]+ % by service p99", found.headline
    )
