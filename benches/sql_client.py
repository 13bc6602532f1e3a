"""What a statement costs the client, over MariaDB and PostgreSQL: ours and others', in turn.

The same statements, as text and prepared, over as many connections to the same server. What is
prepared is prepared once on each connection, and then executed with other values each time. A
client's cost is the CPU time of its whole process, user and system, of a long run less that of a
short one, over the statements between them: what it costs to start counts for nobody.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benches.databases import ROWS, MissingError, mariadb, postgresql
from benches.figure import Figure, Missing
from benches.servers import CLIENT_CPU, TARGET, closed
from benches.table import OURS, Table, spread
from searchbench.engines import mysql_form, mysql_prepared, postgres_extended, postgres_form
from searchbench.engines.engine import Request

CONNECTIONS = 64
ROUNDS = 5
SHORT_S, LONG_S = 1, 4
# What is asked, with a key in the braces, and how many keys there are to draw from.
POINT = "SELECT c FROM t WHERE id = {0}"
TEN = "SELECT id, k, c FROM t WHERE id BETWEEN {0} AND {0} + 9"
STATEMENTS = (("point select", POINT), ("10 rows", TEN))
KEYS = ROWS - 10

PEER = Path(__file__).parent / "peers" / "mysql_async"

# CPU seconds and statements of a run of so many seconds.
Run = Callable[[int], tuple[float, int]]


def figures() -> Iterator[Figure | Table | Missing]:
    """Microseconds of the client a statement, and others' over ours."""
    try:
        yield from _mariadb()
    except MissingError as missing:
        yield Missing(f"the MySQL wire needs {missing}")
    try:
        yield from _postgresql()
    except MissingError as missing:
        yield Missing(f"the PostgreSQL wire needs {missing}")


def _mariadb() -> Iterator[Figure | Table | Missing]:
    peer = _built()
    if isinstance(peer, Missing):
        yield peer
    if not shutil.which("sysbench"):
        yield Missing("sysbench (Debian: apt-get install sysbench)")
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder, mariadb() as port:
        place, login = Path(folder), ("root", "", "bench")
        for name, statement in STATEMENTS:
            asked = [statement.format(key) for key in _keys()]
            others: list[tuple[str, float, Run]] = []
            if shutil.which("sysbench"):
                others.append(("sysbench", 1.7, _sysbench(place, port, statement)))
            if isinstance(peer, Path):
                others.append(("mysql_async", 1.15, _mysql_async(place, port, peer, asked)))
            ours = _ours(port, "mysql", [mysql_form.query(each) for each in asked], login)
            yield from _compared(f"MariaDB, {name}", ours, others)

            text, often = prepared(statement, "?"), statement.count("{0}")
            values = [(key,) * often for key in _keys()]
            others = []
            if shutil.which("sysbench"):
                others.append(("sysbench", 1.0, _sysbench_prepared(place, port, text, often)))
            if isinstance(peer, Path):
                lines = [" ".join(map(str, each)) for each in values]
                others.append(("mysql_async", 1.0, _mysql_async(place, port, peer, lines, text)))
            executed = [mysql_prepared.execute(1, each) for each in values]
            ours = _ours(port, "mysql", executed, login, (mysql_prepared.prepare(text),))
            yield from _compared(f"MariaDB, {name}, prepared", ours, others)


def _postgresql() -> Iterator[Figure | Table | Missing]:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/pgbench"))
    found = shutil.which("pgbench") or (installed[-1] if installed else None)
    if not found:
        yield Missing("pgbench (Debian: apt-get install postgresql)")
    pgbench = Path(found) if found else None
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder, postgresql() as port:
        place, login = Path(folder), ("bench", "", "postgres")
        for name, statement in STATEMENTS:
            asked = [postgres_form.query(statement.format(key)) for key in _keys()]
            ours = _ours(port, "postgres", asked, login)
            others = [("pgbench", 1.0, _pgbench(place, port, pgbench, statement, "simple"))]
            yield from _compared(f"PostgreSQL, {name}", ours, others if pgbench else ())

            text = prepared(statement, "$1")
            executed = [postgres_extended.execute("s1", (key,)) for key in _keys()]
            whole = [each + postgres_extended.SYNC for each in executed]
            prelude = (postgres_extended.prepare("s1", text),)
            ours = _ours(port, "postgres", whole, login, prelude)
            others = [("pgbench", 1.0, _pgbench(place, port, pgbench, statement, "prepared"))]
            yield from _compared(f"PostgreSQL, {name}, prepared", ours, others if pgbench else ())


def prepared(statement: str, marker: str) -> str:
    """The text that is prepared: a marker in place of the key, wherever that stands."""
    return statement.replace("{0}", marker)


def _keys() -> Iterator[int]:
    """A thousand keys, spread over all and in no order that a cache would like."""
    return ((n * 7919) % KEYS + 1 for n in range(1000))


def _compared(
    name: str, ours: Run, others: Sequence[tuple[str, float, Run]]
) -> Iterator[Figure | Table]:
    """All in turn, ``ROUNDS`` times; ratios are those within a round."""
    costs: dict[str, list[float]] = {OURS: [], **{other: [] for other, _, _ in others}}
    runs: list[tuple[str, Run]] = [(OURS, ours), *((other, run) for other, _, run in others)]
    for number in range(ROUNDS):
        at = number % len(runs)
        for client, run in runs[at:] + runs[:at]:
            short_s, short = run(SHORT_S)
            long_s, long = run(LONG_S)
            costs[client].append((long_s - short_s) / (long - short) * 1e6)
    ratios = {
        other: [b / a for a, b in zip(costs[OURS], costs[other], strict=True)]
        for other, _, _ in others
    }
    rows = (
        (client, f"{median(us):.2f}", f"{1e6 / median(us):,.0f}",
         spread(ratios[client]) if client in ratios else "1")
        for client, us in sorted(costs.items(), key=lambda c: median(c[1]))
    )  # fmt: skip
    yield Table(
        f"{name}, {CONNECTIONS} connections",
        ("client", "µs of CPU a statement", "statements per CPU-second",
         "its cost over ours, median of rounds (range)"),
        tuple(rows),
    )  # fmt: skip
    for other, at_least, _ in others:
        low, high = min(ratios[other]), max(ratios[other])
        yield Figure(
            f"{name}: {other}'s cost over ours", median(ratios[other]), "x", at_least=at_least,
            note=f"rounds {low:.2f}..{high:.2f}",
        )  # fmt: skip


def _ours(
    port: int,
    wire: str,
    exchanges: Sequence[bytes],
    login: tuple[str, str, str],
    prelude: Sequence[bytes] = (),
) -> Run:
    requests = [Request((exchange,)) for exchange in exchanges]
    how: dict[str, Any] = {"login": login, "prelude": prelude, "idle": "block"}

    def run(seconds: int) -> tuple[float, int]:
        before = resource.getrusage(resource.RUSAGE_SELF)
        done = closed(port, wire, requests, CONNECTIONS, float(seconds), **how)
        cpu_s = _cpu_s(before, resource.getrusage(resource.RUSAGE_SELF))
        answered = len(done.ok())
        if answered != len(done.samples):
            raise RuntimeError(f"{len(done.samples) - answered} statements were not answered")
        return cpu_s, answered

    return run


def _child(argv: Sequence[object], count: str) -> tuple[float, int]:
    """CPU seconds of a program, and what it says that it counted."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        ["taskset", "-c", str(CLIENT_CPU), *map(str, argv)], capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = re.search(count, done.stdout)
    if done.returncode or not found:
        raise RuntimeError(f"{argv[0]} failed: {(done.stdout + done.stderr)[-500:]}")
    return _cpu_s(before, after), int(found[1])


def _cpu_s(before: resource.struct_rusage, after: resource.struct_rusage) -> float:
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _sysbench(place: Path, port: int, statement: str) -> Run:
    parts = statement.split("{0}")
    # A statement that ends in its key has nothing to quote behind it.
    text = " .. key .. ".join(f'"{part}"' for part in parts).removesuffix(' .. ""')
    return _scripted(
        place, port,
        "function thread_init() con = sysbench.sql.driver():connect() end\n"
        f"function event() local key = sysbench.rand.uniform(1, {KEYS}) con:query({text}) end\n"
        "function thread_done() con:disconnect() end\n",
    )  # fmt: skip


def _sysbench_prepared(place: Path, port: int, text: str, often: int) -> Run:
    return _scripted(
        place, port,
        "function thread_init()\n"
        "  con = sysbench.sql.driver():connect()\n"
        f'  statement, keys = con:prepare("{text}"), {{}}\n'
        f"  for i = 1, {often} do keys[i] = statement:bind_create(sysbench.sql.type.INT) end\n"
        "  statement:bind_param(unpack(keys))\n"
        "end\n"
        "function event()\n"
        f"  local key = sysbench.rand.uniform(1, {KEYS})\n"
        f"  for i = 1, {often} do keys[i]:set(key) end\n"
        "  statement:execute()\n"
        "end\n"
        "function thread_done() statement:close() con:disconnect() end\n",
    )  # fmt: skip


def _scripted(place: Path, port: int, lua: str) -> Run:
    script = place / "statement.lua"

    def run(seconds: int) -> tuple[float, int]:
        script.write_text(lua)
        argv = [
            "sysbench", "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={port}",
            "--mysql-user=root", "--mysql-db=bench", f"--threads={CONNECTIONS}", "--events=0",
            f"--time={seconds}", script, "run",
        ]  # fmt: skip
        return _child(argv, r"total number of events:\s+(\d+)")

    return run


def _mysql_async(
    place: Path, port: int, peer: Path, lines: Sequence[str], statement: str = ""
) -> Run:
    """``lines``: statements; or the values of the one that is prepared."""
    file = place / "lines"

    def run(seconds: int) -> tuple[float, int]:
        file.write_text("\n".join(lines))
        url = f"mysql://root@127.0.0.1:{port}/bench"
        own = [statement] if statement else []
        return _child([peer, url, CONNECTIONS, seconds, file, *own], r"(\d+)")

    return run


def _pgbench(place: Path, port: int, program: Path | None, statement: str, protocol: str) -> Run:
    script = place / "statement.sql"

    def run(seconds: int) -> tuple[float, int]:
        script.write_text(f"\\set key random(1, {KEYS})\n{statement.replace('{0}', ':key')};\n")
        argv = [
            program, "-n", "-M", protocol, "-f", script, "-c", CONNECTIONS, "-j", 1, "-T", seconds,
            "-h", "127.0.0.1", "-p", port, "-U", "bench", "postgres",
        ]  # fmt: skip
        return _child(argv, r"transactions actually processed: (\d+)")

    return run


def _built() -> Path | Missing:
    """The mysql_async peer, built where that can be; why, where it cannot."""
    folder = TARGET.parent / "peers"
    cargo = shutil.which("cargo")
    if not cargo:
        return Missing("mysql_async needs cargo (rustup.rs) to be built")
    done = subprocess.run(
        [cargo, "build", "--release", "--locked", "--quiet"],
        cwd=PEER, env=os.environ | {"CARGO_TARGET_DIR": str(folder)},
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:]
        return Missing(f"mysql_async could not be built (cargo needs its registry): {why}")
    return folder / "release" / "peer-mysql-async"
