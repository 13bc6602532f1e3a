"""The null host: a known answer after a known delay, the instrument's own test weight."""

from __future__ import annotations

from searchbench.engines.engine import Capabilities
from searchbench.engines.frames import LibraryHost
from searchbench.engines.levers import described, number


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
    parameters = described(
        {
            number("delay_us", 0, (0, 60_000_000)): "time between request and reply, microseconds",
            number("bytes", 64, (32, 1_000_000)): "size of the reply's payload",
            number("stall_every_ms", 0, (0, 3_600_000)): "period of stalls; 0: none",
            number("stall_ms", 0, (0, 3_600_000)): "length of a stall: no reply leaves in it",
            number("total", 0, (0, 1_000_000_000)): "the total that every reply reports",
            number("workers", 0, (0, 65_536)): "requests served at a time, `delay_us` each, the "
            "others in line; 0: each delayed alone",
        }
    )
