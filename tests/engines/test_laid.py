"""Files that an engine can lay apart lie where they are to lie, and are still found afterwards."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from searchbench.engines import ENGINES, defaults
from searchbench.engines.engine import Engine, Parameters
from searchbench.errors import LabError
from searchbench.lab.conduct.ingest import ingest, spool
from searchbench.lab.conduct.serve import Sentences
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment

CORPUS = Sentences()
# What of the log is in the data directory, where it is not laid apart.
LOGS = {
    "postgresql": ("pg_wal/0*",),
    "mariadb": ("ib_logfile*", "aria_log*"),
    "orientdb": ("*/*.wal",),
}


def cases() -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = [("postgresql", {})]
    # The log must be on disk before the kill; by default that takes it a second.
    found.append(("orientdb", {"wal_commit_timeout_ms": 50}))
    return found + [("mariadb", {"storage": storage}) for storage in ("innodb", "aria", "myisam")]


@pytest.fixture(params=cases(), ids=lambda case: "-".join(map(str, (case[0], *case[1].values()))))
def engine(request: pytest.FixtureRequest) -> tuple[Engine, Parameters]:
    name, levers = request.param
    if lacking := missing(ENGINES[name]):
        pytest.skip(f"no {name} here: {lacking}")
    return ENGINES[name], {**defaults(ENGINES[name]), **levers}


def deployment(engine: Engine, params: Parameters, path: Path, **laid: Path) -> Deployment:
    return Deployment(engine, params, path / "data", path / "run", (), CORPUS.schema, laid or None)


def logs_in_data(engine: Engine, path: Path) -> list[Path]:
    return [file for form in LOGS[engine.name] for file in (path / "data").glob(form)]


def opened(running: Deployment) -> set[Path]:
    """The files that the server has open."""
    family = [running.process, *running.process.children(recursive=True)]
    links = (link for p in family for link in Path(f"/proc/{p.pid}/fd").iterdir())
    return {link.readlink() for link in links if link.is_symlink()}


def test_the_log_lies_apart_and_outlives_the_server(
    engine: tuple[Engine, Parameters], tmp_path: Path
) -> None:
    one, params = engine
    wal = tmp_path / "apart"
    batches = spool(one, CORPUS, tmp_path / "batches", params)
    with deployment(one, params, tmp_path, wal=wal) as running:
        ingest(running, CORPUS, batches)
        assert [path for path in wal.iterdir() if path.is_file()]
        if one.name == "mariadb":
            assert any(wal in path.parents for path in opened(running))
        assert all(path.resolve().is_relative_to(wal) for path in logs_in_data(one, tmp_path))
        assert str(wal) in " ".join(running.argv) or (tmp_path / "data/pg_wal").is_symlink()
        family = [running.process, *running.process.children(recursive=True)]
        os.kill(running.process.pid, signal.SIGKILL)
        psutil.wait_procs(family, timeout=10)
    with deployment(one, params, tmp_path, wal=wal) as running:
        assert running.facts.documents == 4


def test_without_that_it_lies_with_the_data(
    engine: tuple[Engine, Parameters], tmp_path: Path
) -> None:
    one, params = engine
    with deployment(one, params, tmp_path) as running:
        assert not any("wal" in part for part in running.argv if "commitTimeout" not in part)
        assert logs_in_data(one, tmp_path)
        assert not (tmp_path / "data/pg_wal").is_symlink()


def test_what_an_engine_does_not_lay_apart_is_refused(tmp_path: Path) -> None:
    one = ENGINES["sqlite"]
    with (
        pytest.raises(LabError, match="sqlite lays no files of the kind wal elsewhere"),
        deployment(one, defaults(one), tmp_path, wal=tmp_path / "apart"),
    ):
        pass
    assert not (tmp_path / "apart").exists()
