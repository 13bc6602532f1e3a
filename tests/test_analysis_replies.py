"""Replies that count as answered and are none: redirects, shed load, one page for everything."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from records import Study, lognormal
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Finding, Judgement
from searchbench.analysis.trial.replies import NOT_COMPARED, ONE_SIZE, REDIRECTS, SIZES
from searchbench.record import Record, open_record
from searchbench.report.document.assemble import document
from searchbench.report.page import page
from searchbench.terminal.answer import exit_code, show, warnings
from searchbench.workload.verbatim.model import Ask
from test_load import run_at, serving

UNREAD = {"notes": [{"kind": NOT_COMPARED, "number": "unknown engine", "severity": "note",
                     "meaning": "its replies are not read"}]}  # fmt: skip


def written(path: Path, measure: str = "sweep", **extra: Any) -> Record:
    study = Study(blocks=1, control=None, judging={"measure": measure})
    study.add("t", system="s", server=lognormal(0.004), clients=4, extra=extra)
    return open_record(study.write(path))


def sized(
    path: Path, busy: float, scatter: float = 0.0, cut: tuple[float, float] = (0.0, 1.0)
) -> Record:
    """Replies of 900 bytes and more when asked alone; this share of 100 bytes under load.

    ``cut``: a share of them, and by what factor these are smaller under load.
    """
    alone = {q: 900 + 10 * q for q in range(40)}
    record = written(
        path, captured={"sizes": {str(q): size for q, size in alone.items()}}, **UNREAD
    )
    rng = np.random.default_rng(1)
    file = next(path.glob("trials/*/samples.parquet"))
    table = pq.read_table(file)
    size = np.array([alone[q] for q in table.column("query").to_pylist()], dtype=float)
    size *= np.exp(scatter * rng.standard_normal(size.size))
    size[rng.random(size.size) < cut[0]] *= cut[1]
    size[rng.random(size.size) < busy] = 100
    at = table.schema.get_field_index("bytes")
    pq.write_table(table.set_column(at, table.schema.field("bytes"),
                                    pa.array(size.astype(np.uint32))), file)  # fmt: skip
    return record


def of(found: Judgement, *kinds: str) -> list[Finding]:
    return [f for f in found.findings if f.kind in kinds]


@pytest.mark.parametrize(("measure", "severity"), [("trials", "invalid"), ("sweep", "warning")])
def test_redirects_are_no_answers(tmp_path: Path, measure: str, severity: str) -> None:
    drive = {"statuses": {"200": 1_000, "302": 1_000, "304": 5}}
    found = judge(written(tmp_path / "r", measure, drive=drive))
    (own,) = of(found, REDIRECTS)
    assert own.severity == severity
    assert own.number == "1,000 of 2,005 replies, warm-up included (50 %): 1,000 302 Found"
    if measure == "sweep":
        said = page(document(open_record(tmp_path / "r"), found))
        assert "requests succeeded" not in said
        assert "not every reply is known to be an answer (redirects)" in said
        assert "At 4 clients s answered with redirects (1,000 of" in found.verdict.decision
        assert any("answered with redirects" in point for point in found.verdict.points)
        assert "redirects" in found.verdict.lines[0][-1]


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        (REDIRECTS, {"drive": {"statuses": {"302": 1_000}}}),
        ("partial results", {"outcomes": (0.005, "partial")}),
        ("errors", {"outcomes": (0.005, "http_error")}),
        (None, {"drive": {"statuses": {"200": 1_000}}}),
    ],
)
def test_what_replies_say_is_said_also_where_the_only_step_is_void(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str | None, more: dict[str, Any]
) -> None:
    starved = {"drive": {"threads": [{"cpu": 1, "run_wait_ns": 59 * 10**8}]}}
    share, outcome = more.pop("outcomes", (0.0, ""))
    extra = {**more, "drive": {**starved["drive"], **more.get("drive", {})}}
    record = written(tmp_path / "r", **extra)
    if share:
        said_otherwise(record, share, outcome)
    found = judge(record)
    assert [t.status for r in found.treatments for t in r.trials] == ["invalid"]
    show(found)
    said = capsys.readouterr().out
    assert "! client starved" in said
    assert [line.split(" (")[0] for line in said.splitlines() if line.startswith("? ")] == (
        [f"? {kind}"] if kind else []
    )


def test_a_step_in_which_nothing_was_answered_well_is_bad_news_also_for_a_starved_client(
    tmp_path: Path,
) -> None:
    """A client without a processor may cause timeouts; it does not make a server say 404."""
    record = written(tmp_path / "r", drive={"threads": [{"cpu": 1, "run_wait_ns": 6 * 10**8}]})
    assert exit_code(record, judge(record)) == 0
    said_otherwise(record, 1.0, "http_error")
    assert "client starved" in {f.kind for f in judge(record).findings}
    assert exit_code(record, judge(record)) == 1


def said_otherwise(record: Record, share: float, outcome: str) -> None:
    """This share of the requests has another outcome."""
    file = next(record.path.glob("trials/*/samples.parquet"))
    table = pq.read_table(file)
    number = open_record(record.path).trials[0].outcomes.index(outcome)
    kinds = np.where(np.arange(table.num_rows) % round(1 / share) == 0, number, 0)
    at = table.schema.get_field_index("outcome")
    pq.write_table(table.set_column(at, table.schema.field("outcome"),
                                    pa.array(kinds.astype(np.uint8))), file)  # fmt: skip


def test_few_redirects_are_a_warning_and_an_unchanged_page_is_none(tmp_path: Path) -> None:
    for i, (statuses, found) in enumerate((
        ({"200": 10_000, "301": 3}, ["warning"]),
        ({"200": 10_000, "304": 900}, []),
        ({"200": 10_000, "204": 1, "503": 9}, []),
    )):  # fmt: skip
        judged = judge(written(tmp_path / f"{i}", "trials", drive={"statuses": statuses}))
        assert [f.severity for f in of(judged, REDIRECTS)] == found


def test_replies_of_other_sizes_under_load_are_a_warning_in_the_answer(tmp_path: Path) -> None:
    found = judge(sized(tmp_path / "r", 0.9))
    (own,) = of(found, SIZES)
    assert own.severity == "warning"
    assert "(90 %), typically 100 bytes and not 1,0" in own.number
    assert "answered with other sizes under load" in found.verdict.decision
    assert SIZES in found.verdict.lines[0][-1]


@pytest.mark.parametrize("scatter", [0.0, 0.05])
def test_replies_that_are_mostly_smaller_under_load_are_a_warning(
    tmp_path: Path, scatter: float
) -> None:
    found = judge(sized(tmp_path / "r", 0.0, scatter, cut=(0.95, 0.66)))
    (own,) = of(found, SIZES)
    assert own.severity == "warning"
    assert "(95 %), typically 7" in own.number
    assert "smaller than when the same was asked alone, typically by 34 %" in own.meaning
    assert SIZES in found.verdict.lines[0][-1]
    for i, cut in enumerate([(1.0, 0.95 + scatter), (0.03, 0.66), (0.4, 1.3)]):
        assert of(judge(sized(tmp_path / f"{i}", 0.0, scatter, cut=cut)), SIZES) == []


@pytest.mark.parametrize(("busy", "scatter"), [(0.0, 0.0), (0.004, 0.0), (0.0, 0.2)])
def test_sizes_that_sway_are_not_accused(tmp_path: Path, busy: float, scatter: float) -> None:
    assert of(judge(sized(tmp_path / "r", busy, scatter)), SIZES, ONE_SIZE, REDIRECTS) == []


def test_a_sweep_says_on_the_terminal_that_answers_are_not_compared(tmp_path: Path) -> None:
    (line,) = (x for x in warnings(judge(sized(tmp_path / "r", 0.0))) if NOT_COMPARED in x)
    assert line.startswith("? answers not compared (1 of 1 trials): unknown engine.")
    study = judge(written(tmp_path / "s", "trials", **UNREAD))
    assert not any(NOT_COMPARED in line for line in warnings(study))


def test_all_replies_of_one_size_are_said(tmp_path: Path) -> None:
    found = judge(written(tmp_path / "r", **UNREAD))
    (own,) = of(found, ONE_SIZE)
    assert own.number == "900 bytes with headers, to 40 distinct requests"
    assert any(ONE_SIZE in line for line in warnings(found))
    assert of(judge(written(tmp_path / "known")), ONE_SIZE) == [], "whose replies are read"


def test_a_server_that_sheds_load_is_seen_by_its_sizes(tmp_path: Path) -> None:
    """Asked alone it answers; later it says with status 200 that it is busy."""
    large, busy = b"x" * 900, b"busy"

    def answer(peer: socket.socket, _head: bytes, count: int) -> bool:
        body = large if count <= 20 else busy
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %03d\r\n\r\n%b" % (len(body), body))
        return True

    asks = tuple(Ask(f"/{i}") for i in range(5))
    with serving(answer) as port:
        record = run_at(port, tmp_path, {"clients": 2}, asks, captures=5)
    (trial,) = record.trials
    assert trial.captured is not None
    assert trial.captured.sizes == dict.fromkeys(map(str, range(5)), 900 + 40)
    (own,) = of(judge(record), SIZES)
    assert own.number.endswith("typically 44 bytes and not 940")


@pytest.mark.parametrize(("alone", "said"), [(0, ""), (30, "30 distinct requests asked alone, 40"),
                                             (40, ""), (200, "")])  # fmt: skip
def test_it_is_said_how_many_requests_were_compared(tmp_path: Path, alone: int, said: str) -> None:
    found = judge(written(tmp_path / "r", captured={"distinct": alone}))
    lines = [x for x in warnings(found) if "answers compared in part" in x]
    assert len(lines) == bool(said)
    assert not said or said in lines[0]
