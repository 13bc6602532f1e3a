"""docs/OPERATIONS.md is followed from its first file to its page, against a real MariaDB."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from pages import blocks, code, rows, section, text_of
from searchbench.cli import app
from searchbench.engines import ENGINES, defaults
from searchbench.engines.mariadb import MariaDB
from searchbench.errors import StudyError
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.record import open_record
from searchbench.workload.operations.keys import OPERATION_KEYS

pytestmark = pytest.mark.slow
PAGE = "docs/OPERATIONS.md"
# What is shorter than on the page, and nothing else.
SHORTER = ["--set", "corpus.rows=2000", "--set", "load.requests=6", "--set", "replicates=1",
           "--set", "load.warmup_requests=1"]  # fmt: skip
FEW = ["--only", "operations.fetch.rows=1", "--only", "operations.fetch.rows=100"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The two files of statements and the study, under the names that the page gives them."""
    if lacking := missing(MariaDB()):
        pytest.skip(f"no mariadb here: {lacking}")
    monkeypatch.chdir(tmp_path)
    names = re.findall(r"^`(\w+\.sql)` is (?:one method|another):$", text_of(PAGE), re.MULTILINE)
    for name, statements in zip(names, blocks(PAGE, "sql"), strict=True):
        (tmp_path / name).write_text(statements)
    (tmp_path / "study.toml").write_text(blocks(PAGE, "toml")[0])
    return tmp_path


def commands(verb: str) -> list[list[str]]:
    """The page's commands of a verb, in blocks and in lines."""
    found = re.findall(rf"(?:^|`)searchbench ({verb} [^`\n]*)", text_of(PAGE), re.MULTILINE)
    return [shlex.split(line, comments=True) for line in found]


def test_what_is_timed_and_what_is_not_is_seen_on_the_wire(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (check,) = commands("check")
    assert app(check) == 0
    assert "study.toml: right; 10 treatments" in capsys.readouterr().out
    (wire,) = commands("wire")
    wanted = int(wire[wire.index("--set.rows") + 1])
    assert app(wire) == 0
    assert capsys.readouterr().out.partition("\n")[0].endswith(f"{wanted} rows asked for")
    assert app([*wire, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["answer"]) == found["rows"] == wanted
    sent = [(one["when"], bytes.fromhex(one["sent"])[5:].decode()) for one in found["exchanges"]]
    by_page = [line for line in blocks(PAGE, "sql")[1].splitlines() if not line.startswith("--")]
    assert [when for when, _ in sent] == ["timed"] * 3 + ["after"]
    assert sent[0][1] == by_page[0].removesuffix(";")
    assert re.fullmatch(rf"INSERT INTO wanted VALUES (\(\d+\),?){{{wanted}}}", sent[1][1])
    assert sent[3][1] == by_page[3].removesuffix(";")


def test_every_mistake_that_is_named_is_found(folder: Path) -> None:
    study = (folder / "study.toml").read_text()
    (folder / "in.sql").write_text(
        "-- @eachh\nSELECT * FROM data WHERE id IN ([each ',': {idd}]);\n"
    )
    with pytest.raises(StudyError) as wrong:
        app(["check", "study.toml"])
    assert "line 1 of in.sql: there is no mark @eachh" in str(wrong.value)
    (folder / "in.sql").write_text("SELECT * FROM data WHERE idd IN ([each ',': {idd}]);\n")
    with pytest.raises(StudyError, match=r"of in\.sql: .*idd"):
        app(["check", "study.toml"])
    (folder / "in.sql").write_text(blocks(PAGE, "sql")[0])
    (folder / "study.toml").write_text(study.replace("100_000", "9_000"))
    with pytest.raises(StudyError, match=r"10,?000.*9,?000"):
        app(["check", "study.toml"])


def test_every_place_and_every_mark_of_the_tables_is_understood(folder: Path) -> None:
    listed = rows(section(PAGE, "1. Write each method as a file of SQL"))
    places = [found[0] for row in listed if (found := code(row[0])) and found[0][0] in "{["]
    marks = [mark for row in listed for mark in code(row[0]) if mark.startswith("@")]
    assert len(places) >= 4
    assert len(marks) >= 10
    rest = 'SELECT * FROM data WHERE id IN ([each ",": {id}]);\n'
    for number, mark in enumerate(marks):
        each = " @each" if "pipelined" in mark else ""
        marked = f"-- {mark}{each}\nDO 1;\n"
        whole = rest + marked if mark == "@after" else marked + rest
        (folder / f"m{number}.sql").write_text(whole)
    # A column of the row that is asked for has one value only where there is one row.
    marked = [("-- @each\n" if place == "{id}" else "", place) for place in places]
    asked = "".join(f"{mark}DO CONCAT('{place}');\n" for mark, place in marked)
    (folder / "places.sql").write_text(asked + rest)
    study = (folder / "study.toml").read_text()
    for name in [*(f"m{n}" for n in range(len(marks))), "places"]:
        study = study.replace(
            "[systems.mariadb]",
            f'[operations.fetch.methods.{name}]\nfile = "{name}.sql"\n[systems.mariadb]',
        )
    (folder / "study.toml").write_text(study)
    assert app(["check", "study.toml"]) == 0


def test_a_first_look_and_the_run_make_their_pages(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quick, whole = commands("run")
    assert "--quick" in quick
    assert app([*quick, *SHORTER, *FEW, "--record", "quick"]) in (0, 1)
    assert "decides nothing" in capsys.readouterr().out
    assert app([*whole, *SHORTER, *FEW, "--record", "whole"]) in (0, 1)
    trials = open_record(folder / "whole").trials
    assert {t.status for t in trials} == {"ok"}
    assert {(t.levels["method"], t.levels["operations.fetch.rows"]) for t in trials} == {
        (method, n) for method in ("in", "temporary") for n in (1, 100)
    }
    for record in ("quick", "whole"):
        page = (folder / record / "report" / "report.html").read_text(encoding="utf-8")
        assert "At how many ids does a temporary table become faster than IN?" in page


def test_what_the_server_refuses_is_said_with_its_words_and_the_place(folder: Path) -> None:
    (folder / "temporary.sql").write_text("SELECT 1;\nSELECT nothing FROM data;\n")
    with pytest.raises(
        StudyError, match=r"temporary\.sql:2:.* mariadb refuses it: Unknown column 'nothing'"
    ):
        app(["run", "study.toml", *SHORTER, *FEW])


def test_the_same_methods_are_asked_while_others_write(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, *_, beside = blocks(PAGE, "toml")
    (folder / "study.toml").write_text(whole[: whole.index("[factors]")] + beside)
    assert app(["check", "study.toml"]) == 0
    assert "study.toml: right; 8 treatments" in capsys.readouterr().out
    shorter = ["--set", "corpus.rows=5000", "--set", "load.seconds=2", "--set", "load.warmup_s=0.5",
               "--set", "replicates=1", "--only", "operations.fetch.rows=10"]  # fmt: skip
    assert app(["run", "study.toml", *shorter, "--record", "r"]) in (0, 1)
    trials = open_record(folder / "r").trials
    assert [t.reason for t in trials] == [""] * len(trials)
    writers = [t.beside[0] for t in trials if not t.beside[0].idle]
    assert len(writers) >= 2
    for each in writers:
        assert each.applied is not None
        assert (each.applied.before, each.applied.after) == (4500, 4500 + each.planned)
    page = (folder / "r" / "report" / "report.html").read_text(encoding="utf-8")
    for said in ("Beside the readers", "Every row: fetch (in, temporary)"):
        assert said in page


def test_every_way_to_hold_answers_is_in_the_table() -> None:
    listed = [code(row[0])[0].strip('"') for row in rows(section(PAGE, "6. While others write"))]
    (key,) = (each for each in OPERATION_KEYS if each.name == "while_inserting")
    assert tuple(listed) == key.choices


def test_a_database_that_runs_already_is_asked_with_a_file_of_ids(folder: Path) -> None:
    whole, attached, *_ = blocks(PAGE, "toml")
    engine = ENGINES["mariadb"]
    with contextlib.ExitStack() as stack:
        deployed = Deployment(engine, defaults(engine), folder / "data", folder / "run")
        host, port = stack.enter_context(deployed).target
        made = (
            "CREATE DATABASE shop; USE shop; CREATE TABLE data (id BIGINT PRIMARY KEY, v TEXT);"
            "INSERT INTO data SELECT seq, CONCAT('v', seq) FROM seq_1_to_300;"
        )
        how = ["--protocol=tcp", f"--host={host}", f"--port={port}", "--user=root"]
        subprocess.run(["mariadb", *how, "-e", made], check=True)
        (folder / "ids.csv").write_text("id\n" + "".join(f"{n}\n" for n in range(1, 301)))
        text, times = re.subn(r"127\.0\.0\.1:3306", f"{host}:{port}", attached)
        assert times == 1
        head, rest = whole.split("[corpus]")[0], whole[whole.index("[operations.fetch]") :]
        text = head + text + rest.replace("[systems.mariadb]\n", "")
        (folder / "study.toml").write_text(text.replace("[1, 10, 100, 1000, 10000]", "[1, 100]"))
        shorter = [part for part in SHORTER if "corpus" not in part][1:]
        assert app(["check", "study.toml"]) == 0
        assert app(["run", "study.toml", *shorter, "--record", "r"]) in (0, 1)
    trials = open_record(folder / "r").trials
    assert [t.reason for t in trials if t.status != "ok"] == []
    assert {t.attached for t in trials} == {f"mysql://{host}:{port}/shop"}
    assert not list((folder / "data").glob("searchbench/*.ibd")), "nothing was put into it"
