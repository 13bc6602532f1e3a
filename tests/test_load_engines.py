"""Load over every wire, at real servers: the same queries compiled for each, and raw requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from requesting import written
from searchbench import _core
from searchbench.analysis.judge import judge
from searchbench.engines import ENGINES, defaults
from searchbench.lab.conduct.openings import Openings
from searchbench.lab.conduct.serve import serving
from searchbench.lab.conduct.watch import Silence
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.measure.load import load
from searchbench.record import Record, Trial
from searchbench.study import read_study
from searchbench.study.planner import make_plan
from searchbench.workload.verbatim.model import Ask

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
LOAD: dict[str, Any] = {"clients": 2, "seconds": 0.3, "warmup": 0.0, "idle": "block"}


Running = Callable[[str], tuple[Deployment, Path]]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Engines by name; each is started when it is first wanted, and serves to the end."""
    with ExitStack() as stack:
        yield cache(lambda name: stack.enter_context(served(name, tmp_path_factory.mktemp(name))))


@contextmanager
def served(name: str, place: Path) -> Iterator[tuple[Deployment, Path]]:
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


def url_of(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> str:
    """As a person would name it, credentials in the environment."""
    endpoint = deployment.endpoint
    for part, text in zip(("USER", "PASSWORD", "DATABASE"), endpoint.login or (), strict=False):
        monkeypatch.setenv(f"SEARCHBENCH_IT_{part}", text)
    return f"{SCHEMES[endpoint.wire]}://127.0.0.1:{endpoint.target[1]}"


def only(record: Record) -> Trial:
    (trial,) = record.trials
    assert trial.status == "ok", trial.reason
    codes = set(record.samples(trial.trial).column("outcome").to_pylist())
    assert {_core.OUTCOMES[code] for code in codes} == {"ok"}
    return trial


@pytest.mark.parametrize(
    "name", ["tantivy", "groonga", "sphinx", "sphinx-api", "mariadb", "postgresql", "opensearch"]
)
def test_queries_are_compiled_for_the_server_that_runs(
    running: Running, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment, study = running(name)
    url = url_of(deployment, monkeypatch)
    record = load(f"it={url}", study=study, record=tmp_path / "record", **LOAD)
    trial = only(record)
    assert trial.engine == name
    assert trial.version
    assert trial.answers_under_load.compared > 0
    assert trial.answers_under_load.changed == 0
    captured = record.replies(trial.trial).to_pylist()
    totals = {row["query"]: row["total"] for row in captured if row["phase"] == "captured"}
    texts = {q["query"]: q["text"] for q in record.queries(trial.queries.digest)}
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
    running: Running,
    name: str,
    ask: Ask,
    recognised: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deployment, _study = running(name)
    url = url_of(deployment, monkeypatch)
    requests = written(tmp_path / "mine", [ask])
    record = load(f"it={url}", requests=requests, record=tmp_path / "record", **LOAD)
    assert only(record).engine == recognised
    assert record.trials[0].version not in ("", "not told")


@pytest.mark.parametrize(
    ("name", "ask", "words"),
    [
        ("groonga", Ask("/d/select?table=Nowhere"), "Nowhere"),
        ("mariadb", Ask("select nowhere"), "Unknown column 'nowhere'"),
        ("postgresql", Ask("select nowhere"), 'column "nowhere" does not exist'),
        ("sphinx", Ask("select * from nowhere"), "unknown local index 'nowhere'"),
        ("opensearch", Ask("/nowhere/_search"), "no such index [nowhere]"),
    ],
)
def test_a_refusal_is_on_record_and_in_the_answer_in_the_servers_own_words(
    running: Running,
    name: str,
    ask: Ask,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = url_of(running(name)[0], monkeypatch)
    requests = written(tmp_path / "mine", [ask])
    record = load(f"it={url}", requests=requests, record=tmp_path / "record", **LOAD)
    (said,) = record.trials[0].said.values()
    assert words in said
    assert "\n" not in said
    (finding,) = [f for f in judge(record).findings if f.kind == "no answers"]
    assert finding.meaning.endswith(f"The server said: {said}")
