"""What a plan makes of places: each treatment's own, resolved; what changes nothing left out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from searchbench.errors import StudyError
from searchbench.places import Place, place_of
from searchbench.study import parse_study
from searchbench.study.estimate import index_key
from searchbench.study.overrides import read_changed
from searchbench.study.plan import Plan
from searchbench.study.planner import make_plan

HEAD = """\
question = "?"
seed = 7
[corpus]
files = "products.csv"
[queries]
distinct = 5
[load]
seconds = 2
"""
ONE = HEAD + "[systems.tantivy]\n"
TWO = HEAD + "[systems.postgresql]\n[systems.tantivy]\n"
DISK = '[storages.disk]\nfilesystem = "ext4"\n'


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "products.csv").write_text("id,title\n1,red shoe\n")
    return tmp_path


def planned(text: str, base: Path) -> Plan:
    return make_plan(parse_study(text, "s.toml", base))


def places(plan: Plan) -> list[Place | None]:
    return [place_of(t.settings) for t in plan.treatments]


def test_without_places_a_treatment_has_none(base: Path) -> None:
    [treatment] = planned(ONE, base).treatments
    assert set(treatment.settings) == {"corpus", "queries", "load", "system"}


def test_a_treatment_has_its_place_with_the_storages_in_it(base: Path) -> None:
    text = ONE + '[places.small]\nmemory = "64MB"\nstorage = "disk"\n' + DISK
    [treatment] = planned(text, base).treatments
    assert treatment.settings["place"] == {
        "name": "small",
        "memory_bytes": 64_000_000,
        "storages": {"data": {"name": "disk", "kind": "ext4", "size_bytes": 4 * 10**9}},
    }
    assert "place" not in treatment.parameters
    again = msgspec.json.decode(msgspec.json.encode(planned(text, base)), type=Plan)
    assert places(again) == places(planned(text, base))


def test_keys_of_places_and_storages_are_factors(base: Path) -> None:
    text = (
        ONE
        + '[places.small]\nstorage = "disk"\n'
        + DISK
        + """\
[factors]
"places.small.memory" = ["64MB", "1GB"]
"storages.disk.like" = ["disk", "ssd"]
"""
    )
    plan = planned(text, base)
    found = [p for p in places(plan) if p is not None]
    assert [(p.memory_bytes, p.storages["data"].like) for p in found] == [
        (64_000_000, "disk"), (64_000_000, "ssd"), (10**9, "disk"), (10**9, "ssd"),
    ]  # fmt: skip
    assert plan.treatments[0].label == "memory=64MB like=disk"
    assert plan.judging.factors["places.small.memory"] == ["64MB", "1GB"]
    # A latency is part of how a device is made; memory is not.
    assert len({index_key(t) for t in plan.treatments}) == 2


def test_a_system_may_be_compared_in_several_places(base: Path) -> None:
    text = TWO + '[places.small]\nmemory = "64MB"\n[places.plain]\n'
    plan = planned(text + '[factors]\n"systems.*.place" = ["small", "plain"]\n', base)
    assert [(t.system, t.settings["place"]["name"]) for t in plan.treatments] == [
        ("postgresql", "small"), ("postgresql", "plain"),
        ("tantivy", "small"), ("tantivy", "plain"),
    ]  # fmt: skip
    assert plan.treatments[0].label == "postgresql place=small"


def test_linked_levels_set_a_place_with_what_goes_with_it(base: Path) -> None:
    text = (
        ONE
        + "[places.a]\n[places.b]\n"
        + """\
[factors]
machine = [
  { name = "old", set = { "systems.tantivy.place" = "a", "systems.tantivy.search_threads" = 1 } },
  { name = "new", set = { "systems.tantivy.place" = "b", "systems.tantivy.search_threads" = 2 } },
]
"""
    )
    plan = planned(text, base)
    found = [(t.settings["place"]["name"], t.parameters["search_threads"]) for t in plan.treatments]
    assert found == [("a", 1), ("b", 2)]


def test_a_system_is_crossed_with_what_can_change_something_for_it(base: Path) -> None:
    text = TWO + '[places.p]\nstorage = "disk"\n' + DISK + "[storages.fast]\nram = true\n"
    text += '[factors]\n"places.p.wal" = ["disk", "fast"]\n"storages.fast.size" = ["1GB", "2GB"]\n'
    plan = planned(text, base)
    levels = [t.levels for t in plan.treatments if t.system == "tantivy"]
    assert levels == [{"system": "tantivy"}]  # it writes no log ahead, so nothing is on fast
    found = [p for t, p in zip(plan.treatments, places(plan), strict=True)
             if t.system == "postgresql" and p is not None]  # fmt: skip
    laid = [{k: (s.name, s.size_bytes) for k, s in p.storages.items()} for p in found]
    data = ("disk", 4 * 10**9)
    assert laid == [
        {"data": data},
        {"data": data, "wal": ("fast", 10**9)},
        {"data": data, "wal": ("fast", 2 * 10**9)},
    ]
    [(excluded, reason)] = [(e.levels, e.reason) for e in plan.excluded]
    assert excluded["places.p.wal"] == "disk"
    assert reason == (
        "`storages.fast.size` changes nothing for postgresql here: measured once, with "
        'storages.fast.size = "1GB"'
    )


def test_levels_of_a_place_where_a_system_is_not_change_nothing_for_it(base: Path) -> None:
    text = TWO + "[places.small]\n[places.plain]\n[factors]\n"
    text += '"systems.postgresql.place" = ["small", "plain"]\n'
    text = text.replace("[systems.tantivy]", '[systems.tantivy]\nplace = "plain"')
    plan = planned(text + '"places.small.memory" = ["64MB", "1GB"]\n', base)
    assert Counter(t.system for t in plan.treatments) == {"postgresql": 3, "tantivy": 1}
    assert [e.levels["systems.postgresql.place"] for e in plan.excluded] == ["plain"]
    assert "`places.small.memory` changes nothing for postgresql" in plan.excluded[0].reason


def test_two_places_that_are_alike_are_measured_once(base: Path) -> None:
    text = ONE + '[places.a]\nmemory = "1GB"\n[places.b]\nmemory = "1000MB"\n'
    plan = planned(text + '[factors]\n"systems.*.place" = ["a", "b"]\n', base)
    assert [t.settings["place"]["name"] for t in plan.treatments] == ["a"]
    assert "`systems.*.place` changes nothing" in plan.excluded[0].reason


def test_levels_of_other_factors_are_never_taken_for_the_same(base: Path) -> None:
    text = ONE + '[places.a]\n[factors]\n"places.a.memory" = ["1GB", "2GB"]\n'
    text += 'what = [\n { name = "x", set = { "load.clients" = 2 } },\n'
    text += ' { name = "y", set = { "load.clients" = 2 } },\n]\n'
    assert len(planned(text, base).treatments) == 4


def test_a_crossing_of_a_file_system_with_what_it_has_not_is_left_out(base: Path) -> None:
    text = ONE + '[places.p]\nstorage = "disk"\n[storages.disk]\n[factors]\n'
    text += '"storages.disk.filesystem" = ["btrfs", "ext4"]\n'
    text += '"storages.disk.compression" = ["none", "zstd", "lzo"]\n'
    plan = planned(text, base)
    found = [p.storages["data"] for p in places(plan) if p is not None]
    assert [(s.kind, s.compression) for s in found] == [
        ("btrfs", ""), ("btrfs", "zstd"), ("btrfs", "lzo"), ("ext4", ""),
    ]  # fmt: skip
    assert {e.reason for e in plan.excluded} == {
        "[storages.disk]: ext4 has no compression; btrfs and zfs have"
    }


def test_what_keeps_no_index_cannot_be_cold(base: Path) -> None:
    text = HEAD + '[systems.null]\n[places.p]\ncold = "trial"\n'
    with pytest.raises(StudyError, match="nothing is left to be run: null keeps no index over a"):
        planned(text, base)
    plan = planned(text + "[systems.tantivy]\n", base)
    assert [t.system for t in plan.treatments] == ["tantivy"]


def test_exclusions_name_levels_of_places(base: Path) -> None:
    text = ONE + '[places.p]\n[factors]\n"places.p.memory" = ["64MB", "1GB"]\n'
    text += '[[exclude]]\nwhen = { "places.p.memory" = "64MB" }\nreason = "too little"\n'
    plan = planned(text, base)
    assert [t.levels["places.p.memory"] for t in plan.treatments] == ["1GB"]
    assert plan.excluded[0].reason == "too little"


def test_the_estimate_has_the_time_to_make_storages_and_to_be_slow(base: Path) -> None:
    def seconds(lines: str) -> float:
        return planned(ONE + lines, base).estimated_s

    plain = seconds("")
    assert seconds("[places.p]\n") == plain
    ext4 = seconds('[places.p]\nstorage = "disk"\n' + DISK)
    zfs = seconds('[places.p]\nstorage = "disk"\n' + DISK.replace("ext4", "zfs"))
    assert plain < ext4 < zfs
    assert seconds("[places.p]\ncpu_share = 0.1\n") > plain
    assert seconds('[places.p]\ncold = "trial"\n') > plain


@pytest.fixture
def study(base: Path) -> Path:
    text = TWO + '[places.small]\nstorage = "disk"\n' + DISK
    path = base / "study.toml"
    path.write_text(text + '[factors]\n"places.small.memory" = ["64MB", "1GB"]\n')
    return path


def test_places_are_set_on_the_command_line(study: Path) -> None:
    changed = read_changed(study, ["places.small.cores=1", "storages.disk.size=8G"])
    assert changed.places["small"]["cores"] == 1
    assert changed.storages["disk"]["size"] == "8G"
    varied = read_changed(study, ["places.small.memory=2GB"])
    assert [f.levels for f in varied.factors] == [("2GB",)]
    assert varied.systems[0].place == "small"
    named = read_changed(study, ["systems.*.place=small"])
    assert [s.place for s in named.systems] == ["small", "small"]


def test_a_place_is_made_on_the_command_line_where_there_is_none(base: Path) -> None:
    path = base / "plain.toml"
    path.write_text(TWO)
    sets = ["places.half.memory=512MB", "places.half.storage=d", "storages.d.ram=true"]
    plan = make_plan(read_changed(path, sets))
    assert {p and (p.memory_bytes, p.storages["data"].kind) for p in places(plan)} == {
        (512_000_000, "ram")
    }


def test_one_level_of_a_place_is_kept(study: Path) -> None:
    plan = make_plan(read_changed(study, only=["places.small.memory=64MB"]))
    assert {t.levels["places.small.memory"] for t in plan.treatments} == {"64MB"}


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("places.smal.cores=1", "there is no place `smal` (did you mean `small`?)"),
        ("storages.fast.size=1GB", "there is no storage `fast`"),
        ("places.small.cores=x", "--set places.small.cores=x: `cores` must be an integer"),
        ("places.small.core=1", "has no key `core` (did you mean `cores`?)"),
        ("systems.tantivy.place=big", '--set systems.tantivy.place=big: there is no place "big"'),
        ("places.memory=1GB", "`places.memory` must be a table"),
        ("storages.disk.compression=lzo", "ext4 has no compression"),
    ],
)
def test_wrong_options_of_places_say_so(study: Path, option: str, said: str) -> None:
    from searchbench.errors import SearchbenchError

    with pytest.raises(SearchbenchError) as caught:
        read_changed(study, [option])
    assert said in str(caught.value)


def test_a_first_look_keeps_the_places(study: Path) -> None:
    from searchbench.study.quick import read_quick

    quick = read_quick(study)
    assert quick.places == {"small": {"storage": "disk"}}
    assert len(make_plan(quick).treatments) == 4
