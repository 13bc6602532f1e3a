"""Logs that real servers wrote, held against what was sent (tests/logs/truth.json)."""

from __future__ import annotations

import csv
import gzip
import json
import random
from pathlib import Path

import pytest

from searchbench import _core
from searchbench.analysis.logs.as_json import as_json
from searchbench.analysis.logs.judge import judge_log
from searchbench.errors import QueryError
from searchbench.logs.counts import Counts, Options, count
from searchbench.logs.sources import Source, find

LOGS = Path(__file__).parent / "logs"
TRUTH = json.loads((LOGS / "truth.json").read_text(encoding="utf-8"))


def read(*names: str, **options: object) -> Counts:
    return count(find([LOGS / name for name in names]), Options(**options))  # type: ignore[arg-type]


def total(counts: Counts, kind: str, column: str) -> int:
    kinds = counts.texts("groups", "kind")
    values = counts.numbers("groups", column)
    return sum(int(n) for of, n in zip(kinds, values, strict=True) if of == kind)


def searches(counts: Counts, column: str = "n") -> int:
    return total(counts, "server", column)


def test_sphinx_counts_what_was_asked_and_keeps_the_agents_apart() -> None:
    plain, sql = read("sphinx-query-plain.log"), read("sphinx-query-sphinxql.log")
    truth = TRUTH["sphinx-query-plain.log"]
    # Over SphinxQL, and besides: the second line of FACET, a packet of two, batches of two, one
    # and two over the API.
    answered = truth["searches"] + 1 + 2 + 2 + 1 + 2
    assert searches(sql) - searches(sql, "errors") == answered
    # The plain log has the UPDATE too, which looks like a search of all documents.
    assert searches(plain) == answered + 1
    assert searches(plain, "zero") == searches(sql, "zero") == truth["zero"]
    assert searches(sql, "partial") == truth["warned"]
    assert searches(sql, "errors") + total(sql, "other", "errors") == truth["errors"] + 1
    assert total(plain, "part", "n") == total(sql, "part", "n") == 14


def test_the_slow_log_has_each_entry_and_not_the_one_that_a_statement_imitates() -> None:
    counts = read("mariadb-slow.log")
    (source,) = counts.sources
    assert (source["entries"], source["unread"]) == (88, 0)
    assert searches(counts, "timed") == searches(counts)
    # 2.3 s, 1.25 s of sleep came out as they were sent.
    longest = judge_log(counts).all
    assert longest is not None
    assert longest.max_s == pytest.approx(2.3, abs=0.05)


def test_the_general_log_has_the_searches_of_the_slow_log_but_no_times() -> None:
    general, slow = read("mariadb-general.log"), read("mariadb-slow.log")
    # In the slow log the two SELECTs inside of a CALL and those of a packet are entries too, and
    # not those that the server refused.
    assert searches(general, "timed") == 0
    assert abs(searches(general) - searches(slow)) <= 6
    assert general.sources[0]["unread"] == 0


@pytest.mark.parametrize("how", ["default", "pgbadger", "duration"])
def test_each_way_of_postgresql_to_log_gives_the_same_searches(how: str) -> None:
    name = f"postgresql-stderr-{how}.log"
    text, plain = read(name), read("postgresql-jsonlog.json")
    truth = TRUTH[name]
    assert searches(text) == searches(plain)
    assert searches(text, "timed") == searches(plain, "timed") >= truth["searches"]
    # And one connection was refused.
    failed = searches(text, "errors") + total(text, "other", "errors")
    assert failed == truth["errors"] + 1
    assert text.sources[0]["unread"] == 0
    assert searches(text, "hits_known") == 0


def test_groonga_counts_as_its_own_status_does() -> None:
    counts, truth = read("groonga-query.log"), TRUTH["groonga-query.log"]
    status = truth["server_status_at_end"]
    assert searches(counts) == status["n_queries"]
    assert searches(counts, "cached") == round(status["n_queries"] * status["cache_hit_rate"] / 100)
    assert searches(counts, "zero") == truth["zero"]
    assert searches(counts, "errors") + total(counts, "other", "errors") == truth["errors"]


@pytest.mark.parametrize("name", ["opensearch-slow.log", "opensearch-slow.json"])
def test_opensearch_searches_are_counted_once_whatever_their_shards(name: str) -> None:
    counts, truth = read(name), TRUTH[name]
    # The server writes no line of a search with highlighting.
    assert searches(counts) == truth["searches"] - truth["cases"]["highlight"]
    assert searches(counts, "zero") == truth["zero"]
    assert counts.sources[0]["unread"] == 0


@pytest.mark.parametrize(
    "name",
    ["nginx-combined.log", "nginx-timed.log", "apache-combined-d.log", "apache-vhost.log"],
)
def test_access_logs_have_every_search(name: str) -> None:
    counts = read(name)
    assert searches(counts) == TRUTH[name]["searches"]
    timed = name in ("nginx-timed.log", "apache-combined-d.log")
    assert searches(counts, "timed") == (searches(counts) if timed else 0)


def test_haproxy_has_every_search_but_those_it_could_not_read() -> None:
    counts = read("haproxy-http.log")
    refused = (LOGS / "haproxy-http.log").read_bytes().count(b"<BADREQ>")
    assert searches(counts) + refused + 1 == TRUTH["haproxy-http.log"]["requests"]
    assert counts.sources[0]["notes"]["cut short by the server that wrote it"] == 2


def test_any_line_is_read_by_a_format_string() -> None:
    with pytest.raises(QueryError, match=r"apache-custom\.log is no log of a known kind"):
        read("apache-custom.log")
    line = '{time} {_} "{request}" {status} {_} {_} {duration:ms} {_}'
    counts = read("apache-custom.log", line=line)
    assert counts.sources[0]["unread"] == 0
    # Of the request that was too long this format has "- -".
    assert searches(counts, "timed") == TRUTH["apache-custom.log"]["searches"] - 1


@pytest.mark.parametrize("name", ["nginx-json.log", "nginx-ltsv.log"])
def test_lines_with_named_fields_are_read(name: str) -> None:
    counts = read(name)
    assert counts.sources[0]["unread"] == 0
    assert total(counts, "server", "n") + total(counts, "other", "n") == 63
    row = judge_log(counts).all
    assert row is not None
    assert row.max_s == pytest.approx(1.0, abs=0.1)


def test_columns_are_what_the_user_says(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("when,ms,asked\n2026-11-22T10:00:00Z,12,a b\n2026-11-22T10:00:01Z,x,c\n")
    columns = (("when", "time", ""), ("ms", "duration", "ms"), ("asked", "text", ""))
    counts = count(find([path]), Options(format="csv", columns=columns))
    (source,) = counts.sources
    assert (source["entries"], source["unread"]) == (1, 1)
    assert source["examples"][0][:2] == (3, "its duration cannot be read")


def test_packed_mixed_and_cut_logs_give_the_answer_of_the_plain_ones(tmp_path: Path) -> None:
    names = ["sphinx-query-sphinxql.log", "nginx-timed.log", "mariadb-slow.log"]
    packed = []
    for name in names:
        path = tmp_path / f"{name}.1.gz"
        path.write_bytes(gzip.compress((LOGS / name).read_bytes()))
        packed.append(path)
    sources = [Source(str(p), "s") for p in packed]
    plain = [Source(str(LOGS / name), "s") for name in names]
    for threads in (1, 3):
        a = as_json(judge_log(count(sources, Options(threads=threads))))
        b = as_json(judge_log(count(plain, Options(threads=threads))))
        assert {k: v for k, v in a.items() if k not in ("sources", "remarks")} == {
            k: v for k, v in b.items() if k not in ("sources", "remarks")
        }


def test_blocks_and_threads_do_not_change_the_answer(tmp_path: Path) -> None:
    """Logs longer than a block, with agents' lines, statements of several lines and long lines."""
    for name in ("sphinx-query-plain.log", "sphinx-query-sphinxql.log", "mariadb-slow.log"):
        once = (LOGS / name).read_bytes()
        times = 20_000_000 // len(once) + 1
        path = tmp_path / name
        path.write_bytes(once * times)
        one, many = (count([Source(str(LOGS / name), "s")], Options()),
                     count([Source(str(path), "s")], Options(threads=3)))  # fmt: skip
        for kind in ("server", "part", "other"):
            assert total(many, kind, "n") == times * total(one, kind, "n"), (name, kind)
            assert total(many, kind, "sum_ns") == times * total(one, kind, "sum_ns"), (name, kind)


def test_no_bytes_end_the_reading(tmp_path: Path) -> None:
    """Samples with pieces cut out, doubled and overwritten: every line is counted."""
    random.seed(7)
    names = [p.name for p in LOGS.iterdir() if p.name not in ("truth.json", "apache-custom.log")]
    formats = {name: read(name).sources[0]["format"] for name in names}
    for turn in range(300):
        name = random.choice(names)
        text = bytearray((LOGS / name).read_bytes()[:60_000])
        for _ in range(random.randint(1, 30)):
            at = random.randrange(len(text))
            kind = random.randrange(4)
            if kind == 0:
                del text[at : at + random.randrange(1, 60)]
            elif kind == 1:
                text[at:at] = text[at : at + random.randrange(1, 200)]
            elif kind == 2:
                text[at] = random.randrange(256)
            else:
                text[at:at] = random.choice(
                    [b"\n", b'"', b"[", b"]", b"'", b"{", b"|", b"\\", b"# "]
                )
        path = tmp_path / "log"
        path.write_bytes(text)
        # As what it was, and as what it is not.
        for named in (formats[name], random.choice(_core.LOG_FORMATS)):
            if named == "line":
                continue
            log = _core.Log(1000)
            (found,) = log.read([(str(path), "s", named, 0)], threads=1)
            assert found["lines"] + 1 >= text.count(b"\n"), (turn, name, named)
            log.tables()


NAMES = """timestamp user dbname pid remote session_id line_num ps session_start vxid txid
error_severity state_code message detail hint internal_query internal_position context
statement cursor_position func application_name backend_type leader_pid query_id"""
COLUMNS = NAMES.split()


def test_csvlog_says_what_jsonlog_says(tmp_path: Path) -> None:
    """csvlog has no sample: the messages of jsonlog are written as PostgreSQL's manual says."""
    path = tmp_path / "postgresql.csv"
    with path.open("w", newline="", encoding="utf-8") as out:
        rows = csv.writer(out, lineterminator="\n")
        for line in (LOGS / "postgresql-jsonlog.json").read_text(encoding="utf-8").splitlines():
            found = json.loads(line)
            rows.writerow([found.get(name, "") for name in COLUMNS])
    a = as_json(judge_log(count([Source(str(path), "s")], Options())))
    json_log = Source(str(LOGS / "postgresql-jsonlog.json"), "s")
    b = as_json(judge_log(count([json_log], Options())))
    assert a["sources"][0]["format"] == "postgresql-csv"
    assert {k: v for k, v in a.items() if k != "sources"} == {
        k: v for k, v in b.items() if k != "sources"
    }


def test_forms_of_the_manuals_are_read(tmp_path: Path) -> None:
    """Solr, Elasticsearch and MySQL 8 as their manuals and the notes on their logs have them."""
    solr = tmp_path / "solr.log"
    request = "o.a.s.c.S.Request webapp=/solr path=/select params="
    solr.write_text(
        "2026-11-22 10:00:00.123 INFO  (qtp1-22) [c:pages s:shard1 r:core_node3 x:p1] "
        f"{request}{{q=a+b&rows=10}} hits=3 status=0 QTime=5\n"
        "2026-11-22 10:00:00.120 INFO  (qtp1-23) [c:pages s:shard1 r:core_node3 x:p1] "
        f"{request}{{q=a+b&isShard=true&distrib=false}} hits=3 status=0 QTime=2\n"
        "2026-11-22 10:00:01.000 INFO  (main) [] o.a.s.c.CoreContainer started\n"
    )
    elastic = tmp_path / "elastic.json"
    line = (
        '{{"@timestamp":"2026-11-22T10:00:00.{0}Z","log.level":"INFO",'
        '"elasticsearch.slowlog.took":"{1}ms","elasticsearch.slowlog.took_millis":{1},'
        '"elasticsearch.slowlog.total_hits":"{2} hits","elasticsearch.slowlog.total_shards":2,'
        '"elasticsearch.slowlog.message":"[pages][{3}]","elasticsearch.slowlog.id":null,'
        '"elasticsearch.slowlog.source":"{{\\\\\\"query\\\\\\":{{\\\\\\"match\\\\\\":'
        '{{\\\\\\"body\\\\\\":\\\\\\"a b\\\\\\"}}}}}}","trace.id":"t1",'
        '"log.logger":"index.search.slowlog.query"}}\n'
    )
    elastic.write_text(line.format("100", 7, 2, 0) + line.format("105", 9, 1, 1))
    mysql = tmp_path / "slow.log"
    mysql.write_text(
        "/usr/sbin/mysqld, Version: 8.0.36 (Source distribution). started with:\n"
        "Tcp port: 3306  Unix socket: /run/mysqld.sock\n"
        "Time                 Id Command    Argument\n"
        "# Time: 2026-11-22T10:00:00.500000Z\n"
        "# User@Host: web[web] @ localhost []  Id:     8\n"
        "# Query_time: 0.250000  Lock_time: 0.000001 Rows_sent: 0  Rows_examined: 1\n"
        "use wiki;\n"
        "SET timestamp=1795341600;\n"
        "SELECT id FROM pages WHERE MATCH(body) AGAINST('a b');\n"
    )
    for path, ms, hits, part in ((solr, 5, 3, 1), (elastic, 9, 3, 2), (mysql, 250, 0, 0)):
        counts = count([Source(str(path), "s")], Options())
        row = judge_log(counts).all
        assert row is not None, path.name
        assert (row.n, row.max_s, row.mean_hits) == (1, ms / 1e3, hits), path.name
        assert total(counts, "part", "n") == part, path.name
        assert counts.texts("groups", "name")[counts.texts("groups", "kind").index("words")] == "2"
