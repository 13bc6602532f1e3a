"""``run --quick``: the same question in little time; everything says that it decides nothing."""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path

import pytest

from records import Study, lognormal, two_systems
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Judgement
from searchbench.cli import app
from searchbench.errors import SearchbenchError
from searchbench.record import open_record
from searchbench.study import read_study
from searchbench.study.inputs import look
from searchbench.study.planner import make_plan
from searchbench.study.quick import read_quick
from searchbench.terminal.progress import outlook

ROOT = Path(__file__).parent.parent
TEXT = """\
question = "Which one?"
replicates = 5
[corpus]
files = "documents.jsonl"
fields = { t = "text" }
[queries]
file = "queries.txt"
[systems.tantivy]
[systems.null]
[load]
seconds = 30
warmup_s = 10
"""


@pytest.mark.parametrize("path", sorted((ROOT / "studies").glob("*.toml")), ids=lambda p: p.stem)
def test_every_shipped_study_has_a_first_look(path: Path) -> None:
    quick = read_quick(path)
    plan, usual = make_plan(quick), make_plan(read_study(path))
    look(quick, plan, alone=True)
    assert plan.judging.first_look
    assert plan.estimated_s < usual.estimated_s
    assert plan.question == usual.question
    if not read_study(path).operations:
        assert {t.label for t in plan.treatments} == {t.label for t in usual.treatments}
        return
    # Of operations the greatest numbers of rows are left out, where they ask for rows; no method.
    labels, all_labels = ({t.label for t in of.treatments} for of in (plan, usual))
    asks_rows = any(each["key"] for each in read_study(path).operations.values())
    assert labels < all_labels if asks_rows else labels == all_labels
    methods = ({t.operation["method"] for t in each.treatments} for each in (plan, usual))
    assert len(set(map(frozenset, methods))) == 1


def test_the_demo_takes_about_a_minute() -> None:
    plan = make_plan(read_quick(ROOT / "studies/first-look.toml"))
    assert plan.estimated_s < 90
    assert all(t.corpus["decimate"] == 7 for t in plan.treatments)
    assert plan.judging.replicates == 2


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study and the record of a first look at it."""
    folder = tmp_path_factory.mktemp("quick")
    (folder / "queries.txt").write_text("red\nfox\n")
    (folder / "documents.jsonl").write_text('{"id": "1", "t": "red fox"}\n')
    (folder / "study.toml").write_text(TEXT)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        code = app(["run", "study.toml", "--quick", "--set", "load.seconds=0.3"])
    assert code in (0, 1), "1: on a busy machine no trial may be valid"
    return folder


def test_the_record_is_of_the_study_that_was_cut(looked: Path) -> None:
    record = open_record(looked / "records/study-load.seconds=0.3-quick")
    tables = tomllib.loads(record.study_text)
    assert tables["first_look"] is True
    assert tables["load"] == {"seconds": 0.3, "warmup_s": 0.5}
    assert tables["replicates"] == 2
    assert "first_look=true" in record.study_text.splitlines()[0]


def test_everything_that_is_written_says_that_it_decides_nothing(looked: Path) -> None:
    record = open_record(looked / "records/study-load.seconds=0.3-quick")
    found = judge(record)
    assert found.first_look
    assert found.verdict.decision.startswith("This is a first look, which decides nothing")
    assert (found.verdict.best, found.verdict.resolved) == (None, False)
    assert {c.verdict for c in found.comparisons} <= {"not resolved", "not comparable"}
    report = record.path / "report"
    page = (report / "report.html").read_text(encoding="utf-8")
    assert "First look: Which one?" in page
    assert "a first look, which decides nothing" in page
    for path in report.glob("*.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            head, *rows = csv.reader(file)
        assert head[-1] == "first_look", path.name
        assert {row[-1] for row in rows} <= {"decides nothing"}
    with pytest.raises(SearchbenchError, match="is a first look, which decides nothing"):
        compare_records(record, record)


def test_everything_that_is_printed_says_so_too(
    looked: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(looked)
    plan = make_plan(read_quick(Path("study.toml")))
    assert outlook(plan).startswith("first look, which decides nothing: 2 treatments")
    again = ["run", "study.toml", "--quick", "--set", "load.seconds=0.3", "--no-report"]
    assert app(again) in (0, 1), "1: on a busy machine no trial may be valid"
    said = capsys.readouterr()
    assert "nothing was measured now" in said.err
    assert "This is a first look, which decides nothing" in " ".join(said.out.split())
    assert app([*again, "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["first_look"] is True


@pytest.mark.parametrize("systems", [("tantivy", "sqlite"), ("sqlite",)])
def test_where_a_first_look_has_no_valid_trial_that_and_why_come_first(
    tmp_path: Path, systems: tuple[str, ...]
) -> None:
    study = Study(blocks=2, judging={"first_look": True})
    for name in ("tantivy", "sqlite"):
        why = {"fails_at": "deploy"} if name in systems else {}
        study.add(name, system=name, server=lognormal(0.004), **why)
    found = judge(open_record(study.write(tmp_path / "r")))
    whose = "" if len(systems) == 2 else " of sqlite"
    assert found.verdict.headline.startswith(
        f"No trial{whose} is valid. The reason: failed in deploy"
    )
    assert "decides nothing" in found.verdict.points[0]


def test_a_difference_that_a_study_would_resolve_stays_open(tmp_path: Path) -> None:
    path = two_systems(tmp_path / "r")
    assert judge(open_record(path)).verdict.resolved
    plan = json.loads((path / "plan.json").read_text())
    plan["judging"]["first_look"] = True
    (path / "plan.json").write_text(json.dumps(plan))
    found = judge(open_record(path))
    assert not found.verdict.resolved
    assert found.verdict.best is None
    assert "faster" not in {c.verdict for c in found.comparisons}


def test_a_first_look_at_a_sweep_shows_figures_and_says_no_law_of_its_clients_or_rates(
    tmp_path: Path,
) -> None:
    def looked(name: str, first_look: bool, **loads: list[float]) -> Judgement:
        """A server that carries about 1,000 queries per second, whatever comes."""
        promised = {"measure": "sweep", "first_look": first_look, "promises": ("p99 < 50ms",)}
        study = Study(blocks=2, control=None, judging=promised)
        for key, levels in loads.items():
            for x in levels:
                server = lognormal(0.004 * max(1.0, x / 4 if key == "clients" else 1.0), 0.1)
                study.add(
                    f"a-{x:g}",
                    system="a",
                    server=server,
                    **{key: int(x) if key == "clients" else x},
                    seconds=11.0,
                    levels={f"load.{key}": x},
                    subject="a",
                )
        return judge(open_record(study.write(tmp_path / name)))

    laws = ("more throughput", "answered up to", "keeps up with", "kept at")
    for loads in ({"clients": [1, 2, 4, 8]}, {"rate_per_s": [100.0, 200.0]}):
        (key,) = loads
        whole = looked(f"whole-{key}", False, **loads).verdict.decision
        assert "kept at" in whole
        assert sum(law in whole for law in laws) > 1, "where it may, it says them"
        found = looked(f"look-{key}", True, **loads)
        told = " ".join([found.verdict.decision, found.verdict.headline, *found.verdict.points])
        assert not [law for law in laws if law in told]
        assert "So far, a answered " in told
        assert {p.verdict for s in found.steps for p in s.promises} == {"cannot tell"}
        assert len(found.verdict.lines) == 2 * len(loads[key]), "the table has every step"
