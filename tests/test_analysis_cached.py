"""Answers from a cache of the server: remarked where nobody asked for it, and never compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from records import Study, exponential, lognormal
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Finding, Judgement
from searchbench.record import open_record
from searchbench.report.document import assemble
from searchbench.report.page import page
from searchbench.terminal.answer import warnings

KIND = "answers from a cache"


def counted(share: float, requests: int, **more: Any) -> dict[str, Any]:
    """What is on record of a cache that answered so many of the requests."""
    hits = {"hits": round(share * requests), "lookups": requests, "source": "Groonga's status"}
    return {"cache": {"cache_entries": 100, "counted": hits | more}}


def study(*shares: float | None, path: Path, blocks: int = 3, **more: Any) -> Path:
    """A record of systems a, b, ..., b twice as slow as a; of each what its cache answered."""
    made = Study(blocks=blocks)
    for i, share in enumerate(shares):
        made.add("ab"[i], system=("groonga", "mariadb")[i], engine=("groonga", "mariadb")[i],
                 server=lognormal(0.004 * (i + 1), 0.05), **more)  # fmt: skip
        if share is not None:
            made.treatments[i].extra = counted(share, requests_of(made, path, i))
    return made.write(path / "record")


def requests_of(made: Study, path: Path, i: int) -> int:
    """How many requests a trial of the i-th treatment has."""
    record = open_record(made.write(path / f"before{i}"))
    of = made.treatments[i].id
    return min(record.samples(t.trial).num_rows for t in record.trials if t.treatment == of)


def of_kind(found: Judgement) -> list[Finding]:
    return [f for f in found.findings if f.kind == KIND]


def test_it_stands_in_the_verdict_beside_it_and_on_the_page(tmp_path: Path) -> None:
    record = open_record(study(0.999, path=tmp_path))
    found = judge(record)
    (finding,) = of_kind(found)
    assert finding.severity == "warning"
    assert "99.9 %" in finding.number
    assert "the cache's speed, not the search's" in finding.meaning
    assert "`cache_limit` 0" in finding.remedy
    assert "than it holds (100)" in finding.remedy
    assert "of the answers of groonga came from its cache" in found.verdict.decision
    assert any(KIND in line for line in warnings(found))
    shown = page(assemble.document(record, found))
    assert "Cache hits" in shown
    assert "came from its cache" in shown


@pytest.mark.parametrize("share", [None, 0.0, 0.04])
def test_a_cache_that_answers_little_or_is_not_known_is_not_accused(
    tmp_path: Path, share: float | None
) -> None:
    found = judge(open_record(study(share, path=tmp_path)))
    assert not of_kind(found)
    assert "cache" not in found.verdict.decision


def test_a_share_below_half_is_a_mixture(tmp_path: Path) -> None:
    (finding,) = of_kind(judge(open_record(study(0.3, path=tmp_path))))
    assert "mix the cache's speed with the search's" in finding.meaning


@pytest.mark.parametrize(
    ("of_a", "of_b", "verdict"),
    [
        (0.999, 0.0, "not resolved"),
        (0.999, None, "not resolved"),
        (0.999, 0.97, "not resolved"),  # 30 times as many are computed
        (0.3, 0.5, "not resolved"),
        (0.999, 0.999, "slower"),
        (0.3, 0.3, "slower"),
        (0.0, None, "slower"),
        (None, None, "slower"),
    ],
)
def test_who_is_answered_by_a_cache_is_not_compared_with_who_is_not(
    tmp_path: Path, of_a: float | None, of_b: float | None, verdict: str
) -> None:
    found = judge(open_record(study(of_a, of_b, path=tmp_path)))
    (c,) = (c for c in found.comparisons if c.metric == "throughput")
    assert (c.verdict, c.state == "other caches") == (verdict, verdict == "not resolved")
    if verdict == "not resolved":
        assert "came from a cache" in c.reason
        assert "came from a cache" in found.verdict.decision
        assert found.verdict.best is None
        assert c.would_change[0].startswith("No caching of answers")


@pytest.mark.parametrize(
    "asked",
    [
        {"parameters": {"cache_limit": 100}},
        {"parameters": {"request_cache": True}},
        {"levels": {"system": "droonga", "droonga.cache": True}},
    ],
)
def test_a_cache_that_the_study_turns_on_is_a_fact_and_no_accusation(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    made = Study(blocks=3)
    made.add("on", system="groonga", server=lognormal(0.002, 0.05), **asked)
    made.add("off", system="off", server=lognormal(0.004, 0.05), parameters={"cache_limit": 0})
    for i, share in enumerate((0.9, 0.0)):
        made.treatments[i].extra = counted(share, requests_of(made, tmp_path, i))
    found = judge(open_record(made.write(tmp_path / "record")))
    assert {f.severity for f in of_kind(found)} == {"note"}
    assert "the study turns it on" in of_kind(found)[0].meaning
    assert "cache" not in found.verdict.decision
    (c,) = (c for c in found.comparisons if c.metric == "throughput")
    assert (c.verdict, c.state) == ("slower", "steady")


def test_a_share_that_was_wanted_is_judged_by_itself(tmp_path: Path) -> None:
    made = Study(blocks=2)
    made.add("a", server=exponential(0.004))
    extra = counted(0.5, 1000)
    extra["cache"] |= {"wanted_hit": 0.5, "distribution": "uniform", "distinct": 200,
                       "policy": "lru"}  # fmt: skip
    made.treatments[0].extra = extra
    found = judge(open_record(made.write(tmp_path / "record")))
    assert not of_kind(found)
    assert "cache" not in found.verdict.decision


def test_hits_that_may_be_those_of_others_are_not_counted(tmp_path: Path) -> None:
    made = Study(blocks=2)
    made.add("a", system="groonga", engine="groonga", server=lognormal(0.004, 0.05))
    n = requests_of(made, tmp_path, 0)
    busy = {"hits": 3 * n, "lookups": 4 * n, "source": "Groonga's status"}
    made.treatments[0].extra = {"cache": {"counted": busy}}
    assert not of_kind(judge(open_record(made.write(tmp_path / "busy"))))
    # Of shards each search is several lookups, and one that may not be cached is none.
    shards = {"hits": n, "lookups": n, "asked": 50 * n, "single": False}
    made.treatments[0].extra = {"cache": {"counted": shards}}
    assert not of_kind(judge(open_record(made.write(tmp_path / "rare"))))
    made.treatments[0].extra = {"cache": {"counted": shards | {"asked": 2 * n, "hits": n}}}
    (finding,) = of_kind(judge(open_record(made.write(tmp_path / "shards"))))
    assert finding.number.startswith("50 % (")
    assert "searches of shards" in finding.number
    # Filters are parts of answers.
    made.treatments[0].extra = {"cache": {"counted": shards | {"whole": False}}}
    assert not of_kind(judge(open_record(made.write(tmp_path / "filters"))))


@pytest.mark.parametrize(("after", "verdict"), [(0.0, "not resolved"), (0.999, "differs")])
def test_two_records_of_which_a_cache_answered_one_are_not_told_apart(
    tmp_path: Path, after: float, verdict: str
) -> None:
    sides = []
    for name, times, share in (("a", 1.0, 0.999), ("b", 2.0, after)):
        made = Study(blocks=3)
        made.add("t", system="groonga", engine="groonga", server=lognormal(0.004 * times, 0.05))
        made.treatments[0].extra = counted(share, requests_of(made, tmp_path / name, 0))
        sides.append(open_record(made.write(tmp_path / name / "record")))
    found = compare_records(*sides, 0.05)
    (line,) = (one for one in found.comparisons if one.metric == "throughput")
    assert line.verdict == verdict
    assert ("came from a cache" in line.reason) is (verdict == "not resolved")


def test_the_steps_of_a_sweep_and_their_comparisons_say_it_too(tmp_path: Path) -> None:
    made = Study(blocks=1, control=None, judging={"measure": "sweep"})
    for i, system in enumerate(("groonga", "mariadb")):
        for clients in (1, 2):
            made.add(f"{system}{clients}", system=system, engine=system, clients=clients,
                     levels={"system": system, "load.clients": clients},
                     server=lognormal(0.004 * (i + 1), 0.05))  # fmt: skip
    for i in (0, 1):
        made.treatments[i].extra = counted(0.999, requests_of(made, tmp_path, i))
    found = judge(open_record(made.write(tmp_path / "record")))
    assert {f.severity for f in of_kind(found)} == {"warning"}
    assert "of the answers of groonga came from its cache" in found.verdict.decision
    assert "of the answers of mariadb came from its cache" not in found.verdict.decision
    assert {c.verdict for c in found.comparisons} == {"not resolved"}
    assert {c.state for c in found.comparisons} == {"other caches"}
    assert found.verdict.best is None
