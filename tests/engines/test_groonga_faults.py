"""What can go wrong with a Groonga server, made to happen to a real one."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from searchbench.corpora.corpus import Document, Field, FieldType, Schema
from searchbench.engines import defaults
from searchbench.engines.engine import Request
from searchbench.engines.groonga import Groonga
from searchbench.engines.groonga.commands import do
from searchbench.errors import LabError
from searchbench.lab.conduct.ingest import ingest, spool
from searchbench.lab.conduct.serve import serving
from searchbench.lab.get.install import missing
from searchbench.lab.system import deploy
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.wire.exchange import Refused
from searchbench.measure.run import run as measure
from searchbench.record import Record
from searchbench.workload.queries.algebra import Mode, Query, Terms
from test_lab import Watch, outcomes, study

ENGINE = Groonga()
SERVERS = ('server = "groonga"', 'server = "httpd"\nhttpd_workers = 1')


@pytest.fixture(autouse=True, scope="module")
def _here() -> None:
    if lacking := missing(ENGINE):
        pytest.skip(f"no groonga here: {lacking}")


class Notes:
    """Documents with a title, a kind and nothing else."""

    name = "notes"
    schema = Schema((Field("title", FieldType.TEXT), Field("kind", FieldType.KEYWORD)))

    def __init__(self, *documents: Document) -> None:
        self.held = documents or tuple(
            Document(str(n), {"title": f"note number {n}"}) for n in range(30)
        )

    def documents(self) -> Iterator[Document]:
        yield from self.held


def servers(name: str) -> list[psutil.Process]:
    """Processes of that name below this one that live."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.name() == name and child.status() != psutil.STATUS_ZOMBIE:
                found.append(child)
    return found


class Once(Watch):
    """Does ``deed`` to the servers once, ``after_s`` of a drive."""

    def __init__(self, name: str, deed: Callable[[psutil.Process], object]) -> None:
        super().__init__()
        self.name, self.deed, self.done = name, deed, False

    def tick(self, completed: int, elapsed_ns: int, recent: bytes) -> None:
        if completed > 20 and elapsed_ns > 300_000_000 and not self.done:
            self.done = True
            for server in servers(self.name):
                self.deed(server)


def driven(folder: Path, watch: Once, server: str) -> tuple[Record, Mapping[str, Any]]:
    """Two seconds of load on a Groonga to which something happens."""
    path = study(
        folder,
        f"[systems.groonga]\n{server}\n",
        "seconds = 2\nwarmup_s = 0\nclients = 2\ntimeout_s = 0.5",
        "[control]\naa = false",
    )
    record = measure(path, folder / "record", watch=watch)
    (trial,) = record.trials
    assert watch.done
    return record, trial


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_killed_in_mid_trial_is_an_outcome_per_request_and_a_note(
    tmp_path: Path, server: str
) -> None:
    name = "groonga-httpd" if "httpd" in server else "groonga"
    record, trial = driven(tmp_path, Once(name, psutil.Process.kill), server)
    assert trial.status == "ok"
    seen = outcomes(record, trial.trial)
    assert seen["ok"] > 0
    assert seen["refused"] > 0
    assert any(note.kind == "server ended" for note in trial.notes)
    assert servers(name) == []


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_that_accepts_and_never_answers_is_a_timeout_per_request(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deploy, "_STOP_TIMEOUT_S", 0.3)  # a stopped process ignores SIGTERM
    name = "groonga-httpd" if "httpd" in server else "groonga"
    record, trial = driven(tmp_path, Once(name, psutil.Process.suspend), server)
    seen = outcomes(record, trial.trial)
    assert seen["ok"] > 0
    assert seen["timed_out"] > 0
    assert servers(name) == []


def test_a_server_killed_in_ingest_fails_its_trial_and_the_next_builds_anew(
    tmp_path: Path,
) -> None:
    class Killer(Watch):
        def stage(self, name: str) -> None:
            super().stage(name)
            if self.stages.count("ingest") == 1 and name == "ingest":
                for server in servers("groonga"):
                    threading.Timer(0.1, server.kill).start()

    lines = (json.dumps({"id": str(n), "text": f"word{n} red " * 40}) for n in range(6000))
    (tmp_path / "many.jsonl").write_text("\n".join(lines))
    path = study(tmp_path, "[systems.groonga]\n", "seconds = 0.2\nwarmup_s = 0")
    path.write_text(
        path.read_text()
        .replace("documents.jsonl", "many.jsonl")
        .replace('{ text = "text", n = "integer" }', '{ text = "text" }')
    )
    failed, after = measure(path, tmp_path / "record", watch=Killer()).trials
    assert (failed.status, failed.stage) == ("failed", "ingest")
    assert "did not answer" in failed.reason or "was not taken" in failed.reason
    assert (after.status, after.ingest.documents) == ("ok", 6000)
    assert after.ingest.reused is None


def test_a_lock_left_by_a_killed_server_lets_read_and_not_write_and_goes_with_the_index(
    tmp_path: Path,
) -> None:
    """Groonga's locks lie in the database, so they outlive who held them."""
    data = tmp_path / "data"
    params = defaults(ENGINE)
    with Deployment(ENGINE, params, data, tmp_path / "run") as running:
        ingest(running, Notes(), spool(ENGINE, Notes(), tmp_path / "batches"))
        locked = running.ask(Request((do("lock_acquire", target_name="Docs"),)))
        assert ENGINE.check(locked) is None
        running.process.kill()
        running.process.wait(60)
    number = ENGINE.compile(Query(Terms(Mode.ALL, ("number",))), Notes.schema, params)
    one_more = ENGINE.batch([Document("more", {"title": "x"})], 30, Notes.schema, params)
    with Deployment(ENGINE, params, data, tmp_path / "run") as running:
        assert running.facts.documents == 30
        assert ENGINE.decode(running.ask(number)).total == 30
        with pytest.raises(Refused, match="timed_out"):
            running.ask(one_more, timeout_s=2.0)
        give_up = time.monotonic() + 30
        while "lock failed" not in running.log_tail():  # its own words would be in the error
            assert time.monotonic() < give_up
            time.sleep(0.1)
    shutil.rmtree(data)
    with serving(ENGINE, params, Notes(), tmp_path) as (running, done):
        assert done.documents == 30
        assert ENGINE.check(running.ask(one_more)) is None


def test_a_document_with_too_long_a_key_is_refused_by_its_place(tmp_path: Path) -> None:
    notes = Notes(
        Document("short", {"title": "kept"}),
        Document("k" * 4097, {"title": "lost"}),
        Document("k" * 4096, {"title": "kept too"}),
        Document("", {"title": "lost"}),
    )
    with serving(ENGINE, defaults(ENGINE), notes, tmp_path) as (running, done):
        assert (done.documents, done.refused) == (2, 2)
        first, last = done.refusals
        assert last["id"] == "document 4 of its batch"
        assert first["id"] == "document 2 of its batch"
        assert "failed to add" in first["reason"]
        assert "(batch 1 of 1)" in first["reason"]
        assert ENGINE.facts(running.ask(ENGINE.facts_request())).documents == 2


def test_a_keyword_that_is_too_long_fails_the_ingest_with_its_batch(tmp_path: Path) -> None:
    """Its document would be in the index without it."""
    notes = Notes(
        Document("1", {"title": "a", "kind": "k" * 4096}),
        Document("k" * 4097, {"title": "refused whole"}),
        Document("2", {"title": "b", "kind": "k" * 4097}),
    )
    with (
        pytest.raises(LabError, match=r"batch 1 of 1: .*v_kind.*failed to cast") as told,
        serving(ENGINE, defaults(ENGINE), notes, tmp_path),
    ):
        pass
    assert len(str(told.value)) < 400


def test_documents_of_one_id_are_one_document_and_the_count_says_so(tmp_path: Path) -> None:
    notes = Notes(Document("same", {"title": "first"}), Document("same", {"title": "second"}))
    with serving(ENGINE, defaults(ENGINE), notes, tmp_path) as (running, done):
        assert done.documents == 2  # as Groonga says; a study compares it with what is there
        assert ENGINE.facts(running.ask(ENGINE.facts_request())).documents == 1


def test_a_batch_for_a_table_that_is_not_there_is_an_error_in_words(tmp_path: Path) -> None:
    """Groonga answers this one in the first form of replies, whatever was asked for."""
    with Deployment(ENGINE, defaults(ENGINE), tmp_path / "data", tmp_path / "run") as running:
        batch = ENGINE.batch([Document("1", {"title": "x"})], 0, Notes.schema, running.params)
        assert ENGINE.check(running.ask(batch)) == "nonexistent table: <Docs>"


def test_a_groonga_whose_writer_died_is_noticed(tmp_path: Path) -> None:
    params = {**defaults(ENGINE), "server": "httpd"}
    with Deployment(ENGINE, params, tmp_path / "data", tmp_path / "run") as running:
        (writer,) = servers("groonga")
        writer.send_signal(signal.SIGKILL)
        writer.wait(60)
        assert not running.lives()
        with pytest.raises(LabError, match="refused create: HTTP 502"):
            ingest(running, Notes(), spool(ENGINE, Notes(), tmp_path / "batches"))
