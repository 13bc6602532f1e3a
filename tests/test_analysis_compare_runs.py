"""Further runs of one side alone: how much those of the other scatter is not known by them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from records import Study, lognormal
from searchbench.analysis.compare import setup
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judgement import RecordComparison
from searchbench.analysis.stats.intervals import ratio_over_runs
from searchbench.cli.compare import compare
from searchbench.record import Record, open_record
from searchbench.report.document.records import _badge

FIRST = (0.0, 0.003, -0.003, 0.002, -0.002)  # logs of runs that hardly differ


def run(path: Path, effect: float, seed: int) -> Record:
    study = Study(blocks=3, seed=seed, block_noise=0.003, trial_noise=0.003, control=None)
    study.add("a", server=lognormal(0.004 * float(np.exp(effect)), 0.2), clients=4, seconds=6.0)
    return open_record(study.write(path))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    folder = tmp_path_factory.mktemp("first")
    return [run(folder / str(i), effect, 100 + i) for i, effect in enumerate(FIRST)]


def second(folder: Path, effects: tuple[float, ...]) -> list[Record]:
    return [run(folder / f"b{i}", effect, 200 + i) for i, effect in enumerate(effects)]


def against(first: list[Record], second: list[Record]) -> RecordComparison:
    return compare_records(first[0], second[0], 0.05, first[1:], second[1:])


@pytest.mark.parametrize("effect", [0.075, -0.06])
def test_one_run_of_the_second_is_called_neither_faster_nor_slower(
    tmp_path: Path, first: list[Record], effect: float
) -> None:
    """Its starts may have a speed of their own, which no run of the first shows."""
    found = against(first, second(tmp_path, (effect,)))
    line = found.comparisons[0]
    assert {one.verdict for one in found.comparisons} <= {"differs", "not resolved"}
    assert (line.verdict, line.runs) == ("differs", (5, 1))
    assert line.run_sds[1] is None
    assert "it lies outside the 5 runs of the first" in line.reason
    assert found.regressed is None
    assert found.beyond_threshold is (effect > 0), "the status of a script stays"
    for word in ("A regression", "intervals cover it", "6 runs", "these two runs"):
        assert word not in found.decision.lower()
    assert "% in 5 runs (standard deviation). How much runs of the second differ is not known" in (
        found.decision
    )
    assert "give those records with --same-b" in found.decision
    assert any(said.startswith("Further runs of the second (--same-b") for said in
               found.would_change)  # fmt: skip
    if effect > 0:
        assert (
            "The only run of the second differs from the 5 runs of the first by more than 5 %"
            in (found.decision)
        )


def test_starts_that_scatter_are_not_resolved_by_runs_that_do_not(
    tmp_path: Path, first: list[Record]
) -> None:
    found = against(first, second(tmp_path, (0.075, -0.03, 0.02)))
    assert found.comparisons[0].verdict == "not resolved"
    assert (found.regressed, found.beyond_threshold) == (False, False)
    assert "those of the second differ by 5." in found.decision
    assert "and the intervals cover it" in found.decision


def test_a_loss_that_both_sides_show_again_is_a_regression(
    tmp_path: Path, first: list[Record]
) -> None:
    later = second(tmp_path, (0.078, 0.081, 0.079))
    found = against(first, later)
    assert found.comparisons[0].verdict == "slower"
    assert found.comparisons[0].ratio is not None
    assert found.comparisons[0].ratio.interval is not None
    assert "Welch" in found.comparisons[0].ratio.interval.method
    assert found.regressed
    assert "A regression beyond 5 %" in found.decision
    paths = [one.path for one in (*first, *later)]
    assert compare(paths[0], paths[5], same=tuple(paths[1:5]), same_b=tuple(paths[6:])) == 1


def test_runs_that_have_one_draw_in_common_do_not_show_what_another_would_do(
    tmp_path: Path,
) -> None:
    """Which queries meet in a queue is the same in all of them."""
    first = [run(tmp_path / str(i), effect, 100 + i) for i, effect in enumerate(FIRST)]
    later = second(tmp_path, (0.078, 0.081, 0.079))
    assert against(first, later).comparisons[0].verdict == "slower"
    for record in first:
        path = record.path / "plan.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"draw_seed": 1}))
    found = against([open_record(r.path) for r in first], later)
    line = found.comparisons[0]
    assert line.verdict == "not resolved"
    assert not found.regressed
    assert "in the same order and at the same times" in line.reason
    assert "Run both again without draw_seed" in found.decision
    path = first[1].path / "plan.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"draw_seed": 2}))
    again = against([open_record(r.path) for r in first], later)
    assert again.comparisons[0].verdict == "not resolved", "four have one still"
    for n, record in enumerate(first):
        path = record.path / "plan.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"draw_seed": n}))
    again = against([open_record(r.path) for r in first], later)
    assert again.comparisons[0].verdict == "slower"


def test_runs_of_other_settings_are_no_runs_of_one_side(tmp_path: Path) -> None:
    """Only the first run of each side has what the other side has."""
    first = [run(tmp_path / f"a{i}", effect, 100 + i) for i, effect in enumerate(FIRST)]
    later = second(tmp_path, (0.078, 0.081, 0.079))
    assert against(first, later).regressed
    for record in later[1:]:
        for path in record.path.glob("trials/*/trial.json"):
            about = json.loads(path.read_text())
            path.write_text(json.dumps(about | {"parameters": {"threads": 2}}))
    path = next(later[0].path.glob("trials/*/trial.json"))
    assert against(first, [open_record(r.path) for r in later]).regressed, (
        "an older record lacks it"
    )
    for path in later[0].path.glob("trials/*/trial.json"):
        about = json.loads(path.read_text())
        path.write_text(json.dumps(about | {"parameters": {"threads": 4}}))
    found = against(first, [open_record(r.path) for r in later])
    (line, *_) = found.comparisons
    assert (line.verdict, found.regressed) == ("not resolved", None)
    assert line.reason == "runs of one side are not of the same version and settings"
    assert "Give only runs of one version, with the same settings, for each side." in found.decision
    (said,) = (f for f in found.findings if f.kind == "not the same")
    assert said.number == "tantivy: threads 4 and 2"
    # The first run of the side lacks what its further runs have otherwise.
    for n, record in enumerate(later):
        for path in record.path.glob("trials/*/trial.json"):
            about = json.loads(path.read_text())
            path.write_text(json.dumps(about | {"parameters": {"threads": n} if n else {}}))
    assert against(first, [open_record(r.path) for r in later]).regressed is None
    for record in (later[0], *later[1:]):
        for n, path in enumerate(sorted(record.path.glob("trials/*/trial.json"))):
            threads = 2 if record is later[0] else 2 + 2 * (n == 0)
            about = json.loads(path.read_text())
            path.write_text(json.dumps(about | {"parameters": {"threads": threads}}))
    assert not setup.unlike([open_record(r.path) for r in later]), (
        "values of a factor may be missing"
    )


def test_runs_of_another_machine_differ_and_are_no_regression(tmp_path: Path) -> None:
    first = [run(tmp_path / f"a{i}", effect, 100 + i) for i, effect in enumerate(FIRST)]
    later = second(tmp_path, (0.078, 0.081, 0.079))
    for record, cpu in ((r, cpu) for side, cpu in ((first, "new"), (later, "old")) for r in side):
        path = record.path / "host.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"cpu": cpu}))
    found = against(*([open_record(r.path) for r in side] for side in (first, later)))
    assert (found.comparisons[0].verdict, found.regressed) == ("differs", None)
    assert "all runs of one side were made on another machine" in found.comparisons[0].reason
    assert "A regression" not in found.decision
    assert "These two runs" not in found.decision
    assert "The two were run on two machines, and differ by more than 5 %" in found.decision
    assert "1 different on two machines" in found.decision
    assert (_badge(found).text, _badge(found).tone) == ("Two machines", "unsure")
    path = later[1].path / "host.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"cpu": "new"}))
    found = against(*([open_record(r.path) for r in side] for side in (first, later)))
    assert found.regressed, "both sides have runs of one machine"


def test_a_gain_that_both_sides_show_again_is_faster(tmp_path: Path, first: list[Record]) -> None:
    found = against(first, second(tmp_path, (-0.1, -0.102)))
    assert found.comparisons[0].verdict == "faster"
    assert (found.regressed, found.beyond_threshold) == (False, False)


def test_the_first_alone_is_no_surer_than_the_second_alone(
    tmp_path: Path, first: list[Record]
) -> None:
    found = against(second(tmp_path, (0.075,)), first)
    assert found.comparisons[0].verdict == "differs"
    assert "How much runs of the first differ is not known" in found.decision
    assert "give those records with --same." in found.decision


def test_equal_things_whose_starts_scatter_unequally_are_seldom_told_apart() -> None:
    """Runs of one side scatter by 0.3 %, those of the other by 5 %."""
    rng = np.random.default_rng(3)

    def told(na: int, nb: int, loss: float = 0.0, sd: float = 0.05) -> float:
        each = (
            ratio_over_runs(rng.normal(0, 0.003, na), rng.normal(loss, sd, nb)) for _ in range(2000)
        )
        return float(np.mean([bool(r and r.p < 0.05 and None not in r.sds) for r in each]))

    assert told(5, 1) == 0
    assert told(5, 2) < 0.09, "7 % in the long run: two runs hardly show how much they scatter"
    assert all(told(5, n) < 0.07 for n in (3, 5))
    assert told(5, 5, loss=0.02, sd=0.003) > 0.99, "what is there is found"
    assert told(5, 3, loss=0.02, sd=0.003) > 0.9


def test_runs_that_do_not_differ_at_all_count_as_one() -> None:
    found = ratio_over_runs(np.array([0.0, 0.01, -0.01]), np.array([0.1, 0.1, 0.1]))
    assert found is not None
    assert found.sds == (pytest.approx(0.01), None)
    assert ratio_over_runs(np.zeros(3), np.full(3, 0.1)) is None


def test_which_run_is_given_first_does_not_decide_how_sure_three_or_more_are(
    tmp_path: Path, first: list[Record]
) -> None:
    """A run whose trials scatter by 15 % has a wide interval of its own, wherever it is given."""
    noisy = Study(blocks=3, seed=77, control=None, trial_noise=0.15, block_noise=0.002)
    noisy.add("a", server=lognormal(0.004, 0.2), clients=4, seconds=6.0)
    odd = open_record(noisy.write(tmp_path / "noisy"))
    later = second(tmp_path, (0.12, 0.121, 0.119, 0.122))
    for order in ([*first, odd], [odd, *first]):
        found = against(order, later)
        line = next(c for c in found.comparisons if c.metric == "throughput")
        assert line.ratio is not None
        assert line.ratio.interval is not None
        assert line.ratio.interval.high < 0.95
        assert line.p_value is not None
        assert line.p_value < 0.001
        assert not line.within
