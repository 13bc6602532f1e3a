r"""Production logs of SQL as requests: what was asked, and when.

    sphinxql   Sphinx's query log in the format sphinxql
    mysql      the general query log of MySQL and MariaDB

As in logs.py only what reads is taken, and what is left out is counted with its reason;
connects and quits of MySQL are no requests and are not counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from searchbench.workload.verbatim.build import BadRequest, Builder, shown
from searchbench.workload.verbatim.logs import MONTHS, utc
from searchbench.workload.verbatim.model import Ask

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
    r"(?i)\b(?:FOR\s+UPDATE|FOR\s+SHARE|LOCK\s+IN\s+SHARE\s+MODE|INTO\s+(?:OUTFILE|DUMPFILE|@)"
    r"|(?:GET|RELEASE)_LOCK\s*\(|(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+[\w`.]+)"
)
_LITERAL = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`""", re.DOTALL)


def read_sphinxql(lines: Iterable[bytes], builder: Builder) -> None:
    """Sphinx's log of queries in the format sphinxql; SELECTs that can be sent again are taken."""
    clock: dict[bytes, float] = {}
    for number, stamp, statement in _entries(lines, builder):
        at = clock.get(stamp)
        if at is None:
            try:
                at = clock[stamp] = _ctime(stamp)
            except (ValueError, KeyError):
                builder.leave_out(number, f"no time: {stamp.decode()}")
                continue
        known = builder.once(statement, _sphinxql_ask)
        if isinstance(known, str):
            builder.leave_out(number, known)
        else:
            builder.again(known, at)


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
        raise BadRequest("a SELECT without columns: so Sphinx writes an UPDATE; it is no query")
    if not re.match(r"(?i)SELECT\b", statement):
        raise BadRequest(f"{shown(statement)} is no SELECT")
    if error.startswith(b"error="):
        raise BadRequest(f"it failed: {error[6:].decode(errors='replace')}")
    return Ask(statement)


def _ctime(stamp: bytes) -> float:
    """Seconds of ``Fri Nov 20 20:40:01.065 2026``, as if it were UTC."""
    _, month, day, clock, year = stamp.decode("ascii").split()
    hour, minute, second = clock.split(":")
    at = datetime(int(year), MONTHS.index(month) + 1, int(day), int(hour), int(minute), tzinfo=UTC)
    return at.timestamp() + float(second)


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
    if not _READING_SQL.match(text) or _WRITING_SQL.search(_LITERAL.sub("''", text)):
        builder.leave_out(line, f"{shown(text)} is not known to only read; only reads are replayed")
    elif at is None:
        builder.leave_out(line, "it stands before the first time of the log")
    else:
        builder.add(Ask(text), at)


def _mysql_time(stamp: str) -> float:
    if "T" in stamp:
        return datetime.fromisoformat(stamp).timestamp()
    day, clock = stamp.split()
    return utc(f"20{day[:2]}-{day[2:4]}-{day[4:]} {clock:0>8}")
