"""Hours in which clocks are set, and servers in several zones."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from searchbench.analysis.logs.judge import judge_log
from searchbench.analysis.logs.remarks import clock_of
from searchbench.cli import app
from searchbench.errors import QueryError
from searchbench.logs import record as records
from searchbench.logs.counts import Counts, Options, count
from searchbench.logs.pieces import BLOCK_BYTES
from searchbench.logs.sources import find
from searchbench.logs.zones import zones_said
from test_logs_increments import same
from test_logs_pieces import in_pieces
from test_logs_unknown import said

BERLIN = Options(zone="Europe/Berlin")
AUTUMN = datetime(2026, 10, 25, 0, 0, tzinfo=UTC)  # an hour before clocks are set back in Europe
SPRING = datetime(2026, 3, 29, 0, 0, tzinfo=UTC)


def log(zone: str, start: datetime, hours: float, every_s: float, words: str = "red lamp") -> str:
    """A search each ``every_s`` seconds, as a server in a zone writes it."""
    lines = []
    for i in range(int(hours * 3600 / every_s)):
        at = (start + timedelta(seconds=i * every_s)).astimezone(ZoneInfo(zone))
        stamp = at.strftime("%a %b %d %H:%M:%S.") + f"{at.microsecond // 1000:03d}"
        shape = "[ext2/0/rel 9 (0,20)] [docs]"
        lines.append(f"[{stamp} {at.year}] 0.000 sec {shape} {words} {i % 9}\n")
    return "".join(lines)


def minutes(counts: Counts) -> dict[int, int]:
    at, n = counts.numbers("minutes", "minute"), counts.numbers("minutes", "n")
    return dict(zip(at.tolist(), n.tolist(), strict=True))


@pytest.mark.parametrize("start", [AUTUMN, SPRING])
def test_the_rate_is_even_where_clocks_are_set(tmp_path: Path, start: datetime) -> None:
    path = tmp_path / "q.log"
    path.write_text(log("Europe/Berlin", start, 4, 2))
    found = count(find([path]), BERLIN)
    first = int(start.timestamp()) // 60
    assert minutes(found) == {first + i: 30 for i in range(240)}
    assert [s["back"] for s in found.sources] == [0]
    judged = judge_log(found, zone="Europe/Berlin")
    assert said(judged, "A clock that went back") == ""
    twice = said(judged, "An hour that passed twice")
    assert ("1,800 of the second" in twice) == (start == AUTUMN)


def test_without_a_zone_the_hour_is_said_to_be_doubled(tmp_path: Path) -> None:
    path = tmp_path / "q.log"
    path.write_text(log("Europe/Berlin", AUTUMN, 4, 2))
    found = judge_log(count(find([path]), Options()))
    assert "1 × the clock goes back by about an hour" in said(found, "A clock that was set back")
    assert said(found, "A clock that went back") == ""
    path.write_text(log("Europe/Berlin", AUTUMN - timedelta(days=3), 1, 2)
                    + log("Europe/Berlin", AUTUMN - timedelta(days=3), 1, 2))  # fmt: skip
    other = judge_log(count(find([path]), Options()))
    assert said(other, "A clock that was set back") == "", "it was no Sunday"
    assert said(other, "A clock that went back")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Blocks begin in both passings of the hour."""
    path = tmp_path_factory.mktemp("large") / "q.log"
    path.write_text(log("Europe/Berlin", AUTUMN, 3.5, 0.05, "w" * 70))
    assert path.stat().st_size > 4 * BLOCK_BYTES
    return path


def test_blocks_know_in_which_passing_they_begin(large: Path, tmp_path: Path) -> None:
    found = count(find([large], "s"), BERLIN)
    assert set(minutes(found).values()) == {1200}
    same(in_pieces(find([large], "s"), BERLIN), found, "in pieces")
    packed = tmp_path / "q.log.gz"
    packed.write_bytes(gzip.compress(large.read_bytes(), 1))
    of_packed = count(find([packed], "s"), BERLIN)
    assert minutes(of_packed) == minutes(found)
    assert of_packed.sources[0]["notes"] == found.sources[0]["notes"]


def test_increments_that_end_in_the_hour_say_what_one_reading_says(tmp_path: Path) -> None:
    text = log("Europe/Berlin", AUTUMN, 4, 20)
    path, record = tmp_path / "q.log", tmp_path / "record"
    path.write_text(text)
    whole = count(find([path], "s"), BERLIN)
    for at in range(0, len(text), len(text) // 17):
        path.write_text(text[: at + 100])
        grown = records.add(record, find([path], "s"), BERLIN)
    path.write_text(text)
    grown = records.add(record, find([path], "s"), BERLIN)
    same(grown.counts, whole, "grown")
    assert set(minutes(whole).values()) == {3}


def test_servers_in_several_zones_meet_in_utc(tmp_path: Path) -> None:
    start = datetime(2026, 10, 31, 22, 0, tzinfo=UTC)
    places = {"db1": "America/New_York", "db2": "Asia/Tokyo", "web": "Europe/Berlin"}
    for name, zone in places.items():
        (tmp_path / f"{name}.log").write_text(log(zone, start, 12, 30))
    options = Options(
        zone="Europe/Berlin", zones=(("db1", "America/New_York"), ("db2", "Asia/Tokyo"))
    )
    found = count(find([tmp_path]), options)
    first = int(start.timestamp()) // 60
    assert minutes(found) == {first + i: 6 for i in range(720)}
    assert np.sum([s["back"] for s in found.sources]) == 0


def test_zones_are_said_for_all_and_for_single_servers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert zones_said(["UTC", "db1=Asia/Tokyo"]) == ("UTC", (("db1", "Asia/Tokyo"),))
    for wrong in (["UTC", "Asia/Tokyo"], ["a=UTC", "a=Asia/Tokyo"], ["a=Europe/Berln"]):
        with pytest.raises(QueryError):
            zones_said(wrong)
    path = tmp_path / "db1.log"
    path.write_text(log("Asia/Tokyo", AUTUMN, 1, 30))
    record = tmp_path / "record"
    flags: list[Any] = ["--zone", "db1=Asia/Tokyo", "--record", str(record), "--json"]
    assert app(["logs", str(path), *flags]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["first_s"] == int(AUTUMN.timestamp())
    assert (shown["zone"], shown["zones"]) == ("", {"db1": "Asia/Tokyo"})
    assert app(["logs", "--record", str(record), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["zones"] == {"db1": "Asia/Tokyo"}
    kept = records.open_log(record)
    assert min(minutes(kept.counts)) == int(AUTUMN.timestamp()) // 60


def postgres(stamps: list[str]) -> str:
    return "".join(
        f"{stamp} [7] a@shop LOG:  duration: 2.1 ms  statement: SELECT id FROM t WHERE v LIKE 'w'\n"
        for stamp in stamps
    )


def test_letters_of_a_zone_are_told_and_not_taken_for_one(tmp_path: Path) -> None:
    """CET is told, UTC and an offset are known: `-03` is how PostgreSQL names America/Sao_Paulo."""
    day = "2026-11-22 11:03:13.123"
    path = tmp_path / "pg.log"
    path.write_text(postgres([f"{day} CET"] * 20))
    found = count(find([path]), Options())
    judged = judge_log(found)
    assert "pg.log: 20 times name their zone in a way that is not understood" in said(
        judged, "Zone not known"
    )
    assert clock_of(judged) == "as the log writes it"
    named = judge_log(count(find([path]), BERLIN), zone="Europe/Berlin")
    assert said(named, "Zone not known") == ""
    assert min(minutes(count(find([path]), BERLIN))) == min(minutes(found)) - 60
    for zone, behind in (("UTC", 0), ("-03", 180), ("+0530", -330)):
        path.write_text(postgres([f"{day} {zone}"] * 20))
        known = count(find([path]), Options())
        assert min(minutes(known)) == min(minutes(found)) + behind, zone
        assert said(judge_log(known), "Zone not known") == "", zone
        assert clock_of(judge_log(known)).startswith("UTC"), zone
    path.write_text(postgres([f"{day} CET"] * 20 + [f"{day} UTC"] * 20))
    assert clock_of(judge_log(count(find([path]), Options()))).startswith("UTC where")


@pytest.mark.parametrize(("zone", "known"), [(" EST", False), (" Europe/Paris", False),
                                             ("Z", True), ("+01:00", True), (" PM", True),
                                             ("", True)])  # fmt: skip
def test_a_zone_that_is_not_read_is_told_in_json_too(
    tmp_path: Path, zone: str, known: bool
) -> None:
    path = tmp_path / "q.jsonl"
    lines = (f'{{"timestamp": "2026-03-04 06:{i:02d}:00{zone}", "query": "w{i}", "took_ms": 2}}\n'
             for i in range(30))  # fmt: skip
    path.write_text("".join(lines))
    told = said(judge_log(count(find([path]), Options())), "Zone not known")
    assert (
        "q.jsonl: 30 times name their zone in a way that is not understood" in told
    ) is not known


def test_a_zone_for_a_server_without_a_log_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "db1.log"
    path.write_text(log("Asia/Tokyo", AUTUMN, 1, 30))
    assert app(["logs", str(path), "--zone", "db=Asia/Tokyo"]) == 0
    assert (
        "A zone for no log: --zone db=Asia/Tokyo changed nothing: no log is from a server db. The "
        "servers are db1."
    ) in " ".join(capsys.readouterr().out.split())
