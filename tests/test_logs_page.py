"""What the page of a log and its answer on a terminal lead with, and what stands behind figures."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from searchbench.analysis.logs.headline import headline
from searchbench.analysis.logs.judge import judge_log
from searchbench.analysis.logs.model import LogJudgement
from searchbench.analysis.logs.remarks import percent, seconds
from searchbench.analysis.logs.tenths import limits, tenths
from searchbench.cli import app
from searchbench.errors import QueryError
from searchbench.logs.counts import Options, count
from searchbench.logs.sources import find
from searchbench.report.document.blocks import Block, Details, Document, Figure, Notice, Table, Text
from searchbench.report.document.logs import of_log
from searchbench.report.figures import logs_groups
from searchbench.report.write import write_log_page

START = datetime(2026, 11, 20, 9)


def plain(second: float, ms: float, text: str, index: str = "docs", more: str = "9 (0,20)") -> str:
    """A line of Sphinx's plain log, so many seconds after the start."""
    at = START + timedelta(seconds=second)
    return (
        f"[{at:%a %b %d %H:%M:%S}.{at.microsecond // 1000:03d} {at.year}] {ms / 1000:.3f} sec "
        f"[ext2/0/rel {more}] [{index}] {text}\n"
    )


def judged(*paths: Path, sizes: dict[str, int] | None = None, **options: object) -> LogJudgement:
    return judge_log(count(find(paths), Options(**options)), sizes=sizes)  # type: ignore[arg-type]


def rows(path: Path, made: Sequence[dict[str, object]]) -> Path:
    """A log of JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in made))
    return path


def searches(n: int, **more: object) -> list[dict[str, object]]:
    """So many searches of 10 to 109 ms, one a second."""
    return [{"time": 1_767_225_600 + i, "took_ms": 10 + i % 100, "q": f"w{i}", "hits": 3, **more}
            for i in range(n)]  # fmt: skip


def blocks_of(document: Document) -> Iterator[Block]:
    """Every block in its order, those within others after what they stand in."""

    def inside(blocks: Sequence[Block]) -> Iterator[Block]:
        for block in blocks:
            yield block
            if isinstance(block, Details):
                yield from inside(block.blocks)

    for section in document.sections:
        yield from inside(section.blocks)


def table_below(document: Document, name: str) -> Table:
    """The first table after a figure."""
    blocks = list(blocks_of(document))
    at = next(i for i, b in enumerate(blocks) if isinstance(b, Figure) and b.name == name)
    return next(b for b in blocks[at:] if isinstance(b, Table))


def cells(made: Table, column: str) -> list[str]:
    at = [c.name for c in made.columns].index(column)
    return [row[at].text for row in made.rows]


def test_one_sentence_of_findings_leads_the_terminal_the_page_and_the_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "query.log"
    log.write_text("".join(plain(i, 5 + i % 40, f"w{i}") for i in range(400)))
    page = tmp_path / "page.html"
    assert app(["logs", str(log), "--page", str(page)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    sentence = "Half of the 400 searches took less than 26 ms, and 99 % less than 45 ms."
    assert said.startswith(f"{sentence} 400 lines (sphinx) in")
    first, *_ = of_log(judged(log)).sections[0].blocks
    assert first == Text(sentence, "lead")
    (lead,) = re.findall(r'<p class="lead"><bdi>(.*?)</bdi>', page.read_text())
    assert lead == sentence
    assert app(["logs", str(log), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["headline"] == sentence


def test_what_went_wrong_is_in_the_sentence_and_its_warning_beside_it(tmp_path: Path) -> None:
    failing = [{**row, "status": 500 if i % 4 == 0 else 200}
               for i, row in enumerate(searches(400))]  # fmt: skip
    log = rows(tmp_path / "a.jsonl", failing)
    log.write_text(log.read_text() + "no line\n" * 100)
    found = judged(log)
    assert found.headline.endswith("; 20 % of the lines could not be read, and 25 % failed.")
    sentence, *beside = of_log(found).sections[0].blocks
    assert isinstance(sentence, Text)
    warned = [b for b in beside if isinstance(b, Notice)]
    assert [b.title for b in warned] == ["Errors", "Lines that could not be read"]
    assert beside[: len(warned)] == warned, "warnings stand next to the sentence, before all points"
    assert all(b.meaning for b in warned)


def test_the_sentence_says_whose_times_it_has(tmp_path: Path) -> None:
    slow = "".join(
        f"2026-01-02 03:04:{i % 60:02}.000 UTC [7] LOG:  duration: {100 + i % 70}.123 ms  "
        f"statement: SELECT {i}\n"
        for i in range(300)
    )
    (tmp_path / "slow.log").write_text(slow)
    found = judged(tmp_path / "slow.log")
    assert "in the log, which seems to have only those longer than 100 ms, took" in found.headline
    few = rows(tmp_path / "a.jsonl", [*searches(10), *({"q": "x", "time": 1_767_225_600 + i}
                                                       for i in range(90))])  # fmt: skip
    assert "the 10 searches whose time the log has (10 % of all) took" in judged(few).headline
    untimed = rows(tmp_path / "b.jsonl", [{"q": "x", "time": 1_767_225_600 + i} for i in range(9)])
    assert judged(untimed, format="json").headline.startswith(
        "The log has 9 searches, and no field that is known to say how long they took"
    )
    none = replace(judged(untimed, format="json"), all=None, others=7, parts=0)
    assert headline(none) == "None of the 7 entries that were read is a search."


def test_an_hour_that_stands_out_is_said_after_shares_of_all(tmp_path: Path) -> None:
    made = [
        {"time": 1_767_225_600 + 3600 * hour + 10 * i, "took_ms": 900 if hour == 2 else 100,
         "q": f"w{hour} {i}", "hits": 0 if i % 10 == 0 else 3}
        for hour in range(4) for i in range(200)
    ]  # fmt: skip
    found = judged(rows(tmp_path / "a.jsonl", made), zone="UTC")
    assert found.headline.endswith(
        "; 10 % found nothing, and searches took 9 times as long as usual in the hour from "
        "2026-01-01 02:00 on."
    )


def test_what_found_nothing_is_told_of_both_halves_of_the_time(tmp_path: Path) -> None:
    made = [
        {"time": 1_767_225_600 + 10 * i, "took_ms": 5, "q": f"w{i}",
         "hits": 0 if i % (20 if i < 1000 else 5) == 0 else 3}
        for i in range(2000)
    ]  # fmt: skip
    found = judged(rows(tmp_path / "a.jsonl", made), zone="UTC")
    (text,) = (r.text for r in found.remarks if r.title == "No hits")
    assert text == (
        "12 % of the searches found nothing: 5.1 % in the first half of the log's time, 20 % in "
        "the second."
    )
    # Where half of the searches do not say what they found, minutes have no share.
    made += [{**row, "hits": None} for row in made]
    found = judged(rows(tmp_path / "b.jsonl", made), zone="UTC")
    (text,) = (r.text for r in found.remarks if r.title == "No hits")
    assert "half" not in text


def test_a_unit_that_nobody_named_is_told(tmp_path: Path) -> None:
    made = [{"time": 1_767_225_600 + i, "took": 0.02, "q": f"w{i}"} for i in range(30)]
    path = rows(tmp_path / "a.jsonl", made)
    (told,) = (r for r in judged(path).remarks if r.title == "Unit of times")
    assert told.text == (
        "a.jsonl: 30 × a duration named `took`, taken for milliseconds as Elasticsearch writes it."
    )
    named = count(find([path]), Options(columns=(("took", "duration", "s"),)))
    assert named.numbers("minutes", "max_ns").max() == 20_000_000
    assert "Unit of times" not in [r.title for r in judge_log(named).remarks]
    unnamed = count(find([path]), Options(columns=(("took", "duration", ""),)))
    (told,) = (r for r in judge_log(unnamed).remarks if r.title == "Unit of times")
    assert told.text == "a.jsonl: 30 × a duration without a unit, taken for seconds."
    units = rows(tmp_path / "b.jsonl", [{**row, "took": "20ms"} for row in made])
    assert "Unit of times" not in [r.title for r in judged(units).remarks]


def test_the_terminal_names_the_worst_minutes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [
        {"time": 1_767_225_600 + 10 * i, "took_ms": 9000 if i == 300 else 10, "q": f"w{i}"}
        for i in range(600)
    ]
    path = rows(tmp_path / "a.jsonl", made)
    assert app(["logs", str(path), "--zone", "UTC"]) == 0
    shown = capsys.readouterr().out
    table = shown[shown.index("worst minutes") :].splitlines()
    assert table[1].split() == ["2026-01-01", "00:50", "6", "1.51", "s", "9", "s", "w300"]


def test_a_share_of_all_and_a_long_time_are_not_written_with_powers_of_ten() -> None:
    assert [percent(s) for s in (0, 0.0123, 0.5, 0.994, 0.997, 1)] == [
        "0 %", "1.2 %", "50 %", "99 %", "more than 99 %", "100 %",
    ]  # fmt: skip
    assert [seconds(s) for s in (999.4, 999.6, 123_456.0)] == ["999 s", "1,000 s", "123,456 s"]


def test_every_figure_has_its_table(tmp_path: Path) -> None:
    rng = random.Random(1)
    made = [
        {"time": 1_767_225_600 + 20 * i, "took_ms": round(10 ** rng.gauss(1.5, 0.5), 3),
         "q": " ".join(["w"] * rng.randrange(1, 8)), "index": f"i{i % 3}", "server": f"s{i % 2}"}
        for i in range(3000)
    ]  # fmt: skip
    found = judged(rows(tmp_path / "a.jsonl", made), sizes={"i0": 10**6, "i1": 10**8, "i2": 10**9})
    document = of_log(found)
    names = {b.name for b in blocks_of(document) if isinstance(b, Figure)}
    kinds = ("words", "size", "index", "server")
    assert names == {
        "times", "over-time", "by-words", "by-size",
        *(f"{what}-by-{kind}" for what in ("times", "within") for kind in kinds),
    }  # fmt: skip
    times = table_below(document, "times")
    assert sum(int(n.replace(",", "")) for n in cells(times, "Searches")) == pytest.approx(
        3000, abs=10
    )
    assert cells(times, "Share within")[-1] == "100 %"
    over = table_below(document, "over-time")
    assert [c.name for c in over.columns][:4] == ["From", "Searches", "A second", "Mean"]
    assert sum(int(n) for n in cells(over, "Searches")) == 3000
    assert len(over.rows) == len(found.over)
    for kind in kinds:
        within = table_below(document, f"times-by-{kind}")
        assert within == table_below(document, f"within-by-{kind}")
        assert len(within.rows) >= 2
    by_server = {row.name: row for row in found.by["server"]}
    within = table_below(document, "times-by-server")
    at_100 = dict(zip(cells(within, "Server"), cells(within, "≤ 100 ms"), strict=True))
    for name, row in by_server.items():
        own = [m["took_ms"] for m in made if m["server"] == name]
        share = sum(ms <= 100 for ms in own) / len(own)  # type: ignore[operator]
        assert float(at_100[name].removesuffix(" %")) == pytest.approx(100 * share, abs=0.2)
        assert row.times is not None
        assert row.times.count == len(own)


def test_tenths_of_decades_have_all_times_and_limits_lie_among_them(tmp_path: Path) -> None:
    log = tmp_path / "query.log"
    log.write_text("".join(plain(i, i % 50, f"w{i}") for i in range(500)))
    times = judged(log).spread
    found = tenths(times)
    assert found[0].below
    assert found[0].share == pytest.approx(0.02)
    assert found[0].height == pytest.approx(0.002)
    assert sum(one.n for one in found) == pytest.approx(500)
    assert found[-1].within == pytest.approx(1)
    assert all(a.high_s == pytest.approx(b.low_s) for a, b in pairwise(found))
    assert limits([times]) == (0.001, 0.003, 0.01, 0.03, 0.1)


def test_a_group_with_few_times_has_no_panel_and_many_groups_have_the_first_nine(
    tmp_path: Path,
) -> None:
    made = [{**row, "server": f"s{i % 15:02}"} for i, row in enumerate(searches(1500))]
    made += searches(5, server="seldom")
    found = judged(rows(tmp_path / "a.jsonl", made))
    shown = logs_groups.drawn(found.by["server"])
    assert len(shown) == logs_groups.PANELS
    assert shown == list(found.by["server"][: len(shown)])
    assert "seldom" not in {row.name for row in logs_groups.drawn(found.by["server"][-3:])}
    (figure,) = [b for b in blocks_of(of_log(found))
                 if isinstance(b, Figure) and b.name == "times-by-server"]  # fmt: skip
    assert f"Only the first {len(shown)} groups of the table" in figure.caption


def test_the_page_stays_below_2_mb_whatever_is_in_the_log(tmp_path: Path) -> None:
    """Names as long as they are kept, times over ten decades, more groups than are shown."""
    rng = random.Random(2)
    made = []
    for i in range(30_000):
        index = int(200 * rng.random() ** 2)
        made.append({
            "time": 1_767_225_600 + 60 * i, "duration_us": 1e6 * 10 ** rng.gauss(-2.5, 1.4),
            "server": f"search-{rng.randrange(60)} <b>&" + "検" * 180,
            "index": f"{index:03} <i>&" + "索" * 180, "user": f"{rng.randrange(80)}" + "u" * 590,
            "class": f"SELECT {rng.randrange(90)} " + "<" * 590, "hits": rng.randrange(3),
            "query": "<&" + " ".join(["word"] * rng.randrange(1, 70)) + str(rng.randrange(3000)),
            "status": 500 if i % 50 == 0 else 200,
        })  # fmt: skip
    log = rows(tmp_path / "a.jsonl", made)
    log.write_text(log.read_text() + "no line <>&\n" * 1000)
    counts = count(find([log]), Options(columns=(("class", "class", ""),)))
    names = [n for k, n in zip(counts.texts("groups", "kind"), counts.texts("groups", "name"),
                               strict=True) if k == "index"]  # fmt: skip
    found = judge_log(counts, sizes={n: 10 ** (3 + i % 9) for i, n in enumerate(names)})
    assert len(found.by["server"]) == len(found.by["index"]) == len(found.by["class"]) == 50
    assert len(found.sizes) == len(found.words) == 9
    page = tmp_path / "page.html"
    write_log_page(found, page)
    assert page.stat().st_size < 2_000_000
    assert page.with_suffix(".pdf").stat().st_size < 2_000_000


def test_what_agents_served_stands_beside_what_users_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = []
    for i in range(200):
        lines += [plain(2 * i, 4, f"w{i}", part, "9 (0,1000)") for part in ("part0", "part1")]
        lines.append(plain(2 * i + 0.02, 20, f"w{i}", "whole"))
    log = tmp_path / "query.log"
    log.write_text("".join(lines))
    found = judged(log)
    assert found.all is not None
    assert found.served is not None
    assert (found.all.n, found.served.n, found.parts) == (200, 400, 400)
    assert (found.all.quantiles_s["p50"], found.served.quantiles_s["p50"]) == (0.02, 0.004)
    assert {row.name: row.n for row in found.served_by} == {"part0": 200, "part1": 200}
    (remark,) = [r.text for r in found.remarks if r.title == "As asked, as served"]
    assert "As asked, half of the searches took less than 21 ms" in remark
    assert "As served, half of the parts took less than 5 ms" in remark
    (made,) = [b for b in blocks_of(of_log(found))
               if isinstance(b, Table) and b.columns[1].name == "Entries"
               and b.columns[0].name == ""]  # fmt: skip
    assert cells(made, "p50") == ["20 ms", "4 ms", "4 ms", "4 ms"]
    assert cells(made, "")[:2] == ["As asked: searches", "As served: parts"]
    assert app(["logs", str(log)]) == 0
    told = capsys.readouterr().out
    assert re.search(r"as asked: searches +200 +20 ms", told)
    assert re.search(r"as served: parts +400 +4 ms", told)
    assert app(["logs", str(log), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["served"]["n"], said["served"]["p50_s"]) == (400, 0.004)
    assert [row["name"] for row in said["served_by"]] == ["part0", "part1"]
    log.write_text("".join(plain(i, 3, f"w{i}") for i in range(50)))
    assert judged(log).served is None


def test_a_query_that_was_asked_of_several_indexes_is_one_row_that_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No index alone shows what is asked most: red on nine of them."""
    lines = [plain(5 + i, 10 + i % 9, "red", f"i{i % 9}", f"{i % 2} (0,20)") for i in range(90)]
    lines += [plain(100 + i, 3, f"blue {i % 30}", "i0") for i in range(30 * 15)]
    long = "w" * 220
    lines += [plain(600 + i, 3, f"{long} {i % 2}", f"i{i % 2}") for i in range(40)]
    log = tmp_path / "query.log"
    log.write_text("".join(lines))
    found = judged(log)
    red = found.most[0]
    assert (red.text, red.n, red.indexes, red.zero) == ("red", 90, 9, 45)
    assert red.total_s == pytest.approx(sum(10 + i % 9 for i in range(90)) / 1000)
    assert (red.max_s, red.first_s) == (0.018, int((START - datetime(1970, 1, 1)).total_seconds()))
    assert found.longest[0] == found.without_hits[0] == red
    assert {one.indexes for one in found.most[1:]} == {1}
    # What was cut off of the two long ones differs, so they stay two.
    cut = [one for one in found.most if one.text.startswith("www")]
    assert [one.n for one in cut] == [20, 20]
    (made,) = [b for b in blocks_of(of_log(found))
               if isinstance(b, Table) and b.columns[0].name == "Query"][:1]  # fmt: skip
    assert cells(made, "Indexes")[0] == "9"
    assert app(["logs", str(log)]) == 0
    assert re.search(r"times +indexes +in all.*\n +90 +9 ", capsys.readouterr().out)
    # On one index there is nothing to say.
    log.write_text("".join(plain(i, 3, "red") for i in range(50)))
    (made,) = [b for b in blocks_of(of_log(judged(log)))
               if isinstance(b, Table) and b.columns[0].name == "Query"][:1]  # fmt: skip
    assert "Indexes" not in [c.name for c in made.columns]


def test_sizes_of_indexes_come_from_a_folder_or_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "query.log"
    indexes = ("small", "middle", "large", "unknown")
    took = {"small": 2, "middle": 20, "large": 200, "unknown": 5}
    log.write_text("".join(plain(i, took[n], f"w{i}", n)
                           for i in range(100) for n in indexes))  # fmt: skip
    folder = tmp_path / "data"
    (folder / "below").mkdir(parents=True)
    for name, size in (("small", 2_000), ("middle", 20_000), ("below/large", 200_000)):
        (folder / f"{name}.spd").write_bytes(b"\0" * size)
        (folder / f"{name}.spi").write_bytes(b"\0" * 9)
    file = tmp_path / "sizes.txt"
    file.write_text("small 2000\n\nmiddle\t20kB\nlarge, 200000\n")
    said = []
    for sizes in (folder, file):
        assert app(["logs", str(log), "--sizes", str(sizes), "--json"]) == 0
        said.append(json.loads(capsys.readouterr().out)["by_size"])
    assert said[0] == said[1]
    assert [(row["name"], row["n"], row["p50_s"]) for row in said[0]] == [
        ("300 B – 3 kB", 100, 0.002), ("3 kB – 30 kB", 100, 0.02), ("30 kB – 300 kB", 100, 0.2),
        ("size not given", 100, 0.005),
    ]  # fmt: skip
    assert app(["logs", str(log), "--sizes", str(file)]) == 0
    assert "size of index" in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    with pytest.raises(QueryError, match=r"has no \.spd files"):
        app(["logs", str(log), "--sizes", str(tmp_path / "empty")])
    file.write_text("small 2000\nmiddle big\n")
    with pytest.raises(QueryError, match=r"sizes\.txt:2: .*a line is a NAME and BYTES"):
        app(["logs", str(log), "--sizes", str(file)])
