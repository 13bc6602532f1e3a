"""Logs of a day for those who have none at hand: three servers, two formats, one bad hour.

    search-1/query.log        Sphinx's plain log, generated (``rust/logs`` generate.rs)
    search-2/query.log.1.gz   another server's, rotated and packed, with the bad hour
    web/access.log            a third one's, as the nginx in front of it would have logged it

The same call gives the same bytes.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote_plus

from searchbench import _core
from searchbench.errors import QueryError
from searchbench.whole import beside, not_written

BAD_SERVER, TIMES = "search-2", 10
_BEGIN = datetime(2008, 7, 1, tzinfo=UTC)  # as `logs generate` begins
_BAD = _BEGIN + timedelta(hours=14)
_BUSY = 0.714  # requests over a day, of those that its mean rate would make (generate.rs)
_INDEXES, _DISTINCT = 180, 200_000

_LINE = re.compile(
    rb"\[\w{3} (?P<month>\w{3}) +(?P<day>\d+) (?P<time>(?P<hour>\d\d):[\d:]+)\.\d+ (?P<year>\d+)\] "
    rb"(?P<s>\d+)\.(?P<ms>\d{3}) sec \[\S+ (?P<found>\d+) .*?\] \[\w+\] (?P<words>.*)\n"
)


@dataclass(frozen=True, slots=True)
class Example:
    """What was written. ``begin`` and ``end``: of the bad hour, in UTC, as the logs write it."""

    files: tuple[Path, ...]
    begin: datetime
    end: datetime


def write_example(folder: Path, lines: int) -> Example:
    """Write the logs into ``folder``, so many lines each, over about a day.

    QueryError where they cannot be written.
    """
    rate = lines / (86_400 * _BUSY)
    files = tuple(
        folder / name
        for name in ("search-1/query.log", "search-2/query.log.1.gz", "web/access.log")
    )
    try:
        for number, file in enumerate(files):
            file.parent.mkdir(parents=True, exist_ok=True)
            plain = file if not number else file.with_name(".generated")
            with beside(plain) as part:
                _core.generate_log(
                    str(part), lines=lines, server=number, indexes=_INDEXES, distinct=_DISTINCT,
                    seed=1, start_s=int(_BEGIN.timestamp()), per_s=rate,
                )  # fmt: skip
        _pack(files[1].with_name(".generated"), files[1])
        _as_access_log(files[2].with_name(".generated"), files[2])
    except OSError as error:
        why = not_written(folder, error, "the example", "name another folder")
        raise QueryError(why) from error
    return Example(files, _BAD, _BAD + timedelta(hours=1))


def _pack(plain: Path, packed: Path) -> None:
    """A plain log with the bad hour, packed."""
    # Neither the time nor the name of the file is in it, so that equal logs are equal files.
    with (
        beside(packed) as part,
        part.open("wb") as raw,
        gzip.GzipFile("", "wb", 4, raw, mtime=0) as file,
    ):
        file.writelines(_with_bad_hour(plain))
    plain.unlink()


def _with_bad_hour(plain: Path) -> Iterator[bytes]:
    bad = f"{_BAD.hour:02}".encode()
    day = str(_BAD.day).encode()
    with plain.open("rb") as lines:
        for number, line in enumerate(lines):
            found = _LINE.fullmatch(line)
            if found is None or (found["day"], found["hour"]) != (day, bad):
                yield line
                continue
            # What the log cut off, a part of a millisecond, is made up.
            ms = TIMES * (1000 * int(found["s"]) + int(found["ms"])) + number % TIMES
            yield line[: found.start("s")] + b"%d.%03d" % divmod(ms, 1000) + line[found.end("ms") :]


def _as_access_log(plain: Path, access: Path) -> None:
    """The searches of a plain log as requests to a web server that logs its $request_time."""
    with (
        beside(access) as part,
        plain.open("rb") as lines,
        part.open("wb", buffering=1 << 20) as file,
    ):
        for number, line in enumerate(lines):
            if (found := _LINE.fullmatch(line)) is None:
                continue
            words = quote_plus(found["words"].decode()).encode()
            file.write(
                b'192.0.2.%d - - [%02d/%s/%s:%s +0000] "GET /search?q=%s&page=1 HTTP/1.1" 200 %d '
                b'"-" "Mozilla/5.0" %s.%s\n' % (
                    number % 200 + 1, int(found["day"]), found["month"], found["year"],
                    found["time"], words, 900 + 400 * min(20, int(found["found"])),
                    found["s"], found["ms"],
                )
            )  # fmt: skip
    plain.unlink()
