"""What a place without limits costs: a server in it against one beside it, asked in turns.

Two trials that follow each other differ by what the machine did meanwhile: on a shared machine by
30 %, which is more than any place costs. So three servers stand side by side, on copies of one
index: two in no place, and one in the place. Each is asked for half a second, in turns whose order
changes. What a turn says is a ratio of neighbouring moments, of the one in the place to the
geometric mean of the others. The ratio of these two says what the comparison finds where there is
nothing to find. One start may be luckier than another, so all are started anew, in each order
twice.

    python benches/placed.py     by hand
"""

from __future__ import annotations

import math
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import permutations
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import psutil
from scipy.stats import t as student

sys.path.insert(0, str(Path(__file__).parent.parent))

from benches.figure import Figure, Missing
from searchbench import _core
from searchbench.corpora import open_corpus
from searchbench.corpora.corpus import Corpus, FieldType
from searchbench.engines import ENGINES, defaults
from searchbench.engines.engine import Engine, Request
from searchbench.lab.conduct.serve import serving
from searchbench.lab.place import zfs
from searchbench.lab.place.abilities import ability
from searchbench.lab.place.host import placement
from searchbench.lab.place.ledger import Ledger
from searchbench.lab.place.places import Confines
from searchbench.lab.place.storages import Storages
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.wire.exchange import samples_of
from searchbench.lab.wire.order import Manner, Order
from searchbench.places import Host, Place
from searchbench.workload.queries.registry import open_queries

STARTS = 12  # every order of three twice
TURNS = 12  # of each server after each start: every order of three twice
TURN_S = 0.5
WARM_S = 2.0
CORPUS = {"family": "generated", "documents": 5_000, "seed": 5}
QUERIES = {"distinct": 200, "match": "any", "seed": 5}
NOWHERE, TWIN = "no place", "no place again"
_WELL = _core.OUTCOMES.index("ok")


def figures() -> Iterator[Figure | Missing]:
    """Throughput in a control group whose limit is not met, and in a namespace, against neither."""
    half = psutil.virtual_memory().total // 2
    for name, lever, engine, place in (
        ("control group", "memory", "tantivy", Place(name="there", memory_bytes=half)),
        # A library host listens on loopback alone.
        ("namespace", "hosts", "groonga",
         Place(name="there", host=Host(name="alone"))),
    ):  # fmt: skip
        if not (able := ability(lever)).here:
            yield Missing(f"a server in a {name}: {able.missing}")
            continue
        with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
            there, again = asked_in_turns(ENGINES[engine], place, Path(folder).resolve())
        yield Figure(
            f"{engine} in a {name}, against one beside it: throughput off by",
            100 * abs(there.ratio - 1), "%", at_most=3,
            note=f"{there}; two in no place: {again}; {STARTS} starts of {TURNS} turns",
        )  # fmt: skip


class Ratio:
    """The geometric mean of ratios by start, with Student's interval (95 %) over the starts."""

    def __init__(self, logs: Sequence[float]) -> None:
        error = stdev(logs) / math.sqrt(len(logs)) * float(student.ppf(0.975, len(logs) - 1))
        self.ratio = math.exp(fmean(logs))
        self.low, self.high = (math.exp(fmean(logs) + sign * error) for sign in (-1, 1))

    def __str__(self) -> str:
        each = (f"{100 * (one - 1):+.1f}" for one in (self.ratio, self.low, self.high))
        return "{} % ({} to {})".format(*each)


def asked_in_turns(engine: Engine, place: Place, folder: Path) -> tuple[Ratio, Ratio]:
    """Throughput in the place over that of both in no place; and that of these two."""
    corpus = open_corpus(CORPUS, folder)
    with serving(engine, defaults(engine), corpus, folder / "built"):
        pass
    there, again = [], []
    for start in range(STARTS):
        with Ledger() as ledger, ExitStack() as stack:
            servers = {}
            starts = list(permutations([(NOWHERE, None), (TWIN, None), ("there", place)]))
            for name, where in starts[start % len(starts)]:
                own = folder / f"searchbench-work-{start}" / name.replace(" ", "-")
                shutil.copytree(folder / "built" / "data", own / "index" / "data")
                servers[name] = stack.enter_context(_placed(engine, corpus, where, own, ledger))
            requests = _requests(engine, corpus)
            for server in servers.values():
                _answered(server, requests, WARM_S)
            logs = _turns(servers, requests)
        there.append(fmean(logs["there"]) - fmean(logs[TWIN]) / 2)
        again.append(fmean(logs[TWIN]))
    return Ratio(there), Ratio(again)


def _turns(
    servers: Mapping[str, Deployment], requests: Sequence[Request]
) -> dict[str, list[float]]:
    """By server the logs of its ratio to the one in no place, one for each turn."""
    found: dict[str, list[float]] = {name: [] for name in servers}
    orders = list(permutations(servers))
    for turn in range(TURNS):
        done = {
            name: _answered(servers[name], requests, TURN_S) for name in orders[turn % len(orders)]
        }
        for name, count in done.items():
            found[name].append(math.log(count / done[NOWHERE]))
    return found


@contextmanager
def _placed(
    engine: Engine, corpus: Corpus, place: Place | None, own: Path, ledger: Ledger
) -> Iterator[Deployment]:
    """The engine as a trial starts it in this place; None: on the server's cores of this one."""
    cores = placement()
    confines = None
    if place is not None:
        storages = Storages(place, own / "index", own, ledger, zfs.Daemon(ledger, own))
        confines = Confines(place, cores, storages, ledger)
        confines.settle()
    try:
        with Deployment(
            engine, defaults(engine), own / "index" / "data", own / "run", cores.server_cpus,
            corpus.schema, seat=confines.seat if confines else None,
        ) as deployment:  # fmt: skip
            if confines:
                confines.loaded(deployment.by_host())
            yield deployment
            if confines:
                confines.driven()
    finally:
        if confines and (left := confines.leave()):
            raise RuntimeError("; ".join(left))


def _requests(engine: Engine, corpus: Corpus) -> list[Request]:
    found = open_queries(
        QUERIES, Path.cwd(), lambda: (d.values for d in corpus.documents()),
        [f.name for f in corpus.schema.of_type(FieldType.TEXT)],
    )  # fmt: skip
    return [engine.compile(query, corpus.schema, defaults(engine)) for query in found.queries]


def _answered(server: Deployment, requests: Sequence[Request], seconds: float) -> int:
    """How many of the requests one client got answered, one after another."""
    count = len(requests)
    order = Order(
        np.arange(count, dtype=np.uint32), np.array([0, count], np.uint32), None, 1,
        stop_ns=int(seconds * 1e9),
    )  # fmt: skip
    trace = server.endpoint.send(requests, order, Manner(cpus=placement().client_cpus))
    outcomes = samples_of(trace)["outcome"]
    if well := int((outcomes == _WELL).sum()):
        return well
    raise RuntimeError(f"{server.target} answered nothing well")


if __name__ == "__main__":
    for figure in figures():
        print(figure, flush=True)
