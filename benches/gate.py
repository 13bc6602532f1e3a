"""The gate that `compare` is: how often it stops an equal system, and how often it lets a loss by.

Records are simulated: runs of one thing differ by 2 %, trials of a run by 0.5 %, and the second is
slower by a known share. Each comparison draws its runs from a pool whose effects are the quantiles
of a normal distribution. Where the second is a single run, what is said is that it differs; with
further runs of both, that it is slower. The noise floor likewise: one of several equal systems is
noisier.

Then real runs of the null host, whose speed is drawn for each: studies of three blocks, measured
from end to end. The pools of all changes have the same speeds, and runs of the same speed are never
compared, so that luck with the few speeds is nobody's advantage.
"""

from __future__ import annotations

import itertools
import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import norm

from benches.figure import Figure
from benches.table import Table
from searchbench.analysis.compare.records import compare_runs
from searchbench.analysis.compare.run import Run
from searchbench.analysis.judgement import RecordComparison
from searchbench.analysis.stats.intervals import block_noise, holm, paired_ratio
from searchbench.record import open_record

RUN_SD, TRIAL_SD = 0.02, 0.005
THRESHOLD = 0.05
SLOWER = (0.0, 0.01, 0.02, 0.05, 0.10, 0.20)
RUNS = ((1, 1), (4, 1), (10, 1), (3, 3), (4, 4), (6, 6))  # of the first and of the second
POOL, PAIRS = 20, 40  # records of each change, comparisons of each cell
STUDIES = 1000
HOST_SLOWER = (0.0, 0.01, 0.02, 0.05)
HOST_RUNS = ((1, 1), (4, 1), (4, 4))
HOST_SEEDS = range(40, 48)  # runs of each change; chosen, for their speeds do scatter by 2 %
ONE = (1, 1)  # two records alone
Found = Mapping[tuple[float, tuple[int, int]], tuple[float, float]]
HOST_STUDY = """
question = "How much do runs of a server differ whose speed is drawn for each?"
replicates = 3
[control]
aa = false
[corpus]
files = "documents.jsonl"
fields = { text = "text" }
[queries]
file = "queries.txt"
[load]
clients = 2
seconds = 0.8
warmup_s = 0.1
idle = "block"
[systems.null]
total = 1
service_sd = 0.05
"""


def figures() -> Iterator[Figure | Table]:
    """Alarms by change and number of runs, and wins between equal systems of unequal noise."""
    found = gate()
    yield table(found, "simulated records")
    false = max(found[0.0, runs][0] for runs in RUNS if runs != ONE)
    yield Figure(
        "equal systems called different, several runs", 100 * false, "%", at_most=5,
        note=f"{PAIRS} comparisons of each number of runs",
    )  # fmt: skip
    real = on_host()
    yield table(real, "real runs of the null host", HOST_RUNS)
    false = max(real[0.0, runs][0] for runs in HOST_RUNS if runs != ONE)
    yield Figure(
        "null host: equal runs called different, several runs", 100 * false, "%", at_most=5,
        note=f"{math.perm(len(HOST_SEEDS), 2)} comparisons of each number of runs",
    )  # fmt: skip
    worst = max(
        false_wins((1.0,) * (n - 1) + (noisy,), blocks)
        for n, noisy, blocks in itertools.product((2, 4), (1.0, 3.0, 10.0), (2, 3, 5))
    )
    yield Figure("equal systems of unequal noise: false wins", 100 * worst, "%", at_most=5,
                 note=f"the worst of 18 kinds of study, {STUDIES} each")  # fmt: skip


def gate(pool: int = POOL, pairs: int = PAIRS) -> Found:
    """By (share slower, runs of each): shares of comparisons that say a difference, and that stop
    (exit 1)."""
    rng = np.random.default_rng(1)
    found = {}
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
        first = simulated(Path(folder) / "first", 0.0, pool)
        for share in SLOWER:
            second = simulated(Path(folder) / f"{share}", share, pool)
            for runs in RUNS:
                found[share, runs] = shares(
                    [
                        compare_runs(
                            *(
                                [side[i] for i in rng.choice(pool, n, replace=False)]
                                for side, n in zip((first, second), runs, strict=True)
                            ),
                            THRESHOLD,
                        )
                        for _ in range(pairs)
                    ]
                )
    return found


def shares(compared: Sequence[RecordComparison]) -> tuple[float, float]:
    """Of the comparisons, those that say a difference, and those that stop (exit 1)."""
    said = sum(
        any(line.verdict in ("faster", "slower", "differs") for line in one.comparisons)
        for one in compared
    )
    return said / len(compared), sum(one.beyond_threshold for one in compared) / len(compared)


def on_host(seeds: Sequence[int] = HOST_SEEDS) -> Found:
    """As ``gate``, of real runs: one for each seed, and each of them against each other one. No
    speed is on both sides."""
    rng = np.random.default_rng(1)
    found = {}
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
        pools = driven(Path(folder), seeds)
        for (share, second), runs in itertools.product(pools.items(), HOST_RUNS):
            compared = []
            for one, other in itertools.permutations(range(len(seeds)), 2):
                more = rng.permutation([i for i in range(len(seeds)) if i not in (one, other)])
                n, m = runs
                a, b = (one, *more[: n - 1]), (other, *more[n - 1 : n + m - 2])
                sides = [pools[0.0][i] for i in a], [second[i] for i in b]
                compared.append(compare_runs(*sides, THRESHOLD))
            found[share, runs] = shares(compared)
    return found


def driven(folder: Path, seeds: Sequence[int]) -> dict[float, list[Run]]:
    """Runs of the null host by the share by which it is slower, measured in turn, and judged."""
    from searchbench.measure.run import run as measure

    pools: dict[float, list[Run]] = {share: [] for share in HOST_SLOWER}
    documents = (json.dumps({"id": str(n), "text": f"word{n}"}) for n in range(20))
    (folder / "documents.jsonl").write_text("\n".join(documents))
    (folder / "queries.txt").write_text("\n".join(f"word{n}" for n in range(20)))
    for seed, (share, runs) in itertools.product(seeds, pools.items()):
        levels = f"delay_us = {5_000 * (1 + share):.0f}\nspeed_sd = {RUN_SD}\nseed = {seed}\n"
        path = folder / f"{share}-{seed}.toml"
        path.write_text(HOST_STUDY + levels)
        runs.append(Run(measure(path, path.with_suffix(""))))
    return pools


def simulated(folder: Path, slower: float, n: int) -> list[Run]:
    """Runs of a system that is slower by a share, judged."""
    from tests.records import Study, lognormal

    effects = np.random.default_rng(n).permutation(norm.ppf((np.arange(n) + 0.5) / n)) * RUN_SD
    made = []
    for number, effect in enumerate(effects):
        study = Study(
            blocks=5, seed=int(1e6 * slower) + number, block_noise=0.0, trial_noise=TRIAL_SD,
            control=None,
        )  # fmt: skip
        server = lognormal(0.004 * (1 + slower) * float(np.exp(effect)), 0.05)
        study.add("a", server=server, clients=2, seconds=4.0, warmup_s=0.5)
        made.append(Run(open_record(study.write(folder / str(number)))))
    return made


def table(found: Found, of: str, numbers: Sequence[tuple[int, int]] = RUNS) -> Table:
    """As docs/methodology/records.md has it; ``numbers``: of runs of the first and the second."""
    rows = tuple(
        (
            f"{100 * share:g} %",
            *(" / ".join(f"{100 * x:.0f} %" for x in found[share, n]) for n in numbers),
        )
        for share in dict.fromkeys(share for share, _ in found)
    )
    columns = ("slower by", *(f"{n} and {m} runs" for n, m in numbers))
    return Table(f"Comparisons of {of} that say a difference / that exit with 1", columns, rows)


def false_wins(sds: Sequence[float], blocks: int, studies: int = STUDIES) -> float:
    """The share of studies of equal systems in which any pair is resolved.

    ``sds``: the noise of each system. Twins rotate; the floor is the greatest of theirs.
    """
    rng = np.random.default_rng([len(sds), blocks, int(max(sds))])
    pairs = list(itertools.combinations(range(len(sds)), 2))
    wrong = 0
    for start in range(studies):
        y = 0.01 * np.array(sds)[:, None] * rng.standard_normal((len(sds), blocks))
        cells = {(f"t{i}", b, False): y[i, b] for i in range(len(sds)) for b in range(blocks)}
        floor = 0.0
        for b in range(blocks):
            i = (start + b) % len(sds)
            cells[f"t{i}", b, True] = 0.01 * sds[i] * rng.standard_normal()
            floor = max(floor, abs(cells[f"t{i}", b, True] - y[i, b]))
        noise = block_noise(cells)
        adjusted = holm([paired_ratio(y[j] - y[i], noise)[1] for i, j in pairs])
        wrong += any(
            p is not None and p < 0.05 and abs(float((y[j] - y[i]).mean())) > floor
            for p, (i, j) in zip(adjusted, pairs, strict=True)
        )
    return wrong / studies
