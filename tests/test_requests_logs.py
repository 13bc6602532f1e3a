import shutil
import socket
import subprocess
import time
import urllib.request
from contextlib import suppress
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchbench.errors import QueryError
from searchbench.workload.verbatim.files import read_requests
from searchbench.workload.verbatim.model import Ask


@pytest.fixture
def read(tmp_path):
    def read(text, form="auto", **options):
        path = tmp_path / "server.log"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_requests(path, form, **options)

    return read


def access(request, stamp="21/Nov/2026:04:02:46 +0000", after='200 5 "-" "curl/7.88"'):
    return f'127.0.0.1 - - [{stamp}] "{request}" {after}\n'


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_listening(port):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)


def reasons(found):
    return {line.line: line.reason for line in found.bad}


def test_an_access_log_gives_paths_and_times(read):
    found = read(
        access("GET /d/select?table=A HTTP/1.1", "21/Nov/2026:04:02:46.250 +0000", "200 5")
        + access("GET /b HTTP/1.0", "21/Nov/2026:13:02:47.000 +0900")
        + access("HEAD /b HTTP/1.1", "21/Nov/2026:04:02:47.500 +0000")
        + access("GET /d/select?table=A HTTP/2.0", "20/Nov/2026:23:02:48.250 -0500")
    )
    assert found.asks == (Ask("/d/select?table=A"), Ask("/b"), Ask("/b", "HEAD"))
    assert found.log.tolist() == [0, 1, 2, 0]
    assert found.times_s.tolist() == [0, 0.75, 1.25, 2]


def test_a_user_in_quotes_and_a_host_before_the_address_do_no_harm(read):
    found = read(
        'www.example:80 ::1 - "a b" [21/Nov/2026:04:02:46 +0000] "GET /a HTTP/1.1" 200 5\n'
        '1.2.3.4 - o\'x [21/Nov/2026:04:02:46 +0000] "GET /b HTTP/1.1" 200 5 "-" "a[b] \\"c"\n',
        "access",
    )
    assert [ask.text for ask in found.asks] == ["/a", "/b"]


def test_requests_of_one_second_are_spread_over_it(read):
    seconds = ["46", "46", "46", "46", "47", "49", "49"]
    found = read(
        "".join(access("GET /a HTTP/1.1", f"21/Nov/2026:04:02:{s} +0000") for s in seconds)
    )
    assert found.times_s.tolist() == [0, 0.25, 0.5, 0.75, 1, 3, 3.5]


def test_a_log_is_sorted_by_the_time_of_the_requests(read):
    found = read(
        access("GET /late HTTP/1.1", "21/Nov/2026:04:02:49 +0000")
        + access("GET /first HTTP/1.1", "21/Nov/2026:04:02:46 +0000")
        + access("GET /late HTTP/1.1", "21/Nov/2026:04:02:47 +0000")
    )
    assert [ask.text for ask in found.asks] == ["/first", "/late"]
    assert found.log.tolist() == [0, 1, 1]
    assert found.times_s.tolist() == [0, 1, 3]


def test_escapes_of_nginx_and_apache_become_bytes_to_be_sent(read):
    found = read(
        access(r"GET /a?q=\xE6\x97\xA5&r=\x22b\x22 HTTP/1.1")
        + access(r"GET /a?q=\"b\"\\c HTTP/1.1")
        + access("GET /a?q=日 HTTP/1.1")
        + access("GET http://other.example/c?d HTTP/1.1")
        + access("GET http://other.example HTTP/1.1")
    )
    assert [ask.text for ask in found.asks] == [
        '/a?q=%E6%97%A5&r="b"',
        '/a?q="b"\\c',
        "/a?q=%E6%97%A5",
        "/c?d",
        "/",
    ]


def test_what_cannot_be_replayed_from_an_access_log_is_left_out_with_the_reason(read):
    found = read(
        access("GET /a HTTP/1.1")
        + access("POST /d/load HTTP/1.1")
        + access("-", after='408 0 "-" "-"')
        + access(r"\x16\x03\x01\x02", after="400 5")
        + access("GET /a b HTTP/1.1", after="400 5")
        + access("GET /d/shutdown HTTP/1.1")
        + access("GET /d/delete.json?table=A&id=1 HTTP/1.1")
        + access("GET /b HTTP/1.1", "yesterday")
        + "garbage\n\n"
    )
    assert [ask.text for ask in found.asks] == ["/a"]
    told = reasons(found)
    assert sorted(told) == [2, 3, 4, 5, 6, 7, 8, 9]
    assert told[2] == "a POST: its body is not in the log"
    assert told[3].startswith("no request of HTTP/1: '-'")
    assert told[5].startswith("a space in the path")
    assert told[6] == "/d/shutdown changes the server; only reads are replayed"
    assert told[7] == "/d/delete changes the server; only reads are replayed"
    assert told[8].startswith("no time: [yesterday]")
    assert told[9].startswith("no line of an access log")


def test_a_log_without_anything_to_replay_is_an_error(read):
    with pytest.raises(QueryError, match=r"1 line is no request.*a POST.*none is left"):
        read(access("POST /d/load HTTP/1.1"))


NGINX = """
daemon off; pid pid; error_log error.log; worker_processes 1;
events { worker_connections 64; }
http { access_log access.log combined; client_body_temp_path b; proxy_temp_path p;
  fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  server { listen 127.0.0.1:PORT; location / { return 204; } } }
"""


@pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx (nginx-light)")
def test_the_log_of_a_real_nginx_gives_back_the_bytes_that_were_asked(tmp_path):
    port = free_port()
    (tmp_path / "nginx.conf").write_text(NGINX.replace("PORT", str(port)))
    server = subprocess.Popen(
        ["nginx", "-p", str(tmp_path), "-c", "nginx.conf", "-e", "error.log"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    asked = ["/a?q=日本", '/b?q="x"\\y', "/c%20d?[e]#f", "/a?q=日本"]
    log = tmp_path / "access.log"
    try:
        await_listening(port)
        for line in [*(f"GET {path} HTTP/1.0" for path in asked), "POST /p HTTP/1.0", "\x16\x03"]:
            with socket.create_connection(("127.0.0.1", port), 30) as connection:
                connection.sendall(line.encode() + b"\r\n\r\n")
                while connection.recv(4096):
                    pass
        deadline = time.monotonic() + 30
        while log.read_bytes().count(b"\n") < 6 and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        server.terminate()
        server.wait(60)
    found = read_requests(log)
    assert [unquote(found.asks[n].text) for n in found.log] == [unquote(path) for path in asked]
    assert [line.reason[:8] for line in found.bad] == ["a POST: ", "no reque"]


# As groonga 13.0.0 wrote it, over HTTP and from its command line.
GROONGA = """\
2026-11-21 04:14:43.530270|0x7f27521fe940|>/d/select?table=Docs&query=a%20b
2026-11-21 04:14:43.535713|0x7f27521fe940|:000000005449350 send(231): 231/231
2026-11-21 04:14:43.535733|0x7f27521fe940|<000000005463780 rc=-63
2026-11-21 04:14:43.551789|0x7f27521fe940|>/d/load?table=Docs
2026-11-21 04:14:43.554633|0x7f27521fe940|:000000002847787 load(1): [0][0][1]
2026-11-21 04:14:43.555971|0x7f27521fe940|<000000004183035 rc=0
2026-11-21 04:14:43.563594|0x7f27521fe940|>/d/select.json?table=Docs&query=日本
2026-11-21 04:14:43.563680|0x7f27521fe940|<000000000087007 rc=-63
2026-11-21 04:14:43.575559|0x7f27521fe940|>/index.html
2026-11-21 04:14:43.584437|0x55e0f0a0a500| query log will be closed: <q.log>
2026-11-21 04:14:44.101893|0x7ffd6d35b050|>select Docs --query "a b"
2026-11-21 04:14:44.102521|0x7ffd6d35b050|>select --table Docs --limit 2
2026-11-21 04:14:44.102625|0x7ffd6d35b050|>status
2026-11-21 04:14:44.530270|0x7ffd6d35b050|>delete Docs --id 1
"""


def test_groongas_query_log_gives_the_commands_that_read(read):
    found = read(GROONGA)
    assert [ask.text for ask in found.asks] == [
        "/d/select?table=Docs&query=a%20b",
        "/d/select.json?table=Docs&query=%E6%97%A5%E6%9C%AC",
        "/d/select?table=Docs&limit=2",
        "/d/status",
    ]
    # The command line's way of writing the first query is the same request.
    assert found.log.tolist() == [0, 1, 0, 2, 3]
    assert found.times_s == pytest.approx([0, 0.033324, 0.571623, 0.572251, 0.572355], abs=1e-6)
    assert reasons(found) == {
        4: "/d/load changes the server; only reads are replayed",
        9: "'/index.html' is a page, not a command",
        14: "/d/delete changes the server; only reads are replayed",
    }


def test_what_is_left_out_of_groongas_log_is_not_among_what_is_asked(read):
    found = read(
        "2026-13-45 20:06:33.301210|7fd8667fe940|>/d/select?table=A\n"
        "2026-11-20 20:06:33.301210|7fd8667fe940|>/d/select?table=B\n"
    )
    assert [ask.text for ask in found.asks] == ["/d/select?table=B"]
    assert reasons(found) == {1: "no time: 2026-13-45 20:06:33.301210"}


@pytest.mark.skipif(shutil.which("groonga") is None, reason="needs groonga (groonga-bin)")
def test_the_log_of_a_real_groonga_replays_what_was_asked(tmp_path):
    port = free_port()
    log = tmp_path / "query.log"
    server = subprocess.Popen(
        ["groonga", "-s", "--protocol", "http", "--bind-address", "127.0.0.1", "-p", str(port),
         "--config-path", "/dev/null", "--log-path", str(tmp_path / "log"),
         "--query-log-path", str(log), "-n", str(tmp_path / "db")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    asked = ["/d/status", "/d/select?table=A&query=%E6%97%A5", "/d/status", "/d/table_list"]
    try:
        await_listening(port)
        for path in ["/d/table_create?name=A&flags=TABLE_NO_KEY", *asked]:
            with suppress(OSError):  # the select has nothing to search in: 400
                urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60).read()
        deadline = time.monotonic() + 30
        while log.read_bytes().count(b"|<") < 5 and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        server.terminate()
        server.wait(60)
    found = read_requests(log)
    assert [found.asks[n].text for n in found.log] == asked
    assert [line.reason for line in found.bad] == [
        "/d/table_create changes the server; only reads are replayed"
    ]
    assert 0 < found.times_s[-1] < 60


SPHINXQL = """\
/* Fri Nov 20 20:40:01.065 2026 conn 6 real 0.002 wall 0.002 found 1 */ SELECT * FROM d WHERE \
MATCH('ge kuv') LIMIT 20,10 OPTION max_matches=500, ranker=none; /* ios=8 kb=158.2 cpums=1.1 \
agents=(0.002, 0.002) */
/* Fri Nov 20 20:40:02.565 2026 conn 6 real 0.000 wall 0.000 found 0 */ SELECT  FROM pages WHERE \
@id=1;
/* Fri Nov 20 20:40:03.065 2026 conn 7 real 0.001 wall 0.001 found 0 */ SELECT * FROM d WHERE \
MATCH('a; /* b */'); /* warning=agent 127.0.0.1:1: connection refused */
/* Fri Nov 20 20:40:04.065 2026 conn 7 real 0.001 wall 0.001 found 0 */ SELECT * FROM none; # \
error=unknown local index 'none' in search request
/* Fri Nov 20 20:40:04.565 2026 conn 7 real 0.001 wall 0.001 found 0 */ SELECT * FROM none; /* \
error=unknown local index */
/* Fri Nov 20 20:40:05.065 2026 conn 7 real 0.001 wall 0.001 found 2 */ SELECT id
FROM d;
/* Fri Nov 20 20:40:06.065 2026 conn 8(127.0.0.1:1) real 0.001 wall 0.001 */ CALL SNIPPETS('a');
/* Fri Nov 20 20:40:06.165 2026 conn 1 */ SELECT a b c # error=sphinxql: syntax error near 'c'
/* Fri Nov 20 20:40:06.265 2026 conn 1 real 0.001 wall 0.001 found 1 */ SELECT id FR
/* Fri Nov 20 20:40:07.065 2026 conn 6 real 0.002 wall 0.002 found 1 */ SELECT id
FROM d;
"""


def test_sphinxs_query_log_gives_the_selects_that_can_be_sent_again(read):
    found = read(SPHINXQL)
    assert [ask.text for ask in found.asks] == [
        "SELECT * FROM d WHERE MATCH('ge kuv') LIMIT 20,10 OPTION max_matches=500, ranker=none",
        "SELECT * FROM d WHERE MATCH('a; /* b */')",
        "SELECT id\nFROM d",
    ]
    assert found.log.tolist() == [0, 1, 2, 2]
    assert found.times_s == pytest.approx([0, 2, 4, 6])
    assert reasons(found) == {
        2: "a SELECT without columns: that is how Sphinx writes an UPDATE; it is not a query",
        4: "it failed: unknown local index 'none' in search request",
        5: "it failed: unknown local index",
        8: "\"CALL SNIPPETS('a')\" is not a SELECT",
        9: "it failed: sphinxql: syntax error near 'c'",
        10: "'SELECT id FR' is cut short: it has no `;`",
    }


MYSQL = """\
/usr/sbin/mysqld, Version: 8.0.36 (MySQL Community Server - GPL). started with:
Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock
Time                 Id Command    Argument
2026-11-20T20:39:57.250000Z\t    8 Connect\troot@localhost on  using Socket
2026-11-20T20:39:57.302123Z\t    8 Query\tSELECT a
FROM t
WHERE b = 'UPDATE t SET'
2026-11-20T21:39:58.302123+01:00\t   18 Execute\tSELECT 1
2026-11-20T20:39:59.000000Z\t    8 Query\tUPDATE t SET a = 1
2026-11-20T20:39:59.000000Z\t    8 Query\tSELECT a FROM t FOR UPDATE
2026-11-20T20:39:59.000000Z\t    8 Query\tWITH x AS (SELECT 1) DELETE FROM t
2026-11-20T20:39:59.000000Z\t    8 Prepare\tSELECT ?
2026-11-20T20:39:59.302123Z\t    8 Query\t(SELECT 1) UNION (SELECT 2)
2026-11-20T20:40:00.302123Z\t    8 Quit\t
"""
# As mariadbd 10.11.19 wrote it; the last three lines with other times.
MARIADB = """\
mariadbd, Version: 10.11.19-MariaDB-0+deb12u1-log (Debian 12). started with:
Tcp port: 0  Unix socket: /run/s
Time\t\t    Id Command\tArgument
261121  4:29:37\t     3 Connect\troot@localhost on  using Socket
\t\t     3 Query\tSELECT 1
\t\t     3 Query\tSELECT 'a
b'
\t\t     3 Query\tCREATE DATABASE d
\t\t     3 Init DB\td
\t\t     3 Query\tPREPARE s FROM 'SELECT * FROM t WHERE a=?'
\t\t     3 Prepare\tSELECT * FROM t WHERE a=?
\t\t     3 Query\tEXECUTE s USING @a
\t\t     3 Execute\tSELECT * FROM t WHERE a=1
\t\t     3 Quit\t
261121  4:29:36\t     4 Query\tSELECT 0
261121 14:29:38\t     4 Query\tSELECT 1
\t\t     4 Quit\t
"""


def test_mysqls_general_log_gives_the_statements_that_read(read):
    found = read(MYSQL)
    assert [ask.text for ask in found.asks] == [
        "SELECT a\nFROM t\nWHERE b = 'UPDATE t SET'",
        "SELECT 1",
        "(SELECT 1) UNION (SELECT 2)",
    ]
    assert found.times_s == pytest.approx([0, 1, 2])
    assert sorted(reasons(found)) == [9, 10, 11]
    assert set(reasons(found).values()) == {
        "'UPDATE t SET a = 1' is not known to only read; only reads are replayed",
        "'SELECT a FROM t FOR UPDATE' is not known to only read; only reads are replayed",
        "'WITH x AS (SELECT 1) DELETE FROM t' is not known to only read; only reads are replayed",
    }


def test_mariadbs_general_log_has_its_times_where_the_second_changes(read):
    found = read(MARIADB)
    assert [found.asks[n].text for n in found.log] == [
        "SELECT 0",
        "SELECT 1",
        "SELECT 'a\nb'",
        "SELECT * FROM t WHERE a=1",
        "SELECT 1",
    ]
    assert found.times_s == pytest.approx([0, 1, 1 + 1 / 3, 1 + 2 / 3, 36002])
    assert [line.reason.split(" is not")[0] for line in found.bad] == [
        "'CREATE DATABASE d'",
        "\"PREPARE s FROM 'SELECT * FROM t WHERE a=?'\"",
        "'EXECUTE s USING @a'",
    ]


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ("access", "no line of an access log"),
        ("groonga", "no line of Groonga's query log"),
        ("sphinxql", "no line of a sphinxql log"),
        ("mysql", "no line of a general log"),
    ],
)
@given(junk=st.binary(max_size=60))
def test_junk_between_the_lines_of_a_log_is_never_more_than_left_out(
    tmp_path_factory, form, reason, junk
):
    good = {
        "access": access("GET /a HTTP/1.1").encode(),
        "groonga": GROONGA.encode(),
        "sphinxql": SPHINXQL.encode(),
        "mysql": MYSQL.encode(),
    }[form]
    path = tmp_path_factory.mktemp("junk") / "server.log"
    path.write_bytes(b"certainly no log\n" + good + b"\n" + junk + b"\n")
    found = read_requests(path, form)
    assert found.logged >= 1
    assert found.bad[0].line == 1
    assert reason in found.bad[0].reason
