"""Anonymised searches on real servers: each that a server answered before, it answers then too."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from replaying import about, written
from searchbench.engines import ENGINES, defaults, mysql_form
from searchbench.engines import postgres_form as form
from searchbench.engines.engine import Request
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment

pytestmark = pytest.mark.slow
LOGS = Path(__file__).parent / "logs"
WORDS = ("zanzibar", "kilimanjaro")

# What the samples do not have; each has a word of WORDS, and a server takes it.
BODIES: list[dict[str, Any]] = [
    {"query": {"match": {"body": {"query": "zanzibar", "operator": "and", "fuzziness": "AUTO:3,6",
                                  "zero_terms_query": "all", "minimum_should_match": "75%"}}}},
    {"query": {"multi_match": {"query": "zanzibar", "fields": ["title^2", "body"],
                               "type": "phrase_prefix", "analyzer": "standard"}}},
    {"query": {"query_string": {"query": "title:zanzibar~1 AND body:/[a-f]{2,5}anz.*/ OR "
                                "_exists_:kind OR n:[1 TO 5] OR day:[now-1d/d TO now] OR "
                                "zanzibar^2.5",
                                "default_operator": "AND"}}},
    {"query": {"simple_query_string": {"query": "zanz* +\"zanzibar red\"~2 | -blue~1",
                                       "fields": ["body"],
                                       "flags": "OR|AND|PREFIX|PHRASE|SLOP|NOT|FUZZY"}}},
    {"query": {"function_score": {
        "query": {"term": {"kind": "zanzibar"}}, "boost_mode": "multiply", "score_mode": "max",
        "functions": [
            {"filter": {"match": {"title": "zanzibar"}}, "weight": 2},
            {"gauss": {"day": {"origin": "now", "scale": "10d", "offset": "5d", "decay": 0.5}}},
            {"exp": {"place": {"origin": {"lat": 48.85, "lon": 2.29}, "scale": "2km"}}},
            {"field_value_factor": {"field": "n", "factor": 1.2, "modifier": "sqrt", "missing": 1}},
            {"random_score": {"seed": 10, "field": "_seq_no"}}]}}},
    {"query": {"bool": {"filter": [
        {"range": {"day": {"gte": "2026-01-31", "lt": "now+1d/d", "time_zone": "+01:00"}}},
        {"range": {"n": {"from": 12, "to": 2147483647, "include_lower": True}}},
        {"terms": {"kind": ["zanzibar", "news"]}}, {"term": {"ip": "10.200.3.4"}},
        {"term": {"ip": "192.168.0.0/16"}}, {"term": {"n": 2000000000}},
        {"ids": {"values": ["zanzibar"]}}, {"exists": {"field": "title"}},
        {"geo_distance": {"distance": "1km", "place": {"lat": 88.8, "lon": 179.5}}},
        {"regexp": {"kind": {"value": "[a-z]{2,4}zanz", "flags": "ALL",
                             "rewrite": "constant_score"}}},
        {"wildcard": {"kind": {"value": "zanz*bar", "case_insensitive": True}}},
        {"fuzzy": {"kind": {"value": "zanzibar", "fuzziness": 1, "rewrite": "constant_score"}}}],
        "must": [{"dis_max": {"queries": [{"prefix": {"kind": "zanz"}}], "tie_breaker": 0.7}},
                 {"nested": {"path": "said", "score_mode": "avg",
                             "query": {"match_phrase": {"said.by": "zanzibar"}}}}]}}},
    {"query": {"intervals": {"body": {"all_of": {"ordered": True, "intervals": [
        {"match": {"query": "zanzibar", "max_gaps": 0, "ordered": True}},
        {"any_of": {"intervals": [{"match": {"query": "red"}}]}}]}}}}},
    {"query": {"span_near": {"clauses": [{"span_term": {"body": "zanzibar"}},
                                         {"span_term": {"body": "red"}}],
                             "slop": 2, "in_order": False}}},
    {"query": {"more_like_this": {"fields": ["body"], "min_term_freq": 1,
                                  "like": ["zanzibar", {"_index": "pages", "_id": "1"}]}}},
    {"query": {"match": {"body": "zanzibar"}}, "search_after": ["zanzibar", 5],
     "sort": [{"kind": {"order": "desc", "mode": "min", "missing": "_last"}}, {"n": "asc"}]},
    {"query": {"match": {"body": "zanzibar"}},
     "sort": [{"_geo_distance": {"place": [2.29, 48.85], "order": "asc", "unit": "km",
                                 "distance_type": "arc"}}, "_score"]},
    {"query": {"match": {"body": "zanzibar"}}, "_source": {"includes": ["title"]},
     "docvalue_fields": [{"field": "day", "format": "epoch_millis"}], "collapse": {
         "field": "kind", "inner_hits": {"name": "last", "size": 2, "sort": [{"n": "asc"}]}},
     "highlight": {"order": "score", "type": "unified", "pre_tags": ["<b>"],
                   "post_tags": ["</b>"], "fields": {
         "body": {"fragment_size": 20, "highlight_query": {"match": {"body": "zanzibar"}}}}},
     "suggest": {"text": "zanzibar", "near": {"term": {"field": "body", "suggest_mode": "always",
                                                       "sort": "frequency"}}}},
    {"query": {"match": {"body": "zanzibar"}}, "rescore": {
        "window_size": 9, "query": {"score_mode": "total", "rescore_query": {
            "match_phrase": {"body": {"query": "zanzibar red", "slop": 2}}}}}},
    {"size": 0, "query": {"match": {"body": "zanzibar"}}, "aggs": {
        "kinds": {"terms": {"field": "kind", "order": {"_key": "asc"}, "include": "[a-z]+"},
                  "aggs": {"most": {"top_hits": {"size": 1, "sort": [{"n": {"order": "desc"}}]}}}},
        "days": {"date_histogram": {"field": "day", "calendar_interval": "month",
                                    "format": "yyyy-MM", "time_zone": "Europe/Berlin"}},
        "recent": {"date_range": {"field": "day", "ranges": [{"from": "now-10M/M"}]}},
        "sizes": {"range": {"field": "n", "ranges": [{"to": 10}, {"from": 10, "to": 20}]}},
        "shares": {"percentiles": {"field": "n", "percents": [50, 99.9]}},
        "named": {"filters": {"filters": {"a": {"term": {"kind": "zanzibar"}}}}},
        "only": {"filter": {"term": {"kind": "zanzibar"}}, "aggs": {
            "n": {"stats": {"field": "n"}}}},
        "pages": {"composite": {"sources": [{"k": {"terms": {"field": "kind"}}}],
                                "after": {"k": "zanzibar"}}}}},
]  # fmt: skip

STATEMENTS = [
    "SELECT id FROM pages WHERE tsv @@ plainto_tsquery('english', 'zanzibar') ORDER BY 1 LIMIT 5",
    "SELECT id FROM pages WHERE tsv @@ to_tsquery('english'::regconfig, 'zanzibar:AB & "
    "red <-> b:*')",
    "SELECT ts_headline('english', body, websearch_to_tsquery('english', 'zanzibar -red'), "
    "'MaxWords=35, MinWords=15, StartSel=<b>') FROM pages",
    "SELECT ts_headline(body, phraseto_tsquery('zanzibar')) FROM pages",
    "SELECT ts_rank('{0.1, 0.2, 0.4, 1.0}', setweight(to_tsvector('simple', title), 'A'), q, 32) "
    "FROM pages, (SELECT 'zanzibar & red:B'::tsquery q) s WHERE to_tsvector('simple', body) @@ q",
    "SELECT kind, title, count(*) FROM pages WHERE body ILIKE '%zanzibar%' GROUP BY 1, 2 "
    "HAVING count(*) > 10 ORDER BY 3 DESC, 1 OFFSET 5 LIMIT 10",
    "SELECT date_trunc('month', day), to_char(day, 'YYYY-MM') FROM pages WHERE kind = 'zanzibar' "
    "AND day > now() - interval '7 days' AND day < '2026-01-31 10:00:00+09'::timestamptz",
    "SELECT id FROM pages WHERE data->>'author' = 'zanzibar' AND "
    "data @> '{\"kind\": \"zanzibar\"}'",
    "SELECT id FROM pages WHERE uid = '3f2b8c1a-9d4e-4f6a-8b7c-1d2e3f4a5b6c' AND "
    "title = 'zanzibar'",
    "SELECT id FROM pages WHERE addr <<= '192.168.0.0/16' AND paid = 't' AND "
    "title ~ '^[a-z]{2,5}zanzibar'",
    "SELECT regexp_replace(title, 'zanzibar', 'red', 'gi'), CAST(id AS numeric(10,2)) FROM pages "
    "WHERE id = 2000000000 OR id IN (1999999999, 3)",
    "SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY id) FROM pages WHERE title = 'zanzibar'",
    "SELECT id FROM pages WHERE title = 'C:\\' AND kind = 'zanzibar' AND tags && '{zanzibar,b}'",
    "SELECT id FROM pages WHERE day AT TIME ZONE 'Europe/Berlin' > '2026-01-31' AND "
    "kind = E'zanz\\'ibar'",
    "SELECT id FROM pages /* zanzibar */ WHERE kind = $q$zanzibar$q$ -- kilimanjaro",
]  # fmt: skip

TABLES = """
CREATE TABLE pages (id int, title text, body text, kind text, tsv tsvector, day timestamptz,
                    data jsonb, uid uuid, addr inet, paid bool, tags text[]);
CREATE TABLE items (id int, name text, tsv tsvector);
INSERT INTO pages
VALUES (1, 'red', 'zanzibar', 'news', 'red', now(), '{}', null, '10.0.0.1', true, '{a}')
"""

OF_MARIADB = [
    "SELECT id FROM pages WHERE MATCH(body) AGAINST('+zanzibar -red \"a b\"' IN BOOLEAN MODE) "
    "ORDER BY 1",
    "SELECT kind, COUNT(*) FROM pages WHERE title = \"zanzibar\" GROUP BY 1 "
    "ORDER BY 2 DESC LIMIT 5, 10",
    "SELECT id FROM pages # kilimanjaro's\n WHERE title = 'zanz\\'ibar' -- zanzibar",
    "SELECT DATE_FORMAT(day, '%Y-%m'), CAST(id AS DECIMAL(10,2)) FROM pages WHERE title = "
    "'zanzibar' AND day > NOW() - INTERVAL 7 DAY",
    "SELECT id FROM pages WHERE title REGEXP '^[a-z]{2,5}zanzibar' AND id = 5--3 "
    "AND kind = x'7a616e7ac3a4' AND title = 0x7a616e AND id <> 0x1f",
]  # fmt: skip

TABLES_OF_MARIADB = [
    "CREATE TABLE pages (id int, title text, body text, kind text, day datetime, FULLTEXT (body), "
    "FULLTEXT (title)) ENGINE=MyISAM",
    "CREATE TABLE items (id int, name text, FULLTEXT (name)) ENGINE=MyISAM",
]

COMMANDS = [
    "/d/select?table=Pages&match_columns=title||body&query=zanzibar&sort_keys=-_score,_key"
    "&output_columns=_key,title,snippet_html(body)&limit=3",
    "/d/select?table=Pages&query=title:@zanzibar+OR+body:@red&query_flags=ALLOW_PRAGMA|ALLOW_COLUMN"
    "&drilldown=kind&drilldown_sort_keys=-_nsubrecs&drilldown_output_columns=_key,_nsubrecs",
    "/d/select?table=Pages&filter=body+@+%22zanzibar%22+%26%26+between(n,1,%22include%22,50,"
    "%22exclude%22)&drilldowns[k].keys=kind&drilldowns[k].sort_keys=_key"
    "&drilldowns[k].output_columns=_key&columns[big].stage=filtered&columns[big].type=Int32"
    "&columns[big].value=n*10&sort_keys=big",
    "/d/select?table=Pages&filter=query(%22title||body%22,%22zanzibar%22)&scorer=_score%3Dn"
    "&match_escalation=auto",
    "/d/select?table=Pages&filter=fuzzy_search(kind,%22zanzibar%22,{%22max_distance%22:1})",
    "/d/select?table=Pages&filter=day%3E%222026/01/31+10:00:00%22+%26%26+kind%3D%3D%22zanzibar%22",
]


@contextmanager
def started(name: str, place: Path) -> Iterator[Deployment]:
    engine = ENGINES[name]
    if lacking := missing(engine):
        pytest.skip(f"no {name} here: {lacking}")
    with Deployment(engine, defaults(engine), place / "data", place / "run") as server:
        yield server


def http(server: Deployment, line: dict[str, Any]) -> tuple[int, str]:
    body = json.dumps(line["body"]).encode() if "body" in line else None
    url = "http://{}:{}".format(*server.target) + line["path"]
    method = line.get("method", "GET" if body is None else "POST")
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def answered_alike(
    logs: list[Path], place: Path, ask: Callable[[dict[str, Any]], str], least: int
) -> None:
    """``ask`` gives "" where a server answered, and its complaint else."""
    good = 0
    for log in logs:
        plain = written(log, place / "plain.jsonl")
        other = written(log, place / "other.jsonl", "--anonymise")
        assert len(other) == len(plain), about(place / "other.jsonl")["left_out"]
        told = json.dumps(other).lower()
        assert not any(word in told for word in WORDS)
        complaints = []
        for before, after in zip(plain, other, strict=True):
            if ask(before):
                continue
            good += 1
            if complaint := ask(after):
                complaints.append((complaint[:300], before, after))
        assert not complaints, complaints[0]
    assert good >= least


def test_opensearch_answers_all_that_it_answered(tmp_path: Path) -> None:
    line = ("[2026-11-22T02:59:00,{n:03}][INFO ][i.s.s.query] [node-1] [pages][0] took[9micros], "
            "took_millis[0], total_hits[1 hits], stats[], search_type[QUERY_THEN_FETCH], "
            "total_shards[1], source[{body}], id[], \n")  # fmt: skip
    own = tmp_path / "own.log"
    own.write_text("".join(line.format(n=n, body=json.dumps(b)) for n, b in enumerate(BODIES)))
    fields = {"body": "text", "title": "text", "kind": "keyword", "n": "integer", "day": "date",
              "place": "geo_point", "ip": "ip"}  # fmt: skip
    mapping: dict[str, Any] = {name: {"type": kind} for name, kind in fields.items()}
    mapping["said"] = {"type": "nested", "properties": {"by": {"type": "text"}}}
    with started("opensearch", tmp_path) as server:

        def ask(line: dict[str, Any]) -> str:
            status, reply = http(server, line)
            return "" if status == 200 and '"failed":0' in reply else reply

        for index in ("pages", "shop-1"):
            settings = {"settings": {"number_of_replicas": 0}, "mappings": {"properties": mapping}}
            made = {"path": f"/{index}", "method": "PUT", "body": settings}
            assert http(server, made)[0] == 200
            document = {"body": "zanzibar red", "title": "red", "kind": "news", "n": 3,
                        "day": "2026-01-31", "place": [1, 2], "ip": "10.0.0.1"}  # fmt: skip
            path = f"/{index}/_doc/1?refresh=true"
            assert http(server, {"path": path, "method": "PUT", "body": document})[0] == 201
        given = [{"path": "/pages/_search", "body": body} for body in BODIES]
        assert not [refused for line in given if (refused := ask(line))]
        logs = [own, LOGS / "opensearch-slow.log", LOGS / "opensearch-slow.json"]
        answered_alike(logs, tmp_path, ask, 60)


def test_postgresql_answers_all_that_it_answered(tmp_path: Path) -> None:
    own = tmp_path / "own.log"
    line = "2026-11-22 10:00:{n:02}.000 UTC [12] LOG:  duration: 1.2 ms  statement: {sql}\n"
    own.write_text("".join(line.format(n=n, sql=sql) for n, sql in enumerate(STATEMENTS)))
    with started("postgresql", tmp_path) as server:

        def ask(line: dict[str, Any]) -> str:
            if "sleep" in line["sql"] or "\0" in line["sql"]:
                return "is not asked"
            reply = server.ask(Request((form.query(line["sql"]),)))
            return str([answer.errors for answer in form.split(reply) if answer.errors] or "")

        assert not ask({"sql": TABLES})
        assert not [(sql, refused) for sql in STATEMENTS if (refused := ask({"sql": sql}))]
        logs = [own, *sorted(LOGS.glob("postgresql-stderr*.log")), LOGS / "postgresql-jsonlog.json"]
        answered_alike(logs, tmp_path, ask, 80)


def test_mariadb_answers_all_that_it_answered(tmp_path: Path) -> None:
    own = tmp_path / "general.log"
    line = "2026-11-22T10:00:{n:02}.000000Z\t   12 Query\t{sql}\n"
    own.write_text("".join(line.format(n=n, sql=sql) for n, sql in enumerate(OF_MARIADB)))
    with started("mariadb", tmp_path) as server:

        def ask(line: dict[str, Any]) -> str:
            if "SLEEP" in line["sql"]:
                return "is not asked"
            results = mysql_form.split(server.ask(Request((mysql_form.query(line["sql"]),))))
            return str([result.error for result in results if result.error] or "")

        for made in TABLES_OF_MARIADB:
            assert not ask({"sql": made})
        assert not [(sql, refused) for sql in OF_MARIADB if (refused := ask({"sql": sql}))]
        answered_alike([own, LOGS / "mariadb-slow.log", LOGS / "mariadb-general.log"],
                       tmp_path, ask, 60)  # fmt: skip


def test_groonga_answers_all_that_it_answered(tmp_path: Path) -> None:
    own = tmp_path / "own.log"
    at = "2026-11-22 10:00:{n:02}.000"
    line = at + "000|0x7f|>{command}\n" + at + "900|0x7f|<000900 rc=0\n"
    own.write_text("".join(line.format(n=n, command=it) for n, it in enumerate(COMMANDS)))
    columns = {"title": "Text", "body": "Text", "kind": "ShortText", "n": "Int32", "day": "Time"}
    with started("groonga", tmp_path) as server:

        def ask(line: dict[str, Any]) -> str:
            status, reply = http(server, {"path": line["path"]})
            return "" if status == 200 else reply

        made = ["table_create?name=Pages&flags=TABLE_HASH_KEY&key_type=ShortText"]
        made += [f"column_create?table=Pages&name={name}&flags=COLUMN_SCALAR&type={kind}"
                 for name, kind in columns.items()]  # fmt: skip
        assert not [refused for it in made if (refused := ask({"path": f"/d/{it}"}))]
        assert not [(it, refused) for it in COMMANDS if (refused := ask({"path": it}))]
        answered_alike([own, LOGS / "groonga-query.log"], tmp_path, ask, 25)
