"""What two records do not have in common: versions, levers, load, documents, the machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from searchbench.analysis.judgement import SetupDifference
from searchbench.record import Record

MISSING = "not on record"
_EVERY_RUN = ("boot_id",)  # facts of a machine that are others after each start
_OF_QUERIES = ("name", "digest", "distinct")
_OF_CORPUS = ("name", "digest", "documents", "text_bytes")


def differences(a: Record, b: Record) -> tuple[SetupDifference, ...]:
    """Whatever both records say and say otherwise, or one of them alone says."""
    x, y = _facts(a), _facts(b)
    return tuple(
        SetupDifference(*key, x.get(key, MISSING), y.get(key, MISSING))
        for key in dict.fromkeys((*x, *y))
        if x.get(key) != y.get(key)
    )


def _facts(record: Record) -> dict[tuple[str, str], str]:
    """By what it is of and what it is; several values of a treatment's own are listed."""
    seen: dict[tuple[str, str], dict[str, None]] = {}
    for of, what, value in _each(record):
        if value not in (None, "", [], {}):
            seen.setdefault((of, what), {})[_said(value)] = None
    return {key: ", ".join(sorted(values)) for key, values in seen.items()}


def _each(record: Record) -> Iterator[tuple[str, str, Any]]:
    trials = record.trials
    for t in trials:
        yield t.system, "engine", t.engine
        yield t.system, "version", t.version
    for t in trials:
        for lever, value in t.parameters.items():
            yield t.system, lever, value
        yield t.system, "cores", t.service.cpus
    for t in trials:
        for key, value in msgspec.to_builtins(t.load).items():
            yield "load", key, value
        for of, table, keys in (
            ("corpus", t.corpus, _OF_CORPUS),
            ("queries", t.queries, _OF_QUERIES),
        ):
            for key in keys:
                yield of, key, getattr(table, key)
    yield "study", "seed", record.plan.seed
    yield "study", "replicates", record.plan.judging.replicates
    yield "study", "index", record.plan.judging.ingest
    yield "searchbench", "version", record.about.get("searchbench")
    for key, value in record.host.items():
        if key not in (*_EVERY_RUN, "searchbench"):
            yield "machine", key, value
    yield "machine", "said to be shared", any(t.host_window.shared for t in trials)


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
