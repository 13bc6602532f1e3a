"""Logs of a coarse clock and of a fine one, read in one call: each is judged as it can be."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from searchbench.analysis.logs.as_json import as_json
from searchbench.analysis.logs.cut import cut_of
from searchbench.analysis.logs.judge import judge_log
from searchbench.analysis.logs.model import LogJudgement
from searchbench.logs import record as records
from searchbench.logs.counts import Options, count
from searchbench.logs.entries import read_entries
from searchbench.logs.searches import Searches, searches_of
from searchbench.logs.sources import find
from searchbench.logs.written import about

START = datetime(2026, 11, 20, 20, 0, 0, tzinfo=UTC)
DRAW = np.random.default_rng(7)


def sphinx(n: int) -> str:
    """Whole milliseconds: around 20 ms."""
    ms = np.maximum(0, DRAW.normal(20, 2, n)).astype(int)
    at = [START + timedelta(milliseconds=137 * i) for i in range(n)]
    return "".join(
        f"[{t:%a %b %d %H:%M:%S}.{t.microsecond // 1000:03} {t.year}] 0.{took:03} sec "
        f"[ext2/0/rel 3 (0,20)] [part1] w{i % 90}\n"
        for i, (t, took) in enumerate(zip(at, ms.tolist(), strict=True))
    )


def apache(n: int) -> str:
    """Whole microseconds (%D): half around 100 µs, half around 600 µs."""
    us = np.where(np.arange(n) % 2, DRAW.normal(100, 8, n), DRAW.normal(600, 40, n)).astype(int)
    return "".join(
        f"10.0.0.1 - - [{START + timedelta(seconds=i // 9):%d/%b/%Y:%H:%M:%S +0000}] "
        f'"GET /search?q=w{i % 90} HTTP/1.1" 200 512 "-" "-" {took}\n'
        for i, took in enumerate(us.tolist())
    )


def judged(*files: Path) -> LogJudgement:
    return judge_log(count(find(list(files)), Options()))


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path]:
    coarse, fine = tmp_path / "coarse" / "query.log", tmp_path / "fine" / "access.log"
    for path, text in ((coarse, sphinx(6000)), (fine, apache(4000))):
        path.parent.mkdir()
        path.write_text(text)
    return coarse, fine


def test_a_server_is_judged_by_its_own_clock_beside_a_coarser_one(both: tuple[Path, Path]) -> None:
    of = judged(*both)
    rows = {row.name: row for row in of.by["server"]}
    for name, path in zip(("coarse", "fine"), both, strict=True):
        alone = judged(path)
        assert alone.finer is None
        assert alone.all is not None
        assert rows[name].resolution_s == alone.resolution_s
        assert rows[name].quantiles_s == alone.all.quantiles_s
    assert (rows["coarse"].resolution_s, rows["fine"].resolution_s) == (1e-3, 1e-6)
    assert 1e-4 < (rows["fine"].quantiles_s["p95"] or 0) < 1e-3
    # All of the fine one's are known to be within a millisecond, none of the other's.
    assert of.within[0.001] == pytest.approx(0.4)


def test_what_only_the_finer_clock_shows_is_said_of_it_alone(both: tuple[Path, Path]) -> None:
    of, alone = judged(*both), judged(both[1])
    assert of.resolution_s == 1e-3
    assert [band.at_s for band in of.bands.bands][:1] == [None]
    assert of.finer is not None
    assert of.finer.steps_s == {"coarse": 1e-3, "fine": 1e-6}
    assert (of.finer.servers, of.finer.share) == (("fine",), pytest.approx(0.4))
    assert of.finer.bands == alone.bands
    assert [band.at_s for band in of.finer.bands.bands] == pytest.approx([1e-4, 6e-4], rel=0.1)
    (said,) = [remark.text for remark in of.remarks if remark.title == "Clocks that differ"]
    assert "those of coarse to 1 ms, those of fine to 1 µs" in said
    assert "On fine alone (40 % of the times), half took at most" in said
    assert "Times lie in 2 bands: around 97.7 µs (50 %), around 589 µs (50 %)." in said
    assert as_json(of)["finer_clocks"]["servers"] == ("fine",)


def test_a_record_says_it_too_and_one_of_before_goes_by_the_coarsest(
    both: tuple[Path, Path], tmp_path: Path
) -> None:
    at_once = judged(*both)
    for path in both:
        kept = records.add(tmp_path / "r", find([path], path.parent.name), Options())
    assert judge_log(kept.counts).finer == at_once.finer
    opened = records.open_log(tmp_path / "r")
    (place,) = (tmp_path / "r").glob("counts-*/resolutions.parquet")
    pq.write_table(opened.counts.tables["resolutions"].drop_columns("server"), place)
    old = judge_log(records.open_log(tmp_path / "r").counts)
    assert old.finer is None
    assert {row.resolution_s for row in old.by["server"]} == {1e-3}
    with both[1].open("a") as file:
        file.write(apache(500))
    grown = judge_log(records.add(tmp_path / "r", find([both[1]], "fine"), Options()).counts)
    assert grown.finer is None
    assert grown.resolution_s == 1e-3
    assert grown.all is not None
    assert grown.all.n == 10_500


def requests(step_ms: int, n: int, every_ms: int) -> str:
    """JSON lines, whose times are cut off to so many milliseconds."""
    at = [i * every_ms // step_ms * step_ms for i in range(n)]
    stamps = [(START + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds") for ms in at]
    return "".join(
        json.dumps({"timestamp": stamp, "request": f"/search?q=w{i % 40}"}) + "\n"
        for i, stamp in enumerate(stamps)
    )


def mixed(folder: Path, **files: str) -> Searches:
    for name, text in files.items():
        (folder / f"{name}.json").write_text(text)
    return searches_of(read_entries(find(sorted(folder.glob("*.json"))), Options()))


def test_searches_keep_their_milliseconds_beside_a_log_of_whole_seconds(tmp_path: Path) -> None:
    of = mixed(tmp_path, coarse=requests(1000, 800, 250), fine=requests(1, 600, 333))
    assert of.at_ns is not None
    begin = round(START.timestamp() * 1e9)
    fine = of.at_ns[of.steps_ns == 1_000_000] - begin
    assert fine.tolist() == [333_000_000 * i for i in range(600)]
    coarse = of.at_ns[of.steps_ns == 1_000_000_000] - begin
    assert coarse.tolist() == [250_000_000 * i for i in range(800)]
    told = about(tmp_path / "out.jsonl", of, of)
    assert not told["faithful"]
    assert "the times of coarse.json (800 searches) are whole seconds" in told["sentence"]
    assert {f["name"]: f["step_s"] for f in told["sources"]} == {
        "coarse.json": 1,
        "fine.json": 1e-3,
    }


def test_servers_of_whole_seconds_do_not_send_all_at_once(tmp_path: Path) -> None:
    """Ten servers, a search a second each: due one after the other, not ten at each second."""
    of = mixed(tmp_path, **{f"s{i}": requests(1000, 60, 1000) for i in range(10)})
    assert of.at_ns is not None
    assert np.unique(np.diff(of.at_ns)).tolist() == [100_000_000]
    assert "its times are whole seconds" in about(tmp_path / "o.jsonl", of, of)["sentence"]


def test_a_file_of_few_searches_does_not_make_its_log_coarse(tmp_path: Path) -> None:
    of = mixed(tmp_path, a=requests(1, 600, 333), b=requests(1, 2, 1000))
    assert set(of.steps_ns.tolist()) == {1_000_000, 1_000_000_000}
    one = searches_of(read_entries(find(sorted(tmp_path.glob("*.json")), "one"), Options()))
    assert set(one.steps_ns.tolist()) == {1_000_000}


def test_bursts_are_judged_by_those_whose_clock_shows_them(tmp_path: Path) -> None:
    of = mixed(tmp_path, coarse=requests(60_000, 2000, 900), fine=requests(1, 2000, 900))
    cut = cut_of(of, None, None)
    named = [bound.name for bound in cut.bounds]
    assert "dispersion at 1 s" in named
    (said,) = [why for why in cut.skipped if why.startswith("dispersion at 1 s")]
    assert said == (
        "dispersion at 1 s of 2,000 searches: the times of coarse.json are coarser than that; it "
        "is that of the others"
    )
    alone = mixed(tmp_path, coarse=requests(60_000, 2000, 900), fine=requests(60_000, 20, 900))
    skipped = cut_of(alone, None, None).skipped
    assert "dispersion at 1 s: the log's times are coarser than that" in skipped
