"""What a log cannot know is said: times that are cut off, errors that are not logged, the order."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from searchbench.analysis.logs.as_json import as_json
from searchbench.analysis.logs.judge import judge_log
from searchbench.analysis.logs.model import LogJudgement
from searchbench.analysis.logs.remarks import bound
from searchbench.errors import QueryError
from searchbench.logs.counts import Options, count
from searchbench.logs.sources import find

LOGS = Path(__file__).parent / "logs"


def sphinx(path: Path, ms: list[int], words: list[str]) -> LogJudgement:
    """A log of whole milliseconds, twenty searches a second."""
    path.write_text("".join(
        f"[Mon Jan  5 09:{i // 1200 % 60:02d}:{i // 20 % 60:02d}.{i % 20 * 50:03d} 2026] "
        f"{m / 1000:.3f} sec [ext2/0/rel 12 (0,20)] [products] {w}\n"
        for i, (m, w) in enumerate(zip(ms, words, strict=True))
    ))  # fmt: skip
    return judge_log(count(find([path], "s"), Options()))


def said(of: LogJudgement, title: str) -> str:
    return " ".join(r.text for r in of.remarks if r.title == title)


def test_a_time_that_was_cut_off_is_less_than_the_next_one(tmp_path: Path) -> None:
    """Times of 1.0 to 2.0 ms, written as 1 ms: none of them is known to be within 1 ms."""
    found = sphinx(tmp_path / "a.log", [1] * 1000, [f"w{i}" for i in range(1000)])
    assert "Half of the searches took less than 2 ms" in said(found, "Times")
    assert found.within[0.001] == 0.0
    assert found.within[0.01] == 1.0
    nought = sphinx(tmp_path / "b.log", [0] * 1000, [f"w{i}" for i in range(1000)])
    assert "less than 1 ms" in said(nought, "Times")
    assert nought.within[0.001] == 1.0
    assert [band.at_s for band in nought.bands.bands] == [None]


def test_a_log_that_is_fine_enough_says_what_it_wrote() -> None:
    assert bound(0.001234, 1e-9) == "at most 1.23 ms"
    assert bound(2.5, 1e-3) == "at most 2.5 s"
    assert bound(0.026, 1e-3) == "less than 27 ms"
    assert bound(None, 1e-3) == "at most unknown"


@pytest.mark.parametrize(
    ("log", "known"),
    [
        ("sphinx-query-plain.log", False), ("mariadb-slow.log", False),
        ("mariadb-general.log", False), ("opensearch-slow.log", False),
        ("opensearch-slow.json", False), ("sphinx-query-sphinxql.log", True),
        ("nginx-timed.log", True), ("postgresql-stderr-duration.log", True),
        ("groonga-query.log", True), ("nginx-json.log", True),
    ],
)  # fmt: skip
def test_errors_are_unknown_where_a_format_does_not_log_them(log: str, known: bool) -> None:
    found = judge_log(count(find([LOGS / log], "s"), Options()))
    assert found.all is not None
    assert (found.all.errors is not None) == known
    assert (as_json(found)["all"]["errors"] is not None) == known
    assert bool(found.all.errors) == known, "these real logs have failed searches, where they can"
    assert ("does not say which searches failed" in said(found, "Errors")) != known
    assert {row.errors is None for row in found.by["server"]} == {not known}


def test_what_a_cache_would_have_saved_is_called_an_estimate(tmp_path: Path) -> None:
    """Each query five times in a row: an LRU cache saves 80 %, the estimate is 10 %."""
    words = [f"burst {i}" for i in range(2000) for _ in range(5)]
    told = said(sphinx(tmp_path / "a.log", [5] * len(words), words), "Repetition")
    assert "80 % of the searches repeat" in told
    assert "would have saved about" in told
    assert "may be much more where repetitions follow each other closely" in told
    assert "up to" not in told


def of_words(path: Path, n: int, seed: int, slower: float) -> LogJudgement:
    """Searches of one word to five, ``n`` of each; those of five words take so much longer."""
    rng = np.random.default_rng(seed)
    words = [1 + i % 5 for i in range(5 * n)]
    times = 20 * np.exp(1.2 * rng.standard_normal(len(words)))
    times *= np.where(np.array(words) == 5, slower, 1.0)
    return sphinx(path, np.ceil(times).astype(int).tolist(),
                  [" ".join(f"w{k}" for k in range(count)) for count in words])  # fmt: skip


def test_numbers_of_words_are_told_apart_only_beyond_chance(tmp_path: Path) -> None:
    """Of 120 equal searches each, some p95 is mostly 1.5 times another."""
    equal = [of_words(tmp_path / f"{i}.log", 120, i, 1.0) for i in range(12)]
    p95 = [[row.quantiles_s["p95"] or 0.0 for row in of.words] for of in equal]
    assert sum(max(own) >= 1.5 * min(own) for own in p95) >= 6
    assert sum(bool(said(of, "Words")) for of in equal) <= 1
    told = said(of_words(tmp_path / "slow.log", 400, 99, 4.0), "Words")
    assert told.startswith("The p95 of searches of 5 words is ")
    assert " times that of searches of " in told
    assert told.count(" to ") == 2, "with both intervals"


@pytest.mark.parametrize("packed", [False, True])
def test_a_log_whose_first_line_is_longer_than_a_head_is_known_by_the_others(
    tmp_path: Path, packed: bool
) -> None:
    line = '{{"timestamp": "2026-11-22T10:00:0{n}Z", "took_ms": 12, "query": "{words}"}}\n'
    text = "".join(line.format(n=n, words="red " * (3_000_000 if n == 0 else 1)) for n in range(3))
    path = tmp_path / ("app.log.gz" if packed else "app.log")
    path.write_bytes(gzip.compress(text.encode(), 1) if packed else text.encode())
    (source,) = count(find([path]), Options()).sources
    assert (source["format"], source["entries"], source["unread"]) == ("json", 3, 0)
    assert source["longest_line"] > 12_000_000
    alone = tmp_path / "alone.log"
    alone.write_text("x" * 200_000)
    with pytest.raises(QueryError, match="no log of a known kind"):
        count(find([alone]), Options())
