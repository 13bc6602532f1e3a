"""The commands and the studies of README, COMPARE, PLACES and STUDY, run one after another.

docs/LOAD.md has a test of its own (test_tutorial.py), and docs/LOAD-MACHINES.md needs machines.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from searchbench.cli import app
from searchbench.record import open_record

ROOT = Path(__file__).parent.parent
# What is shorter than on the page, and nothing else.
SHORTER = ["--set", "load.seconds=0.2", "--set", "load.warmup_s=0.1", "--set", "replicates=2"]
WORDS = ("red", "green", "blue", "small", "large", "shirt", "shoe", "hat")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what README asks for: a CSV of products and a file of queries."""
    folder = tmp_path_factory.mktemp("shop")
    rows = [
        f'{n},{WORDS[n % 5]} {WORDS[5 + n % 3]} no {n},"{WORDS[n % 3]}, ""{WORDS[n % 7]}"" & more"'
        for n in range(300)
    ]
    (folder / "products.csv").write_text("\n".join(["id,title,description", *rows]))
    (folder / "queries.txt").write_text("red shirt\nblue\nlarge hat\nsmall green\n")
    return folder


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands(page: str, verb: str) -> list[list[str]]:
    """The arguments of each ``searchbench VERB ..`` of a page, without comments."""
    text = (ROOT / page).read_text(encoding="utf-8")
    text = text.replace("\\\n", " ")
    found = re.findall(rf"^(?:    )?searchbench ({verb} .*)$", text, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in found]


def test_the_study_of_readme_and_what_it_may_vary(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shop)
    study, factors, capacity, attached = blocks("README.md", "toml")
    (shop / "study.toml").write_text(study)
    assert app(["check", "study.toml"]) == 0
    assert app(["run", "study.toml", *SHORTER]) in (0, 1)
    said = capsys.readouterr().out
    assert "tantivy" in said
    assert "report.html" in said
    # What is varied is not set as well.
    once = "".join(
        line for line in study.splitlines(keepends=True) if not re.match("match|clients", line)
    )
    (shop / "varied.toml").write_text(once + factors)
    assert app(["plan", "varied.toml"]) == 0
    head = study.partition("[load]")[0]
    (shop / "capacity.toml").write_text(head + capacity)
    assert app(["plan", "capacity.toml"]) == 0
    (shop / "attached.toml").write_text(study + attached)
    assert app(["check", "attached.toml"]) == 0


def test_the_commands_of_the_page_of_studies(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shop)
    (shop / "study.toml").write_text(blocks("README.md", "toml")[0])
    found = [argv for argv in commands("docs/STUDY.md", "run") if argv[1] == "study.toml"]
    assert len(found) >= 2
    for argv in found:
        assert app(["plan", *argv[1:]]) == 0, argv


def test_two_runs_are_compared_as_the_page_says(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shop)
    (shop / "study.toml").write_text(blocks("README.md", "toml")[0])
    compares = commands("docs/COMPARE.md", "compare")
    assert len(compares) >= 3
    folders = {word for argv in compares for word in argv if word.startswith("records/")}
    for folder in sorted(folders):
        assert app(["run", "study.toml", "--record", folder, "--no-report", *SHORTER]) in (0, 1)
        assert open_record(shop / folder).trials
    capsys.readouterr()
    for argv in compares:
        assert app(argv) in (0, 1, 3), argv  # 3: such short runs may leave it open
        assert capsys.readouterr().out
    pages = [argv[argv.index("--out") + 1] for argv in compares if "--out" in argv]
    assert all((shop / page).read_text().startswith("<!") for page in pages)


def test_the_page_of_places(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shop)
    monkeypatch.setenv("SEARCHBENCH_LEDGERS", str(shop / "ledgers"))
    (shop / "queries.log").write_text((shop / "queries.txt").read_text())
    memory, devices, cold, each, disks, compression, hosts = blocks("docs/PLACES.md", "toml")
    (shop / "memory.toml").write_text(memory)
    assert app(["plan", "memory.toml"]) == 0
    head, _, storage = memory.partition("[factors]")[0].partition("[places.server]")
    for name in ("ssd", "disk"):
        (shop / name).mkdir()
        devices = devices.replace(f"/mnt/{name}", str(shop / name))
    (shop / "devices.toml").write_text(head + devices)
    assert app(["plan", "devices.toml"]) == 0
    (shop / "cold.toml").write_text(head + cold + storage.partition('"disk"')[2])
    assert app(["plan", "cold.toml"]) == 0
    own = head.replace("[load]\nclients = 2\n", "")
    (shop / "each.toml").write_text(own + each + storage.partition('"disk"')[2])
    assert app(["plan", "each.toml"]) == 0
    own = head.replace(
        "[systems.tantivy]\n", "[places.server]\n[storages.first]\n[storages.second]\n"
    )
    room = 'filesystem = "ext4"\nsize = "1GB"\n'
    own = own.replace("t]\n[storages.s", f"t]\n{room}[storages.s").replace(
        "second]\n", f"second]\n{room}"
    )
    (shop / "hosts.toml").write_text(head.replace("[systems.tantivy]\n", "") + hosts)
    assert app(["check", "hosts.toml"]) == 0
    (shop / "disks.toml").write_text(own + disks)
    assert app(["plan", "disks.toml"]) == 0
    place = '[places.server]\nstorage = "disk"\n'
    (shop / "compression.toml").write_text(head + place + compression)
    assert app(["plan", "compression.toml"]) == 0
    out = capsys.readouterr().out
    for level in ("memory=200MB", "place=ssd", "disks=2 disks", "compression=zstd:9"):
        assert level in out
    assert app(["places"]) == 0
    assert "memory" in capsys.readouterr().out
    assert app(["places", "clean"]) == 0
