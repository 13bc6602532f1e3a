"""Logs that real servers wrote, held against what was sent (tests/logs/truth.json)."""

from __future__ import annotations

import gzip
import json
import random
import re
from pathlib import Path

import pytest

from searchbench import _core
from searchbench.analysis.logs.as_json import as_json
from searchbench.analysis.logs.judge import judge_log
from searchbench.errors import QueryError
from searchbench.logs.counts import Counts, Options, count
from searchbench.logs.entries import read_entries
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


def test_csvlog_says_what_jsonlog_of_the_same_server_says() -> None:
    table, objects = read("postgresql-csvlog.csv"), read("postgresql-csvlog.json")
    truth = TRUTH["postgresql-csvlog.csv"]
    (source,) = table.sources
    assert (source["format"], source["unread"]) == ("postgresql-csv", 0)
    assert source["lines"] == (LOGS / "postgresql-csvlog.csv").read_bytes().count(b"\n")
    assert searches(table, "timed") == truth["searches"]
    failed = searches(table, "errors") + total(table, "other", "errors")
    assert failed == truth["errors"] + truth["refused_connections"]
    assert total(table, "other", "timed") == truth["other"]
    longest = judge_log(table).all
    assert longest is not None
    assert longest.max_s == pytest.approx(0.35, abs=0.05), "not the 9.999 s of an imitation"
    a, b = as_json(judge_log(table)), as_json(judge_log(objects))
    for of in (a, b):  # in words of each file's own name
        (zone,) = (r for r in of["remarks"] if r["title"] == "Zone not known")
        assert f"{source['entries']} times name their zone in a way" in zone["text"]
        of["remarks"].remove(zone)
    own = ("sources", "by", "all")
    assert {k: v for k, v in a.items() if k not in own} == {
        k: v for k, v in b.items() if k not in own
    }
    for kind in ("class", "index", "user", "words"):
        assert a["by"].get(kind) == b["by"].get(kind), kind


@pytest.mark.parametrize(
    "name", ["postgresql-csvlog.csv", "mariadb-slow.log", "sphinx-query-sphinxql.log"]
)
def test_line_breaks_of_windows_change_nothing(tmp_path: Path, name: str) -> None:
    """PostgreSQL writes them there, within statements too."""
    path = tmp_path / "windows.log"
    path.write_bytes((LOGS / name).read_bytes().replace(b"\n", b"\r\n"))
    there, here = count(find([path], "s"), Options()), count(find([LOGS / name], "s"), Options())
    for key in ("format", "lines", "entries", "unread", "notes"):
        assert there.sources[0][key] == here.sources[0][key], key
    assert there.tables["groups"].to_pylist() == here.tables["groups"].to_pylist()


def test_the_time_of_a_statement_that_depends_on_the_last_id_is_known(tmp_path: Path) -> None:
    path = tmp_path / "slow.log"
    path.write_text(
        "# User@Host: a[a] @ h []\n# Thread_id: 3  Schema: w  QC_hit: No\n"
        "# Query_time: 0.5  Lock_time: 0  Rows_sent: 1  Rows_examined: 2\n"
        "SET last_insert_id=5,timestamp=1795312334;\n"
        "SELECT a FROM p WHERE b = LAST_INSERT_ID();\n"
    )
    counts = count(find([path]), Options())
    assert counts.numbers("minutes", "minute").tolist() == [1795312334 // 60]
    (row,) = judge_log(counts).by["class"]
    assert row.name == "select a from p where b=last_insert_id()"


def test_elasticsearch_searches_are_counted_once_whatever_their_shards() -> None:
    counts, truth = read("elasticsearch-slow.json"), TRUTH["elasticsearch-slow.json"]
    (source,) = counts.sources
    assert (source["format"], source["unread"]) == ("slowlog-json", 0)
    # _count and the two searches of _msearch leave lines as any other search does.
    assert searches(counts) == truth["searches"] + 1 + 2
    assert searches(counts, "timed") == searches(counts)
    assert searches(counts, "zero") == truth["zero"]
    assert total(counts, "part", "n") == source["lines"]
    judgement = judge_log(counts)
    assert [(row.name, row.n) for row in judgement.by["index"]] == [("pages", searches(counts))]
    names = {row.name: row.n for row in judgement.by["class"]}
    plain = sum(n for what, n in truth["cases"].items() if what.startswith(("plain", "without")))
    assert names["{query:{match:{body:{query:?}}}}"] >= plain


@pytest.mark.parametrize("name", ["sphinx-query-iostats.log", "sphinx-query-iostats-sphinxql.log"])
def test_statistics_of_sphinx_are_no_words_and_no_comment(name: str) -> None:
    """searchd --iostats --cpustats writes `[ios=.. kb=.. ioms=.. cpums=..]` before the words."""
    truth, counts = TRUTH[name], read(name)
    assert counts.sources[0]["unread"] == 0
    assert searches(counts) - searches(counts, "errors") == truth["searches"]
    assert searches(counts, "zero") == truth["zero"]
    text = (LOGS / name).read_text(encoding="utf-8")
    written = re.findall(r"ios=(\d+) kb=[\d.]+ ioms=[\d.]+ cpums=([\d.]+)(?:\]| \*/)", text)
    assert searches(counts, "ios_known") == searches(counts, "cpu_known") == len(written) == 24
    assert searches(counts, "ios") == sum(int(ios) for ios, _ in written)
    assert searches(counts, "cpu_us") == round(sum(1000 * float(ms) for _, ms in written))
    row = judge_log(counts).all
    assert row is not None
    assert row.mean_hits == pytest.approx(sum(truth["found"]) / truth["searches"])
    rows = read_entries(find([LOGS / name]), Options()).rows
    asked = {row.text.decode() for row in rows}
    if name == "sphinx-query-iostats.log":
        assert {"doki beldo", '"doki nibelgraki"', "café 東京", ""} <= asked
        # What imitates statistics is a comment, as all words in brackets are.
        assert "rengrarenve" in asked
        assert counts.sources[0]["notes"] == {"words in brackets, taken for a comment": 3}
        assert not any(text.startswith("[") for text in asked)


SYSLOG = ("haproxy-syslog.log", "haproxy-syslog-iso.log", "haproxy-rfc5424.log",
          "haproxy-rfc5424-rsyslog.log", "nginx-syslog.log")  # fmt: skip


@pytest.mark.parametrize("name", SYSLOG)
def test_access_logs_behind_a_header_of_syslog_have_every_search(name: str) -> None:
    """As rsyslog keeps them in files, and as HAProxy sends them."""
    counts, truth = read(name), TRUTH[name]
    (source,) = counts.sources
    assert (source["format"], source["unread"]) == ("access", 0)
    assert source["entries"] == truth["requests"]
    assert searches(counts) == searches(counts, "timed") == truth["searches"]
    failed = searches(counts, "errors") + total(counts, "other", "errors")
    assert failed == truth["by_status"]["500"] + truth["by_status"]["400"]
    row = judge_log(counts).all
    assert row is not None
    assert row.max_s == pytest.approx(0.3, abs=0.05)
    # The server is that of HAProxy's back end; nginx has none but the host that syslog names.
    (server,) = {row.name for row in judge_log(counts).by["server"]}
    assert server == ("one" if name.startswith("haproxy") else "vm")
    kinds, names = counts.texts("groups", "kind"), counts.texts("groups", "name")
    assert {n for of, n in zip(kinds, names, strict=True) if of == "index"} == (
        {"search"} if name.startswith("haproxy") else {""}
    )


def test_a_header_of_syslog_changes_nothing_else(tmp_path: Path) -> None:
    """The older form of the lines in HAProxy's manual, with a day of one digit."""
    plain = (LOGS / "haproxy-http.log").read_bytes().splitlines(keepends=True)
    path = tmp_path / "haproxy-http.log"
    path.write_bytes(b"".join(b"Feb  6 12:14:14 localhost haproxy[14389]: " + x for x in plain))
    a = as_json(judge_log(count([Source(str(path), "s")], Options())))
    b = as_json(judge_log(count([Source(str(LOGS / "haproxy-http.log"), "s")], Options())))
    assert a["sources"][0]["entries"] == b["sources"][0]["entries"]
    for one in (a, b):
        del one["sources"]
    assert a == b


def test_forms_of_the_manuals_are_read(tmp_path: Path) -> None:
    """Solr and MySQL 8 as their manuals and the notes on their logs have them."""
    solr = tmp_path / "solr.log"
    request = "o.a.s.c.S.Request webapp=/solr path=/select params="
    solr.write_text(
        "2026-11-22 10:00:00.123 INFO  (qtp1-22) [c:pages s:shard1 r:core_node3 x:p1] "
        f"{request}{{q=a+b&rows=10}} hits=3 status=0 QTime=5\n"
        "2026-11-22 10:00:00.120 INFO  (qtp1-23) [c:pages s:shard1 r:core_node3 x:p1] "
        f"{request}{{q=a+b&isShard=true&distrib=false}} hits=3 status=0 QTime=2\n"
        "2026-11-22 10:00:01.000 INFO  (main) [] o.a.s.c.CoreContainer started\n"
    )
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
    for path, ms, hits, part in ((solr, 5, 3, 1), (mysql, 250, 0, 0)):
        counts = count([Source(str(path), "s")], Options())
        row = judge_log(counts).all
        assert row is not None, path.name
        assert (row.n, row.max_s, row.mean_hits) == (1, ms / 1e3, hits), path.name
        assert total(counts, "part", "n") == part, path.name
        assert counts.texts("groups", "name")[counts.texts("groups", "kind").index("words")] == "2"
