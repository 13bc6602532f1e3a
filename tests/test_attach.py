"""Attached systems: servers that already run, which are asked and never started or stopped."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from records import Study, lognormal
from searchbench import _core
from searchbench.analysis.judge import judge
from searchbench.corpora.corpus import Document, Field, FieldType, Schema
from searchbench.engines import ENGINES, defaults
from searchbench.engines.write import Placed
from searchbench.errors import LabError, StudyError
from searchbench.lab.conduct.serve import Sentences, serving
from searchbench.lab.conduct.watch import Silence
from searchbench.lab.get.install import missing
from searchbench.lab.system.address import target_of, variables
from searchbench.lab.system.attach import Attached
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.wire.exchange import prepare, samples_of
from searchbench.lab.wire.order import Manner, one_by_one
from searchbench.measure.run import run as measure
from searchbench.record import Record, open_record
from searchbench.study.plan import Trial as Planned
from searchbench.study.read import parse_study
from searchbench.workload.queries.algebra import Mode, Query, Terms
from test_load import serving as serving_bytes

STUDY = """
question = "How fast is the one that runs?"
replicates = 2
[corpus]
files = "documents.jsonl"
fields = {{ text = "text" }}
[queries]
file = "queries.txt"
[systems.ours]
engine = "groonga"
attach = "{address}"
[load]
seconds = 0.4
warmup_s = 0.1
[control]
aa = false
"""


@contextlib.contextmanager
def running(place: Path, **levers: int) -> Iterator[Deployment]:
    engine = ENGINES["groonga"]
    if lacking := missing(engine):
        pytest.skip(f"no groonga here: {lacking}")
    params = {**defaults(engine), **levers}
    with Deployment(engine, params, place / "data", place / "run") as server:
        yield server


def run(place: Path, server: Deployment, documents: int = 6) -> Record:
    lines = [f'{{"id": "{n}", "text": "red fox {n}"}}' for n in range(documents)]
    (place / "documents.jsonl").write_text("\n".join(lines))
    (place / "queries.txt").write_text("red\nfox 1\n")
    study = place / f"study{documents}.toml"
    study.write_text(STUDY.format(address="{}:{}".format(*server.target)))
    return measure(study, place / f"record{documents}")


def test_an_empty_one_is_ingested_into_once_and_lives_on(tmp_path: Path) -> None:
    with running(tmp_path / "server", threads=3) as server:
        record = run(tmp_path, server)
        assert server.lives()
        first, second = record.trials
        assert (first.status, second.status) == ("ok", "ok"), record.trials
        assert first.ingest.documents == 6
        assert first.ingest.reused is None
        assert (second.ingest.documents, second.ingest.reused) == (6, "attached")
        for trial in record.trials:
            assert trial.attached == "{}:{}".format(*server.target)
            assert trial.parameters["threads"] == 3, "as it is, not as the default would be"
            (note,) = [n for n in trial.notes if n.kind == "attached"]
            assert note.number == "threads is 3, not 2"
            assert trial.server.peak_rss_bytes > 0, "found by its port"
        captured = record.replies(first.trial)
        assert captured["total"].to_pylist()[:2] == [6, 1]
    again = measure(tmp_path / "study6.toml", record.path)
    assert len(again.trials) == 2, "nobody is asked where nothing is left to be driven"


class Meddling(Silence):
    """Somebody who changes a document of a server that runs, when a block begins."""

    def __init__(self, server: Deployment, block: int) -> None:
        self.server, self.block, self.done = server, block, False

    def begins(self, trial: Planned, *_: object) -> None:
        if trial.block == self.block and not self.done:
            schema = Schema((Field("text", FieldType.TEXT),))
            changed = Placed(Document("0", {"text": "blue hare"}), 0)
            engine = self.server.engine
            self.server.ask(engine.update([changed], schema, defaults(engine)))
            self.done = True


@pytest.mark.timed  # trials that get no processor are not judged
@pytest.mark.parametrize("block", [2, 9])
def test_each_block_of_a_sweep_asks_a_system_that_runs_anew_what_it_answers(
    tmp_path: Path, block: int
) -> None:
    with running(tmp_path / "server") as server:
        run(tmp_path, server)
        address = "{}:{}".format(*server.target)
        text = STUDY.format(address=address).replace(
            "seconds = 0.4", "seconds = 0.4\nclients = [1, 2]"
        )
        text = text.replace("[control]\naa = false\n", "")
        (tmp_path / "sweep.toml").write_text(text)
        record = measure(tmp_path / "sweep.toml", tmp_path / "sweep", watch=Meddling(server, block))
        found = judge(record)
    assert [t.status for t in record.trials] == ["ok"] * 4
    totals = {t.block: record.replies(t.trial)["total"].to_pylist()[:2] for t in record.trials}
    kinds = {f.kind: f for f in found.findings}
    if block > 2:
        assert totals == {1: [6, 1], 2: [6, 1]}
        assert "answers changed" not in kinds
    else:
        assert totals == {1: [6, 1], 2: [5, 1]}
        assert kinds["answers changed"].number == "1 of 2 queries of ours in 1 of 2 trials"
        assert kinds["answers changed"].severity == "warning"


def test_a_system_that_is_of_another_version_in_a_later_block_is_named(tmp_path: Path) -> None:
    run = Study(blocks=3, control=None, judging={"measure": "sweep"})
    for n in (1, 2):
        run.add(f"s{n}", system="s", levels={"load": n}, server=lognormal(0.004, 0.1), clients=n)
    path = run.write(tmp_path / "r")
    assert "another version" not in {f.kind for f in judge(open_record(path)).findings}
    for about in path.glob("trials/*-b2-*/trial.json"):
        about.write_text(json.dumps(json.loads(about.read_text()) | {"version": "9.9"}))
    (said,) = (f for f in judge(open_record(path)).findings if f.kind == "another version")
    assert said.number.endswith("in blocks 0 and 1; 9.9 in block 2")
    assert said.number.startswith("s: ")
    (about, *_) = path.glob("trials/*-b1-s1*/trial.json")
    about.write_text(json.dumps(json.loads(about.read_text()) | {"version": "9.9"}))
    (said,) = (f for f in judge(open_record(path)).findings if f.kind == "another version")
    assert "block" not in said.number, "both were met in block 1"
    assert json.loads(about.read_text())["trial"] in said.number.split("9.9 in trials ")[1]


def test_what_somebody_else_put_there_is_left_alone(tmp_path: Path) -> None:
    with running(tmp_path / "server") as server:
        assert run(tmp_path, server).trials[0].status == "ok"
        (trial, _again) = run(tmp_path, server, documents=7).trials
        assert trial.status == "failed"
        assert trial.stage == "ingest"
        assert "holds 6 documents and the corpus has 7" in trial.reason
        facts = server.engine.facts(server.ask(server.engine.facts_request()))
        assert facts.documents == 6


def attached(place: Path, address: str, engine: str = "groonga") -> Attached:
    found = ENGINES[engine]
    return Attached(found, defaults(found), place / "run", target=target_of("my-own", [address]))


def test_nobody_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("searchbench.lab.system.attach._READY_TIMEOUT_S", 0.3)
    with pytest.raises(LabError, match="nothing listens at"), attached(tmp_path, "127.0.0.1:9"):
        pass


def test_what_answers_in_another_form_is_not_that_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("searchbench.lab.system.attach._READY_TIMEOUT_S", 0.3)
    for body in (b"{}", b'{"header": {}}', b"[]", b"<html>"):

        def answer(peer: socket.socket, _head: bytes, _number: int, body: bytes = body) -> bool:
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            return True

        said = r"what answers at \S+ (is not Groonga: asked|does not reply as Groonga does)"
        with (
            serving_bytes(answer) as port,
            pytest.raises(LabError, match=said),
            attached(tmp_path, f"127.0.0.1:{port}"),
        ):
            pass


def test_all_that_are_down_are_named_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("searchbench.lab.system.attach._READY_TIMEOUT_S", 0.3)
    monkeypatch.setattr("searchbench.lab.conduct.openings.Openings.opened", None)
    (tmp_path / "documents.jsonl").write_text('{"id": "1", "text": "red fox"}')
    (tmp_path / "queries.txt").write_text("red\n")
    text = STUDY.format(address="127.0.0.1:9").replace(
        "[load]", '[systems.theirs]\nengine = "sphinx"\nattach = "127.0.0.1:10"\n[load]'
    )
    with pytest.raises(LabError) as down:
        measure(parse_study(text, "s.toml", tmp_path), tmp_path / "record")
    for port in (9, 10):
        assert f"nothing listens at 127.0.0.1:{port}; start the server" in str(down.value)
    assert not (tmp_path / "record").exists()


def test_another_engine_there_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("searchbench.lab.system.attach._READY_TIMEOUT_S", 0.3)
    engine = ENGINES["null"]
    with (
        Deployment(engine, defaults(engine), tmp_path / "data", tmp_path / "run") as null,
        pytest.raises(LabError, match="there is no Groonga"),
        attached(tmp_path / "b", "{}:{}".format(*null.target)),
    ):
        pass


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("groonga", "not HOST:PORT"),
        ("127.0.0.1:http", "not HOST:PORT"),
        ("no.such.host.invalid:80", "not known here as a host"),
        ("192.0.2.1:80", "not this machine's loopback"),
    ],
)
def test_an_address_that_will_not_do_is_named(tmp_path: Path, address: str, words: str) -> None:
    with pytest.raises(LabError, match=words), attached(tmp_path, address):
        pass


def test_credentials_have_names_that_follow_from_the_system() -> None:
    assert variables("my-own") == (
        "SEARCHBENCH_MY_OWN_USER", "SEARCHBENCH_MY_OWN_PASSWORD", "SEARCHBENCH_MY_OWN_DATABASE",
    )  # fmt: skip


def test_what_no_registry_gives_must_be_attached(tmp_path: Path) -> None:
    bare = [name for name, engine in ENGINES.items() if engine.can.unavailable]
    (tmp_path / "d.jsonl").write_text('{"id": "1", "text": "x"}')
    (tmp_path / "q.txt").write_text("x\n")
    for name in bare:
        text = (
            'question = "?"\n[corpus]\nfiles = "d.jsonl"\n[queries]\nfile = "q.txt"\n'
            f"[systems.{name}]\n"
        )
        with pytest.raises(StudyError, match="not run here"):
            parse_study(text, "s.toml", tmp_path)
        parse_study(text + 'attach = "127.0.0.1:1"\n', "s.toml", tmp_path)


def test_credentials_come_from_the_environment_and_a_wrong_one_is_said_in_the_servers_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("searchbench.lab.system.attach._READY_TIMEOUT_S", 0.3)
    engine = ENGINES["postgresql"]
    if lacking := missing(engine):
        pytest.skip(f"no postgresql here: {lacking}")
    with Deployment(engine, defaults(engine), tmp_path / "data", tmp_path / "run") as server:
        address = "{}:{}".format(*server.target)
        with attached(tmp_path / "a", address, "postgresql") as found:
            assert found.facts.version == server.facts.version
        monkeypatch.setenv("SEARCHBENCH_MY_OWN_USER", "nobody_here")
        with (
            pytest.raises(LabError, match=r'"nobody_here" does not exist.*SEARCHBENCH_MY_OWN_USER'),
            attached(tmp_path / "b", address, "postgresql"),
        ):
            pass


def test_what_a_whole_answer_is_follows_from_the_index_that_is_there(tmp_path: Path) -> None:
    engine = ENGINES["opensearch"]
    if lacking := missing(engine):
        pytest.skip(f"no opensearch here: {lacking}")
    levels = {**defaults(engine), "shards": 3}
    query = Query(Terms(Mode.ANY, ("fox",)))
    with serving(engine, levels, Sentences(), tmp_path / "server") as (server, _done):
        address = "{}:{}".format(*server.target)
        with attached(tmp_path / "a", address, "opensearch") as found:
            assert found.params["shards"] == 3, "not the default"
            asked = engine.compile(query, Sentences.schema, found.params)
            order = replace(one_by_one(5), sequence=np.zeros(5, np.uint32))
            trace = found.endpoint.drive(prepare([asked]), order, Manner())
            outcomes = {_core.OUTCOMES[int(s["outcome"])] for s in samples_of(trace)}
            assert outcomes == {"ok"}
