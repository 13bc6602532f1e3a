"""[places] and [storages] of a study: which system is where, and every mistake at its position."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchbench.study import read_study
from study_texts import SHORT, right, with_lines, wrong

PLACED = """\
[places.small]
memory = "256MB"
storage = "slow"
[storages.slow]
filesystem = "ext4"
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "products.csv").write_text("id,title\n1,red shoe\n")
    (tmp_path / "queries.txt").write_text("red shoe\nblue\n")
    return tmp_path


def placed(text: str, base: Path) -> dict[str, str]:
    return {system.name: system.place for system in right(text, base).systems}


def test_one_place_is_everybodys_who_is_started(base: Path) -> None:
    assert placed(SHORT + PLACED, base) == {"tantivy": "small", "sqlite": "small"}
    attached = SHORT.replace("[systems.sqlite]", '[systems.sqlite]\nattach = "127.0.0.1:9999"')
    assert placed(attached + PLACED, base) == {"tantivy": "small", "sqlite": ""}
    study = right(SHORT + PLACED, base)
    assert study.places == {"small": {"memory": "256MB", "storage": "slow"}}
    assert study.storages == {"slow": {"filesystem": "ext4"}}
    assert placed(SHORT, base) == {"tantivy": "", "sqlite": ""}


def test_of_several_places_each_system_names_its_own_or_a_factor_does(base: Path) -> None:
    two = SHORT.replace("[systems.tantivy]", '[systems.tantivy]\nplace = "small"')
    two += PLACED + "[places.plain]\n"
    own = two.replace("[systems.sqlite]", '[systems.sqlite]\nplace = "plain"')
    assert placed(own, base) == {"tantivy": "small", "sqlite": "plain"}
    varied = two + '[factors]\n"systems.sqlite.place" = ["small", "plain"]\n'
    assert placed(varied, base) == {"tantivy": "small", "sqlite": ""}
    [complaint] = wrong(two, base)
    assert complaint == (
        's.toml:9:10: there are several places, and sqlite names none (set place = "small"; a '
        "place without keys is this machine as it is)"
    )


def test_places_have_names_with_dots_as_systems_do(base: Path) -> None:
    text = SHORT + '[places."a.b"]\n[factors]\n"places.a.b.memory" = ["1GB", "2GB"]\n'
    [factor] = right(text, base).factors
    assert factor.levels == ("1GB", "2GB")
    dotted = SHORT + '[places."a.b"]\n[factors.places."a.b"]\nmemory = ["1GB"]\n'
    assert right(dotted, base).factors[0].path == "places.a.b.memory"


LINKED = """
[factors]
machine = [
  { name = "one", set = { "places.small.cores" = [0], "storages.slow.like" = "disk" } },
  { name = "two", set = { "places.small.cores" = [0, 1], "storages.slow.like" = "ssd" } },
]
"""


def test_linked_levels_set_keys_of_places_and_storages(base: Path) -> None:
    [factor] = right(SHORT + PLACED + LINKED, base).factors
    assert factor.settings(1) == {"places.small.cores": [0, 1], "storages.slow.like": "ssd"}


def factors(line: str) -> str:
    return f"{PLACED}[factors]\n{line}\n"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (PLACED.replace("memory", "memry"),
         "13:1: [places.small] has no key `memry` (did you mean `memory`?)"),
        (PLACED.replace("256MB", "256"), "13:10: `memory` must be a size (as \"256MB\" or"),
        (PLACED.replace("256MB", "64k"), 'of at least 1MB, not "64k"'),
        (PLACED.replace("ext4", "etx4"), "(did you mean `ext4`?)"),
        (PLACED.replace('filesystem = "ext4"', ""), "15:11: a storage needs a kind: say"),
        (PLACED + 'compression = "zstd"\n', "17:15: ext4 has no compression; btrfs and zfs have"),
        (PLACED.replace("ext4", "zfs") + 'compression = "lz4"\n', "17:15: zfs is made with "
         "zfs-fuse here, which lacks lz4"),
        (PLACED + "ram = true\n", "17:7: `filesystem` and `ram` are two storages"),
        (PLACED + 'directory = "/tmp"\n', "17:13: `filesystem` and `directory` are two storages"),
        (PLACED.replace('filesystem = "ext4"', 'directory = "no/where"'),
         '16:13: there is no directory "no/where"'),
        (PLACED.replace('storage = "slow"', 'storage = "slwo"'),
         '14:11: there is no storage "slwo" (did you mean `slow`?)'),
        (PLACED.replace('storage = "slow"', ""), "15:11: no place has files on the storage `slow` "
         '(as in [places.NAME] with storage = "slow")'),
        ('[places.small]\nstorage = "slow"\n', '13:11: there is no storage "slow" (there '
         "is no [storages.NAME] at all)"),
        (PLACED.replace("storage =", 'wal = "slow"\nstorage ='), "14:7: no system in the place "
         "`small` can keep files of the kind `wal` apart (tantivy: data; sqlite: data)"),
        (PLACED.replace("memory", "cores = 0\nmemory"), "13:9: `cores` = 0 leaves nothing"),
        (PLACED.replace("memory", "cores = [1, 1]\nmemory"), "13:9: `cores` names a core twice"),
        (PLACED.replace("memory", "cpu_share = 1.5\nmemory"), "13:13: `cpu_share` must be a number "
         "from 0.001 to 1"),
        (PLACED.replace('memory = "256MB"', 'memory = ["1GB", "2GB"]'), "of at least 1MB, not "
         '["1GB", "2GB"] (to vary it, say "places.small.memory" = ["1GB", "2GB"] in [factors])'),
        (PLACED.replace('"ext4"', '["ext4", "xfs"]'), 'not ["ext4", "xfs"] (to vary it, say '
         '"storages.slow.filesystem" = ["ext4", "xfs"] in [factors])'),
        ('[places]\nmemory = "1GB"\n', '13:10: `places.memory` must be a table, not "1GB"'),
        ('[places."a=b"]\n', "12:9: a name has no control characters"),
        (factors('"places.small.memory" = ["1GB", "2GB"]'), "13:1: `memory` is set here and varied "
         'as "places.small.memory" in [factors], at 18:1; keep one of them'),
        (factors('"places.small.cores" = [1, -1]'), "18:28: level of `places.small.cores`: `cores` "
         "must be an integer or a list of integers of at least 0, not -1"),
        (factors('"places.small.cores" = [[0], [1]]'), "a level must be a string, a number"),
        (factors('"places.smal.cores" = [1]'), "18:1: `places.smal.cores`: there is no place "
         "`smal` (did you mean `small`?)"),
        (factors('"places.small.core" = [1]'), "a place has no key `core` (did you mean `cores`?)"),
        (factors('"places.memory" = ["1GB"]'), "`places.memory` names no key of a place (say "
         "`places.NAME.KEY`)"),
        (factors('"storages.slow.like" = ["disk", "sdd"]'), "18:33: level of `storages.slow.like`: "
         '`like` must be one of "disk", "ssd", not "sdd" (did you mean `ssd`?)'),
        (factors('"storages.slow.compression" = ["none", "zstd"]'),
         "18:40: ext4 has no compression"),
        (PLACED.replace("ext4", "btrfs") + 'compression = "zlib"\n[factors]\n'
         '"storages.slow.filesystem" = ["ext4"]\n', "`filesystem` is set here and varied"),
        (PLACED.replace('filesystem = "ext4"', 'compression = "zlib"') + '[factors]\n'
         '"storages.slow.filesystem" = ["btrfs", "ext4"]\n', "18:40: ext4 has no compression"),
        (factors('"storages.slow.ram" = [true]'), "18:24: `filesystem` and `ram` are two storages"),
        (factors('"systems.*.place" = ["small", "big"]'), '18:31: there is no place "big" (there '
         "is `small`)"),
        ('[factors]\n"places.small.memory" = ["1GB"]\n', "this study has no [places.NAME]"),
        ('[factors]\n"systems.sqlite.place" = ["small"]\n', '13:27: there is no place "small" '
         "(there is no [places.NAME] at all)"),
        ("[places.a]\n[places.b]\n[factors]\n" '"systems.*.place" = ["a", "a"]\n',
         '15:27: `systems.*.place` has the level "a" twice'),
        (factors('"load.kind" = ["closed"]') + '[[exclude]]\nwhen = { "places.small.memory" = '
         '"1GB" }\nreason = "r"\n', "`places.small.memory` is not a factor of this study"),
    ],
)  # fmt: skip
def test_mistakes_in_places_have_their_positions(lines: str, said: str, base: Path) -> None:
    complaints = with_lines(lines, base)
    assert any(said in c for c in complaints), complaints


def test_a_mistake_in_a_place_is_one_complaint(base: Path) -> None:
    for lines in (PLACED.replace("slow]", "fast]"), PLACED.replace('"slow"', '"fast"')):
        # One that nobody names, and one that is not there.
        assert len(with_lines(lines, base)) == 2
    assert len(with_lines(PLACED.replace("ext4", "ext5"), base)) == 1
    assert len(with_lines(PLACED.replace("256MB", "lots"), base)) == 1


def test_a_place_that_nobody_is_in_says_how_to_be_in_it(base: Path) -> None:
    text = SHORT.replace("[systems.tantivy]", '[systems.tantivy]\nplace = "a"')
    text = text.replace("[systems.sqlite]", '[systems.sqlite]\nplace = "a"')
    [complaint] = wrong(text + "[places.a]\n[places.b]\n", base)
    assert complaint == (
        "s.toml:15:9: no system is started in the place `b` (as in [systems.tantivy] with place = "
        '"b")'
    )
    [unknown] = wrong(text + "[places.a]\n[places.b]\n[systems.tantiv]\n", base)
    assert "there is no engine `tantiv`" in unknown


def test_a_system_that_runs_already_has_no_place(base: Path) -> None:
    attached = SHORT.replace(
        "[systems.sqlite]", '[systems.sqlite]\nattach = "127.0.0.1:9999"\nplace = "small"'
    )
    [complaint] = wrong(attached + PLACED, base)
    assert complaint == (
        "s.toml:10:1: sqlite runs already, and `place` is only for systems that are started here"
    )
    varied = attached.replace('place = "small"\n', "")
    lines = PLACED + '[factors]\n"systems.*.place" = ["small"]\n'
    [complaint] = wrong(varied + lines, base)
    assert complaint.startswith("s.toml:19:1: sqlite runs already")


def test_requests_go_to_systems_that_run_in_no_place(base: Path) -> None:
    (base / "paths.txt").write_text("/a\n")
    text = 'question = "?"\n[requests]\nfile = "paths.txt"\n[systems.mine]\n'
    text += 'attach = "http://127.0.0.1:9"\n'
    [complaint] = wrong(text + '[places.small]\nmemory = "1GB"\n', base)
    assert complaint == (
        "s.toml:6:9: no system is started in the place `small` (systems that run already stay "
        "where they are)"
    )
    assert any(
        "`place` is only for systems that are started here" in c
        for c in wrong(text + 'place = "small"\n[places.small]\n', base)
    )


@pytest.mark.parametrize(
    ("load", "what"),
    [
        ("clients = [1, 2]\n", "a sweep"),
        ('find_capacity = true\nslo = "p99 < 50ms"\n', "a capacity search"),
    ],
)
def test_only_trials_can_be_cold(load: str, what: str, base: Path) -> None:
    text = SHORT.replace("clients = 4\nseconds = 5\n", load)
    [complaint] = wrong(text + '[places.small]\ncold = "trial"\n', base)
    assert f'`cold = "trial"` is for trials, and this is {what}' in complaint
    assert right(text + '[places.small]\ncold = "no"\n', base)
    varied = '[places.small]\n[factors]\n"places.small.cold" = ["no", "trial"]\n'
    assert any(what in c for c in wrong(text + varied, base))


def test_a_directory_is_named_from_where_the_study_stands(base: Path) -> None:
    (base / "there").mkdir()
    text = SHORT + '[places.p]\nstorage = "d"\n[storages.d]\ndirectory = "there"\n'
    (base / "study.toml").write_text(text)
    assert read_study(base / "study.toml").storages == {"d": {"directory": "there"}}
