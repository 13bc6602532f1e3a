"""Records of logs that grow: each line is counted once, whatever its file begins with."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from searchbench.logs import record as records
from searchbench.logs.counts import Options
from searchbench.logs.sources import find

HEADER = "timestamp,request_time,query,hits\n"
CSV = Options(format="csv")


def row(i: int) -> str:
    at = f"2026-01-05T09:{i // 60 % 60:02d}:{i % 60:02d}Z"
    return f"{at},{0.01 + i % 7 / 1000:.4f},word{i % 50},{i % 9}\n"


def line(i: int, query: str = "q") -> str:
    at = f"2026-01-05T{9 + i // 3600:02d}:{i // 60 % 60:02d}:{i % 60:02d}Z"
    return json.dumps({"timestamp": at, "took": 0.02, "query": f"{query}{i}"}) + "\n"


def entries(record: records.LogRecord) -> int:
    """How many searches the counts have; the sources must say the same."""
    n = int(record.counts.numbers("minutes", "n").sum())
    assert n == sum(s["entries"] for s in record.about["sources"])
    return n


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["grow.csv", "grow.csv.gz"])
def test_a_csv_file_that_grows_keeps_the_names_of_its_columns(tmp_path: Path, name: str) -> None:
    record, log = tmp_path / "record", tmp_path / name
    for upto in (500, 1000, 1000, 1001):
        write(log, HEADER + "".join(map(row, range(upto))))
        found = records.add(record, find([log], "s"), CSV)
        assert entries(found) == upto
        (source,) = found.about["sources"]
        assert (source["lines"], source["unread"]) == (upto + 1, 0)
        assert source["path"] == str(log)
        assert source["read_bytes"] == len(HEADER + "".join(map(row, range(upto))))
    write(log, HEADER + "".join(map(row, range(1001))) + "no time,x\n")
    (source,) = records.add(record, find([log], "s"), CSV).about["sources"]
    assert source["unread"] == 1
    assert source["examples"][0][0] == 1003


def test_two_servers_whose_csv_begins_alike_are_both_read(tmp_path: Path) -> None:
    record, one, two = tmp_path / "record", tmp_path / "s1" / "a.csv", tmp_path / "s2" / "a.csv"
    records.add(record, find([write(one, HEADER)], "s"), CSV)
    write(one, HEADER + "".join(map(row, range(300))))
    write(two, HEADER + "".join(map(row, range(1000, 1400))))
    assert entries(records.add(record, find([one, two]), CSV)) == 700


def test_two_logs_with_the_same_first_lines_are_two_logs(tmp_path: Path) -> None:
    """A start that is the same on all servers, longer than what a file is known by."""
    start = "".join(line(i, "warm up ") for i in range(80))
    assert len(start) > 4096
    record = tmp_path / "record"
    one = write(tmp_path / "one.jsonl", start + "".join(line(i) for i in range(100, 600)))
    two = write(tmp_path / "two.jsonl", start + "".join(line(i) for i in range(2000, 2600)))
    json_ = Options(format="json")
    assert entries(records.add(record, find([one], "s"), json_)) == 580
    assert entries(records.add(record, find([two], "s"), json_)) == 1260
    # Each is known again by itself, and goes on where it was left.
    for path in (one, two):
        with path.open("a") as file:
            file.write(line(3000))
    again = records.add(record, find([one, two], "s"), json_)
    assert entries(again) == 1262
    assert len(again.about["sources"]) == 2


def test_a_log_that_was_cut_off_and_begins_as_before_is_read_from_its_start(tmp_path: Path) -> None:
    start = "".join(line(i, "warm up ") for i in range(80))
    record, log = tmp_path / "record", tmp_path / "one.jsonl"
    write(log, start + "".join(line(i) for i in range(100, 200)))
    records.add(record, find([log], "s"), Options(format="json"))
    write(log, start + "".join(line(i) for i in range(4000, 4050)))
    assert entries(records.add(record, find([log], "s"), Options(format="json"))) == 180 + 130


def test_a_log_that_was_rotated_and_packed_is_not_read_again(tmp_path: Path) -> None:
    record, text = tmp_path / "record", "".join(line(i) for i in range(900))
    log = write(tmp_path / "one.jsonl", text)
    records.add(record, find([log], "s"), Options(format="json"))
    log.unlink()
    packed = write(tmp_path / "one.jsonl.1.gz", text + line(900))
    log = write(log, line(901))
    found = records.add(record, find([packed, log], "s"), Options(format="json"))
    assert entries(found) == 902


def searched(i: int) -> str:
    at = f"2026-01-05T09:{i // 60:02d}:{i % 60:02d}Z"
    return json.dumps({"timestamp": at, "took": 0.02, "query": f"q{i}"}) + "\n"


def servers(record: records.LogRecord) -> dict[str, int]:
    counts = record.counts
    of = zip(counts.texts("groups", "kind"), counts.texts("groups", "name"),
             counts.numbers("groups", "n"), strict=True)  # fmt: skip
    return {name: int(n) for kind, name, n in of if kind == "server"}


def test_a_server_keeps_its_name_in_a_record_however_many_folders_a_call_has(
    tmp_path: Path,
) -> None:
    """One call alone would call it by its file, the next by its folder."""
    record, options = tmp_path / "record", Options(format="json")
    one = write(tmp_path / "web1" / "query.log", "".join(map(searched, range(10))))
    assert servers(records.add(record, find([one]), options)) == {"query": 10}
    with one.open("a") as file:
        file.write(searched(10))
    two = write(tmp_path / "web2" / "query.log", "".join(map(searched, range(20, 25))))
    assert servers(records.add(record, find([one, two]), options)) == {"query": 11, "web2": 5}
    # A file that is new to the record, after rotation, and one of them alone.
    one.rename(one.with_suffix(".log.1"))
    write(one, "".join(map(searched, range(30, 33))))
    again = records.add(record, find([one.parent]), options)
    assert servers(again) == {"query": 14, "web2": 5}
    with two.open("a") as file:
        file.write(searched(40))
    assert servers(records.add(record, find([two]), options)) == {"query": 14, "web2": 6}


def test_what_is_called_by_folders_is_called_so_in_later_calls_with_one(tmp_path: Path) -> None:
    record, options = tmp_path / "record", Options(format="json")
    logs = [write(tmp_path / f"web{i}" / "query.log", searched(i)) for i in range(3)]
    records.add(record, find(logs[:2]), options)
    with logs[0].open("a") as file:
        file.write(searched(10))
    other = write(logs[0].with_name("other.log"), searched(11))
    assert servers(records.add(record, find([logs[0]]), options)) == {"web0": 2, "web1": 1}
    assert servers(records.add(record, find([other]), options)) == {"web0": 3, "web1": 1}
    assert servers(records.add(record, find([logs[2]]), options))["web2"] == 1
    # What the user says holds, and is kept.
    with logs[2].open("a") as file:
        file.write(searched(12))
    named = records.add(record, find([logs[2]], "shop"), options)
    assert servers(named) == {"shop": 1, "web0": 3, "web1": 1, "web2": 1}
