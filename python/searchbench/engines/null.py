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
            number("delay_us", 0, (0, 60_000_000)): "service time, between request and reply, in "
            "microseconds; at full speed where it changes",
            number("bytes", 64, (32, 1_000_000)): "size of the reply's payload",
            number("stall_every_ms", 0, (0, 3_600_000)): "period of stalls; 0: none",
            number("stall_ms", 0, (0, 3_600_000)): "length of a stall: no reply leaves in it",
            number("total", 0, (0, 1_000_000_000)): "the total that every reply reports",
            number("workers", 0, (0, 65_536)): "requests served at a time, `delay_us` each, the "
            "others in line; 0: each delayed alone",
            number("cold_speed", 1.0, (0.01, 1)): "warm-up: speed at the start as a share of the "
            "full one; the service time falls exponentially",
            number("warmup_tau_s", 0.0, (0, 86_400)): "time constant of the warm-up, seconds",
            number("drift_per_min", 0.0, (-0.9, 10)): "share by which the service time grows in "
            "each minute",
            number("slow_every_ms", 0, (0, 3_600_000)): "period of slow spells; the first period "
            "has none",
            number("slow_ms", 0, (0, 3_600_000)): "length of a slow spell; 0: none",
            number("slow_factor", 1.0, (0.01, 100)): "how many times as long a service takes that "
            "begins in a slow spell",
            number("service_sd", 0.0, (0, 3)): "standard deviation of the log of service times "
            "(lognormal, so from 1 on of a heavy tail); the mean stays",
            number("speed_sd", 0.0, (0, 1)): "standard deviation of the log of the speed, which is "
            "drawn at each start",
            number("publish_ms", 0, (0, 3_600_000)): "with which it keeps, of what is written, the "
            "words that begin with sb, and finds them: so long after a write was answered; 0: "
            "nothing is kept",
            number("lose_every", 0, (0, 1_000_000)): "one in so many documents written is "
            "acknowledged and not kept; 0: none",
            number("swap_every", 0, (0, 1_000_000)): "the words of one in so many are kept for the "
            "document before it; 0: none",
            number("late_every", 0, (0, 1_000_000)): "one in so many is found `late_ms` later; 0: "
            "none",
            number("late_ms", 0, (0, 3_600_000)): "by how much",
            number("seed", 0, (0, 2**53)): "of the speed: each start has the same one; 0: another "
            "at each start",
        }
    )

    def publish(self, schema: Schema, params: Parameters) -> Publish:
        """A known delay; nobody can shorten it."""
        return Publish(NOTHING, (), f"a write is found {params['publish_ms']} ms later")
