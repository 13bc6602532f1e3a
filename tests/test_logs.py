"""What is said of logs: counts that add up, quantiles, bands, repetition, increments, pages."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from searchbench import _core
from searchbench.analysis.logs.as_json import as_json
from searchbench.analysis.logs.bands import bands
from searchbench.analysis.logs.judge import judge_log
from searchbench.analysis.logs.minutes import Minutes
from searchbench.analysis.logs.repeats import repeats
from searchbench.analysis.logs.spread import Spread, spread
from searchbench.cli import app
from searchbench.errors import QueryError, RecordError, SearchbenchError
from searchbench.logs import record as records
from searchbench.logs.counts import Counts, Options, count
from searchbench.logs.sources import find
from searchbench.logs.zones import offsets

LOGS = Path(__file__).parent / "logs"


def bucket(values: np.ndarray) -> np.ndarray:
    """The bucket of a time, as rust/logs has it."""
    value = values.astype(np.uint64)
    doublings = np.floor(np.log2(np.maximum(value, 1).astype(float)))
    shift = np.maximum(0, doublings - 10).astype(np.uint64)
    return shift * np.uint64(1024) + (value >> shift)


def times(parts: list[tuple[float, float, float]], n: int, resolution_ns: int) -> Spread:
    """Log-normal parts (share, milliseconds of the middle, spread in decades), as logged."""
    rng = np.random.default_rng(1)
    drawn = [10 ** rng.normal(np.log10(ms), s, round(n * share)) for share, ms, s in parts]
    ns = (np.concatenate(drawn) * 1e6).astype(np.int64) // resolution_ns * resolution_ns
    found, counts = np.unique(bucket(ns), return_counts=True)
    return spread(found, counts.astype(np.uint64), int(ns.max()), resolution_ns)


@pytest.mark.parametrize("resolution_ns", [1_000, 1_000_000])
def test_bands_are_found_where_they_are(resolution_ns: int) -> None:
    three = times([(0.5, 3, 0.1), (0.3, 30, 0.15), (0.2, 300, 0.13)], 200_000, resolution_ns)
    found = bands(three)
    assert [band.at_s for band in found.bands] == pytest.approx([0.003, 0.03, 0.3], rel=0.2)
    assert [band.share for band in found.bands] == pytest.approx([0.5, 0.3, 0.2], abs=0.02)


def test_two_bands_are_not_called_three() -> None:
    close = times([(0.5, 30, 0.3), (0.5, 60, 0.3)], 200_000, 1_000)
    assert len(bands(close).bands) == 1
    few = times([(0.98, 3, 0.1), (0.02, 300, 0.1)], 400, 1_000)
    found = bands(few)
    assert len(found.bands) == 1
    assert found.doubted[0][0] == pytest.approx(0.3, rel=0.3)
    assert "too few" in found.doubted[0][1]


def test_chance_makes_no_second_band() -> None:
    """Times that are even on the logarithmic axis, to a microsecond: chance makes many small peaks
    of them. Of 400 such logs at most 8 may have two bands.
    """
    several = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        n, low = (1_000, 3_000, 10_000, 30_000)[seed % 4], (-5, -4)[seed % 2]
        ns = (10 ** rng.uniform(low, low + 5, n) * 1e9).astype(np.int64) // 1000 * 1000
        found, counts = np.unique(bucket(ns), return_counts=True)
        of = spread(found, counts.astype(np.uint64), int(ns.max()), 1000)
        several += len(bands(of).bands) > 1
    assert several <= 8


@pytest.mark.parametrize("n", [2_000, 20_000])
def test_bands_are_found_in_short_logs_too(n: int) -> None:
    three = times([(0.5, 3, 0.1), (0.3, 30, 0.15), (0.2, 300, 0.13)], n, 1_000)
    assert len(bands(three).bands) == 3
    wide = times([(0.6, 3, 0.25), (0.4, 60, 0.25)], n, 1_000)
    assert len(bands(wide).bands) == 2


def test_what_lies_below_the_resolution_is_one_band_without_a_place() -> None:
    found = bands(times([(0.6, 0.3, 0.2), (0.4, 100, 0.2)], 100_000, 1_000_000))
    assert [band.at_s is None for band in found.bands] == [True, False]
    assert found.bands[0].share == pytest.approx(0.6, abs=0.01)


def test_quantiles_are_those_of_the_times_as_the_log_wrote_them() -> None:
    found = times([(1, 40, 0.5)], 50_000, 1_000_000)
    rng = np.random.default_rng(1)
    ms = np.sort(np.floor(10 ** rng.normal(np.log10(40), 0.5, 50_000)))
    for q in (0.01, 0.5, 0.9, 0.999):
        assert found.quantile_s(q) == pytest.approx(ms[int(q * 50_000)] / 1e3, rel=1e-3)


@pytest.mark.parametrize("fails", [0, 0.05, 0.5])
def test_a_cache_saves_what_playing_the_log_back_saves(fails: float) -> None:
    """No failure is kept, and an answer that is kept serves who would have got a failure."""
    rng = np.random.default_rng(3)
    log = (2_000 ** rng.random(60_000)).astype(int)
    failed = rng.random(60_000) < fails
    _, which, n = np.unique(log, return_inverse=True, return_counts=True)
    failures = np.bincount(which.reshape(-1), weights=failed).astype(np.uint64)
    found = repeats(n.astype(np.uint64), 0, 0, b"", failures)
    assert found is not None
    assert found.repeated == pytest.approx(1 - len(n) / 60_000)
    held: dict[int, None] = {}
    hits = 0
    for query, no_answer in zip(log.tolist(), failed.tolist(), strict=True):
        if query in held:
            hits += 1
            held.pop(query)
        elif no_answer:
            continue
        held[query] = None
        if len(held) > 100:
            held.pop(next(iter(held)))
    (cache,) = [c for c in found.caches if c.entries == 100]
    assert cache.lru == pytest.approx(hits / 60_000, abs=0.01)
    assert cache.best >= cache.lru


def test_stretches_and_the_worst_minutes_are_those_of_the_minutes_one_by_one() -> None:
    rng = np.random.default_rng(4)
    rows = []
    for minute in sorted(rng.choice(40_000, 700, replace=False)):
        # Of some minutes no time is known.
        coarse = rng.integers(0, 50, 64) if rng.random() < 0.8 else np.zeros(64, np.int64)
        longest = int(rng.integers(1, 10**9)) if coarse.any() else 0
        rows.append(
            {
                "minute": int(minute), "n": int(coarse.sum()) + int(rng.integers(1, 9)),
                "sum_ns": int(rng.integers(1, 10**12)) if coarse.any() else 0, "max_ns": longest,
                "zero": int(rng.integers(0, 9)), "errors": int(rng.integers(0, 9)),
                "coarse": coarse.astype(np.uint32).tobytes(), "slowest": f"q{minute}".encode(),
            }
        )  # fmt: skip
    types = [(name, pa.uint64()) for name in ("minute", "n", "sum_ns", "max_ns", "zero", "errors")]
    schema = pa.schema([*types, ("coarse", pa.large_binary()), ("slowest", pa.large_binary())])
    halves = [pa.Table.from_pylist(part, schema) for part in (rows[:300], rows[300:])]
    minutes = Minutes.of(Counts({"minutes": pa.concat_tables(halves)}))
    step = minutes.step_s()
    assert step == 14_400
    timed = [row for row in rows if any(row["coarse"])]
    worst = sorted(timed, key=lambda r: -r["sum_ns"])[:5]
    assert [m.at_s for m in minutes.worst(5)] == [row["minute"] * 60 for row in worst]
    over = minutes.over(step)
    assert len(over) == len({row["minute"] * 60 // step for row in rows})
    for moment in over:
        own = [r for r in rows if r["minute"] * 60 // step * step == moment.at_s]
        of_these = [r for r in own if any(r["coarse"])]
        assert moment.n == sum(r["n"] for r in own)
        assert moment.errors == sum(r["errors"] for r in own)
        if not of_these:
            assert (moment.mean_s, moment.p95_at_most_s, moment.max_s) == (None, None, None)
            continue
        longest = max(of_these, key=lambda r: r["max_ns"])
        assert moment.slowest == longest["slowest"].decode()
        assert moment.max_s == longest["max_ns"] / 1e9
        waited = sum(r["sum_ns"] for r in of_these) / 1e9
        assert moment.mean_s == pytest.approx(waited / sum(map(_times, of_these)))
        assert moment.p95_at_most_s == pytest.approx(max(_p95(r) for r in of_these))


def _times(row: dict[str, object]) -> int:
    return int(np.frombuffer(row["coarse"], np.uint32).sum())  # type: ignore[call-overload]


def _p95(row: dict[str, object]) -> float:
    """The end of the half doubling in which the time is that 95 % of the times do not exceed, but
    no longer than the longest time.
    """
    coarse = np.frombuffer(row["coarse"], np.uint32)  # type: ignore[call-overload]
    at = next(i for i in range(64) if coarse[: i + 1].sum() >= 0.95 * coarse.sum())
    return min(1.024e-6 * 2 ** (at / 2), row["max_ns"] / 1e9)  # type: ignore[operator]


def test_what_was_counted_goes_with_its_tables_and_comes_back_with_them() -> None:
    log = _core.Log()
    log.read([(str(LOGS / "sphinx-query-plain.log"), "s", "", 0)])
    given = log.tables()
    assert log.tables()["queries"]["hash"] == b""
    log.add(given)
    assert log.tables() == given


def test_days_added_one_by_one_are_the_answer_of_all_at_once(tmp_path: Path) -> None:
    lines = (LOGS / "sphinx-query-plain.log").read_bytes().splitlines(keepends=True)
    log, record = tmp_path / "query.log", tmp_path / "record"
    # The first day ends within a line, and the file is rotated after the second.
    log.write_bytes(b"".join(lines[:21]) + lines[21][:30])
    records.add(record, find([log], "s"), Options())
    log.write_bytes(b"".join(lines[:40]))
    records.add(record, find([log], "s"), Options())
    log.rename(tmp_path / "query.log.1")
    log.write_bytes(b"".join(lines[40:]))
    kept = records.add(record, find([tmp_path / "query.log.1", log], "s"), Options())
    again = records.add(record, find([tmp_path / "query.log.1", log], "s"), Options())
    at_once = count(find([LOGS / "sphinx-query-plain.log"], "s"), Options())
    for found in (kept.counts, again.counts, records.open_log(record).counts):
        for name, table in at_once.tables.items():
            assert found.tables[name].to_pydict() == table.to_pydict(), name
    assert [s["lines"] for s in kept.counts.sources] == [40, len(lines) - 40]
    with pytest.raises(RecordError, match="zone"):
        records.add(record, find([log]), Options(zone="Europe/Paris"))


def test_a_record_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="is not a record of a log"):
        records.open_log(tmp_path)
    (tmp_path / "other").write_text("")
    with pytest.raises(RecordError, match="not empty"):
        records.add(tmp_path, find([LOGS / "nginx-timed.log"]), Options())


def test_zones_have_their_summers_and_one_that_is_none_is_refused() -> None:
    east = dict(offsets("Europe/Paris"))
    # 25 October 2026, 01:00 UTC.
    assert east[1792890000] == 3600
    with pytest.raises(QueryError, match="Europe/Paris is one"):
        offsets("Europe/Pari")


def test_one_command_reads_a_folder_of_logs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "logs"
    shutil.copytree(LOGS, folder)
    code = app(["logs", str(folder), "--page", str(tmp_path / "page.html"), "--json"])
    said = json.loads(capsys.readouterr().out)
    assert code == 0
    assert said["all"]["n"] > 800
    assert len({s["format"] for s in said["sources"] if s["format"]}) >= 10
    refused = [s["path"].rsplit("/", 1)[1] for s in said["sources"] if s["refused"]]
    assert sorted(refused) == ["apache-custom.log", "truth.json"]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert len(page) < 2_000_000
    assert "What was found" in page
    assert "<script src" not in page
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


def test_the_terminal_says_the_remarks_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert app(["logs", str(LOGS / "sphinx-query-sphinxql.log")]) == 0
    said = capsys.readouterr().out
    assert "Partial answers" in said
    assert said.index("Times:") < said.index("asked most")


def test_what_is_no_log_is_refused_with_what_it_looks_like(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary,\nno log at all\n")
    with pytest.raises(QueryError, match=r"begins with \"Dear diary,\".*--format"):
        count(find([path]), Options())
    path.write_text("")
    with pytest.raises(QueryError, match="is empty"):
        count(find([path]), Options())
    with pytest.raises(QueryError, match="not there"):
        find([tmp_path / "missing"])


def test_a_generated_log_has_what_was_published(tmp_path: Path) -> None:
    path = tmp_path / "query.log"
    assert app(["logs", "generate", str(path), "--lines", "200000"]) == 0
    judged = judge_log(count(find([path]), Options()))
    assert judged.all is not None
    assert judged.all.n == 200_000
    for seconds, share in ((0.01, 0.60), (0.1, 0.80), (0.5, 0.99)):
        assert judged.within[seconds] == pytest.approx(share, abs=0.015)
    # Below a millisecond, 0.03 s, 0.3 s.
    first, *others = (band.at_s for band in judged.bands.bands)
    assert first is None
    assert others == pytest.approx([0.03, 0.3], rel=0.2)
    by_words = {row.name: row.quantiles_s["p90"] for row in judged.words}
    assert max(by_words, key=lambda name: by_words[name] or 0) in ("6–10", "11–20", "21–50")
    assert as_json(judged)["repetition"]["requests"] == 200_000


def test_a_log_on_a_terminal_does_not_wait_for_what_writes_pages() -> None:
    loads = (
        "import sys, searchbench.terminal.logs; print('searchbench.report.write' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_generated_log_goes_to_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    assert app(["logs", "generate", "-", "--lines", "3"]) == 0
    assert capfd.readouterr().out.count(" sec [all/0/rel ") == 3
    with pytest.raises(QueryError, match="there is no option --lnes; see"):
        app(["logs", "generate", "--lnes", "--lines", "3"])


def test_an_option_that_is_misspelt_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(SearchbenchError, match="there is no option --pgae; see"):
        app(["logs", str(LOGS / "nginx-timed.log"), "--pgae", "x.html"])
