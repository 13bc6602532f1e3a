"""A log counted in pieces, in whatever order, gives the answer of one reading, to the byte."""

from __future__ import annotations

import gzip
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest

from searchbench import _core
from searchbench.analysis.logs.as_json import as_json
from searchbench.analysis.logs.judge import judge_log
from searchbench.cli import app
from searchbench.errors import NotInstalled, QueryError, SearchbenchError
from searchbench.lab.spark import executor
from searchbench.lab.spark.reading import added
from searchbench.lab.spark.session import insist_possible
from searchbench.logs import record as records
from searchbench.logs.counts import Counts, Options, add_tables, count, finished, tables_of
from searchbench.logs.pieces import (
    BLOCK_BYTES,
    Piece,
    count_pieces,
    cut,
    in_any_order,
    joined,
    looked_at,
    shared_out,
)
from searchbench.logs.sources import Source, find

LOGS = Path(__file__).parent / "logs"


def in_pieces(
    sources: Sequence[Source],
    options: Options,
    before: Mapping[str, pa.Table] | None = None,
    on_tick: Callable[[int], object] | None = None,
    *,
    most_bytes: int = BLOCK_BYTES,
    shares: int = 3,
    meanwhile: Callable[[], object] = lambda: None,
) -> Counts:
    """What the driver and the executors of Spark do, by turns, in an order that is shuffled."""
    whole, refused = looked_at(sources, options)
    meanwhile()
    work = shared_out(cut(whole, most_bytes), shares)
    mixed = random.Random(7)
    for n, share in enumerate(work):
        # A file is read behind the one that it goes on with.
        runs: list[list[Piece]] = []
        for piece in share:
            if piece.source.follows:
                runs[-1].append(piece)
            else:
                runs.append([piece])
        mixed.shuffle(runs)
        work[n] = [piece for run in runs for piece in run]
    parts = defaultdict(list)
    for share in reversed(work):
        for key, part in executor.read(share, options, again=False):
            parts[key].append(part)
    log = _core.Log(options.distinct)
    if before is not None:
        add_tables(log, before)
    keys = mixed.sample(sorted(parts), len(parts))
    found = added(log, [(key, executor.merge(parts[key], options.distinct)) for key in keys])
    reads = joined([entry for entries, _ in found for entry in entries], refused)
    return Counts(tables_of(log), [finished(s, r) for s, r in zip(sources, reads, strict=True)])


def said(counts: Counts) -> bytes:
    """The answer, as --json prints it."""
    return orjson.dumps(as_json(judge_log(counts)), option=orjson.OPT_SERIALIZE_NUMPY, default=str)


def generated(path: Path, lines: int, start_s: int, seed: int = 1) -> list[bytes]:
    _core.generate_log(
        str(path), lines=lines, server=0, indexes=20, distinct=50_000, seed=seed,
        start_s=start_s, per_s=20.0,
    )  # fmt: skip
    return path.read_bytes().splitlines(keepends=True)


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More than three blocks. Where the second begins, the clock goes back by months; before and
    behind are lines that cannot be read; the last line has no end."""
    folder = tmp_path_factory.mktemp("big")
    later = generated(folder / "later", 160_000, 1_230_000_000)
    earlier = generated(folder / "earlier", 300_000, 1_215_000_000, seed=2)
    text = bytearray()
    for number, line in enumerate(later):
        if number in (10, 20, 10_000):
            text += b"[what is this?\n"
        text += line
        if len(text) >= BLOCK_BYTES:
            break
    assert len(text) >= BLOCK_BYTES
    for number, line in enumerate(earlier):
        if number in (5, 50, 500, 200_000):
            text += b"and this?\n"
        text += line
    assert len(text) > 3 * BLOCK_BYTES
    path = folder / "query.log"
    path.write_bytes(text + b"[Wed Jul  2")
    return path


@pytest.mark.parametrize(("blocks", "shares"), [(1, 1), (1, 3), (2, 2), (9, 1)])
def test_blocks_of_a_file_give_the_answer_of_the_whole(big: Path, blocks: int, shares: int) -> None:
    options = Options(zone="Europe/Paris")
    whole = count(find([big]), options)
    (source,) = whole.sources
    lines = big.read_bytes().splitlines()
    bad = [at for at, line in enumerate(lines, 1) if b"this?" in line]
    assert [line for line, *_ in source["examples"]] == bad[:5]
    assert source["unread"] >= len(bad) == 7
    pieces = cut(looked_at(find([big]), options)[0], blocks * BLOCK_BYTES)
    assert len(pieces) == -(-big.stat().st_size // (blocks * BLOCK_BYTES))
    found = in_pieces(find([big]), options, most_bytes=blocks * BLOCK_BYTES, shares=shares)
    assert said(found) == said(whole)
    assert in_any_order(found)
    for name, table in whole.tables.items():
        assert found.tables[name].equals(table), name


def test_a_clock_that_goes_back_between_two_pieces_is_seen(big: Path) -> None:
    options = Options(threads=1)
    pieces = cut(looked_at(find([big]), options)[0], BLOCK_BYTES)
    found = [count_pieces(_core.Log(), [piece], options)[0] for piece in pieces]
    assert sum(read["back"] for *_, read in found) == 0
    assert joined(found, {})[0]["back"] == 1


def test_logs_of_all_formats_packed_or_not_give_the_same_in_pieces(tmp_path: Path) -> None:
    for path in sorted(LOGS.iterdir()):
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
            (tmp_path / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    sources = find([tmp_path])
    whole = count(sources, Options())
    found = in_pieces(sources, Options(), shares=4)
    assert len({s["format"] for s in whole.sources if s["format"]}) >= 10
    assert any(s["refused"] for s in whole.sources)
    assert said(found) == said(whole)


def test_a_record_that_grows_in_pieces_is_that_of_one_machine(tmp_path: Path, big: Path) -> None:
    text = big.read_bytes()
    answers = []
    for name, counting in (("one", count), ("pieces", in_pieces)):
        log, record = tmp_path / "query.log", tmp_path / name
        # Ends within a line, and is gone on with.
        for upto in (2 * BLOCK_BYTES + 77, len(text)):
            log.write_bytes(text[:upto])
            kept = records.add(record, find([log], "s"), Options(), counting=counting)
        assert sum(s["read_bytes"] for s in kept.counts.sources) == text.rindex(b"\n") + 1
        answers.append(said(kept.counts))
    assert answers[0] == answers[1]


def test_what_is_appended_meanwhile_is_left_for_the_next_time(tmp_path: Path, big: Path) -> None:
    log = tmp_path / "query.log"
    log.write_bytes(big.read_bytes())
    whole = said(count(find([log]), Options()))

    def append() -> None:
        with log.open("ab") as file:
            file.write(b"01 sec [all/0/rel 1 (0,20)] [a] b\n" * 100_000)

    assert said(in_pieces(find([log]), Options(), meanwhile=append)) == whole
    assert said(count(find([log]), Options())) != whole


@pytest.mark.parametrize("change", ["shorter", "other"])
def test_another_file_at_the_same_path_is_not_counted(tmp_path: Path, change: str) -> None:
    log = tmp_path / "query.log"
    lines = generated(log, 3000, 1_215_000_000)

    def exchange() -> None:
        log.write_bytes(b"".join(lines[:2000] if change == "shorter" else lines[:-1] + lines[:1]))

    with pytest.raises(QueryError, match=r"query\.log is another file there, or was changed"):
        in_pieces(find([log]), Options(), meanwhile=exchange)


def test_above_the_limit_counts_are_too_low_by_what_is_said_and_no_identity_is_claimed(
    big: Path,
) -> None:
    exact = count(find([big]), Options())
    found = in_pieces(find([big]), Options(distinct=5_000))
    assert not in_any_order(found)
    below = int(found.numbers("dropped", "below")[0])
    true = dict(zip(exact.numbers("queries", "hash"), exact.numbers("queries", "n"), strict=True))
    kept = dict(zip(found.numbers("queries", "hash"), found.numbers("queries", "n"), strict=True))
    assert 0 < len(kept) <= 5_000 < len(true)
    assert all(n <= true[h] <= n + below for h, n in kept.items())
    assert max(int(n) for h, n in true.items() if h not in kept) <= below
    total = int(found.numbers("dropped", "dropped")[0]) + int(found.numbers("queries", "n").sum())
    assert total == int(exact.numbers("queries", "n").sum())
    # How many there are is estimated from what all readings saw.
    one = count(find([big]), Options(distinct=5_000))
    assert found.tables["dropped"].column("registers") == one.tables["dropped"].column("registers")


def test_more_names_than_are_told_apart_claim_no_identity(tmp_path: Path) -> None:
    log = tmp_path / "app.jsonl"
    log.write_bytes(
        b"".join(
            orjson.dumps({"timestamp": "2026-01-05T09:00:00Z", "took": 2, "query": "a",
                          "user": f"u{i}"}) + b"\n"
            for i in range(20_100)
        )
    )  # fmt: skip
    options = Options(format="json", columns=(("user", "user", ""),))
    assert not in_any_order(in_pieces(find([log]), options))
    few = tmp_path / "few.jsonl"
    few.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:19_000]))
    assert in_any_order(in_pieces(find([few]), options))


def test_shares_are_of_like_work_and_have_every_piece_once() -> None:
    rng = np.random.default_rng(2)
    sizes = [int(n) for n in rng.integers(1, 1000, 40)]
    pieces = [Piece(Source(f"{i}", "s"), i, None, True, n, n, "") for i, n in enumerate(sizes)]
    shares = shared_out(pieces, 6)
    work = [sum(p.work_bytes for p in share) for share in shares]
    assert max(work) - min(work) <= max(sizes)
    assert sorted(p.number for share in shares for p in share) == list(range(40))
    assert len(shared_out(pieces[:2], 6)) == 2


@pytest.mark.parametrize(
    ("said_so", "sentence"),
    [
        (["-", "--spark", "local[2]"], "standard input is not a file that other machines can read"),
        ([str(LOGS), "--spark", "mars:1"], "mars:1 is no master of Spark; write local"),
        ([str(LOGS), "--spark", "local", "--threads", "2"], "--threads is for one machine"),
        ([str(LOGS), "--spark", "local", "--against", "x"], "leave out --spark"),
        (["--spark", "local", "--record", "x"], "name a file or a folder"),
    ],
)
def test_what_spark_cannot_do_is_said_in_one_sentence(said_so: list[str], sentence: str) -> None:
    with pytest.raises(SearchbenchError, match=sentence.replace("[", r"\[")):
        app(["logs", *said_so])


def test_a_missing_extra_or_java_is_named_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nothing: Any = None
    monkeypatch.setitem(sys.modules, "pyspark", nothing)
    with pytest.raises(NotInstalled, match=r"pip install 'searchbench\[spark\]'"):
        insist_possible("local[2]")
    monkeypatch.setattr("searchbench.lab.spark.session.find_spec", lambda name: name)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NotInstalled, match="needs Java 17 or later"):
        insist_possible("local[2]")
