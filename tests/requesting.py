"""Load runs for tests: requests as values, servers by their URLs, a study made of both."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from searchbench.lab.conduct.watch import Watch
from searchbench.measure.run import run
from searchbench.record import Record
from searchbench.study import Study, parse_study
from searchbench.workload.verbatim.model import Ask


def study_of(
    place: Path,
    systems: Mapping[str, Sequence[str]],
    asks: Sequence[Ask],
    load: Mapping[str, Any],
    *,
    engine: str | None = "none",
    captures: int = 0,
    blocks: int = 1,
) -> Study:
    """A sweep of one step or more: single numbers in ``load`` are one step."""
    steps = {k: [v] if k in ("clients", "rate_per_s") and not isinstance(v, list) else v
             for k, v in load.items()}  # fmt: skip
    named = {} if engine is None else {"engine": engine}
    tables = {
        "question": "What does it sustain?",
        "replicates": blocks,
        "agreement": {"captures": captures},
        "requests": {"file": str(written(place, asks)), "form": "jsonl"},
        "systems": {name: {"attach": list(urls), **named} for name, urls in systems.items()},
        "load": steps,
    }
    return parse_study(tomli_w.dumps(tables), "test.toml", place)


def driven(place: Path, *args: Any, watch: Watch | None = None, **how: Any) -> Record:
    """The record of ``study_of`` with these arguments."""
    return run(study_of(place, *args, **how), place / "record", watch=watch)


def written(place: Path, asks: Sequence[Ask]) -> Path:
    """A file of these requests, a line each."""
    place.mkdir(parents=True, exist_ok=True)
    path = place / "requests.jsonl"
    path.write_text("".join(json.dumps(_line(ask)) + "\n" for ask in asks))
    return path


def _line(ask: Ask) -> dict[str, Any]:
    line: dict[str, Any] = {"path" if ask.is_path else "sql": ask.text}
    if ask.is_path:
        line["method"] = ask.method
    if ask.body is not None:
        line["body"] = ask.body.decode()
    if ask.headers:
        line["headers"] = dict(ask.headers)
    own = {"host": ask.host, "port": ask.port, "timeout": ask.timeout_s}
    return line | {key: value for key, value in own.items() if value is not None}
