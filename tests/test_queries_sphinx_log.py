"""Sphinx's plain query log is read as the queries that somebody asked; other logs are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchbench.cli.queries import inspect
from searchbench.errors import QueryError
from searchbench.workload.queries.forms import to_text
from searchbench.workload.queries.registry import open_queries
from searchbench.workload.queries.sets import QuerySet, form_of
from searchbench.workload.verbatim.files import read_requests

# As Sphinx 2.2.11 wrote them.
DISTRIBUTED = """\
[Sun Nov 22 11:03:13.289 2026] 0.000 sec 0.000 sec [ext2/0/ext 31 (0,1000)] [part1] pataqu belgrama
[Sun Nov 22 11:03:13.289 2026] 0.001 sec 0.001 sec [ext2/0/ext 61 (0,10)] [all] pataqu belgrama
[Sun Nov 22 11:03:13.305 2026] 0.000 sec 0.000 sec [ext2/0/ext 2 (0,1000) @kind] [part1] renkanipa
[Sun Nov 22 11:03:13.306 2026] 0.001 sec 0.001 sec [ext2/0/ext 4 (0,20) @kind] [all] renkanipa
"""
HOW = {
    "[bool/0/rel 1 (20,10)] [dagent] ge kuv la cega": "ge AND kuv AND la AND cega",
    "[any/0/rel 2985 (0,20)] [all] [api [x] é] renkanipa turen": "renkanipa OR turen",
    "[phr/0/ext 3 (0,20)] [i] red shoe": '"red shoe"',
    '[ext2/0/ext 553 (0,20)] [part0] "renkanipa turen"': '"renkanipa turen"',
    '[ext2/0/ext 553 (0,20)] [part0] "renkanipa turen"/1': "renkanipa OR turen",
    "[ext2/0/ext 12 (0,20)] [i] renkanipa | turen | kami": "renkanipa OR turen OR kami",
    "[ext2/0/ext 0 (0,20)] [part0] o'neil wi-fi": "o AND neil AND wi AND fi",
    r"[ext2/0/ext 0 (0,20)] [part0] red \(shoe\)": "red AND shoe",
    "[ext2/0/ext 1312 (0,20)] [part0] [from [box] 1] mamiquun": "mamiquun",
    "[ext2/1/ext 1 (0,20)] [a,b] [ios=8 kb=158.2 ioms=0.1 cpums=1.1] 東京 café": "東京 AND café",
}
HEAD = "[Fri Nov 20 20:39:57.302 2026] 0.003 sec 0.003 sec"


def read(place: Path, text: str | bytes, name: str = "query.log", **how: object) -> QuerySet:
    (place / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return open_queries({"file": name, **how}, place)


def texts(found: QuerySet) -> list[str]:
    return [to_text(found.queries[i]) for i in found.log]


@pytest.mark.parametrize(("line", "meant"), HOW.items())
def test_the_words_are_taken_and_found_as_the_log_says(
    tmp_path: Path, line: str, meant: str
) -> None:
    found = read(tmp_path, f"{HEAD} {line}\n")
    assert (texts(found), found.bad_count) == ([meant], 0)


def test_a_query_of_a_distributed_index_counts_once(tmp_path: Path) -> None:
    found = read(tmp_path, DISTRIBUTED)
    assert texts(found) == ["pataqu AND belgrama", "renkanipa"]
    assert [(bad.line, "agent" in bad.reason) for bad in found.bad] == [(1, True), (3, True)]


def test_the_log_of_an_agent_alone_is_what_it_was_asked(tmp_path: Path) -> None:
    alone = "".join(DISTRIBUTED.splitlines(keepends=True)[::2])
    assert texts(read(tmp_path, alone)) == ["pataqu AND belgrama", "renkanipa"]


def test_the_same_words_later_or_of_another_page_are_another_query(tmp_path: Path) -> None:
    line = "[Sun Nov 22 11:03:{}.289 2026] 0.000 sec 0.000 sec [ext2/0/ext 9 ({})] [{}] red\n"
    asked = (("13", "0,1000", "a"), ("14", "0,20", "b"), ("14", "0,20", "a"), ("14", "20,20", "a"))
    assert read(tmp_path, "".join(line.format(*one) for one in asked)).logged == 4


def test_searches_that_were_done_together_count_once_for_each_text(tmp_path: Path) -> None:
    line = f"{HEAD} x2 [ext2/0/ext 9 (0,20){{}}] [part0] {{}}\n"
    faceted = line.format("", "red") + line.format(" @kind", "red")
    found = read(tmp_path, faceted + line.format("", "blue") + line.format("", "shoe"))
    assert texts(found) == ["red", "blue", "shoe"]
    assert "searched together" in found.bad[0].reason


def test_times_are_when_searches_began_in_order(tmp_path: Path) -> None:
    slow = "[Sun Nov 22 11:03:14.500 2026] 0.400 sec 0.400 sec [ext2/0/ext 9 (0,20)] [a] slow\n"
    fast = "[Sun Nov 22 11:03:14.200 2026] 0.010 sec 0.010 sec [ext2/0/ext 9 (0,20)] [a] fast\n"
    found = read(tmp_path, fast + slow)
    assert texts(found) == ["slow", "fast"]
    assert found.times_s is not None
    assert found.times_s[1] - found.times_s[0] == pytest.approx(0.09, abs=1e-6)


def test_what_is_left_out_is_counted_with_its_reason(tmp_path: Path) -> None:
    line = f"{HEAD} [ext2/0/ext 9 (0,20)] [a] "
    left_out = {
        "": "full scan",
        "@title red | @body blue": "operators",
        "red -blue": "operators",
        "red NEAR/3 blue": "operators",
        "re*": "operators",
        "red blue | shoe": "operators",
        "!?": "operators",
        "...": "no letter or digit",
    }
    lines = [line.rstrip() if not text else line + text for text in left_out]
    whole = "\n".join([*lines, line + "red", ""]).encode() + line.encode() + b"caf\xe9\n"
    found = read(tmp_path, whole + b"[Fri Nov 20 20:39:57.302 2026] cut sh\n")
    assert texts(found) == ["red"]
    reasons = [bad.reason for bad in found.bad]
    for reason, wanted in zip(
        reasons, [*left_out.values(), "not UTF-8", "no line of Sphinx's"], strict=True
    ):
        assert wanted in reason


def test_a_study_says_the_rest_of_the_query_and_how_many_lines_are_read(tmp_path: Path) -> None:
    found = read(tmp_path, DISTRIBUTED, lines=2, limit=3, search_fields=["title"])
    assert texts(found) == ["title:(pataqu AND belgrama) | limit 3"]


def test_inspect_shows_the_queries_and_what_was_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "query.log").write_text(DISTRIBUTED)
    assert inspect(tmp_path / "query.log") == 0
    said = capsys.readouterr().out
    assert "2 queries, 2 of them distinct, 1.5 terms on average" in said
    assert "2 lines are left out" in said
    assert "query.log:1: an agent was asked this" in said


def test_what_load_says_of_such_a_log_is_true(tmp_path: Path) -> None:
    (tmp_path / "query.log").write_text(DISTRIBUTED)
    with pytest.raises(QueryError, match="A study reads it") as told:
        read_requests(tmp_path / "query.log")
    assert "[queries] file = " in str(told.value)
    assert open_queries({"file": "query.log"}, tmp_path).logged == 2


@pytest.mark.parametrize(
    "line",
    [
        "[2026-11-22T11:03:13,289][WARN ][index.search.slowlog.query] [n] [pages][0] took[1ms]",
        "2026-11-20 20:06:33.301210|7fd8667fe940|>/d/select?table=Docs&query=red",
        '127.0.0.1 - - [22/Nov/2026:11:03:30 +0900] "GET /search?q=red HTTP/1.1" 200 122',
        'www.example.org:80 127.0.0.1 - - [22/Nov/2026:11:03:30 +0900] "GET / HTTP/1.1" 200 1',
        '127.0.0.1:36834 [22/Nov/2026:11:03:22.636] www search/one 0/0/0/1/1 200 125 "GET /"',
        "/* Fri Nov 20 20:40:01.065 2026 conn 6 real 0.002 wall 0.002 found 1 */ SELECT 1;",
        "Nov 22 11:03:22 host haproxy[7]: 127.0.0.1:1 GET /search?q=red",
    ],
)
def test_the_lines_of_another_log_are_no_queries(tmp_path: Path, line: str) -> None:
    with pytest.raises(QueryError, match=r"a\.txt is a log, not a list of queries.*--requests"):
        read(tmp_path, f"{line}\n{line}\ncontinued\n", "a.txt")
    # Unless they are said to be.
    assert read(tmp_path, f"{line}\n", "a.txt", format="lines").logged == 1


def test_a_year_or_a_bracket_in_a_query_makes_no_log(tmp_path: Path) -> None:
    asked = "2026 calendar\n[sic] erat\n2026-11-20\nnov 20\n10:30 train\n"
    assert read(tmp_path, asked, "q.txt").logged == 5


def test_a_table_with_counts_is_no_list_of_queries(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("query,count\nleather lamp,52\nseller portable,8\n")
    with pytest.raises(QueryError, match=r"end in a number \('leather lamp,52'\).*Take the column"):
        form_of(path)
    path.write_text("iphone 15\nwindows 95\n2,5 mm plug\n")
    assert form_of(path) == "lines"
