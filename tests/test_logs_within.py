"""A part of a log's time: ``--since`` and ``--until``."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from searchbench import _core
from searchbench.cli import app
from searchbench.errors import QueryError, SearchbenchError
from searchbench.logs.counts import Options, count
from searchbench.logs.entries import NO_TIME, read_entries
from searchbench.logs.sources import find
from searchbench.logs.within import Within, within_said

LOGS = Path(__file__).parent / "logs"
SAMPLES = (
    "sphinx-query-plain.log", "sphinx-query-sphinxql.log", "mariadb-slow.log",
    "postgresql-jsonlog.json", "groonga-query.log", "opensearch-slow.json", "nginx-timed.log",
)  # fmt: skip


def total(found: Any) -> int:
    kinds, n = found.texts("groups", "kind"), found.numbers("groups", "n")
    return int(sum(m for kind, m in zip(kinds, n.tolist(), strict=True)
                   if kind in ("server", "part", "other")))  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_parts_of_the_time_add_up_to_the_whole(name: str) -> None:
    sources = find([LOGS / name], "s")
    whole = read_entries(sources, Options())
    at = np.sort(whole.at_ns[whole.at_ns != NO_TIME])
    assert len(at) > 10
    a, b = int(at[len(at) // 3]), int(at[2 * len(at) // 3])
    bounds = [(None, a), (a, b), (b, None)]
    told = 0
    for since, until in bounds:
        within = Within(*(None if t is None else t / 1e9 for t in (since, until)))
        # Seconds as floats are fine to some 200 ns, so what is wanted goes by their bounds.
        low, high = within.span_ns
        wanted = int(((at >= low) & (at < high)).sum())
        found = count(sources, Options(within=within))
        assert total(found) == wanted
        (source,) = found.sources
        left_out = sum(source["notes"].get(n, 0) for n in (_core.LOG_OUTSIDE, _core.LOG_TIMELESS))
        assert source["entries"] == wanted + left_out
        assert len(read_entries(sources, Options(within=within))) == wanted
        told += wanted
    assert told == len(at)


def logs(capsys: pytest.CaptureFixture[str], *args: str | Path) -> Any:
    app(["logs", *map(str, args), "--json"], exit_on_error=False, result_action="return_value")
    return json.loads(capsys.readouterr().out)


def test_the_page_s_times_can_be_given_back(capsys: pytest.CaptureFixture[str]) -> None:
    path = LOGS / "nginx-timed.log"
    whole = logs(capsys, path)
    first = datetime.fromtimestamp(whole["first_s"], UTC)
    then = datetime.fromtimestamp(whole["last_s"], UTC)
    all_of_it = logs(capsys, path, "--since", f"{first:%F %R}", "--until", f"{then:%FT%R}")
    assert all_of_it["all"]["n"] == whole["all"]["n"]
    assert all_of_it["during"] == {"since_s": whole["first_s"], "until_s": whole["last_s"]}
    after = logs(capsys, path, "--since", f"{then:%F %R}")
    assert after["all"] is None
    assert after["headline"].startswith("No entry of the log began at")
    (remark,) = (r for r in after["remarks"] if r["title"] == "Part of the time")
    assert "without --since and --until" in remark["remedy"]


def test_a_file_of_searches_says_of_which_time_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = LOGS / "nginx-timed.log", tmp_path / "q.jsonl"
    until = ["--until", "2026-11-22T02:03:08"]
    part = logs(capsys, path, *until, "--queries", out)
    whole = logs(capsys, path, "--queries", out)
    assert 0 < part["searches"] < whole["searches"]
    assert "that began before 2026-11-22 02:03:08" in part["sentence"]
    hidden = logs(capsys, path, *until, "--queries", out, "--anonymise")
    assert hidden["within"] == "in a part of its time"
    assert "2026" not in hidden["sentence"]
    with pytest.raises(QueryError, match="no entry that began at 2027-01-01 00:00 or later"):
        logs(capsys, path, "--since", "2027-01-01", "--queries", out)


@pytest.mark.parametrize(
    ("since", "until", "told"),
    [
        ("soon", "", "--since soon: write a time as"),
        ("", "2026-11-22T10:00Z", "write it without a zone"),
        ("2026-11-23", "2026-11-22", "nothing is between them"),
    ],
)
def test_what_is_no_part_of_a_time_is_said(since: str, until: str, told: str) -> None:
    with pytest.raises(QueryError, match=told):
        within_said(since, until)


@pytest.mark.parametrize("option", [["--live"], ["--record", "r"]])
def test_what_needs_the_whole_log_says_so(
    option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SearchbenchError, match="leave out --since and --until"):
        logs(capsys, LOGS / "nginx-timed.log", "--since", "2026-11-22", *option)


def test_bounds_are_said_in_words() -> None:
    said: Callable[..., str] = lambda *of: str(within_said(*of))  # noqa: E731
    assert said("2026-11-22", "") == "at 2026-11-22 00:00 or later"
    assert said("", "2026-11-22T10:00:30") == "before 2026-11-22 10:00:30"
    assert within_said("", "") is None
