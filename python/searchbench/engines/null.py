"""The null host: a known answer after a known delay, the instrument's own test weight.

What changes the delay is injected, and its size is known: warm-up, drift, slow spells, scatter.
"""

from __future__ import annotations

from searchbench.corpora.corpus import Schema
from searchbench.engines.engine import Capabilities, Parameters
from searchbench.engines.frames import LibraryHost
from searchbench.engines.levers import described, number
from searchbench.engines.write import Publish
from searchbench.workload.roles import NOTHING


class Null(LibraryHost):
    """Finds nothing, very exactly. What is measured on it is searchbench itself."""

    name = "null"
    can = Capabilities(
        title="null host",
        home="",
        keeps_index=False,
        writes={},
        cannot={"snippets": "never: it has no text, only a size of reply"},
        deviations={"results": "every query has the same, declared total and no hits"},
    )
    parameters = described(
        {
            number("delay_us", 0, (0, 60_000_000)): "service time (from request to reply) in "
            "microseconds; if the speed changes, that at full speed",
            number("bytes", 64, (32, 1_000_000)): "size of the reply's payload",
            number("stall_every_ms", 0, (0, 3_600_000)): "period of stalls; 0: none",
            number("stall_ms", 0, (0, 3_600_000)): "length of a stall, during which no reply is "
            "sent",
            number("total", 0, (0, 1_000_000_000)): "the total that every reply reports",
            number("workers", 0, (0, 65_536)): "how many requests are served at a time, `delay_us` "
            "each, while the others wait in line; 0: requests do not wait for each other",
            number("cold_speed", 1.0, (0.01, 1)): "warm-up: the speed at the start, as a share of "
            "full speed; the service time then falls exponentially",
            number("warmup_tau_s", 0.0, (0, 86_400)): "warm-up: its time constant in seconds",
            number("drift_per_min", 0.0, (-0.9, 10)): "share by which the service time grows in "
            "each minute",
            number("slow_every_ms", 0, (0, 3_600_000)): "period of slow spells; the first period "
            "has none",
            number("slow_ms", 0, (0, 3_600_000)): "length of a slow spell; 0: none",
            number("slow_factor", 1.0, (0.01, 100)): "by what factor a service takes longer if it "
            "begins in a slow spell",
            number("service_sd", 0.0, (0, 3)): "standard deviation of the log of service times, "
            "whose mean stays the same (lognormal: from 1 on, the tail is heavy)",
            number("speed_sd", 0.0, (0, 1)): "standard deviation of the log of the speed, which is "
            "drawn at each start",
            number("publish_ms", 0, (0, 3_600_000)): "how long after its answer a write is found: "
            "then, of what is written, the words that begin with sb are kept; 0: none is kept",
            number("lose_every", 0, (0, 1_000_000)): "of so many documents written, one is "
            "acknowledged but not kept; 0: none",
            number("swap_every", 0, (0, 1_000_000)): "of so many documents written, the words of "
            "one are kept for the document before it; 0: none",
            number("late_every", 0, (0, 1_000_000)): "of so many documents written, one is found "
            "`late_ms` later; 0: none",
            number("late_ms", 0, (0, 3_600_000)): "how much later that is",
            number("seed", 0, (0, 2**53)): "seed of the speed: each start then has the same speed; "
            "0: each start draws another",
        }
    )

    def publish(self, schema: Schema, params: Parameters) -> Publish:
        """A known delay; nobody can shorten it."""
        return Publish(NOTHING, (), f"a write is found {params['publish_ms']} ms later")
