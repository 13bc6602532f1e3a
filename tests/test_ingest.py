"""How documents are put in: so many a request, over so many connections; [ingest] and the job."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from searchbench.corpora import open_corpus
from searchbench.corpora.corpus import Document
from searchbench.engines import ENGINES, defaults
from searchbench.engines.bulk import BATCH_DOCUMENTS, batched, requests_of
from searchbench.errors import StudyError, Unsupported
from searchbench.lab.conduct.ingest import ingest, spool
from searchbench.lab.conduct.jobs import written_for
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.wire.order import each_once
from searchbench.measure.run import run as measure
from searchbench.study import Study
from searchbench.study.estimate import index_key
from searchbench.study.planner import make_plan
from searchbench.study.read import parse_study

TEXT = """question = "?"
replicates = 1
[corpus]
family = "generated"
documents = 60
[queries]
distinct = 3
[control]
aa = false
[load]
clients = 1
seconds = 0.2
warmup_s = 0
"""


def read(rest: str) -> Study:
    return parse_study(TEXT + rest, "study.toml", Path())


@pytest.mark.parametrize("count", [1, 2, 7, 100])
@pytest.mark.parametrize("connections", [1, 2, 3, 200])
def test_each_request_is_sent_once_whatever_the_connections(count: int, connections: int) -> None:
    order = each_once(count, connections)
    assert sorted(order.sequence.tolist()) == list(range(count))
    assert order.client_starts is not None
    sizes = np.diff(order.client_starts)
    assert len(sizes) == order.connections == min(count, connections)
    assert sizes.max() - sizes.min() <= 1
    if connections == 1:
        assert order.sequence.tolist() == list(range(count))


def test_batches_have_so_many_documents_or_so_much_text() -> None:
    few = [Document(str(n), {"t": "x" * 10}) for n in range(2500)]
    assert [len(batch) for batch in batched(few)] == [BATCH_DOCUMENTS, BATCH_DOCUMENTS, 500]
    assert [len(batch) for batch in batched(few, 2000)] == [2000, 500]
    assert [len(batch) for batch in batched(few[:3], 1)] == [1, 1, 1]
    long = [Document(str(n), {"t": "x" * (3 << 20)}) for n in range(5)]
    assert [len(batch) for batch in batched(long)] == [2, 2, 1]
    assert [len(batch) for batch in batched(long, 1000)] == [5]


def test_documents_keep_their_places_however_they_are_batched() -> None:
    corpus = open_corpus({"family": "cars"}, Path.cwd())
    engine = ENGINES["postgresql"]
    for size in (4000, 15_000):
        sent = b"".join(
            exchange
            for request, _ in requests_of(engine, corpus, defaults(engine), size)
            for exchange in request.exchanges
        )
        # The number, by which ties are broken, and the id.
        assert b"\n7999\t8000\t8000\t" in sent


def test_batch_and_connections_are_factors_and_make_indexes_of_their_own() -> None:
    study = read(
        "[systems.tantivy]\n[ingest]\nconnections = 2\n[factors]\n'ingest.batch' = [1, 30]\n"
    )
    plan = make_plan(study)
    assert [t.ingest for t in plan.treatments] == [
        {"connections": 2, "batch": 1},
        {"connections": 2, "batch": 30},
    ]
    assert len({index_key(t) for t in plan.treatments}) == 2
    assert "ingest" not in make_plan(read("[systems.tantivy]\n")).treatments[0].settings


@pytest.mark.parametrize(
    ("require", "left"), [("totals", []), ("set", ["tantivy"]), ("order", ["tantivy"])]
)
def test_several_connections_are_left_out_where_ties_need_the_order(
    require: str, left: list[str]
) -> None:
    study = read(
        "[systems.tantivy]\n[systems.postgresql]\n[ingest]\nconnections = 4\n"
        f"[agreement]\nrequire = '{require}'\n"
    )
    plan = make_plan(study)
    assert [each.levels["system"] for each in plan.excluded] == left
    assert all("breaks ties by the order of ingest" in each.reason for each in plan.excluded)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("[ingest]\nbatch = 0\n", "`batch` must be an integer from 1"),
        ("[ingest]\nconnections = 'many'\n", "`connections` must be an integer"),
        ("[ingest]\nbatches = 3\n", "batches"),
        ("[factors]\n'ingest.index' = ['once', 'per-trial']\n", "index"),
        ("[factors]\n'ingest.batch' = [0, 1]\n", "level of `ingest.batch`"),
    ],
)
def test_what_ingest_cannot_be_is_said(wrong: str, sentence: str) -> None:
    with pytest.raises(StudyError, match=sentence):
        read("[systems.tantivy]\n" + wrong)


@pytest.mark.parametrize("name", ["tantivy", "sqlite"])
def test_all_documents_arrive_over_several_connections(name: str, tmp_path: Path) -> None:
    engine = ENGINES[name]
    corpus = open_corpus({"family": "generated", "documents": 500}, tmp_path)
    levels = defaults(engine)
    batches = spool(engine, corpus, tmp_path / "batches", levels, 7)
    run, data = tmp_path / "run", tmp_path / "data"
    with Deployment(engine, levels, data, run, (), corpus.schema) as server:
        done = ingest(server, corpus, batches, 3)
        facts = engine.facts(server.ask(engine.facts_request()))
    assert (done.documents, done.requests, done.connections) == (500, 72, 3)
    assert facts.documents == 500


def test_what_an_own_program_indexes_has_no_job_of_ingest() -> None:
    engine = ENGINES["sphinx"]
    corpus = open_corpus({"family": "cars"}, Path.cwd())
    with pytest.raises(Unsupported, match="own program"):
        engine.work("ingest", {"batch": 1, "connections": 1}, corpus.schema, defaults(engine))


def test_what_a_job_sends_is_made_anew_for_another_door_and_not_for_more_memory() -> None:
    engine = ENGINES["mariadb"]
    usual = defaults(engine)
    keys = [
        json.dumps(written_for(engine, {**usual, **levels}), sort_keys=True)
        for levels in ({}, {"door": "load"}, {"buffer_pool_mb": 999})
    ]
    assert keys[0] != keys[1]
    assert keys[0] == keys[2]


def test_ingest_as_a_job_is_timed_counted_and_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = TEXT.partition("[queries]")[0] + (
        "[control]\naa = false\n[systems.tantivy]\n[jobs.ingest]\n[factors]\n"
        "'jobs.ingest.batch' = [1, 25]\n'jobs.ingest.connections' = [1, 2]\n"
    )
    monkeypatch.setenv("SEARCHBENCH_LEDGERS", str(tmp_path / "ledgers"))
    path = tmp_path / "study.toml"
    path.write_text(text)
    record = measure(path, tmp_path / "record", work=tmp_path / "work")
    assert [trial.status for trial in record.trials] == ["ok"] * 4, record.trials[0].reason
    found = {}
    for trial in record.trials:
        (job,) = trial.jobs
        assert job.documents == 60
        found[trial.levels["jobs.ingest.batch"]] = job.requests
    engine = ENGINES["tantivy"]
    corpus = open_corpus({"family": "generated"}, tmp_path)
    settling = len(list(engine.settle(corpus.schema, defaults(engine))))
    assert found == {1: 60 + settling, 25: 3 + settling}
