"""What a log was once wrongly said to be, each beside what must stay.

Longer than most files, because each is one case of the same.
"""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from records import Study, by_query
from replaying import about, written
from searchbench.analysis.logs.against import Against, against
from searchbench.analysis.logs.headline import headline
from searchbench.analysis.logs.judge import judge_log
from searchbench.analysis.logs.model import LogJudgement, Moment
from searchbench.logs import record as records
from searchbench.logs.counts import Counts, Options, count
from searchbench.logs.entries import read_entries
from searchbench.logs.searches import searches_of
from searchbench.logs.sources import find
from searchbench.record import open_record
from searchbench.report.tables.logs import _waited

START = datetime(2026, 11, 20, 9)


def judged(*paths: Path, **options: object) -> LogJudgement:
    return judge_log(count(find(paths), Options(**options)))  # type: ignore[arg-type]


def said(of: LogJudgement, title: str) -> str:
    return " ".join(r.text for r in of.remarks if r.title == title)


def plain(second: float, ms: float = 3, text: str = "red") -> str:
    """A line of Sphinx's plain log, so many seconds after the start."""
    at = START + timedelta(seconds=second)
    return (
        f"[{at:%a %b %d %H:%M:%S}.{at.microsecond // 1000:03d} {at.year}] {ms / 1000:.3f} sec "
        f"[all/0/rel 9 (0,20)] [docs] {text}\n"
    )


def test_a_link_beside_its_file_is_not_read_again(tmp_path: Path) -> None:
    """The collector has BASE_current beside the file that it writes."""
    lines = "".join(plain(i, text=f"w{i}") for i in range(300))
    (tmp_path / "searchd_00000").write_text(lines)
    (tmp_path / "searchd_current").symlink_to("searchd_00000")
    (tmp_path / "same").hardlink_to(tmp_path / "searchd_00000")
    found = judged(tmp_path)
    assert found.all is not None
    assert found.all.n == 300
    assert not said(found, "Repetition")
    assert len(find([tmp_path / "searchd_current", tmp_path / "searchd_00000"])) == 1
    # A link alone is read, and another file with the same lines is another file.
    assert [s.path for s in find([tmp_path / "searchd_current"])]
    (tmp_path / "copy").write_text(lines)
    assert len(find([tmp_path])) == 2


SQL = "2026-11-22 10:00:0{i}.000 UTC [12] LOG:  duration: 1.2 ms  statement: SELECT id FROM pages "
QL = "/* Sun Nov 22 11:03:18.16{i} 2026 conn 2 real 0.001 wall 0.001 found 3 */ SELECT * FROM a "
WEB = '10.0.0.1 - - [22/Nov/2026:11:03:0{i} +0000] "GET {path} HTTP/1.1" 200 10 "-" "x" 0.003\n'


@pytest.mark.parametrize(
    ("name", "line", "stays"),
    [
        ("a.log", SQL + "WHERE tsv @@ plainto_tsquery($$zanzibar$$)\n", "$$"),
        ("a.log", SQL + "WHERE tsv @@ plainto_tsquery($q$zanzibar$q$)\n", "$q$"),
        ("a.log", SQL + "WHERE option = 'red' AND author = 'zanzibar'\n", "WHERE option = '"),
        ("a.log", SQL + "WHERE handle LIKE '%@zanzibar'\n", "LIKE '%@"),
        ("a.log", QL + "WHERE MATCH('@title pa') LIMIT 0,10 OPTION ranker=bm25, "
         "comment='of zanzibar';\n", "@title"),
        ("a.log", QL + "WHERE MATCH('zanzibar') OPTION ranker=expr('sum(lcs)+bm25');\n",
         "ranker=expr('sum(lcs)+bm25')"),
        ("a.log", WEB.replace("{path}", "/search?q=%40zanzibar"), "q=@"),
        ("a.log", WEB.replace("{path}", "/search?q=joe%40zanzibar.org"), "@"),
        ("a.log", WEB.replace("{path}", "/search?Zanzibar"), "/search?"),
        ("a.log", WEB.replace("{path}", "/search?red+zanzibar&pretty&page=2"), "&pretty&page=2"),
        ("a.log", WEB.replace("{path}", "/d/select?table=Docs&query=title:@zanzibar"), "title:@"),
        ("a.log", WEB.replace("{path}", "/solr/a/select?q=*:*&fq=author:zanzibar+AND+year:2024"),
         "author:"),
        ("a.log", WEB.replace("{path}", "/solr/a/select?q=*:*&fq=author:(red+zanzibar)"),
         "author:("),
        ("a.jsonl", '{"time": "2026-11-22T11:03:0{i}Z", "q": "@zanzibar lamp"}\n', "@"),
        ("a.jsonl", '{"time": "2026-11-22T11:03:0{i}Z", "q": "zanzibar:lamp"}\n', ":"),
    ],
)  # fmt: skip
def test_no_word_is_left_that_only_looks_like_structure(
    tmp_path: Path, name: str, line: str, stays: str
) -> None:
    log = tmp_path / name
    log.write_text("".join(line.replace("{i}", str(i)) for i in range(5)))
    found = written(log, tmp_path / "out.jsonl", "--anonymise")
    told = json.dumps([found, about(tmp_path / "out.jsonl")])
    assert len(found) == 5
    assert "zanzibar" not in told.lower()
    assert stays in told


def test_reasons_to_leave_out_have_no_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = WEB.replace("{i}", "1")
    texts = [line.replace("{path}", path) for path in ("/search?q=a", "search?q=zanzibar")]
    texts.append(texts[0].replace("/search?q=a HTTP/1.1", "/search?q=zanzibar"))
    (tmp_path / "a.log").write_text("".join(texts))
    written(tmp_path / "a.log", tmp_path / "out.jsonl", "--anonymise")
    assert sum(about(tmp_path / "out.jsonl")["left_out"].values()) == 1
    assert "zanzibar" not in json.dumps(about(tmp_path / "out.jsonl"))
    assert "zanzibar" not in capsys.readouterr().out


def test_no_digits_of_numbers_are_left(tmp_path: Path) -> None:
    slow = {
        "type": "index_search_slowlog", "timestamp": "2026-11-22T02:59:00,971+01:00",
        "level": "INFO", "component": "i.s.s.query", "cluster.name": "e", "node.name": "n",
        "message": "[pages][0]", "took": "662.7micros", "took_millis": "0",
        "total_hits": "4 hits", "stats": "[]", "search_type": "QUERY_THEN_FETCH",
        "total_shards": "1", "id": None,
        "source": json.dumps({"query": {"geo_distance": {"distance": "1km", "place": {
            "lat": 48.85837, "lon": -2.294481e-05}}}}),
    }  # fmt: skip
    (tmp_path / "geo.json").write_text(json.dumps(slow) + "\n")
    (found,) = written(tmp_path / "geo.json", tmp_path / "geo.jsonl", "--anonymise")
    place = found["body"]["query"]["geo_distance"]["place"]
    assert "85837" not in str(place["lat"])
    assert "294481" not in str(place["lon"])
    assert place["lon"] < 0
    hexed = "2026-11-22T10:00:00.000000Z\t   12 Query\tSELECT id FROM t WHERE name = 0x7a616e7a69\n"
    (tmp_path / "general.log").write_text(hexed)
    (found,) = written(tmp_path / "general.log", tmp_path / "hex.jsonl", "--anonymise")
    assert "7a616e7a69" not in found["sql"]
    assert "name = 0x" in found["sql"]


def record_of(place: Path, median_s: float, sigma: float) -> Path:
    study = Study(blocks=3, block_noise=0.0, control=None)
    study.add("a", server=by_query(median_s, {}, sigma), rate_per_s=400.0, seconds=11.0)
    return study.write(place)


def held(record: Path, *logs: Path) -> Against:
    (found,) = against(searches_of(read_entries(find(logs), Options())), open_record(record))
    return found


def answers(of: Against) -> set[str]:
    return {line.answer for line in of.lines}


def slow_log(place: Path, took: np.ndarray, threshold_s: float) -> Path:
    """MariaDB's slow log of two hours, above a threshold."""
    at = np.sort(np.random.default_rng(7).uniform(0, 7200, len(took))).astype(int)
    place.write_text("".join(
        "# User@Host: web[web] @  [127.0.0.1]\n# Thread_id: 19  Schema: wiki  QC_hit: No\n"
        f"# Query_time: {took[i]:.6f}  Lock_time: 0.000000  Rows_sent: 3  Rows_examined: 0\n"
        f"# Rows_affected: 0  Bytes_sent: 11\nSET timestamp={1_700_000_000 + at[i]};\n"
        f"SELECT id FROM pages WHERE MATCH(body) AGAINST('word{i % 40}');\n"
        for i in np.flatnonzero(took > threshold_s)
    ))  # fmt: skip
    return place


def test_a_slow_log_does_not_say_how_long_all_searches_took(tmp_path: Path) -> None:
    """Half take 4 ms, as in the record; the log has those above 50 ms."""
    took = 0.004 * np.exp(1.9 * np.random.default_rng(2).standard_normal(60_000))
    record = record_of(tmp_path / "record", 0.004, 1.9)
    log = slow_log(tmp_path / "slow.log", took, 0.05)
    assert "Hardly any time is below 50" in said(judged(log), "Slow searches only")
    found = held(record, log)
    assert answers(found) <= {"not resolved", "too few"}
    assert "is not resolved" in found.sentence
    assert "Hardly any of the log's times is below 0.05 s" in found.remarks[0]
    # With a threshold of 0 it has all, and is as good as any other log.
    every = slow_log(tmp_path / "all.log", took[:20_000], 0.0)
    assert not said(judged(every), "Slow searches only")
    assert "the same" in answers(held(record, every))


def json_log(place: Path, n: int, seed: int, key: str, unit_s: float, median_s: float) -> Path:
    rng = np.random.default_rng(seed)
    at = np.sort(rng.uniform(0, 7200, n))
    took = median_s * np.exp(0.25 * rng.standard_normal(n))
    place.write_text("".join(
        json.dumps({"time": 1.7e9 + at[i], "q": f"word{i % 40}", key: int(took[i] / unit_s)}) + "\n"
        for i in range(n)
    ))  # fmt: skip
    return place


def test_a_coarse_log_beside_a_fine_one_leaves_quantiles_unresolved(tmp_path: Path) -> None:
    """One server writes whole milliseconds, the other microseconds; both are as the record is."""
    record = record_of(tmp_path / "record", 0.0017, 0.25)
    fine = json_log(tmp_path / "a.jsonl", 22_000, 1, "duration_us", 1e-6, 0.0017)
    coarse = json_log(tmp_path / "b.jsonl", 18_000, 2, "took_ms", 1e-3, 0.0017)
    assert not answers(held(record, fine, coarse)) & {"slower", "faster"}
    assert answers(held(record, fine)) == {"the same"}
    # What is apart by more than that is still found.
    far = json_log(tmp_path / "c.jsonl", 18_000, 2, "took_ms", 1e-3, 0.017)
    farther = json_log(tmp_path / "d.jsonl", 22_000, 1, "duration_us", 1e-6, 0.017)
    assert answers(held(record, far, farther)) == {"faster"}


def web(place: Path, hours: list[int], bad: int) -> Path:
    """nginx in Tokyo; in one hour searches take ten times as long."""
    place.write_text("".join(
        f'10.0.0.1 - - [20/Nov/2026:{hour}:{i // 5:02d}:{i % 5 * 9:02d} +0900] "GET /search?q=w{i} '
        f'HTTP/1.1" 200 10 "-" "x" {0.5 if hour == bad else 0.05:.3f}\n'
        for hour in hours for i in range(300)
    ))  # fmt: skip
    return place


def test_it_is_said_by_which_clock_the_worst_hour_is(tmp_path: Path) -> None:
    """At 22:00 in Tokyo, which is 13:00 UTC: the log does not write 13:00."""
    found = said(judged(web(tmp_path / "a.log", [18, 19, 20, 21, 22, 23], 22)), "Worst hour")
    assert "from 2026-11-20 13:00 on (UTC where the log names its zone, else as it" in found
    lines = "".join(
        plain(3600 * hour + 12 * i, 500 if hour == 3 else 50) for hour in range(6)
        for i in range(300)
    )  # fmt: skip
    (tmp_path / "b.log").write_text(lines)
    own = said(judged(tmp_path / "b.log"), "Worst hour")
    assert "from 2026-11-20 12:00 on (as the log writes it)" in own
    of = judge_log(count(find([tmp_path / "b.log"]), Options(zone="Asia/Tokyo")), zone="Asia/Tokyo")
    assert "from 2026-11-20 03:00 on (UTC)" in said(of, "Worst hour")


@pytest.mark.parametrize(
    ("start", "lasts", "known"), [(55, 70, False), (10, 20, False), (30, 300, True)]
)
def test_the_rate_is_that_of_whole_minutes(
    tmp_path: Path, start: int, lasts: int, known: bool
) -> None:
    """A hundred a second all the time, from the middle of a minute to the middle of another."""
    lines = (plain(start + i / 100, text=f"w{i % 50}") for i in range(100 * lasts))
    (tmp_path / "a.log").write_text("".join(lines))
    found = judged(tmp_path / "a.log")
    if lasts == 70:
        # One whole minute lies between the two that were cut short.
        assert found.rate_mean == pytest.approx(100, rel=0.01)
        return
    assert (found.rate_mean is not None) == known
    assert bool(said(found, "Rate")) == known
    if known:
        assert (found.rate_mean, found.rate_peak) == pytest.approx((100, 100), rel=0.01)


def test_repeats_are_of_the_searches_that_have_words(tmp_path: Path) -> None:
    """Nine of ten searches are scans without words."""
    lines = (plain(i, text=f"word {i // 10 % 20}" if i % 10 == 0 else "") for i in range(4000))
    (tmp_path / "a.log").write_text("".join(lines))
    found = said(judged(tmp_path / "a.log"), "Repetition")
    assert found.startswith("Of the searches whose words the log has (10 % of all), 95 % repeat")
    (tmp_path / "b.log").write_text("".join(plain(i, text=f"word {i % 20}") for i in range(400)))
    assert said(judged(tmp_path / "b.log"), "Repetition").startswith("95 % of the searches repeat")


def ql(second: int, text: str, failed: bool) -> str:
    at = START + timedelta(seconds=second)
    end = "; /* error=query timed out */" if failed else ";"
    return (
        f"/* {at:%a %b %d %H:%M:%S}.000 {at.year} conn 2 real 3.000 wall 3.000 found 0 */ SELECT * "
        f"FROM part1 WHERE MATCH('{text}') LIMIT 0,10{end}\n"
    )


def asked(second: int, word: str) -> str:
    """A line of a web server's log, which does not say how much was found."""
    at = START + timedelta(seconds=second)
    return (
        f'10.0.0.1 - - [{at:%d/%b/%Y:%H:%M:%S} +0000] "GET /search?q={word} HTTP/1.1" 200 10 "-" '
        '"x" 0.003\n'
    )


def test_what_found_nothing_is_of_the_logs_that_say_it(tmp_path: Path) -> None:
    """Of 9,000 searches nothing is known; of 100 others a half found nothing."""
    (tmp_path / "access.log").write_text("".join(asked(i, f"w{i}") for i in range(9000)))
    hits = [plain(i, text=f"v{i}") for i in range(100)]
    nothing = [one.replace("rel 9", "rel 0") if i % 2 else one for i, one in enumerate(hits)]
    (tmp_path / "plain.log").write_text("".join(nothing))
    found = judged(tmp_path / "access.log", tmp_path / "plain.log")
    assert found.all is not None
    assert (found.all.n, found.all.hits_known) == (9100, 100)
    assert "found nothing" not in headline(found)
    assert said(found, "No hits") == (
        "The log says of 100 of the 9,100 searches how much they found: 50 % of these found "
        "nothing."
    )
    alone = judged(tmp_path / "plain.log")
    assert "50 % found nothing" in headline(alone)
    assert said(alone, "No hits").startswith("50 % of the searches found nothing")


def test_the_time_of_a_minute_in_all_is_that_of_the_searches_whose_time_is_known() -> None:
    one = Moment(0, 10_000, 1.0, 1.0, 1.0, "x", 0, 0, 100)
    assert _waited(one) == 100.0


def test_no_cache_saves_what_failed(tmp_path: Path) -> None:
    """Each of 200 searches is tried five times, and fails."""
    failing = tmp_path / "a.log"
    failing.write_text("".join(ql(i, f"w{i // 5}", True) for i in range(1000)))
    found = judged(failing)
    assert found.repeats is not None
    assert found.repeats.repeated == pytest.approx(0.8)
    assert [cache.lru for cache in found.repeats.caches] == [0.0]
    assert "would have saved" not in said(found, "Repetition")
    answered = tmp_path / "b.log"
    answered.write_text("".join(ql(i, f"w{i // 5}", False) for i in range(1000)))
    assert "would have saved" in said(judged(answered), "Repetition")


def test_errors_are_of_the_logs_that_have_them(tmp_path: Path) -> None:
    """Of 900 searches nothing is known; of 100 others a tenth failed."""
    (tmp_path / "plain.log").write_text("".join(plain(i, text=f"w{i}") for i in range(900)))
    (tmp_path / "ql.log").write_text("".join(ql(i, f"w{i}", i % 10 == 0) for i in range(100)))
    found = judged(tmp_path / "plain.log", tmp_path / "ql.log")
    assert found.all is not None
    assert found.all.errors is None
    assert said(found, "Errors") == (
        "The logs say of 100 of the 1,000 searches whether they failed: 10 % of these did."
    )
    alone = judged(tmp_path / "ql.log")
    assert alone.all is not None
    assert alone.all.errors == pytest.approx(0.1)
    assert said(alone, "Errors") == "10 % of the searches failed."


def test_times_are_of_the_searches_that_have_them(tmp_path: Path) -> None:
    line = WEB.replace("{path}", "/search?q=a").replace("0{i}", "01")
    log = tmp_path / "a.log"
    log.write_text("".join(line if i % 50 == 0 else line[:-7] + "\n" for i in range(1000)))
    assert "Half of the searches whose time the log has (2 % of all) took" in said(
        judged(log), "Times"
    )


def test_more_new_names_than_are_kept_are_not_counted_as_so_many(tmp_path: Path) -> None:
    log, options = tmp_path / "a.jsonl", Options(columns=(("kind", "class", ""),))
    told = []
    with log.open("a") as file:
        for begin, end in ((0, 50), (50, 300), (300, 303)):
            for i in range(begin, end):
                file.write(json.dumps({"time": 1.7e9 + i, "q": "x", "kind": f"c{i}"}) + "\n")
            file.flush()
            kept = records.add(tmp_path / "record", find([log]), options)
            of = judge_log(kept.counts, new=kept.about["increments"][-1]["new"])
            told.append(said(of, "New").partition(":")[0])
    assert told == ["", "100 or more classes not seen before", "3 classes not seen before"]


@pytest.mark.parametrize("packed", [False, True])
def test_a_log_that_is_rotated_while_it_is_read_is_not_read_again(
    tmp_path: Path, packed: bool
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log = folder / "query.log"
    log.write_text("".join(plain(i, text=f"w{i}") for i in range(300)))

    def counting(*given: Any) -> Counts:
        found = count(*given)
        if packed:
            (folder / "query.log.1.gz").write_bytes(gzip.compress(log.read_bytes()))
            log.unlink()
        else:
            log.rename(folder / "query.log.1")
        log.write_text(plain(4000, text="new"))
        return found

    records.add(tmp_path / "record", find([folder]), Options(), None, counting)
    found = records.add(tmp_path / "record", find([folder]), Options())
    assert sum(s["entries"] for s in found.counts.sources) == 301
    # What is new in the old one is read, too.
    if not packed:
        with (folder / "query.log.1").open("a") as old:
            old.write(plain(3999, text="late"))
        found = records.add(tmp_path / "record", find([folder]), Options())
        assert sum(s["entries"] for s in found.counts.sources) == 302


@pytest.mark.parametrize("n", [1_000, 20_000])
def test_times_that_go_on_below_the_resolution_do_not_pile_up_there(tmp_path: Path, n: int) -> None:
    rng = np.random.default_rng(4)
    found = []
    for i in range(8):
        log = tmp_path / f"{i}.log"
        ms = 1e3 * 10 ** rng.uniform(-4, 1, n)  # the same in each decade, a fifth below 1 ms
        log.write_text("".join(plain(k / 10, t) for k, t in enumerate(np.floor(ms))))
        found.append(len(judged(log).bands.bands))
    assert found.count(1) >= 7
    # Three fifths of them below it, and a place without any: two bands.
    log = tmp_path / "two.log"
    ms = np.where(rng.random(n) < 0.6, 0, 100 * np.exp(0.3 * rng.standard_normal(n)))
    log.write_text("".join(plain(k / 10, t) for k, t in enumerate(np.floor(ms))))
    assert len(judged(log).bands.bands) == 2


def test_hours_that_differ_by_chance_have_no_worst(tmp_path: Path) -> None:
    """Two days of one server with a long tail: all hours are alike."""
    rng = np.random.default_rng(5)
    took = 20 * np.exp(2.0 * rng.standard_normal((48, 150)))

    def named(ms: np.ndarray) -> bool:
        (tmp_path / "a.log").write_text("".join(
            plain(3600 * hour + 24 * i, one) for hour, row in enumerate(ms.tolist())
            for i, one in enumerate(row)
        ))  # fmt: skip
        return judged(tmp_path / "a.log").worst_hour is not None

    means = took.mean(axis=1)
    assert means.max() > 2 * np.median(means), "else it shows nothing"
    assert not named(took)
    took[30] = 400 * np.exp(0.8 * rng.standard_normal(150))
    assert named(took)


def failing(path: Path, share: float, status: int, took_s: float) -> Path:
    """Two hours of nginx: so many of the searches fail, and take so long; others take 50 ms."""
    rng = np.random.default_rng(1)
    lines = []
    for i in range(12_000):
        at = START + timedelta(seconds=i * 0.6)
        bad = rng.random() < share
        took = took_s if bad else 0.05 * np.exp(0.25 * rng.standard_normal())
        lines.append(
            f'10.0.0.1 - - [{at:%d/%b/%Y:%H:%M:%S} +0000] "GET /search?q=w{i % 40} HTTP/1.1" '
            f'{status if bad else 200} 10 "-" "x" {took:.4f}\n'
        )
    path.write_text("".join(lines))
    return path


def test_answers_are_not_held_against_failures(tmp_path: Path) -> None:
    """Most requests are refused within a millisecond; answers take what they take on record."""
    log = failing(tmp_path / "a.log", 0.6, 503, 0.001)
    found = held(record_of(tmp_path / "record", 0.05, 0.25), log)
    assert answers(found) == {"the same"}
    assert any("of the log's searches failed" in text for text in found.remarks)


def test_failures_after_a_long_time_leave_the_high_quantiles_open(tmp_path: Path) -> None:
    """Of 100 searches three time out after 10 s; in the laboratory none does."""
    log = failing(tmp_path / "a.log", 0.03, 504, 10.0)
    found = held(record_of(tmp_path / "record", 0.05, 0.25), log)
    by_quantile = {line.quantile: line.answer for line in found.lines}
    assert by_quantile[0.5] == "the same"
    assert by_quantile[0.99] == "not resolved"


def test_a_nought_that_is_not_written_does_not_make_a_log_coarse(tmp_path: Path) -> None:
    """Milliseconds as seconds: 0.006 and, of ten of them, 0.01."""
    rng = np.random.default_rng(8)
    took = np.maximum(1, np.rint(6 * np.exp(0.5 * rng.standard_normal(5000)))).astype(int)
    (tmp_path / "a.jsonl").write_text("".join(
        json.dumps({"time": 1.7e9 + i, "q": f"w{i}", "duration_s": ms / 1000}) + "\n"
        for i, ms in enumerate(took.tolist())
    ))  # fmt: skip
    found = judged(tmp_path / "a.jsonl")
    assert found.all is not None
    assert found.resolution_s == 0.001
    for q in (50, 90, 99):
        true = np.sort(took)[int(q / 100 * 5000)] / 1000
        assert found.all.quantiles_s[f"p{q}"] == pytest.approx(true)
    assert not said(found, "Resolution")


def test_a_log_that_writes_two_digits_of_any_time_is_as_fine_as_its_times(tmp_path: Path) -> None:
    """Elasticsearch writes 1.2s beside 60.1ms: that makes 60.1ms no 100 ms."""

    def line(i: int) -> str:
        took, ms = ("1.2s", 1234) if i % 20 == 0 else ("60.1ms", 60)
        return (
            f"[2026-11-22T02:{i // 60 % 60:02d}:{i % 60:02d},971][INFO ][i.s.s.query] [n] [a][0] "
            f"took[{took}], took_millis[{ms}], total_hits[4 hits], stats[], "
            f"search_type[QUERY_THEN_FETCH], total_shards[1], "
            f'source[{{"query":{{"match":{{"title":"w{i}"}}}}}}], id[],\n'
        )

    (tmp_path / "slow.log").write_text("".join(line(i) for i in range(2000)))
    found = judged(tmp_path / "slow.log")
    assert found.all is not None
    assert found.sources[0]["format"] == "slowlog"
    assert found.all.quantiles_s["p50"] == pytest.approx(0.0601, rel=1e-3)


@pytest.mark.parametrize("zone", [[], ["--zone", "Europe/Paris"]])
@pytest.mark.parametrize(("day", "behind"), [(25, 1200), (26, 0)])
def test_an_hour_that_came_twice_is_not_called_faithful(
    tmp_path: Path, zone: list[str], day: int, behind: int
) -> None:
    """Every third second of four hours; in the night of the 25th the clocks of Paris go back. Where
    the zone is known, the two hours are told apart.
    """
    behind = 0 if zone else behind
    lines = []
    for i in range(0, 4 * 3600, 3):
        at = datetime(2026, 10, day, tzinfo=UTC) + timedelta(seconds=i - 3600, milliseconds=i % 997)
        local = at.astimezone(ZoneInfo("Europe/Paris")).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        # One that took two minutes is written when it ends.
        took = 120_000 if i == 300 else 3
        lines.append(json.dumps({"time": local, "request": f"GET /search?q=w{i}", "took_ms": took}))
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    written(tmp_path / "a.jsonl", tmp_path / "out.jsonl", *zone)
    told = about(tmp_path / "out.jsonl")
    assert told["faithful"] == (not behind)
    found = [n for what, n in told["missing"].items() if "clock had gone back" in what]
    assert found == ([pytest.approx(behind, abs=40)] if behind else [])


def test_a_log_beside_copies_of_itself_is_said_to_be_counted_twice(tmp_path: Path) -> None:
    lines = "".join(plain(i, text=f"w{i}") for i in range(300))
    (tmp_path / "query.log").write_text(lines)
    (tmp_path / "other.log").write_text(lines[: len(lines) // 2])
    assert not said(judged(tmp_path), "Counted twice")
    (tmp_path / "query.log.gz").write_bytes(gzip.compress(lines.encode()))
    told = said(judged(tmp_path), "Counted twice")
    assert told.startswith("query.log.gz has as many bytes, lines and entries as query.log, and is")
    (tmp_path / "query.log.bak").write_text(lines)
    assert "query.log.bak and query.log.gz have" in said(judged(tmp_path), "Counted twice")
