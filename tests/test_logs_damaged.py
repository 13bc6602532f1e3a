"""Folders of logs in which some files are damaged, empty, or may not be read."""

from __future__ import annotations

import ctypes
import gzip
import json
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from searchbench.analysis.logs.judge import judge_log
from searchbench.cli import app
from searchbench.errors import QueryError
from searchbench.logs import record as records
from searchbench.logs.counts import Options, count
from searchbench.logs.sources import find
from test_logs_increments import same
from test_logs_unknown import said

LINES = b"".join(
    b'{"time": %d, "took_ms": %d, "q": "w%d"}\n' % (1_767_225_600 + i, i * 7919 % 9000, i * i)
    for i in range(40_000)
)


def packed(how: str) -> bytes:
    if how == "gz":
        return gzip.compress(LINES)
    found = pa.compress(LINES, codec="zstd", asbytes=True)
    assert isinstance(found, bytes)
    return found


@pytest.mark.parametrize("how", ["gz", "zst"])
def test_a_damaged_file_is_read_up_to_there_and_later_gone_on_with(
    tmp_path: Path, how: str
) -> None:
    whole, path = packed(how), tmp_path / "logs" / f"b.jsonl.{how}"
    path.parent.mkdir()
    (tmp_path / "logs" / "a.jsonl").write_bytes(LINES[: len(LINES) // 3])
    path.write_bytes(whole[: len(whole) // 2])
    first = records.add(tmp_path / "record", find([path.parent]), Options())
    of = judge_log(first.counts)
    (read,) = (s["lines"] for s in first.counts.sources if s["path"] == str(path))
    assert 100 < read < 39_900
    assert f"{path.name} is packed, and damaged. Its first {read:,} lines could be read" in said(
        of, "A damaged file"
    )
    again = records.add(tmp_path / "record", find([path.parent]), Options())
    same(again.counts, first.counts, "nothing is new")
    path.write_bytes(whole)
    last = records.add(tmp_path / "record", find([path.parent]), Options())
    at_once = records.add(tmp_path / "at-once", find([path.parent]), Options())
    assert last.counts.numbers("minutes", "n").sum() == 40_000 + read_of(at_once, "a.jsonl")
    for kind in ("minutes", "queries", "groups"):
        assert last.counts.tables[kind].num_rows == at_once.counts.tables[kind].num_rows


@pytest.mark.parametrize("how", ["gz", "zst"])
def test_a_damaged_file_that_has_little_before_is_known_again(tmp_path: Path, how: str) -> None:
    """Less than the bytes by which files are known: a frame, and half of the next one."""
    path, record = tmp_path / f"b.jsonl.{how}", tmp_path / "record"
    frames = [LINES[:1052], LINES[1052:200_049]]
    assert frames[0].endswith(b"\n")
    first, second = (
        gzip.compress(f) if how == "gz" else pa.compress(f, codec="zstd", asbytes=True)
        for f in frames
    )
    path.write_bytes(first + second[:40])
    for _ in range(3):
        kept = records.add(record, find([path]), Options())
        assert [s["entries"] for s in kept.counts.sources] == [frames[0].count(b"\n")]
    path.write_bytes(first + second)
    kept = records.add(record, find([path]), Options())
    assert [s["entries"] for s in kept.counts.sources] == [b"".join(frames).count(b"\n")]


@pytest.mark.parametrize("how", ["gz", "zst"])
def test_what_may_be_none_of_a_log_is_not_added_to_a_record(tmp_path: Path, how: str) -> None:
    """Bytes that were changed are often found only at the end, if at all: by then all is read."""
    whole, path = packed(how), tmp_path / "logs" / f"b.jsonl.{how}"
    path.parent.mkdir()
    half = len(whole) // 2
    changed = whole[:half] + bytes(b ^ 0x55 for b in whole[half : half + 2]) + whole[half + 2 :]
    path.write_bytes(changed)
    of = judge_log(count(find([path]), Options()))
    assert "may not be lines of the log, but are in the figures" in said(of, "A damaged file")
    record = tmp_path / "record"
    with pytest.raises(QueryError, match="bytes of it were changed, so nothing of it is added"):
        records.add(record, find([path.parent]), Options())
    (tmp_path / "logs" / "a.jsonl").write_bytes(LINES[: len(LINES) // 3])
    for _ in range(2):
        kept = records.add(record, find([path.parent]), Options())
        assert read_of(kept, path.name) == 0
        assert "bytes of it were changed" in said(judge_log(kept.counts), "Left out")
        assert kept.counts.numbers("minutes", "n").sum() == read_of(kept, "a.jsonl")
    path.write_bytes(whole)
    last = records.add(record, find([path.parent]), Options())
    at_once = records.add(tmp_path / "at-once", find([path.parent]), Options())
    same(last.counts, at_once.counts, "as if it had never been damaged")
    assert read_of(last, path.name) == 40_000


def read_of(record: records.LogRecord, name: str) -> int:
    (n,) = (int(s["entries"]) for s in record.counts.sources if Path(s["path"]).name == name)
    return n


def test_searches_are_not_made_of_half_a_log(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl.gz"
    path.write_bytes(packed("gz")[:-3000])
    with pytest.raises(QueryError, match=r"b\.jsonl\.gz is damaged: "):
        app(["logs", str(path), "--queries", str(tmp_path / "out.jsonl")])
    assert not (tmp_path / "out.jsonl").exists()


def test_a_file_of_which_nothing_can_be_unpacked_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(LINES)
    (tmp_path / "b.jsonl.gz").write_bytes(packed("gz")[:30])
    of = judge_log(count(find([tmp_path]), Options()))
    assert "b.jsonl.gz is damaged: " in said(of, "Left out")
    assert of.all is not None
    assert of.all.n == 40_000


def test_what_was_left_out_is_said_once_and_no_more_once_it_can_be_read(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.jsonl").write_bytes(LINES[:3000])
    (logs / "b.jsonl").write_bytes(b"")
    for _ in range(3):
        kept = records.add(tmp_path / "record", find([logs]), Options())
        assert [s["refused"] for s in kept.counts.sources] == ["", f"{logs / 'b.jsonl'} is empty"]
    (logs / "b.jsonl").write_bytes(LINES[3000:])
    kept = records.add(tmp_path / "record", find([logs]), Options())
    assert [s["refused"] for s in kept.counts.sources] == ["", ""]


def test_a_folder_and_a_file_that_may_not_be_read_are_named(tmp_path: Path) -> None:
    """Root may read everything, unless the process may not do what only root may."""
    logs = tmp_path / "logs"
    for name in ("db1", "db2", "db3"):
        (logs / name).mkdir(parents=True)
        (logs / name / "a.jsonl").write_bytes(LINES[:3000])
    (logs / "db1").chmod(0)
    (logs / "db3" / "a.jsonl").chmod(0)
    try:
        for more in ([], ["--record", str(tmp_path / "record")]):
            done = subprocess.run(
                [sys.executable, "-m", "searchbench", "logs", str(logs), *more, "--json"],
                stdout=subprocess.PIPE, check=False, preexec_fn=_without_rights,
            )  # fmt: skip
            assert done.returncode == 0
            told = json.loads(done.stdout)
            refused = {s["path"]: s["refused"] for s in told["sources"]}
            assert refused[str(logs / "db2" / "a.jsonl")] == ""
            for hidden in ("db1", "db3/a.jsonl"):
                assert refused[str(logs / hidden)].startswith(
                    f"{logs / hidden} cannot be read: Permission denied"
                )
    finally:
        (logs / "db1").chmod(0o700)


def _without_rights() -> None:
    """Of a process of root that begins now: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""
    libc = ctypes.CDLL(None)
    for capability in (1, 2):
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def test_an_empty_folder_can_be_followed(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    n = LINES[:3000].count(b"\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "searchbench", "logs", str(logs), "--live"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    late = threading.Timer(60, process.kill)
    late.start()
    try:
        assert process.stderr is not None
        assert "0 since the start" in process.stderr.readline()
        (logs / "a.jsonl").write_bytes(LINES[:3000])
        assert any(f"{n} since the start" in line for line in process.stderr)
        process.terminate()
        out, _ = process.communicate()
    finally:
        late.cancel()
        process.kill()
    assert process.returncode == 0
    assert f"{n} searches" in " ".join(out.split())
