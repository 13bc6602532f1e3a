"""Load over every wire, at real servers: the same queries compiled for each, and raw requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from searchbench.lab.conduct.laboratory import Openings
from searchbench.lab.conduct.load import LoadRun, steps_of
from searchbench.lab.conduct.studied import studied
from searchbench.lab.system.systems import make_ready

from searchbench import _core
from searchbench.engines import ENGINES, defaults
from searchbench.lab.conduct.serve import serving
from searchbench.lab.conduct.studies import Silence
from searchbench.lab.get.install import missing
from searchbench.lab.system.address import Target, parse_target
from searchbench.lab.system.deploy import Deployment
from searchbench.record import Record
from searchbench.study import read_study
from searchbench.study.plan import make_plan
from searchbench.workload.loads import open_load
from searchbench.workload.verbatim.model import Ask, RequestSet, from_asks

STUDY = """
question = "?"
[corpus]
files = "documents.jsonl"
fields = {{ text = "text", year = "integer" }}
[queries]
file = "queries.txt"
match = "any"
[systems.{name}]
[load]
"""
SCHEMES = {
    "http": "http",
    "mysql": "mysql",
    "sphinxql": "sphinxql",
    "sphinx": "sphinx",
    "postgres": "postgres",
    "frames": "frames",
}
LOAD = {"clients": 2, "seconds": 0.3, "warmup_s": 0.0, "idle": "block"}


@contextmanager
def running(name: str, place: Path) -> Iterator[tuple[Deployment, Path]]:
    """An engine with six documents in it, and the study that asks about them."""
    engine = ENGINES[name]
    if lacking := missing(engine):
        pytest.skip(f"no {name} here: {lacking}")
    lines = [f'{{"id": "{n}", "text": "red fox {n}", "year": {n}}}' for n in range(6)]
    (place / "documents.jsonl").write_text("\n".join(lines))
    (place / "queries.txt").write_text("red\nfox 1\nnothing\nred\n")
    study = place / "study.toml"
    study.write_text(STUDY.format(name=name))
    corpus, _about = Openings(place, 1, Silence()).corpus(
        make_plan(read_study(study)).treatments[0].corpus
    )
    with serving(engine, defaults(engine), corpus, place / "server") as (deployment, _done):
        yield deployment, study


def target_of(deployment: Deployment) -> Target:
    """As a person would name it, credentials in the environment."""
    endpoint = deployment.endpoint
    user, password, database = endpoint.login or ("", "", "")
    told = {"USER": user, "PASSWORD": password, "DATABASE": database}
    environ = {f"SEARCHBENCH_IT_{part}": text for part, text in told.items()}
    url = f"{SCHEMES[endpoint.wire]}://127.0.0.1:{endpoint.target[1]}"
    return parse_target(f"it={url}", environ=environ)


def driven(place: Path, target: Target, requests: RequestSet, **ready: object) -> Record:
    system = make_ready(target, requests, **ready)  # type: ignore[arg-type]
    run = LoadRun([system], requests, place / "record", "?", "", {"kind": "load"}, Silence())
    run.carry_out(steps_of([system], [(LOAD, open_load(LOAD, Path()))], "clients"))
    (trial,) = run.record.trials
    assert trial["status"] == "ok", trial.get("reason")
    codes = set(run.record.samples(trial["trial"]).column("outcome").to_pylist())
    assert {_core.OUTCOMES[code] for code in codes} == {"ok"}
    return run.record


@pytest.mark.parametrize(
    "name", ["tantivy", "groonga", "sphinx", "sphinx-api", "mariadb", "postgresql", "opensearch"]
)
def test_queries_are_compiled_for_the_server_that_runs(name: str, tmp_path: Path) -> None:
    with running(name, tmp_path) as (deployment, study):
        source = studied(study, None, Silence())
        record = driven(
            tmp_path, target_of(deployment), source.requests,
            engine=source.engine, to_bytes=source.encode, whole=source.whole,
        )  # fmt: skip
    (trial,) = record.trials
    assert trial["engine"] == name
    assert trial["version"]
    assert trial["answers_under_load"]["compared"] > 0
    assert trial["answers_under_load"]["changed"] == 0
    captured = record.replies(trial["trial"]).to_pylist()
    totals = {row["query"]: row["total"] for row in captured if row["phase"] == "captured"}
    texts = {q["query"]: q["text"] for q in record.queries(trial["queries"]["digest"])}
    assert sorted(totals[n] for n in texts) == [0, 6, 6]


@pytest.mark.parametrize(
    ("name", "ask", "recognised"),
    [
        ("groonga", Ask("/d/select?table=Docs&limit=3"), "groonga"),
        ("mariadb", Ask("select 1"), "mariadb"),
        ("postgresql", Ask("select 1"), "postgresql"),
        ("sphinx", Ask("show status"), "sphinx"),
        (
            "opensearch",
            Ask("/_search", "POST", b'{"query": {"match_all": {}}}'),
            "opensearch",
        ),
    ],
)
def test_a_server_is_recognised_and_asked_in_its_users_own_words(
    name: str, ask: Ask, recognised: str, tmp_path: Path
) -> None:
    with running(name, tmp_path) as (deployment, _study):
        record = driven(tmp_path, target_of(deployment), from_asks("mine", [ask]))
    assert record.trials[0]["engine"] == recognised
    assert record.trials[0]["version"] not in ("", "not told")
