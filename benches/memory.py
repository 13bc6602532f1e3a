"""How much memory a long run takes, and whether the schedule holds while samples go to disk.

    python benches/memory.py SECONDS [RATE] [FOLDER]     by hand, for as long as you like

What is measured is a process of its own, which drives, and writes the record as `searchbench load`
does; its peak is what the kernel says of it at its end. The bench runs a minute, and by hand 3600
is an hour: 20,000/s are then 4.6 GB in FOLDER.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

from benches.figure import Figure, Missing
from benches.servers import CLIENT_CPU, RESPONDER, drive, http_get, serving
from searchbench import _core

REQUESTS = 10_000_000
CLIENTS = 64
RATE = 20_000
POOL = 256
# Small, so that a minute is long enough to spill.
SPILL_AFTER_BYTES = 4 << 20
_CHUNK = 1 << 20


def figures(requests: int = REQUESTS, seconds: float = 60.0) -> Iterator[Figure | Missing]:
    """Peak memory of a process that records so many; a minute that spills, slot for slot."""
    if "spill" not in str(getattr(_core.drive, "__text_signature__", "")):
        yield Missing("memory of long runs (this build of the core spills nothing to disk)")
        return
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
        told = _child("record", requests, folder)
    yield Figure(
        f"{told['recorded']:,} requests driven and recorded: peak memory",
        told["peak_bytes"] / 1e6, "MB", at_most=600,
        note=f"in {told['seconds']:.0f} s, {told['file_bytes'] / 1e6:.0f} MB of samples; "
        f"{told['before_bytes'] / 1e6:.0f} MB before the first request",
    )  # fmt: skip
    if told["recorded"] < requests:
        yield Figure("requests that are not on record", requests - told["recorded"], "", at_most=0)
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
        yield from _held(_child("spill", seconds, folder), seconds)


def _held(told: dict[str, Any], seconds: float) -> Iterator[Figure]:
    name = f"{seconds:.0f} s at {told['rate']:,.0f}/s, spilled"
    yield Figure(
        f"{name}: slots of the schedule that lack a sample", told["gaps"], "", at_most=0,
        note=f"of {told['slots']:,}; {told['not_ok']} were not answered",
    )  # fmt: skip
    yield Figure(f"{name}: bytes that went to disk while driving", told["spilled_bytes"] / 1e6,
                 "MB", note=f"of {told['bytes'] / 1e6:.0f} MB")  # fmt: skip
    yield Figure(f"{name}: generator lag, greatest", told["lag_max_ns"] / 1e6, "ms",
                 note=f"p99 {told['lag_p99_ns'] / 1e3:.1f} us, "
                 f"p99.9 {told['lag_p999_ns'] / 1e3:.1f} us")  # fmt: skip
    yield Figure(f"{name}: greatest time in which nothing was sent", told["silence_ns"] / 1e6, "ms")


def _child(what: str, amount: float, folder: str, rate: float = RATE) -> dict[str, Any]:
    """This file as a process of its own, against a server on the other core."""
    with serving([RESPONDER, "--port", "0", "--bytes", "100", "--keep-alive"]) as port:
        argv = [sys.executable, __file__, "--child", what, port, amount, folder, rate]
        done = subprocess.run([str(word) for word in argv], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"recording failed: {done.stderr[-800:]}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def _record(port: int, requests: int, folder: str) -> dict[str, Any]:
    """A closed loop of so many requests, recorded as any load run is."""
    import tomli_w

    from searchbench.measure.run import run
    from searchbench.study import parse_study

    tables = {
        "question": "How much memory does it take?",
        "requests": {"path": "/"},
        "agreement": {"captures": 0},
        "systems": {"it": {"attach": [f"http://127.0.0.1:{port}"], "engine": "none"}},
        "load": {"clients": [CLIENTS], "requests": requests, "idle": "block",
                 "cpus": [CLIENT_CPU]},
    }  # fmt: skip
    study = parse_study(tomli_w.dumps(tables), "bench.toml", Path(folder))
    before, began = peak_bytes(), time.monotonic()
    record = run(study, Path(folder) / "record")
    took = time.monotonic() - began
    # Before anything is read again: reading is not recording.
    peak = peak_bytes()
    trial = record.trials[0]
    if trial.status != "ok":
        raise RuntimeError(trial.reason)
    import pyarrow.parquet as pq

    samples = record.samples_path(trial.trial)
    return {
        "recorded": pq.read_metadata(samples).num_rows,
        "file_bytes": samples.stat().st_size,
        "before_bytes": before,
        "peak_bytes": peak,
        "seconds": took,
    }


def _spill(port: int, seconds: float, folder: str, rate: float) -> dict[str, Any]:
    """A constant rate, with nearly all samples on disk while it is driven; slot for slot."""
    due = (np.arange(int(rate * seconds)) * (1e9 / rate)).astype(np.int64)
    done = drive(
        port, "http", [http_get()], sequence=np.zeros(len(due), np.uint32), due_ns=due,
        connections=POOL, idle="hybrid", spill=folder, spill_after_bytes=SPILL_AFTER_BYTES,
    )  # fmt: skip
    seen = np.zeros(len(due), np.bool_)
    sent = np.empty(len(done.samples), np.int64)
    lag = np.empty(len(done.samples), np.int64)
    not_ok = 0
    for at in range(0, len(done.samples), _CHUNK):
        some = done.samples[at : at + _CHUNK]
        # Due times are whole and apart, so each stands for its slot.
        seen[np.searchsorted(due, some["due"])] = True
        sent[at : at + len(some)] = some["sent"]
        lag[at : at + len(some)] = some["sent"] - np.maximum(some["due"], some["free"])
        not_ok += int(np.count_nonzero(some["outcome"]))
    return {
        "rate": rate,
        "slots": len(due),
        "gaps": int(len(due) - np.count_nonzero(seen)) + len(done.samples) - len(due),
        "not_ok": not_ok,
        "bytes": done.samples.nbytes,
        "spilled_bytes": done.accounting["spilled_bytes"],
        "lag_max_ns": int(lag.max()),
        "lag_p99_ns": float(np.quantile(lag, 0.99)),
        "lag_p999_ns": float(np.quantile(lag, 0.999)),
        "silence_ns": int(np.diff(np.sort(sent)).max()),
        "peak_bytes": peak_bytes(),
    }


def peak_bytes() -> int:
    """The most memory that this process has held at once, pages of files and all.

    Not ru_maxrss: that begins with what the parent held when it started us.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("the kernel does not say VmHWM")


def main() -> int:
    """The process that is measured, or a long run by hand."""
    if sys.argv[1:2] == ["--child"]:
        what, port, amount, folder, rate = sys.argv[2:]
        if what == "record":
            told = _record(int(port), int(amount), folder)
        else:
            told = _spill(int(port), float(amount), folder, float(rate))
        print(json.dumps(told))
        return 0
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    seconds = float(sys.argv[1])
    per_s = float(sys.argv[2]) if len(sys.argv) > 2 else RATE
    place = sys.argv[3] if len(sys.argv) > 3 else None
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-", dir=place) as folder:
        told = _child("spill", seconds, folder, per_s)
    for figure in _held(told, seconds):
        print(figure.line())
    print(f"  peak memory {told['peak_bytes'] / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
