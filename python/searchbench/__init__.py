"""searchbench measures search systems so that people can decide by it.

    import searchbench

    record = searchbench.run("study.toml")        # start, ingest, verify, drive, keep
    record = searchbench.load("http://127.0.0.1:10041", requests="paths.txt", clients=[1, 2, 4])
    judgement = searchbench.judge(record)         # estimates, agreement, findings, verdict
    print(judgement.verdict.decision)
    frames = searchbench.frames(record)           # samples, trials, treatments as DataFrames

Everything is imported when it is first used, so that importing costs nothing; the types are in
``__init__.pyi``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "SearchbenchError": "searchbench.errors",
    "frames": "searchbench.analysis.frames",
    "judge": "searchbench.analysis.judge",
    "load": "searchbench.measure.load",
    "open_record": "searchbench.record",
    "read_study": "searchbench.study",
    "run": "searchbench.measure.run",
    "verify": "searchbench.lab.conduct.studies",
    "write_report": "searchbench.report",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"searchbench has no {name}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
