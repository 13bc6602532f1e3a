"""Judging a lot: ten million samples with a report, a pair's hits."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benches.figure import Figure


def figures() -> Iterator[Figure]:
    """Seconds and peak memory of a process of its own."""
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
        place = Path(folder)
        yield from _report(place)
        yield from _agreement(place)


def _report(place: Path) -> Iterator[Figure]:
    from tests.records import Study, lognormal

    study = Study(blocks=5)
    for number in range(4):
        study.add(
            f"t{number}", system=f"s{number}", server=lognormal(0.002 * (1 + number / 10)),
            clients=100, seconds=10.0,
        )  # fmt: skip
    record = study.write(place / "record")
    samples = sum(pq.read_metadata(p).num_rows for p in record.glob("trials/*/samples.parquet"))
    code = (
        "import sys; from searchbench.record import open_record as o;"
        "from searchbench.analysis.judge import judge; from searchbench.report import write_report;"
        "r = o(sys.argv[1]); write_report(r, judge(r), __import__('pathlib').Path(sys.argv[2]))"
    )
    seconds, peak = _timed(code, str(record), str(place / "report"))
    note = f"{samples:,} samples"
    yield Figure("judgement and report of ten million samples", seconds, "s", at_most=20, note=note)
    yield Figure("  its peak memory", peak / 1e9, "GB", at_most=2)


def _agreement(place: Path) -> Iterator[Figure]:
    """A pair from its record: reading the replies, all measures, causes and examples."""
    from tests.records import Study

    from searchbench.analysis.agreement.agreement import compare, read_answers
    from searchbench.record import open_record

    queries, hits = 10_000, 100
    rng = np.random.default_rng(1)
    weights = np.repeat(np.arange(hits // 2)[::-1], 2).astype(float).tolist()

    def answers(noise: float) -> Callable[[int], dict[str, Any]]:
        def answer(query: int) -> dict[str, Any]:
            # 110 documents match, in pairs of one weight; noise moves some across the groups and
            # beyond the cut, so no list is the other's and no shortcut is taken.
            ranked = np.argsort(np.arange(110) + noise * rng.normal(0, 3, 110))[:hits]
            ids = [f"package-{(query * 37 + int(i) * 101) % 60_000}" for i in ranked]
            return {"total": 110, "ids": ids, "scores": weights}

        return answer

    study = Study(blocks=1, control=None, queries=queries)
    study.add("a", seconds=1.5, answer=answers(0.0))
    study.add("b", seconds=1.5, answer=answers(1.0))
    record = open_record(study.write(place / "agreement"))
    asked = record.queries(record.trials[0].queries.digest)
    began = time.perf_counter()
    a, b = (read_answers(record, trial) for trial in record.trials)
    found = compare(a, b, require="set", k=hits, queries=asked).agreement
    seconds = time.perf_counter() - began
    groups = found.groups
    if groups is None or groups.document_mismatch[1] != queries * hits:
        raise RuntimeError(f"the pair was not compared whole: {found}")
    yield Figure(
        "agreement of a pair, 10,000 queries × 100 documents", seconds, "s", at_most=2,
        note=f"{groups.document_mismatch[0]:,} documents differ",
    )  # fmt: skip


_PEAK = ";print('peak', open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"


def _timed(code: str, *argv: str) -> tuple[float, float]:
    """Seconds and peak memory in bytes of a process that runs ``code``.

    The peak is the process's own high-water mark: ru_maxrss of a child begins with its parent's.
    """
    began = time.perf_counter()
    said = subprocess.run(
        [sys.executable, "-c", code + _PEAK, *argv], check=True, capture_output=True, text=True
    ).stdout
    seconds = time.perf_counter() - began
    return seconds, float(said.rsplit("peak", 1)[1]) * 1024
