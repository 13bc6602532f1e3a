"""What a log says of a study is what the study recorded, query by query.

The project's own servers write their logs while a study asks them. What the reader finds in a log
is held against the samples of the trial: as many searches of each query, the same words, the same
hits, at the same moment, and of a time that fits.

How a log's clock compares with the client's, by format. The client's service time is from the first
byte that it sent to the last that it read, so no server can say more than that:

    sphinx, sphinxql     the search alone, in whole ms that are cut off; stamped at its end
    mysql-slow           each statement of the exchange by itself, to 1 µs, answer included; stamped
                         at its start, in whole seconds
    mysql-general        no times; the start, in whole seconds
    postgresql, -csv, -json  the whole exchange, parsing included, to 1 µs; stamped at its end
    groonga              the whole request, to 1 ns, answer included; stamped at its start
    access               from the first byte read to the last one given to the kernel, in whole ms;
                         stamped at its end, in whole seconds
    slowlog (OpenSearch) the request in the node, without HTTP, to 0.1 of its unit; stamped at its
                         end
    slowlog (Elasticsearch)  the slowest shard and phase, and nothing between; stamped at its end

Where the clock stops after the answer was handed to the kernel, the client may have read it before:
the kernel likes to go on with whoever waited for it. So a few requests may seem to have taken
longer on the server than for the client.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from own_logs import LOGGING, REQUESTS, WORD, ZONE, nginx, queries, study
from searchbench.cli import app
from searchbench.engines import ENGINES
from searchbench.lab.get.install import missing
from searchbench.logs.counts import Options
from searchbench.logs.entries import NO_TIME, SEARCH, UNKNOWN, Entries, read_entries
from searchbench.logs.record import open_log
from searchbench.logs.sources import find
from searchbench.record import Record

pytestmark = pytest.mark.slow

_MS, _S = 1_000_000, 1_000_000_000
SHOWN = 200
# Between the clocks of the record and of the server, which on one machine are both its own.
_CLOCKS_NS = 3 * _MS


@dataclass(frozen=True, slots=True)
class Log:
    """A log: who writes it, where, in which format.

    ``search``: what is in each search of the study, and in nothing that is sent besides.
    ``stamp_ns``: how finely instants are known. ``least``: how much of a dear request the log
    tells; None: it has no times. ``after``: its clock stops after the answer. ``hits``: whether it
    has their number.
    """

    server: str
    file: str
    format: str
    search: str
    stamp_ns: int
    least: float | None = 0.2
    after: bool = False
    hits: bool = False


_SQL, _PATH = "FROM docs WHERE", "/d/select?"
LOGS = (
    Log("sphinx", "query.log", "sphinx", "@(f_text)", _MS, hits=True),
    Log("sphinxql", "query.log", "sphinxql", "@(f_text)", _MS, hits=True),
    Log("mariadb", "slow.log", "mysql-slow", _SQL, _S, after=True),
    Log("mariadb", "general.log", "mysql-general", _SQL, _S, None),
    Log("postgresql", "postgresql.log", "postgresql", _SQL, _MS),
    Log("postgresql", "postgresql.csv", "postgresql-csv", _SQL, _MS),
    Log("postgresql", "postgresql.json", "postgresql-json", _SQL, _MS),
    Log("groonga", "query.log", "groonga", _PATH, 1000, after=True, hits=True),
    Log("groonga", "nginx-timed.log", "access", _PATH, _S, after=True),
    Log("groonga", "nginx-fields.log", "json", _PATH, _S, after=True),
    Log("opensearch", "slow.log", "slowlog", '"from":0', _MS, hits=True),
    Log("opensearch", "slow.json", "slowlog-json", '"from":0', _MS, hits=True),
    Log("elasticsearch", "slow.json", "slowlog-json", '"from":0', _MS, 0.02, hits=True),
)


class Studies:
    """The study of each server, run when the first of its logs is looked at."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._run: dict[str, Record] = {}

    def of(self, log: Log) -> tuple[Path, Record]:
        """The log, and the record of the study that was asked meanwhile."""
        engine, switched_on = LOGGING[log.server]
        if lacking := missing(ENGINES[engine]):
            pytest.skip(f"no {ENGINES[engine].can.title} here: {lacking}")
        if log.file.startswith("nginx") and not nginx():
            pytest.skip("no nginx here: Debian's package nginx-light brings it")
        place = self._place / log.server
        if log.server not in self._run:
            place.mkdir()
            place.chmod(0o777)  # servers that refuse root write into it
            with switched_on(place):
                self._run[log.server] = study(place, {"engine": engine})
        (trial,) = self._run[log.server].trials
        assert trial.status == "ok", trial.reason
        return place / log.file, self._run[log.server]


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studies]:
    """Servers of another zone than ours, as of the tests in this file."""
    place = tmp_path_factory.mktemp("own")
    for folder in (place, *place.parents[:2]):
        folder.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", ZONE)
        yield Studies(place)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a study asked of one query: the instants of each request in Unix time, and its hits."""

    sent: Any
    done: Any
    total: int


def asked(record: Record) -> dict[tuple[str, ...], Asked]:
    """By words, what the record says."""
    (trial,) = record.trials
    assert trial.drive is not None
    zero = trial.drive.started_unix_ns
    samples = record.samples(trial.trial, ["query", "sent", "done", "outcome"])
    assert set(samples["outcome"].to_pylist()) == {0}, "the study had requests that failed"
    query, sent, done = (samples[name].to_numpy() for name in ("query", "sent", "done"))
    replies = record.replies(trial.trial).to_pylist()
    totals = {r["query"]: r["total"] for r in replies if r["phase"] == "captured"}
    found = {}
    for line in record.queries(trial.queries.digest):
        mine = np.flatnonzero(query == line["query"])
        mine = mine[np.argsort(sent[mine])]
        words = tuple(line["algebra"]["match"]["terms"])
        found[words] = Asked(zero + sent[mine], zero + done[mine], totals[line["query"]])
    assert len(found) == len(queries())
    assert sum(len(one.sent) for one in found.values()) == REQUESTS
    return found


def words_of(log: Log, text: str) -> tuple[str, ...]:
    """The words of a search of the study, which may stand in it more than once; else none."""
    return tuple(dict.fromkeys(WORD.findall(text))) if log.search in text else ()


def by_words(log: Log, entries: Entries) -> dict[tuple[str, ...], list[int]]:
    """By words, the numbers of the searches that have them, in the order of their instants."""
    of_row = [words_of(log, row.text.decode()) for row in entries.rows]
    found: dict[tuple[str, ...], list[int]] = {}
    for number in np.argsort(entries.at_ns, kind="stable").tolist():
        if entries.kind[number] == SEARCH and (words := of_row[entries.asked[number]]):
            found.setdefault(words, []).append(number)
    return found


@pytest.mark.parametrize("log", LOGS, ids=lambda log: f"{log.server}-{log.file}")
def test_a_log_has_every_request_of_the_study_with_its_words_moment_and_time(
    studies: Studies, log: Log
) -> None:
    path, record = studies.of(log)
    entries = read_entries(find([path]), Options(zone=ZONE))
    (source,) = entries.sources
    assert (source["format"], source["unread"]) == (log.format, 0)
    found, expected = by_words(log, entries), asked(record)
    assert found.keys() == expected.keys()
    early, late, longer, shares = [], [], [], []
    for words, truth in expected.items():
        # Each query was asked once before the drive, so that its answer could be kept.
        first, *driven = found[words]
        assert len(driven) == len(truth.sent), words
        begin, ns = entries.at_ns[driven], entries.ns[driven]
        assert NO_TIME < entries.at_ns[first] <= begin[0]
        assert not entries.failed[driven].any()
        if log.server.startswith("sphinx"):  # a field is none of the words
            assert set(entries.words[driven].tolist()) == {len(words)}
        if log.least is None:
            assert (ns == UNKNOWN).all()
            early += [begin < truth.sent - log.stamp_ns - _CLOCKS_NS]
            late += [begin > truth.done + _CLOCKS_NS]
            continue
        assert (ns != UNKNOWN).all()
        resolution, ns = entries.resolution_ns[driven].astype(np.int64), ns.astype(np.int64)
        early += [begin < truth.sent - log.stamp_ns - resolution - _CLOCKS_NS]
        late += [begin + ns > truth.done + resolution + _CLOCKS_NS]
        service = truth.done - truth.sent
        # Requests of one query that overlapped may have begun in another order than they were sent.
        if (truth.sent[1:] < truth.done[:-1]).any():
            ns, service = np.sort(ns), np.sort(service)
        longer += [ns > service + resolution]
        shares.append((float(np.median(service)), float(np.median((ns + resolution) / service))))
    # On a busy machine that is so of one request in six.
    most = REQUESTS // 3 if log.after else 0
    assert np.concatenate(early).sum() == 0
    assert np.concatenate(late).sum() <= most
    if log.least is not None:
        assert np.concatenate(longer).sum() <= most
        # The dearest queries are mostly the server's work, so a wrong unit would be seen.
        assert max(share for _, share in sorted(shares)[-5:]) >= log.least, sorted(shares)


@pytest.mark.parametrize("log", LOGS, ids=lambda log: f"{log.server}-{log.file}")
def test_the_command_counts_what_the_study_counted(
    studies: Studies, log: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, record = studies.of(log)
    kept = tmp_path / "kept"
    assert app(["logs", str(path), "--zone", ZONE, "--record", str(kept), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    entries = read_entries(find([path]), Options(zone=ZONE))
    found, expected = by_words(log, entries), asked(record)
    # Of a text its first 200 bytes are kept, in which two statements may be the same.
    n, zero, hits = Counter[str](), Counter[str](), 0
    for words, truth in expected.items():
        text = entries.rows[entries.asked[found[words][0]]].text[:SHOWN].decode()
        n[text] += len(truth.sent) + 1
        zero[text] += (len(truth.sent) + 1) * (truth.total == 0)
        hits += (len(truth.sent) + 1) * truth.total
    counts = open_log(kept).counts
    kept_n, kept_zero = Counter[str](), Counter[str]()
    for number, text in enumerate(counts.texts("queries", "text")):
        if text in n:
            kept_n[text] += int(counts.numbers("queries", "n")[number])
            kept_zero[text] += int(counts.numbers("queries", "zero")[number])
    assert kept_n == n
    if log.hits:
        assert +kept_zero == +zero
        worded = [row for row in said["by_words"] if row["name"] != "none"]
        assert sum(row["n"] for row in worded) == n.total()
        assert sum(row["n"] * row["mean_hits"] for row in worded) == pytest.approx(hits)
    (source,) = said["sources"]
    assert said["all"]["n"] + said["parts"] + said["others"] == source["entries"] == len(entries)


OWN = {
    "sphinx": r"\] [\d.]+ sec (?P<s>[\d.]+) sec .*",
    "sphinxql": r"real [\d.]+ wall (?P<s>[\d.]+) .*",
    "postgresql": r"duration: (?P<ms>[\d.]+) ms  statement: .*(?:\n\t.*)*",
    "access": r'"GET (?P<text>.*) (?P<s>[\d.]+)$',
    "json": r'"GET .*"request_time":(?P<s>[\d.]+)\}$',
}


@pytest.mark.parametrize(
    "log",
    [log for log in LOGS if log.format in OWN],
    ids=lambda log: f"{log.server}-{log.file}",
)
def test_times_are_those_that_stand_in_the_log(studies: Studies, log: Log) -> None:
    path, _ = studies.of(log)
    truth = Counter[tuple[tuple[str, ...], int]]()
    for match in re.finditer(OWN[log.format], path.read_text(), re.MULTILINE):
        parts = match.groupdict()
        took = float(parts["s"]) if "s" in parts else float(parts["ms"]) / 1000
        if words := words_of(log, match[0]):
            truth[words, round(took * _S)] += 1
    entries = read_entries(find([path]), Options(zone=ZONE))
    found = Counter(
        (words, int(entries.ns[n])) for words, of in by_words(log, entries).items() for n in of
    )
    assert found == truth
    assert found.total() == REQUESTS + len(queries())
