"""What must go of an anonymised search, what must stay, and what cannot be anonymised at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replaying import about, written
from searchbench.errors import QueryError
from searchbench.logs.anonymous.bodies import in_body
from searchbench.logs.anonymous.paths import in_path
from searchbench.logs.anonymous.pseudonyms import Pseudonyms, Vocabulary
from searchbench.logs.anonymous.statements import in_statement
from searchbench.logs.anonymous.words import NotAnonymised, in_text, of_numbers_too

NAMES = Pseudonyms(b"k" * 32, Vocabulary("log", {}))
PG = "2026-11-20 20:39:{n:02}.000 UTC [12] LOG:  duration: 1.2 ms  statement: {text}\n"
MYSQL = "2026-11-20T20:39:{n:02}.000000Z\t   12 Query\t{text}\n"
WEB = '10.0.0.1 - - [20/Nov/2026:20:39:{n:02} +0000] "GET {text} HTTP/1.1" 200 10 "-" "x" 0.003\n'
SPHINX = (
    "[Fri Nov 20 20:39:57.{n:03} 2026] 0.003 sec 0.003 sec [ext2/0/rel 9 (0,20)] [docs] {text}\n"
)
SLOW = (
    "[2026-11-22T02:59:00,{n:03}][INFO ][i.s.s.query] [node-1] [pages][0] took[9micros], "
    "took_millis[0], total_hits[1 hits], stats[], search_type[QUERY_THEN_FETCH], total_shards[1], "
    "source[{text}], id[], \n"
)  # fmt: skip


def log_of(place: Path, line: str, *texts: str) -> Path:
    log = place / ("general.log" if line is MYSQL else "query.log")
    log.write_text("".join(line.format(n=n, text=text) for n, text in enumerate(texts)))
    return log


def told_of(place: Path, line: str, *texts: str) -> tuple[list[dict[str, Any]], str]:
    """The lines, and all that is said of them."""
    out = place / "out.jsonl"
    found = written(log_of(place, line, *texts), out, "--anonymise")
    return found, json.dumps([found, about(out)])


SQL = (
    "/* Fri Nov 20 20:39:57.{n:03} 2026 conn 5 real 0.001 wall 0.002 found 3 */ {text}; "
    "/* cpums=0.1 */\n"
)

# ── what must go ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("line", "text", "stays"),
    [
        (MYSQL, "SELECT id FROM t WHERE a = 'red' # zanzibar's", "a = '"),
        (MYSQL, "SELECT id FROM t -- zanzibar", "FROM t"),
        (MYSQL, "SELECT id FROM t WHERE a = 5--3 /* zanzibar", "--"),
        (MYSQL, "SELECT id FROM t WHERE a = CHAR(122,97,110) AND b = 'zanzibar'", "CHAR("),
        (PG, "SELECT id FROM t WHERE a = 'C:\\' AND b = 'zanzibar'", "a = '"),
        (PG, "SELECT id FROM t WHERE tsv @@ to_tsquery('zanzibar')", "to_tsquery('"),
        (PG, "SELECT ts_headline('zanzibar island', q) FROM t", "ts_headline('"),
        (PG, "SELECT ts_headline('zanzibar', to_tsquery('red')) FROM t", "ts_headline('"),
        (PG, "SELECT ts_headline('english', 'zanzibar', q) FROM t", "ts_headline('english'"),
        (WEB, "/search;jsessionid=zanzibar12?q=red", "GET /search?q"),
        (WEB, "/search.do;v=zanzibar;JSESSIONID=zanzibar?q=red", "/search.do;v="),
        (WEB, "http://alice:zanzibar@shop.zanzibar.org/search?q=red", "GET /search?q"),
        (WEB, "https://zanzibar:8443?q=red", "?q"),
        (WEB, "/search#zanzibar?q=red", "/search?q="),
        (WEB, "/search?q=red&session-id=zanzibar&preference=zanzibar&host=zanzibar", "/search?q="),
        (WEB, "/mail/zanzibar@secret.org/search?q=red", "/mail/"),
        (WEB, "/s/zanzibar-3f2b8c1a9d4e4f6a8b7c1d2e/search?q=red", "/s/"),
        (WEB, "/trains/search?from=zanzibar&to=red", "/search?"),
        (WEB, "//shop.zanzibar.org/search?q=red", "/search?"),
        (WEB, "/search%3Bjsessionid=zanzibar?q=red", "/search?"),
        (SPHINX, "john@zanzibar.com", '"terms"'),
        (PG, "SELECT id FROM t WHERE a = $$it's$$ AND b = 'zanzibar'", "b = '"),
        (PG, "SELECT id FROM t WHERE a = $z$it's$z$ AND b = 'zanzibar'", "b = '"),
        (PG, "SELECT id FROM t WHERE a LIKE'50\\' AND b = 'zanzibar'", "b = '"),
        (PG, "SELECT id FROM t WHERE a = decode(b, 'zanzibar')", "decode("),
        (PG, "SELECT id FROM t WHERE a > timezone('zanzibar', b)", "timezone("),
        (PG, "SELECT to_char(a, 'zanzibar') FROM t", "to_char("),
        (PG, "SELECT id FROM t WHERE n = 4_122_000 AND a = 'red'", "n = "),
        (PG, "SELECT id FROM t WHERE a @> '{\"zanzibar@b.org\": 1}'", "@> '"),
        (MYSQL, "SELECT id FROM t WHERE a = DECODE(b, 'zanzibar')", "DECODE("),
        (MYSQL, "SELECT GROUP_CONCAT(a SEPARATOR 'zanzibar') FROM t", "SEPARATOR"),
        (MYSQL, "SELECT id FROM t WHERE n = 0b101111010 AND a = 'red'", "0b"),
        (WEB, "/near/lat/52.122/lon/13.4/search?q=red", "/near/lat/"),
        (WEB, "/call/+49-122-555/search?q=red", "/call/"),
        (WEB, "/by/joe%2540zanzibar.de/search?q=red", "/by/"),
        (WEB, "/by/joe@zanzibar/search?q=red", "/by/"),
        (WEB, "/search/author/zanzibar?q=red", "/search/"),
        (WEB, "/_next/data/b1/joe@zanzibar.de/52.122/search?q=red", "/_next/data/"),
        (WEB, "/d/joe@zanzibar.de/+49122555/search?q=red", "/d/"),
        (WEB, "/solr/p/search/zanzibar/by/joe/zanzibar?q=red", "/solr/p/search/"),
        (WEB, "/pages/_search/zanzibar?q=red", "/pages/_search/"),
        (WEB, "/_search/scroll/zanzibarQ?q=red", "/_search/scroll/"),
        (WEB, "/search?q=red&order=A4122-zanzibar", "order="),
        (WEB, "/solr/p/select?q=red&expand.fq=a:zanzibar&facet.matches=zanzibar", "/select?q="),
        (WEB, "/solr/p/select?q=red&terms.list=zanzibar&f.a.facet.prefix=zanzibar", "/select?q="),
        (WEB, "/solr/p/select?q=red&facet.heatmap.geom=[1221,2 TO 3,4]", "/select?q="),
        (WEB, "/d/select?table=t&filter=price > 12.122", "/d/select?table=t"),
        (WEB, "/d/select?table=t&output_columns=a,f(b,%22zanzibar%22)", "output_columns=a,f(b"),
        (SPHINX, "@title red joe@zanzibar", '"title"'),
    ],
)
def test_what_says_who_asked_is_gone(tmp_path: Path, line: str, text: str, stays: str) -> None:
    found, told = told_of(tmp_path, line, *[text] * 3)
    assert len(found) == 3
    assert "zanzibar" not in told.lower()
    assert "122" not in told
    assert stays in told


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ("SELECT id FROM i WHERE MATCH('red') OPTION max_matches=10 FACET IF(a='zanzibar',1,0)",
         "OPTION max_matches=10"),
        ("SELECT id FROM i WHERE MATCH('red') OPTION comment='zanzibar', retry_count=1",
         "retry_count=1"),
        ("SELECT id FROM i WHERE MATCH('red') AND a='@zanzibar'", "a='@"),
        ("SELECT id FROM i WHERE MATCH('red') OPTION ranker=expr('sum(lcs)*1000+bm25')",
         "expr('sum(lcs)*1000+bm25')"),
    ],
)  # fmt: skip
def test_options_of_sphinxql_stay_and_what_follows_them_does_not(
    tmp_path: Path, text: str, stays: str
) -> None:
    found, told = told_of(tmp_path, SQL, *[text] * 3)
    assert len(found) == 3
    assert "zanzibar" not in told
    assert stays in told


@pytest.mark.parametrize(
    "given",
    [
        {"query": {"function_score": {"random_score": {"seed": "zanzibar", "field": "_seq_no"}}}},
        {"sort": [{"a": {"order": "asc", "missing": "zanzibar"}}]},
        {"aggs": {"a": {"terms": {"field": "a", "missing": "zanzibar"}}}},
        {"aggs": {"a": {"range": {"field": "n", "ranges": [{"to": 4, "key": "zanzibar 122"}]}}}},
        {"collapse": {"field": "a", "inner_hits": {"name": "zanzibar@b.org"}}},
    ],
)
def test_values_among_options_of_a_body_are_replaced(given: dict[str, Any]) -> None:
    told = json.dumps(in_body(given, NAMES.of))
    assert "zanzibar" not in told
    assert len(told) == len(json.dumps(given))


def test_a_statement_of_an_application_with_names_in_double_quotes_is_left_out(
    tmp_path: Path,
) -> None:
    """Such a name is a literal to MySQL; that is found before any word is replaced."""
    log = tmp_path / "app.json"
    statements = [
        'SELECT "id" FROM "orders" WHERE a = 1',
        "SELECT id FROM orders WHERE a = 1",
        'SELECT id FROM orders WHERE a="東京"',
        'SELECT id FROM orders WHERE a="00"',
    ]
    log.write_text("".join(
        json.dumps({"time": f"2026-11-20T20:39:0{n}Z", "took": 3, "sql": text}) + "\n"
        for n, text in enumerate(statements)
    ))  # fmt: skip
    out = tmp_path / "out.jsonl"
    found = written(log, out, "--anonymise", "--column", "took=duration:ms", "--column", "sql=text")
    assert len(found) == 1
    assert "means another thing to another server" in about(out)["sentence"]


def test_classes_of_searches_that_are_left_out_and_names_of_servers_are_not_told(
    tmp_path: Path,
) -> None:
    given = ["/search?q=red&zanzibar", "/d/load?table=a&zanzibar&q=x", "/search?q=red"]
    _, told = told_of(tmp_path, WEB, *given, "/search?zanzibar&cursorMark=abc&q=x")
    assert "zanzibar" not in told
    said = json.loads(told)[1]
    assert said["left_out_classes"]
    out = tmp_path / "zones.jsonl"
    (tmp_path / "zanzibar").mkdir()
    text = SPHINX.format(n=1, text="red") + SPHINX.format(n=2, text="blue")
    (tmp_path / "zanzibar" / "query.log").write_text(text)
    log = tmp_path / "zanzibar" / "query.log"
    written(log, out, "--anonymise", "--zone", "Asia/Tokyo")
    assert about(out)["zone"] == "Asia/Tokyo"
    assert "zanzibar" not in json.dumps(about(out))


def test_a_cut_of_files_with_other_clocks_does_not_name_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whole seconds are named with their file, and files are called as their servers are."""
    (tmp_path / "logs").mkdir()
    given = [WEB.format(n=n % 60, text=f"/search?q=red{n % 7}").replace(":39:", f":{n // 60:02}:")
             for n in range(600)]  # fmt: skip
    (tmp_path / "logs" / "zanzibar.log").write_text("".join(given))
    given = [json.dumps({"time": f"2026-11-20T20:{n // 60:02}:{n % 60:02}.123Z", "status": 200,
                         "request": f"GET /search?q=blue{n % 9} HTTP/1.1"}) + "\n"
             for n in range(600)]  # fmt: skip
    (tmp_path / "logs" / "b.log").write_text("".join(given))
    out = tmp_path / "out.jsonl"
    written(tmp_path / "logs", out, "--anonymise", "--cut", "auto")
    assert "the times of file" in json.dumps(about(out))
    assert "zanzibar" not in json.dumps(about(out)) + capsys.readouterr().out
    written(tmp_path / "logs", out, "--cut", "auto")
    assert "zanzibar" in json.dumps(about(out))


def test_a_field_of_sphinx_is_named_behind_a_blank_a_bracket_or_a_bar() -> None:
    def other(text: str) -> str:
        return in_text(text, NAMES.of, "@")

    for text in ("@title red", "red @title blue", "(@title red)", "red|@title blue", "@!title red",
                 "@(title,body) red", "@@relaxed @title[50] red"):  # fmt: skip
        assert "title" in other(text), text
        assert "red" not in other(text).replace("relaxed", "")
    for text in ("john@title.com", '"red"@title', "red-@title", "a@@relaxed"):
        assert "title" not in other(text)
        assert "relaxed" not in other(text)


# ── what must stay ───────────────────────────────────────────────────────────────────────────


def statement(text: str, dialect: str = "postgresql") -> str:
    return in_statement(text, NAMES.of, [dialect])


def test_what_a_statement_says_of_how_to_search_stays() -> None:
    for kept in (
        "plainto_tsquery('simple', '", "to_tsquery('english'::regconfig, '",
        "websearch_to_tsquery('public.shop','", "phraseto_tsquery('simple','",
    ):  # fmt: skip
        told = statement(f"SELECT id FROM t WHERE tsv @@ {kept}zanzibar')")
        assert kept in told
        assert "zanzibar" not in told
    told = statement("SELECT kind, COUNT(*), 7 FROM t WHERE n = 3 GROUP BY 1, kind ORDER BY "
                     "2 DESC, n + 4, 3 LIMIT 10 OFFSET 5")  # fmt: skip
    assert told.endswith("LIMIT 10 OFFSET 5")
    assert "GROUP BY 1, kind ORDER BY 2 DESC, n + " in told
    assert ", 3 LIMIT" in told
    assert "n = 3" not in told
    assert "n + 4" not in told
    assert ", 7" not in told
    assert (
        statement("SELECT 1 FROM t WHERE n = 2000000000") != "SELECT 1 FROM t WHERE n = 2000000000"
    )


def test_parameters_of_groonga_that_name_columns_stay() -> None:
    kept = (
        "/d/select?table=Docs&drilldowns[k].keys=kind&drilldowns[k].sort_keys=-_nsubrecs&drilldown=kind"
        "&drilldown[x].output_columns=_key&output_columns=_key,title&sort_keys=-_score&sortby=n"
        "&columns[a].stage=filtered&columns[a].type=Int32&match_columns=title||body"
        "&query_flags=ALLOW_PRAGMA|ALLOW_COLUMN&match_escalation=auto"
    )
    assert in_path(kept, NAMES.of) == kept
    told = in_path(kept + "&query=zanzibar&columns[a].value=n*100", NAMES.of)
    assert told.startswith(kept)
    assert "zanzibar" not in told
    assert told.rpartition("=")[2].startswith("n*")


def test_enumerations_of_bodies_stay_and_scripts_that_name_fields() -> None:
    script = {"source": "_score * Math.log(2 + doc['likes'].value) * params.a", "lang": "painless"}
    body = {
        "query": {"script_score": {"query": {"match": {"body": {
            "query": "zanzibar", "operator": "OR", "zero_terms_query": "NONE",
            "fuzziness": "AUTO"}}},
            "script": {**script, "params": {"a": 5, "b": "zanzibar"}}}},
        "aggregations": {"k": {"terms": {"field": "kind", "order": [{"_count": "desc"}]}}},
        "sort": [{"kind": {"order": "asc"}}],
    }  # fmt: skip
    told = in_body(body, NAMES.of)
    assert told["aggregations"] == body["aggregations"]
    assert told["sort"] == body["sort"]
    inner = told["query"]["script_score"]
    match = inner["query"]["match"]["body"]
    assert (match["operator"], match["zero_terms_query"], match["fuzziness"]) == (
        "OR",
        "NONE",
        "AUTO",
    )
    assert inner["script"].items() >= script.items()
    assert inner["script"]["params"]["a"] != 5
    assert "zanzibar" not in json.dumps(told)


def test_forms_that_servers_check_are_kept_and_their_contents_are_not() -> None:
    of = of_numbers_too(NAMES.of)
    for text in ("10.200.3.4", "192.168.255.0/24"):
        told = in_text(text, of)
        assert told != text
        assert all(int(part) <= 255 for part in told.partition("/")[0].split("."))
    uuid = "3f2b8c1a-9d4e-4f6a-8b7c-1d2e3f4a5b6c"
    others = {in_text(uuid[:-1] + last, of) for last in "0123456789abcdef"}
    assert len(others) == 16
    assert uuid not in others
    assert all(len(other) == 36 and int(other.replace("-", ""), 16) for other in others)
    numbers = {in_text(str(n), of) for n in range(2_000_000_000, 2_000_000_300)}
    assert len(numbers) == 300
    assert all(10**9 <= int(n) < 2**31 for n in numbers)
    assert in_text("2026-01-31T10:00:00+09:00 now 2026/01/31", of).endswith("2026/01/31")


# ── what cannot be anonymised ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "body",
    [
        {"query": {"wrapper": {"query": "eyJtYXRjaCI6IHt9fQ=="}}},
        {"query": {"percolate": {"field": "q", "document": {"a": "zanzibar"}}}},
        {"query": {"match": {"body": {"query": "red", "of_a_plugin": "zanzibar"}}}},
        {"query": {"range": {"day": {"gte": "31.01.2026"}}}},
        {"query": {"script": {"script": {"source": "doc['user'].value == 'zanzibar'"}}}},
        {"query": {"term": {"ip": "2001:db8::1"}}},
        {"query": {"match_all": {}}, "retriever": {"standard": {}}},
        {"query": {"geo_bounding_box": {"place": {"top_left": "1,2", "bottom_right": "3,4"}}}},
        {"query": ["zanzibar", {"match": 5}], "sort": {"a": {"nested": "zanzibar"}}},
    ],
)
def test_a_body_whose_words_are_not_told_from_names_is_not_anonymised(body: dict[str, Any]) -> None:
    with pytest.raises(NotAnonymised):
        in_body(body, NAMES.of)


@pytest.mark.parametrize(
    "query",
    ["q={!frange l=4711 u=4712}author", "q=red&sort={!func v=Rumpel}", "q={!geofilt}&pt=45.1,-93.8",
     "q=red&bf=termfreq(author,'zanzibar')", "q=red&fl=[child childFilter=author:zanzibar]"],
)  # fmt: skip
def test_a_function_of_solr_is_not_anonymised(query: str) -> None:
    with pytest.raises(NotAnonymised):
        in_path(f"/solr/films/select?{query}", NAMES.of)


def test_parameters_of_solr_that_say_how_stay() -> None:
    for query in ("fl=*,score&sort=score desc,id asc&qf=title^2 body&mm=2<-25%25 9<-3",
                  "facet=true&facet.field={!ex=dt key=by}author&f.author.facet.limit=20&hl.fl=a,b",
                  "group=true&group.field=author&spellcheck.count=5"):  # fmt: skip
        assert in_path(f"/solr/films/select?{query}", NAMES.of) == f"/solr/films/select?{query}"


@pytest.mark.parametrize("text", ["SELECT 'zanzibar", "SELECT b'0101'", "SELECT U&'\\0441'"])
def test_a_statement_whose_literals_are_not_known_is_not_anonymised(text: str) -> None:
    with pytest.raises(NotAnonymised):
        statement(text)


def test_a_statement_of_a_server_that_is_not_known_is_taken_where_it_means_one_thing() -> None:
    either = ["mysql", "postgresql"]
    assert "zanzibar" not in in_statement("SELECT a FROM t WHERE b = 'zanzibar'", NAMES.of, either)
    for text in ('SELECT a FROM t WHERE "b" = 5', "SELECT a FROM t WHERE b = 'C:\\' AND c = 'x'"):
        with pytest.raises(NotAnonymised):
            in_statement(text, NAMES.of, either)


def test_searches_that_cannot_be_anonymised_are_left_out_and_counted(tmp_path: Path) -> None:
    plain = ['{"query":{"match":{"body":"zanzibar"}}}'] * 3
    given = ['{"query":{"wrapper":{"query":"emFuemliYXI="}}}', *plain,
             '{"query":{"term":{"ip":"2001:db8::1"}}}']  # fmt: skip
    found, told = told_of(tmp_path, SLOW, *given)
    said = json.loads(told)[1]
    assert len(found) == said["searches"] == said["of"] == 3
    reasons = {why: n for why, n in said["left_out"].items() if "anonymised" in why}
    assert sum(reasons.values()) == 2
    assert len(reasons) == 2
    assert said["sentence"].startswith("3 of the log's 5 searches can be asked again")
    assert "1 is left out (cannot be anonymised: an address of IPv6)" in said["sentence"]
    assert said["left_out_share_of_time"] == pytest.approx(0.4)
    assert sum(said["left_out_classes"].values()) == 2
    assert "zanzibar" not in told
    assert "emFuemliYXI" not in told
    with pytest.raises(QueryError, match="none of these searches can be anonymised"):
        told_of(tmp_path, SLOW, given[0])


# ── what only reads ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (PG, "SELECT * INTO foo FROM pages"),
        (PG, "SELECT 1 INTO TABLE foo FROM pages"),
        (PG, "SELECT nextval('s') FROM pages"),
        (PG, "SELECT \"nextval\" ('s') FROM pages"),
        (PG, "SELECT pg_catalog.setval('s', 5) FROM pages"),
        (PG, "SELECT id FROM pages FOR NO KEY UPDATE SKIP LOCKED"),
        (PG, "SELECT id FROM pages WHERE a = 'C:\\' FOR UPDATE"),
        (PG, 'WITH d AS (DELETE FROM "pages" RETURNING id) SELECT id FROM d'),
        (PG, 'WITH d AS (UPDATE "pages" SET a = 1 RETURNING id) SELECT id FROM d'),
        (PG, "SELECT id FROM pages; DROP TABLE pages"),
        (MYSQL, "SELECT id FROM pages INTO OUTFILE '/tmp/x'"),
        (MYSQL, "SELECT id INTO DUMPFILE '/tmp/x' FROM pages"),
        (MYSQL, "SELECT id FROM pages # it's\\n INTO OUTFILE '/tmp/x'".replace("\\n", "\n")),
        (MYSQL, "SELECT id /*!50000 INTO OUTFILE '/tmp/x' */ FROM pages"),
        (MYSQL, "SELECT id FROM pages FOR UPDATE"),
        (MYSQL, "WITH d AS (SELECT 1) DELETE FROM pages"),
    ],
)
def test_what_changes_a_server_is_left_out(tmp_path: Path, line: str, text: str) -> None:
    reads = "/* shop */ SELECT id FROM pages WHERE a = 'into x for update' AND update_time = 'a;b'"
    out = tmp_path / "out.jsonl"
    found = written(log_of(tmp_path, line, reads, text, reads), out)
    assert [one["sql"] for one in found] == [reads, reads]
    why = {reason: n for reason, n in about(out)["left_out"].items() if "read" in reason}
    assert sum(why.values()) == 1, about(out)["left_out"]


def test_signs_that_stay_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, told = told_of(tmp_path, WEB, "/search?q=%F0%9F%8D%95", "/search?q=red", "/search?q=%C3%A9t")
    assert json.loads(told)[1]["anonymised"]["with_signs"] == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "1 search has signs that are neither letters" in said
