r"""Production logs as requests: what was asked, and when.

    access     common and combined logs of nginx, Apache and groonga-httpd
    groonga    Groonga's query log: ``2026-11-20 20:06:33.301210|7fd8667fe940|>/d/select?..``
    sphinxql   Sphinx's query log in the format sphinxql
    mysql      the general query log of MySQL and MariaDB

Only what reads is taken: replaying a log must not change the server that it is sent to. A POST's
body is in no log. What is left out is counted with its reason; lines that by their nature are no
requests (steps and ends of Groonga's queries, connects and quits of MySQL) are not.

Logs are written when requests end, some with the time at which they began; so the requests are
sorted by time (stable). Where a log has whole seconds, the requests of a second are spread
evenly over it (``Builder.build``).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import quote, urlencode

from searchbench.workload.queries.sphinx_log import ctime, seconds
from searchbench.workload.verbatim.build import BadRequest, Builder, escape, shown
from searchbench.workload.verbatim.model import Ask

ACCESS = re.compile(
    rb'[^\[]*\[([^\]]+)\] "((?:[^"\\]|\\.)*)"(?: (?:\d{3}|-)| |$)'  # who [time] "request" status
)
GROONGA = re.compile(rb"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+)\|(?:0x)?[0-9a-fA-F]+\|([ >:<])(.*)")

# Commands of Groonga that read (and say nothing about the process that answers).
_READS_SAID = (
    "select logical_select logical_count logical_range_filter logical_shard_list suggest "
    "range_filter status schema table_list column_list object_list object_exist object_inspect "
    "tokenize table_tokenize normalize tokenizer_list normalizer_list index_column_diff "
    "query_expand inspect dump"
)
# Those that change the database or the process, by /d/NAME in any log.
_WRITES_SAID = (
    "load delete truncate table_create table_remove table_rename table_copy column_create "
    "column_remove column_rename column_copy column_create_similar register plugin_register "
    "plugin_unregister logical_table_remove logical_parameters config_set config_delete "
    "object_remove object_set_visibility io_flush defrag lock_acquire lock_clear lock_release "
    "reindex shutdown quit log_level log_put log_reopen cache_limit thread_limit thread_dump "
    "query_log_flags_set query_log_flags_add query_log_flags_remove reference_release "
    "reference_acquire database_unmap ruby_eval ruby_load clearlock restore"
)
_READS = frozenset(_READS_SAID.split())
_WRITES = frozenset(_WRITES_SAID.split())
_SELECT_ORDER = (
    "table", "match_columns", "query", "filter", "scorer", "sortby", "output_columns", "offset",
    "limit", "drilldown", "drilldown_sortby", "drilldown_output_columns", "drilldown_offset",
    "drilldown_limit", "cache", "match_escalation_threshold",
)  # fmt: skip
_COMMAND = re.compile(r"/d/([a-z_]+)(?=[.?/]|$)")
_REQUEST = re.compile(rb"([A-Z]+) (.+) HTTP/\d(?:\.\d)?")
_ESCAPED = re.compile(rb'\\(?:x([0-9A-Fa-f]{2})|([nrtvbf"\\]))')
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v", b"b": b"\b", b"f": b"\f"}
SPHINXQL = re.compile(
    rb"/\* (\w{3} \w{3} +\d+ \d\d:\d\d:\d\d(?:\.\d+)? \d{4}) conn [^*]*\*/ ?(.*)", re.DOTALL
)
SPHINX_PLAIN = re.compile(rb"\[\w{3} \w{3} +\d+ \d\d:\d\d:\d\d(?:\.\d+)? \d{4}\] \d")
MYSQL = re.compile(
    rb"(\d{4}-\d\d-\d\dT\S+|\d{6} +\d{1,2}:\d\d:\d\d|)[ \t]+(\d+) "
    rb"(Query|Execute|Connect|Quit|Init DB|Prepare|Close stmt|Reset stmt|Field List|Statistics"
    rb"|Ping|Change user|Long Data|Fetch|Set option|Shutdown|Kill|Daemon|Refresh|Error|Sleep"
    rb"|Binlog Dump|Binlog Dump GTID|Register Slave|Process list|Debug|Create DB|Drop DB"
    rb"|Delayed insert|Time|Reset Connection|Table Dump|Connect Out)(?:\t| *$)(.*)",
    re.DOTALL,
)
MYSQL_HEAD = re.compile(rb"\S+, Version: |Tcp port: |Time\s+Id\s+Command")
_READING_SQL = re.compile(r"(?is)[\s(]*(?:SELECT|WITH|VALUES|TABLE)\b")
_WRITING_SQL = re.compile(
    r"(?i)\bFOR\s+(?:NO\s+KEY\s+)?UPDATE\b|\bFOR\s+(?:KEY\s+)?SHARE\b"
    r"|\bLOCK\s+IN\s+SHARE\s+MODE\b|\bINTO\b|\bDELETE\s+(?:\w+\s+)*FROM\b|[()]\s*DELETE\b"
    r"|\bUPDATE\s+[\w`.']+|[()]\s*(?:UPDATE|MERGE)\b|\bNEXT\s+VALUE\s+FOR\b"
    # Functions that change something, take a lock, or say something to somebody.
    r"|\b(?:nextval|setval|lastval|set_config|get_lock|release_lock|release_all_locks|pg_notify"
    r"|pg_(?:try_)?advisory\w*|pg_(?:terminate|cancel)_backend|pg_reload_conf|pg_rotate_logfile"
    r"|pg_switch_wal|pg_create_\w+|pg_drop_\w+|pg_logical_\w+|pg_replication_\w+|pg_promote"
    r"|pg_stat_reset\w*|pg_file_\w+|lo_(?:create|creat|import|export|unlink|put|from_bytea|open)"
    r"|lowrite|dblink\w*|query_to_xml\w*|sys_exec|sys_eval|load_file)\s*\("
)
# Literals, names in quotes and comments, which say nothing of what a statement does. But MySQL runs
# what is in /*! .. */.
_ASIDE = {
    "mysql": re.compile(
        r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`|/\*(?!M?!).*?(?:\*/|$)"""
        r"|--(?=\s|$)[^\n]*|\#[^\n]*",
        re.DOTALL,
    ),
    "postgresql": re.compile(
        r"""\b[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?P<name>(?:[^"]|"")*)"|/\*.*?(?:\*/|$)|--[^\n]*"""
        r"|(?P<tag>\$(?:[^\W\d]\w*)?\$).*?(?P=tag)",
        re.DOTALL,
    ),
}


def ask_of_entry(form: str, written: bytes) -> Ask:
    """The request of one entry of a log; BadRequest with the reason where it cannot be sent again.

    ``form``: "access" (``GET /path HTTP/1.1``), "groonga" (a path or a command), "sphinxql" (a
    statement that ends with ``;``), "mysql", "postgresql" (a statement), "sql" (one of either).
    """
    if form not in ("sql", *_ASIDE):
        return {"access": _access_ask, "groonga": _groonga_ask, "sphinxql": _sphinxql_ask}[form](
            written
        )
    try:
        text = written.decode()
    except UnicodeDecodeError:
        raise BadRequest("not UTF-8") from None
    if not _reads(text, *(_ASIDE if form == "sql" else (form,))):
        raise BadRequest("a statement that is not known to only read; only reads are replayed")
    return Ask(text)


def _reads(statement: str, *dialects: str) -> bool:
    """Whether it only reads, whichever of these servers it was asked of."""
    return all(_only_reads(_ASIDE[dialect].sub(_nothing, statement)) for dialect in dialects)


def _nothing(found: re.Match[str]) -> str:
    name = found.groupdict().get("name")
    if name and re.fullmatch(r"\w+", name) and re.match(r"\s*\(", found.string[found.end() :]):
        return str(name)  # a function's
    return " " if found[0].startswith(("/", "-", "#")) else "''"


def _only_reads(bare: str) -> bool:
    each = [part for part in bare.split(";") if part.strip()]
    reads = bool(each) and all(_READING_SQL.match(part) for part in each)
    return reads and not _WRITING_SQL.search(bare)


def read_access(lines: Iterable[bytes], builder: Builder) -> None:
    """A common or combined log; GET and HEAD are taken."""
    for number, raw in enumerate(lines, 1):
        found = ACCESS.match(raw)
        if found is None:
            if raw.strip():
                builder.leave_out(number, 'no line of an access log: ADDRESS - - [TIME] "GET /..')
            continue
        try:
            at = _access_time(found[1])
        except ValueError:
            stamp = found[1].decode(errors="replace")
            builder.leave_out(
                number, f"no time: [{stamp}]; an access log has [21/Nov/2026:04:02:46 +0000]"
            )
        else:
            builder.take(number, found[2], _access_ask, at)


def _access_ask(request: bytes) -> Ask:
    parts = _REQUEST.fullmatch(request)
    if parts is None:
        raise BadRequest(f"no request of HTTP/1: {shown(request.decode(errors='replace'))}")
    method, target = parts[1].decode(), _unescape(parts[2])
    if method not in ("GET", "HEAD"):
        raise BadRequest(f"a {method}: its body is not in the log")
    if not target.startswith(b"/"):
        # A proxy's whole URL; its host is not ours.
        target = re.sub(rb"(?i)^https?://[^/]*", b"", target) or b"/"
    if not target.startswith(b"/"):
        raise BadRequest(f"no path: {shown(target.decode(errors='replace'))}")
    if b" " in target:
        raise BadRequest("a space in the path; no server answers that")
    path = escape(target)
    changes = _COMMAND.match(path)
    if changes and changes[1] in _WRITES:
        raise BadRequest(f"{changes[0]} changes the server; only reads are replayed")
    return Ask(path, method)


def _unescape(target: bytes) -> bytes:
    """The bytes that were asked, from the escapes of nginx and Apache."""
    if b"\\" not in target:
        return target
    return _ESCAPED.sub(
        lambda found: bytes((int(found[1], 16),)) if found[1] else _LETTERS.get(found[2], found[2]),
        target,
    )


@lru_cache
def _access_time(stamp: bytes) -> float:
    """Seconds since 1970 of ``21/Nov/2026:04:02:46.123 +0000``."""
    date, _, rest = stamp.decode("ascii").partition(":")
    clock, _, zone = rest.partition(" ")
    day, month, year = date.split("/")
    offset = int(zone[1:3]) * 3600 + int(zone[3:5]) * 60 if zone else 0
    return seconds(year, month, day, clock) - (-offset if zone.startswith("-") else offset)


def read_groonga(lines: Iterable[bytes], builder: Builder) -> None:
    """Groonga's query log; commands that read are taken, in either way of writing them."""
    for number, raw in enumerate(lines, 1):
        found = GROONGA.match(raw)
        if found is None:
            if raw.strip():
                builder.leave_out(
                    number,
                    "no line of Groonga's query log: 2026-11-20 20:06:33.301210|7fd8667fe940|>..",
                )
            continue
        stamp, kind, command = found.groups()
        if kind != b">":
            continue
        try:
            at = _utc(stamp[:19].decode()) + float(stamp[19:])
        except ValueError:
            builder.leave_out(number, f"no time: {stamp.decode()}")
        else:
            builder.take(number, command, _groonga_ask, at)


def _groonga_ask(command: bytes) -> Ask:
    if not command.startswith(b"/"):
        command = _as_path(command.decode(errors="replace")).encode()
    path = escape(command)
    name = _COMMAND.match(path)
    if name is None:
        raise BadRequest(f"{shown(path)} is a page, not a command")
    if name[1] not in _READS:
        what = "changes the server" if name[1] in _WRITES else "is not known to read"
        raise BadRequest(f"{name[0]} {what}; only reads are replayed")
    return Ask(path)


def _as_path(command: str) -> str:
    """``select Docs --query "a b"`` → ``/d/select?table=Docs&query=a%20b``."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise BadRequest(f"no command: {shown(command)} ({error})") from None
    if not words:
        raise BadRequest("an empty command")
    if words[0] not in _READS:
        return f"/d/{words[0]}"  # is refused by its name
    pairs: list[tuple[str, str]] = []
    at, given = 1, 0
    while at < len(words):
        if words[at].startswith("--"):
            pairs.append((words[at][2:], words[at + 1] if at + 1 < len(words) else ""))
            at += 2
            continue
        if words[0] != "select" or given >= len(_SELECT_ORDER):
            raise BadRequest(f"{shown(command)}: its parameters have no names")
        pairs.append((_SELECT_ORDER[given], words[at]))
        given, at = given + 1, at + 1
    query = urlencode(pairs, quote_via=quote, safe="", errors="replace")
    return f"/d/{words[0]}" + (f"?{query}" if query else "")


def read_sphinxql(lines: Iterable[bytes], builder: Builder) -> None:
    """Sphinx's log of queries in the format sphinxql; SELECTs that can be sent again are taken."""
    for number, stamp, statement in _entries(lines, builder):
        try:
            at = ctime(stamp.decode())
        except ValueError:
            builder.leave_out(number, f"no time: {stamp.decode()}")
        else:
            builder.take(number, statement, _sphinxql_ask, at)


def _entries(lines: Iterable[bytes], builder: Builder) -> Iterable[tuple[int, bytes, bytes]]:
    """(line, time, statement without what follows it); a statement can go over several lines."""
    begun, stamp, parts = 0, b"", list[bytes]()
    for number, raw in enumerate(lines, 1):
        found = SPHINXQL.match(raw)
        if found is not None:
            if begun:
                yield begun, stamp, b"\n".join(parts)
            begun, stamp, parts = number, found[1], [found[2]]
        elif begun:
            parts.append(raw)
        elif raw.strip():
            builder.leave_out(
                number, "no line of a sphinxql log: /* Fri Nov 20 20:40:01.065 2026 conn 6 .. */ .."
            )
    if begun:
        yield begun, stamp, b"\n".join(parts)


def _sphinxql_ask(entry: bytes) -> Ask:
    text = entry.rstrip()
    error = b""
    if text.endswith(b"*/") and (cut := text.rfind(b"; /*")) >= 0:
        text, error = text[: cut + 1], text[cut + 4 : -2].strip()
    elif not text.endswith(b";") and (cut := text.rfind(b" # error=")) >= 0:
        # What could not be parsed has no semicolon either.
        text, error = text[:cut] + b";", text[cut + 3 :]
    if not text.endswith(b";"):
        raise BadRequest(f"{shown(text.decode(errors='replace'))} is cut short: it has no `;`")
    try:
        statement = text[:-1].rstrip().decode()
    except UnicodeDecodeError:
        raise BadRequest("not UTF-8") from None
    if re.match(r"(?i)SELECT\s+FROM\b", statement):
        raise BadRequest(
            "a SELECT without columns: that is how Sphinx writes an UPDATE; it is not a query"
        )
    if not re.match(r"(?i)SELECT\b", statement):
        raise BadRequest(f"{shown(statement)} is not a SELECT")
    if error.startswith(b"error="):
        raise BadRequest(f"it failed: {error[6:].decode(errors='replace')}")
    return Ask(statement)


def read_mysql(lines: Iterable[bytes], builder: Builder) -> None:
    """The general log of MySQL or MariaDB: statements and executions that read.

    MariaDB writes a time only where the second changes; its statements in between have it too.
    The database that a connection chose is not kept: name it in the target.
    """
    at: float | None = None
    begun, statement = 0, b""
    for number, raw in enumerate(lines, 1):
        found = MYSQL.match(raw)
        if found is None:
            if begun:
                statement += b"\n" + raw
            elif raw.strip() and not MYSQL_HEAD.match(raw):
                builder.leave_out(number, "no line of a general log: TIME  ID Query  SELECT ..")
            continue
        if begun:
            _mysql_one(begun, statement, at, builder)
        begun, statement = 0, b""
        if found[1]:
            try:
                at = _mysql_time(found[1].decode("ascii"))
            except ValueError:
                builder.leave_out(number, f"no time: {found[1].decode()}")
                continue
        if found[3] in (b"Query", b"Execute"):
            begun, statement = number, found[4]
    if begun:
        _mysql_one(begun, statement, at, builder)


def _mysql_one(line: int, statement: bytes, at: float | None, builder: Builder) -> None:
    try:
        text = statement.decode()
    except UnicodeDecodeError:
        builder.leave_out(line, "not UTF-8")
        return
    # The head that a restart writes into the log belongs to no statement.
    text = re.split(r"\n\S+, Version: ", text, maxsplit=1)[0].strip()
    if not text:
        return
    if not _reads(text, "mysql"):
        builder.leave_out(line, f"{shown(text)} is not known to only read; only reads are replayed")
    elif at is None:
        builder.leave_out(line, "it stands before the first time of the log")
    else:
        builder.add(Ask(text), at)


def _mysql_time(stamp: str) -> float:
    if "T" in stamp:
        return datetime.fromisoformat(stamp).timestamp()
    day, clock = stamp.split()
    return _utc(f"20{day[:2]}-{day[2:4]}-{day[4:]} {clock:0>8}")


# By the second: parsing a date for each line would be most of the work.
@lru_cache
def _utc(text: str) -> float:
    """Seconds since 1970 of ``2026-11-20 20:06:33``, as if it were UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
