"""Reading query logs: lines and bytes a second on one core, by format, and what it takes of memory.

The plain log of Sphinx is the generated one (``searchbench logs generate``); the others are the
samples of real servers (tests/logs), repeated. All are read from the page cache.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benches.figure import Figure

_SAMPLES = Path(__file__).parent.parent / "tests" / "logs"
_LINES = 4_000_000
_BYTES = 100_000_000
# The format, its sample, and what we hold ourselves to: million lines a second, or MB a second.
_OTHERS = (
    ("sphinxql", "sphinx-query-sphinxql.log", 2.0, None),
    ("access", "nginx-timed.log", 2.0, None),
    ("mysql-slow", "mariadb-slow.log", None, 150.0),
    ("mysql-general", "mariadb-general.log", None, 150.0),
    ("postgresql", "postgresql-stderr-default.log", None, 150.0),
    ("postgresql-json", "postgresql-jsonlog.json", None, 150.0),
    ("groonga", "groonga-query.log", None, 150.0),
    ("slowlog", "opensearch-slow.log", None, 150.0),
    ("slowlog-json", "opensearch-slow.json", None, 150.0),
    ("json", "nginx-json.log", None, 150.0),
)


def figures() -> Iterator[Figure]:
    """The best of three readings of each, on one thread."""
    from searchbench import _core

    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
        path = Path(folder) / "query.log"
        _core.generate_log(
            str(path), lines=_LINES, server=0, indexes=180, distinct=5_000_000, seed=1,
            start_s=1_215_000_000, per_s=10.0,
        )  # fmt: skip
        lines, seconds = _read(path)
        rate = path.stat().st_size / seconds / 1e6
        yield Figure(
            "logs: Sphinx's plain log, one core", lines / seconds / 1e6, "M lines/s", at_least=5,
            note=f"{rate:.0f} MB/s, {_LINES:,} lines, 5 M distinct queries drawn from",
        )  # fmt: skip
        yield Figure("  its peak memory", _peak(path) / 1e6, "MB", at_most=500)
        path.unlink()
        for name, sample, wanted_lines, wanted_mb in _OTHERS:
            once = (_SAMPLES / sample).read_bytes()
            path.write_bytes(once * (_BYTES // len(once)))
            lines, seconds = _read(path)
            mb = path.stat().st_size / seconds / 1e6
            millions = lines / seconds / 1e6
            if wanted_lines is not None:
                yield Figure(f"logs: {name}, one core", millions, "M lines/s",
                             at_least=wanted_lines, note=f"{mb:.0f} MB/s")  # fmt: skip
            else:
                yield Figure(f"logs: {name}, one core", mb, "MB/s", at_least=wanted_mb,
                             note=f"{millions:.2f} M lines/s")  # fmt: skip


def _read(path: Path) -> tuple[int, float]:
    """Lines, and the least seconds of three readings."""
    from searchbench import _core

    seconds, lines = [], 0
    for _ in range(3):
        log = _core.Log()
        began = time.perf_counter()
        (found,) = log.read([(str(path), "s", "", 0)], parameters=["q"], threads=1)
        seconds.append(time.perf_counter() - began)
        lines = int(found["lines"])
    return lines, min(seconds)


def _peak(path: Path) -> float:
    """Peak memory in bytes of a process that reads a log on all cores."""
    code = (
        "import sys; from searchbench import _core;"
        "log = _core.Log(); log.read([(sys.argv[1], 's', '', 0)]);"
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True
    ).stdout
    return float(said) * 1024
