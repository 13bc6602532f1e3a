"""Files of one log that was rotated say what the log would say as one file."""

from __future__ import annotations

import gzip
import resource
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from searchbench.analysis.logs.judge import judge_log
from searchbench.logs import record as records
from searchbench.logs.counts import Counts, Options, count
from searchbench.logs.entries import read_entries
from searchbench.logs.rotated import in_order
from searchbench.logs.sources import find
from test_logs_increments import SPHINXQL, cuts_of
from test_logs_pieces import in_pieces
from test_logs_unknown import said

LOGS = Path(__file__).parent / "logs"
OPTIONS = Options(zone="Europe/Paris")
FORMATS = {
    "mysql-slow": (LOGS / "mariadb-slow.log").read_bytes(),
    "mysql-general": (LOGS / "mariadb-general.log").read_bytes(),
    "postgresql": (LOGS / "postgresql-stderr-duration.log").read_bytes(),
    "postgresql-json": (LOGS / "postgresql-jsonlog.json").read_bytes(),
    "groonga": (LOGS / "groonga-query.log").read_bytes(),
    "sphinx": (LOGS / "sphinx-query-plain.log").read_bytes(),
    "sphinxql": SPHINXQL.encode(),
}


def of_format(name: str) -> Options:
    return Options(zone="Europe/Paris", format=name)


def read(paths: list[Path], options: Options) -> Counts:
    return count(in_order(find(paths, "s"), options), options)


def same(one: Counts, other: Counts, where: object) -> None:
    """All tables, and what the sources have together."""
    for name, table in other.tables.items():
        assert one.tables[name].equals(table), (where, name)
    for what in ("lines", "entries", "unread", "back"):
        sums = [sum(s[what] for s in counts.sources) for counts in (one, other)]
        assert sums[0] == sums[1], (where, what, sums)
    notes = [Counter[str](), Counter[str]()]
    for found, counts in zip(notes, (one, other), strict=True):
        for source in counts.sources:
            found.update(source["notes"])
    assert notes[0] == notes[1], where


@pytest.mark.parametrize("name", FORMATS)
def test_a_log_that_was_rotated_anywhere_is_counted_as_one(tmp_path: Path, name: str) -> None:
    text, options = FORMATS[name], of_format(name)
    old, new = tmp_path / "q.log.1", tmp_path / "q.log"
    new.write_bytes(text)
    whole = count(find([new], "s"), options)
    for at in cuts_of(text, name):
        old.write_bytes(text[:at])
        new.write_bytes(text[at:])
        same(read([new, old], options), whole, at)
        record = tmp_path / f"record-{at}"
        records.add(record, find([old], "s"), options)
        grown = records.add(record, find([old, new], "s"), options)
        same(grown.counts, whole, ("record", at))
        same(records.open_log(record).counts, whole, ("opened", at))


@pytest.mark.parametrize("name", FORMATS)
def test_three_files_of_which_one_is_packed_are_one_log(tmp_path: Path, name: str) -> None:
    text, options = FORMATS[name], of_format(name)
    whole_path = tmp_path / "whole.log"
    whole_path.write_bytes(text)
    whole = count(find([whole_path], "s"), options)
    cuts = cuts_of(text, name)
    low, high = cuts[1], cuts[-2]
    (tmp_path / "q.log.2.gz").write_bytes(gzip.compress(text[:low]))
    (tmp_path / "q.log.1").write_bytes(text[low:high])
    (tmp_path / "q.log").write_bytes(text[high:])
    files = [tmp_path / n for n in ("q.log", "q.log.2.gz", "q.log.1")]
    found = read(files, options)
    same(found, whole, name)
    assert [Path(s["path"]).name for s in found.sources] == ["q.log.2.gz", "q.log.1", "q.log"]
    ordered = in_order(find(files, "s"), options)
    same(in_pieces(ordered, options), whole, "in pieces")
    entries = read_entries(ordered, options)
    assert len(entries) == sum(s["entries"] for s in whole.sources)


def test_a_log_of_more_files_than_may_be_open_is_read(tmp_path: Path) -> None:
    text, options = FORMATS["mysql-general"], of_format("mysql-general")
    whole_path = tmp_path / "whole.log"
    lines = text.splitlines(keepends=True)
    whole_path.write_bytes(text)
    whole = count(find([whole_path], "s"), options)
    most, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    for n, line in enumerate(lines):
        (tmp_path / f"q.log.{n:05d}").write_bytes(line)
    files = sorted(tmp_path.glob("q.log.*"))
    assert len(files) > 150
    there = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (there + 100, limit))
    try:
        same(read(files, options), whole, len(files))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, limit))


def links(folder: Path, *names: str) -> list[tuple[str, int]]:
    found = in_order(find([folder / n for n in names], "s"), Options())
    return [(Path(s.path).name, s.follows) for s in found]


def test_files_follow_each_other_only_where_none_is_missing(tmp_path: Path) -> None:
    lines = FORMATS["groonga"].splitlines(keepends=True)
    third = len(lines) // 3
    parts = [b"".join(lines[i : i + third]) for i in range(0, 3 * third, third)]

    def write(*names: str) -> None:
        for name, part in zip(names, parts, strict=False):
            (tmp_path / name).write_bytes(part)

    write("a.log.3", "a.log.1", "a.log")
    assert links(tmp_path, "a.log", "a.log.1", "a.log.3") == [
        ("a.log.3", 0), ("a.log.1", 0), ("a.log", 1)
    ]  # fmt: skip
    write("b.log.00001", "b.log.00002", "b.log.00003")
    names = ["b.log.00001", "b.log.00002", "b.log.00003"]
    assert links(tmp_path, *reversed(names)) == [(names[0], 0), (names[1], 1), (names[2], 1)]
    write("c.log-20261120", "c.log-20261121", "c.log")
    assert links(tmp_path, "c.log", "c.log-20261121", "c.log-20261120") == [
        ("c.log-20261120", 0), ("c.log-20261121", 1), ("c.log", 1)
    ]  # fmt: skip
    write("d-1.log", "d-2.log")
    assert links(tmp_path, "d-2.log", "d-1.log") == [("d-2.log", 0), ("d-1.log", 0)]


def test_what_was_joined_is_said(tmp_path: Path) -> None:
    text, options = FORMATS["mysql-slow"], of_format("mysql-slow")
    at = cuts_of(text, "mysql-slow")[2]
    while text[at - 1 : at] == b"\n" or text[at : at + 1] == b"#":
        at += 1
    (tmp_path / "q.log.1").write_bytes(text[:at])
    (tmp_path / "q.log").write_bytes(text[at:])
    found: Any = judge_log(read([tmp_path / "q.log", tmp_path / "q.log.1"], options))
    assert said(found, "Rotated files").startswith("q.log was read as the continuation of")


SAMPLES = sorted(
    p.name for p in LOGS.iterdir() if p.name not in ("truth.json", "apache-custom.log")
)
SMALL = 300


@pytest.mark.parametrize("told", ["by --format", "by the files"])
@pytest.mark.parametrize("name", SAMPLES)
def test_a_log_in_files_smaller_than_its_entries_is_counted_as_one(
    tmp_path: Path, name: str, told: str
) -> None:
    """Cut anywhere, into files of which many have no line break, and some no whole entry."""
    text = (LOGS / name).read_bytes()[: 20 * SMALL]
    whole_path = tmp_path / "whole.log"
    whole_path.write_bytes(text)
    form = str(count(find([whole_path], "s"), OPTIONS).sources[0]["format"])
    options = of_format(form) if told == "by --format" else OPTIONS
    whole = count(find([whole_path], "s"), options)
    parts = [text[at : at + SMALL] for at in range(0, len(text), SMALL)]
    paths = [tmp_path / f"q.log.{n}" for n in reversed(range(len(parts)))]
    for path, part in zip(paths, parts, strict=True):
        path.write_bytes(part)
    found = read(paths, options)
    same(found, whole, name)
    assert [s["format"] for s in found.sources] == [form] * len(parts)
    assert sum(s["bytes"] for s in found.sources) == len(text)


def test_a_file_that_has_only_the_rest_of_an_entry_goes_on_with_the_one_that_was_read_before(
    tmp_path: Path,
) -> None:
    text, options = FORMATS["postgresql-json"], OPTIONS
    at = text.index(b"\n", len(text) // 2) - 50
    old, new, record = tmp_path / "q.log.1", tmp_path / "q.log", tmp_path / "r"
    old.write_bytes(text[:at])
    records.add(record, find([old], "s"), options)
    new.write_bytes(text[at : at + 51])
    grown = records.add(record, find([old, new], "s"), options)
    assert not [s["refused"] for s in grown.counts.sources if s["refused"]]
    whole = tmp_path / "whole.log"
    whole.write_bytes(text[: at + 51])
    same(grown.counts, count(find([whole], "s"), options), "the rest of a line")


def test_a_cut_line_is_told_from_one_that_a_server_left_unfinished(tmp_path: Path) -> None:
    """A server that was killed in the middle of a line begins the next file with a whole one."""
    lines = (LOGS / "nginx-combined.log").read_bytes().splitlines(keepends=True)[:20]
    old, new, whole = (tmp_path / name for name in ("q.log.1", "q.log", "whole.log"))
    old.write_bytes(b"".join(lines[:10]) + lines[10][:30])
    new.write_bytes(b"".join(lines[11:]))
    whole.write_bytes(b"".join([*lines[:10], lines[10][:30] + b"\n", *lines[11:]]))
    same(read([old, new], OPTIONS), count(find([whole], "s"), OPTIONS), "left unfinished")
    # The rest of a line looks like one: only the first number of the address is missing.
    at = lines[10].index(b".") + 1
    old.write_bytes(b"".join(lines[:10]) + lines[10][:at])
    new.write_bytes(lines[10][at:] + b"".join(lines[11:]))
    whole.write_bytes(b"".join(lines))
    same(read([old, new], OPTIONS), count(find([whole], "s"), OPTIONS), "cut in the address")


def test_files_whose_searches_began_in_another_order_stay_in_the_order_of_their_numbers(
    tmp_path: Path,
) -> None:
    """Twenty files within seconds, in which some searches took longer than a file lasts."""
    text = (LOGS / "postgresql-stderr-pgbadger.log").read_bytes()[:20_000]
    for n in range(20):
        (tmp_path / f"q.log.{19 - n}").write_bytes(text[n * 1000 : n * 1000 + 1000])
    found = in_order(find(sorted(tmp_path.glob("q.log.*")), "s"), of_format("postgresql"))
    assert [int(s.path.rpartition(".")[2]) for s in found] == list(range(19, -1, -1))


def test_a_server_that_begins_another_format_is_believed_from_its_first_line_on(
    tmp_path: Path,
) -> None:
    old, new = tmp_path / "q.log.1", tmp_path / "q.log"
    old.write_bytes((LOGS / "nginx-combined.log").read_bytes())
    new.write_bytes((LOGS / "nginx-json.log").read_bytes().splitlines(keepends=True)[0])
    found = read([old, new], OPTIONS)
    assert [s["format"] for s in found.sources] == ["access", "json"]
    assert found.sources[1]["entries"] == 1
