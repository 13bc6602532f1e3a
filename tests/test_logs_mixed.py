"""A log with lines of another format, and with lines that are very long: counted, and said."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from searchbench import _core
from searchbench.analysis.logs.as_json import as_json
from searchbench.analysis.logs.judge import judge_log
from searchbench.analysis.logs.model import LogJudgement, Remark
from searchbench.logs import record as records
from searchbench.logs.counts import Options, count
from searchbench.logs.pieces import BLOCK_BYTES, count_pieces, cut, joined, looked_at
from searchbench.logs.sources import find

LOGS = Path(__file__).parent / "logs"


def lines(name: str, n: int) -> bytes:
    """So many lines of a sample, from its beginning and again."""
    all_ = (LOGS / name).read_bytes().splitlines(keepends=True)
    return b"".join((all_ * (n // len(all_) + 1))[:n])


def judged(*paths: Path, **options: object) -> LogJudgement:
    return judge_log(count(find(paths), Options(**options)))  # type: ignore[arg-type]


def remarks(of: LogJudgement, title: str) -> list[Remark]:
    return [r for r in of.remarks if r.title == title]


@pytest.mark.parametrize(
    ("most", "form", "other", "other_form"),
    [
        ("sphinx-query-plain.log", "sphinx", "nginx-timed.log", "access"),
        ("nginx-timed.log", "access", "sphinx-query-plain.log", "sphinx"),
        ("haproxy-http.log", "access", "nginx-json.log", "json"),
        # Formats whose statements go on over several lines.
        ("sphinx-query-sphinxql.log", "sphinxql", "sphinx-query-plain.log", "sphinx"),
        ("mariadb-slow.log", "mysql-slow", "nginx-timed.log", "access"),
        ("postgresql-stderr-default.log", "postgresql", "nginx-timed.log", "access"),
        ("groonga-query.log", "groonga", "nginx-timed.log", "access"),
        ("opensearch-slow.json", "slowlog-json", "nginx-json.log", "json"),
    ],
)
def test_lines_of_another_format_are_counted_and_named(
    tmp_path: Path, most: str, form: str, other: str, other_form: str
) -> None:
    whole = (LOGS / most).read_bytes()
    path = tmp_path / "mixed.log"
    path.write_bytes(whole * 8 + lines(other, 55))
    alone, mixed = tmp_path / "alone.log", judged(path)
    alone.write_bytes(whole * 8)
    before = judged(alone)
    (source,) = mixed.sources
    assert source["format"] == form
    first = whole.count(b"\n") * 8 + 1
    # (The sample of nginx has requests that are none; a line of them may look like nothing.)
    assert [(f, first_line) for f, _, first_line in source["other_formats"]] == [
        (other_form, first)
    ]
    assert 45 <= source["other_formats"][0][1] <= 55
    assert int(source["unread"]) - int(before.sources[0]["unread"]) == 55  # type: ignore[call-overload]
    assert before.sources[0]["other_formats"] == []
    assert mixed.all is not None
    assert before.all is not None
    assert mixed.all.n == before.all.n
    (said,) = remarks(mixed, "Two formats")
    assert f"mixed.log was read as {form}" in said.text
    assert f"look like {other_form} (line {first:,} is the first)" in said.text
    assert f"--format {other_form}" in said.remedy
    assert not remarks(before, "Two formats")


def test_few_lines_of_another_format_are_only_lines_that_could_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "mixed.log"
    path.write_bytes(lines("sphinx-query-plain.log", 400) + lines("nginx-timed.log", 19))
    found = judged(path)
    assert found.sources[0]["other_formats"] == [("access", 19, 401)]
    assert not remarks(found, "Two formats")
    path.write_bytes(lines("sphinx-query-plain.log", 9000) + b"nothing\n" * 3000
                     + lines("nginx-timed.log", 25))  # fmt: skip
    assert not remarks(judged(path), "Two formats"), "less than 1 % of those that were not read"


def test_what_is_read_as_the_other_format_is_what_the_remark_says(tmp_path: Path) -> None:
    path = tmp_path / "mixed.log"
    path.write_bytes(lines("sphinx-query-plain.log", 400) + lines("nginx-timed.log", 63))
    ((_, n, first),) = judged(path).sources[0]["other_formats"]
    assert judged(path, format="access").sources[0]["entries"] == n
    assert first == 401


def test_parts_blocks_and_days_have_the_lines_of_another_format_of_one_reading(
    tmp_path: Path,
) -> None:
    """Blocks of a file, pieces on other machines, and increments of a record."""
    for most in ("sphinx-query-plain.log", "sphinx-query-sphinxql.log", "mariadb-slow.log"):
        once = (LOGS / most).read_bytes()
        half = once * (BLOCK_BYTES // len(once) + 1)
        other = lines("nginx-timed.log", 20_000)
        path = tmp_path / most
        path.write_bytes(half + other + half + other)
        whole = judged(path, threads=1).sources[0]
        n = 2 * judged(path, format="access").sources[0]["entries"] // 2
        assert whole["other_formats"] == [("access", n, half.count(b"\n") + 1)], most
        sources = find([path])
        pieces, refused = looked_at(sources, Options())
        log = _core.Log(1_000_000)
        parts = joined(count_pieces(log, cut(pieces, BLOCK_BYTES), Options()), refused)
        assert parts[0]["other_formats"] == whole["other_formats"], most
    path = tmp_path / "day.log"
    path.write_bytes(lines("sphinx-query-plain.log", 300) + lines("nginx-timed.log", 30))
    records.add(tmp_path / "record", find([path]), Options())
    with path.open("ab") as more:
        more.write(lines("nginx-timed.log", 30) + lines("nginx-json.log", 30))
    record = records.add(tmp_path / "record", find([path]), Options())
    assert [tuple(o) for o in record.counts.sources[0]["other_formats"]] == [
        ("access", 60, 301), ("json", 30, 361),
    ]  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_of_ten_megabytes_is_read_counted_and_said(tmp_path: Path, packed: bool) -> None:
    sphinx = lines("sphinx-query-plain.log", 50)
    long = sphinx.splitlines()[1] + b" word" * 2_000_000 + b"\n"
    path = tmp_path / "query.log"
    text = sphinx + long + sphinx
    path.write_bytes(gzip.compress(text, 1) if packed else text)
    found = judged(path)
    (source,) = found.sources
    assert (source["lines"], source["longest_line"]) == (101, len(long) - 1)
    (said,) = remarks(found, "Long lines")
    assert "query.log: 1 ×" in said.text
    assert "10.0 MB" in said.text
    assert not remarks(found, "Lines that were cut")
    assert not any(len(r.text) > 1000 for r in found.remarks)
    assert not any(len(str(v)) > 5000 for v in as_json(found)["sources"][0].values())


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_beyond_the_limit_is_cut_and_said(tmp_path: Path, packed: bool) -> None:
    sphinx = lines("sphinx-query-plain.log", 50)
    text = sphinx + sphinx.splitlines()[1] + b" word" * 17_000_000 + b"\n" + sphinx
    path = tmp_path / "query.log"
    path.write_bytes(gzip.compress(text, 1) if packed else text)
    found = judged(path)
    (source,) = found.sources
    assert (source["lines"], source["longest_line"]) == (101, 64 << 20)
    (said,) = remarks(found, "Lines that were cut")
    assert "query.log: 1 × lines of 64 MiB or more" in said.text
