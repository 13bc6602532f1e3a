"""Two records of trials with a fault or an overload: what that did to the second."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from records import LAG_NS, OUTCOMES, Study
from searchbench.analysis.compare import recovered
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judgement import RecordComparison
from searchbench.cli import app
from searchbench.record import SAMPLES, Record, open_record
from searchbench.record.drive import Drive
from searchbench.record.roles import WRITES, Applied, Drawn, FaultDone, RoleRun

S, RATE = 10**9, 200.0
BEGUN_S, AGAIN_S, END_S = 6.0, 7.0, 20.0
STAGES = [[1.0, RATE], [6.0, RATE], [3.0, 400.0], [10.0, RATE]]
NEVER_S = 99.0


class Disturbed(Study):
    """Trials of which a fault is at 6 s; the server answers again at ``back``, in seconds, by
    block. ``hides``: a share of requests that fail while it does. ``gone``: of the documents that a
    writer had acknowledged. ``over``: an overload in place of the fault.
    """

    back: tuple[float, ...] = (AGAIN_S,)
    gone = 0
    writes = True
    over = False

    def plan(self, trials: Any) -> Any:
        """The same with the roles of the study."""
        made = super().plan(trials)
        fault = {"does": "fault", "fault": "kill", "of": "server", "after_s": 5.0, "for_s": 1.0}
        for treatment in () if self.over else made.treatments:
            treatment.settings["roles"] = {"crash": {**fault, "idle": False}}
        return made

    def _write_trial(self, writer: Any, planned: Any, position: int, t: Any, *rest: Any) -> None:
        self._back = self.back[planned.block % len(self.back)]
        if not self.over:
            t.extra = {"beside": [*self._beside()]}
        kept, tables = writer.trial, _written()
        if self.writes and not self.over:
            writer.trial = lambda about, **more: kept(about, roles=tables, **more)
        super()._write_trial(writer, planned, position, t, *rest)
        writer.trial = kept

    def _beside(self) -> list[Any]:
        fault = FaultDone(fault="kill", of="server", processes=1, begun=round(BEGUN_S * S),
                          ended=round(BEGUN_S * S) + 5_000_000, again=round(AGAIN_S * S),
                          ready=round(AGAIN_S * S) + 1_000_000)  # fmt: skip
        runs = [RoleRun(name="crash", number=1, does="fault", fault=fault)]
        if self.writes:
            n = int(sum(_taken(np.arange(0, END_S, 0.02))))
            drawn = [Drawn(word=f"w{i}", id=f"d{i}", kind="insert", request=i, found=[f"d{i}"])
                     for i in range(10)]  # fmt: skip
            drive = Drive(started_unix_ns=1_769_860_800 * S, elapsed_ns=round(END_S * S),
                          clock="tsc", clock_drift_ppm=0.4, threads=[], connects=1)  # fmt: skip
            runs.append(RoleRun(
                name="writer", number=2, does="write", planned=n, kept_back=5000, drive=drive,
                keys={"documents_per_s": 50.0, "clients": None, "marker_every_s": 0},
                applied=Applied(before=10_000, after=10_000 + n - self.gone, drawn=drawn),
            ))  # fmt: skip
        return [msgspec.to_builtins(run) for run in runs]

    def _samples(self, t: Any, factor: float, rng: np.random.Generator) -> pa.Table:
        if self.over:
            starts = np.cumsum([0, *(seconds for seconds, _ in STAGES)])
            due = np.concatenate([
                start + np.sort(seconds * rng.random(rng.poisson(seconds * rate)))
                for start, (seconds, rate) in zip(starts[:-1], STAGES, strict=True)
            ])  # fmt: skip
        else:
            due = np.cumsum(rng.exponential(1 / RATE, int(RATE * END_S * 1.3)))
            due = due[due < END_S]
        took = 0.004 * factor * np.exp(0.3 * rng.standard_normal(due.size))
        never = np.zeros(due.size, bool)
        if self.over:
            took[(due >= 7) & (due < 10)] += 0.3
            took[(due >= 10) & (due < self._back)] += 2.0
        else:
            never = (due >= BEGUN_S) & (due < self._back)
        return _table(due, took, never, np.resize(np.arange(self.queries), due.size))


def _taken(due: Any) -> Any:
    return (due < BEGUN_S) | (due >= AGAIN_S)


def _table(due: Any, took: Any, never: Any, query: Any, role: int = 0) -> pa.Table:
    due_ns = np.rint(due * S).astype(np.int64)
    done = due_ns + np.rint(took * S).astype(np.int64)
    outcome = np.where(never, OUTCOMES.index("refused"), 0).astype(np.uint8)
    nothing = pa.nulls(due.size, pa.int64())
    columns = {
        "query": pa.array(query, pa.uint32()),
        "connection": pa.array((np.arange(due.size) % 1000).astype(np.uint16)),
        "outcome": pa.array(outcome),
        "bytes": pa.array(np.full(due.size, 900), pa.uint32()),
        "due": pa.array(due_ns),
        "free": pa.array(due_ns),
        "connect": nothing,
        "sent": pa.array(due_ns + LAG_NS, mask=never),
        "first_byte": pa.array(done - 1, mask=never),
        "done": pa.array(done, mask=never),
        "host": nothing if role else pa.array(done - due_ns, mask=never),
        "role": pa.array(np.full(due.size, role, np.uint8)),
    }
    return pa.table(columns, schema=SAMPLES)


def _written() -> dict[str, pa.Table]:
    """Fifty inserts a second, each acknowledged in 2 ms but while the server is down."""
    due = np.arange(0, END_S, 0.02)
    n = due.size
    made = pa.table({
        "request": pa.array(np.arange(n), pa.uint32()), "kind": ["insert"] * n,
        "documents": pa.array(np.ones(n), pa.uint32()), "marker": pa.nulls(n, pa.string()),
        "refused": pa.array(np.zeros(n), pa.uint32()), "error": pa.nulls(n, pa.string()),
    }, schema=WRITES)  # fmt: skip
    samples = _table(due, np.full(n, 0.002), ~_taken(due), np.arange(n), role=2)
    return {"writer": samples, "writer.writes": made}


def run(path: Path, seed: int, *back: float, blocks: int = 3, **more: Any) -> Record:
    judging = {"promises": ["p99 < 100ms"], "metric": "response_p99"} if more.get("over") else {}
    made = Disturbed(blocks=blocks, seed=seed, control=None, judging=judging)
    made.back = back or made.back
    for key, value in more.items():
        setattr(made, key, value)
    t = made.add("k", system="shop", rate_per_s=RATE, seconds=END_S, warmup_s=1.0)
    if made.over:
        t.seconds = 7.0
        t.extra = {"load": {"stages": STAGES, "judged_stage": 2, "capacity_per_s": None}}
    return open_record(made.write(path))


def compared(a: list[Record], b: list[Record]) -> RecordComparison:
    return compare_records(a[0], b[0], 0.05, a[1:], b[1:])


def pair(path: Path, *back: float, first: float = AGAIN_S, **more: Any) -> RecordComparison:
    usual = {key: value for key, value in more.items() if key != "gone"}
    return compared([run(path / "a", 1, first, **usual)], [run(path / "b", 2, *back, **more)])


def test_who_never_comes_back_after_a_fault_has_lost_it(tmp_path: Path) -> None:
    found = pair(tmp_path, NEVER_S)
    assert found.headline == (
        "Lost: shop (after the server was killed, answers were not normal again in 3 of 3 trials "
        "of the second, and in 0 of 3 of the first)."
    )
    assert found.beyond_threshold
    assert [*found.lost] == ["shop"]
    assert recovered.REST in found.decision
    argv = ["compare", str(tmp_path / "a"), str(tmp_path / "b")]
    assert app(argv, result_action="return_value") == 1
    assert app([*argv[:1], *argv[:0:-1]], result_action="return_value") == 0


def test_in_some_trials_it_is_not_known(tmp_path: Path) -> None:
    found = pair(tmp_path, AGAIN_S, AGAIN_S, NEVER_S)
    assert not found.lost
    assert not found.beyond_threshold
    assert "answers were not normal again in 1 of 3 trials of the second, and in 0 of 3" in (
        found.headline
    )
    assert [*found.not_known] == ["shop"]
    argv = ["compare", str(tmp_path / "a"), str(tmp_path / "b")]
    assert app(argv, result_action="return_value") == 3


def test_documents_that_are_gone_are_lost_with_their_number(tmp_path: Path) -> None:
    found = pair(tmp_path, AGAIN_S, gone=300)
    assert found.headline == (
        "Lost: shop (after the server was killed, 900 of 2,850 acknowledged documents are gone in "
        "the second, and none of 2,850 in the first)."
    )
    assert found.beyond_threshold
    both = compared(
        [run(tmp_path / "c", 3, AGAIN_S, gone=300)], [run(tmp_path / "d", 4, AGAIN_S, gone=300)]
    )
    assert not both.lost
    assert not both.not_known
    more = compared(
        [run(tmp_path / "e", 3, AGAIN_S, gone=1)], [run(tmp_path / "f", 4, AGAIN_S, gone=300)]
    )
    assert "are gone in the second, and 3 of 2,850 acknowledged documents" in more.not_known["shop"]


def test_who_comes_back_later_is_worse_if_that_is_resolved(tmp_path: Path) -> None:
    late = pair(tmp_path, 12.0, 12.2, 12.4)
    later = (
        "Answers were normal again later in the second than in the first: shop (after the server "
    )
    assert late.headline.startswith(later)
    assert "after its new start in the second, and " in late.headline
    assert late.beyond_threshold
    assert not late.lost
    assert late.regressed is None, "two runs alone"
    again = compared(
        [run(tmp_path / f"a{i}", 10 + i) for i in range(3)],
        [run(tmp_path / f"b{i}", 20 + i, 12.0 + 0.1 * i) for i in range(3)],
    )
    assert again.regressed
    assert [*again.normal_later] == ["shop"]


@pytest.mark.parametrize(
    ("first", "second"),
    [((7.0, 9.0, 12.0), (8.0, 12.0, 17.0)), ((7.0, 7.0), (12.0, 12.2))],
    ids=["intervals overlap", "two trials"],
)
def test_else_both_times_are_said_and_not_judged(
    tmp_path: Path, first: tuple[float, ...], second: tuple[float, ...]
) -> None:
    a, b = (run(tmp_path / name, i, *back, blocks=len(back))
            for i, (name, back) in enumerate((("a", first), ("b", second))))  # fmt: skip
    found = compare_records(a, b)
    assert not found.normal_later
    assert not found.beyond_threshold
    assert "shop: after the server was killed, answers were normal again" in found.decision


def test_later_by_ranges_that_chance_makes_is_not_told_to_be_later(tmp_path: Path) -> None:
    """Three of three later than three of three: one order of twenty, of trials that differ by more
    than that. Four of four are one of seventy.
    """
    first, second = (8.0, 9.0, 11.5, 8.2), (12.0, 12.5, 18.4, 12.2)
    for n in (3, 4):
        a, b = (run(tmp_path / f"{name}{n}", i, *back[:n], blocks=n)
                for i, (name, back) in enumerate((("a", first), ("b", second))))  # fmt: skip
        found = compare_records(a, b)
        assert bool(found.normal_later) == (n == 4)
        assert ("run both more often" in found.not_known.get("shop", "")) == (n == 3)


def test_where_the_first_is_unknown_and_the_second_never_normal_it_is_not_known(
    tmp_path: Path,
) -> None:
    a, b = run(tmp_path / "a", 1), run(tmp_path / "b", 2, NEVER_S)
    for file in a.path.glob("trials/*/trial.json"):
        told = json.loads(file.read_text())
        told["beside"][0]["fault"]["begun"] = round(1.1 * S)
        file.write_text(json.dumps(told))
    found = compare_records(open_record(a.path), b)
    assert not found.lost
    assert "is not known in any of the first" in found.not_known["shop"]


def test_equal_systems_lose_nothing_by_a_fault(tmp_path: Path) -> None:
    found = pair(tmp_path, AGAIN_S)
    assert found.headline.startswith("No resolved loss exceeds 5 %")
    assert not found.not_known
    assert not found.normal_later


def test_more_requests_without_an_answer_are_named(tmp_path: Path) -> None:
    """Of both it is known in one trial only when answers were normal, and how many failed."""
    found = pair(tmp_path, 12.0, blocks=1)
    assert not found.beyond_threshold
    assert "of the requests were not answered well in the second, and 7" in found.not_known["shop"]


def test_another_fault_is_not_compared(tmp_path: Path) -> None:
    found = pair(tmp_path, NEVER_S, writes=False)
    assert found.lost
    other = compared([run(tmp_path / "c", 1)], [run(tmp_path / "d", 2, NEVER_S, writes=False)])
    assert not other.lost
    assert "shop: what a fault or an overload did is not compared, because the load is not" in (
        other.decision
    )


def test_an_overload_after_which_nothing_is_normal_is_a_loss(tmp_path: Path) -> None:
    found = pair(tmp_path, NEVER_S, first=10.5, over=True)
    assert found.headline == (
        "Lost: shop (after the overload, answers were not normal again in 3 of 3 trials of the "
        "second, and in 0 of 3 of the first)."
    )
    assert found.beyond_threshold
