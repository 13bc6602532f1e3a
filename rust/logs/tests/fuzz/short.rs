//! Entries of each format in few bytes, with what their reader looks for: those of real logs have
//! hundreds of bytes, of which most are passed over.

use searchbench_logs::format::Format;

/// Lines of real logs are taken as well if they have no more bytes.
pub const SHORT: usize = 240;

pub fn entries(format: Format) -> &'static [&'static str] {
    match format {
        Format::SphinxPlain => &[
            "[Fri Nov 20 20:39:57.402 2026] 0.001 sec 0.002 sec [ext2/0/rel 9 (0,20)] [p] a b\n",
            "[Fri Nov 20 20:39:57.402 2026] 0.001 sec [all/1/ext 0 (0,1000) @g] [p q] a \"b\"~2\n",
        ],
        Format::SphinxQl => &[
            "/* Sun Nov 22 02:59:00.970 2026 conn 5 real 0.001 wall 0.002 found 3 */ SELECT * FROM p \
             WHERE MATCH('a b') LIMIT 0,1000;\n",
            "/* Sun Nov 22 02:59:00.970 2026 conn 5 */ SELECT a FROM; # error=p: syntax error\n",
        ],
        Format::Access => &[
            "::1 - me [22/Nov/2026:11:03:06 +0900] \"GET /s?q=a+b HTTP/1.1\" 200 10 \"-\" \"x\" 0.001\n",
            "www:80 1.2.3.4 - - [22/Nov/2026:11:03:06 +0900] \"POST /s%20/a/_search\" 404 - \"-\" \"x\"\n",
        ],
        Format::MysqlSlow => &[
            "# User@Host: a[a] @ h [1.2.3.4]\n# Query_time: 0.001  Lock_time: 0  Rows_sent: 1  \
             Rows_examined: 2\nuse w;\nSET timestamp=1795312334;\nSELECT 'a' FROM p;\n",
            "# Time: 2026-11-22T10:52:14.123456Z\n# User@Host: a[a] @ h []  Id: 8\n# Query_time: 1.5\n\
             SELECT *\nFROM p WHERE MATCH(b) AGAINST('a');\n",
        ],
        Format::MysqlGeneral => &[
            "261122 10:52:14\t    18 Query\tSELECT 'a' FROM p\n\t\t    18 Quit\t\n",
            "2026-11-22T10:52:14.123456Z\t    8 Execute\tSELECT 1\n\t\t9 Connect\ta@h on w\n",
        ],
        Format::PostgresText => &[
            "2026-11-22 02:56:33.388 CET [3] LOG:  duration: 3.2 ms  statement: SELECT 'a' FROM p\n",
            "2026-11-22 02:56:33 CET [3] a@w LOG:  statement: SELECT 1\n\
             2026-11-22 02:56:33 CET [3] a@w LOG:  duration: 3.2 ms\n",
            "2026-11-22 02:56:33 CET [3]: user=a,db=w,app=x,client=h ERROR:  42601: no\n\
             2026-11-22 02:56:33 CET [3]: user=a,db=w,app=x,client=h STATEMENT:  SELECT\n\t1\n",
            "2026-11-22 02:56:33 CET [3] LOG:  duration: 1.5 ms  bind S: SELECT $1\n\
             2026-11-22 02:56:33 CET [3] LOG:  duration: 0.5 ms  execute S: SELECT $1\n",
        ],
        Format::PostgresCsv => &[
            "2026-11-22 02:56:33.388 CET,\"a\",\"w\",3,,6b,3,,2026-11-22 02:56:33 CET,,0,LOG,00000,\
             \"duration: 3.2 ms  statement: SELECT \"\"a\"\" FROM p\",,,,,,,,,\"x\",\"\",,0\n",
            "2026-11-22 02:56:33.388 CET,,,3,,6b,3,,,,0,ERROR,42601,\"no\",,,,,,\"SELECT\n1\",,,\"\"\n",
        ],
        Format::PostgresJson => &[
            "{\"timestamp\":\"2026-11-22 02:56:46.594 CET\",\"user\":\"a\",\"pid\":3,\"error_severity\":\
             \"LOG\",\"message\":\"duration: 3.2 ms  statement: SELECT \\\"a\\\" FROM p\"}\n",
            "{\"timestamp\":\"2026-11-22 02:56:46 UTC\",\"pid\":3,\"error_severity\":\"ERROR\",\
             \"message\":\"no\",\"statement\":\"SELECT\\n\\u0031\",\"application_name\":\"x\"}\n",
        ],
        Format::Groonga => &[
            "2026-11-22 10:59:09.777281|0x7f|>/d/select?table=P&query=a%20b&limit=5\n\
             2026-11-22 10:59:09.802360|0x7f|:000000025080926 select(32)\n\
             2026-11-22 10:59:09.802755|0x7f|<000000025476466 rc=0\n",
            "2026-11-22 10:59:09.7|1|>select P --filter 'a == \"b\"'\n2026-11-22 10:59:09.8|1|<1 rc=-22\n",
        ],
        Format::SlowPlain => &[
            "[2026-11-22T02:59:00,972][INFO ][i.s.s.query] [n] [p][2] took[501.6micros], took_millis[0], \
             total_hits[3 hits], total_shards[1], source[{\"query\":{\"match\":{\"b\":\"a\"}}}], id[x], \n",
            "[2026-11-22T02:59:00,972][INFO ][c.s.r.slowlog] [n] took[1.2ms], took_millis[1], \
             total_hits[10+ hits], shards[{total:3, failed:1}], source[{\"from\":1}], id[]\n",
        ],
        Format::SlowJson => &[
            "{\"type\": \"index_search_slowlog\", \"timestamp\": \"2026-11-22T02:59:00,970+01:00\", \
             \"component\": \"i.s.s.query\", \"message\": \"[p][0]\", \"took\": \"937.7micros\", \
             \"total_hits\": \"3 hits\", \"total_shards\": \"1\", \"source\": \"{\\\"from\\\":1}\"}\n",
            "{\"@timestamp\":\"2026-11-27T02:47:32.840Z\",\"elasticsearch.slowlog.message\":\"[p][0]\",\
             \"elasticsearch.slowlog.took\":\"1ms\",\"elasticsearch.slowlog.source\":\
             \"{\\\\\\\"query\\\\\\\":{}}\",\"trace.id\":\"1\"}\n",
            "{\"type\": \"search_request_slowlog\", \"took\": \"1s\", \"total_hits\": \"-1\", \"source\": \
             \"{}\", \"shards\": \"{total:3, failed:1}\", \"id\": null}\n",
        ],
        Format::Solr => &[
            "2026-11-22 10:00:00.123 INFO  (q) [c:p s:s1] o.a.s.c.S.Request webapp=/solr path=/select \
             params={q=a+b&rows=10} hits=3 status=0 QTime=5\n",
            "2026-11-22 10:00:00.123 INFO  (q) [   x:p] o.a.s.c.S.Request [p]  webapp=/solr path=/query \
             params={json={\"query\":\"a\"}&isShard=true} status=400 QTime=0\n",
        ],
        Format::Json => &[
            "{\"time\":\"2026-11-22T11:03:06+09:00\",\"request\":\"GET /s?q=a%20b HTTP/1.1\",\"status\":200,\
             \"request_time\":0.001}\n",
            "{\"msec\":1795312986.407,\"took\":5,\"query\":\"red \\u00e9\",\"hits\":3,\"index\":\"p\"}\n",
            "{\"when\":\"2026-11-22T10:00:00Z\",\"took\":5,\"what\":\"red\"}\n",
        ],
        Format::Ltsv => &[
            "time:22/Nov/2026:11:03:06 +0900\treq:GET\turi:/s?q=a\tstatus:200\treqtime:0.001\n",
            "time:2026-11-22T11:03:06Z\tquery:SELECT a FROM p\ttook_ms:5\thits:0\tserver:n\n",
        ],
        Format::Csv => &[
            "when,took,what,status\n2026-11-22 10:00:00,12,\"red, \"\"new\"\" shoes\",200\n",
            "time\tduration_ms\tquery\thits\n2026-11-22T10:00:00Z\t3.5\tred\t7\n",
            "time,request,status\n1795312986.407,GET /s?q=a HTTP/1.1,503\n\"2026-11-22 10:00:02\",/a,200\n",
        ],
        Format::Pattern => &[
            "2026-11-22T10:00:00.123 w \"GET /s?q=a+b HTTP/1.1\" 200 12.5\n",
            "1795312986.407 w \"/\" 503 0\n",
        ],
    }
}
