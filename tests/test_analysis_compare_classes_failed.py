"""A class of queries that the second record, or a system of a study, fails under load."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from records import OUTCOMES, Study, lognormal
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import judge
from searchbench.cli import app
from searchbench.record import Record, open_record
from searchbench.report import write_comparison

REPORT, QUERIES = 7, 200


class Failing(Study):
    """Fails so large a share of the requests of the only report, which are 0.5 % of all; of the
    system "b", where that is in the study.
    """

    share = 0.0
    trials = 99  # from the first on, of which it fails them
    only: tuple[str, ...] = ()  # treatments that do, if not all

    def _write_trial(self, writer: Any, planned: Any, *rest: Any) -> None:
        self._fails = planned.block < self.trials
        super()._write_trial(writer, planned, *rest)

    def _samples(self, t: Any, factor: float, rng: np.random.Generator) -> pa.Table:
        found = super()._samples(t, factor, rng)
        if not self._fails or t.id == "a" or (self.only and t.id not in self.only):
            return found
        fails = (found["query"].to_numpy() == REPORT) & (rng.random(len(found)) < self.share)
        outcome = np.where(fails, OUTCOMES.index("engine_error"), found["outcome"].to_numpy())
        at = found.schema.get_field_index("outcome")
        return found.set_column(at, found.schema.field(at), pa.array(outcome.astype(np.uint8)))


def study(seed: int, share: float, blocks: int = 4, trials: int = 99) -> Failing:
    made = Failing(blocks=blocks, seed=seed, queries=QUERIES, control=None,
                   classes=lambda q: "report" if q == REPORT else "search")  # fmt: skip
    made.share, made.trials = share, trials
    return made


def run(path: Path, seed: int, share: float = 0.0, **more: int) -> Record:
    made = study(seed, share, **more)
    made.add("shop", system="shop", server=lognormal(0.004, 0.15), seconds=13.0)
    return open_record(made.write(path))


@pytest.mark.parametrize(("runs", "blocks"), [(3, 4), (1, 2)])
def test_a_class_without_a_good_answer_is_lost(tmp_path: Path, runs: int, blocks: int) -> None:
    a = [run(tmp_path / f"a{i}", i, blocks=blocks) for i in range(runs)]
    b = [run(tmp_path / f"b{i}", 10 + i, 1.0, blocks=blocks) for i in range(runs)]
    found = compare_records(a[0], b[0], 0.05, a[1:], b[1:])
    assert re.fullmatch(
        r"Lost: shop \(it fails all \d+ requests of the class report in the second, and none in "
        r"the first\)\.", found.headline,
    )  # fmt: skip
    assert found.beyond_threshold
    assert found.regressed
    assert [*found.lost] == ["shop"]
    assert "Otherwise no resolved loss exceeds 5 %" in found.decision
    assert "the second fails requests of report, is not shown to differ for search." in (
        found.decision
    )
    lines = [one.line for one in found.by_class if one.name == "report"]
    assert {line.verdict for line in lines} == {"not comparable"}
    assert {line.reason for line in lines} == {"all requests of this class failed in the second"}
    page = write_comparison(found, a[0], b[0], tmp_path / "page.html").read_text()
    assert "Something that worked in the first did not work in the second." in page


def test_the_exit_status_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(tmp_path / name) for name in "abc"]
    for i, share in enumerate((0.0, 1.0, 0.0)):
        run(Path(paths[i]), i, share)

    def status(a: str, b: str) -> object:
        return app(["compare", a, b], result_action="return_value")

    assert status(paths[0], paths[1]) == 1
    assert "the class report" in capsys.readouterr().out
    assert status(paths[0], paths[2]) == 0
    assert status(paths[1], paths[0]) == 0, "the second answers what the first failed"


def test_a_class_of_which_half_fail_in_all_trials_is_lost(tmp_path: Path) -> None:
    found = compare_records(run(tmp_path / "a", 1), run(tmp_path / "b", 2, 0.5))
    assert found.beyond_threshold
    assert re.search(r"it fails [45]\d % of the requests of the class report in the second, in 4 "
                     r"of 4 trials, and none in the first", found.headline)  # fmt: skip


@pytest.mark.parametrize(("blocks", "trials"), [(4, 2), (2, 99)])
def test_what_may_be_chance_is_named_and_not_known(
    tmp_path: Path, blocks: int, trials: int
) -> None:
    a, b = (run(tmp_path / name, i, 0.5 * i, blocks=blocks, trials=trials)
            for i, name in enumerate("ab"))  # fmt: skip
    found = compare_records(a, b)
    assert not found.beyond_threshold
    assert not found.regressed
    assert [*found.not_known] == ["shop"]
    assert found.headline.startswith("Cannot tell whether this is a loss: shop (it fails ")
    assert f"in 2 of {blocks} trials" in found.headline
    assert "run both more often to know whether that is chance" in found.headline


@pytest.mark.parametrize(
    ("only", "lost"), [((), False), (("c2",), False), (("c1", "c2", "c4"), True)]
)
def test_a_single_drive_that_fails_all_of_a_class_may_be_chance(
    tmp_path: Path, only: tuple[str, ...], lost: bool
) -> None:
    """At the loads together it is none."""
    found = []
    for name, seed in (("a", 1), ("b", 2)):
        made = Failing(blocks=1, seed=seed, queries=QUERIES, control=None,
                       judging={"measure": "sweep"},
                       classes=lambda q: "report" if q == REPORT else "search")  # fmt: skip
        made.share = 1.0 if name == "b" and only else 0.0
        made.only = only
        for n in (1, 2, 4):
            made.add(f"c{n}", system="srv", levels={"clients": n}, clients=n,
                     server=lognormal(0.004, 0.15), seconds=13.0)  # fmt: skip
        found.append(open_record(made.write(tmp_path / name)))
    compared = compare_records(*found)
    assert bool(compared.lost) is lost, compared.decision
    unknown = {label for label, why in compared.not_known.items() if "class report" in why}
    assert unknown == ({"2"} if only == ("c2",) else set())


def test_what_fails_in_one_trial_is_only_said(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", 1), run(tmp_path / "b", 2, 1.0, trials=1)
    found = compare_records(a, b)
    assert not found.beyond_threshold
    assert not found.not_known
    assert "shop: it fails 24 % of the requests of the class report in the second, in 1 of 4" in (
        found.decision
    )


def test_equal_failures_are_no_loss(tmp_path: Path) -> None:
    for share in (0.3, 1.0):
        a, b = (run(tmp_path / f"{name}{share}", i, share) for i, name in enumerate("ab"))
        found = compare_records(a, b)
        assert not found.lost
        assert not found.not_known
        assert "Lost" not in found.decision


def test_a_study_says_which_class_a_system_fails(tmp_path: Path) -> None:
    made = study(3, 1.0)
    for name, mean_s in (("a", 0.004), ("b", 0.0036)):
        made.add(name, system=f"{name}sys", server=lognormal(mean_s, 0.15), seconds=13.0)
    found = judge(open_record(made.write(tmp_path / "r")))
    assert re.search(
        r"By class of queries and throughput, bsys is .*compared with asys; bsys fails requests of "
        r"report \(100 % of them failed; with asys, 0 %\)\.", found.verdict.decision,
    )  # fmt: skip
    for one in found.class_comparisons:
        fails = "bsys fails requests of this class (all " in one.compared.reason
        assert fails == (one.name == "report")
