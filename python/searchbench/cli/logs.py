"""``searchbench logs``: what production's query logs say."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from searchbench.cli.flags import Flag, Json, Texts, flowing
from searchbench.cli.logs_demo import demo

if TYPE_CHECKING:
    from searchbench.logs.counts import Options

app = App(
    name="logs",
    help="Report what production's query logs contain: times, classes, repetition, errors.",
    help_format="plaintext",
)
app.command(demo)


@app.default
@flowing
def logs(
    *files: Annotated[Path, Parameter(allow_leading_hyphen=True)],
    record: Path | None = None,
    page: Path | None = None,
    zone: Texts = None,
    since: str = "",
    until: str = "",
    log_format: Annotated[str, Parameter(name="--format")] = "",
    line: str = "",
    column: Texts = None,
    parameter: Texts = None,
    unit: str = "",
    server: str = "",
    sizes: Path | None = None,
    published: Path | None = None,
    threads: int = 0,
    distinct: int = 10_000_000,
    queries: Path | None = None,
    cut: str = "",
    anonymise: Flag = False,
    key: Path | None = None,
    documents: Path | None = None,
    field: Texts = None,
    against: Path | None = None,
    live: Flag = False,
    spark: str = "",
    as_json: Json = False,
) -> int:
    """Read query logs of search systems, databases and web servers, and say what is in them.

    Formats are recognized by content. One call may read several formats, files packed with gzip or
    zstd, and standard input (-). docs/LOGS.md says what each format can and cannot tell.

    Parameters
    ----------
    files
        Logs, or folders with logs.
    record
        Keep the counts in this folder. The next call reads only what is new in the files, and adds
        it: the answer is the same as if everything were read at once.
    page
        Write the page to this file; by default, --record writes it into its folder. With --queries,
        --cut or --against it is the page about these.
    zone
        The time zone of logs that do not name theirs, such as Europe/Paris; for one server's logs
        NAME=ZONE, as in db1=America/New_York. May be given several times. Without it, times are
        shown as written.
    since
        Count only what began at this time or later: 2026-11-22T10:00, or a day (2026-11-22). Write
        the time as the page shows it: in UTC if the zone of a log is known, else as the log has it.
    until
        Count only what began before this time. Neither option goes with --record or --live.
    log_format
        The format of all files, if it cannot be recognized from their content.
    line
        A format string: {time} {server} "{text}" {status} {_} {duration:ms}. Fields: time,
        duration, text, request, index, class, hits, status, user, server; {_} is skipped.
    column
        What a column of JSON lines, LTSV or CSV is: NAME=ROLE or NAME=ROLE:UNIT, as in
        elapsed=duration:ms. May be given several times. NAME=line is the column of Parquet files
        that has the lines of a log; value by default.
    parameter
        A parameter of a path that holds the words searched for; q, query and others by default.
        May be given several times.
    unit
        The unit of durations without a point in access logs: s, ms or us (Apache's %D; default).
    server
        The name of the server; the file or its folder by default.
    sizes
        The sizes of indexes: a folder of Sphinx's index files, or a file with a NAME and BYTES on
        each line.
    published
        What somebody published about such a log, as a TOML file. Each statement is set beside
        what this log has: the same, differs, or cannot be told here.
    threads
        How many cores to use; all by default.
    distinct
        How many distinct queries are counted exactly. Ten million need 1.5 GB.
    queries
        Write the searches to this file (OUT.jsonl), which a study replays at the log's own times.
        What the log does not say about them is printed, and written to OUT.jsonl.about.json.
    cut
        With --queries: only the shortest cut that stands for the whole log within stated bounds:
        auto, or at most a number of searches (20000) or a time (600s, 30min, 2h).
    anonymise
        With --queries: replace each word and number by another one, always the same one, of
        similar frequency and equal length. docs/LOGS.md says what this does not protect.
    key
        With --anonymise: keep the key in this file, which is made if it is not there, so that later
        files get the same replacements. Whoever has it can undo them.
    documents
        With --anonymise: documents as JSON lines, or lines with a word and the number of documents
        that have it. Words are then replaced by words that as many documents have.
    field
        With --queries: what a field that words are looked for in is called in the study's
        documents, as in f_title=title; f_title= means all fields. May be given several times.
    against
        Compare the log's times with those of this record of a study: does the laboratory tell the
        truth about production?
    live
        Follow the logs while they grow: show rate, quantiles, errors and classes of the last minute
        and since the start, and after Ctrl-C the usual report. Lines that are in the files already
        are not read.
    spark
        Read the files on the executors of this Spark master: local[4], spark://HOST:7077, yarn. The
        answer is the same as that of one machine. Needs searchbench[spark] and Java.
    as_json
        Print JSON.
    """
    from searchbench.cli.flags import insist_on_memory

    insist_on_memory()
    from searchbench.analysis.logs.judge import judge_log
    from searchbench.cli.logs_again import Wanted, again
    from searchbench.errors import SearchbenchError
    from searchbench.lab.spark.reading import OnSpark
    from searchbench.logs import record as records
    from searchbench.logs.counts import PARAMETERS, Counting, Options, count
    from searchbench.logs.pieces import in_any_order
    from searchbench.logs.rotated import in_order
    from searchbench.logs.sizes import sizes_of
    from searchbench.logs.sources import Source, find
    from searchbench.logs.within import within_said
    from searchbench.logs.zones import zones_said
    from searchbench.study.published import read_published
    from searchbench.terminal import logs as shown
    from searchbench.terminal import out

    # "-" is a file; whatever else begins so was meant as an option.
    if wrong := next((str(f) for f in files if str(f)[0] == "-" != str(f)), None):
        raise SearchbenchError(
            f"there is no option {wrong}; see `searchbench logs --help` (a file of that name is "
            f"./{wrong})"
        )
    columns = [_column(text) for text in column or ()]
    lines = [name for name, role, _ in columns if role == "line"]
    if len(lines) > 1:
        raise SearchbenchError(f"--column: {lines[0]} and {lines[1]} are both to be the line; name "
                               "one of them")  # fmt: skip
    if threads < 0:
        raise SearchbenchError(f"--threads {threads}: write how many cores to use, or 0 for all")
    if distinct < 1:
        raise SearchbenchError(f"--distinct {distinct}: write how many distinct queries are to be "
                               "counted exactly, 1 or more")  # fmt: skip
    of_all, zones = zones_said(zone or ())
    options = Options(
        zone=of_all,
        zones=zones,
        format=log_format,
        unit=unit,
        parameters=tuple(parameter or PARAMETERS),
        columns=tuple(found for found in columns if found[1] != "line"),
        line=line,
        threads=threads,
        distinct=distinct,
        within=within_said(since, until),
    )
    if options.within and (record is not None or live):
        raise SearchbenchError(
            "--live shows what comes from now on: leave out --since and --until"
            if live
            else "--record keeps all of a log, so that days add up: leave out --since and --until, "
            "or leave out --record"
        )
    wanted = Wanted(queries, cut, anonymise, key, documents, against, tuple(field or ()), page)
    wanted.check()
    said = read_published(published) if published else None
    if said and (live or queries is not None or against is not None):
        raise SearchbenchError("--published is about a whole log: leave out --live, --queries and "
                               "--against")  # fmt: skip
    if queries is not None or against is not None:
        if live:
            raise SearchbenchError("--live is about a log that grows; --queries and --against need "
                                   "all of it: leave one out")  # fmt: skip
        if record is not None:
            raise SearchbenchError(
                "--queries and --against need the log itself, and make no record of it: leave out "
                "--record"
            )
        if spark:
            raise SearchbenchError(
                "--spark counts logs; --queries and --against read them in their order on one "
                "machine: leave out --spark"
            )
        found = in_order(find(files, server, *lines), options)
        return again(found, options, wanted, as_json=as_json)
    if spark and (threads or not files):
        raise SearchbenchError(
            "--threads is for one machine; with --spark the master says how many cores there are"
            if threads
            else "--spark reads logs: name a file or a folder"
        )
    counting: Counting = OnSpark(spark) if spark else count
    known = sizes_of(sizes) if sizes else {}
    if live:
        if record is not None:
            raise SearchbenchError(
                "--live keeps no record: leave out --record, or add the files to it afterwards"
            )
        if spark:
            raise SearchbenchError("--live follows files on this machine: leave out --spark")
        from searchbench.cli.logs_live import live as follow

        def now() -> list[Source]:
            return find(files, server, *lines, growing=True)

        # A file that is named is followed by its name; what comes into a folder is new.
        more = now if any(file.is_dir() for file in files) else None
        return follow(now(), options, page, known, as_json=as_json, again=more)
    began = time.monotonic()
    tick = None if as_json or not sys.stderr.isatty() else shown.Ticking()
    new: dict[str, list[str]] = {}
    if record is not None:
        if not files:
            kept = records.open_log(record)
            options = _as_kept(kept.about["options"])
        else:
            kept = records.add(record, find(files, server, *lines), options, tick, counting)
            new = kept.about["increments"][-1]["new"]
        counts = kept.counts
    else:
        found = in_order(find(files, server, *lines), options)
        counts = counting(found, options, on_tick=tick)
    if tick:
        tick.end()
    if isinstance(counting, OnSpark):
        shown.spark(counting.tasks, counting.again, same=in_any_order(counts))
    judged = judge_log(
        counts, zone=options.zone, zones=options.zones, sizes=known, new=new, published=said,
        within=options.within,
    )  # fmt: skip
    target = page or (record / "report" / "logs.html" if record is not None else None)
    if target is not None:
        from searchbench.errors import RecordError
        from searchbench.report.write import write_log_page

        try:
            write_log_page(judged, target)
        except RecordError as error:
            if record is None:
                raise
            raise RecordError(
                f"{error} (the record is whole: `searchbench logs --record {record}` writes its "
                "page without reading the logs again)"
            ) from error
    if as_json:
        from searchbench.analysis.logs.as_json import as_json as plain

        out.as_json(plain(judged))
    else:
        shown.show(judged, time.monotonic() - began, target)
    return 0 if judged.all is not None else 1


@app.command
@flowing
def generate(
    out: Annotated[str, Parameter(allow_leading_hyphen=True)],
    *,
    lines: int = 1_000_000,
    server: int = 0,
    servers: int = 0,
    indexes: int = 180,
    distinct: int = 5_000_000,
    seed: int = 1,
    start: str = "2008-07-01",
    rate: float = 10.0,
) -> int:
    """Write a log in Sphinx's plain format with the properties published for 453 million queries.

    60 % of the times are within 0.01 s, 80 % within 0.1 s and 99 % within 0.5 s, in three bands;
    few words are fastest, 6 to 50 slowest. The rest was not published, and is our choice
    (docs/LOGS.md).

    Parameters
    ----------
    out
        The file to write, or - for standard output; with --servers, a new folder.
    lines
        How many lines, of all servers together.
    server
        The number of the server; each number gives other lines.
    servers
        Write the logs of so many servers into a folder (server-00.log ..), and the sizes of the
        indexes, as --sizes reads them (indexes.sizes).
    indexes
        How many indexes.
    distinct
        The number of distinct queries to draw from.
    seed
        The same seed gives the same log.
    start
        The day of the first line.
    rate
        Queries a second, on average.
    """
    from contextlib import nullcontext
    from datetime import UTC, datetime

    from searchbench import _core
    from searchbench.errors import QueryError
    from searchbench.logs.servers import write_servers
    from searchbench.whole import beside, not_written

    if out.startswith("-") and out != "-":
        raise QueryError(
            f"there is no option {out}; see `searchbench logs generate --help` (a file of that "
            f"name is ./{out})"
        )
    try:
        first = datetime.fromisoformat(start).replace(tzinfo=UTC)
    except ValueError:
        raise QueryError(f"{start!r} is not a date; write it as 2008-07-01") from None
    if lines < 0 or indexes < 1 or distinct < 2 or not rate > 0 or servers < 0:
        raise QueryError("lines and servers must not be negative, indexes 1 or more, distinct 2 or "
                         "more, and the rate above 0")  # fmt: skip
    if servers and (server or out == "-"):
        instead = "leave out --server" if server else "name one in place of -"
        raise QueryError(f"--servers writes a folder with a log of each server: {instead}")

    def write(path: str, number: int, many: int) -> None:
        with nullcontext(path) if path == "-" else beside(Path(path)) as place:
            generated(str(place), number, many)

    def generated(place: str, number: int, many: int) -> None:
        _core.generate_log(
            place,
            lines=many,
            server=number,
            indexes=indexes,
            distinct=distinct,
            seed=seed,
            start_s=int(first.timestamp()),
            per_s=rate,
        )

    try:
        if servers:
            write_servers(Path(out), servers, lines, indexes, write)
        else:
            write(out, server, lines)
    except OSError as error:
        raise QueryError(not_written(out, error, "the log")) from error
    return 0


def _column(text: str) -> tuple[str, str, str]:
    from searchbench.errors import QueryError

    name, equals, rest = text.partition("=")
    role, _, unit = rest.partition(":")
    if not equals or not name or not role:
        raise QueryError(f"--column {text}: write NAME=ROLE, as in elapsed=duration:ms")
    return name, role, unit


def _as_kept(kept: dict[str, Any]) -> Options:
    from searchbench.logs.counts import Options

    zones = tuple((server, zone) for server, zone in kept.get("zones", ()))
    return Options(zone=kept["zone"], zones=zones, unit=kept["unit"], line=kept["line"])
