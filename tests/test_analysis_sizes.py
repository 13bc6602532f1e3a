"""Sweeps of servers whose replies cannot be read, and have other sizes under load than alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from records import Study, lognormal
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Judgement
from searchbench.analysis.trial.replies import NOT_COMPARED, SIZES
from searchbench.record import Record, open_record
from searchbench.terminal.answer import exit_code

LOADS = (1, 2, 4, 8)
QUERIES = 40
Factor = Callable[[int, np.ndarray, np.random.Generator], Any]


def same(n: int, query: np.ndarray, rng: np.random.Generator) -> Any:
    return 1.0


def under_load(share: float, by: float) -> Factor:
    """From 4 clients on this share of the replies is so many times as large."""

    def factor(n: int, query: np.ndarray, rng: np.random.Generator) -> Any:
        return np.where(rng.random(query.size) < (share if n >= 4 else 0.0), by, 1.0)

    return factor


def scattered(sd: float, then: Factor = same) -> Factor:
    def factor(n: int, query: np.ndarray, rng: np.random.Generator) -> Any:
        return then(n, query, rng) * np.exp(sd * rng.standard_normal(query.size))

    return factor


def one_page(n: int, query: np.ndarray, rng: np.random.Generator) -> Any:
    """From 4 clients on every reply is the same page, about as large as most answers."""
    return 500 / (400 + 10 * query) if n >= 4 else 1.0


def sweep(path: Path, factor: Factor, *, loads: tuple[int, ...] = LOADS, **more: Any) -> Record:
    """A server that keeps p99 < 50 ms; its replies have 400 bytes and more when asked alone."""
    rng = np.random.default_rng(1)
    run = Study(blocks=1, control=None, block_noise=0.005, trial_noise=0.005,
                judging={"measure": "sweep", "promises": ("p99 < 50ms",)})  # fmt: skip
    note = {"kind": NOT_COMPARED, "severity": "note", "number": "", "meaning": "not read"}
    sizes = {str(q): 400 + 10 * q for q in range(QUERIES)}
    for n in loads:
        run.add(f"c{n}", system="s", server=more.get("server", lognormal(0.004, 0.1)), clients=n,
                seconds=11.0, levels={"load.clients": n},
                extra={"captured": {"sizes": sizes, "distinct": QUERIES}, "notes": [note]},
                )  # fmt: skip
    record = open_record(run.write(path))
    for n in loads:
        file = next(path.glob(f"trials/*-c{n}/samples.parquet"))
        table = pq.read_table(file)
        query = table.column("query").to_numpy()
        size = np.broadcast_to((400 + 10 * query) * factor(n, query, rng), query.shape)
        at = table.schema.get_field_index("bytes")
        pq.write_table(table.set_column(at, table.schema.field("bytes"),
                                        pa.array(size.astype(np.uint32))), file)  # fmt: skip
    return record


def accused(found: Judgement) -> list[int]:
    """The clients of the steps whose replies have other sizes."""
    return sorted(
        step.clients_asked or 0
        for step in found.steps
        if any(f.kind == SIZES for f in step.findings)
    )


LIES = {
    "all 1.6 times as large": under_load(1.0, 1.6),
    "49 % cut to 51 %": under_load(0.49, 0.51),
    "all a third as large": under_load(1.0, 0.3),
    "8 % cut to 80 %": under_load(0.08, 0.8),
    "one page": one_page,
}


@pytest.mark.parametrize("lie", LIES)
def test_a_promise_kept_by_replies_of_other_sizes_cannot_be_told(tmp_path: Path, lie: str) -> None:
    record = sweep(tmp_path / "r", scattered(0.01, LIES[lie]))
    found = judge(record)
    assert accused(found) == [4, 8]
    verdicts = {step.clients_asked: step.promises[0].verdict for step in found.steps}
    assert verdicts == {1: "kept", 2: "kept", 4: "cannot tell", 8: "cannot tell"}
    assert exit_code(record, found) == 3
    assert found.verdict.headline.startswith(
        "p99 < 50ms: it cannot be told at 4 and 8, kept at 1 and 2 clients: at 8, "
    )
    assert "had another size under load than when asked alone" in found.verdict.headline


@pytest.mark.parametrize("lie", ["all 1.6 times as large", "49 % cut to 51 %"])
def test_other_sizes_are_seen_without_a_lighter_load_too(tmp_path: Path, lie: str) -> None:
    record = sweep(tmp_path / "r", scattered(0.01, LIES[lie]), loads=(8,))
    assert accused(judge(record)) == [8]
    assert exit_code(record, judge(record)) == 3


def test_a_server_that_cuts_replies_at_every_load_is_accused_at_every_load(tmp_path: Path) -> None:
    def cut(n: int, query: np.ndarray, rng: np.random.Generator) -> Any:
        return np.where(rng.random(query.size) < 0.3, 0.66, 1.0)

    assert accused(judge(sweep(tmp_path / "r", cut))) == [*LOADS]


def digits_of_a_time(n: int, query: np.ndarray, rng: np.random.Generator) -> Any:
    took = np.floor(np.log10(rng.lognormal(1 + n, 1.0, query.size) + 1))
    return 1 + took / (400 + 10 * query)


@pytest.mark.parametrize("honest", [same, digits_of_a_time, scattered(0.02), scattered(0.1)])
def test_replies_whose_sizes_sway_keep_their_promise(tmp_path: Path, honest: Factor) -> None:
    record = sweep(tmp_path / "r", honest)
    found = judge(record)
    assert accused(found) == []
    assert exit_code(record, found) == 0
    assert found.verdict.headline.startswith("p99 < 50ms: kept at 1, 2, 4 and 8 clients")


def test_a_promise_broken_in_spite_of_other_sizes_is_broken(tmp_path: Path) -> None:
    record = sweep(tmp_path / "r", under_load(1.0, 0.3), server=lognormal(0.06, 0.1))
    found = judge(record)
    assert accused(found) == [4, 8]
    assert {step.promises[0].verdict for step in found.steps} == {"broken"}
    assert exit_code(record, found) == 1
