"""A log of production as load: written as queries or requests, cut, anonymised, replayed."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, OrderedDict
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

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
from searchbench.workload.queries.analysis import terms
from searchbench.workload.queries.registry import open_queries
from searchbench.workload.queries.sphinx_syntax import read as syntax
from searchbench.workload.verbatim.files import read_requests

LOGS = Path(__file__).parent / "logs"
WORDS = ("red fox", "blue dog", "red dog", "green fox jumps")


def searches(*names: str | Path, **how: Any) -> Searches:
    return searches_of(read_entries(find([LOGS / name for name in names]), Options(**how)))


def written(log: Path, out: Path, *options: str) -> list[dict[str, Any]]:
    """The lines of the file that a call writes."""
    assert app(["logs", str(log), "--queries", str(out), *options]) == 0
    return [json.loads(line) for line in out.read_text().splitlines()]


def about(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(out.with_name(out.name + ".about.json").read_text())
    return found


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
    r"(?: x\d+)? \[[^\]]*\] \[(?P<index>[^\]]*)\] (?P<text>.*)"
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
    file = written(log, again / "asked.jsonl")
    told = capsys.readouterr().out
    assert "the log has no searches that failed" in told
    assert [line["class"].split("/")[0] for line in file] == ["ext2"] * len(file)
    assert about(again / "asked.jsonl")["study"].startswith('[queries]\nfile = "asked.jsonl"')
    second = study(again, {"engine": "sphinx"}, {"queries": {"file": "asked.jsonl"}})
    begin = truth[0][0]
    assert replayed(second) == [(at - begin, words) for at, words in truth]


def test_a_log_of_groonga_is_replayed_as_it_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacking := missing(ENGINES["groonga"]):
        pytest.skip(f"no Groonga here: {lacking}")
    log = tmp_path / "query.log"
    plain = of_groonga._groonga

    def logging(*given: str) -> tuple[str, ...]:
        *argv, db = plain(*given)
        return (*argv, "--query-log-path", str(log), db)

    monkeypatch.setattr(of_groonga, "_groonga", logging)
    place = tmp_path / "first"
    place.mkdir()
    lines = [json.dumps({"text": WORDS[n % 4], "t": n * 0.02}) for n in range(50)]
    (place / "asked.jsonl").write_text("\n".join(lines))
    study(place, {"engine": "groonga"}, {"queries": {"file": "asked.jsonl"}})
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


# ── formats: what they hold, and what is said that they do not ───────────────────────────────


@pytest.mark.parametrize("path", sorted(LOGS.glob("*.*")), ids=lambda path: path.name)
def test_what_is_written_of_a_real_log_can_be_read_as_load(path: Path, tmp_path: Path) -> None:
    if path.name == "truth.json":
        return
    out = tmp_path / "out.jsonl"
    options = ["--line", '{_} {_} {_} [{time}] "{request}" {status} {_} {duration:us}'] if (
        path.name == "apache-custom.log") else []  # fmt: skip
    file = written(path, out, *options)
    told = about(out)
    assert told["searches"] == len(file) > 0
    if told["kind"] == "words":
        read: Any = open_queries({"file": out.name}, tmp_path)
        assert read.bad_count == 0
    else:
        read = read_requests(out)
    assert (read.logged, read.distinct) == (len(file), told["distinct"])
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
    assert {key: n for key, n in told["missing"].items() if "filters" in key or "grouped" in key} == {
        "had filters, of which the log has only the number": 1,
        "were grouped by an attribute, and are asked without": 1,
    }
    assert sum(told["left_out"].values()) == 2
    assert told["sentence"].startswith("6 of the log's 8 searches can be asked again, not quite")
    for part in ("1 had filters", "1 are left out (no words",
                 "the log has no searches that failed"):  # fmt: skip
        assert part in told["sentence"]
    assert [(line.get("offset", 0), line["limit"]) for line in file][0] == (20, 10)
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


# ── a cut that stands for the whole ──────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hours at about ten searches a second, with 3,000 distinct queries."""
    log = tmp_path_factory.mktemp("generated") / "query.log"
    argv = ["--lines", "60000", "--distinct", "3000", "--rate", "20", "--start", "2008-07-01"]
    assert app(["logs", "generate", str(log), *argv]) == 0
    return log


PLAIN = re.compile(
    r"\[(?P<at>\w{3} \w{3} +\d+ [\d:.]+ \d{4})\] (?P<took>[\d.]+) sec \[(?P<how>\S+) .*?\] "
    r"\[\w+\] (?P<text>.*)"
)


def plain_log(log: Path) -> list[tuple[float, float, str]]:
    """(began, took, words) of each line, in order of the beginning, as this test reads it."""
    found = []
    for line in log.read_text().splitlines():
        m = PLAIN.match(line)
        assert m
        at = datetime.strptime(m["at"], "%a %b %d %H:%M:%S.%f %Y")
        took = float(m["took"])
        found.append((round((at - datetime(2008, 7, 1)).total_seconds() - took, 3), took, m["text"]))
    return sorted(found, key=lambda one: one[0])


def saved(asked: list[str], size: int, measured: int) -> float:
    """What a cache saves of the last ``measured``, played from the first on."""
    held: OrderedDict[str, None] = OrderedDict()
    hits = []
    for text in asked:
        hits.append(text in held)
        held[text] = None
        held.move_to_end(text)
        if len(held) > size:
            held.popitem(last=False)
    return sum(hits[-measured:]) / measured


def dispersion(at: list[float], begin: float, seconds: float, scale: int) -> float:
    """Variance over mean of counts, within ten in a row; loops where the program has sums."""
    counts = Counter(int((t - begin) // scale) for t in at)
    groups = int(seconds // (scale * 10))
    every = [counts[n] for n in range(groups * 10)]
    within = [float(np.var(every[n : n + 10], ddof=1)) for n in range(0, len(every), 10)]
    return float(np.mean(within)) / float(np.mean(every))


def test_a_cut_is_within_its_bounds_when_it_is_measured_by_itself(
    generated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "cut.jsonl"
    file = written(generated, out, "--cut", "auto")
    printed = capsys.readouterr().out
    told = about(out)["cut"]
    whole = plain_log(generated)
    window = [line for line in file if line["t"] >= told["warmup_s"] - 1e-9]
    assert told["reached"]
    assert not told["whole"]
    assert len(window) == told["searches"] < len(whole) / 2
    assert len(file) - len(window) == told["run_up"]
    # A run of the log as it is, at its own times.
    begin = math.floor(whole[0][0])
    first = round(told["from_s"] + begin, 3)
    stretch = [one for one in whole if first <= one[0] < first + told["seconds"]]
    assert [line["text"] for line in window] == [" ".join(one[2].split()) for one in stretch]
    assert [line["t"] - told["warmup_s"] for line in window] == pytest.approx(
        [one[0] - first for one in stretch], abs=1e-6
    )
    # Its properties, from the file alone, beside those of the log.
    bounds = {bound["name"]: bound for bound in told["bounds"]}
    texts, every = [line["text"] for line in file], [one[2] for one in whole]
    log_s = math.floor(whole[-1][0]) + 1 - begin
    measured = {
        "searches a second": (len(whole) / log_s, len(window) / told["seconds"]),
        "repeats of an earlier search": (
            1 - len(set(every)) / len(every), saved(texts, 10**9, len(window)),
        ),
    }  # fmt: skip
    for size in (100,):
        measured[f"saved by a cache of {size:,}"] = (
            saved(every, size, len(every)), saved(texts, size, len(window)),
        )  # fmt: skip
    at = [line["t"] for line in window]
    for scale in (1, 10, 60):
        measured[f"dispersion at {scale} s"] = (
            dispersion([one[0] for one in whole], begin, log_s, scale),
            dispersion(at, told["warmup_s"], told["seconds"], scale),
        )
    for name, (of_log, of_cut) in measured.items():
        bound = bounds[name]
        assert (bound["whole"], bound["cut"]) == pytest.approx((of_log, of_cut), rel=1e-6), name
        apart = abs(of_cut - of_log) / (of_log if bound["relative"] else 1)
        assert apart <= bound["allowed"], name
    # Words and times: the greatest difference, whichever it is.
    n_whole = np.array([len(text.split()) for text in every])
    n_cut = np.array([len(line["text"].split()) for line in window])
    assert max(abs((n_whole <= n).mean() - (n_cut <= n).mean()) for n in range(1, 11)) <= 0.02
    took, own = np.array([one[1] for one in whole]), np.array([one[1] for one in stretch])
    for q, allowed in ((0.5, 0.05), (0.95, 0.02)):
        limit = np.quantile(took, q, method="inverted_cdf")
        assert abs((took <= limit).mean() - (own <= limit).mean()) <= allowed
    assert "The shortest cut within all bounds has" in printed
    assert "warmup_s" in about(out)["study"]


def test_a_cut_that_may_not_be_long_enough_says_which_bounds_it_misses(
    generated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "cut.jsonl"
    file = written(generated, out, "--cut", "900")
    assert len(file) <= 900
    told = about(out)["cut"]
    assert not told["reached"]
    missed = [bound["name"] for bound in told["bounds"] if not bound["reached"]]
    assert "dispersion at 60 s" in missed
    printed = " ".join(capsys.readouterr().out.split())
    assert f"does not stand for the log in {len(missed)} of" in printed
    assert "not reached" in printed
    written(generated, out, "--cut", "120s")
    assert (about(out)["seconds"] or 0) <= 120


def test_a_cut_keeps_what_a_cache_would_hold(generated: Path, tmp_path: Path) -> None:
    """Without its run-up the same stretch saves less: the run-up is what keeps it."""
    out = tmp_path / "cut.jsonl"
    file = written(generated, out, "--cut", "auto")
    told = about(out)["cut"]
    texts = [line["text"] for line in file]
    alone = texts[told["run_up"] :]
    assert told["run_up"] > 0
    with_it = saved(texts, 10**9, len(alone))
    assert saved(alone, 10**9, len(alone)) < with_it - 0.01


# ── other words ──────────────────────────────────────────────────────────────────────────────


def words_of(line: dict[str, Any]) -> list[str]:
    return re.findall(r"[^\W_]+", line["text"])


def test_anonymised_searches_repeat_as_they_did_and_are_as_long(
    generated: Path, tmp_path: Path
) -> None:
    plain = written(generated, tmp_path / "plain.jsonl")
    other = written(generated, tmp_path / "other.jsonl", "--anonymise")
    assert len(plain) == len(other)
    a = open_queries({"file": "plain.jsonl"}, tmp_path)
    b = open_queries({"file": "other.jsonl"}, tmp_path)
    assert a.log.tolist() == b.log.tolist()
    assert a.times_s is not None
    assert b.times_s is not None
    assert b.times_s == pytest.approx(a.times_s - a.times_s[0], abs=1e-6)
    assert b.times_s[0] == 0
    replaced: dict[str, str] = {}
    asked: Counter[str] = Counter()
    for before, after in zip(plain, other, strict=True):
        one, two = words_of(before), words_of(after)
        assert [len(word) for word in one] == [len(word) for word in two]
        assert before["class"] == after["class"]
        for word, instead in zip(one, two, strict=True):
            assert word != instead
            assert replaced.setdefault(word, instead) == instead
        asked.update(set(one))
    assert len(set(replaced.values())) == len(replaced)
    # Words that are asked often trade places with such as are asked about as often.
    often = [word for word, n in asked.items() if n >= 10]
    ratio = [asked[replaced[word]] / asked[word] for word in often if replaced[word] in asked]
    assert len(ratio) > 0.9 * len(often)
    assert np.mean([0.5 <= r <= 2 for r in ratio]) > 0.9
    # Rare words are nobody's: they are made up.
    rare = {word for word, n in asked.items() if n < 10}
    assert not any(replaced[word] in often for word in rare)


def test_a_key_gives_the_same_words_in_another_log(tmp_path: Path) -> None:
    line = "[Fri Nov 20 20:39:57.302 2026] 0.003 sec [all/0/rel 9 (0,20)] [docs] {}\n"
    one, two = tmp_path / "one.log", tmp_path / "two.log"
    one.write_text("".join(line.format(text) for text in ["red lamp", "red lamp 2024"] * 12))
    two.write_text("".join(line.format(text) for text in ["blue lamp", "Red 2024 smith"] * 2))
    key = tmp_path / "key.json"
    a = written(one, tmp_path / "a.jsonl", "--anonymise", "--key", str(key))
    assert key.stat().st_mode & 0o077 == 0
    b = written(two, tmp_path / "b.jsonl", "--anonymise", "--key", str(key))
    (red, lamp, year) = words_of(a[1])
    assert words_of(b[0])[1] == lamp
    assert words_of(b[1])[:2] == [red.capitalize(), year]
    assert year.isdigit()
    assert {"red", "lamp", "smith", "blue", "2024"}.isdisjoint(
        {words_of(line)[0].lower() for line in (a[0], b[0])} | {words_of(b[1])[2]}
    )
    c = written(two, tmp_path / "c.jsonl", "--anonymise")
    assert [words_of(line) for line in c] != [words_of(line) for line in b]
    key.write_text("{}")
    with pytest.raises(QueryError, match="is not a key"):
        app(["logs", str(one), "--queries", str(tmp_path / "d.jsonl"), "--anonymise", "--key",
             str(key)])  # fmt: skip


def test_words_of_documents_take_the_place_of_such_as_are_in_as_many(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    names = ["".join(chr(97 + c) for c in rng.integers(0, 26, 5)) for _ in range(400)]
    in_documents = {name: int(2 ** rng.uniform(0, 12)) for name in names}
    (tmp_path / "words.txt").write_text("".join(f"{w}\t{n}\n" for w, n in in_documents.items()))
    line = "[Fri Nov 20 20:39:57.302 2026] 0.003 sec [all/0/rel 9 (0,20)] [docs] {}\n"
    asked = [*names[:200], "zzzzzz", "qqqqq"]
    (tmp_path / "query.log").write_text("".join(line.format(w) for w in asked))
    argv = ["--anonymise", "--documents", str(tmp_path / "words.txt")]
    file = written(tmp_path / "query.log", tmp_path / "out.jsonl", *argv)
    instead = [found["text"] for found in file]
    assert all(word in in_documents for word in instead[:200])
    ratio = np.array([in_documents[b] / in_documents[a] for a, b in zip(asked[:200], instead[:200],
                                                                       strict=True)])  # fmt: skip
    assert np.mean((ratio > 0.49) & (ratio < 2.01)) > 0.95
    # What no document has becomes what no document has.
    assert not {*instead[200:]} & {*in_documents, "zzzzzz", "qqqqq"}
    assert [len(word) for word in instead[200:]] == [6, 5]


@pytest.mark.parametrize("name", ["nginx-combined.log", "groonga-query.log", "opensearch-slow.json",
                                  "sphinx-query-sphinxql.log", "mariadb-slow.log",
                                  "postgresql-stderr-duration.log", "nginx-json.log"])  # fmt: skip
def test_requests_keep_their_structure_and_lose_their_words(name: str, tmp_path: Path) -> None:
    plain = written(LOGS / name, tmp_path / "plain.jsonl")
    other = written(LOGS / name, tmp_path / "other.jsonl", "--anonymise")
    a, b = (read_requests(tmp_path / f"{n}.jsonl") for n in ("plain", "other"))
    assert a.log.tolist() == b.log.tolist()
    changed = 0
    for before, after in zip(plain, other, strict=True):
        assert before.keys() == after.keys()
        assert before["index"] == after["index"]
        one, two = (json.dumps({**line, "t": 0}) for line in (before, after))
        # Everything but words and numbers stands where it stood.
        assert re.sub(r"[^\W_]+", "w", _plainly(one)) == re.sub(r"[^\W_]+", "w", _plainly(two))
        changed += one != two
    assert changed > len(plain) / 2
    # What a server understood, it still understands: names of columns and commands are there.
    for known in ("select", "match_columns", "output_columns", "WHERE", "FROM", "_search"):
        assert sum(known in json.dumps(line) for line in plain) == sum(
            known in json.dumps(line) for line in other
        )


def _plainly(text: str) -> str:
    from urllib.parse import unquote_plus

    return unquote_plus(text)


def test_terms_are_those_of_the_declared_analysis_after_anonymising(tmp_path: Path) -> None:
    line = "[Fri Nov 20 20:39:57.302 2026] 0.003 sec [all/0/rel 9 (0,20)] [docs] {}\n"
    odd = ["東京 ラーメン", "Ωmega Straße", "naïve café 007", "ЁЛКА x", "ab1c2 9", "한국어"]
    (tmp_path / "query.log").write_text("".join(line.format(text) for text in odd))
    plain = written(tmp_path / "query.log", tmp_path / "plain.jsonl")
    other = written(tmp_path / "query.log", tmp_path / "other.jsonl", "--anonymise")
    for before, after in zip(plain, other, strict=True):
        one, two = terms(before["text"]), terms(after["text"])
        assert [len(word) for word in one] == [len(word) for word in two]
        assert all(a != b for a, b in zip(one, two, strict=True))
