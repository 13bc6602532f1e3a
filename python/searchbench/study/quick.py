"""``run --quick``: the same question in about a minute, as a first look that decides nothing.

Fewer blocks, shorter windows, fewer documents and queries. What a factor varies is left as it is.
All of it is set in the study's text, like ``--set``, so the record has the study that ran.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from searchbench.corpora import scale_of
from searchbench.errors import StudyError
from searchbench.study import roles
from searchbench.study.estimate import count
from searchbench.study.model import Study
from searchbench.study.overrides import read_changed
from searchbench.study.planner import make_plan
from searchbench.workload.load_table import kind_of

_TARGET_S = 80.0  # by the estimate of the plan, which is rather too long
# Blocks and seconds of a window, the first that is short enough; one block gives no interval.
_CUTS = ((2, 3.0), (2, 2.0), (2, 1.0), (1, 1.0), (1, 0.5))
_OF_A_FAULT_S = 20.0  # what is started again needs its time
_WARMUP_S, _WARMUP_LIMIT_S = 0.5, 2.0
_DOCUMENTS = 10_000
_QUERIES, _LOGGED, _REQUESTS, _CAPTURES = 200, 1000, 1000, 20
_EFFORT = 0.1
_ROWS, _SIZES = 1000, 3  # that operations ask for, and how many numbers of them


def read_quick(path: Path | str, sets: Sequence[str] = (), only: Sequence[str] = ()) -> Study:
    """The study of a file as a first look: with the most blocks and the longest windows that keep
    it short.

    ``sets`` and ``only`` as in ``read_changed``, whose errors it raises; they come first.
    """
    study = read_changed(path, sets, only)
    kept = {each.partition("=")[0].strip() for each in only}
    only = [*only, *(few for few in _fewer_rows(study) if few.partition("=")[0] not in kept)]
    for blocks, window_s in _CUTS:
        quick = read_changed(path, [*sets, *_changes(study, blocks, window_s)], only)
        if study.roles and _lacks_documents(quick):
            whole = _changes(study, blocks, window_s, fewer=False)
            quick = read_changed(path, [*sets, *whole], only)
        if make_plan(quick).estimated_s <= _TARGET_S:
            break
    return quick


def _fewer_rows(study: Study) -> Iterator[str]:
    """FACTOR=LEVEL of a few numbers of rows that operations ask for, none of them great."""
    for factor in study.factors:
        sizes = [
            max((v for p, v in factor.settings(i).items() if _asks_rows(p)), default=None)
            for i in range(len(factor.levels))
        ]
        few = [i for i, rows in enumerate(sizes) if rows is not None and rows <= _ROWS]
        if few and (len(few) < len(sizes) or len(few) > _SIZES):
            at = {round(i * (len(few) - 1) / (_SIZES - 1)) for i in range(_SIZES)}
            yield from (f"{factor.path}={factor.levels[few[i]]}" for i in sorted(at))


def _asks_rows(path: str) -> bool:
    return path.startswith("operations.") and path.endswith(".rows")


def _lacks_documents(study: Study) -> bool:
    """Has a writer too few documents in a corpus that was cut?"""
    try:
        roles.look(study, make_plan(study))
    except StudyError:
        return True
    return False


def _changes(study: Study, blocks: int, window_s: float, *, fewer: bool = True) -> Iterator[str]:
    """KEY=VALUE of all that is cut. ``fewer``: of the documents, too."""
    varied = {path for factor in study.factors for path in factor.paths}
    if any(table.get("does") == "fault" for table in study.roles.values()):
        window_s = max(window_s, _OF_A_FAULT_S)
    found: dict[str, Any] = {
        "first_look": "true",
        "replicates": min(study.replicates, blocks if study.measure == "trials" else 1),
    }
    if study.driven:
        found |= {f"load.{key}": value for key, value in _load(study, window_s)}
    for name, table in study.roles.items():
        if "after_s" in table:  # within the shorter window
            found[f"roles.{name}.after_s"] = min(table["after_s"], window_s / 3)
        if "for_s" in table:
            found[f"roles.{name}.for_s"] = min(table["for_s"], window_s / 6)
        if table.get("does") == "read":
            if "every_s" in table:
                found[f"roles.{name}.every_s"] = min(table["every_s"], window_s / 3)
            asked = _queries(table.get("queries", {}))
            found |= {f"roles.{name}.queries.{key}": value for key, value in asked}
    if study.verbatim:
        found["agreement.captures"] = min(study.agreement.captures, _CAPTURES)
    else:
        if (study.driven and not study.operations) or study.queries:
            found |= {f"queries.{key}": value for key, value in _queries(study.queries)}
        # What is attached holds its documents already.
        if (
            fewer
            and not any(system.attach for system in study.systems)
            and not any(path.startswith("corpus.") for path in varied)
        ):
            found |= {f"corpus.{key}": value for key, value in _corpus(study)}
            found |= _kept_back(study)
    yield from (f"{key}={value}" for key, value in found.items() if key not in varied)


def _load(study: Study, window_s: float) -> Iterator[tuple[str, Any]]:
    load = study.load
    if study.measure == "capacity":
        yield "effort", min(load.get("effort", 1.0), _EFFORT)
    elif load.get("requests") is not None:
        yield "requests", min(load["requests"], _REQUESTS)
    elif _shaped_writer(study) or any(
        {"load.requests", "load.stages"} & {*factor.paths} for factor in study.factors
    ):
        return  # the stages of a writer are as long as the drive
    elif load.get("stages") is None:
        # A replay without a window lasts as long as its log.
        yield "seconds", min(load.get("seconds", window_s), window_s)
        if "warmup_limit_s" in load:
            yield "warmup_limit_s", min(load["warmup_limit_s"], _WARMUP_LIMIT_S)
        elif kind_of(load) != "replay":
            yield "warmup_s", min(load.get("warmup_s", _WARMUP_S), _WARMUP_S)


def _shaped_writer(study: Study) -> bool:
    """Does a writer have stages, in any treatment?"""
    varied = {path for factor in study.factors for path in factor.paths}
    return any("stages" in table or f"roles.{name}.stages" in varied
               for name, table in study.roles.items())  # fmt: skip


def _queries(queries: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if "file" in queries or "files" in queries:
        yield "lines", min(queries.get("lines", _LOGGED), _LOGGED)
    else:
        yield "distinct", min(queries.get("distinct", _QUERIES), _QUERIES)
    if "logged" in queries:
        yield "logged", min(queries["logged"], _LOGGED)


def _kept_back(study: Study) -> dict[str, Any]:
    """Of documents that a writer has kept back by their number the same share as of all."""
    share = min(1.0, _DOCUMENTS / max(1.0, count(study.corpus, study.base)))
    return {
        f"roles.{name}.documents": max(1, round(table["documents"] * share))
        for name, table in study.roles.items()
        if "documents" in table
    }


def _corpus(study: Study) -> Iterator[tuple[str, Any]]:
    """Every k-th document, so that about ``_DOCUMENTS`` are left."""
    times, every = scale_of(study.corpus)
    documents = count(study.corpus, study.base)
    k = math.ceil(documents * every / times / _DOCUMENTS)
    if documents <= _DOCUMENTS:
        return
    if "scale" in study.corpus:
        yield "scale", 1 / k
    else:
        yield "decimate", k
        if "duplicate" in study.corpus:
            yield "duplicate", 1
