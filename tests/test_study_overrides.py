"""``--set`` and ``--only``: the study that runs is the changed one, and it is the one on record."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from searchbench.cli import app
from searchbench.errors import SearchbenchError, StudyError
from searchbench.record import open_record
from searchbench.study import Study
from searchbench.study.overrides import name_of, read_changed
from searchbench.study.planner import make_plan

TEXT = """\
# what we ask
question = "Which one?"
replicates = 1  # one block
exclude = [
  # it has one writer
  { when = { "load.clients" = 4, "system" = "sqlite" }, reason = "one writer" },
]

[corpus]
files = "documents.jsonl"
fields = { t = "text" }

[queries]
file = "queries.txt"

[systems.sqlite]
[systems."my.tantivy"]
engine = "tantivy"

[load]
seconds = 5.0  # long enough
warmup_s = 0

[factors]
"load.clients" = [1, 2, 4]
threads = [
  { name = "one", set = { "systems.my.tantivy.search_threads" = 1 } },
]

[control]
aa = false
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "queries.txt").write_text("red\nfox\n")
    (tmp_path / "documents.jsonl").write_text(
        '{"id": "1", "t": "red fox"}\n{"id": "2", "t": "fox"}\n'
    )
    path = tmp_path / "study.toml"
    path.write_text(TEXT)
    return path


def tables(study: Study) -> dict[str, object]:
    return tomllib.loads(study.text)


def wrong(study: Path, *sets: str, only: tuple[str, ...] = ()) -> str:
    with pytest.raises(SearchbenchError) as caught:
        read_changed(study, sets, only)
    return str(caught.value)


def test_a_value_is_set_and_comments_are_kept(study: Path) -> None:
    changed = read_changed(
        study,
        ["load.seconds=3", "queries.match=any", "seed=7", 'question="What now?"',
         "systems.my.tantivy.parts=2", "verdict.metric=service_p50"],
    )  # fmt: skip
    assert changed.load["seconds"] == 3
    assert changed.queries["match"] == "any", "a string needs no quotes"
    assert (changed.seed, changed.question) == (7, "What now?")
    assert changed.systems[1].parameters["parts"] == 2
    assert changed.metric == "service_p50"
    for comment in ("# what we ask", "# one block", "# it has one writer", "# long enough"):
        assert comment in changed.text
    first = changed.text.splitlines()[0]
    assert first.startswith("# study.toml with --set load.seconds=3 --set queries.match=any")


def test_a_key_that_a_factor_varies_stays_a_factor(study: Path) -> None:
    assert "`load.clients` has no level 4 (its levels: 3)" in wrong(study, "load.clients=3")
    study.write_text(TEXT.replace('"load.clients" = 4, ', ""))
    alone = read_changed(study, ["load.clients=3"])
    assert tables(alone)["factors"]["load.clients"] == [3]  # type: ignore[index]
    study.write_text(TEXT.replace('"load.clients" = 4', '"load.clients" = 5'))
    several = read_changed(study, ["load.clients=[3, 5]"])
    assert {t.levels["load.clients"] for t in make_plan(several).treatments} == {3, 5}
    told = wrong(study, "systems.my.tantivy.search_threads=2")
    assert "the levels of the factor `threads` set" in told
    assert "--only threads=LEVEL" in told


def test_a_parameter_of_all_systems_is_set_in_each(study: Path) -> None:
    text = TEXT.partition("threads = [")[0]
    study.write_text(text.replace("[systems.sqlite]", '[systems.sqlite]\nengine = "tantivy"'))
    changed = read_changed(study, ["systems.*.search_threads=2"])
    assert [s.parameters["search_threads"] for s in changed.systems] == [2, 2]


def test_what_does_not_exist_names_the_nearest_at_the_option(study: Path) -> None:
    told = wrong(study, "load.secondz=3", "laod.seconds=3", "load.timeout_s=abc")
    assert "--set load.secondz=3: [load] has no key `secondz` (did you mean `seconds`?)" in told
    assert "--set laod.seconds=3: a study has no key `laod` (did you mean `load`?)" in told
    assert "--set load.timeout_s=abc: `timeout_s` must be a number above 0 and at most 3600" in told
    assert "did you mean `sqlite`?" in wrong(study, "systems.sqlit.parts=1")
    assert "say KEY=VALUE" in wrong(study, "load.seconds")
    assert "is not in a table" in wrong(study, "replicates.x=1")


def test_a_mistake_in_the_file_stands_where_it_stands_there(study: Path) -> None:
    study.write_text(TEXT.replace("warmup_s = 0", "warmup = 0"))
    with pytest.raises(StudyError) as caught:
        read_changed(study, ["seed=3", "load.order=shuffled"])
    (complaint,) = caught.value.complaints
    line = TEXT.splitlines().index("warmup_s = 0") + 1
    assert (complaint.line, complaint.column) == (line, 1)


def test_what_the_files_say_is_said_at_the_option_that_asked_for_it(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    option = 'queries.search_fields=["u"]'
    for verb in ("check", "plan", "run", "verify"):
        with pytest.raises(StudyError) as caught:
            app([verb, str(study), "--set", "load.seconds=1", "--set", option])
        said = str(caught.value)
        assert said.startswith(f"--set {option}: the corpus has no field `u`"), verb
    assert app(["check", str(study), "--set", option, "--json"]) == 2
    (complaint,) = json.loads(capsys.readouterr().out)["complaints"]
    assert (complaint["file"], complaint["line"]) == (f"--set {option}", 0)


def test_what_the_files_say_of_the_study_itself_stands_on_its_line(study: Path) -> None:
    text = TEXT.replace('file = "queries.txt"', 'file = "queries.txt"\nsearch_fields = ["u"]')
    study.write_text(text)
    line = text.splitlines().index('search_fields = ["u"]') + 1
    for options in ([], ["--set", "seed=3"], ["--only", "system=sqlite"]):
        with pytest.raises(StudyError) as caught:
            app(["check", str(study), *options])
        assert str(caught.value).startswith(f"{study}:{line}:17: the corpus has no field"), options


def test_a_second_position_is_that_of_the_file_too(study: Path) -> None:
    text = TEXT.replace("warmup_s = 0", "warmup_s = 0\nclients = 2")
    study.write_text(text)
    line = text.splitlines().index('"load.clients" = [1, 2, 4]') + 1
    for sets in ([], ["seed=3"]):
        assert f'varied as "load.clients" in [factors], at {line}:1' in wrong(study, *sets)


def test_check_takes_changes_as_plan_does(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app(["check", str(study), "--set", "replicates=2", "--only", "load.clients=1"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "right; 2 treatments in 4 trials, 4 crossings left out" in said


def test_a_value_cannot_smuggle_in_a_second_key(study: Path) -> None:
    changed = read_changed(study, ["question=x\nseed = 9"])
    assert (changed.question, changed.seed) == ("x\nseed = 9", 1)


def test_only_leaves_the_other_levels_out_with_the_reason(study: Path) -> None:
    changed = read_changed(study, only=["system=my.tantivy", "load.clients=1", "load.clients=4"])
    plan = make_plan(changed)
    assert {t.system for t in plan.treatments} == {"my.tantivy"}
    assert {t.levels["load.clients"] for t in plan.treatments} == {1, 4}
    assert 'only system = "my.tantivy" was asked for' in {e.reason for e in plan.excluded}
    assert "# it has one writer" in changed.text
    again = tmp_read(changed)
    assert make_plan(again) == plan, "the text alone says it"
    assert "did you mean `load.clients`?" in wrong(study, only=("load.client=1",))
    assert "its levels: 1, 2, 4" in wrong(study, only=("load.clients=3",))


def tmp_read(study: Study) -> Study:
    """The study that its text alone gives."""
    (study.base / "again.toml").write_text(study.text)
    return read_changed(study.base / "again.toml")


def test_exclusions_as_tables_of_their_own_get_one_more(study: Path) -> None:
    head, tail = TEXT.split("exclude = [")
    rest = tail.partition("]\n")[2]
    one = '[[exclude]]\nwhen = { "load.clients" = 4 }\nreason = "too many"\n'
    study.write_text(head + rest + one)
    plan = make_plan(read_changed(study, only=["system=sqlite"]))
    assert {t.levels["load.clients"] for t in plan.treatments} == {1, 2}
    assert {t.system for t in plan.treatments} == {"sqlite"}


def test_the_study_on_record_is_the_one_that_ran(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(study.parent)
    options = ["--set", "load.seconds=0.2", "--only", "system=sqlite", "--only", "load.clients=2"]
    assert app(["plan", "study.toml", *options, "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    # On a busy machine its one trial may be invalid, and that is 1.
    assert app(["run", "study.toml", *options, "--no-report"]) in (0, 1)
    (place,) = Path("records").iterdir()
    assert place.name == "study-load.seconds=0.2-system=sqlite-load.clients=2"
    record = open_record(place)
    assert [t.system for t in record.trials] == ["sqlite"]
    assert record.trials[0].load.seconds == 0.2
    assert record.study_text.startswith("# study.toml with --set load.seconds=0.2 --only")
    kept = json.loads((place / "plan.json").read_text())
    assert planned["draw_seed"] is None
    assert kept["draw_seed"] is not None, "a run draws it when it begins"
    assert kept | {"draw_seed": None} == planned
    capsys.readouterr()
    assert app(["verify", "study.toml", "--only", "load.clients=1", "--json"]) == 0
    (pair,) = json.loads(capsys.readouterr().out)
    assert pair["queries"] == 2


def test_a_name_of_a_changed_study_is_that_of_a_folder(study: Path) -> None:
    sets = ["queries.file=../other/my queries.txt", "load.clients=[1, 2]"]
    assert name_of(read_changed(study), sets) == (
        "study-queries.file=.._other_my_queries.txt-load.clients=_1,_2_"
    )
