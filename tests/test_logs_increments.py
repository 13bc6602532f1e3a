"""Two increments of a log say what one reading says, wherever the first of them ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchbench.logs import record as records
from searchbench.logs.counts import Counts, Options, count
from searchbench.logs.sources import find

LOGS = Path(__file__).parent / "logs"
ZONE = Options(zone="Europe/Paris")
PLACES = (
    "bytes", "skipped_bytes", "read_bytes", "head_bytes", "digest", "known_as", "tail", "folder",
)  # fmt: skip
LINE = '{time} {_} "{request}" {status} {_} {_} {duration:ms} {_}'
MOST_CUTS = 12  # of a log

# As PostgreSQL's manual describes csvlog: a record may go over several lines.
CSVLOG = "".join(
    f'2026-11-22 11:03:{i % 60:02d}.970 CET,"app","shop",{4000 + i % 3},"[local]",{i}.1,{i},'
    f'"SELECT",2026-11-22 11:00:00 CET,3/{i},0,{severity},00000,"{text}",,,,,,{asked},,,"web"\n'
    for i in range(40)
    for severity, text, asked in (
        ("LOG", f"duration: {i}.5 ms  statement: SELECT a\nFROM t\n\nWHERE b = {i};", ""),
        ("ERROR", 'a ""name"" that is none', f'"SELECT\n2026-11-22 11:03:30.970 CET,{i}"'),
        ("LOG", f"duration: 0.{i} ms", ""),
    )
)
SPHINXQL = "".join(
    f"/* Fri Nov 20 20:40:{i % 60:02d}.065 2026 conn {i} real 0.0{i:02d} wall 0.0{i:02d} "
    f"found {i} */ SELECT *\nFROM docs\nWHERE MATCH('red\nlamp {i % 7}')\n"
    f"LIMIT 0,{1000 if i % 3 == 0 else 20}; /* ios=8 kb=1.2 ioms=0.1 */\n"
    for i in range(40)
)
# The clock goes back, where a cut may be.
SPHINX = "".join(
    f"[Fri Nov 20 20:{30 + i % 2 * 5}:{i:02d}.302 2026] 0.0{i:02d} sec 0.0{i:02d} sec "
    f"[ext2/0/rel {i} (0,{1000 if i % 4 == 1 else 20})] [i{i % 4}] red {i // 4}\n"
    for i in range(50)
)
MADE = {"made-csvlog.csv": CSVLOG, "sphinxql-lines.log": SPHINXQL, "sphinx-back.log": SPHINX}
NAMES = sorted(p.name for p in LOGS.glob("*") if p.name != "truth.json") + list(MADE)


def of_sources(counts: Counts) -> list[dict[str, object]]:
    """What is said of the sources; how far a record has read them is no part of the answer."""
    said = [{k: v for k, v in s.items() if k not in PLACES} for s in counts.sources]
    return [{**s, "examples": [list(one) for one in s["examples"]]} for s in said]


def same(one: Counts, other: Counts, where: object) -> None:
    """All tables, and all that is said of the sources."""
    for name, table in other.tables.items():
        assert one.tables[name].equals(table), (where, name)
    assert of_sources(one) == of_sources(other), where


def text_of(name: str) -> bytes:
    return MADE[name].encode() if name in MADE else (LOGS / name).read_bytes()


def cuts_of(text: bytes, name: str) -> list[int]:
    """Ends of lines, and places within lines."""
    ends = [at + 1 for at, byte in enumerate(text) if byte == 10]
    step = max(1, len(ends) // MOST_CUTS)
    chosen = ends[len(ends) // 3 :: step]
    head = 0 if name.endswith(".csv") else 1  # the first line of few formats tells them
    return sorted({at + extra for at in chosen for extra in (0, 1 + at % 23) if at > head})


@pytest.mark.parametrize("name", NAMES)
def test_two_increments_say_what_one_reading_says(tmp_path: Path, name: str) -> None:
    text = text_of(name)
    log = tmp_path / "query.log"
    log.write_bytes(text)
    options = Options(zone="Europe/Paris", line=LINE if name == "apache-custom.log" else "")
    whole = count(find([log], "s"), options)
    for number, at in enumerate(cuts_of(text, name)):
        log.write_bytes(text[:at])
        record = tmp_path / f"record-{number}"
        first = records.add(record, find([log], "s"), options)
        # What is shown so far is what a reading of all whole lines shows.
        log.write_bytes(text[: text.rindex(b"\n", 0, at) + 1])
        same(first.counts, count(find([log], "s"), options), at)
        log.write_bytes(text)
        same(records.add(record, find([log], "s"), options).counts, whole, at)
        same(records.open_log(record).counts, whole, at)


@pytest.mark.parametrize("name", ["mariadb-slow.log", "groonga-query.log", "mariadb-general.log"])
def test_many_increments_and_some_without_anything_new_say_it_too(
    tmp_path: Path, name: str
) -> None:
    text = text_of(name)
    log, record = tmp_path / "query.log", tmp_path / "record"
    for at in [*range(3000, len(text), len(text) // 40), len(text), len(text)]:
        log.write_bytes(text[:at])
        records.add(record, find([log], "s"), ZONE)
        kept = records.add(record, find([log], "s"), ZONE)
    same(kept.counts, count(find([log], "s"), ZONE), "at the end")


def test_an_entry_of_a_file_that_is_gone_is_still_counted(tmp_path: Path) -> None:
    log, other, record = tmp_path / "one.log", tmp_path / "two.log", tmp_path / "record"
    log.write_bytes(text_of("mariadb-slow.log"))
    other.write_bytes(text_of("groonga-query.log"))
    both = count(find([log, other], "s"), ZONE)
    records.add(record, find([log], "s"), ZONE)
    log.unlink()
    same(records.add(record, find([other], "s"), ZONE).counts, both, "both")
