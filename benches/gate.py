"""The gate that `compare` is: how often it stops an equal system, and how often it lets a loss by.

Records are simulated: runs of one thing differ by 2 %, trials of a run by 0.5 %, and the second is
slower by a known share. Each comparison draws its runs from a pool whose effects are the quantiles
of a normal distribution. The noise floor likewise: one of several equal systems is noisier.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import norm

from benches.figure import Figure
from benches.table import Table
from searchbench.analysis.compare.records import Run, compare_runs
from searchbench.analysis.stats.intervals import block_noise, holm, paired_ratio
from searchbench.record import open_record

RUN_SD, TRIAL_SD = 0.02, 0.005
THRESHOLD = 0.05
SLOWER = (0.0, 0.01, 0.02, 0.05, 0.10, 0.20)
RUNS = (1, 4, 6, 10)  # of the first; the second is one run
POOL, PAIRS = 20, 40  # records of each change, comparisons of each cell
STUDIES = 1000


def figures() -> Iterator[Figure | Table]:
    """Alarms by change and number of runs, and wins between equal systems of unequal noise."""
    found = gate()
    yield table(found)
    false = max(found[0.0, runs][0] for runs in RUNS if runs >= 4)
    yield Figure(
        "equal systems called different, 4 runs or more", 100 * false, "%", at_most=5,
        note=f"{PAIRS} comparisons of each number of runs",
    )  # fmt: skip
    worst = max(
        false_wins((1.0,) * (n - 1) + (noisy,), blocks)
        for n, noisy, blocks in itertools.product((2, 4), (1.0, 3.0, 10.0), (2, 3, 5))
    )
    yield Figure("equal systems of unequal noise: false wins", 100 * worst, "%", at_most=5,
                 note=f"the worst of 18 kinds of study, {STUDIES} each")  # fmt: skip


def gate(pool: int = POOL, pairs: int = PAIRS) -> dict[tuple[float, int], tuple[float, float]]:
    """By (share slower, runs of the first): shares of comparisons that say a difference, and that
    stop (exit 1)."""
    rng = np.random.default_rng(1)
    found = {}
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
        first = simulated(Path(folder) / "first", 0.0, pool)
        for share in SLOWER:
            second = simulated(Path(folder) / f"{share}", share, pool)
            for runs in RUNS:
                said = stopped = 0
                for _ in range(pairs):
                    drawn = [first[i] for i in rng.choice(pool, runs, replace=False)]
                    one = compare_runs(drawn, [second[rng.integers(pool)]], THRESHOLD)
                    said += any(
                        line.verdict in ("faster", "slower", "differs") for line in one.comparisons
                    )
                    stopped += one.beyond_threshold
                found[share, runs] = said / pairs, stopped / pairs
    return found


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
        study.add("a", server=server, clients=2, seconds=2.0, warmup_s=0.5)
        made.append(Run(open_record(study.write(folder / str(number)))))
    return made


def table(found: dict[tuple[float, int], tuple[float, float]]) -> Table:
    """As METHODOLOGY has it."""
    rows = tuple(
        (
            f"{100 * share:g} %",
            *(" / ".join(f"{100 * x:.0f} %" for x in found[share, n]) for n in RUNS),
        )
        for share in SLOWER
    )
    columns = ("slower by", "one run", *(f"{n} runs" for n in RUNS[1:]))
    return Table("Comparisons that say a difference / that exit with 1", columns, rows)


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
