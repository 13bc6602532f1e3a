"""A method of an operation that fails in some trials of a record: these are valid, all the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judgement import RecordComparison
from test_operations_headline import recorded


def compared(folder: Path, blocks: Sequence[int]) -> RecordComparison:
    """Two runs of five blocks on each side; of the second, list fails at 1,000 rows in ``blocks``
    of each run.
    """
    first, later = (
        [
            recorded(
                folder / f"{name}{n}", rows=(10, 1000), blocks=5, seconds=2.0, fails=fails, seed=n
            )
            for n in seeds
        ]
        for name, seeds, fails in (("a", (1, 2), {}), ("b", (3, 4), {"list1000": blocks}))
    )
    return compare_records(first[0], later[0], 0.05, first[1:], later[1:])


@pytest.mark.parametrize(("blocks", "lost"), [((0, 1, 2, 3), True), ((0, 1), False)])
def test_a_method_that_fails_in_some_trials_alone_is_lost_or_not_known(
    tmp_path: Path, blocks: Sequence[int], lost: bool
) -> None:
    found = compared(tmp_path, blocks)
    (told,) = (found.lost if lost else found.not_known).items()
    assert told[0].endswith("list 1000")
    assert f"{2 * len(blocks)} of 10 trials of the second" in told[1]
    assert not (found.not_known if lost else found.lost)


def test_a_method_that_fails_in_no_trial_is_neither(tmp_path: Path) -> None:
    found = compared(tmp_path, ())
    assert not found.lost
    assert not found.not_known
