"""Readers beside a writer, on the null host: when a write is found, and what it costs the readers.

The host finds each written document a known time after it has read the write, and nothing that is
written makes it slower. So commit to visible is known beforehand, and the readers' figures with a
writer must be those without one, to within what two measurements of the same thing differ by.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from benches.figure import Figure
from benches.table import Table
from searchbench.analysis.compare.pairs import noise_floors
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Estimate, Judgement
from searchbench.analysis.roles.accepted import written
from searchbench.analysis.roles.results import of_figures
from searchbench.analysis.roles.visible import Seen, seen, visible
from searchbench.measure.run import run
from searchbench.record import Record

PUBLISH_MS = (20, 150, 500)
ASK_MS = (5, 20)
WRITES_PER_S = 100
QUANTILES = {"p50": "median", "p90": "p90"}
METRICS = {
    "throughput": "throughput", "service_p50": "median service time", "service_p99": "service p99",
}  # fmt: skip
# How far the times of a write's answer may be apart: when the host read the write, by which it
# counts, and when we read the answer, by which we do.
ANSWER_S = 0.001
VISIBLE = """
question = "How exactly is it known when a write can be found?"
replicates = 1
[control]
aa = false
[corpus]
family = "generated"
documents = 4000
[queries]
distinct = 20
[roles.writer]
does = "write"
documents = 3000
documents_per_s = 200
marker_every_s = 0.05
ask_every_ms = {ask_ms}
[load]
clients = 1
seconds = {seconds}
warmup_s = 0.5
[systems.null]
delay_us = 500
publish_ms = {publish_ms}
"""
BESIDE = """
question = "What does a writer cost the readers of a host that it does not slow down?"
replicates = {blocks}
[corpus]
family = "generated"
documents = 2000
[queries]
distinct = 50
[roles.writer]
does = "write"
documents = 1000
[factors]
"roles.writer.documents_per_s" = [0, {per_s}]
[load]
clients = 1
seconds = {seconds}
warmup_s = 0.5
[systems.null]
delay_us = 2000
publish_ms = 100
"""


@dataclass(frozen=True, slots=True)
class Found:
    """What was said of a host that finds a write after ``publish_ms``, asked every ``ask_ms``.

    ``quantiles``: commit to visible, in seconds; ``resolution_s``: how closely the middle marker is
    known; ``wrong``: markers that the host cannot have found when it was said.
    """

    publish_ms: int
    ask_ms: int
    markers: int
    wrong: int
    quantiles: dict[str, Estimate]
    resolution_s: float

    def off_ms(self, quantile: str) -> float:
        """How far what was said is off what is true."""
        return abs(self.quantiles[quantile].value * 1e3 - self.publish_ms)


def figures() -> Iterator[Figure | Table]:
    """Commit to visible against the truth; the readers beside a writer, and beside an idle one."""
    yield from commit_to_visible()
    yield from beside_a_writer()


def commit_to_visible(
    publish_ms: Sequence[int] = PUBLISH_MS, ask_ms: Sequence[int] = ASK_MS, seconds: float = 8.0
) -> Iterator[Figure | Table]:
    """For each interval of asking the largest error over the delays, all in ms."""
    found = [asked_for(late, ask, seconds) for ask, late in product(ask_ms, publish_ms)]
    yield Table(
        "Null host: from the answer to a write until it is found, ms",
        ("the truth", "asked every", "markers", "p50", "its interval", "p90", "one to within"),
        tuple(map(_row, found)),
    )
    for ask, (quantile, called) in product(ask_ms, QUANTILES.items()):
        here = [one for one in found if one.ask_ms == ask]
        worst = max(here, key=lambda one: one.off_ms(quantile))
        yield Figure(
            f"commit to visible, asked every {ask} ms: {called} off by", worst.off_ms(quantile),
            "ms", at_most=ask,
            note=f"the worst of {len(here)} delays, {worst.publish_ms} ms",
        )  # fmt: skip
    markers, wrong = (sum(getattr(one, name) for one in found) for name in ("markers", "wrong"))
    yield Figure(
        "commit to visible: markers whose two asks leave out the truth", 100 * wrong / markers, "%",
        at_most=1, note=f"{wrong} of {markers:,}",
    )  # fmt: skip


def asked_for(publish_ms: int, ask_ms: int, seconds: float) -> Found:
    """One trial, judged by its markers alone: what else is to be said of it is no matter here."""
    study = VISIBLE.format(publish_ms=publish_ms, ask_ms=ask_ms, seconds=seconds)
    with _measured(study) as record:
        (trial,) = record.trials
        if trial.reason:
            raise RuntimeError(trial.reason)
        writer, watcher = trial.beside
        markers = seen(record, trial, watcher, written(record, trial, writer))
    said = visible([markers], 1e3 / ask_ms, None)
    if said is None or not QUANTILES.keys() <= said.quantiles.keys():
        raise RuntimeError(f"{len(markers)} markers are too few to say anything")
    wrong, quantiles = impossible(markers, publish_ms / 1e3), dict(said.quantiles)
    return Found(publish_ms, ask_ms, len(markers), wrong, quantiles, said.resolution_s)


def impossible(markers: Sequence[Seen], publish_s: float) -> int:
    """How many were said to be found earlier or later than a host can that takes ``publish_s``.

    One that was not found before the drive ended is known to take longer than it was looked for.
    """
    return sum(
        not one.earliest_s - ANSWER_S <= publish_s <= one.latest_s + ANSWER_S for one in markers
    )


def _row(one: Found) -> tuple[str, ...]:
    half, tail = one.quantiles["p50"], one.quantiles["p90"]
    between = "" if half.interval is None else (
        f"{half.interval.low * 1e3:.1f}–{half.interval.high * 1e3:.1f}"
    )  # fmt: skip
    return (
        str(one.publish_ms), str(one.ask_ms), str(one.markers), f"{half.value * 1e3:.1f}", between,
        f"{tail.value * 1e3:.1f}", f"{one.resolution_s * 1e3:.1f}",
    )  # fmt: skip


def beside_a_writer(
    blocks: int = 6, seconds: float = 4.0, metrics: Mapping[str, str] = METRICS
) -> Iterator[Figure]:
    """Each figure of the readers against that beside an idle writer, held to the A/A control."""
    study = BESIDE.format(blocks=blocks, per_s=WRITES_PER_S, seconds=seconds)
    with _measured(study) as record:
        judged = judge(record)
    for metric, called in metrics.items():
        ratio, floor = ratio_and_floor(judged, metric)
        between = ratio.interval
        said = "" if between is None else f" ({between.low:.4f}..{between.high:.4f})"
        yield Figure(
            f"readers beside {WRITES_PER_S} writes/s, {called}: off that beside an idle writer by",
            100 * abs(ratio.value - 1), "%", at_most=round(100 * (floor.value - 1), 4),
            note=f"ratio {ratio.value:.4f}{said}, {ratio.n} blocks; the target is the largest of "
            f"{floor.n} pairs of the A/A control",
        )  # fmt: skip


def ratio_and_floor(judged: Judgement, metric: str) -> tuple[Estimate, Estimate]:
    """With a writer over without, paired by block; and the noise floor of the same metric.

    RuntimeError where either is not known, with what was wrong with the trials.
    """
    assert judged.roles is not None
    (beside,) = judged.roles.beside
    by_id = {t.treatment: t for t in judged.treatments}
    # Of the figures as they are: a study compares nobody on queries that find nothing, as all of
    # this host's do.
    ratio = of_figures(by_id[beside.idle], by_id[beside.treatment], metric)
    floor = noise_floors(judged.treatments, (metric,)).get(metric)
    if ratio is None or floor is None or not math.isfinite(ratio.value):
        trials = [trial for treatment in judged.treatments for trial in treatment.trials]
        why = [f"{t.trial}: {t.reason}" for t in trials if t.status != "valid"]
        said = f"{len(why)} of {len(trials)} trials are invalid, as {why[0]}" if why else (
            "the windows are too short"
        )  # fmt: skip
        raise RuntimeError(f"{metric} of the readers is not known: {said}")
    return ratio, floor


@contextmanager
def _measured(text: str) -> Iterator[Record]:
    """The record of a study, for as long as the context lasts."""
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
        path = Path(folder, "study.toml")
        path.write_text(text)
        yield run(path, Path(folder, "record"), work=Path(folder, "work"))
