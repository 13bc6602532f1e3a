"""Engines from Maven: whole or not there at all, and a sentence where they cannot be had."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from searchbench.errors import LabError, NotInstalled
from searchbench.lab.get.install import get_artifacts

SMALL = "junit:junit:4.13.2:jar"
NOT_THERE = "junit:junit:0.0.0-none:jar"


@pytest.fixture(autouse=True)
def _maven() -> None:
    if shutil.which("mvn") is None:
        pytest.skip("no Maven here (Debian: apt-get install maven)")


@pytest.fixture
def unreachable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Maven with no repository of its own yet, and a mirror of all others where nobody listens."""
    home = tmp_path / "home"
    (home / ".m2").mkdir(parents=True)
    (home / ".m2/settings.xml").write_text(
        "<settings><mirrors><mirror><id>none</id><mirrorOf>*</mirrorOf>"
        "<url>http://127.0.0.1:1/</url></mirror></mirrors></settings>"
    )
    monkeypatch.setenv("MAVEN_OPTS", f"-Duser.home={home}")


def test_an_artifact_is_got_once_and_every_command_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    get_artifacts([SMALL], tmp_path, said.append)
    assert (tmp_path / "junit-4.13.2/junit-4.13.2.jar").stat().st_size > 100_000
    assert [p.name for p in tmp_path.iterdir()] == ["junit-4.13.2"]
    assert "maven-dependency-plugin:3.8.1:copy -Dartifact=junit:junit:4.13.2:jar" in said[0]
    said.clear()
    get_artifacts([SMALL], tmp_path, said.append)
    assert said == [f"{tmp_path / 'junit-4.13.2'} is here"]


def test_what_is_not_there_is_named_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"could not get junit:junit:0.0.0-none:jar: .*junit"):
        get_artifacts([NOT_THERE], tmp_path, lambda _line: None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("unreachable")
def test_without_a_network_it_says_that_it_reached_nothing(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"could not reach a repository for junit:junit:4.13.2"):
        get_artifacts([SMALL], tmp_path / "engines", lambda _line: None)
    assert list((tmp_path / "engines").iterdir()) == []


def test_where_there_is_no_maven_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotInstalled, match="apt-get install maven"):
        get_artifacts([SMALL], tmp_path / "engines", lambda _line: None)


def test_a_full_disk_is_named_with_the_remedy(tmp_path: Path) -> None:
    """On a file system of its own, in a mount namespace, with room for the folder alone."""
    mount = 'mount -t tmpfs -o size=64k none "$1"'
    private = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if subprocess.run([*private, mount, "-", str(tmp_path)], check=False).returncode:
        pytest.skip("kernel: nobody may mount in a namespace of his own here")
    get = (
        "import sys; from pathlib import Path\n"
        "from searchbench.lab.get.install import get_artifacts\n"
        "get_artifacts([sys.argv[1]], Path(sys.argv[2]), print)"
    )
    script = f'{mount} && exec "$2" -c "$3" "$4" "$1"'
    done = subprocess.run(
        [*private, script, "-", str(tmp_path), sys.executable, get, SMALL],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "is full; make room, or name another place in SEARCHBENCH_ENGINES" in done.stderr


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "engines").write_text("a file")
    with pytest.raises(LabError, match="engines cannot be written"):
        get_artifacts([SMALL], tmp_path / "engines", lambda _line: None)
