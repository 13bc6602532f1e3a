"""Where the disk or the memory is full nothing is left that looks whole; the exit code says so."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

import pytest

from searchbench.errors import RecordError
from searchbench.logs import record as records
from searchbench.logs.counts import Counts, Options, count
from searchbench.logs.record import LogRecord, open_log
from searchbench.logs.sources import find
from searchbench.report.document.blocks import Document
from searchbench.report.write import write_page
from searchbench.whole import write_whole

LINE = "[Fri Nov 20 20:{:02}:{:02}.{:03} 2026] 0.{:03} sec [ext2/0/rel {} (0,20)] [part1] red {}\n"
BLOCK = 4096
SIZE = 256 << 10


def lines(first: int, many: int) -> str:
    return "".join(
        LINE.format(n // 60 % 60, n % 60, n % 1000, n % 90, n % 7, f"w{n * 7919 % 9973}")
        for n in range(first, first + many)
    )


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 256 KiB."""
    if os.geteuid() != 0:
        pytest.skip("kernel: mounting needs root")
    point = tmp_path / "disk"
    point.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", str(point)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"kernel: no tmpfs can be mounted: {done.stderr.strip()}")
    try:
        yield point
    finally:
        subprocess.run(["umount", point], check=True)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "query.log"
    path.write_text(lines(0, 2000))
    return path


def fill(disk: Path, but: int = 0) -> None:
    """Take all the room of a disk, but so many bytes."""
    with (disk / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * BLOCK)
        except OSError:
            file.truncate(max(0, file.tell() // BLOCK * BLOCK - (but + BLOCK - 1) // BLOCK * BLOCK))


def searchbench(
    *argv: str | Path,
    out: int | IO[Any] = subprocess.PIPE,
    err: int | IO[Any] = subprocess.PIPE,
    before: Callable[[], None] | None = None,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "searchbench", "logs", *map(str, argv)],
        stdout=out,
        stderr=err,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=before,
        env={**os.environ, **environment},
    )


def failed(done: subprocess.CompletedProcess[str], *said: str) -> None:
    """It ended with an exit code and with one sentence."""
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("searchbench: ")
    assert done.stderr.count("\n") == 1, done.stderr
    for each in said:
        assert each in done.stderr


def add(record: Path, log: Path, options: Options | None = None) -> LogRecord:
    return records.add(record, find([log]), options or Options())


def entries(of: LogRecord) -> int:
    return sum(int(source["entries"]) for source in of.counts.sources)


def kept_of(folder: Path, *names: str) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names}


def kept(folder: Path) -> dict[str, bytes]:
    """All files below a folder but the filler."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "filler"
    }


def test_an_old_page_and_its_pdf_stay_where_there_is_no_room_for_both(
    disk: Path, tmp_path: Path
) -> None:
    made = Document("A log", "About it.", "How.", ())
    whole = write_page(made, tmp_path / "page.html")
    sizes = [whole.stat().st_size, whole.with_suffix(".pdf").stat().st_size]
    assert BLOCK < min(sizes) < sum(sizes) < SIZE - 4 * BLOCK
    for name in ("page.html", "page.pdf"):
        (disk / name).write_text("of yesterday")
    old = kept(disk)
    for room in (0, BLOCK, *sizes, sum(sizes) - BLOCK):
        fill(disk, room)
        with pytest.raises(RecordError, match=r"page\.html: the disk is full, so the page was not"):
            write_page(made, disk / "page.html")
        assert kept(disk) == old
    (disk / "filler").unlink()
    write_page(made, disk / "page.html")
    assert kept(disk) == kept_of(tmp_path, "page.html", "page.pdf")


def test_a_page_that_is_named_as_a_pdf_stands_beside_it(tmp_path: Path) -> None:
    page = write_page(Document("A log", "About it.", "How.", ()), tmp_path / "a.pdf")
    assert page == tmp_path / "a.html"
    assert page.read_text().startswith("<!doctype html>")
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")


def test_a_page_without_room_is_a_failure_and_leaves_the_old_one(disk: Path, log: Path) -> None:
    (disk / "page.html").write_text("of yesterday")
    old = kept(disk)
    done = searchbench(log, "--page", disk / "page.html")
    failed(done, "page.html: the disk is full, so the page was not written; make room")
    assert kept(disk) == old


def test_a_record_that_has_no_room_is_begun_anew_when_there_is(disk: Path, log: Path) -> None:
    fill(disk, 8 * BLOCK)
    done = searchbench(log, "--record", disk / "r", "--page", disk.parent / "a.html")
    failed(done, "r: the disk is full, so the record was not written; make room, or name another")
    assert kept(disk) == {}
    assert not (disk.parent / "a.html").exists()
    (disk / "filler").unlink()
    assert entries(add(disk / "r", log)) == 2000


def test_a_first_call_that_was_killed_does_not_take_the_folder(log: Path, tmp_path: Path) -> None:
    counts = tmp_path / "r" / "counts-1"
    counts.mkdir(parents=True)
    (counts / "groups.parquet").write_bytes(b"PAR1")
    assert entries(add(tmp_path / "r", log)) == 2000
    assert [p.name for p in (tmp_path / "r").glob("counts-*")] == ["counts-2"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("")
    with pytest.raises(RecordError, match="no record of a log"):
        add(tmp_path / "other", log)


def test_an_increment_without_room_leaves_the_old_record_whole(disk: Path, log: Path) -> None:
    add(disk / "r", log)
    old, before = kept(disk), open_log(disk / "r").counts
    size = sum(BLOCK * -(-len(content) // BLOCK) for content in old.values())
    with log.open("a") as file:
        file.write(lines(2000, 1500))
    # Room for nothing, for some tables, for all but logs.json (its folder takes none).
    for room in range(0, size, 3 * BLOCK):
        fill(disk, room)
        with pytest.raises(RecordError, match=r"r: the disk is full, .* before is unchanged"):
            add(disk / "r", log)
        assert kept(disk) == old
    after = open_log(disk / "r").counts
    assert (after.tables, after.sources) == (before.tables, before.sources)
    (disk / "filler").unlink()
    assert entries(add(disk / "r", log)) == 3500


def test_an_increment_without_room_is_a_failure(disk: Path, log: Path, tmp_path: Path) -> None:
    add(disk / "r", log)
    old = kept(disk)
    with log.open("a") as file:
        file.write(lines(2000, 1500))
    fill(disk, 2 * BLOCK)
    done = searchbench(log, "--record", disk / "r", "--page", tmp_path / "page.html", "--json")
    failed(done, "r: the disk is full", "what was there before is unchanged")
    assert done.stdout == ""
    assert kept(disk) == old
    assert not (tmp_path / "page.html").exists()


def test_a_disk_that_says_only_when_it_is_waited_for_that_it_is_full_leaves_the_old_record(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what a record names is on the disk before what it named before goes."""
    record = tmp_path / "r"
    add(record, log)
    old = kept(record)
    with log.open("a") as file:
        file.write(lines(2000, 500))
    waited: list[str] = []
    done = os.fsync

    def full(at: int, handle: int) -> None:
        path = str(Path(f"/proc/self/fd/{handle}").readlink())
        if len(waited) == at and path != str(record):
            raise OSError(errno.ENOSPC, "No space left on device")
        assert all((record / name).exists() for name in old), "the old one went too early"
        waited.append(path)
        done(handle)

    for number in range(100):
        waited.clear()
        monkeypatch.setattr(os, "fsync", partial(full, number))
        try:
            add(record, log)
        except RecordError as error:
            said = str(error)
        else:
            break
        assert "the disk is full" in said
        assert kept(record) == old
    now = open_log(record)
    assert entries(now) == 2500
    counts = record / str(now.about["counts"])
    named = [str(path) for path in (*counts.iterdir(), counts, record)]
    assert set(named) <= set(waited)


@pytest.mark.parametrize("early", [True, False])
def test_of_two_calls_that_add_to_a_record_at_once_the_last_fails_and_takes_nothing_away(
    log: Path, tmp_path: Path, early: bool
) -> None:
    record, other = tmp_path / "r", tmp_path / "other.log"
    other.write_text(lines(5000, 300))
    add(record, log)

    def meanwhile(*given: Any) -> Counts:
        if early:
            add(record, other)
        made = count(*given)
        if not early:
            add(record, other)
        return made

    with pytest.raises(RecordError, match="another call has added to the record meanwhile"):
        records.add(record, find([log]), Options(), counting=meanwhile)
    assert entries(open_log(record)) == 2300
    assert len(list(record.glob("counts-*"))) == 1
    assert entries(add(record, log)) == 2300


def test_a_record_is_whole_though_its_page_has_no_room(disk: Path, log: Path) -> None:
    record = disk / "r"
    done = searchbench(log, "--record", record)
    again = f"the record is whole: `searchbench logs --record {record}`"
    failed(done, "the page was not written", again)
    assert not list((record / "report").iterdir())
    assert sum(s["entries"] for s in open_log(record).counts.sources) == 2000


@pytest.mark.parametrize(("more", "room"), [((), 0), ((), 5), (("--anonymise",), 1)])
def test_searches_and_what_is_said_of_them_are_both_new_or_both_old(
    disk: Path, log: Path, more: Sequence[str], room: int
) -> None:
    out = disk / "searches.jsonl"
    out.write_text("of yesterday")
    (disk / "searches.jsonl.about.json").write_text("of yesterday")
    old = kept(disk)
    fill(disk, room * BLOCK)
    failed(searchbench(log, "--queries", out, *more), "searches.jsonl: the disk is full")
    assert kept(disk) == old


def test_a_part_of_a_key_is_not_left(disk: Path, log: Path, tmp_path: Path) -> None:
    fill(disk)
    argv = (log, "--queries", tmp_path / "a.jsonl", "--anonymise", "--key", disk / "log.key")
    failed(searchbench(*argv), "log.key: the disk is full, so the key was not written")
    assert kept(disk) == {}
    assert not (tmp_path / "a.jsonl").exists()


@pytest.mark.parametrize("argv", [(), ("--json",)])
def test_a_full_standard_output_is_a_failure(log: Path, argv: Sequence[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = searchbench(log, *argv, out=full)
        failed(done, "standard output: the disk is full, so the rest of it was not written")
        assert searchbench(log, *argv, out=full, err=full).returncode == 2


def test_json_on_a_disk_with_too_little_room_is_a_failure(disk: Path, log: Path) -> None:
    fill(disk)
    with (disk / "a.json").open("w") as file:
        failed(searchbench(log, "--json", out=file), "standard output: the disk is full")


@pytest.mark.parametrize("out", ["disk", "/dev/full", "-"])
def test_a_generated_log_is_whole_or_not_there(disk: Path, out: str) -> None:
    fill(disk, 8 * BLOCK)
    place = str(disk / "made.log") if out == "disk" else out
    with Path("/dev/full").open("w") as full:
        done = searchbench("generate", place, "--lines", "9000", out=full)
    failed(done, "the disk is full, so the log was not written")
    assert kept(disk) == {}
    assert Path("/dev/full").is_char_device()


def test_a_demo_without_room_says_so(disk: Path) -> None:
    done = searchbench("demo", disk / "demo", "--lines", "4000")
    failed(done, "the disk is full")
    assert not list(disk.rglob("*.html"))
    assert not [path for path in disk.rglob(".*") if path.is_file()]


def test_files_that_belong_together_are_all_new_or_all_old_where_a_disk_says_late_that_it_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [tmp_path / "page.html", tmp_path / "page.pdf"]
    for name in names:
        name.write_text("of yesterday")
    old, done = kept(tmp_path), os.fsync
    waited: list[int] = []

    def full(at: int, handle: int) -> None:
        if len(waited) == at:
            raise OSError(errno.ENOSPC, "No space left on device")
        waited.append(handle)
        done(handle)

    for number in range(2):
        waited.clear()
        monkeypatch.setattr(os, "fsync", partial(full, number))
        with pytest.raises(OSError, match="No space"):
            write_whole([(name, b"of today") for name in names])
        assert kept(tmp_path) == old
    monkeypatch.setattr(os, "fsync", partial(full, 2))
    waited.clear()
    write_whole([(name, b"of today") for name in names])
    assert kept(tmp_path) == {name.name: b"of today" for name in names}


def test_a_file_in_place_of_another_keeps_links_permissions_and_devices(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "target").chmod(0o600)
    (tmp_path / "link").symlink_to("target")
    write_whole([(tmp_path / "link", b"new")])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"
    assert (tmp_path / "target").stat().st_mode & 0o777 == 0o600
    with pytest.raises(OSError, match="No space"):
        write_whole([(tmp_path / "link", b"newer"), (Path("/dev/full"), b"more")])
    assert Path("/dev/full").is_char_device()
    assert (tmp_path / "target").read_text() == "new"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "target"]


def test_new_lines_of_a_csv_log_need_room_in_passing(disk: Path, tmp_path: Path) -> None:
    log, record = tmp_path / "a.csv", tmp_path / "r"
    options = Options(format="csv")
    head = "timestamp,query,took\n"
    rows = [f"2026-11-20T20:00:{n % 60:02}Z,red {n},{n % 50}\n" for n in range(9000)]
    log.write_text(head + "".join(rows[:1000]))
    add(record, log, options)
    old = kept(record)
    with log.open("a") as file:
        file.write("".join(rows[1000:]))
    fill(disk, BLOCK)
    done = searchbench(log, "--format", "csv", "--record", record, TMPDIR=str(disk))
    failed(done, "the disk is full, so a temporary file was not written", "TMPDIR")
    assert kept(record) == old
    assert kept(disk) == {}


def test_live_says_that_its_temporary_files_have_no_room(disk: Path, log: Path) -> None:
    fill(disk, BLOCK)
    argv = [sys.executable, "-m", "searchbench", "logs", str(log), "--live"]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(disk)},
    ) as process:  # fmt: skip
        try:
            deadline = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < deadline:
                with log.open("a") as file:
                    file.write(lines(3000, 200))
                time.sleep(0.5)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert process.returncode == 2, said
    assert (
        "so a temporary file was not written; make room, or name another folder in TMPDIR" in said
    )
    assert kept(disk) == {}


def limited(megabytes: int) -> Callable[[], None]:
    """So much room for addresses, as `ulimit -v` gives."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


@pytest.mark.parametrize("megabytes", [300, 700])
def test_too_little_memory_is_a_failure_and_never_an_empty_page(
    log: Path, tmp_path: Path, megabytes: int
) -> None:
    """The libraries map half a gigabyte of addresses, and what draws figures as much again."""
    page, record = tmp_path / "page.html", tmp_path / "r"
    page.write_text("of yesterday")
    done = searchbench(log, "--page", page, "--record", record, before=limited(megabytes))
    assert done.returncode != 0
    if megabytes == 300:
        failed(done, "There is not enough memory; close other programs, or raise the limit")
    assert page.read_text() == "of yesterday"
    assert not page.with_suffix(".pdf").exists()
    # What was written of the record before the page was is whole.
    assert not kept(record) or entries(open_log(record)) == 2000
