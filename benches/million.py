"""One operation over a million ids of MariaDB: the client's memory, and what the server parses.

    python benches/million.py IDS     by hand, with as many ids as you like

The rows are asked for by IN, by a temporary table, and by single prepared statements. The client
is a process of its own, which prepares the operation and drives it as a trial of a study does; its
peak is what the kernel says of it at its end. A further one asks once and reads all rows, as a
study does to compare answers. What the server parsed is the difference of its counters before and
after a drive over one connection: statements that were sent as text, and statements that were
prepared, for the first time (Com_stmt_prepare) or again (Com_stmt_reprepare).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benches.databases import MissingError, mariadb
from benches.figure import Figure, Missing
from benches.memory import peak_bytes
from benches.servers import CLIENT_CPU
from searchbench import _core
from searchbench.engines import mysql_form
from searchbench.engines.engine import Request
from searchbench.lab.drive.operations import ROWS, Operations
from searchbench.lab.wire.exchange import Endpoint, ask

IDS = 1_000_000
OPERATIONS = 2  # so that it would be seen if the second one were parsed again
AT_MOST_MB = 300
TIMEOUT_S = 600.0
METHODS = {
    "IN": 'SELECT * FROM data WHERE id IN ([each ",": {id}]);',
    "a temporary table": """
CREATE TEMPORARY TABLE wanted (id BIGINT);
INSERT INTO wanted VALUES [each ",": ({id})];
SELECT data.* FROM data JOIN wanted USING (id);
DROP TEMPORARY TABLE wanted;
""",
    "single prepared statements": """
-- @each @prepared
SELECT * FROM data WHERE id = {id};
""",
}
"""By what it is called, a method."""
OFTEN = {"IN": 1, "a temporary table": 4, "single prepared statements": 0}
"""How many statements each sends as text in one operation."""
PREPARED = {"single prepared statements": 1}
"""How many a connection prepares."""
_ROWS_OF = (
    "CREATE TABLE data (id BIGINT PRIMARY KEY, a INT, b INT, amount INT, filling CHAR(64))",
    "INSERT INTO data SELECT seq, seq DIV 1000, seq % 1000, seq % 100000, "
    "CONCAT(MD5(seq), MD5(-seq)) FROM seq_0_to_{}",
    "ANALYZE TABLE data",
)
Counters = Mapping[str, int]


def figures(ids: int = IDS) -> Iterator[Figure | Missing]:
    """Of each method the peak memory of its client, and how much the server parsed too often."""
    try:
        with mariadb() as port:
            for statement in _ROWS_OF:
                _asked(port, statement.format(ids))
            yield from _of_methods(port, ids)
    except MissingError as missing:
        yield Missing(f"operations over {ids:,} ids need {missing}")


def _of_methods(port: int, ids: int) -> Iterator[Figure]:
    answers = set()
    for method in METHODS:
        before = counters(port)
        driven = _child("drive", method, port, ids)
        spent = difference(before, counters(port))
        name = f"{ids:,} ids by {method}"
        yield Figure(
            f"{name}: the client's peak memory", driven["peak_bytes"] / 1e6, "MB",
            at_most=AT_MOST_MB,
            note=f"{driven['before_bytes'] / 1e6:.0f} MB once its ids were drawn; "
            f"{driven['seconds'] / OPERATIONS:.2f} s an operation",
        )  # fmt: skip
        yield Figure(
            f"{name}: statements parsed more often than once", parsed_again(method, spent, ids), "",
            at_most=0, note=said(spent),
        )  # fmt: skip
        read = _child("read", method, port, ids)
        if read["rows"] != ids:
            raise RuntimeError(f"{method} returned {read['rows']:,} rows of {ids:,}")
        answers.add(read["digest"])
        yield Figure(
            f"{name}: peak memory where all rows are kept and read", read["peak_bytes"] / 1e6, "MB",
            at_most=AT_MOST_MB, note=f"{read['bytes'] / 1e6:.0f} MB of replies",
        )  # fmt: skip
    if len(answers) > 1:
        raise RuntimeError("the methods did not return the same rows")


def parsed_again(method: str, spent: Counters, ids: int, operations: int = OPERATIONS) -> int:
    """How many statements the server parsed beyond those that it had to, by its own counters.

    RuntimeError where it did not do what was asked, so that the counters say nothing.
    """
    executed = ids * operations if method in PREPARED else 0
    if spent["stmt_execute"] != executed:
        raise RuntimeError(
            f"{method}: the server executed {spent['stmt_execute']:,} prepared statements, and it "
            f"was asked for {executed:,}"
        )
    # What is executed counts twice: as a prepared statement, and as what it is.
    texts = sum(n for name, n in spent.items() if not name.startswith("stmt_")) - executed
    again = texts - OFTEN[method] * operations
    again += spent["stmt_prepare"] - PREPARED.get(method, 0) + spent.get("stmt_reprepare", 0)
    if again < 0:
        raise RuntimeError(f"{method}: the server did less than was asked: {said(spent)}")
    return again


def counters(port: int) -> dict[str, int]:
    """What the server has done since it started, by kind of statement; our own asking left out."""
    (result,) = _asked(port, "SHOW GLOBAL STATUS LIKE 'Com\\_%'")
    rows = ((str(row["Variable_name"]), int(str(row["Value"]))) for row in result.dicts())
    found = {name.removeprefix("Com_"): count for name, count in rows}
    return {name: n for name, n in found.items() if not name.startswith(("show_", "admin_"))}


def difference(before: Counters, after: Counters) -> dict[str, int]:
    """What was done in between; those of prepared statements also where that is nothing."""
    return {
        name: count - before[name]
        for name, count in after.items()
        if count != before[name] or name.startswith("stmt_")
    }


def said(spent: Counters) -> str:
    """The counters that say it, as the server calls them."""
    shown = {"stmt_prepare", "stmt_reprepare", "stmt_execute"}
    return ", ".join(
        f"Com_{name} {count:,}" for name, count in spent.items()
        if name in shown or (count and not name.startswith("stmt_"))
    )  # fmt: skip


def _asked(port: int, statement: str) -> list[mysql_form.Result]:
    """The answer to one statement; RuntimeError with the server's words."""
    request = Request((mysql_form.query(statement),))
    results = mysql_form.split(ask(_endpoint(port), [request], timeout_s=TIMEOUT_S)[0])
    if refused := mysql_form.refusal(results):
        raise RuntimeError(f"{statement[:60]}: {refused}")
    return results


def _endpoint(port: int) -> Endpoint:
    return Endpoint(("127.0.0.1", port), "mysql", ("root", "", "bench"))


def _child(what: str, method: str, port: int, ids: int) -> dict[str, Any]:
    """This file as a process of its own."""
    argv = [sys.executable, __file__, "--child", what, method, str(port), str(ids)]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{method} failed: {done.stderr[-800:]}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def _client(what: str, method: str, port: int, ids: int) -> dict[str, Any]:
    """The process that is measured."""
    import tomli_w

    from searchbench.corpora import open_corpus
    from searchbench.engines import ENGINES
    from searchbench.lab.drive.operations import open_operation
    from searchbench.study.planner import make_plan
    from searchbench.study.read import parse_study

    sql = METHODS[method]
    tables = {
        "question": "How much memory does it take?",
        "replicates": 1,
        "control": {"aa": False},
        "corpus": {"family": "table", "table": "data", "rows": ids},
        "operations": {"fetch": {"key": "id", "rows": ids, "draws": 1, "order": "random",
                                 "methods": {"it": {"sql": sql}}}},
        "systems": {"mariadb": {}},
        "load": {"clients": 1, "requests": OPERATIONS, "warmup_requests": 0,
                 "timeout_s": TIMEOUT_S},
    }  # fmt: skip
    study = parse_study(tomli_w.dumps(tables), "bench.toml", Path.cwd())
    plan = make_plan(study)
    (treatment,) = plan.treatments
    corpus = open_corpus(treatment.corpus, Path.cwd())
    workload = open_operation(treatment.operation, corpus, plan.seed)
    run = _driven if what == "drive" else _read
    before = peak_bytes()
    told = run(workload, ENGINES["mariadb"], treatment, plan.seed, port)
    return told | {"before_bytes": before, "peak_bytes": peak_bytes()}


def _driven(
    workload: Operations, engine: Any, treatment: Any, seed: int, port: int
) -> dict[str, Any]:
    """So many operations over one connection; no reply is kept."""
    from searchbench.lab.wire.exchange import samples_of
    from searchbench.lab.wire.order import Manner
    from searchbench.workload.loads import open_load

    levers = treatment.parameters
    compiled = workload.compiled(engine, levers)
    endpoint = workload.endpoint(_endpoint(port), compiled, engine, levers)
    order = workload.order(open_load(treatment.load, Path.cwd()), compiled, seed)
    manner = Manner(timeout_s=TIMEOUT_S, cpus=(CLIENT_CPU,))
    samples = samples_of(endpoint.send(compiled.requests, order, manner))
    outcomes = [_core.OUTCOMES[int(each)] for each in samples["outcome"]]
    if outcomes != ["ok"] * OPERATIONS:
        raise RuntimeError(f"{OPERATIONS} operations were to be answered, and became {outcomes}")
    return {"seconds": float((samples["done"] - samples["sent"]).sum()) / 1e9}


def _read(
    workload: Operations, engine: Any, treatment: Any, _seed: int, port: int
) -> dict[str, Any]:
    """One operation, whose rows are all kept and read, as a study keeps and reads them."""
    from searchbench.lab.drive.drive import capture

    levers = treatment.parameters
    compiled = workload.compiled(engine, levers)
    endpoint = workload.endpoint(_endpoint(port), compiled, engine, levers)
    reader = workload.reader(engine, levers)
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
        alone = capture(endpoint, reader, compiled, TIMEOUT_S, Path(folder))
        replies, sizes = alone.replies, alone.sizes
    (reply,) = replies.to_pylist()
    if reply["error"] is not None:
        raise RuntimeError(f"the answer is {reply['error']}")
    ((digest, rows),) = json.loads(reply["facets"])[ROWS]
    return {"digest": digest, "rows": rows, "bytes": sum(sizes.values())}


def main() -> int:
    """The process that is measured, or a run by hand."""
    if sys.argv[1:2] == ["--child"]:
        what, method, port, ids = sys.argv[2:]
        print(json.dumps(_client(what, method, int(port), int(ids))))
        return 0
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    for figure in figures(int(sys.argv[1])):
        print(figure.line())
    return 0


if __name__ == "__main__":
    sys.exit(main())
