"""What happened on the machine while a server was searched is no difference of two servers: others
took from the lesser one, its compilers were busy.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from queues import fixed
from searchbench.analysis.capacity import unequal
from searchbench.analysis.compare import compiling
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.compare.taken import TAKEN
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Capacity, CapacityTrial, TrialResult
from searchbench.record import Record, Trial, open_record
from searches import Lab

PROMISE = "p99 < 10ms"
LESSER, GREATER = fixed(4, 0.0028), fixed(4, 0.002)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("searched") / "r"
    servers = {"a": LESSER, "b": GREATER}
    return Lab(path, servers, (PROMISE,), effort=0.5, look_per_s=1500).run().path


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[Path]]:
    """Three searches of the greater one, and three of the lesser one, each a record."""
    folder = tmp_path_factory.mktemp("apart")

    def of(name: str, server: Any) -> list[Path]:
        return [
            Lab(folder / f"{name}{seed}", {"s": server}, (PROMISE,), seed=seed, effort=0.5,
                look_per_s=1500).run().path
            for seed in (1, 2, 3)
        ]  # fmt: skip

    return of("x", GREATER), of("y", LESSER)


def told(path: Path, copy: Path, of: Callable[[Trial], Mapping[str, Any]]) -> Record:
    """A copy of a record, whose trials have in addition what ``of`` says."""
    shutil.copytree(path, copy)
    for trial in open_record(copy).trials:
        if trial.window is not None and (more := of(trial)):
            about = copy / "trials" / trial.trial / "trial.json"
            about.write_text(json.dumps(json.loads(about.read_text()) | more))
    return open_record(copy)


def shared(trial: Trial, stolen: float) -> dict[str, Any]:
    """A machine that is said to be shared, where such trials count."""
    assert trial.window is not None
    seconds = (trial.window.end - trial.window.start) / 1e9
    return {"host_window": {"shared": True, "cores": 2, "steal_s": stolen * seconds}}


@pytest.mark.parametrize(
    ("stolen", "sure"), [((), True), (("a",), False), (("b",), True), (("a", "b"), True)]
)
@pytest.mark.parametrize("share", [0.3, 0.04])
def test_what_others_took_from_the_lesser_one_may_have_made_it_the_lesser(
    searched: Path, tmp_path: Path, stolen: tuple[str, ...], sure: bool, share: float
) -> None:
    """A little, in bursts, breaks a promise about one request in a hundred at any rate."""
    record = told(
        searched, tmp_path / "r",
        lambda trial: shared(trial, share) if trial.subject in stolen else {},
    )  # fmt: skip
    verdict = judge(record).verdict
    assert (f"With {PROMISE}, b sustains more than a (" in verdict.decision) is sure
    assert (f"{TAKEN} a, which could make " in verdict.decision) is not sure
    assert (verdict.best == "b") is sure


def test_others_who_met_only_the_trials_that_decide_are_seen_in_them() -> None:
    def trial(n: int, rate: float, verdict: str) -> CapacityTrial:
        return CapacityTrial(f"t{n}", rate, 5.0, verdict, "p99", 1.0, 0.9, 1.1, 1.0)

    def search(holds: float, fails: float, *trials: CapacityTrial) -> Capacity:
        return Capacity("s", "s", {}, PROMISE, holds, fails, "", trials)

    low = [trial(n, 100.0, "holds") for n in range(18)]
    rival = search(200.0, 400.0, *low, trial(18, 400.0, "fails"))
    winner = search(500.0, 600.0, trial(0, 500.0, "holds"), trial(1, 600.0, "fails"))

    def met(**taken: float) -> dict[str, TrialResult]:
        return {
            f"t{n}": TrialResult(
                f"t{n}", "t", 1, False, "valid", "", {}, {}, (), taken=taken.get(f"t{n}", 0.0)
            )
            for n in range(20)
        }

    quiet = met()
    assert unequal.floor([(winner, quiet)], [(rival, quiet)]) == 1.0
    # Of all 19 trials that is 0.2 % of a core, of the one that decides 4 %.
    assert unequal.floor([(winner, quiet)], [(rival, met(t18=0.04))]) == float("inf")
    # What met the winner only where it broke the promise too excuses nothing.
    spoilt = met(t1=0.1)
    assert unequal.floor([(winner, spoilt)], [(rival, met(t18=0.04))]) == float("inf")
    unclear = search(200.0, 400.0, *low, trial(18, 400.0, "unclear"))
    assert unequal.floor([(winner, quiet)], [(unclear, met(t18=0.04))]) == float("inf")
    early = met(**{f"t{n}": 0.02 for n in range(18)})
    assert unequal.floor([(winner, quiet)], [(rival, early)]) == 1.0, "it broke it undisturbed"
    slow = search(200.0, 700.0, *low, trial(18, 700.0, "fails"))
    made = unequal.floor([(winner, quiet)], [(slow, met(t18=0.04))])
    assert 1 < made < 1.01, "the winner breaks it there too"


@pytest.mark.parametrize("stolen", ["", "lesser", "greater"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("runs", [1, 3])
def test_two_records_of_searches_do_not_differ_by_what_others_took(
    apart: tuple[list[Path], list[Path]], tmp_path: Path, stolen: str, turned: bool, runs: int
) -> None:
    both = [
        [
            told(path, tmp_path / path.name, lambda trial: shared(trial, 0.04))
            if side == stolen else open_record(path)
            for path in paths[:runs]
        ]
        for side, paths in zip(("greater", "lesser"), apart, strict=True)
    ]  # fmt: skip
    first, second = both[::-1] if turned else both
    found = compare_records(first[0], second[0], same=first[1:], same_b=second[1:])
    (line,) = found.comparisons
    doubted, known = stolen == "lesser", "faster" if turned else "slower"
    assert line.verdict == ("not resolved" if doubted else known if runs > 1 else "differs")
    lesser = "the first" if turned else "the second"
    said = f"{TAKEN} {lesser}, which could make any difference"
    assert line.reason.count(said) == int(doubted), line.reason
    assert (said in found.decision) is doubted, "with its remedy"
    assert bool(found.regressed) is (runs > 1 and not doubted and not turned)


@pytest.mark.parametrize("busy", ["", "a", "b"])
def test_a_search_says_that_the_lesser_one_was_still_compiling(
    searched: Path, tmp_path: Path, busy: str
) -> None:
    record = told(
        searched, tmp_path / "r",
        lambda trial: compiled(trial) if trial.subject == busy else {},
    )  # fmt: skip
    found = judge(record).verdict
    said = compiling.said(["a"])
    assert (said in found.decision) is (busy == "a"), found.decision
    assert (said in found.points) is (busy == "a")


def compiled(trial: Trial) -> dict[str, Any]:
    assert trial.window is not None
    seconds = (trial.window.end - trial.window.start) / 1e9
    server = {"jvm_compilers_s": 0.25 * seconds, "jvm_collectors_s": 0.0, "cpu_s": seconds}
    return {"server": server}


def test_two_records_say_that_the_slower_one_was_still_compiling(
    apart: tuple[list[Path], list[Path]], tmp_path: Path
) -> None:
    quick, slow = apart[0][0], apart[1][0]
    busy = {path: told(path, tmp_path / path.name, compiled) for path in (quick, slow)}
    for a, b, said in (
        (open_record(quick), busy[slow], "s in the second record"),
        (busy[slow], open_record(quick), "s in the first record"),
        (busy[quick], open_record(slow), ""),
        (open_record(slow), busy[quick], ""),
    ):
        decision = compare_records(a, b).decision
        assert ("compilers" in decision) is bool(said), decision
        assert compiling.said([said] if said else []) in decision
