"""About how long a plan takes, before anything is run: an order of magnitude, rather too long.

What takes time: reading and digesting the corpus, writing its batches, ingest, a reply to every
distinct query, the drives, and starting a system for each of these. Rates are those of a small
machine of two cores.
"""

from __future__ import annotations

import glob
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from searchbench.corpora import family_of, keys_of, scale_of
from searchbench.engines import ENGINES
from searchbench.errors import SearchbenchError
from searchbench.packed import COMPRESSED, inner_suffix, open_packed
from searchbench.places import Place, place_of
from searchbench.places.model import EACH_QUERY, of_files
from searchbench.study.model import Study
from searchbench.study.operations import statements_of
from searchbench.study.plan import Treatment
from searchbench.workload import loads
from searchbench.workload.load_table import parse_promise
from searchbench.workload.queries.registry import files_of
from searchbench.workload.queries.sets import Template, from_files
from searchbench.workload.verbatim.files import read_requests

_INGEST_PER_S: Mapping[str, float] = {
    "tantivy": 15_000, "sqlite": 10_000, "lucene": 10_000, "lucene10": 10_000, "sphinx": 15_000,
    "sphinx-api": 15_000, "groonga": 7_000, "mariadb": 4_500, "postgresql": 6_000,
    "opensearch": 5_000, "elasticsearch": 5_000, "null": 100_000,
}  # fmt: skip
_USUAL_INGEST_PER_S = 5_000.0
# Rows of declared tables have typed columns and little text: with settling, as ENGINES.md has them.
_ROWS_PER_S: Mapping[str, float] = {
    "mariadb": 30_000, "postgresql": 45_000, "lucene": 25_000, "groonga": 25_000,
    "opensearch": 8_000,
}  # fmt: skip
# Python reads documents and digests them, or writes them as an engine's batches.
_READ_PER_S = 50_000.0
# Making batches known, settling, starting anew.
_INGEST_FIXED_S = 3.0
_DEBIAN_DOCUMENTS = 64_000
_SUBJECTS = 0.6  # of generated triples, a triple
# Making a storage and removing it again, by kind; and evicting files and starting anew.
_STORAGE_S: Mapping[str, float] = {"ext4": 2.0, "xfs": 2.0, "btrfs": 2.0, "zfs": 8.0}
_COLD_S = 1.0
# Before each query, where that is asked for: evicting, and with that stopping and starting anew.
_EVICTED_S, _RESTART_S = 0.1, 1.5
# A job: a server is started and stopped for each; its documents, but for the slow ones.
_JOB_FIXED_S = 8.0
_JOB_PER_S: Mapping[str, float] = {"import": 1_000.0}
# Until a system that is started can be asked: long for a JVM.
_START_S: Mapping[str, float] = {
    "elasticsearch": 8.0, "opensearch": 5.7, "orientdb": 5.0, "sensei": 2.3, "lucene": 0.8,
    "lucene10": 0.8, "postgresql": 0.5,
}  # fmt: skip
_USUAL_START_S = 0.2
# Looking at the machine, checking the system, writing the record.
_TRIAL_FIXED_S = 0.5
# A drive with roles begins once all of them are connected; then what was written is counted.
_ROLES_S = 1.8
# One distinct query, asked once: what is fixed, and for each document that is looked through.
_QUERY_S = 0.001
_QUERY_PER_DOCUMENT_S = 1e-8
_USUAL_DISTINCT = 1000
# One operation: besides, for each statement and each row that it fetches (text or prepared, by id
# from a MariaDB on loopback: 0.1 to 0.15 ms a statement, 0.015 to 0.03 ms a row).
STATEMENT_S, ROW_S = 1e-4, 2e-5
# A search for capacity, as analysis/capacity/pace.py paces it, of a system whose limit is usual. A
# full trial has so many late requests as may be, or requests of which as many may fail; it lasts so
# many times its limit. Short ones take a share of that, and one full trial is longer.
_SEARCH_PER_S = 1000.0
_LATE_ONES, _FAILED_ONES, _LIMITS = 300, 4, 170
_SHORTEST_S, _LONGEST_S, _COVERED_S = 1.0, 120.0, 60.0
_SHORT, _WARMUP = 0.2, 0.15
# How many trials a search needs for its promise, and for each further one: the medians of searches
# in virtual time.
_SHORT_TRIALS, _FULL_TRIALS, _FURTHER_TRIALS = 4, 6, 6
# What each has besides: starting to drive, writing. And the opening loop, with its warm-up.
_AGENT_ALONE_S = 3.0  # an agent on a host: made twice, asked alone once
_SEARCH_FIXED_S = 1.5
_LOOK_S = 6.0
_SAMPLED_BYTES = 64 << 10
_CARS = 15_000.0
# Text packs to about a quarter.
_PACKED = 4.0
# A log of queries that is longer is not read for its times.
_READ_LOG_BYTES = 16 << 20


def estimate(
    study: Study,
    treatments: Sequence[Treatment],
    twins: Sequence[Treatment],
    documents: int | None,
) -> float:
    """About how many seconds the plan takes.

    ``twins``: what is measured twice, a treatment for each block; ``documents`` as in
    ``make_plan``.
    """
    driven = [*treatments] * study.replicates + [*twins]
    traced = [*treatments] if study.io_sizes else []
    driven += traced
    each_s = {t.id: _drive_s(study, t) for t in treatments}
    if study.measure == "trials" and study.driven:  # the steps of a sweep share one start
        each_s = {t.id: each_s[t.id] + _start_s(t) for t in treatments}
    drives_s = sum(each_s[t.id] for t in driven)
    if study.verbatim:
        return drives_s + study.agreement.captures * len({t.system for t in treatments}) * _QUERY_S
    counts = {repr(t.corpus): count(t.corpus, study.base, documents) for t in treatments}
    read_s = sum(counts.values()) / _READ_PER_S
    asked_s = 0.0
    indexes: dict[str, tuple[float, float]] = {}
    for t in treatments:
        held = counts[repr(t.corpus)]
        each_s[t.id] += sum(_JOB_FIXED_S + held / _JOB_PER_S.get(job, 20_000.0) for job in t.jobs)
        distinct = int(t.queries.get("distinct") or t.queries.get("lines") or _USUAL_DISTINCT)
        distinct = int(t.operation.get("draws", distinct))
        if study.jobs and not study.queries:
            distinct = 0
        one_s = request_s(t) if t.operation else _QUERY_S + held * _QUERY_PER_DOCUMENT_S
        asked_s += distinct * one_s
        if study.ingest != "as-found":
            rate = _INGEST_PER_S.get(t.engine, _USUAL_INGEST_PER_S)
            if family_of(t.corpus) in ("table", "cars"):
                rate = _ROWS_PER_S.get(t.engine, rate)
            made_s = _INGEST_FIXED_S + _start_s(t) + held / rate
            put_in_s = _placed_s(place_of(t.settings), made_s)
            indexes[index_key(t)] = (held / _READ_PER_S, put_in_s)
    spooled_s = sum(spool for spool, _ in indexes.values())
    if study.ingest == "per-trial":
        ingest_s = sum(indexes[index_key(t)][1] for t in driven)
    else:
        times = 1 if study.ingest == "once" else study.replicates
        ingest_s = times * sum(ingest for _, ingest in indexes.values())
        # Each of those that are traced makes an index of its own.
        ingest_s += sum(indexes[index_key(t)][1] for t in traced if index_key(t) in indexes)
    drives_s = sum(each_s[t.id] for t in driven)
    asked_s += _started_to_be_asked_s(study, treatments)
    if study.measure != "trials" and study.driven:
        asked_s += sum({t.subject: _start_s(t) for t in treatments}.values())
    return read_s + spooled_s + ingest_s + study.replicates * asked_s + drives_s


def _start_s(treatment: Treatment) -> float:
    """Starting its system once; nothing where it runs already."""
    return 0.0 if treatment.attach else _START_S.get(treatment.engine, _USUAL_START_S)


def _started_to_be_asked_s(study: Study, treatments: Iterable[Treatment]) -> float:
    """In each block a system is started once more for each set of questions that is asked of an
    index alone, before it is driven. One that keeps no index is driven as it then is.
    """
    if study.agreement.capture == "after" or not (study.queries or study.operations):
        return 0.0
    engines = {t.engine: ENGINES.get(t.engine) for t in treatments}
    starts = {
        repr((index_key(t), t.queries, t.operation)): _start_s(t)
        for t in treatments
        if (engine := engines[t.engine]) is not None and engine.can.keeps_index
    }
    return sum(starts.values())


def count(corpus: Mapping[str, Any], base: Path, documents: int | None = None) -> float:
    """About how many documents a corpus has. ``documents``: those of its files, where known."""
    family = family_of(corpus)
    if family == "debian":
        known = float(documents or _DEBIAN_DOCUMENTS)
    elif family == "generated":
        known = float(corpus.get("documents") or documents or keys_of(family)["documents"].default)
    elif family == "triples" and "files" not in corpus:
        known = float(corpus.get("triples") or keys_of(family)["triples"].default) * _SUBJECTS
    elif family == "table" and "files" not in corpus:
        known = float(corpus.get("rows") or keys_of(family)["rows"].default)
    elif family == "cars":
        known = _CARS
    else:
        known = float(documents or _rows(corpus, base))
    times, every = scale_of(corpus)
    parts = corpus.get("parts", 1) if "part" in corpus else 1
    return known * times / every / parts


def _rows(corpus: Mapping[str, Any], base: Path) -> float:
    """Rows of files, from their sizes and the length of the first lines."""
    found = 0.0
    for path in named_files(corpus, base):
        if path.is_dir():
            # A folder is read as texts, a document each.
            found += sum(1 for each in path.rglob("*") if each.is_file())
        else:
            found += _rows_of(path, str(corpus.get("format", "auto")))
    return found


def named_files(corpus: Mapping[str, Any], base: Path) -> Iterator[Path]:
    """The files and folders that a corpus of files names, as far as they are there."""
    asked = corpus.get("files") or ()
    for name in [asked] if isinstance(asked, str) else asked:
        if (base / name).exists():
            yield base / name
            continue
        # A pattern may be absolute, which Path.glob() refuses.
        for each in glob.glob(name, root_dir=base, recursive=True):  # noqa: PTH207
            if (base / each).is_file():
                yield base / each


def _rows_of(path: Path, form: str) -> float:
    try:
        if form == "parquet" or inner_suffix(path) == ".parquet":
            import pyarrow.parquet as pq  # here, not above: a study is checked without it

            return float(pq.read_metadata(path).num_rows)
        if form == "text" or inner_suffix(path) in (".txt", ".md"):
            return 1.0
        with open_packed(path) as stream:
            sample = stream.read(_SAMPLED_BYTES)
        size = path.stat().st_size
    except (OSError, ValueError, EOFError):
        return 0.0  # what is wrong with it is said when it is opened
    lines = sample.count(b"\n")
    if len(sample) < _SAMPLED_BYTES or not lines:
        return float(max(1, lines))
    whole = size * (_PACKED if path.suffix.lower() in COMPRESSED else 1.0)
    return whole / (len(sample) / lines)


def _drive_s(study: Study, treatment: Treatment) -> float:
    """One trial of a treatment; of a search, all trials of one block."""
    if study.measure == "capacity":
        found_s = search_s(study.promises, float(study.load.get("effort", 1.0)))
        if treatment.roles:  # each trial has a system of its own, started and warmed up for it
            trials = _SHORT_TRIALS + _FULL_TRIALS + _FURTHER_TRIALS * (len(study.promises) - 1)
            alone_s = max(_RESTART_S, _start_s(treatment)) + _ROLES_S
            found_s += trials * (alone_s + float(treatment.load.get("warmup_s") or 0.0))
        return found_s
    if not study.driven:
        return _TRIAL_FIXED_S
    load = loads.open_load(treatment.load, study.base)
    logged_s = _logged_s(study, treatment, load) if load.window.whole else 0.0
    pause_s = float(treatment.load.get("pause_s", 0.0))
    place = place_of(treatment.settings)
    cold_s = _COLD_S if place is not None and place.cold != "no" else 0.0
    if place is not None and place.cold == EACH_QUERY:
        cold_s = (load.window.count or 0) * (
            max(_RESTART_S, _start_s(treatment)) if place.restart else _EVICTED_S
        )
    alone_s = _AGENT_ALONE_S * len(place.agents) if place is not None else 0.0
    beside_s = _ROLES_S if treatment.roles else 0.0
    fixed_s = _TRIAL_FIXED_S + beside_s + pause_s + cold_s + alone_s
    one_s = min(request_s(treatment), load.timeout_s)
    return load.expected_s(one_s, logged_s=logged_s) + fixed_s


def request_s(treatment: Treatment) -> float:
    """A guess for one request; for an operation by its statements and rows."""
    if not treatment.operation:
        return loads.USUAL_REQUEST_S
    rows = int(treatment.operation.get("rows") or 0)
    each = [one.each for one in statements_of(treatment.operation)]
    statements = sum(math.ceil(rows / size) if size else 1 for size in each)
    return loads.USUAL_REQUEST_S + statements * STATEMENT_S + rows * ROW_S


def _placed_s(place: Place | None, ingest_s: float) -> float:
    """An ingest with the making of its storages; the share of CPU is what slows it most."""
    if place is None:
        return ingest_s
    made = {s.name: _STORAGE_S.get(s.kind, 0.0) for s in place.storages.values()}
    return ingest_s / place.cpu_share + sum(made.values())


def search_s(promises: Sequence[str], effort: float) -> float:
    """What a search of one configuration often takes; a third of it and three times it are usual.

    Nothing is known of the system, whose limit may be at 10 requests per second or at 50,000: the
    trials are as long as they are at ``_SEARCH_PER_S``.
    """
    windows_s: list[float] = []
    for number, promise in enumerate(promises):
        full_s = _full_s(promise)
        if number == 0:
            short_s = max(_SHORTEST_S, _SHORT * full_s)
            windows_s += [short_s] * _SHORT_TRIALS + [full_s] * (_FULL_TRIALS - 1)
            windows_s.append(max(full_s, _COVERED_S))
        else:
            windows_s += [full_s] * _FURTHER_TRIALS
    return _LOOK_S + sum(effort * (1 + _WARMUP) * s + _SEARCH_FIXED_S for s in windows_s)


def _full_s(promise: str) -> float:
    """A full trial for a promise, its warm-up aside."""
    conditions = parse_promise(promise)
    requests = max((_LATE_ONES if c.limit_ns else _FAILED_ONES) / c.allowed for c in conditions)
    limit_s = max((c.limit_ns or 0.0) / 1e9 for c in conditions)
    return min(_LONGEST_S, max(_SHORTEST_S, requests / _SEARCH_PER_S, _LIMITS * limit_s))


def _logged_s(study: Study, treatment: Treatment, load: loads.Load) -> float:
    """From the first to the last request of a log that is replayed; 0 where that is not cheap."""
    try:
        if isinstance(load.loop, loads.Replay) and load.loop.times is not None:
            times = loads.read_times(load.loop.times)
        else:
            requests = treatment.requests
            names = [study.base / requests["file"]] if "file" in requests else []
            names = names or files_of(treatment.queries, study.base)
            if not names or sum(path.stat().st_size for path in names) > _READ_LOG_BYTES:
                return 0.0
            found = (
                read_requests(names[0], requests.get("form", "auto"))
                if requests
                else from_files(names, Template(), form=treatment.queries.get("format"))
            )
            if found.times_s is None:
                return 0.0
            times = found.times_s
    except (OSError, SearchbenchError):
        return 0.0  # what is wrong with it is said when it is replayed
    return float(times[-1] - times[0]) if len(times) else 0.0


def index_key(treatment: Treatment) -> str:
    """The same for treatments that can be measured on one index."""
    engine = ENGINES.get(treatment.engine)
    levers = engine.parameters if engine is not None else ()
    index = {p.name: treatment.parameters[p.name] for p in levers if p.index}
    files = of_files(place_of(treatment.settings))
    corpus, put_in = sorted(treatment.corpus.items()), sorted(treatment.ingest.items())
    return repr((treatment.engine, sorted(index.items()), corpus, put_in, files))
