"""Lines of logs that are kept as rows of Parquet are counted as if they stood in a text file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from searchbench.cli import app
from searchbench.errors import QueryError
from searchbench.logs import record as records
from searchbench.logs.counts import Counts, Options, count
from searchbench.logs.entries import read_entries
from searchbench.logs.sources import find

LOGS = Path(__file__).parent / "logs"
PLAIN = LOGS / "sphinx-query-plain.log"


def packed(log: Path, to: Path, column: str = "value", of: pa.DataType | None = None) -> Path:
    """A log with a row for each line, in groups of few rows; a null is no line."""
    lines: list[Any] = log.read_bytes().removesuffix(b"\n").split(b"\n")
    lines.insert(len(lines) // 2, None)
    numbers = list(range(len(lines)))
    table = pa.table({"n": numbers, column: pa.array(lines, pa.binary()).cast(of or pa.binary())})
    pq.write_table(table, to, row_group_size=37)
    return to


def what(counts: Counts) -> Any:
    """Everything but where it stood."""
    said = [{k: v for k, v in s.items() if k not in ("path", "bytes", "read_bytes")}
            for s in counts.sources]  # fmt: skip
    return {name: table.to_pydict() for name, table in counts.tables.items()}, said


@pytest.mark.parametrize(
    ("log", "of"),
    [
        ("sphinx-query-plain.log", pa.binary()),  # not all of it is UTF-8
        ("groonga-query.log", pa.string()),
        ("nginx-timed.log", pa.large_string()),
    ],
)
def test_rows_count_as_lines(tmp_path: Path, log: str, of: pa.DataType) -> None:
    found = count(find([packed(LOGS / log, tmp_path / "part.parquet", of=of)], "s"), Options())
    assert what(found) == what(count(find([LOGS / log], "s"), Options()))
    assert found.sources[0]["path"] == str(tmp_path / "part.parquet")


def test_the_column_is_named_where_it_is_not_value(tmp_path: Path) -> None:
    path = packed(PLAIN, tmp_path / "part.parquet", "message")
    with pytest.raises(QueryError, match=r"has no column value .* are message; .*NAME=line"):
        app(["logs", str(path)])
    assert app(["logs", str(path), "--column", "message=line", "--json"]) == 0
    with pytest.raises(QueryError, match=r"no column n .*are message"):
        find([path], lines="n")


def test_a_folder_that_spark_wrote_is_read_and_other_parquet_in_it_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for n in range(3):
        packed(PLAIN, folder / f"part-{n:05d}.snappy.parquet")
    (folder / "_SUCCESS").write_bytes(b"")
    (folder / ".part-00000.snappy.parquet.crc").write_bytes(b"crc")
    pq.write_table(pa.table({"text": ["a"], "n": [1]}), folder / "queries.parquet")
    assert app(["logs", str(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [Path(s["path"]).name for s in said["sources"]] == [
        f"part-{n:05d}.snappy.parquet" for n in range(3)
    ]
    one = count(find([PLAIN], "s"), Options())
    assert said["all"]["n"] == 3 * int(one.numbers("minutes", "n").sum())


def test_what_is_sent_again_is_the_same(tmp_path: Path) -> None:
    path = packed(PLAIN, tmp_path / "part.parquet")
    found, one = (read_entries(find([p], "s"), Options()) for p in (path, PLAIN))
    assert found.at_ns.tolist() == one.at_ns.tolist()
    assert [found.rows[i] for i in found.asked] == [one.rows[i] for i in one.asked]
    assert found.sources[0]["path"] == str(path)


def test_a_log_that_became_parquet_is_known_again(tmp_path: Path) -> None:
    record, text = tmp_path / "record", PLAIN.read_bytes().splitlines(keepends=True)
    log = tmp_path / "query.log"
    log.write_bytes(b"".join(text[: len(text) // 2]))
    half = records.add(record, find([log], "s"), Options())
    log.write_bytes(b"".join(text))
    path = packed(log, tmp_path / "query.parquet")
    log.unlink()
    whole = records.add(record, find([path], "s"), Options())
    again = records.add(record, find([path], "s"), Options())
    entries = [kept.about["increments"][-1]["entries"] for kept in (half, whole, again)]
    one = count(find([PLAIN], "s"), Options())
    assert entries[2] == 0
    assert 0 < entries[1] < sum(entries) == one.sources[0]["entries"]


@pytest.mark.parametrize("damage", ["end", "rows"])
def test_damaged_parquet_is_named_and_nothing_hangs(tmp_path: Path, damage: str) -> None:
    path = packed(PLAIN, tmp_path / "part.parquet")
    data = bytearray(path.read_bytes())
    if damage == "end":
        del data[-20:]
    else:
        data[200 : len(data) // 2] = b"\xff" * (len(data) // 2 - 200)
    path.write_bytes(data)
    with pytest.raises(QueryError, match=r"part\.parquet is damaged: "):
        count(find([path]), Options())


def test_rows_that_are_no_log_are_refused_by_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "notes.parquet"
    pq.write_table(pa.table({"value": ["Dear diary,", "no log at all"]}), path)
    with pytest.raises(QueryError, match=r"notes\.parquet is no log of a known kind: .*diary"):
        count(find([path]), Options())
