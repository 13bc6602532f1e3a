"""A log of production as load: written as queries or requests, and replayed as it was asked."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from replaying import about, written
from searchbench.analysis.logs.against import against
from searchbench.cli import app
from searchbench.engines import ENGINES
from searchbench.engines.groonga import service as of_groonga
from searchbench.engines.sphinx import conf as of_sphinx
from searchbench.errors import QueryError, SearchbenchError
from searchbench.lab.get.install import missing
from searchbench.logs.counts import Options
from searchbench.logs.entries import read_entries
from searchbench.logs.searches import Searches, searches_of
from searchbench.logs.sources import find
from searchbench.measure.run import run
from searchbench.record import Record
from searchbench.study import parse_study
from searchbench.workload.queries.algebra import Boolean, Mode, Terms
from searchbench.workload.queries.registry import open_queries
from searchbench.workload.queries.sphinx_syntax import read as syntax
from searchbench.workload.verbatim.files import read_requests

LOGS = Path(__file__).parent / "logs"
WORDS = ("red fox", "blue dog", "red dog", "green fox jumps")


def searches(*names: str | Path, **how: Any) -> Searches:
    return searches_of(read_entries(find([LOGS / name for name in names]), Options(**how)))


# ── a log that a real server writes while a study runs ───────────────────────────────────────


def study(place: Path, system: dict[str, Any], asked: dict[str, Any], **load: Any) -> Record:
    """A study over twenty documents, run."""
    place.mkdir(exist_ok=True)
    lines = [json.dumps({"id": str(n), "text": WORDS[n % 4], "n": n}) for n in range(20)]
    (place / "documents.jsonl").write_text("\n".join(lines))
    tables = {
        "question": "?",
        "replicates": 1,
        "agreement": {"captures": 0},
        "control": {"aa": False},
        "corpus": {"files": "documents.jsonl", "fields": {"text": "text", "n": "integer"}},
        "systems": {"it": system},
        "load": {"kind": "replay", "connections": 8, "timeout_s": 5.0, **load},
        **asked,
    }
    return run(parse_study(tomli_w.dumps(tables), "s.toml", place), place / "record")


def replayed(record: Record, key: str = "terms") -> list[tuple[int, Any]]:
    """(due in whole ms since the first, what was asked), in order."""
    (trial,) = record.trials
    assert trial.status == "ok", trial.reason
    samples = record.samples(trial.trial, ["due", "query"]).to_pydict()
    lines = {line["query"]: line for line in record.queries(trial.queries.digest)}

    def of(query: int) -> Any:
        line = lines[query]
        return line["text"] if key == "text" else tuple(line["algebra"]["match"]["terms"])

    asked = [(round(due / 1e6), of(q)) for due, q in zip(*samples.values(), strict=True)]
    return sorted(asked)


SPHINX_LINE = re.compile(
    r"\[(?P<at>\w{3} \w{3} +\d+ [\d:.]+ \d{4})\] (?P<real>[\d.]+) sec (?P<wall>[\d.]+) sec"
    r"(?: x\d+)? \[[^\]]*\] \[(?P<index>[^\]]*)\](?P<text>.*)"
)


def test_a_log_of_sphinx_is_replayed_as_it_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if lacking := missing(ENGINES["sphinx"]):
        pytest.skip(f"no Sphinx here: {lacking}")
    log = tmp_path / "query.log"
    plain = of_sphinx._searchd

    def logging(*given: Any) -> str:
        return plain(*given).replace("client_timeout", f"query_log = {log}\n  client_timeout")

    monkeypatch.setattr(of_sphinx, "_searchd", logging)
    rng = np.random.default_rng(4)
    at = np.round(np.cumsum(rng.exponential(0.03, 60)), 3)
    lines = [
        json.dumps({"text": WORDS[n % 4], "match": ("any", "all")[n % 2], "t": float(t)})
        for n, t in enumerate(at)
    ]
    tmp_path.joinpath("first").mkdir()
    (tmp_path / "first" / "asked.jsonl").write_text("\n".join(lines))
    first = study(tmp_path / "first", {"engine": "sphinx"}, {"queries": {"file": "asked.jsonl"}})
    assert len(replayed(first)) == 60
    monkeypatch.setattr(of_sphinx, "_searchd", plain)

    # What the log says, read by this test alone. A search without words is none of a user's.
    truth = []
    for line in log.read_text().splitlines():
        found = SPHINX_LINE.match(line)
        assert found, line
        ended = datetime.strptime(found["at"], "%a %b %d %H:%M:%S.%f %Y")
        took = max(float(found["real"]), float(found["wall"]))
        if words := re.findall(r"[a-z]+", re.sub(r"@\(?[\w,]+\)?", "", found["text"])):
            truth.append((round((ended.timestamp() - took) * 1000), tuple(words)))
    truth.sort()
    assert Counter(words for _, words in truth)[("red", "fox")] >= 15

    again = tmp_path / "again"
    again.mkdir()
    capsys.readouterr()
    file = written(log, again / "asked.jsonl", "--field", "f_text=text")
    told = " ".join(capsys.readouterr().out.split())
    assert "the log has no searches that failed" in told
    assert [line["class"].split("/")[0] for line in file] == ["ext2"] * len(file)
    assert about(again / "asked.jsonl")["study"].startswith('[queries]\nfile = "asked.jsonl"')
    second = study(again, {"engine": "sphinx"}, {"queries": {"file": "asked.jsonl"}})
    begin = truth[0][0]
    assert replayed(second) == [(at - begin, words) for at, words in truth]


@pytest.fixture(scope="module")
def of_a_study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Record]:
    """The query log that Groonga wrote while a study asked it, and the record of that study."""
    if lacking := missing(ENGINES["groonga"]):
        pytest.skip(f"no Groonga here: {lacking}")
    place = tmp_path_factory.mktemp("groonga")
    log, plain = place / "query.log", of_groonga._groonga

    def logging(*given: str) -> tuple[str, ...]:
        *argv, db = plain(*given)
        return (*argv, "--query-log-path", str(log), db)

    lines = [json.dumps({"text": WORDS[n % 4], "t": n * 0.02}) for n in range(50)]
    (place / "asked.jsonl").write_text("\n".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(of_groonga, "_groonga", logging)
        record = study(place, {"engine": "groonga"}, {"queries": {"file": "asked.jsonl"}})
    return log, record


def test_a_log_of_groonga_is_replayed_as_it_was_asked(
    of_a_study: tuple[Path, Record], tmp_path: Path
) -> None:
    log, _ = of_a_study
    out = tmp_path / "asked.jsonl"
    file = written(log, out)
    assert about(out)["kind"] == "paths"

    # Starts of requests that search, as this test reads them.
    truth = [
        (datetime.fromisoformat(line[:26]).timestamp(), line.split(">", 1)[1])
        for line in log.read_text().splitlines()
        if "|>/d/select" in line
    ]
    assert len(truth) >= 50
    assert [line["path"] for line in file] == [path for _, path in truth]
    assert [line["t"] for line in file] == pytest.approx(
        [at - truth[0][0] + file[0]["t"] for at, _ in truth], abs=2e-6
    )
    requests = read_requests(out)
    assert requests.times_s is not None
    assert requests.times_s == pytest.approx([at - truth[0][0] for at, _ in truth], abs=2e-6)
    assert [requests.asks[n].text for n in requests.log] == [path for _, path in truth]


@pytest.mark.timed
def test_a_client_sees_the_servers_own_time_and_the_way_to_it(
    of_a_study: tuple[Path, Record],
) -> None:
    log, record = of_a_study
    (beside,) = against(searches(log), record)
    (median, *_) = beside.lines
    assert median.n[1] == 50
    assert median.lab_s > median.log_s > 0
    assert median.answer != "faster"


# ── formats: what they hold, and what is said that they do not ───────────────────────────────


@pytest.mark.parametrize("path", sorted(LOGS.glob("*.*")), ids=lambda path: path.name)
def test_what_is_written_of_a_real_log_can_be_read_as_load(path: Path, tmp_path: Path) -> None:
    if path.name == "truth.json":
        return
    out = tmp_path / "out.jsonl"
    options = ["--line", '{time} {_} "{request}" {status} {_} {_} {duration:ms} {_}'] if (
        path.name == "apache-custom.log") else []  # fmt: skip
    file = written(path, out, *options)
    told = about(out)
    assert told["searches"] == len(file) > 0
    if told["kind"] == "words":
        read: Any = open_queries({"file": out.name}, tmp_path)
        assert read.bad_count == 0
    else:
        read = read_requests(out)
    # The same words in two classes are two queries.
    asked = {
        json.dumps([line.get(key) for key in line if key not in ("t", "index")]) for line in file
    }
    assert (read.logged, read.distinct) == (len(file), len(asked))
    assert len({line.get("class") for line in file}) > 1 or len(asked) == told["distinct"]
    assert all(isinstance(line["class"], str) for line in file)
    timed = read.times_s
    assert (timed is None) == ("t" not in file[0])
    assert timed is None or bool(np.all(np.diff(timed) >= 0))


def test_what_sphinx_does_not_log_is_counted_and_said(tmp_path: Path) -> None:
    head = "[Fri Nov 20 20:39:57.{:03} 2026] 0.003 sec 0.003 sec [{}] [docs] {}\n"
    given = [
        ("ext2/2/rel 9 (20,10)", "red lamp"),
        ("ext2/0/rel 9 (0,20) @kind", "blue"),
        ("ext2/0/rel 9 (0,20)", "@title red -blue"),
        ("ext2/0/rel 9 (0,20)", '"red lamp"~5'),
        ("scan/0/rel 9 (0,20)", ""),
        ("any/0/rel 9 (0,20)", "Red  Lamp"),
        ("all/0/rel 9 (0,20)", "red lamp"),
        ("all/0/rel 9 (0,20)", "RED lamp"),
    ]
    log = tmp_path / "query.log"
    log.write_text("".join(head.format(n * 10, how, text) for n, (how, text) in enumerate(given)))
    out = tmp_path / "out.jsonl"
    file = written(log, out)
    told = about(out)
    assert told["faithful"] is False
    assert {
        key: n for key, n in told["missing"].items() if "filters" in key or "grouped" in key
    } == {
        "had filters, of which the log has only the number": 1,
        "were grouped by an attribute, and are asked without": 1,
    }
    assert sum(told["left_out"].values()) == 2
    assert told["sentence"].startswith(
        "6 of the log's 8 searches can be asked again, but not exactly"
    )
    for part in ("1 had filters", "1 is left out (no words",
                 "the log has no searches that failed"):  # fmt: skip
        assert part in told["sentence"]
    assert (file[0]["offset"], file[0]["limit"]) == (20, 10)
    assert file[2]["match"]["must_not"] == [
        {"mode": "all", "terms": ["blue"], "fields": ["title"], "distance": 1}
    ]
    assert file[3]["match"] == "any"
    assert {line["index"] for line in file} == {"docs"}
    # The last two are the same to a study, though not to the log.
    assert told["distinct"] == 5
    assert open_queries({"file": out.name}, tmp_path).distinct == 5


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("red lamp", Terms(Mode.ALL, ("red", "lamp"))),
        ("red | blue", Terms(Mode.ANY, ("red", "blue"))),
        ('"red lamp"', Terms(Mode.PHRASE, ("red", "lamp"))),
        ("lam*", Terms(Mode.PREFIX, ("lam",))),
        ("a b | c", Boolean((Terms(Mode.ALL, ("a",)), Terms(Mode.ANY, ("b", "c"))))),
        ("(a b) | c", Boolean(should=(Terms(Mode.ALL, ("a", "b")), Terms(Mode.ALL, ("c",))))),
        ("a !(b | c)", Boolean((Terms(Mode.ALL, ("a",)),), (), (Terms(Mode.ANY, ("b", "c")),))),
        ("@title a @* b", Boolean((Terms(Mode.ALL, ("a",), ("title",)), Terms(Mode.ALL, ("b",))))),
        ("@(title,body) a", Terms(Mode.ALL, ("a",), ("title", "body"))),
        ("wi-fi o'neil", Terms(Mode.ALL, ("wi", "fi", "o", "neil"))),
        (r"red \(shoe\)", Terms(Mode.ALL, ("red", "shoe"))),
    ],
)
def test_sphinxs_syntax_is_read_as_the_algebra(text: str, meant: object) -> None:
    assert syntax(text) == meant


@pytest.mark.parametrize(
    "text", ['"a b"~5', '"a b"/2', "a << b", "^a", "=a", "a NEAR/3 b", "-a", "(a", "a)", "@!t a",
             "@title[5] a", "*ab*", "a^1.5", "()", "a |"],
)  # fmt: skip
def test_what_the_algebra_has_no_word_for_is_not_guessed_at(text: str) -> None:
    assert syntax(text) is None


def test_whole_seconds_are_spread_over_the_second(tmp_path: Path) -> None:
    lines = [
        f'1.2.3.4 - - [22/Nov/2026:11:03:{s:02} +0900] "GET /search?q=w{n} HTTP/1.1" 200 10\n'
        for s in range(3) for n in range(4)
    ]  # fmt: skip
    lines.insert(5, '1.2.3.4 - - [22/Nov/2026:11:03:01 +0900] "POST /search?q=x HTTP/1.1" 200 10\n')
    (tmp_path / "access.log").write_text("".join(lines))
    file = written(tmp_path / "access.log", tmp_path / "out.jsonl")
    assert [line["t"] - file[0]["t"] for line in file] == [n / 4 for n in range(12)]
    told = about(tmp_path / "out.jsonl")
    assert told["step_s"] == 1
    assert "whole seconds" in told["sentence"]
    assert told["left_out"] == {"a POST: its body is not in the log": 1}


def test_words_and_requests_are_not_mixed_and_options_must_fit(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="write a file for each"):
        searches("sphinx-query-plain.log", "nginx-combined.log")
    log = str(LOGS / "sphinx-query-plain.log")
    for argv, said in (
        (["--cut", "auto"], "--queries OUT.jsonl"),
        (["--queries", "a.txt"], "name it a.jsonl"),
        (["--queries", "a.jsonl", "--key", "k"], "--key is for --anonymise"),
        (["--queries", "a.jsonl", "--cut", "soon"], "write auto, a number"),
        (["--queries", "a.jsonl", "--record", "r"], "leave out --record"),
        (["--queries", "a.jsonl", "--against", "r"], "one at a time"),
    ):
        with pytest.raises(SearchbenchError, match=re.escape(said)):
            app(["logs", log, *argv])
