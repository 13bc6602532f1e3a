"""Programs that read the logs of one kind of server, beside `searchbench logs`, on the same files.

Each says other things of a log: goaccess counts visitors, pgbadger and pt-query-digest show more of
each statement. So what is compared is what a reading costs, not what it is worth.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benches.figure import Missing
from benches.table import OURS, Table

_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Reader:
    """``argv``: LOG is the file, OUT where its report goes. ``size``: bytes of the log."""

    program: str
    package: str
    title: str
    sample: str
    size: int
    argv: tuple[str, ...]


READERS = (
    Reader(
        "goaccess", "goaccess", "an access log of nginx", "nginx-timed.log", 100_000_000,
        ("goaccess", "LOG", "-o", "OUT.json", "--no-progress", "--no-global-config",
         '--log-format=%h %^[%d:%t %^] "%r" %s %b "%R" "%u" %T %^',
         "--date-format=%d/%b/%Y", "--time-format=%T"),
    ),
    Reader(
        "pgbadger", "pgbadger", "a log of PostgreSQL", "postgresql-stderr-pgbadger.log", 20_000_000,
        ("pgbadger", "-q", "-f", "stderr", "-j", "1", "-o", "OUT.html",
         "--prefix", "%t [%p]: user=%u,db=%d,app=%a,client=%h ", "LOG"),
    ),
    Reader(
        "pt-query-digest", "percona-toolkit", "a slow log of MariaDB", "mariadb-slow.log",
        20_000_000, ("pt-query-digest", "--no-version-check", "LOG"),
    ),
)  # fmt: skip


def tables(folder: Path, repeat: Callable[[str, Path, int], int]) -> Iterator[Table | Missing]:
    """A table for each program that is here; ``repeat`` makes a log of a sample."""
    for reader in READERS:
        if not shutil.which(reader.program):
            yield Missing(f"{reader.program} (Debian: apt-get install {reader.package})")
            continue
        log, out = folder / "peer.log", folder / "report"
        size = repeat(reader.sample, log, reader.size)
        lines = log.read_bytes().count(b"\n")
        ours = (sys.executable, "-m", "searchbench", "logs", "LOG", "--json")
        costs: dict[str, list[tuple[float, float]]] = {OURS: [], reader.program: []}
        for _ in range(_ROUNDS):
            for name, argv in ((OURS, ours), (reader.program, reader.argv)):
                told = [w.replace("LOG", str(log)).replace("OUT", str(out)) for w in argv]
                costs[name].append(cost(told))
        best = {name: min(each) for name, each in costs.items()}
        rows = tuple(
            (
                name,
                f"{cpu_s:.2f}",
                f"{lines / cpu_s:,.0f}",
                f"{size / cpu_s / 1e6:,.1f}",
                f"{cpu_s / best[OURS][0]:.1f}",
                f"{max(peak for _, peak in costs[name]) / 1e6:,.0f}",
            )
            for name, (cpu_s, _) in best.items()
        )
        yield Table(
            f"{reader.title}, {size / 1e6:.0f} MB, {lines:,} lines",
            ("program", "CPU s", "lines per CPU-second", "MB per CPU-second", "its cost over ours",
             "peak memory, MB"),
            rows,
            (f"The whole command with its start, user and system; the best of {_ROUNDS}, which "
             "took turns.",),
        )  # fmt: skip


# The kernel counts the memory of the process that starts another as the other's: a small one does.
_START = """
import os, subprocess, sys
own = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(own.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
"""


def cost(argv: Sequence[str]) -> tuple[float, float]:
    """Processor seconds and peak bytes of a command and the processes that it waited for."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", _START, *argv], capture_output=True, text=True, check=True
    )
    code, cpu_s, peak_kib = done.stdout.split()
    if code != "0":
        raise RuntimeError(f"{argv[0]} ended with {code}: {done.stderr[-300:]}")
    return float(cpu_s), float(peak_kib) * 1024
