"""Reading query logs: lines and bytes a second and core, by format, and what it takes of memory.

The plain log of Sphinx is the generated one (``searchbench logs generate``); the others are the
samples of real servers (tests/logs), repeated. All are read from the page cache. A second is one of
processor time, user and system, of one thread: what else runs on the machine takes no part in it.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benches.figure import Figure, Missing
from benches.peers import logs as peers
from benches.table import Table

_SAMPLES = Path(__file__).parent.parent / "tests" / "logs"
_LINES = 4_000_000
_BYTES = 100_000_000
_READINGS = 5
# So many lines of the generator have ten million distinct queries, drawn from so many.
_MANY_LINES, _MANY_DRAWN = 18_000_000, 10**12
# The format, its sample, and what we hold ourselves to: million lines a second, or MB a second.
_OTHERS = (
    ("sphinxql", "sphinx-query-sphinxql.log", 2.0, None),
    ("access", "nginx-timed.log", 2.0, None),
    ("access", "apache-vhost.log", 2.0, None),
    ("access", "haproxy-http.log", 2.0, None),
    ("mysql-slow", "mariadb-slow.log", None, 150.0),
    ("mysql-general", "mariadb-general.log", None, 150.0),
    ("postgresql", "postgresql-stderr-default.log", None, 150.0),
    ("postgresql-json", "postgresql-jsonlog.json", None, 150.0),
    ("groonga", "groonga-query.log", None, 150.0),
    ("slowlog", "opensearch-slow.log", None, 150.0),
    ("slowlog-json", "opensearch-slow.json", None, 150.0),
    ("json", "nginx-json.log", None, 150.0),
    ("ltsv", "nginx-ltsv.log", None, 150.0),
)


def figures() -> Iterator[Figure | Table | Missing]:
    """The best of five readings of each, on one thread; then memory; then other programs."""
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
        path = Path(folder) / "query.log"
        _generate(path, _LINES, 5_000_000)
        yield from _of_sphinx(path)
        yield Figure(
            f"memory of `logs --json`, {_LINES:,} lines, all cores", _peak(path) / 1e6, "MB",
            at_most=500,
        )  # fmt: skip
        for name, sample, wanted_lines, wanted_mb in _OTHERS:
            size = _repeat(sample, path, _BYTES)
            lines, cpu_s, user_s = _read(path, name)
            mb, millions = size / cpu_s / 1e6, lines / cpu_s / 1e6
            user = f"of user time alone {lines / user_s / 1e6:.2f} M lines/s"
            called = f"logs: {name}, {sample}"
            if wanted_lines is not None:
                yield Figure(called, millions, "M lines/s and core", at_least=wanted_lines,
                             note=f"{mb:.0f} MB/s; {user}")  # fmt: skip
            else:
                yield Figure(called, mb, "MB/s and core", at_least=wanted_mb,
                             note=f"{millions:.2f} M lines/s; {user}")  # fmt: skip
        _generate(path, _MANY_LINES, _MANY_DRAWN)
        distinct = _distinct(path)
        yield Figure(
            "memory of `logs --json`, ten million distinct queries", _peak(path) / 1e6, "MB",
            at_most=2000, note=f"{distinct:,.0f} of them in {_MANY_LINES:,} lines",
        )  # fmt: skip
        path.unlink()
        yield from peers.tables(Path(folder), _repeat)


def _of_sphinx(path: Path) -> Iterator[Figure]:
    lines, cpu_s, user_s = _read(path, "sphinx")
    size = path.stat().st_size
    note = f"{_LINES:,} lines, 5 M distinct queries drawn from"
    yield Figure(
        "logs: sphinx, generated", lines / cpu_s / 1e6, "M lines/s and core", at_least=5,
        note=f"{note}; of user time alone {lines / user_s / 1e6:.2f}",
    )  # fmt: skip
    yield Figure(
        "the same", size / cpu_s / 1e6, "MB/s and core", at_least=400,
        note=f"of user time alone {size / user_s / 1e6:.0f}",
    )  # fmt: skip


def _generate(path: Path, lines: int, distinct: int) -> None:
    from searchbench import _core

    _core.generate_log(
        str(path), lines=lines, server=0, indexes=180, distinct=distinct, seed=1,
        start_s=1_215_000_000, per_s=10.0,
    )  # fmt: skip


def _repeat(sample: str, path: Path, size: int) -> int:
    """A sample so often that it has about that many bytes; how many it has."""
    once = (_SAMPLES / sample).read_bytes()
    path.write_bytes(once * (size // len(once)))
    return path.stat().st_size


def _read(path: Path, name: str) -> tuple[int, float, float]:
    """Lines, processor seconds of the cheapest of some readings, and of those its user seconds."""
    from searchbench import _core

    spent, lines = [], 0
    for _ in range(_READINGS):
        log = _core.Log()
        before = resource.getrusage(resource.RUSAGE_SELF)
        (found,) = log.read([(str(path), "s", "", 0)], parameters=["q"], threads=1)
        after = resource.getrusage(resource.RUSAGE_SELF)
        user_s = after.ru_utime - before.ru_utime
        spent.append((user_s + after.ru_stime - before.ru_stime, user_s))
        lines = int(found["lines"])
        if found["format"] != name:
            raise RuntimeError(f"{path} was taken for {found['format']}, not {name}")
    return (lines, *min(spent))


def _distinct(path: Path) -> float:
    """How many distinct queries a log has."""
    from searchbench.logs.counts import Options, count
    from searchbench.logs.sources import find

    return float(count(find([path], "s"), Options()).tables["queries"].num_rows)


def _peak(path: Path) -> float:
    """Peak memory in bytes of the whole command, on all cores."""
    return peers.cost([sys.executable, "-m", "searchbench", "logs", str(path), "--json"])[1]
