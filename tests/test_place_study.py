"""Studies in places, from end to end; killed in every phase; and what the command line says.

Longer than most files: the study, its storages and the needs of the machine are those of all of it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from placing import child, groups, home, loops_below, needs
from searchbench.analysis.judge import judge
from searchbench.cli import app
from searchbench.engines import ENGINES
from searchbench.engines.postgresql import Postgresql
from searchbench.errors import LabError
from searchbench.lab.get.install import missing
from searchbench.lab.place import abilities, control, ledger, mounts
from searchbench.lab.system.deploy import complete
from searchbench.measure.run import run as measure
from searchbench.record import open_record
from searchbench.record.trial import Lever
from searchbench.report.document.assemble import document
from searchbench.report.document.blocks import Table

__all__ = ["home"]

pytestmark = pytest.mark.slow

STUDY = """
question = "Does the place matter?"
replicates = 1
{more}
[control]
aa = false
[corpus]
files = "documents.jsonl"
fields = {{ text = "text" }}
[queries]
file = "queries.txt"
match = "any"
[load]
seconds = 0.4
warmup_s = 0.1
{rest}
"""
SMALL = """
[places.small]
memory = "{memory}"
cold = "trial"
cores = 1
cpu_share = 0.9
storage = "disk"
[storages.disk]
filesystem = "ext4"
size = "{size}"
"""


def study(folder: Path, rest: str, more: str = "", documents: int = 3000) -> Path:
    """A small study over generated documents, on disk."""
    words = [f"w{n:x}" for n in range(997)]
    with (folder / "documents.jsonl").open("w") as file:
        for number in range(documents):
            text = " ".join(words[(number * k * 31 + k * k) % 997] for k in range(1, 40))
            file.write(json.dumps({"id": str(number), "text": text}) + "\n")
    (folder / "queries.txt").write_text("\n".join(words[::50]) + "\n")
    path = folder / "study.toml"
    path.write_text(STUDY.format(more=more, rest=rest))
    return path


def small(memory: str = "400MB", size: str = "200MB", systems: str = "[systems.tantivy]\n") -> str:
    return SMALL.format(memory=memory, size=size) + systems


def test_a_study_in_a_place_has_every_lever_on_record(home: Path) -> None:
    needs("memory", "cpu_share", "ext4")
    record = measure(study(home, small()), home / "record", work=home / "work")
    (trial,) = record.trials
    assert trial.reason == ""
    assert {v.name: v.problem for v in trial.place} == dict.fromkeys(
        ("storages.disk.filesystem", "places.small.cold", "places.small.memory",
         "places.small.cpu_share", "places.small.cores"), ""
    )  # fmt: skip
    assert all(v.asked and v.read_back and v.effect for v in trial.place)
    assert trial.phases["place"] > 0
    memory = next(v for v in trial.place if v.name == "places.small.memory")
    assert memory.figures["peak_bytes"] > 1_000_000
    assert trial.captured is not None, "captured after the drive, so that the drive was cold"
    cold = next(v for v in trial.place if v.name == "places.small.cold")
    assert cold.figures["pages"] > cold.figures["after"] == 0
    assert cold.figures["pages"] >= cold.figures["started"] > 0, "what it reads to start"
    assert cold.effect.endswith(f"; once it had started: {cold.figures['started']:,.0f}")
    (section,) = (s for s in document(record, judge(record)).sections if s.title == "Places")
    rows = next(block for block in section.blocks if isinstance(block, Table)).rows
    told = {row[1].text: [cell.text for cell in row[2:]] for row in rows}
    assert told.keys() == {v.name for v in trial.place}
    assert told["places.small.cold"] == ["trial", cold.read_back, cold.effect, "1 of 1"]
    assert mounts.below(home) == []
    assert ledger.clean() == ledger.Cleaned()
    assert not list((home / "work").iterdir())


def test_storages_and_memory_are_factors_like_any_other(home: Path) -> None:
    needs("memory", "ext4", "ram")
    rest = """
    [systems.sqlite]
    [factors]
    "systems.sqlite.place" = ["disk", "ram"]
    "places.disk.memory" = ["300MB", "500MB"]
    [places.disk]
    storage = "disk"
    [places.ram]
    storage = "ram"
    [storages.disk]
    filesystem = "ext4"
    size = "100MB"
    [storages.ram]
    ram = true
    size = "100MB"
    """
    record = measure(study(home, rest), home / "record", work=home / "work")
    assert [t.reason for t in record.trials] == [""] * 3
    built = [t for t in record.trials if t.ingest is not None and t.ingest.reused is None]
    assert len(built) == 2, "an index for each storage; the cap of memory changes no file"
    limits = {v.figures["limit_bytes"] for t in record.trials for v in t.place
              if v.name == "places.disk.memory"}  # fmt: skip
    assert len(limits) == 2


def test_the_pages_of_a_copy_that_roles_write_to_are_held_to_the_cap(home: Path) -> None:
    needs("memory")
    rest = """
    [systems.tantivy]
    [places.small]
    memory = "300MB"
    [roles.writer]
    does = "write"
    documents_per_s = 20
    """
    record = measure(study(home, rest), home / "record", work=home / "work")
    (trial,) = record.trials
    assert trial.reason == ""
    memory = next(v for v in trial.place if v.name == "places.small.memory")
    assert memory.figures["resident_bytes"] > 0, "what was driven is the copy, and not the original"
    assert memory.figures["cached_bytes"] > 0.9 * memory.figures["resident_bytes"]


def test_places_that_share_an_index_have_storages_of_their_own_names(home: Path) -> None:
    needs("ext4", "rates")
    rest = """
    [systems.sqlite]
    [factors]
    "systems.sqlite.place" = ["fast", "slow", "slower"]
    [places.fast]
    storage = "fast"
    [places.slow]
    storage = "slow"
    [places.slower]
    storage = "slower"
    [storages.fast]
    filesystem = "ext4"
    size = "100MB"
    [storages.slow]
    filesystem = "ext4"
    size = "100MB"
    read_iops = 2000
    [storages.slower]
    filesystem = "ext4"
    size = "100MB"
    read_iops = 500
    """
    record = measure(study(home, rest), home / "record", work=home / "work")
    assert [t.reason for t in record.trials] == [""] * 3
    built = [t for t in record.trials if t.ingest is not None and t.ingest.reused is None]
    assert len(built) == 1, "limits change no file"
    for trial in record.trials:
        name = trial.levels["systems.sqlite.place"]
        wanted = [f"storages.{name}.filesystem"]
        wanted += [] if name == "fast" else [f"storages.{name}.read_iops"]
        assert [v.name for v in trial.place] == wanted
        assert all(v.device == "" or v.figures["reads"] >= 0 for v in trial.place)


def test_a_cap_that_is_too_small_is_the_reason_and_the_rest_goes_on(home: Path) -> None:
    needs("memory", "ext4", "cpu_share")
    rest = small(systems="""
    [systems.tantivy]
    place = "small"
    [systems.sqlite]
    place = "here"
    [places.here]
    """, memory="2MB")  # fmt: skip
    record = measure(study(home, rest), home / "record", work=home / "work")
    trials = {t.system: t for t in record.trials}
    assert trials["tantivy"].status == "failed"
    assert trials["tantivy"].stage == "deploy"
    assert "`memory` = 2MB; give it more" in trials["tantivy"].reason
    assert trials["tantivy"].place, "what is known of its levers is on record"
    assert trials["sqlite"].status == "ok"
    assert mounts.below(home) == []


def test_a_storage_that_is_too_small_is_the_reason(home: Path) -> None:
    needs("ram")
    rest = '[systems.sqlite]\n[places.p]\nstorage = "s"\n[storages.s]\nram = true\nsize = "1MB"\n'
    record = measure(study(home, rest), home / "record", work=home / "work")
    (trial,) = record.trials
    assert trial.stage == "ingest"
    assert trial.reason.startswith("the storage s is full: ")
    assert "`size` = 1MB; make it larger" in trial.reason
    assert mounts.below(home) == []


@pytest.mark.parametrize("engine", ["tantivy", "lucene", "sphinx", "groonga", "mariadb"])
def test_a_storage_that_is_full_in_mid_ingest_is_the_reason_and_the_rest_goes_on(
    engine: str, home: Path
) -> None:
    needs("ext4")
    if lacking := missing(ENGINES[engine]):
        pytest.skip(f"no {engine} here: {lacking}")
    rest = f"""
    [systems.{engine}]
    place = "small"
    [systems.sqlite]
    place = "here"
    [places.small]
    storage = "disk"
    [storages.disk]
    filesystem = "ext4"
    size = "9MB"
    [places.here]
    """
    path = study(home, rest, documents=30_000)
    record = measure(path, home / "record", work=home / "work")
    trials = {t.system: t for t in record.trials}
    assert (trials[engine].status, trials["sqlite"].status) == ("failed", "ok")
    # MariaDB's own files alone are larger than that.
    assert trials[engine].stage == ("deploy" if engine == "mariadb" else "ingest")
    assert trials[engine].reason.startswith("the storage disk ")
    assert "make it larger" in trials[engine].reason
    assert mounts.below(home) == []


def test_a_disk_that_is_full_below_the_storages_is_the_reason(home: Path) -> None:
    needs("ram")
    work = home / "below"
    work.mkdir()
    rest = "[systems.tantivy]\n"
    path = study(home, rest, documents=30_000)
    size = path.with_name("documents.jsonl").stat().st_size + (1 << 20)  # for the batches alone
    assert mounts.mount("below", work, "tmpfs", f"size={size}") == ""
    try:
        (trial,) = measure(path, home / "record", work=work).trials
    finally:
        assert mounts.unmount(work) == ""
    assert (trial.status, trial.stage) == ("failed", "ingest")
    assert trial.reason.startswith(f"the disk of {work} is full, on which indexes are made: ")
    assert "free some room, or name another folder with --work" in trial.reason


def test_a_lever_that_does_not_take_fails_its_trial(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("memory")
    from searchbench.lab.place.group import Group

    monkeypatch.setattr(Group, "cap_memory", lambda self, limit_bytes: None)
    rest = '[systems.sqlite]\n[places.p]\nmemory = "300MB"\n'
    (trial,) = measure(study(home, rest), home / "record", work=home / "work").trials
    assert (trial.status, trial.stage) == ("failed", "place")
    assert trial.reason.startswith(
        "the lever places.p.memory did not take effect: 300MB was asked for; "
    )
    (seen,) = trial.place
    assert isinstance(seen, Lever)
    assert seen.problem


KILLED = """
import os, signal, sys, threading, time
from pathlib import Path
from searchbench.lab.conduct.watch import Silence
from searchbench.measure.run import run

class Killer(Silence):
    seen = 0
    def stage(self, name):
        print(name, flush=True)
        Killer.seen += 1
        if sys.argv[3] in (name, str(Killer.seen)):
            def kill():
                time.sleep(float(sys.argv[4]))
                os.kill(os.getpid(), signal.SIGKILL)
            threading.Thread(target=kill, daemon=True).start()

run(Path(sys.argv[1]), Path(sys.argv[2]), watch=Killer(), work=Path(sys.argv[2]).parent / "work")
print("whole", flush=True)
"""


def test_killed_in_any_phase_it_leaves_nothing_after_the_next_start(home: Path) -> None:
    needs("memory", "cpu_share", "ext4")
    path = study(home, small())
    phases: list[str] = []
    at = 0
    while True:
        at += 1
        process = child(
            KILLED, str(path), str(home / f"record-{at}"), str(at), str(0.03 * (at % 4)),
            folder=home,
        )  # fmt: skip
        out, _ = process.communicate(timeout=120)
        phases = out.decode().split()
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, out.decode()
        done = ledger.clean()
        assert done.left == (), phases
        assert mounts.below(home) == [], phases
        assert loops_below(home) == [], phases
        assert groups(process.pid) == [], phases
        assert not list((home / "work").glob("searchbench-*/shelf/indexes")), phases
    assert phases[-1] == "whole"
    assert at == len(phases), "it was killed in each of its phases"
    assert {"place", "deploy", "ingest", "stop", "drive", "totals", "capture"} <= {*phases}
    assert phases.count("place") >= 3


EACH = """
[systems.sqlite]
[places.small]
cold = "each query"
storage = "disk"
memory = "400MB"
[storages.disk]
filesystem = "ext4"
size = "200MB"
"""
JOBS = """
[systems.postgresql]
[jobs.dump]
[jobs.restore]
[places.small]
backup = "disk"
[storages.disk]
filesystem = "ext4"
size = "200MB"
"""


@pytest.mark.parametrize(
    ("rest", "wanted"),
    [
        # The last of each is between two queries.
        (EACH, ("stop", "place", "deploy", "drive")),
        (JOBS, ("job dump", "check dump", "weigh dump", "job restore", "check restore")),
    ],
    ids=["each query", "jobs"],
)
def test_killed_between_queries_or_in_a_job_it_leaves_nothing(
    rest: str, wanted: tuple[str, ...], home: Path
) -> None:
    needs("memory", "ext4")
    if rest is JOBS and (lacking := missing(Postgresql())):
        pytest.skip(f"no postgresql here: {lacking}")
    path = study(home, rest, documents=300)
    text = path.read_text()
    window = "[load]\nseconds = 0.4\nwarmup_s = 0.1\n"
    path.write_text(text.replace(window, "[load]\nrequests = 2\n" if rest is EACH else ""))

    def killed(at: str) -> list[str]:
        process = child(KILLED, str(path), str(home / f"record-{at}"), at, "0.02", folder=home)
        out, _ = process.communicate(timeout=120)
        assert process.returncode == (0 if at == "0" else -signal.SIGKILL), out.decode()
        assert ledger.clean().left == ()
        assert mounts.below(home) == [], at
        assert loops_below(home) == [], at
        assert groups(process.pid) == [], at
        return out.decode().splitlines()

    phases = killed("0")
    assert phases[-1] == "whole"
    for name in wanted:
        number = len(phases) - phases[::-1].index(name)
        # It was killed just after it had come there.
        assert killed(str(number))[number - 1] == name


def test_the_same_study_goes_on_after_it_was_killed(home: Path) -> None:
    needs("memory", "cpu_share", "ext4")
    path = study(home, small())
    process = child(KILLED, str(path), str(home / "record"), "drive", "0.05", folder=home)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, out.decode()
    assert mounts.below(home)
    told = child(KILLED, str(path), str(home / "record"), "0", "0", folder=home)
    out, _ = told.communicate(timeout=120)
    assert told.returncode == 0, out.decode()
    assert [t.status for t in open_record(home / "record").trials] == ["ok"]
    assert mounts.below(home) == []


def test_places_are_listed_with_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert app(["places", "--json"]) == 0
    found = {one["lever"]: one for one in json.loads(capsys.readouterr().out)}
    assert found["cold"]["here"]
    monkeypatch.setattr(abilities, "_may", lambda _: False)
    monkeypatch.setattr(mounts, "mounted", list)
    monkeypatch.setattr(abilities, "program", lambda name: None if name == "compsize" else name)
    assert app(["places"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "- btrfs: compsize is not installed; apt-get install btrfs-compsize" in out
    assert "- ram: only root may mount; run as root" in out
    assert "memory: this machine has no control groups with the controller memory" in out
    assert out.splitlines()[0].split() == ["lever", "here", "in", "a", "study"]


def test_what_a_machine_lacks_is_named_before_the_first_minute(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abilities, "_may", lambda _: False)
    monkeypatch.setattr(control, "_writable", lambda folder: False)
    path = study(home, small())
    assert app(["check", str(path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "storage disk: ext4: only root may mount; run as root" in out
    assert "place small: memory: we may not make control groups below" in out
    with pytest.raises(Exception, match="place small: cpu_share: "):
        app(["run", str(path), "--record", str(home / "record")])
    assert not (home / "record").exists()


def test_cores_that_are_not_there_are_named_before_the_first_minute(home: Path) -> None:
    path = study(home, "[systems.sqlite]\n[places.p]\ncores = [4096]\n")
    with pytest.raises(
        Exception, match="place p: `cores` has core 4096, but this machine lets us use"
    ):
        app(["run", str(path), "--record", str(home / "record")])


def test_a_cap_that_this_machine_cannot_reach_is_named_before_the_first_minute(home: Path) -> None:
    path = study(home, '[systems.sqlite]\n[places.p]\nmemory = "900TB"\n')
    with pytest.raises(
        Exception, match=r"place p: `memory` is 900TB, and this machine has .* make it smaller"
    ):
        app(["run", str(path), "--record", str(home / "record")])


def test_cleaning_says_what_it_did(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app(["places", "clean"]) == 0
    assert capsys.readouterr().out == "there is nothing to undo\n"
    tree = home / "searchbench-tree"
    tree.mkdir()
    (home / "ledgers").mkdir()
    line = {"made": 1, "thing": {"type": "Tree", "path": str(tree)}}
    (home / "ledgers/999999999-1-0.jsonl").write_text(json.dumps(line) + "\n")
    assert app(["places", "clean", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["undone"] == [f"folder {tree}"]
    assert said["ledgers"] == str(home / "ledgers")
    assert not tree.exists()
    assert os.environ["SEARCHBENCH_LEDGERS"] == said["ledgers"]


def test_a_command_that_waits_for_room_is_ended(home: Path) -> None:
    """MariaDB's own set-up now and then waits on a full disk for somebody to make room."""
    run = home / "run"
    run.mkdir()
    began = time.monotonic()
    with pytest.raises(LabError, match="`sleep 100` waits for room"):
        complete(["sleep", "100"], run=run, log="log", stage="deploy", full=lambda: "it is full")
    assert 5 < time.monotonic() - began < 50
    # One that goes on is not ended, be there room or not.
    complete(["sleep", "2"], run=run, log="log", stage="deploy", full=lambda: "it is full")
    # One that works is not ended, be there room or not: it may need no more.
    works = "import time; end = time.time() + 8\nwhile time.time() < end: pass"
    argv = [sys.executable, "-c", works]
    complete(argv, run=run, log="log", stage="deploy", full=lambda: "it is full")
