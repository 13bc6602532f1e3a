"""The wheel that `make wheel` builds: into an empty environment, without Rust and the network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "searchbench"
STUDY = """\
question = "Which of the two is faster?"
replicates = 1
[corpus]
files = "products.csv"
fields = { name = "text" }
[queries]
file = "queries.txt"
[systems.tantivy]
[systems.sqlite]
[load]
seconds = 0.4
warmup_s = 0
"""


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The wheel of these very sources."""
    found = sorted((ROOT / "dist").glob("searchbench-*.whl"))
    if not found:
        pytest.skip("there is no wheel in dist: make wheel")
    with zipfile.ZipFile(found[-1]) as packed:
        for path in PACKAGE.rglob("*.py"):
            name = path.relative_to(PACKAGE.parent).as_posix()
            if name not in packed.namelist() or packed.read(name) != path.read_bytes():
                pytest.skip(f"the wheel in dist has another {name}: make wheel")
    return found[-1]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what it needs, from the cache of uv alone."""
    uv = shutil.which("uv", path=f"{os.environ['PATH']}:{ROOT / '.tools' / 'bin'}")
    if uv is None:
        pytest.skip("there is no uv: make tools")
    place = tmp_path_factory.mktemp("wheel") / "env"
    env = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(place), "UV_PYTHON": sys.executable}
    env.pop("VIRTUAL_ENV", None)
    for words in (
        ["sync", "--frozen", "--no-dev", "--no-install-project"],  # the versions of the lock file
        ["pip", "install", "--no-deps", "--python", str(place), str(wheel)],
        ["pip", "check", "--python", str(place)],
    ):
        offline = [] if "check" in words else ["--offline"]
        done = subprocess.run(
            [uv, *words, *offline], cwd=ROOT, env=env, capture_output=True, text=True
        )
        if done.returncode and "network was disabled" in done.stderr.lower():
            pytest.skip(f"packages are not in the cache of uv: {done.stderr.strip()[-200:]}")
        assert done.returncode == 0, done.stderr
    return place


def test_it_fits_every_python_from_3_11_and_names_what_it_needs(wheel: Path) -> None:
    assert "-cp311-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        about = next(name for name in names if name.endswith(".dist-info/METADATA"))
        needs = packed.read(about).decode()
    assert "Requires-Dist: pyarrow>=22" in needs
    assert sum(name.endswith(".so") for name in names) == 1
    assert not [name for name in names if "__pycache__" in name]


def test_what_was_installed_measures_a_study_without_rust(installed: Path, tmp_path: Path) -> None:
    words = "red green blue old new small large lamp table chair".split()  # noqa: SIM905
    rows = [f"{n},{words[n % 10]} {words[n % 7]}" for n in range(200)]
    (tmp_path / "products.csv").write_text("\n".join(["id,name", *rows]) + "\n")
    (tmp_path / "queries.txt").write_text("red lamp\nold chair\ngreen\n")
    (tmp_path / "study.toml").write_text(STUDY)
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "COLUMNS": "80",
        "SEARCHBENCH_SHARED_MACHINE": "1",
    }  # other tests run beside it

    def go(*words: str) -> str:
        done = subprocess.run(
            [installed / "bin" / "searchbench", *words], cwd=tmp_path, env=env,
            capture_output=True, text=True, timeout=200,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "release build" in go("--version")
    said = go("run", "study.toml")
    assert "tantivy" in said
    assert (tmp_path / "records/study/report/report.html").stat().st_size > 10_000
    assert (tmp_path / "records/study/report/report.pdf").stat().st_size > 1000
