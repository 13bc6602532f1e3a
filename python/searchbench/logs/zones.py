"""The offsets of a time zone, as the core takes them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from searchbench.errors import QueryError

_FROM, _TO = 1995, 2045  # years


@lru_cache
def offsets(name: str) -> tuple[tuple[int, int], ...]:
    """(from which instant in seconds UTC, seconds east) of a zone; () where no zone is named.

    QueryError where there is no such zone.
    """
    if not name:
        return ()
    try:
        zone = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        close = difflib.get_close_matches(name, sorted(available_timezones()), 1)
        meant = f"; {close[0]} is one" if close else "; name one as Europe/Paris or UTC"
        raise QueryError(f"{name!r} is not a time zone{meant}") from None

    def east(second: int) -> int:
        at = datetime.fromtimestamp(second, UTC).astimezone(zone)
        return int((at.utcoffset() or timedelta()).total_seconds())

    start = int(datetime(_FROM, 1, 1, tzinfo=UTC).timestamp())
    end = int(datetime(_TO, 1, 1, tzinfo=UTC).timestamp())
    found = [(start, east(start))]
    # Offsets change at most once within a week.
    for low in range(start, end, 7 * 86_400):
        high = low + 7 * 86_400
        if east(high) == found[-1][1]:
            continue
        before, after = low, high
        while after - before > 1:
            middle = (before + after) // 2
            before, after = (middle, after) if east(middle) == found[-1][1] else (before, middle)
        found.append((after, east(after)))
    return tuple(found)


def zones_said(said: Iterable[str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """``ZONE`` and ``SERVER=ZONE`` as the zone of all logs and those of single servers.

    QueryError where there is no such zone, or where one is said twice.
    """
    of_all, found = "", dict[str, str]()
    for text in said:
        server, equals, zone = text.rpartition("=")
        if equals and not (server and zone):
            raise QueryError(f"--zone {text}: write NAME=ZONE, as in db1=America/New_York")
        offsets(zone)
        if not equals:
            if of_all:
                raise QueryError(f"--zone: {of_all} and {zone} are both for all logs; write the "
                                 "zone of one server as NAME=ZONE")  # fmt: skip
            of_all = zone
        elif found.setdefault(server, zone) != zone:
            raise QueryError(f"--zone: {server} has two zones, {found[server]} and {zone}")
    return of_all, tuple(sorted(found.items()))
