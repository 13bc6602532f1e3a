"""Two sweeps of one start each: what two starts of a system may differ by is no loss."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import NormalDist

import pytest

from queues import fixed
from records import Study, lognormal
from searchbench.analysis.compare.builds import STARTS_SD, alike
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judgement import RecordComparison
from searchbench.cli.compare import compare
from searchbench.record import open_record
from searches import Lab

ONE, THREE = alike(1, STARTS_SD), alike(3, STARTS_SD)


def sweep(
    path: Path, slower: float, seed: int, blocks: int = 1, names: Sequence[str] = ("x",)
) -> Path:
    """A start that is slower by this at all loads."""
    run = Study(blocks=blocks, seed=seed, control=None, trial_noise=0.003, block_noise=0.003,
                judging={"measure": "sweep"})  # fmt: skip
    for name in names:
        for n in (2, 4):
            levels = {"system": name, "load.clients": n}
            server = lognormal(0.004 * (1 + slower), 0.1)
            run.add(f"{name}{n}", system=name, server=server, clients=n, levels=levels,
                    seconds=11.0)  # fmt: skip
    return run.write(path)


def judged(a: Path, b: Path) -> RecordComparison:
    return compare_records(open_record(a), open_record(b))


def attached(path: Path) -> Path:
    """The same of a system that ran already."""
    for trial in path.glob("trials/*/trial.json"):
        told = json.loads(trial.read_text())
        trial.write_text(json.dumps(told | {"attached": "127.0.0.1:1"}))
    return path


@pytest.mark.parametrize("slower", [0.08, 0.3])
def test_a_loss_that_two_starts_may_make_cannot_be_told(tmp_path: Path, slower: float) -> None:
    a, b = sweep(tmp_path / "a", 0.0, 1), sweep(tmp_path / "b", slower, 2)
    found = judged(a, b)
    sure = 1 + slower > ONE
    assert found.beyond_threshold is sure
    assert {c.verdict for c in found.comparisons if c.metric == "throughput"} == {
        "differs" if sure else "not resolved"
    }
    assert all(c.start_floor >= ONE for c in found.comparisons)
    assert compare(a, b, as_json=True) == (1 if sure else 3)
    if not sure:
        assert {*found.not_known} == {"x 2", "x 4"}
        assert "each was started once, and below 1" in found.not_known["x 2"]
        assert "give further runs of both, each on a start of its own" in found.decision
    else:
        assert not found.not_known


def test_systems_that_ran_already_are_not_said_to_have_been_started(tmp_path: Path) -> None:
    a, b = (
        attached(sweep(tmp_path / n, by, i)) for i, (n, by) in enumerate((("a", 0), ("b", 0.08)))
    )
    found = judged(a, b)
    assert all(c.ran_already for c in found.comparisons)
    assert "they ran already and were not started by searchbench" in found.not_known["x 2"]
    assert "Systems that ran already were not started by searchbench" in found.decision
    assert "started once" not in found.decision + "".join(c.reason for c in found.comparisons)


def test_equal_systems_whose_starts_scatter_are_seldom_a_loss(tmp_path: Path) -> None:
    """Ten pairs, of which the second is slower in five; three of them exited with 1, or two."""
    scatter = NormalDist(0.0, math.sqrt(2) * STARTS_SD)
    losses = [math.expm1(scatter.inv_cdf((i + 0.5) / 10)) for i in range(5, 10)]
    assert sum(loss > 0.06 for loss in losses) == 2, "there is something to be mistaken for a loss"
    for i, loss in enumerate(losses):
        a, b = sweep(tmp_path / f"a{i}", 0.0, 10 + i), sweep(tmp_path / f"b{i}", loss, 30 + i)
        assert not judged(a, b).beyond_threshold


@pytest.mark.parametrize(("slower", "sure"), [(1.07, False), (1.10, False), (1.4, True)])
def test_a_limit_that_two_starts_may_move_cannot_be_told(
    tmp_path: Path, slower: float, sure: bool
) -> None:
    """By 7 and 10 % it was a loss, and nothing was in doubt."""
    a, b = (
        Lab(tmp_path / name, {"sphinx": fixed(4, 0.002 * by)}, ("p99 < 10ms",), seed=ord(name),
            effort=0.5).run().path
        for name, by in (("a", 1.0), ("b", slower))
    )  # fmt: skip
    found = judged(a, b)
    (line,) = found.comparisons
    assert line.ratio is not None
    assert line.ratio.value == pytest.approx(1 / slower, rel=0.1)
    assert line.start_floor == pytest.approx(ONE)
    assert (line.verdict, found.beyond_threshold) == (
        ("differs", True) if sure else ("not resolved", False)
    )
    assert compare(a, b, as_json=True) == (1 if sure else 3)
    assert bool(found.not_known) is not sure
    if not sure:
        assert "and below 15 % a difference may be that of two starts" in line.reason
    assert judged(b, a).beyond_threshold is False


def test_several_subjects_have_a_greater_floor(tmp_path: Path) -> None:
    a, b = (sweep(tmp_path / name, 0.0, i, names="xyz") for i, name in enumerate("ab"))
    assert all(c.start_floor >= THREE > ONE for c in judged(a, b).comparisons)


def test_where_starts_are_in_the_interval_a_loss_is_one(tmp_path: Path) -> None:
    """Each block starts the system anew; and so does each run."""
    a, b = sweep(tmp_path / "a", 0.0, 1, blocks=3), sweep(tmp_path / "b", 0.1, 2, blocks=3)
    found = judged(a, b)
    assert {c.start_floor for c in found.comparisons} == {1.0}
    assert (found.beyond_threshold, compare(a, b, as_json=True)) == (True, 1)
    first = [sweep(tmp_path / f"c{i}", 0.002 * i, 10 + i) for i in range(3)]
    later = [sweep(tmp_path / f"d{i}", 0.1 + 0.002 * i, 20 + i) for i in range(3)]
    of_runs = compare_records(
        open_record(first[0]), open_record(later[0]), 0.05,
        [*map(open_record, first[1:])], [*map(open_record, later[1:])],
    )  # fmt: skip
    assert {c.start_floor for c in of_runs.comparisons} == {1.0}
    assert of_runs.regressed


def test_a_system_that_ran_already_may_be_another_start_in_each_record(tmp_path: Path) -> None:
    a = attached(sweep(tmp_path / "a", 0.0, 1, blocks=3))
    b = attached(sweep(tmp_path / "b", 0.08, 2, blocks=3))
    found = judged(a, b)
    assert all(c.start_floor >= ONE for c in found.comparisons)
    assert (found.beyond_threshold, compare(a, b, as_json=True)) == (False, 3)


def runs(folder: Path, slower: float, seed: int) -> list[Path]:
    """Three sweeps of one start."""
    return [sweep(folder / str(seed + i), slower + 0.002 * i, seed + i) for i in range(3)]


def studies(folder: Path, slower: float, seed: int) -> list[Path]:
    """Three studies of one start, over an index as it was found."""
    found = []
    for i in range(3):
        run = Study(blocks=3, seed=seed + i, control=None, trial_noise=0.003, block_noise=0.003,
                    judging={"ingest": "as-found"})  # fmt: skip
        run.add("x", system="x", server=lognormal(0.004 * (1 + slower + 0.002 * i), 0.1),
                seconds=9.0)  # fmt: skip
        found.append(run.write(folder / str(seed + i)))
    return found


@pytest.mark.parametrize("made", [runs, studies])
def test_further_runs_of_one_start_do_not_show_how_much_starts_differ(
    tmp_path: Path, made: Callable[[Path, float, int], list[Path]]
) -> None:
    """Of equal systems that ran already, whose starts scatter by 5 %, a quarter of such pairs of
    three runs each was a regression.
    """

    def over_all(slower: float, seed: int) -> RecordComparison:
        a, b = ([open_record(attached(path)) for path in made(tmp_path, by, at)]
                for by, at in ((0.0, seed), (slower, seed + 10)))  # fmt: skip
        return compare_records(a[0], b[0], 0.05, a[1:], b[1:])

    found = over_all(0.08, 100)
    assert all(c.start_floor >= ONE for c in found.comparisons if c.ratio)
    assert (found.regressed, found.beyond_threshold) == (None, False)
    assert found.not_known
    assert "of its own that searchbench makes" in found.decision
    assert over_all(0.3, 200).regressed
