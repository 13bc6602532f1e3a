"""Logs that really grow and rotate: followed to the last line, and what the end says is exact.

Longer than most files, because each format grows in its own way.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from pages import ENV, section
from searchbench.analysis.logs.judge import judge_log
from searchbench.analysis.logs.live import RECENT_S, Live
from searchbench.cli import app
from searchbench.errors import QueryError, SearchbenchError
from searchbench.logs import follow
from searchbench.logs.counts import Counts, Options, count
from searchbench.logs.follow import GrowingFile, GrowingPipe
from searchbench.logs.sources import find
from searchbench.logs.watch import Watch
from searchbench.report.document.text import line as shown_line

LOGS = Path(__file__).parent / "logs"
COMMAND = [sys.executable, "-m", "searchbench", "logs"]
PATIENCE_S = 60


def line(i: int, ms: int = 3, words: str = "red fox") -> str:
    second = f"{i // 3600 % 24:02}:{i // 60 % 60:02}:{i % 60:02}"
    return f"[Fri Nov 20 {second}.000 2026] {ms / 1000:.3f} sec [any/0/rel {i % 5} (0,20)] " \
           f"[shop] {words} {i}\n"  # fmt: skip


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def until(true: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.02)


class Screen:
    """What a program writes to a terminal of 100 columns that is its standard error."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        self.text = ""

    def said(self) -> str:
        while select.select([self.ours], [], [], 0)[0]:
            try:
                piece = os.read(self.ours, 65536)
            except OSError:  # nobody has the other end any more
                break
            self.text += piece.decode()
        return self.text

    def now(self) -> str:
        """What stands there since it was last cleared."""
        return self.said().rpartition("\x1b[J")[2]


@contextmanager
def followed(*argv: str, cwd: Path, **how: int) -> Iterator[tuple[subprocess.Popen[str], Screen]]:
    screen = Screen()
    process = subprocess.Popen(
        [*COMMAND, *argv, "--live"], cwd=cwd, env={**ENV, "COLUMNS": "100", "LINES": "40"},
        text=True, stdout=subprocess.PIPE, stderr=screen.theirs, **how,
    )  # fmt: skip
    os.close(screen.theirs)
    try:
        yield process, screen
    finally:
        process.kill()
        process.wait()
        os.close(screen.ours)


def searches(screen: str) -> int:
    """The number of searches since the start, as a view shows it."""
    found = re.findall(r"^since the start +([\d,]+) ", screen.replace("\r", ""), re.MULTILINE)
    return int(found[-1].replace(",", "")) if found else 0


def test_a_log_is_followed_while_it_grows_and_rotates_and_ends_with_the_findings(
    tmp_path: Path,
) -> None:
    log = tmp_path / "query.log"
    log.write_text("".join(line(i, 900, "before") for i in range(500)))
    with followed("query.log", cwd=tmp_path) as (process, screen):
        until(lambda: "query.log (sphinx), 0:00:0" in screen.said(), "no view was drawn")
        append(log, "".join(line(i) for i in range(300)) + line(300)[:40])
        until(lambda: searches(screen.now()) == 300, "what was added is not seen")
        assert "3 ms" in screen.now()
        assert "any/" in screen.now(), "no class is shown"
        append(log, line(300)[40:])
        until(lambda: searches(screen.now()) == 301, "the rest of a line is not seen")
        # Rotated: the server goes on with the old file until it is told.
        log.rename(tmp_path / "query.log.1")
        append(tmp_path / "query.log.1", "".join(line(i) for i in range(301, 400)))
        log.write_text("".join(line(i) for i in range(400, 500)))
        until(lambda: searches(screen.now()) == 500, "of two files not all is seen")
        append(tmp_path / "query.log.1", line(500))
        until(lambda: searches(screen.now()) == 501, "the old file was left too early")
        assert "rotated 1 time" in screen.now()
        # Cut off, as by logrotate with copytruncate.
        os.truncate(log, 0)
        append(log, "".join(line(i, 2000, "slow") for i in range(501, 531)))
        until(lambda: searches(screen.now()) == 531, "a file that was cut off is not seen")
        assert "rotated 2 times" in screen.now()
        append(log, line(531))
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, screen.said()
    assert said.startswith("Half of the 532 searches took less than 4 ms")
    assert "\n532 lines (sphinx) in " in said
    assert "Times: Half of the searches took less than 4 ms" in " ".join(said.split())
    assert "before" not in said
    assert screen.text.count("Traceback") == 0


def test_what_comes_through_a_pipe_is_followed_to_its_end(tmp_path: Path) -> None:
    """As with `tail -F query.log | searchbench logs - --live`."""
    log = tmp_path / "query.log"
    log.write_text("".join(line(i) for i in range(50)))
    tail = subprocess.Popen(["tail", "-n", "+1", "-F", str(log)], stdout=subprocess.PIPE)
    assert tail.stdout is not None
    try:
        with followed("-", cwd=tmp_path, stdin=tail.stdout.fileno()) as (process, screen):
            append(log, "".join(line(i) for i in range(50, 80)))
            until(lambda: searches(screen.now()) == 80, "what tail sends is not seen")
            append(log, "".join(line(i) for i in range(80, 90)))
            until(lambda: searches(screen.now()) == 90, "what tail sends is not seen")
            tail.terminate()
            said, _ = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0, screen.said()
    finally:
        tail.kill()
        tail.wait()
        tail.stdout.close()
    assert "\n90 lines (sphinx)" in said


def test_as_json_it_says_nothing_until_the_end_and_then_what_a_whole_log_says(
    tmp_path: Path,
) -> None:
    text = "".join(line(i, i % 90) for i in range(500)).rstrip("\n")
    done = subprocess.run(
        [*COMMAND, "-", "--live", "--json", "--page", "page.html"], input=text, cwd=tmp_path,
        env=ENV, capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "query.log").write_text(text)
    again = subprocess.run(
        [*COMMAND, "query.log", "--json"], cwd=tmp_path, env=ENV, capture_output=True, text=True,
        timeout=PATIENCE_S,
    )  # fmt: skip
    live, whole = json.loads(done.stdout), json.loads(again.stdout)
    for key in ("all", "by_words", "worst_minutes", "most_asked", "repetition", "hits", "bands"):
        assert live[key] == whole[key], key
    assert live["all"]["n"] == 500
    assert "What was found" in (tmp_path / "page.html").read_text()


def test_a_pipe_of_which_the_reader_is_told_to_end_says_what_came(tmp_path: Path) -> None:
    read, write = os.pipe()
    with followed("-", cwd=tmp_path, stdin=read) as (process, screen):
        os.close(read)
        os.write(write, "".join(line(i) for i in range(120)).encode())
        until(lambda: searches(screen.now()) == 120, "what came is not seen")
        assert "standard input (sphinx)" in screen.now()
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, screen.said()
    os.close(write)
    assert "\n120 lines (sphinx)" in said


def test_without_a_terminal_it_says_a_line_at_a_time_and_nothing_new_is_said_so(
    tmp_path: Path,
) -> None:
    log = tmp_path / "query.log"
    log.write_text("".join(line(i) for i in range(50)))
    process = subprocess.Popen(
        [*COMMAND, str(log), "--live"], env=ENV, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    first = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    said, rest = process.communicate(timeout=PATIENCE_S)
    assert re.match(r"\d\d:\d\d:\d\d  0 searches/s in the last \d+ s, 0 since the start", first)
    assert "\x1b" not in first + rest
    assert "".join(said.split()).startswith(f"Nothingwasaddedto{log}in"), "a long path is wrapped"
    assert process.returncode == 1


# ── in pieces as it is at once ───────────────────────────────────────────────────────────────


def in_pieces(log: Path, text: bytes, at_once: int, **how: str) -> tuple[Counts, list[Counts]]:
    """What is counted of a log that grows by so many lines between two looks."""
    lines = text.splitlines(keepends=True)
    log.write_bytes(b"")
    options = Options(**how)  # type: ignore[arg-type]
    now, seen = 100.0, []
    with Watch(find([log], "s"), options, now) as watch:
        for at in range(0, len(lines), at_once):
            with log.open("ab") as file:
                file.writelines(lines[at : at + at_once])
            now += 1.0
            seen.append(watch.poll(now))
        last, whole = watch.end(now)
    return whole, [*seen, last]


@pytest.mark.parametrize("at_once", [1, 7, 1000])
@pytest.mark.parametrize(
    "name",
    [
        "sphinx-query-plain.log", "sphinx-query-sphinxql.log", "mariadb-slow.log",
        "groonga-query.log", "nginx-timed.log", "nginx-json.log", "haproxy-http.log",
        "postgresql-stderr-default.log", "postgresql-stderr-duration.log",
        "postgresql-stderr-pgbadger.log", "postgresql-csvlog.csv", "postgresql-csvlog.json",
        "postgresql-jsonlog.json", "mariadb-general.log", "opensearch-slow.log",
        "opensearch-slow.json", "elasticsearch-slow.json",
    ],
)  # fmt: skip
def test_a_real_log_in_pieces_is_counted_as_it_is_at_once(
    tmp_path: Path, name: str, at_once: int
) -> None:
    text, log = (LOGS / name).read_bytes(), tmp_path / "a.log"
    at_start = {"mariadb-slow.log": "mysql-slow", "groonga-query.log": "groonga",
                "mariadb-general.log": "mysql-general"}  # fmt: skip
    form = at_start.get(name, "")  # their first lines alone do not tell what they are
    found, _ = in_pieces(log, text, at_once, format=form)
    log.write_bytes(text)
    whole = count(find([log], "s"), Options(format=form))
    for table, values in whole.tables.items():
        assert found.tables[table].to_pydict() == values.to_pydict(), table
    (one,), (other,) = found.sources, whole.sources
    for key in ("lines", "entries", "unread", "bytes", "notes", "format"):
        assert one[key] == other[key], key


def test_an_agent_that_answers_in_another_second_than_its_search_is_still_a_part(
    tmp_path: Path,
) -> None:
    """Without lines that are held back the part would be a search."""
    head = "[Sun Nov 22 11:03:13.289 2026] 1.500 sec 1.500 sec [ext2/0/ext 31"
    agent, search = f"{head} (0,1000)] [part1] red fox\n", f"{head} (0,10)] [all] red fox\n"
    found, pieces = in_pieces(tmp_path / "a.log", (agent + search).encode(), 1)
    kinds = dict(zip(found.texts("groups", "kind"), found.numbers("groups", "n"), strict=True))
    assert (kinds["server"], kinds["part"]) == (1, 1)
    assert [int(each.numbers("minutes", "n").sum()) for each in pieces] == [0, 1, 0]


@pytest.mark.parametrize("at_once", [2, 3, 100])
def test_a_statement_of_several_lines_is_one_also_where_an_agent_is_asked(
    tmp_path: Path, at_once: int
) -> None:
    head = "/* Sun Nov 22 02:59:00.97{} 2026 conn {} real 0.00{} wall 0.00{} found 3 */ SELECT *\n"
    agent = head.format(0, 5, 1, 1) + "FROM part0\nWHERE MATCH('red fox') LIMIT 0,1000;\n"
    between = head.format(1, 6, 2, 2) + "FROM docs\n\nWHERE MATCH('blue');\n"
    search = head.format(2, 7, 4, 4) + "FROM docs\nWHERE MATCH('red fox')\nLIMIT 0,10;\n"
    text = (agent + between + search + between).encode()
    log = tmp_path / "a.log"
    found, _ = in_pieces(log, text, at_once, format="sphinxql")
    whole = count(find([log], "s"), Options(format="sphinxql"))
    for table, values in whole.tables.items():
        assert found.tables[table].to_pydict() == values.to_pydict(), table
    (source,) = found.sources
    assert (source["entries"], source["unread"], source["lines"]) == (4, 0, 15)
    kinds = dict(zip(found.texts("groups", "kind"), found.numbers("groups", "n"), strict=True))
    assert (kinds["server"], kinds["part"]) == (3, 1)


def test_the_columns_of_a_csv_file_keep_their_names(tmp_path: Path) -> None:
    header = b"timestamp,request_time,query,hits\n"
    rows = [b"2026-01-05T09:00:%02dZ,0.02,word%d,%d\n" % (i % 60, i, i % 3) for i in range(50)]
    found, _ = in_pieces(tmp_path / "a.csv", header + b"".join(rows), 3, format="csv")
    (source,) = found.sources
    assert (source["entries"], source["unread"], source["lines"]) == (50, 0, 50)


def test_a_csv_file_that_has_its_header_already_and_is_replaced(tmp_path: Path) -> None:
    log, header = tmp_path / "a.csv", "timestamp,request_time,query,hits\n"
    log.write_text(header)
    with Watch(find([log], "s"), Options(format="csv"), 0.0) as watch:
        append(log, "2026-01-05T09:00:00Z,0.02,red,3\n")
        assert int(watch.poll(1.0).numbers("minutes", "n").sum()) == 1
        log.rename(tmp_path / "a.csv.1")
        log.write_text(header + "2026-01-05T09:00:01Z,0.02,blue,3\n")
        _, whole = watch.end(2.0)
    (source,) = whole.sources
    assert (source["entries"], source["unread"]) == (2, 0)


def test_an_entry_whose_lines_come_in_two_pieces_is_one_and_the_last_waits_for_no_more_than_the_end(
    tmp_path: Path,
) -> None:
    """PostgreSQL writes a statement, which may have two lines, and later its duration."""
    log, now = tmp_path / "pg.log", "2026-11-22 11:03:13.{:03} CET [{}] app@shop LOG:  "
    log.write_text("")
    with Watch(find([log], "s"), Options(format="postgresql"), 0.0) as watch:
        append(log, now.format(1, 7) + "statement: SELECT id FROM docs\n")
        append(log, now.format(2, 8) + "statement: SELECT 1 FROM other\n\tWHERE a")
        seen = [watch.poll(1.0)]
        append(log, " = 2\n" + now.format(30, 7) + "duration: 29.000 ms\n")
        append(log, now.format(92, 8) + "duration: 90.000 ms\n")
        seen.append(watch.poll(2.0))
        seen.append(watch.poll(3.0))
        last, whole = watch.end(4.0)
    n = [int(each.numbers("minutes", "n").sum()) for each in (*seen, last)]
    assert n == [0, 1, 0, 1]
    groups = whole.tables["groups"].to_pylist()
    times = {row["name"]: row["sum_ns"] for row in groups if row["kind"] == b"class"}
    assert times == {
        b"select id from docs": 29_000_000, b"select ? from other where a=?": 90_000_000,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "form"),
    [("postgresql-stderr-duration.log", "postgresql"), ("mariadb-general.log", "mysql-general")],
)
def test_a_log_of_joined_entries_is_followed_while_it_grows_and_rotates(
    tmp_path: Path, name: str, form: str
) -> None:
    text = (LOGS / name).read_bytes()
    log, at = tmp_path / "server.log", text.index(b"\n", len(text) // 2) + 1
    log.write_bytes(b"")
    (tmp_path / "whole.log").write_bytes(text)
    whole = judge_log(count(find([tmp_path / "whole.log"], "server.log"), Options(format=form)))
    assert whole.all is not None
    n = whole.all.n
    with followed("server.log", "--format", form, cwd=tmp_path) as (process, screen):
        until(lambda: f"server.log ({form}), 0:00:0" in screen.said(), "no view was drawn")
        with log.open("ab") as file:
            file.write(text[:at])
        until(lambda: searches(screen.now()) > n / 4, "what was added is not seen")
        log.rename(tmp_path / "server.log.1")
        log.write_bytes(text[at:])
        # All but the last, which may go on.
        until(lambda: searches(screen.now()) >= n - 1, "of two files not all is seen")
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, screen.said()
    told = " ".join(said.split())
    assert told.startswith(" ".join(shown_line(whole.headline).split()))
    lines = text.count(b"\n")
    assert f"{lines:,} lines ({form})" in told


@pytest.mark.parametrize("every", [600, 1000, 5399])
def test_an_hour_that_passes_twice_is_told_apart_while_a_log_grows(
    tmp_path: Path, every: int
) -> None:
    """A search each two seconds, from an hour before clocks are set back to two hours after."""
    begin = datetime(2026, 10, 25, 0, 0, tzinfo=UTC)
    lines = []
    for i in range(5400):
        at = (begin + timedelta(seconds=2 * i)).astimezone(ZoneInfo("Europe/Berlin"))
        lines.append(f"[{at:%a %b %d %H:%M:%S}.000 2026] 0.000 sec [any/0/rel 3 (0,20)] [a] w\n")
    text = "".join(lines).encode()
    found, _ = in_pieces(tmp_path / "a.log", text, every, zone="Europe/Berlin")
    at, n = found.numbers("minutes", "minute"), found.numbers("minutes", "n")
    first = int(begin.timestamp()) // 60
    assert dict(zip(at.tolist(), n.tolist(), strict=True)) == {first + i: 30 for i in range(180)}
    (source,) = found.sources
    (whole,) = count(find([tmp_path / "a.log"], "s"), Options(zone="Europe/Berlin")).sources
    assert (source["back"], source["notes"]) == (0, whole["notes"])


def test_what_is_no_log_is_refused_beside_one_that_is(tmp_path: Path) -> None:
    (tmp_path / "pg.log").write_text("Dear diary,\n")
    (tmp_path / "query.log").write_text(line(1))
    with Watch(find([tmp_path]), Options(), 0.0) as watch:
        append(tmp_path / "query.log", line(2))
        _, whole = watch.end(1.0)
    assert [bool(s["refused"]) for s in whole.sources] == [True, False]
    assert sum(s["entries"] for s in whole.sources) == 1
    (tmp_path / "notes.txt").write_text("Dear diary,\n")
    with pytest.raises(QueryError, match=r"notes\.txt is no log of a known kind"):
        Watch(find([tmp_path / "notes.txt"]), Options(), 0.0)


def test_the_page_names_both_ways() -> None:
    told = section("docs/LOGS.md", "While a log grows")
    assert "\nsearchbench logs /var/log/sphinx/query.log --live\n" in told
    assert "\ntail -F /var/log/sphinx/query.log | searchbench logs - --live\n" in told
    assert all(name in told for name in ("PostgreSQL", "general log of MySQL", "slow logs of"))


def test_a_packed_file_will_not_grow(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(b"\x1f\x8b\x08\x00")
    with pytest.raises(QueryError, match="leave out --live"):
        Watch(find([tmp_path / "a.gz"]), Options(), 0.0)


def test_live_keeps_no_record(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(line(1))
    with pytest.raises(SearchbenchError, match="leave out --record"):
        app(["logs", str(tmp_path / "a.log"), "--live", "--record", str(tmp_path / "r")])


# ── files and pipes ──────────────────────────────────────────────────────────────────────────


def test_an_old_file_is_left_when_it_has_been_silent(tmp_path: Path) -> None:
    log, old = tmp_path / "a.log", tmp_path / "a.log.1"
    log.write_text("before\nnot whole, ")
    grows = GrowingFile(str(log), 0.0)
    assert grows.head() == b"before\n"
    append(log, "now it is\n")
    assert grows.new(1.0) == b"not whole, now it is\n"
    log.rename(old)
    assert grows.new(2.0) == b"", "while there is no file of its name, nothing is new"
    append(old, "late\nhalf")
    assert grows.new(3.0) == b"late\n"
    log.write_text("new\n")
    assert grows.new(4.0) == b"new\n"
    assert grows.rotations == 1
    assert grows.new(14.5) == b"half\n"
    append(old, " too late\n")
    append(log, "newer\n")
    assert grows.new(15.0) == b"newer\n"
    assert grows.rest() == b""


@pytest.mark.parametrize("looks", [True, False])
def test_files_that_each_move_on_to_the_next_name_are_not_read_again(
    tmp_path: Path, looks: bool
) -> None:
    log, one, two = (tmp_path / f"query.log{end}" for end in ("", ".1", ".2"))
    one.write_text("".join(line(i) for i in range(40)))
    log.write_text("".join(line(i) for i in range(40, 60)))
    again = (lambda: find([tmp_path])) if looks else None
    with Watch(find([tmp_path]), Options(), 0.0, again) as watch:
        append(log, line(60) + line(61))
        seen = [watch.poll(1.0)]
        one.rename(two)
        log.rename(one)
        seen.append(watch.poll(2.0))
        log.write_text(line(62) + line(63))
        append(one, line(64))
        # Until the old file is left, and later.
        seen += [watch.poll(at) for at in (3.0, 4.0, 14.5, 15.0, 30.0)]
        append(log, line(65))
        last, whole = watch.end(31.0)
    n = [int(each.numbers("minutes", "n").sum()) for each in (*seen, last)]
    assert n == [2, 0, 3, 0, 0, 0, 0, 1]
    assert sum(int(s["lines"]) for s in whole.sources) == 6


def test_a_file_that_has_its_name_again_is_gone_on_with(tmp_path: Path) -> None:
    log, other = tmp_path / "a.log", tmp_path / "b.log"
    log.write_text("one\n")
    grows = GrowingFile(str(log), 0.0, whole=True)
    assert grows.new(1.0) == b"one\n"
    log.rename(other)
    log.write_text("two\n")
    assert grows.new(2.0) == b"two\n"
    other.replace(log)
    append(log, "three\n")
    assert grows.new(3.0) == b"three\n"
    assert grows.rest() == b""


def test_of_a_line_without_an_end_no_more_is_kept_than_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "_LONGEST", 1000)
    log = tmp_path / "a.log"
    log.write_text("")
    grows = GrowingFile(str(log), 0.0)
    read, write = os.pipe()
    pipe = GrowingPipe(read)
    for _ in range(20):
        append(log, "x" * 500)
        os.write(write, b"x" * 500)
        assert (grows.new(1.0), pipe.new(1.0)) == (b"", b"")
    append(log, "\nnext\n")
    os.write(write, b"\nnext\n")
    for found in (grows.new(2.0), pipe.new(2.0)):
        long, after = found.splitlines()
        assert (len(long), after) == (1000, b"next")
    os.close(read)
    os.close(write)


def test_a_file_that_cannot_be_read_yet_is_read_when_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while logrotate makes one, which is given its permissions only then."""
    log = tmp_path / "a.log"
    log.write_text(line(1))
    closed, opened = [True], os.open

    def denied(path: str, *how: int, **also: int) -> int:
        if closed and str(path) == str(log):
            raise PermissionError(13, "Permission denied")
        return opened(path, *how, **also)

    monkeypatch.setattr(follow.os, "open", denied)
    with pytest.raises(QueryError, match=r"a\.log cannot be read: Permission denied"):
        GrowingFile(str(log), 0.0)
    closed.clear()
    with Watch(find([log], "s"), Options(), 0.0) as watch:
        closed.append(True)
        log.rename(tmp_path / "a.log.1")
        log.write_text(line(2) + line(3))
        append(tmp_path / "a.log.1", line(4))
        seen = [watch.poll(1.0)]
        closed.clear()
        seen.append(watch.poll(2.0))
        watch.end(3.0)
    assert [int(each.numbers("minutes", "n").sum()) for each in seen] == [1, 2]


def test_a_pipe_that_nobody_writes_to_can_be_left(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with followed("pipe", cwd=tmp_path) as (process, screen):
        until(lambda: "0:00:0" in screen.said(), "no view was drawn")
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE_S)
    assert said.startswith("Nothing was added to pipe in ")
    with followed("pipe", cwd=tmp_path) as (process, screen):
        until(lambda: "0:00:0" in screen.said(), "no view was drawn")
        with (tmp_path / "pipe").open("w") as pipe:
            pipe.write("".join(line(i) for i in range(30)))
        said, _ = process.communicate(timeout=PATIENCE_S)
    assert "\n30 lines (sphinx)" in said


def test_a_pipe_never_makes_who_reads_it_wait() -> None:
    read, write = os.pipe()
    grows = GrowingPipe(read)
    assert grows.new(0.0) == b""
    os.write(write, b"one\ntw")
    assert grows.new(1.0) == b"one\n"
    os.write(write, b"o\nthree")
    grows.wait(1.0)
    assert grows.new(2.0) == b"two\n"
    assert not grows.ended
    os.close(write)
    assert grows.new(3.0) == b""
    assert grows.ended
    assert grows.rest() == b"three\n"
    os.close(read)


# ── the last minute ──────────────────────────────────────────────────────────────────────────


def test_the_last_minute_forgets_and_the_start_does_not(tmp_path: Path) -> None:
    text = "".join(line(i, 100, "slow") for i in range(40))
    text += "".join(line(i, 5).replace("any/0", "all/0") for i in range(60))
    _, pieces = in_pieces(tmp_path / "a.log", text.encode(), 40)
    slow, *fast = pieces
    live = Live(0.0)
    live.add(1.0, slow)
    for at, counts in enumerate(fast, 2):
        live.add(30.0 + at, counts)
    now = live.view(40.0, ["sphinx"])
    assert (now.recent.n, now.whole.n) == (100, 100)
    assert now.recent.errors is None, "Sphinx does not log what failed"
    assert now.recent_per_s == pytest.approx(100 / 40)
    assert [recent.name[:3] for recent, _ in now.classes] == ["any", "all"]
    assert now.classes[0][0].share_of_time == pytest.approx(4000 / 4300)
    later = live.view(1.0 + RECENT_S, ["access"])
    assert (later.recent.n, later.whole.n) == (60, 100)
    assert later.recent.quantiles_s["p95"] == pytest.approx(0.005)
    assert later.whole.quantiles_s["p95"] == pytest.approx(0.1)
    assert later.recent.errors == 0
    assert [recent.name[:3] for recent, _ in later.classes] == ["all"]
    quiet = live.view(500.0, ["sphinx"])
    assert (quiet.recent.n, quiet.recent.quantiles_s, quiet.whole.n) == (0, {}, 100)
    assert len(quiet.classes) == 2, "of those since the start"
