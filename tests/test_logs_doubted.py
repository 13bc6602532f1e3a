"""Lines that are easily taken for something else: what a status, a path, a plan means."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from searchbench.analysis.logs.judge import judge_log
from searchbench.analysis.logs.model import LogJudgement
from searchbench.cli import app
from searchbench.errors import QueryError
from searchbench.logs.counts import Options, count
from searchbench.logs.sources import find
from test_logs_unknown import said

AT = 1_767_225_600
LOGS = Path(__file__).parent / "logs"


def judged(path: Path, **options: object) -> LogJudgement:
    return judge_log(count(find([path]), Options(**options)))  # type: ignore[arg-type]


def objects(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("status", "failed"),
    [("success", 0), ("completed", 0), ("200 OK", 0), (True, 0), (204, 0), ("OK", 0), ("-", 0),
     ("error", 1), ("Timed out", 1), ("503 Service Unavailable", 1), (False, 1), (429, 1)],
)  # fmt: skip
def test_a_status_in_words_says_whether_a_search_failed(
    tmp_path: Path, status: object, failed: int
) -> None:
    rows = [{"time": AT + i, "took_ms": 5, "q": f"w{i}", "status": status} for i in range(40)]
    of = judged(objects(tmp_path / "a.jsonl", rows))
    assert of.all is not None
    assert (of.all.errors or 0) == failed
    assert said(of, "Not sure") == ""


def test_a_status_that_nobody_knows_is_said_and_no_failure(tmp_path: Path) -> None:
    rows = [{"time": AT + i, "took_ms": 5, "q": f"w{i}", "status": "partial"} for i in range(40)]
    of = judged(objects(tmp_path / "a.jsonl", rows))
    assert of.all is not None
    assert not of.all.errors
    assert "40 × a status that is known neither as good nor as bad" in said(of, "Not sure")


@pytest.mark.parametrize(
    ("path", "is_one"),
    [("/search", True), ("/api/productsearch", True), ("/_msearch", True), ("/searches/12", True),
     ("/solr/films/select", True), ("/find", True), ("/find-all", True), ("/suggestions", True),
     ("/querySet", True), ("/Search", True), ("/api/doSearch", True), ("/Research", False),
     ("/research/papers", False), ("/js/jquery", False),
     ("/js/search.js", False), ("/css/select2.css", False), ("/findings", False),
     ("/selection", False), ("/multiselect", False), ("/img/search.svg", False)],
)  # fmt: skip
def test_what_a_page_is_made_of_is_no_search(tmp_path: Path, path: str, is_one: bool) -> None:
    log = tmp_path / "access.log"
    log.write_text(
        "".join(
            f'10.0.0.1 - - [22/Nov/2026:11:03:{i:02} +0000] "GET {path}?v={i} HTTP/1.1" 200 10 "-" '
            '"curl" 0.005\n'
            for i in range(20)
        )
    )
    of = judged(log)
    assert (of.all.n if of.all else 0) == (20 if is_one else 0)
    assert of.others == (0 if is_one else 20)


@pytest.mark.parametrize("form", ["plain", "json", "elastic"])
def test_slow_logs_of_a_second_and_more_go_by_their_milliseconds(tmp_path: Path, form: str) -> None:
    lines = []
    for i in range(50):
        took, millis = "1.1m", 70_037 + i
        at = f"2026-11-22T11:{i:02}:13,123"
        if form == "plain":
            lines.append(
                f"[{at}][WARN ][i.s.s.query              ] [n1] [pages][0] took[{took}], "
                f"took_millis[{millis}], total_hits[4 hits], stats[], "
                f'search_type[QUERY_THEN_FETCH], total_shards[1], source[{{"size":{i}}}], id[], \n'
            )
        elif form == "json":
            lines.append(
                json.dumps({
                    "type": "index_search_slowlog", "timestamp": at, "level": "WARN",
                    "component": "i.s.s.query", "message": "[pages][0]", "took": took,
                    "took_millis": str(millis), "total_hits": "4 hits", "total_shards": "1",
                    "source": f'{{"size":{i}}}', "id": "null",
                }) + "\n"
            )  # fmt: skip
        else:
            prefix = "elasticsearch.slowlog."
            lines.append(
                json.dumps({
                    "@timestamp": f"2026-11-22T11:{i:02}:13.123Z", "log.level": "WARN",
                    "log.logger": "index.search.slowlog.query", f"{prefix}message": "[pages][0]",
                    f"{prefix}took": took, f"{prefix}took_millis": millis,
                    f"{prefix}total_hits": "4 hits", f"{prefix}total_shards": 1,
                    f"{prefix}source": f'{{\\"size\\":{i}}}',
                }) + "\n"
            )  # fmt: skip
    path = tmp_path / "slow.log"
    path.write_text("".join(lines))
    of = judged(path, format="slowlog" if form == "plain" else "slowlog-json")
    assert of.all is not None
    assert of.all.n == 50
    assert of.all.quantiles_s["p50"] == pytest.approx(70.06, rel=1e-3)
    assert of.resolution_s == pytest.approx(1e-3)


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000, 1_000_000_000])
def test_instants_since_1970_are_of_the_unit_that_their_digits_say(
    tmp_path: Path, unit: int
) -> None:
    rows = [{"timestamp": (AT + i) * unit, "took_ms": 5, "q": f"w{i}"} for i in range(30)]
    of = judged(objects(tmp_path / "a.jsonl", rows))
    assert (of.first_s, of.sources[0]["unread"]) == (AT, 0)


@pytest.mark.parametrize("order", [("time", "ts"), ("ts", "time")])
@pytest.mark.parametrize("time", [12, 0.25, ""])
def test_a_field_named_time_that_is_no_instant_leaves_the_time_to_another(
    tmp_path: Path, order: tuple[str, str], time: object
) -> None:
    rows: list[dict[str, object]] = []
    for i in range(30):
        values = {"time": time, "ts": f"2026-01-01T00:{i:02}:00Z"}
        rows.append({**{name: values[name] for name in order}, "took_ms": 5, "q": f"w{i}"})
    of = judged(objects(tmp_path / "a.jsonl", rows))
    assert of.first_s == AT


def test_times_with_an_exponent_are_read(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"time": AT + i, "request_time": 4.86e-05 if i % 3 else 0.012345678, "q": f"w{i}"}
        for i in range(100)
    ]
    path = objects(tmp_path / "a.jsonl", rows)
    assert "4.86e-05" in path.read_text()
    of = judged(path)
    assert (of.sources[0]["unread"], of.spread.count) == (0, 100)
    assert of.all is not None
    assert of.all.quantiles_s["p50"] == pytest.approx(48.6e-6, rel=2e-3)


def test_a_mark_of_utf_8_hides_no_first_line(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"time": AT + i, "took_ms": 5, "q": "w"} for i in range(30)]
    path = objects(tmp_path / "a.jsonl", rows)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    of = judged(path)
    assert of.all is not None
    assert (of.all.n, of.sources[0]["unread"]) == (30, 0)
    table = tmp_path / "b.csv"
    table.write_bytes(
        b"\xef\xbb\xbftime,took_ms,q\n" + b"".join(b"%d,5,w\n" % (AT + i) for i in range(30))
    )
    of = judged(table, format="csv")
    assert of.all is not None
    assert (of.all.n, of.first_s) == (30, AT)


def test_a_day_that_no_calendar_has_is_no_time(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"time": f"2026-02-{day}T00:00:00Z", "took_ms": 5, "q": "w"}
        for day in ("27", "28", "29", "31")
        for _ in range(10)
    ]
    of = judged(objects(tmp_path / "a.jsonl", rows))
    assert of.sources[0]["unread"] == 20


def test_a_plan_of_auto_explain_is_no_second_search(tmp_path: Path) -> None:
    lines = []
    for i in range(40):
        head = f"2026-11-22 11:03:{i:02}.123 UTC [7] app@shop LOG:  duration: {900 + i}.1 ms  "
        sql = f"SELECT id FROM t WHERE v LIKE 'w{i}'"
        if i % 4 == 0:
            lines.append(f"{head}plan:\n\tQuery Text: {sql}\n\tSeq Scan on t  (cost=0.00..1.0)\n")
        lines.append(f"{head}statement: {sql}\n")
    path = tmp_path / "pg.log"
    path.write_text("".join(lines))
    of = judged(path)
    assert of.all is not None
    assert (of.all.n, of.others) == (40, 10)
    assert "10 × a plan of auto_explain" in said(of, "Not sure")


def test_slow_requests_of_solr_beside_all_requests_are_said_to_count_twice(tmp_path: Path) -> None:
    def line(i: int, level: str, logger: str, slow: str) -> str:
        return (
            f"2026-11-22 11:03:{i:02}.123 {level} (qtp1-{i}) [ x:films] o.a.s.c.S.{logger} {slow}"
            f"[films]  webapp=/solr path=/select params={{q=w{i}}} hits=3 status=0 QTime={9 * i}\n"
        )

    whole, slow = tmp_path / "solr.log", tmp_path / "solr_slow_requests.log"
    whole.write_text("".join(line(i, "INFO ", "Request", "") for i in range(60)))
    slow.write_text("".join(line(i, "WARN ", "SlowRequest", "slow: ") for i in range(50, 60)))
    both = judge_log(count(find([tmp_path]), Options()))
    assert "10 requests are in solr_slow_requests.log because they were slow" in said(
        both, "Counted twice"
    )
    for one in (whole, slow):
        assert said(judged(one), "Counted twice") == ""


def test_what_an_access_log_names_is_read(tmp_path: Path) -> None:
    """``rt=`` is the time of the request, and no other is; names of parameters in capitals."""
    log = tmp_path / "access.log"
    line = '10.0.0.1 - - [22/Nov/2026:11:03:{i:02} +0000] "GET /a?Q=red+{i} HTTP/1.1" 200 9 "-" "" '
    for named in ('rt=0.500 uct="0.001" urt="0.010"', 'urt=0.010 request_time="0.500"'):
        log.write_text("".join(line.format(i=i) + named + "\n" for i in range(30)))
        of = judged(log)
        assert of.all is not None
        assert (of.all.n, of.all.max_s) == (30, 0.5)
    log.write_text("".join(line.format(i=i) + "urt=0.010\n" for i in range(30)))
    of = judged(log)
    assert of.all is not None
    assert of.all.max_s is None


def test_times_half_between_ticks_are_no_clock_s(tmp_path: Path) -> None:
    rows = [{"time": AT + i, "took_ms": i % 50 + 0.5, "q": f"w{i}"} for i in range(5000)]
    of = judged(objects(tmp_path / "a.jsonl", rows))
    assert said(of, "Clock") == ""


def test_more_names_than_are_told_apart_are_said(tmp_path: Path) -> None:
    rows = [{"time": AT + i, "took_ms": 5, "q": "w", "index": f"i{i}"} for i in range(20_100)]
    of = judged(objects(tmp_path / "a.jsonl", rows))
    assert of.crowded == ("index",)
    assert "more than 20,000 indexes" in said(of, "More names than are told apart")


@pytest.mark.parametrize("between", ["", ",", " ", "\r", ", "])
def test_objects_of_one_line_are_all_read(tmp_path: Path, between: str) -> None:
    """As Firehose joins them."""
    rows = [{"time": AT + i, "took_ms": i, "q": f"w{i}"} for i in range(100)]
    log = tmp_path / "a.jsonl"
    objects(log, rows)
    first, *lines = log.read_text().splitlines()
    log.write_text(first + "\n" + between.join(lines) + "\n" + first + " and so on\n" + first)
    of = judged(log)
    assert of.all is not None
    assert of.all.n == 102
    assert of.all.max_s == 0.099
    assert "98 × objects of JSON that follow another in the same line" in said(of, "Not sure")
    assert "1 × text behind an object of JSON in its line" in said(of, "Not sure")


def test_numbers_that_may_not_be_the_duration_are_said(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    line = '10.0.0.1 - - [22/Nov/2026:11:03:{i:02} +0000] "GET /search?q={i} HTTP/1.1" 200 '
    log.write_text("".join(line.format(i=i) + '0.250 512 "-" "curl"\n' for i in range(20)))
    of = judged(log)
    assert of.all is not None
    assert of.all.max_s is None, "512 stands before the agent: bytes"
    log.write_text("".join(line.format(i=i) + '10 "-" "curl" 0.049, 0.001\n' for i in range(20)))
    assert "20 × more than one number that may be the duration" in said(judged(log), "Not sure")
    log.write_text("".join(
        f"10.0.1.2:33317 [06/Feb/2026:12:14:{i:02}.655] www a/b 10/0/30/69/+109 200 +2750 - - "
        f'---- 1/1/1/1/0 0/0 "GET /search?q={i} HTTP/1.1"\n' for i in range(20)
    ))  # fmt: skip
    of = judged(log)
    assert of.all is not None
    assert of.all.n == 20
    assert "20 × a time that ends with the headers of the answer" in said(of, "Not sure")


INDEXED = {
    "plain": "[2026-11-27T02:47:{i:02},838][WARN ][i.i.s.index              ] [node-1] "
    "[people/kPvIq2H6QJqGzW2R0uQbNQ] took[500ms], took_millis[500], id[d], routing[], "
    'source[{{"name":"red"}}]',
    "long": "[2026-11-27T02:47:{i:02},838][WARN ][index.indexing.slowlog.index] [node-1] "
    '[people/kPvI] took[500ms], took_millis[500], id[d], routing[], source[{{"a":"b"}}]',
    "json": '{{"type": "index_indexing_slowlog", "timestamp": "2026-11-27T02:47:{i:02},838+00:00", '
    '"component": "i.i.s.index", "message": "[people/kPvI]", "took": "500ms", '
    '"took_millis": "500", "id": "d", "source": "{{\\"name\\":\\"red\\"}}"}}',
    "ecs": '{{"@timestamp":"2026-11-27T02:47:{i:02}.838Z", "elasticsearch.slowlog.id":"d",'
    '"elasticsearch.slowlog.message":"[people/kPvI]","elasticsearch.slowlog.source":"{{}}",'
    '"elasticsearch.slowlog.took":"500ms","elasticsearch.slowlog.took_millis":500,'
    '"event.dataset":"elasticsearch.index_indexing_slowlog",'
    '"log.logger":"index.indexing.slowlog.index"}}',
}


@pytest.mark.parametrize("form", INDEXED)
def test_documents_that_were_indexed_are_no_searches(tmp_path: Path, form: str) -> None:
    """Their slow log has the form of that of searches, and is found beside it."""
    log = tmp_path / "slow.log"
    log.write_text("".join(INDEXED[form].format(i=i) + "\n" for i in range(30)))
    of = judged(log)
    assert of.all is None
    assert (of.others, of.parts) == (30, 0)


SOLR = "webapp=/solr path=/select params={{q=red+lamp&rows={i}}} hits=3 status=0 QTime=5"


@pytest.mark.parametrize(
    "line",
    ["2026-11-22 10:00:{i:02}.123 INFO  (qtp-22) [c:films s:s1 r:n1 x:films_1] o.a.s.c.S.Request "
     f"[films_1]  {SOLR}",
     f"INFO  - 2026-11-22 10:00:{{i:02}}.123; org.apache.solr.core.SolrCore; [films] {SOLR}",
     '{{"@timestamp":"2026-11-22T10:00:{i:02}.123Z","log.level":"INFO","message":"' + SOLR +
     '","log.logger":"org.apache.solr.core.SolrCore.Request","collection":"c:films"}}'],
)  # fmt: skip
def test_requests_of_solr_are_read_in_each_layout(tmp_path: Path, line: str) -> None:
    log = tmp_path / "solr.log"
    log.write_text("".join(line.format(i=i) + "\n" for i in range(30)))
    of = judged(log)
    assert of.all is not None
    assert (of.all.n, of.all.max_s) == (30, 0.005)
    assert [row.name for row in of.by["index"]] == ["films"]
    assert of.first_s == 1_795_341_600


@pytest.mark.parametrize(("least_ms", "is_one"), [(100, True), (250, True), (0.743, False)])
def test_a_threshold_is_a_round_number(tmp_path: Path, least_ms: float, is_one: bool) -> None:
    """Times that begin at once may also be those of searches that each need that much."""
    rng = np.random.default_rng(4)
    ms = least_ms * (1 + rng.exponential(2.0, 1000))
    log = tmp_path / "a.log"
    log.write_text("".join(
        f"2026-01-02 03:{i // 60:02}:{i % 60:02}.000 UTC [7] LOG:  duration: {m:.3f} ms  "
        f"statement: SELECT {i}\n" for i, m in enumerate(ms)
    ))  # fmt: skip
    assert bool(said(judged(log), "Slow searches only")) == is_one
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:60]))
    assert said(judged(log), "Slow searches only") == "", "of so few the least says nothing"


def test_one_log_in_two_forms_is_counted_twice(tmp_path: Path) -> None:
    for name in ("opensearch-slow.log", "opensearch-slow.json"):
        (tmp_path / name).write_bytes((LOGS / name).read_bytes())
    of = judge_log(count(find([tmp_path]), Options()))
    assert "in different forms (slowlog-json and slowlog)" in said(of, "Counted twice")


def test_copies_are_known_whatever_they_are_called(tmp_path: Path) -> None:
    text = (LOGS / "sphinx-query-plain.log").read_bytes() * 20
    for name in ("one.log", "two.log"):
        (tmp_path / name).write_bytes(text)
    of = judge_log(count(find([tmp_path]), Options()))
    assert "is probably a copy of it" in said(of, "Counted twice")


def test_percona_s_slow_log_has_the_schema_between(tmp_path: Path) -> None:
    log = tmp_path / "slow.log"
    log.write_text("".join(
        f"# Time: 2026-11-22T10:52:{i:02}.123456Z\n# User@Host: a[a] @ h []  Id: 8\n"
        "# Schema: wiki  Last_errno: 0  Killed: 0\n"
        "# Query_time: 0.5  Lock_time: 0  Rows_sent: 1  Rows_examined: 2\n"
        f"SET timestamp=1795312334;\nSELECT {i} FROM p;\n" for i in range(30)
    ))  # fmt: skip
    of = judged(log)
    assert of.all is not None
    assert (of.all.n, of.all.max_s) == (30, 0.5)


def test_what_stands_before_an_address_is_no_server_unless_it_is_one_name(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    rest = ' - - [22/Nov/2026:11:03:{i:02} +0000] "GET /search?q={i} HTTP/1.1" 200 9 "-" "x" 0.1\n'
    for before, servers in (
        ("10.0.0.1, 10.0.0.2", ["access"]),
        ("Nov 22 11:03:06 2026 web-1 nginx: 10.0.0.1", ["access"]),
        ("2026-11-22 11:03:06 web-1 nginx: 10.0.0.1", ["access"]),
        ("2026-11-22T11:03:06+09:00 10.0.0.1", ["access"]),
        ("10.0.0.1 - joe", ["access"]),
        ("shop.example.org:443 10.0.0.1", ["shop.example.org:443"]),
    ):
        log.write_text("".join((before + rest).format(i=i) for i in range(20)))
        assert [row.name for row in judged(log).by["server"]] == servers, before


@pytest.mark.parametrize("wrong", ["ms=duration:msec", "ms=length"])
def test_a_column_that_is_wrong_is_a_sentence_where_files_are_looked_at_together(
    tmp_path: Path, wrong: str
) -> None:
    """A rotated file is looked at before it is read."""
    for name in ("a.log", "a.log.1"):
        objects(tmp_path / name, [{"time": AT + i, "ms": i, "q": "red"} for i in range(20)])
    with pytest.raises(QueryError):
        app(["logs", str(tmp_path), "--column", wrong], exit_on_error=False)


def test_a_server_that_is_named_in_the_lines_does_not_say_which_searches_failed(
    tmp_path: Path,
) -> None:
    rows = [{"time": AT + i, "took_ms": 3, "q": f"w{i}", "server": f"s{i % 3}"} for i in range(300)]
    of = judged(objects(tmp_path / "a.jsonl", rows))
    assert of.all is not None
    assert of.all.errors is None
    assert [row.errors for row in of.by["server"]] == [None] * 3
