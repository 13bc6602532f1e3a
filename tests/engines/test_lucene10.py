"""Lucene 10 is Lucene 9's host on a newer JDK: the same answers, and the JDK's own instructions."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import QUICK_START

from engines.test_conformance import SCHEMA, Shelf, ask, drawn
from searchbench.corpora.corpus import Document
from searchbench.engines import ENGINES, defaults, jvm_form
from searchbench.engines.answer import Hits
from searchbench.engines.engine import Engine
from searchbench.errors import LabError
from searchbench.lab.conduct.serve import serving
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.system.names import jvm_hosts
from searchbench.workload.queries.algebra import Facet, Mode, Query, Range, Sort, Terms

LUCENE, LUCENE10 = ENGINES["lucene"], ENGINES["lucene10"]


@pytest.fixture(scope="module", autouse=True)
def _here() -> None:
    if lacking := missing(LUCENE10) or missing(LUCENE):
        pytest.skip(f"no Lucene 9 and 10 here: {lacking}")


def queries() -> list[Query]:

    rng = random.Random(10)
    found = [Query(drawn(rng, mode), limit=100) for mode in Mode for _ in range(20)]
    found += [
        Query(
            drawn(rng, Mode.ANY), sort=(Sort(name, True),), facets=(Facet("tags"),), group_by=name
        )
        for name in ("size", "section", "free")
    ]
    return found


@pytest.mark.parametrize(
    "levers",
    [
        {},
        {"parts": 3, "searcher": "per-thread", "gc": "g1"},
        {"directory": "ram", "segments": "as-is", "gc": "parallel", "heap_mb": 128},
        {"directory": "nio", "refresh_ms": 20, "indexing_memory_mb": 16},
    ],
    ids=str,
)
def test_both_versions_answer_alike_under_every_lever(
    tmp_path: Path, levers: dict[str, str | int]
) -> None:
    answers: dict[str, list[Hits]] = {}
    jdks = set()
    for engine in (LUCENE, LUCENE10):
        params = {**defaults(engine), **levers}
        with serving(engine, params, Shelf(), tmp_path / engine.name) as (running, _done):
            facts = engine.facts(running.ask(engine.facts_request()))
            assert {**facts.parameters, "jdk": "newest"} == params
            jdks.add(facts.extra["java"])
            asked = [engine.compile(query, SCHEMA, params) for query in queries()]
            answers[facts.version.split(".")[0]] = [engine.decode(running.ask(r)) for r in asked]
    assert list(answers) == ["9", "10"]
    assert len(jdks) == 1, "a difference of versions is none of JDKs"
    assert len({hits.total for hits in answers["9"]}) > 20
    for nine, ten in zip(answers["9"], answers["10"], strict=True):
        assert ten.error is None
        assert (nine.total, nine.facets, nine.groups) == (ten.total, ten.facets, ten.groups)
        assert [h.id for h in nine.hits] == [h.id for h in ten.hits]
        assert [h.score for h in nine.hits] == pytest.approx([h.score for h in ten.hits])


class LongShelf(Shelf):
    """Enough documents of one word in differing numbers that whole blocks can be skipped."""

    def documents(self) -> Iterator[Document]:
        rng = random.Random(3)
        for number in range(4000):
            body = " ".join(["fox"] * rng.randint(1, 9) + ["way"] * rng.randint(0, 60))
            yield Document(str(number), {"body": body, "size": rng.randint(0, 999)})


@pytest.mark.parametrize("engine", [LUCENE, LUCENE10], ids=["9", "10"])
@pytest.mark.parametrize("parts", [1, 3])
def test_what_is_skipped_once_the_total_is_known_changes_no_answer(
    tmp_path: Path, engine: Engine, parts: int
) -> None:
    params = {**defaults(engine), "parts": parts}
    some = {"limit": 7, "offset": 5}
    ranges = (Range("size", 100, 300),)
    with serving(engine, params, LongShelf(), tmp_path) as (running, _done):
        for sort in ((), (Sort("size", True),), (Sort("size"), Sort("_score", True))):
            # Of the union with a word that no document has, Lucene does not know the count.
            known, counted = (
                ask(running, Query(Terms(Mode.ANY, words, ("body",)), sort=sort, **some))
                for words in (("fox",), ("fox", "nowhere"))
            )
            assert known == counted
            assert (known.total, len(known.hits)) == (4000, 7)
        # Every document, and those that pass a filter: the first in the order of ingest.
        assert ask(running, Query(None, **some)).total == 4000
        filtered = ask(running, Query(None, ranges, **some))
        counted = ask(running, Query(None, ranges, facets=(Facet("size", 1),), **some))
        assert (filtered.total, filtered.hits) == (counted.total, counted.hits)
        assert 600 < (filtered.total or 0) < 1000


def test_it_runs_on_a_jdk_of_its_own_with_its_vector_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without C2 Lucene has no use for them.
    with_c2 = tuple(word for word in jvm_form.PLAIN if not word.endswith(QUICK_START[-1]))
    monkeypatch.setattr(jvm_form, "PLAIN", with_c2)
    with serving(LUCENE10, defaults(LUCENE10), Shelf(), tmp_path) as (running, _done):
        java = str(running.facts.extra["java"])
        assert int(java.rsplit(" ", 1)[1].split(".")[0].split("+")[0]) >= 21
        assert "--add-modules=jdk.incubator.vector" in running.facts.extra["jvm_arguments"]
        log = (running.run / "server.log").read_text()
    assert "Java vector incubator API enabled" in log


def test_lucene_9_runs_on_the_jdk_that_is_asked_for_and_on_no_other(tmp_path: Path) -> None:
    running = Deployment(
        LUCENE, {**defaults(LUCENE), "jdk": "99"}, tmp_path / "data", tmp_path / "run"
    )
    with pytest.raises(LabError, match=r"there is no JDK 99 .* set SEARCHBENCH_JDK"), running:
        pass
    script = f"{jvm_hosts()}/with-jdk"
    here = [
        int(match[1])
        for file in Path("/usr/lib/jvm").glob("*/release")
        if (match := re.search(r'^JAVA_VERSION="(\d+)', file.read_text(), re.MULTILINE))
    ]
    for wanted in {"newest": max(here), **{str(v): v for v in here if v >= 17}}.items():
        argv = ["sh", script, "17", wanted[0], "sh", "-c", "cat $JAVA_HOME/release"]
        told = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        assert f'JAVA_VERSION="{wanted[1]}' in told


def test_without_a_newer_jdk_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (jvm_hosts() / "with-jdk").read_text()
    hosts = tmp_path / "hosts"
    (hosts / "lucene/target10").mkdir(parents=True)
    (hosts / "lucene/target10/lucene-host.jar").touch()
    # A JDK of the wrong version is passed over, wherever it is named.
    old = tmp_path / "jdk"
    old.mkdir()
    (old / "release").write_text('JAVA_VERSION="17.0.15"\n')
    (hosts / "with-jdk").write_text(script.replace("/usr/lib/jvm/*", str(old)))
    monkeypatch.setenv("SEARCHBENCH_JAVA_HOSTS", str(hosts))
    monkeypatch.setenv("SEARCHBENCH_JDK", str(old))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    running = Deployment(LUCENE10, defaults(LUCENE10), tmp_path / "data", tmp_path / "run")
    with pytest.raises(LabError, match="there is no JDK 21 or later: set SEARCHBENCH_JDK"), running:
        pass


def test_a_host_that_was_not_built_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SEARCHBENCH_JAVA_HOSTS", str(tmp_path))
    assert "`make java` builds it where there is a JDK 21" in str(missing(LUCENE10))
