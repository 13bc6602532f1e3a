"""The command line as a person meets it: own files, a ten-line study, a page; and mistakes.

Longer than most files: one measured folder serves half of it.
"""

from __future__ import annotations

import csv
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from searchbench.analysis.trial import validity
from searchbench.cli import app
from searchbench.lab.conduct import studies
from searchbench.measure.run import run as measure

pytestmark = pytest.mark.slow
MAIN = [sys.executable, "-m", "searchbench"]
ENV = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
# A run of short windows may have no valid trial on a busy machine, which is 1.
VALID_OR_NOT = (0, 1)
STUDY = """\
question = "Which of tantivy and SQLite FTS5 serves my product search faster?"
[corpus]
files = "products.csv"
[queries]
file = "queries.txt"
match = "any"
[systems.tantivy]
[systems.sqlite]
[load]
seconds = 0.5
warmup_s = 0.5
"""


def searchbench(*argv: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MAIN, *map(str, argv)], cwd=cwd, env=ENV, capture_output=True, text=True, timeout=200
    )


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A person's folder: a CSV of products, a text file of queries, a ten-line study."""
    folder = tmp_path_factory.mktemp("shop")
    rng = random.Random(5)
    nouns = "lamp table chair desk shelf sofa bed mirror carpet curtain".split()  # noqa: SIM905
    adjectives = "red blue green wooden steel small large old new cheap".split()  # noqa: SIM905
    with (folder / "products.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "name", "description", "category", "price"])
        for number in range(500):
            name = f"{rng.choice(adjectives)} {rng.choice(nouns)}"
            words = rng.choices(nouns + adjectives, k=30)
            description = f'{" ".join(words)}, "quoted" <b>and</b>\nbroken, number {number}'
            price = round(rng.uniform(1, 99), 2)
            rows.writerow([number, name, description, rng.choice(["home", "office"]), price])
    queries = [f"{rng.choice(adjectives)} {rng.choice(nouns)}" for _ in range(80)]
    (folder / "queries.txt").write_text("\n".join(queries) + "\n")
    (folder / "study.toml").write_text(STUDY)
    return folder


@pytest.fixture(scope="module")
def measured(shop: Path) -> subprocess.CompletedProcess[str]:
    return searchbench("run", "study.toml", cwd=shop)


def test_ten_lines_about_ones_own_files_give_a_page_that_answers(
    shop: Path, measured: subprocess.CompletedProcess[str]
) -> None:
    assert measured.returncode == 0, measured.stderr
    assert "tantivy" in measured.stdout
    page = re.search(r"report: (\S+\.html)", measured.stdout)
    assert page
    text = (shop / page[1]).read_text(encoding="utf-8")
    assert "Which of tantivy and SQLite FTS5 serves my product search faster?" in text
    for line in measured.stdout.splitlines():
        assert len(line) <= 80, line


def test_the_judgement_for_machines_has_the_same_answer(
    shop: Path, measured: subprocess.CompletedProcess[str]
) -> None:
    told = searchbench("report", "records/study", "--json", cwd=shop)
    judgement = json.loads(told.stdout)
    assert judgement["verdict"]["decision"].split()[0] in measured.stdout
    assert {t["system"] for t in judgement["treatments"]} == {"tantivy", "sqlite"}
    (agreement,) = judgement["agreement"]
    assert agreement["totals_match"] == 1.0


def test_a_record_compared_with_itself_is_no_regression(
    shop: Path, measured: subprocess.CompletedProcess[str]
) -> None:
    twice = searchbench("compare", "records/study", "records/study", cwd=shop)
    assert (twice.returncode, twice.stdout) == (2, "")
    assert "given as both A and B" in twice.stderr
    shutil.copytree(shop / "records/study", shop / "records/copy")
    twice = searchbench("compare", "records/study", "records/copy", cwd=shop)
    assert (twice.returncode, twice.stdout) == (2, "")
    assert "records/copy is a copy of records/study" in twice.stderr
    plan = shop / "records/copy/plan.json"
    plan.write_text(plan.read_text() + "\n")  # edited, so it may be meant
    told = searchbench("compare", "records/study", "records/copy", "--out", "two.html", cwd=shop)
    assert told.returncode == 0, told.stdout + told.stderr
    assert told.stdout.endswith("page: two.html\n")
    assert "What would change this answer" in (shop / "two.html").read_text(encoding="utf-8")
    assert "slower" not in told.stdout.split("\n\n")[0]
    as_json = json.loads(
        searchbench("compare", "records/study", "records/copy", "--json", cwd=shop).stdout
    )
    assert (as_json["beyond_threshold"], as_json["regressed"]) == (False, None)


def test_running_again_measures_nothing_again(
    shop: Path, measured: subprocess.CompletedProcess[str]
) -> None:
    trials = shop / "records/study/trials"
    before = {path: path.stat().st_mtime_ns for path in trials.rglob("*") if path.is_file()}
    again = searchbench("run", "study.toml", cwd=shop)
    assert again.returncode == 0
    planned = json.loads((shop / "records/study/plan.json").read_text())["trials"]
    assert len(planned) > 5
    assert re.match(
        rf"All {len(planned)} trials are on record in records/study since \d{{4}}-\d\d-\d\d "
        r"\d\d:\d\d; nothing was measured now\. To measure again, name another --record\.\n",
        again.stderr,
    ), again.stderr
    assert "about" not in again.stderr
    assert "[1/" not in again.stderr
    after = {path: path.stat().st_mtime_ns for path in trials.rglob("*") if path.is_file()}
    assert after == before, "no file of a trial was written again"


def test_through_python_it_gives_data_frames(
    shop: Path, measured: subprocess.CompletedProcess[str]
) -> None:
    import searchbench as sb

    record = sb.open_record(shop / "records/study")
    frames = sb.frames(record)
    samples = frames["samples"]
    assert {"treatment", "due", "done", "outcome"} <= set(samples.columns)
    assert sb.judge(record).verdict.decision


def test_verify_says_whether_they_return_the_same(shop: Path) -> None:
    told = searchbench("verify", "study.toml", cwd=shop)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "100" in told.stdout
    lines = told.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("pair  results"))
    heads, values = lines[at].split(), lines[at + 1].split()
    assert " ".join(heads) == "pair results found top 10 set groups mismatch max median tau-b"
    assert values[:3] == ["1", "100.0%", "100.0%"]
    assert max(map(len, lines[at : at + 2])) <= 80
    as_json = searchbench("verify", "study.toml", "--json", cwd=shop)
    (pair,) = json.loads(as_json.stdout)
    groups = pair["groups"]
    assert groups["total_found_match"] == [pair["queries"], pair["queries"]]
    assert f"{groups['kendall_tau']:.3f}" == values[-1]
    assert list(groups["distribution"]) == [str(n) for n in range(1, 11)]


def test_a_study_with_mistakes_lists_all_of_them_with_their_places(tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text(
        'question = "?"\n[corpus]\nfiles = "nowhere.csv"\n[systems.tantivi]\n'
        '[systems.sqlite]\ncache = 3\n[load]\nclients = "two"\n[quereis]\nfile = "q"\n'
    )
    told = searchbench("check", "wrong.toml", cwd=tmp_path)
    assert told.returncode == 2
    for place in (
        "wrong.toml:3:",
        "wrong.toml:4:",
        "wrong.toml:6:",
        "wrong.toml:8:",
        "wrong.toml:9:",
    ):
        assert place in told.stderr, place
    for near in ("tantivy", "cache_mb", "queries"):
        assert near in told.stderr
    assert "Traceback" not in told.stderr
    complaints = json.loads(searchbench("check", "wrong.toml", "--json", cwd=tmp_path).stdout)
    assert complaints["ok"] is False
    assert len(complaints["complaints"]) >= 5


def test_check_and_plan_say_what_will_be_run(shop: Path) -> None:
    assert "right" in searchbench("check", "study.toml", cwd=shop).stdout
    told = searchbench("plan", "study.toml", cwd=shop)
    assert "trials, about" in told.stdout
    plan = json.loads(searchbench("plan", "study.toml", "--json", cwd=shop).stdout)
    assert len(plan["treatments"]) == 2
    assert "how long one takes is not known" not in told.stdout
    counted = ["--set", "load.requests=50", "--set", "load.warmup_requests=5"]
    study = (shop / "study.toml").read_text()
    study = re.sub(r"^(seconds|warmup_s|rate_per_s) = .*\n", "", study, flags=re.MULTILINE)
    (shop / "counted.toml").write_text(study)
    told = searchbench("plan", "counted.toml", *counted, cwd=shop)
    assert "the time above allows 1 ms for each" in " ".join(told.stdout.split()), told


def test_a_load_by_the_clock_on_a_machine_that_others_use_is_doubted_before_it_is_driven(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shop)
    doubt = "SEARCHBENCH_SHARED_MACHINE is set, so foreign CPU and steal are only warnings"

    def doubted(shared: str, *options: str) -> bool:
        monkeypatch.setenv("SEARCHBENCH_SHARED_MACHINE", shared)
        assert app(["check", "study.toml", *options]) == 0
        return doubt in " ".join(capsys.readouterr().out.split())

    by_clock = ("--set", "load.rate_per_s=50")
    assert doubted("1", *by_clock)
    assert not doubted("0", *by_clock)
    assert not doubted("1"), "clients wait for their answers"
    (shop / "study.toml").write_text(
        STUDY.replace("seconds = 0.5\nwarmup_s = 0.5", 'find_capacity = true\nslo = "p99 < 9ms"')
    )
    try:
        assert doubted("1")
    finally:
        (shop / "study.toml").write_text(STUDY)


@pytest.mark.parametrize("engine", ["tantivy", "sqlite", "null"])
def test_wire_shows_the_exact_bytes(engine: str, tmp_path: Path) -> None:
    told = searchbench("wire", engine, "quick fox", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "7b 22 6d 61" in told.stdout
    as_json = json.loads(searchbench("wire", engine, "quick fox", "--json", cwd=tmp_path).stdout)
    assert bytes.fromhex(as_json["sent"][0])[8:].startswith(b'{"match"')
    if engine != "null":
        assert as_json["total"] == 2


def test_wire_says_what_an_engine_cannot_express(tmp_path: Path) -> None:
    told = searchbench("wire", "sqlite", "quikc", "--match", "fuzzy", cwd=tmp_path)
    assert told.returncode == 2
    assert "upstream must" in told.stderr


def test_engines_says_what_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Those that come as archives, which take longest to start, are not here.
    monkeypatch.setitem(ENV, "SEARCHBENCH_ENGINES", str(tmp_path / "nothing"))
    all_of_them = json.loads(searchbench("engines", "--json", cwd=tmp_path).stdout)
    assert {e["name"] for e in all_of_them if not e["present"]} >= {"opensearch", "elasticsearch"}
    names = ("sqlite", "groonga", "sphinx", "opensearch", "tantivy")
    looked = [next(e for e in all_of_them if e["name"] == name) for name in names]
    found = json.loads(searchbench("engines", *names, "--start", "--json", cwd=tmp_path).stdout)
    assert [e["name"] for e in found] == list(names)
    for before, engine in zip(looked, found, strict=True):
        assert before["present"] == engine["present"]
        assert before["version"] is None, "nothing was started"
        if engine["present"]:
            assert engine["version"]
        else:
            how = engine["how_to_get"]
            no_registry = how.startswith("not run here: ")
            assert no_registry or f"searchbench engines install {engine['name']}" in how
    told = searchbench("engines", "--levers", cwd=tmp_path).stdout
    assert "search_threads" in told


def test_a_system_that_is_not_here_is_named_before_anything_is_measured(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENV, "SEARCHBENCH_ENGINES", str(tmp_path / "nothing"))
    study = STUDY.replace("products.csv", f"{shop}/products.csv")
    study = study.replace("queries.txt", f"{shop}/queries.txt")
    (tmp_path / "two.toml").write_text(study.replace("[systems.sqlite]", "[systems.opensearch]"))
    said = "or leave opensearch out"
    check = " ".join(searchbench("check", "two.toml", cwd=tmp_path).stdout.split())
    assert "engines install opensearch` gets it" in check
    assert said in check
    run = searchbench("run", "two.toml", cwd=tmp_path)
    assert run.returncode == 2
    assert said in " ".join(run.stderr.split())
    assert not (tmp_path / "records").exists()


def test_what_comes_with_searchbench_needs_no_installing(tmp_path: Path) -> None:
    told = searchbench("engines", "install", "sqlite", cwd=tmp_path)
    assert told.returncode == 0
    assert "nothing to install" in told.stderr + told.stdout
    assert searchbench("engines", "install", "sqlit", cwd=tmp_path).returncode == 2


def test_corpora_are_made_scaled_and_inspected(tmp_path: Path) -> None:
    def go(*argv: str) -> Any:
        told = searchbench(*argv, "--json", cwd=tmp_path)
        assert told.returncode == 0, told.stderr
        return told.stdout

    made = json.loads(go("corpus", "make", "generated", "g.jsonl.zst", "--documents", "300"))
    assert made["documents"] == 300
    assert json.loads(go("corpus", "inspect", "g.jsonl.zst"))["documents"] == 300
    assert (
        json.loads(go("corpus", "scale", "g.jsonl.zst", "small.jsonl", "--decimate", "3"))[
            "documents"
        ]
        == 100
    )
    go("corpus", "scale", "g.jsonl.zst", "part.jsonl", "--parts", "2")
    assert sorted(p.name for p in tmp_path.glob("part.*")) == ["part.1.jsonl", "part.2.jsonl"]
    queries = json.loads(
        go("queries", "make", "g.jsonl.zst", "q.jsonl", "--distinct", "20", "--logged", "50")
    )
    assert (queries["distinct"], queries["logged"]) == (20, 50)
    assert json.loads(go("queries", "inspect", "q.jsonl"))["distinct"] == 20


def test_rows_that_do_not_fit_are_shown_with_their_lines(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"id":"1","t":"a b"}\nnot json\n{"id":"1","t":"again"}\n')
    told = searchbench("corpus", "inspect", "bad.jsonl", cwd=tmp_path).stdout
    whole = told.replace("\n", "")  # lines are broken at 80 columns, in long paths too
    assert "bad.jsonl:2:" in whole
    assert "bad.jsonl:3:" in whole
    assert "2 of 3 rows do not fit" in " ".join(told.split())


def test_an_unknown_engine_or_a_missing_record_is_one_sentence(tmp_path: Path) -> None:
    told = searchbench("wire", "tantvy", "x", cwd=tmp_path)
    assert (told.returncode, told.stderr.count("\n")) == (2, 1)
    assert "did you mean tantivy?" in told.stderr
    told = searchbench("report", "no-such-record", cwd=tmp_path)
    assert (told.returncode, told.stderr.count("\n")) == (2, 1)
    assert "not a record" in told.stderr


def one_word(folder: Path) -> None:
    """A study of four short trials, whose system is the null host."""
    (folder / "queries.txt").write_text("red\n")
    (folder / "documents.jsonl").write_text('{"id": "1", "t": "red fox"}\n')
    (folder / "study.toml").write_text(
        'question = "?"\nreplicates = 2\n[corpus]\nfiles = "documents.jsonl"\n'
        'fields = { t = "text" }\n[queries]\nfile = "queries.txt"\n[systems.null]\n'
        "delay_us = 2000\n[load]\nseconds = 0.5\nwarmup_s = 0\n"
    )


def test_ctrl_c_leaves_a_valid_record_and_says_how_to_go_on(tmp_path: Path) -> None:
    one_word(tmp_path)
    process = subprocess.Popen(
        [*MAIN, "run", "study.toml", "--record", "stopped"],
        cwd=tmp_path, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    first = tmp_path / "stopped" / "trials"
    while not list(first.glob("*/trial.json")):
        assert process.poll() is None, "it ended before its first trial did"
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "the same command continues" in err
    assert "Traceback" not in err
    told = searchbench("report", "stopped", "--json", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    done = {p.parent.name for p in first.glob("*/trial.json")}
    finished = searchbench("run", "study.toml", "--record", "stopped", "--no-report", cwd=tmp_path)
    assert finished.returncode in VALID_OR_NOT, finished.stderr
    assert done < {p.parent.name for p in first.glob("*/trial.json")}
    first_line = finished.stderr.splitlines()[0]
    assert first_line.startswith(f"{len(done)} of 4 trial"), first_line
    assert f"not measured again; {4 - len(done)} " in first_line
    assert "driven now, about" in first_line


def test_of_two_commands_at_once_one_measures_and_the_other_is_refused(tmp_path: Path) -> None:
    one_word(tmp_path)
    command = [*MAIN, "run", "study.toml", "--record", "one", "--no-report"]
    both = [
        subprocess.Popen(command, cwd=tmp_path, env=ENV, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=100)[1] for process in both]
    assert sorted(process.returncode for process in both) in ([0, 2], [1, 2]), said
    refused = said[[process.returncode for process in both].index(2)]
    # Which process it is, the lock says a moment after it is taken.
    assert "one: another command measures into this record: " in refused
    assert len(list((tmp_path / "one/trials").glob("*/trial.json"))) == 4
    assert not (tmp_path / "one/.lock").exists()


def test_a_killed_run_loses_the_trial_in_hand_and_nothing_else(tmp_path: Path) -> None:
    one_word(tmp_path)
    work = tmp_path / "work"
    process = subprocess.Popen(
        [*MAIN, "run", "study.toml", "--record", "killed", "--work", str(work)],
        cwd=tmp_path, env=ENV, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    trials = tmp_path / "killed" / "trials"
    while not list(trials.glob("*/trial.json")):
        assert process.poll() is None, "it ended before its first trial did"
        time.sleep(0.02)
    process.kill()
    process.wait()
    kept = {p: p.read_bytes() for p in trials.glob("*/trial.json")}
    assert list(work.iterdir()), "a killed run cannot have cleaned up"
    again = searchbench(
        "run", "study.toml", "--record", "killed", "--work", work, "--no-report", cwd=tmp_path
    )
    assert again.returncode in VALID_OR_NOT, again.stderr
    assert len(list(trials.glob("*/trial.json"))) == 4
    assert all(path.read_bytes() == content for path, content in kept.items())
    assert not list(work.iterdir()), "the leftovers are still there"


def disturbed(*_: object) -> Iterator[tuple[str, str, str, str, str]]:
    number = "35 % of the server's core 0, 1.04 CPU seconds (busiest others: make 3.0 s)"
    yield "foreign CPU", "invalid", number, "Others ran.", "Stop them."


def test_an_invalid_trial_is_said_at_once_and_that_it_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one_word(tmp_path)
    monkeypatch.setattr(validity, "disturbances", disturbed)
    command = ["run", str(tmp_path / "study.toml"), "--record", str(tmp_path / "r"), "--no-report"]
    assert app(command) == 1, "no trial is valid"
    first = capsys.readouterr().err
    said = r"\[1/4\] .*: done, but invalid: (.*; )?foreign CPU: 35 % of the server's core 0[,;]"
    assert re.search(said, first), first
    assert "CPU seconds" not in first
    lines = first.splitlines()
    at = next(n for n, line in enumerate(lines) if "invalid: " in line)
    assert "set SEARCHBENCH_SHARED_MACHINE=1" in lines[at + 1]
    assert first.count("SEARCHBENCH_SHARED_MACHINE") == 1
    stay = "4 of 4 trials are invalid; they are on record, and the same command does not measure "
    assert stay in first
    assert app(command) == 1
    again = capsys.readouterr().err
    assert again.startswith("All 4 trials are on record")
    assert stay in again


def test_a_trial_that_cannot_be_judged_at_once_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    one_word(tmp_path)
    monkeypatch.setattr(validity, "audit", broken)
    record = measure(tmp_path / "study.toml", tmp_path / "record")
    assert [t.status for t in record.trials] == ["ok"] * 4


def test_a_record_that_is_a_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    one_word(tmp_path)
    for verb in ("run", "verify"):
        told = searchbench(verb, "study.toml", "--record", "queries.txt", cwd=tmp_path)
        assert told.returncode == 2, told.stderr
        last = "searchbench: queries.txt: is a file, and a record is a folder; name another"
        assert told.stderr.splitlines()[-1] == last
        assert "Traceback" not in told.stderr


def test_verify_says_in_eighty_columns_on_how_many_queries_nothing_is_found(
    tmp_path: Path,
) -> None:
    one_word(tmp_path)
    names = [f"{of} as it was before the policy of merges changed" for of in ("tantivy", "sqlite")]
    systems = [f'[systems."{name}"]\nengine = "{name.split()[0]}"\n' for name in names]
    text = (tmp_path / "study.toml").read_text()
    text = text.replace("[systems.null]\ndelay_us = 2000\n", "".join(systems))
    (tmp_path / "study.toml").write_text(text)
    (tmp_path / "queries.txt").write_text("red\nblue\ngreen\n")
    told = searchbench("verify", "study.toml", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    lines = told.stdout.splitlines()
    assert max(map(len, lines)) <= 80, told.stdout
    assert lines[0].startswith(f"1  {names[0]}")
    head = next(line for line in lines if line.startswith("pair  queries"))
    assert head.split("  ")[-3] == "without hits"
    said = f"? nothing found: 2 of 3 queries of {names[0]} and {names[1]}. Neither of the two finds"
    assert said in " ".join(told.stdout.split())


def test_what_verify_keeps_is_a_record_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs.csv").write_text("id,title\n1,red lamp\n2,blue lamp\n")
    (tmp_path / "queries.txt").write_text("lamp\n")
    (tmp_path / "study.toml").write_text(
        'question = "?"\nreplicates = 1\n[corpus]\nfiles = "docs.csv"\n'
        'fields.title = "text"\n[queries]\nfile = "queries.txt"\n[systems.tantivy]\n'
        "[systems.sqlite]\n[control]\naa = false\n[load]\nseconds = 0.2\nwarmup_s = 0.0\n"
    )
    kept = ("study.toml", "--record", "kept")
    assert searchbench("verify", *kept, cwd=tmp_path).returncode == 0
    before = sorted(path.name for path in (tmp_path / "kept").rglob("*"))
    assert "replies.parquet" in before
    assert not [name for name in before if name.startswith("samples")]
    again = searchbench("verify", *kept, cwd=tmp_path)
    assert again.returncode == 2
    assert "kept: holds a record already, and verify asks every system anew" in again.stderr
    assert "also after an interruption" in again.stderr

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(studies, "verify", interrupted)
    assert app(["verify", *kept]) == 130
    assert "is in kept, which verify does not continue" in capsys.readouterr().err
    run = searchbench("run", *kept, cwd=tmp_path)
    assert run.returncode == 2, "answers alone are no measurement that could be continued"
    assert "name another folder with --record" in run.stderr.replace("\n", " ")


def test_help_names_every_verb(tmp_path: Path) -> None:
    told = searchbench("--help", cwd=tmp_path).stdout
    for verb in (
        "check", "plan", "run", "verify", "wire", "report", "compare", "engines", "corpus",
        "queries",
    ):  # fmt: skip
        assert re.search(rf"\b{verb}\b", told), verb


def test_installing_wants_names_and_says_what_comes_by_itself(tmp_path: Path) -> None:
    nothing = searchbench("engines", "install", cwd=tmp_path)
    assert nothing.returncode == 2
    assert "name the engines" in nothing.stderr
    built_in = searchbench("engines", "install", "tantivy", cwd=tmp_path)
    assert built_in.returncode == 0
    assert "nothing to install" in built_in.stdout
