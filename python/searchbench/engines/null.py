"""The null host: a known answer after a known delay, the instrument's own test weight."""

from __future__ import annotations

from searchbench.engines.engine import Capabilities, Parameter
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
    parameters = (
        Parameter(
            "delay_us",
            int,
            0,
            "time between request and reply, microseconds",
            minimum=0,
            maximum=60_000_000,
        ),
        Parameter("bytes", int, 64, "size of the reply's payload", minimum=32, maximum=1_000_000),
        Parameter(
            "stall_every_ms", int, 0, "period of stalls; 0: none", minimum=0, maximum=3_600_000
        ),
        Parameter(
            "stall_ms",
            int,
            0,
            "length of a stall: no reply leaves in it",
            minimum=0,
            maximum=3_600_000,
        ),
        Parameter(
            "total", int, 0, "the total that every query is told", minimum=0, maximum=1_000_000_000
        ),
        Parameter(
            "workers",
            int,
            0,
            "requests served at a time, `delay_us` each, the others in line; 0: each delayed alone",
            minimum=0,
            maximum=65_536,
        ),
    )
