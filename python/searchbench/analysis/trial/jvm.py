"""Did the JVM compile or collect garbage while it was measured? Judged from CPU time on record.

Of a server without a JVM, and of records that did not look for it, nothing is known and nothing is
said. docs/methodology/audit.md gives the reason of each threshold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from searchbench.analysis.trial.measured import Trace
from searchbench.analysis.words import at_least_one, percent
from searchbench.record import Trial

BUSY = "compilers busy"  # the finding's kind
COMPILING = 0.05  # of one core's time
COLLECTING = 0.10  # of the server's CPU time
# CPU time is counted in ticks of 10 ms, of each thread by itself.
TICKS_S = 0.05

Row = tuple[str, Literal["warning", "note"], str, str, str]  # a finding without its trial


def jvm(trial: Trial, trace: Trace) -> Iterator[Row]:
    """Of a trial whose server is a JVM, what its own threads say of the window."""
    server = trial.server
    compilers_s, collectors_s = server.jvm_compilers_s, server.jvm_collectors_s
    if compilers_s is not None and compilers_s > max(TICKS_S, COMPILING * trace.window_s):
        share = compilers_s / trace.window_s
        yield (
            "compilers busy",
            "warning",
            f"{percent(share)} of a core, {compilers_s:.2f} CPU seconds in the window",
            "The compilers of the JVM were still busy: the server was not yet warm, and may be "
            "faster later.",
            f"Warm up {at_least_one(2 * trace.window[1] / 1e9)} s.",
        )
    if (
        collectors_s is not None
        and server.cpu_s
        and collectors_s > max(TICKS_S, COLLECTING * server.cpu_s)
    ):
        yield (
            "garbage collection",
            "note",
            f"{percent(collectors_s / server.cpu_s)} of the server's CPU time",
            "The JVM spent that collecting garbage; it is part of what was measured.",
            "Give it more memory (`heap_mb`) or another collector (`gc`), if production has them.",
        )
