"""The null host: a known answer after a known delay, the instrument's own test weight."""

from __future__ import annotations

from searchbench.engines.engine import Capabilities, levers, number
from searchbench.engines.frames import LibraryHost


class Null(LibraryHost):
    """Finds nothing, very exactly. What is measured on it is searchbench itself."""

    name = "null"
    can = Capabilities(
        title="null host",
        home="",
        keeps_index=False,
        cannot={"snippets": "never: it has no text, only a size of reply"},
        deviations={"results": "every query has the same, declared total and no hits"},
    )
    parameters = levers(
        delay_us=number(0, (0, 60_000_000), "time between request and reply, microseconds"),
        bytes=number(64, (32, 1_000_000), "size of the reply's payload"),
        stall_every_ms=number(0, (0, 3_600_000), "period of stalls; 0: none"),
        stall_ms=number(0, (0, 3_600_000), "length of a stall: no reply leaves in it"),
        total=number(0, (0, 1_000_000_000), "the total that every query is told"),
        workers=number(
            0,
            (0, 65_536),
            "requests served at a time, `delay_us` each, the others in line; 0: each delayed alone",
        ),
    )
