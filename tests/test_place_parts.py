"""Parts of one index on several storages: what a study may say, and where the files then lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from placing import home, needs
from searchbench.engines.sphinx import Sphinx
from searchbench.errors import StudyError
from searchbench.lab.get.install import missing
from searchbench.lab.system.names import Places
from searchbench.measure.run import run as measure
from searchbench.places import place_of
from searchbench.places.model import of_files
from searchbench.study import read_study
from searchbench.study.planner import make_plan
from test_place_study import study

__all__ = ["home"]

PARTS = """
[systems.sphinx]
parts = 4
part_kind = "local"
{levers}
[places.server]
parts = {parts}
[storages.first]
filesystem = "ext4"
size = "40MB"
{first}
[storages.second]
filesystem = "ext4"
size = "40MB"
"""
TWO = '["first", "second"]'


def text(parts: str = TWO, levers: str = "", first: str = "") -> str:
    return PARTS.format(parts=parts, levers=levers, first=first)


def test_parts_are_dealt_out_to_their_storages_in_turn(home: Path) -> None:
    (treatment,) = make_plan(read_study(study(home, text()))).treatments
    place = place_of(treatment.settings)
    assert place is not None
    assert {k: s.name for k, s in place.storages.items()} == {
        "parts-0": "first",
        "parts-1": "second",
    }
    laid = {kind: home / kind for kind in place.storages}
    names = Places(home / "data", home / "run", 1, laid=laid)
    asked = " ".join(f"{{part:{n}}}" for n in range(4))
    one, two = str(home / "parts-0"), str(home / "parts-1")
    assert names.fill(asked) == f"{one} {two} {one} {two}"
    assert Places(home / "data", home / "run", 1).fill("{part:3}") == str(home / "data")


def test_layouts_have_indexes_of_their_own_and_names_make_no_other(home: Path) -> None:
    def files(parts: str) -> object:
        plan = make_plan(read_study(study(home, text(parts))))
        return of_files(place_of(plan.treatments[0].settings))

    assert files(TWO) != files('["first", "second", "second"]')
    assert files(TWO) == files('["second", "first"]')


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        (text('["first", "secnd"]'), 'there is no storage "secnd"'),
        (text('["first"]'), "no place has files on the storage `second`"),
        (text(TWO, "").replace("parts = 4", "parts = 1"), "names 2 storages, and the index has 1"),
        (
            text().replace("[systems.sphinx]\nparts = 4\n", "[systems.groonga]\n").replace(
                'part_kind = "local"\n', ""
            ),
            "can keep files of the kind `parts` apart",
        ),
    ],
)  # fmt: skip
def test_storages_of_parts_that_cannot_be_are_named(rest: str, said: str, home: Path) -> None:
    with pytest.raises(StudyError, match=said):
        make_plan(read_study(study(home, rest)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("levers", "first"),
    [("", "read_iops = 500"), ('index = "realtime"', "")],
    ids=["throttled", "realtime"],
)
def test_the_files_of_parts_lie_where_they_should_and_one_is_slowed_alone(
    levers: str, first: str, home: Path
) -> None:
    needs("ext4", "memory")
    if lacking := missing(Sphinx()):
        pytest.skip(f"no sphinx here: {lacking}")
    rest = text(levers=levers, first=first)
    record = measure(study(home, rest), home / "record", work=home / "work")
    (trial,) = record.trials
    assert (trial.status, trial.reason) == ("ok", "")
    lies = {x.name: x.figures["bytes"] for x in trial.place if x.name.endswith(".filesystem")}
    assert set(lies) == {"storages.first.filesystem", "storages.second.filesystem"}
    low, high = sorted(lies.values())
    assert low > high / 2 > 10_000, "two parts of four on each"
    assert trial.ingest is not None
    assert (trial.ingest.index_bytes or 0) >= low + high
    slowed = [x.name for x in trial.place if "iops" in x.name]
    assert slowed == (["storages.first.read_iops"] if first else [])
