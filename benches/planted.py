"""Logs in which everything is known beforehand: what was planted is what ``searchbench logs`` says.

    python benches/figures.py logs-planted   a hundred million lines, 12 GB of disk, some minutes
    python benches/planted.py LINES          by hand

Seven servers write logs in five formats. How many searches each has, of which index, class, number
of words and query, how many found nothing or failed, and all their times are counted while the logs
are written, by numpy and not by what reads them. Counts must then be the same; a quantile must be
within 0.1 % of that of the sorted times, which is what the page promises.

The suite runs the same with fewer lines (tests/test_benches_planted.py).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent.parent))

from benches.figure import Figure

LINES = 100_000_000
_BLOCK = 1_000_000  # searches that are drawn at once
_START_S = 1_767_571_200  # a Monday
_QUERIES = 3000
_INDEXES = 12
_QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999)
_WITHIN = 0.001
_LONGEST = 60_000  # units of a time; more is cut off
_SYLLABLES = ("ka", "ri", "to", "mel", "os", "un", "da", "vi", "pra", "lo", "si", "ter", "no", "gu")
_BANDS = {1: "1", 2: "2", 3: "3", 4: "4", 5: "5"}  # more words share a row
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A block of searches in columns: what of each is planted. ``took``: in the format's unit."""

    at_ms: Numbers
    query: Numbers
    index: Numbers
    took: Numbers
    hits: Numbers
    failed: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Format:
    """How a server writes. ``lines_of``: lines of a search; ``head``: lines before the first.

    ``unit_s``: of a time. ``says``: which of index, hits and errors it tells. ``of_class`` and
    ``asked``: the class and the text of a search, with its words and its index.
    """

    name: str
    file: str
    unit_s: float
    text: Callable[[Drawn, Sequence[str]], str]
    says: frozenset[str]
    of_class: str
    asked: str = "{words}"
    lines_of: int = 1
    head: str = ""


@dataclass(slots=True)
class Truth:
    """What was planted into the log of one server."""

    format: Format
    n: int = 0
    lines: int = 0
    by_index: Counter[str] = field(default_factory=Counter)
    by_words: Counter[str] = field(default_factory=Counter)
    by_class: Counter[str] = field(default_factory=Counter)
    asked: Numbers = field(default_factory=lambda: np.zeros(_INDEXES * _QUERIES, np.int64))
    zero: int = 0
    hits: int = 0
    failed: int = 0
    took: Numbers = field(default_factory=lambda: np.zeros(_LONGEST + 1, np.int64))

    def add(self, drawn: Drawn, queries: Sequence[str]) -> None:
        """Count a block."""
        self.n += len(drawn.query)
        self.lines += len(drawn.query) * self.format.lines_of
        of_query = np.bincount(drawn.query, minlength=len(queries))
        self.asked += np.bincount(drawn.index * _QUERIES + drawn.query, minlength=len(self.asked))
        for text, n in zip(queries, of_query.tolist(), strict=True):
            self.by_words[band(text.count(" ") + 1)] += n
        for index, n in enumerate(np.bincount(drawn.index, minlength=_INDEXES).tolist()):
            self.by_index[index_name(index)] += n
            self.by_class[self.format.of_class.format(index=index_name(index))] += n
        self.failed += int(drawn.failed.sum())
        self.zero += int((~drawn.failed & (drawn.hits == 0)).sum())
        self.hits += int(drawn.hits.sum())
        self.took += np.bincount(drawn.took, minlength=_LONGEST + 1)


def index_name(number: int) -> str:
    """The name of an index."""
    return f"idx{number:02}"


def band(words: int) -> str:
    """The row of searches of so many words."""
    if words <= 5:
        return _BANDS[words]
    return "6–10" if words <= 10 else "11–20"


def queries(draw: np.random.Generator) -> list[str]:
    """Distinct queries of one to twelve words."""
    found: dict[str, None] = {}
    while len(found) < _QUERIES:
        words = [
            "".join(draw.choice(_SYLLABLES, draw.integers(2, 4)))
            for _ in range(draw.integers(1, 13))
        ]
        found.setdefault(" ".join(words))
    return list(found)


# ── how the formats are written ──────────────────────────────────────────────────────────────


def _stamps(at_ms: Numbers, form: str) -> list[str]:
    """The second of each instant; of one second there is one text."""
    seconds, which = np.unique(at_ms // 1000, return_inverse=True)
    made = [
        str(s) if form == "%s" else datetime.fromtimestamp(s, UTC).strftime(form)
        for s in seconds.tolist()
    ]
    return [made[n] for n in which.tolist()]


def _columns(drawn: Drawn) -> Iterator[Any]:
    """(ms of its end, query, index, time, hits, failed) of each search, as Python's numbers."""
    return zip(
        (drawn.at_ms % 1000).tolist(), drawn.query.tolist(), drawn.index.tolist(),
        drawn.took.tolist(), drawn.hits.tolist(), drawn.failed.tolist(), strict=True,
    )  # fmt: skip


def _sphinx(drawn: Drawn, asked: Sequence[str]) -> str:
    second = _stamps(drawn.at_ms, "%a %b %d %H:%M:%S")
    year = datetime.fromtimestamp(_START_S, UTC).year
    return "".join(
        f"[{at}.{ms:03} {year}] {took // 1000}.{took % 1000:03} sec "
        f"{took // 1000}.{took % 1000:03} sec [all/0/rel {hits} (0,20)] [idx{index:02}] "
        f"{asked[query]}\n"
        for at, (ms, query, index, took, hits, _) in zip(second, _columns(drawn), strict=True)
    )


def _sphinxql(drawn: Drawn, asked: Sequence[str]) -> str:
    second = _stamps(drawn.at_ms, "%a %b %d %H:%M:%S")
    year = datetime.fromtimestamp(_START_S, UTC).year
    wrong = (";", "; /* error=index idx: query too complex */")
    return "".join(
        f"/* {at}.{ms:03} {year} conn 4 real {took // 1000}.{took % 1000:03} wall "
        f"{took // 1000}.{took % 1000:03} found {hits} */ SELECT id FROM idx{index:02} WHERE "
        f"MATCH('{asked[query]}') LIMIT 0,20{wrong[failed]}\n"
        for at, (ms, query, index, took, hits, failed) in zip(second, _columns(drawn), strict=True)
    )


def _access(drawn: Drawn, asked: Sequence[str]) -> str:
    second = _stamps(drawn.at_ms, "%d/%b/%Y:%H:%M:%S +0000")
    paths = [text.replace(" ", "+") for text in asked]
    status = (200, 500)
    return "".join(
        f'10.0.0.1 - - [{at}] "GET /search?q={paths[query]}&page=1 HTTP/1.1" {status[failed]} 512 '
        f'"-" "Example/1.0" {took // 1000}.{took % 1000:03}\n'
        for at, (_, query, _, took, _, failed) in zip(second, _columns(drawn), strict=True)
    )


def _json(drawn: Drawn, asked: Sequence[str]) -> str:
    second = _stamps(drawn.at_ms, "%Y-%m-%dT%H:%M:%S")
    status = ('"hits":{},"status":200', '"status":500')
    return "".join(
        f'{{"timestamp":"{at}.{ms:03}Z","query":"{asked[query]}","index":"idx{index:02}",'
        f'"duration_ms":{took},{status[failed].format(hits)}}}\n'
        for at, (ms, query, index, took, hits, failed) in zip(second, _columns(drawn), strict=True)
    )


def _mysql_slow(drawn: Drawn, asked: Sequence[str]) -> str:
    second = _stamps(drawn.at_ms, "%s")
    return "".join(
        f"# User@Host: web[web] @  [127.0.0.1]\n# Thread_id: 19  Schema: wiki  QC_hit: No\n"
        f"# Query_time: {took // 1000000}.{took % 1000000:06}  Lock_time: 0.000000  "
        f"Rows_sent: {hits}  Rows_examined: 9\n# Rows_affected: 0  Bytes_sent: 11\n"
        f"SET timestamp={at};\nSELECT id FROM idx{index:02} WHERE MATCH (body) AGAINST "
        f"('{asked[query]}') LIMIT 20;\n"
        for at, (_, query, index, took, hits, _) in zip(second, _columns(drawn), strict=True)
    )


_STARTED = (
    "mariadbd, Version: 10.11.19-MariaDB (Debian 12). started with:\nTcp port: 3306  Unix socket: "
    "/run/db.sock\nTime\t\t    Id Command\tArgument\n"
)
_ALL = frozenset(("index", "hits", "errors"))
_INDEX_OF = "select id from {index} where "
SPHINX = Format("sphinx", "query.log", 0.001, _sphinx, _ALL - {"errors"}, "all/0/rel")
SERVERS: dict[str, tuple[Format, float]] = {
    "sphinx-1": (SPHINX, 0.25),
    "sphinx-2": (SPHINX, 0.25),
    "sphinx-3": (SPHINX, 0.2),
    "sphinxql": (
        Format("sphinxql", "query.log", 0.001, _sphinxql, _ALL, f"{_INDEX_OF}match(?) limit ?"),
        0.1,
    ),
    "front": (
        Format(
            "access", "access.log", 0.001, _access, frozenset(("errors",)), "GET /search?q&page",
            "/search?q={plus}&page=1",
        ),
        0.1,
    ),
    "app": (Format("json", "app.jsonl", 0.001, _json, _ALL, "words"), 0.06),
    "db": (
        Format(
            "mysql-slow", "slow.log", 1e-6, _mysql_slow, frozenset(("index", "hits")),
            f"{_INDEX_OF}match(body) against(?) limit ?",
            "SELECT id FROM {index} WHERE MATCH (body) AGAINST ('{words}') LIMIT 20", 6, _STARTED,
        ),
        0.04,
    ),
}  # fmt: skip
"""By name, what each server writes and its share of the lines."""


def plant(folder: Path, lines: int, seed: int = 1) -> tuple[dict[str, Truth], list[str]]:
    """Write a folder for each server with its log; by server, what is in it. And the queries."""
    draw = np.random.default_rng(seed)
    asked = queries(draw)
    rank = 1.0 / np.arange(1, len(asked) + 1)
    share = np.cumsum(rank / rank.sum())
    found = {}
    for name, (form, part) in SERVERS.items():
        truth = found[name] = Truth(form, lines=form.head.count("\n"))
        place = folder / name / form.file
        place.parent.mkdir()
        with place.open("w") as file:
            file.write(form.head)
            left, at_ms = int(lines * part) // form.lines_of, _START_S * 1000
            while left:
                n = min(left, _BLOCK)
                drawn = _drawn(draw, n, at_ms, share, fails="errors" in form.says)
                file.write(form.text(drawn, asked))
                truth.add(drawn, asked)
                left, at_ms = left - n, int(drawn.at_ms[-1])
    return found, asked


def _drawn(
    draw: np.random.Generator, n: int, at_ms: int, share: NDArray[np.float64], *, fails: bool
) -> Drawn:
    took = np.minimum(draw.lognormal(3.0, 1.6, n), _LONGEST).astype(np.int64)
    failed = draw.random(n) < (0.01 if fails else 0)
    hits = np.where(failed | (draw.random(n) < 0.08), 0, draw.integers(1, 5000, n))
    return Drawn(
        at_ms + np.cumsum(draw.integers(0, 40, n)),
        np.minimum(np.searchsorted(share, draw.random(n)), len(share) - 1),
        draw.integers(0, _INDEXES, n),
        took,
        hits,
        failed,
    )


# ── what comes back ──────────────────────────────────────────────────────────────────────────


def read(folder: Path) -> dict[str, Any]:
    """What the command says of a folder, as a user runs it."""
    argv = [sys.executable, "-m", "searchbench", "logs", str(folder), "--json"]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"searchbench logs failed: {done.stderr[-800:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def wrong(folder: Path, planted: dict[str, Truth], words: Sequence[str]) -> list[str]:
    """Where what is said differs from what was planted, each in a sentence; none where nowhere.

    The coarsest clock of several logs decides how finely times are known. So a log that is finer
    is read alone, too.
    """
    said = read(folder)
    found: list[str] = []

    def same(what: str, is_: object, planted_: object) -> None:
        if is_ != planted_:
            found.append(f"{what}: {is_} is said, and {planted_} was planted")

    rows = {row["name"]: row for row in said["by"]["server"]}
    same("servers", sorted(rows), sorted(planted))
    sources = {source["server"]: source for source in said["sources"]}
    for name, truth in planted.items():
        row, source = rows[name], sources[name]
        same(f"{name}, format", source["format"], truth.format.name)
        same(f"{name}, lines", source["lines"], truth.lines)
        same(f"{name}, lines that cannot be read", source["unread"], 0)
        same(f"{name}, searches", row["n"], truth.n)
        answered = truth.n - truth.failed
        if "hits" in truth.format.says:
            same(f"{name}, without hits", round(row["zero"] * answered), truth.zero)
            same(f"{name}, hits", round(row["mean_hits"] * answered), truth.hits)
        if "errors" in truth.format.says:
            same(f"{name}, errors", round(row["errors"] * truth.n), truth.failed)
        if truth.format.unit_s < said["resolution_s"]:
            row = read(folder / name)["all"]
        found += _of_times(name, row, truth)
    same("all searches", said["all"]["n"], sum(truth.n for truth in planted.values()))
    by_words, by_index, by_class = Counter[str](), Counter[str](), Counter[str]()
    for truth in planted.values():
        by_words.update(truth.by_words)
        by_class.update(truth.by_class)
        if "index" in truth.format.says:
            by_index.update(truth.by_index)
    same("words", {row["name"]: row["n"] for row in said["by_words"]}, dict(by_words))
    indexes = {row["name"]: row["n"] for row in said["by"]["index"] if row["name"]}
    same("indexes", indexes, dict(by_index))
    same("classes", {row["name"]: row["n"] for row in said["by"]["class"]}, dict(by_class))
    queries_ = _asked(planted, words)
    same("distinct queries", said["repetition"]["distinct"], len(queries_))
    most = said["most_asked"]
    by_text = Counter[str]()  # one that is asked of several indexes is listed once
    for (_, text), n in queries_.items():
        by_text[text] += n
    same("most asked", [q["n"] for q in most], sorted(by_text.values(), reverse=True)[: len(most)])
    for q in most:
        if q["n"] != by_text[q["text"]]:
            found.append(f"{q['text']!r} is said to be asked {q['n']} times")
    return found


def _of_times(name: str, row: dict[str, Any], truth: Truth) -> list[str]:
    """Where the times of a server are not those that were planted."""
    found = []
    for q in _QUANTILES:
        said_s = row[f"p{100 * q:g}_s"]
        low, high = (each * truth.format.unit_s for each in between(truth.took, q))
        if not low * (1 - _WITHIN) <= said_s <= high * (1 + _WITHIN):
            found.append(f"{name}, quantile {q:g}: {said_s} s is said, planted {low} to {high} s")
    longest = float(np.flatnonzero(truth.took)[-1]) * truth.format.unit_s
    if not np.isclose(row["max_s"], longest):
        found.append(f"{name}, longest: {row['max_s']} s is said, and {longest} s was planted")
    return found


def _asked(planted: dict[str, Truth], words: Sequence[str]) -> Counter[tuple[str, str]]:
    """How often each text was asked of each index; several servers may have the same."""
    found = Counter[tuple[str, str]]()
    for truth in planted.values():
        for at in np.flatnonzero(truth.asked).tolist():
            name, text = index_name(at // _QUERIES), words[at % _QUERIES]
            text = truth.format.asked.format(words=text, plus=text.replace(" ", "+"), index=name)
            told = name if "index" in truth.format.says else ""
            found[told, text] += int(truth.asked[at])
    return found


def between(counts: Numbers, q: float) -> tuple[int, int]:
    """The times on both sides of a quantile, in units, of how many took how many units."""
    ranks = np.cumsum(counts)
    at = q * int(ranks[-1])
    low, high = (int(np.searchsorted(ranks, max(1.0, r))) for r in (np.floor(at), np.floor(at) + 1))
    return low, high


def figures(lines: int = LINES) -> Iterator[Figure]:
    """How many of the planted truths came back otherwise: none may."""
    with tempfile.TemporaryDirectory(prefix="searchbench-planted-") as made:
        folder = Path(made)
        planted, words = plant(folder, lines)
        size = sum(path.stat().st_size for path in folder.rglob("*.*") if path.is_file())
        different = wrong(folder, planted, words)
    total = sum(truth.lines for truth in planted.values())
    yield Figure(
        "planted truths that came back otherwise", len(different), "", at_most=0,
        note="; ".join(different[:3]) or f"{total:,} lines, {size / 1e9:.1f} GB, {len(planted)} "
        "servers, 5 formats",
    )  # fmt: skip


if __name__ == "__main__":
    for one in figures(int(sys.argv[1]) if sys.argv[1:] else LINES):
        print(one.line())
