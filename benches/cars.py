"""How fast cars come into each system: by its bulk door, a thousand in a request, and one by one.

    python benches/figures.py ingest-3m      the 3,000,000 cars of the publication, half an hour
    python benches/cars.py CARS [SYSTEM]     by hand: a multiple of 15,000

What is run is the shipped study (studies/cars-ingest.toml), one system after another, at a size: so
each ingest is a trial, whose documents are counted afterwards. One by one, as in the publication,
millions would take minutes in most systems and far longer in OpenSearch. So each system is given
only a part, and its row says how many cars that is.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benches.figure import Figure, Missing
from benches.table import Table
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import JobResult
from searchbench.lab.get.install import lacking
from searchbench.measure.run import run
from searchbench.study import Study
from searchbench.study.overrides import read_changed
from searchbench.study.planner import make_plan

STUDY = Path(__file__).parent.parent / "studies" / "cars-ingest.toml"
COPY = 15_000  # cars of the corpus, of which all others are copies
PART = 10  # of so many cars one is given, where all come one by one
SHORT, WHOLE = 30_000, 3_000_000
BULK, SINGLE = 1000, 1  # cars in a request
PUBLISHED = "Published in 2012 for 3,000,000 cars, one by one: MySQL 2,041 rows/s, SenseiDB 6,675."


@dataclass(frozen=True, slots=True)
class System:
    """One of the study. ``bulk``: what its bulk door is; ``door``: the level of its factor.

    ``part``: one by one it is given one car in so many. ``sets``: what it needs for millions.
    """

    name: str
    title: str
    bulk: str
    door: str = ""
    part: int = PART
    sets: tuple[str, ...] = ()


SYSTEMS = (
    System("innodb", "MariaDB", "LOAD DATA LOCAL", door="load"),
    System("postgresql", "PostgreSQL", "COPY", door="copy"),
    System("lucene", "Lucene", "a batch of the host"),
    System("groonga", "Groonga", "load"),
    System(  # with a heap of 512 MB, it ends for want of memory after two millions
        "sensei",
        "SenseiDB, heap of 4 GB",
        "events in one request",
        part=50,
        sets=("systems.sensei.heap_mb=4096",),
    ),
    System("opensearch", "OpenSearch", "_bulk", part=50),
)


@dataclass(frozen=True, slots=True)
class Came:
    """One ingest: into which system, by which door, how many cars, and what it was."""

    title: str
    door: str
    cars: int
    job: JobResult

    @property
    def settled_per_s(self) -> float:
        """Cars a second until everything is indexed, on disk and visible."""
        return self.job.figures["documents_per_s"].value

    @property
    def sent_per_s(self) -> float:
        """Cars a second until the last request was answered."""
        progress = self.job.progress
        return self.cars / progress.x[-1] if progress else self.settled_per_s


def figures(
    cars: int = SHORT, systems: Sequence[System] = ()
) -> Iterator[Figure | Table | Missing]:
    """A table of both ways into each system, and how many times as fast the bulk door is.

    ``systems``: only these; empty: all.
    """
    systems, rows = systems or SYSTEMS, list[Came]()
    for system in systems:
        found: dict[int, Came] = {}
        for batch in (BULK, SINGLE):
            came = _came(system, cars, batch)
            if isinstance(came, Missing):
                yield came
                if batch == BULK:
                    break
                continue
            found[batch] = came
            print(f"    {' | '.join(row(came))}", flush=True)
        rows += found.values()
        if len(found) > 1:
            yield Figure(
                f"{system.title}: cars by its bulk door, over one by one",
                found[BULK].settled_per_s / found[SINGLE].settled_per_s, "x",
                note=f"{found[BULK].cars:,} and {found[SINGLE].cars:,} cars",
            )  # fmt: skip
    if rows:
        slow = [f"{s.title.partition(',')[0]} one in {s.part}" for s in systems if s.part > PART]
        but = f" ({', '.join(slow)})" if slow else ""
        left = f"One by one, each was given only one car in {PART}{but}, to save time."
        notes = (left, PUBLISHED)
        yield Table(
            f"{cars:,} cars into each system",
            ("system", "by", "cars", "rows/s", "with settling", "request p99, ms", "server CPU, s"),
            tuple(map(row, rows)),
            notes,
        )  # fmt: skip


def whole() -> Iterator[Figure | Table | Missing]:
    """The publication's number of cars."""
    yield from figures(WHOLE)


def row(came: Came) -> tuple[str, ...]:
    """A line of the table."""
    tail, cpu = (came.job.figures.get(name) for name in ("request_p99_s", "cpu_s"))
    return (
        came.title, came.door, f"{came.cars:,}", f"{came.sent_per_s:,.0f}",
        f"{came.settled_per_s:,.0f}", f"{tail.value * 1e3:.1f}" if tail else "",
        f"{cpu.value:.1f}" if cpu else "",
    )  # fmt: skip


def study_of(system: System, cars: int, batch: int) -> tuple[Study, int]:
    """The shipped study with this one ingest alone, and how many cars it has."""
    scale, given = fitting(cars if batch == BULK else cars // system.part)
    only = [f"system={system.name}", f"jobs.ingest.batch={batch}"]
    if batch == BULK and system.door:
        only.append(f"systems.{system.name}.door={system.door}")
    return read_changed(STUDY, [f"corpus.scale={scale}", *system.sets], only), given


def fitting(cars: int) -> tuple[str, int]:
    """The ``scale`` of so many cars, and how many those are: whole copies, or every n-th car."""
    if cars >= COPY:
        return str(cars // COPY), cars // COPY * COPY
    every = -(-COPY // cars)
    return f"{1 / every:.6g}", -(-COPY // every)


def _came(system: System, cars: int, batch: int) -> Came | Missing:
    """One ingest, measured."""
    study, given = study_of(system, cars, batch)
    plan = make_plan(study)
    if absent := lacking(plan):
        return Missing(f"cars into {system.title}: {absent[0]}")
    door = f"{system.bulk}, {BULK:,} at once" if batch == BULK else "one by one"
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
        judged = judge(run(study, Path(folder, "record"), plan=plan, work=Path(folder, "work")))
    if not judged.jobs:
        (trial,) = (trial for treatment in judged.treatments for trial in treatment.trials)
        return Missing(f"cars into {system.title}, {door}: {trial.status}: {trial.reason}")
    (job,) = judged.jobs
    if job.documents != given:
        raise RuntimeError(f"{system.title}, {door}: {job.documents} of {given:,} cars are there")
    return Came(system.title, door, given, job)


def main() -> int:
    """By hand, so many."""
    cars = int(sys.argv[1]) if len(sys.argv) in (2, 3) and sys.argv[1].isdigit() else 0
    systems = [one for one in SYSTEMS if one.name in sys.argv[2:] or len(sys.argv) == 2]
    if cars <= 0 or cars % COPY or not systems:
        print(__doc__)
        return 2
    for one in figures(cars, systems):
        print(one.text() if isinstance(one, Table) else one.line())
    return 0


if __name__ == "__main__":
    sys.exit(main())
