"""Reading query logs: lines and bytes a second and core, by format, and what it takes of memory.

The plain log of Sphinx is the generated one (``searchbench logs generate``); the others are the
samples of real servers (tests/logs), repeated. CSV has the fields of the sample in LTSV. Solr's
log, of which there is no sample, has the paths of nginx's in the form of Solr's manual. All are
read from the page cache. A second is one of processor time, user and system, of one thread: what
else runs on the machine takes no part in it.
"""

from __future__ import annotations

import csv
import io
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
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
# What a line of Apache's sample with a format of its own is.
_CUSTOM = '{time} {_} "{request}" {status} {_} {_} {duration:ms} {_}'
# The format, its sample, and what we hold ourselves to: million lines a second, or MB a second.
_OTHERS = (
    ("sphinxql", "sphinx-query-sphinxql.log", 2.0, None),
    ("access", "nginx-timed.log", 2.0, None),
    ("access", "apache-vhost.log", 2.0, None),
    ("access", "haproxy-http.log", 2.0, None),
    ("access", "haproxy-syslog.log", 2.0, None),
    ("mysql-slow", "mariadb-slow.log", None, 150.0),
    ("mysql-general", "mariadb-general.log", None, 150.0),
    ("postgresql", "postgresql-stderr-default.log", None, 150.0),
    ("postgresql-csv", "postgresql-csvlog.csv", None, 150.0),
    ("postgresql-json", "postgresql-jsonlog.json", None, 150.0),
    ("groonga", "groonga-query.log", None, 150.0),
    ("slowlog", "opensearch-slow.log", None, 150.0),
    ("slowlog-json", "opensearch-slow.json", None, 150.0),
    ("slowlog-json", "elasticsearch-slow.json", None, 150.0),
    ("solr", "nginx-ltsv.log", None, 150.0),
    ("json", "nginx-json.log", None, 150.0),
    ("ltsv", "nginx-ltsv.log", None, 150.0),
    ("csv", "nginx-ltsv.log", None, 150.0),
    ("line", "apache-custom.log", None, 150.0),
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
            size = _repeat(sample, path, _BYTES, _FORMS.get(name))
            lines, cpu_s, user_s = _read(path, name)
            mb, millions = size / cpu_s / 1e6, lines / cpu_s / 1e6
            user = f"of user time alone {lines / user_s / 1e6:.2f} M lines/s"
            called = f"logs: {name}, {sample}"
            if name in _FORMS:
                called = f"logs: {name}, from {sample}"
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


def _repeat(
    sample: str, path: Path, size: int, form: Callable[[bytes], tuple[bytes, bytes]] | None = None
) -> int:
    """A sample so often that it has about that many bytes; how many it has.

    ``form``: makes of it the head of a log of another format, and what is repeated.
    """
    once = (_SAMPLES / sample).read_bytes()
    head, once = form(once) if form else (b"", once)
    path.write_bytes(head + once * (size // len(once)))
    return path.stat().st_size


def _fields(sample: bytes) -> list[dict[str, str]]:
    lines = sample.decode("utf-8", "replace").splitlines()
    return [dict(f.partition(":")[::2] for f in line.split("\t")) for line in lines]


def _as_csv(sample: bytes) -> tuple[bytes, bytes]:
    """The fields of LTSV as CSV: the line with their names, and the others."""
    rows = _fields(sample)
    out = io.StringIO()
    table = csv.DictWriter(out, list(rows[0]), lineterminator="\n", extrasaction="ignore")
    table.writeheader()
    table.writerows(rows)
    head, _, rest = out.getvalue().encode().partition(b"\n")
    return head + b"\n", rest


def _as_solr(sample: bytes) -> tuple[bytes, bytes]:
    """The paths of nginx's log as Solr writes a request."""
    lines = [
        f"{row['time'][:10]} {row['time'][11:19]}.{i % 1000:03d} INFO  (qtp1-{i % 9}) [c:pages "
        f"s:shard1 r:core_node3 x:p1] o.a.s.c.S.Request webapp=/solr path=/select "
        f"params={{{row['uri'].partition('?')[2]}}} hits={i} status=0 QTime={i % 50}\n"
        for i, row in enumerate(_fields(sample))
    ]
    return b"", "".join(lines).encode()


_FORMS = {"csv": _as_csv, "solr": _as_solr}


def _read(path: Path, name: str) -> tuple[int, float, float]:
    """Lines, processor seconds of the cheapest of some readings, and of those its user seconds."""
    from searchbench import _core

    spent, lines = [], 0
    for _ in range(_READINGS):
        log = _core.Log()
        before = resource.getrusage(resource.RUSAGE_SELF)
        told = name if name in ("csv", "line") else ""  # they are never told by their content
        (found,) = log.read(
            [(str(path), "s", told, 0)], parameters=["q"], threads=1,
            line=_CUSTOM if name == "line" else "",
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_SELF)
        user_s = after.ru_utime - before.ru_utime
        spent.append((user_s + after.ru_stime - before.ru_stime, user_s))
        lines = int(found["lines"])
        if found["format"] != name:
            raise RuntimeError(f"{path} was taken for {found['format']}, not {name}")
        if found["unread"] * 10 > lines:
            raise RuntimeError(f"{name}: {found['unread']} of {lines} lines could not be read")
    return (lines, *min(spent))


def _distinct(path: Path) -> float:
    """How many distinct queries a log has."""
    from searchbench.logs.counts import Options, count
    from searchbench.logs.sources import find

    return float(count(find([path], "s"), Options()).tables["queries"].num_rows)


def _peak(path: Path) -> float:
    """Peak memory in bytes of the whole command, on all cores."""
    return peers.cost([sys.executable, "-m", "searchbench", "logs", str(path), "--json"])[1]
