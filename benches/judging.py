"""Judging many samples: ten million with a report, a hundred million quantiles."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benches.figure import Figure

TREATMENTS = 10


def figures() -> Iterator[Figure]:
    """Seconds and peak memory of a process of its own."""
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
        place = Path(folder)
        yield from _report(place)
        yield from _quantiles(place)


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


def _quantiles(place: Path) -> Iterator[Figure]:
    rng = np.random.default_rng(1)
    rows = 10_000_000
    for number in range(TREATMENTS):
        sent = np.sort(rng.integers(0, 10**11, rows))
        service = (rng.lognormal(0, 0.6, rows) * (1 + number / 10) * 1e6).astype(np.int64)
        table = pa.table({
            "outcome": np.zeros(rows, np.uint8), "due": sent, "sent": sent, "done": sent + service,
        })  # fmt: skip
        pq.write_table(table, place / f"q{number}.parquet", compression="zstd", compression_level=1)
    code = (
        "import sys; from pathlib import Path;"
        "from searchbench.analysis.latency import quantiles_by_treatment as q;"
        "print(q({str(i): [Path(p)] for i, p in enumerate(sys.argv[1:])}, (.5, .99, .999))['0'])"
    )
    files = [str(place / f"q{n}.parquet") for n in range(TREATMENTS)]
    seconds, peak = _timed(code, *files)
    yield Figure(
        "exact quantiles of 100 million samples by treatment", seconds, "s", at_most=10,
        note=f"{peak / 1e9:.2f} GB",
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
