"""The report as files: quick, whole, in one piece, the same in every form.

Longer than most files: a few records serve every form.
"""

from __future__ import annotations

import csv
import json
import math
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import vl_convert

import records
import report_examples as examples
from searchbench.analysis.compare import pairs
from searchbench.analysis.findings import disagreeing
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import (
    Agreement,
    Estimate,
    Finding,
    Judgement,
    OverloadResult,
    OverloadSeen,
    Verdict,
)
from searchbench.analysis.roles.model import (
    Beside,
    Durable,
    FaultResult,
    RoleResult,
    RolesJudged,
    Visible,
)
from searchbench.errors import RecordError
from searchbench.record import open_record
from searchbench.record.trial import Load
from searchbench.report import Report, write_report
from searchbench.report.document.assemble import document
from searchbench.report.document.blocks import Badge, Details, Facts, Figure, Notice, Table
from searchbench.report.document.compare import shown_comparisons
from searchbench.report.document.notices import notices
from searchbench.report.figures import draw
from searchbench.report.page import page
from searchbench.report.pdf import document_pdf
from searchbench.report.sheets import HEADERS, write_sheets
from searchbench.report.tables.study import comparisons, overview, quantiles

SECTIONS = [
    "answer",
    "throughput",
    "latency",
    "warmup",
    "agreement",
    "resources",
    "places",
    "machine",
    "findings",
    "details",
]


RENDER = vl_convert.vegalite_to_svg


@pytest.fixture(scope="module", autouse=True)
def _drawn_once() -> Iterator[None]:
    """A figure that is the same in several reports is drawn once; each is drawn by the renderer."""
    kept: dict[str, str] = {}

    def drawn(spec: dict[str, Any], **how: Any) -> str:
        key = json.dumps([spec, how], sort_keys=True, default=str)
        if key not in kept:
            kept[key] = RENDER(spec, **how)
        return kept[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draw.vl_convert, "vegalite_to_svg", drawn)
        yield


def write(folder: Path, judged: Judgement, **record: object) -> Report:
    return write_report(examples.record(judged, **record), judged, folder)  # type: ignore[arg-type]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_real_record_becomes_a_page_a_document_and_six_sheets(tmp_path: Path) -> None:
    record = open_record(records.showcase(tmp_path / "record", blocks=3))
    judged = judge(record)
    report = write_report(record, judged, tmp_path / "report")
    page = report.html.read_text("utf-8")
    assert "&lt;serves&gt; best?" in page
    assert "<serves>" not in page
    assert "the server did not answer within 30 s" in page
    assert "fuzzy: upstream must" in page
    assert report.pdf.read_bytes().startswith(b"%PDF-")
    assert [path.stem for path in report.csv] == list(HEADERS)
    by_status = {(row["trial"], row["status"]) for row in rows(report.csv[1])}
    expected = {(r.trial, r.status) for t in judged.treatments for r in t.trials}
    assert by_status == expected


def test_the_verdict_comes_first_and_every_section_after_it_in_order() -> None:
    judged = examples.judgement(4)
    found = document(examples.record(judged), judged)
    assert [section.id for section in found.sections] == SECTIONS
    kinds = [block.kind for block in found.sections[0].blocks]
    assert kinds[:2] == ["badge", "text"]
    assert kinds.index("notice") < kinds.index("table") < kinds.index("figure")


def test_invalid_and_failed_trials_are_reported_beside_the_verdict() -> None:
    judged = examples.judgement(4)
    found = document(examples.record(judged), judged)
    beside = [b for b in found.sections[0].blocks if isinstance(b, Notice)]
    titles = [notice.title for notice in beside]
    assert titles == ["1 trial of 25 did not pass the audit", "1 trial of 25 failed", "governor"]
    assert not any(notice.meaning or notice.remedy for notice in beside), "a line each"
    assert "did not answer" in beside[1].number
    (section,) = (s for s in found.sections if s.id == "findings")
    whole = {b.title: b for b in section.blocks if isinstance(b, Notice)}
    assert set(titles) <= set(whole)
    assert "03-t01" in whole[titles[0]].meaning
    assert whole["governor"].remedy


def test_a_finding_of_many_pairs_is_one_line_and_one_box() -> None:
    judged = examples.judgement(2)
    labels = [(a, b) for a in "abcde" for b in "abcde" if a < b]
    every = tuple(disagreeing([alike_by_nothing(*pair) for pair in labels]))
    assert len(every) == 10
    judged = replace(judged, findings=every)
    sections = {s.id: s.blocks for s in document(examples.record(judged), judged).sections}
    (brief,) = (b for b in sections["answer"] if getattr(b, "title", "") == "nothing found")
    (whole,) = (b for b in sections["findings"] if getattr(b, "title", "") == "nothing found")
    assert isinstance(brief, Notice)
    assert brief.number == "13 of 61 queries of a and b; and 9 more"
    assert isinstance(whole, Notice)
    assert whole.meaning.startswith("Neither of the two finds anything on these")
    kinds = [b.kind for b in sections["answer"]]
    assert kinds.index("table") <= kinds.index("notice") + 5


def alike_by_nothing(a: str, b: str) -> Agreement:
    (one,) = examples.judgement(2).agreement
    return replace(one, label_a=a, label_b=b, queries=61, agreeing=61, empty=13)


@pytest.mark.parametrize(("resolved", "text"), [(True, "Resolved"), (False, "Not resolved")])
def test_the_badge_says_whether_it_is_resolved(resolved: bool, text: str) -> None:
    judged = examples.judgement(2, resolved=resolved)
    badge = document(examples.record(judged), judged).sections[0].blocks[0]
    assert badge.text == text  # type: ignore[union-attr]


def badge(judged: Judgement) -> Badge:
    found = document(examples.record(judged), judged).sections[0].blocks[0]
    assert isinstance(found, Badge)
    return found


def test_the_badge_says_that_nothing_exceeds_the_noise_only_where_that_is_so() -> None:
    judged = examples.judgement(2, resolved=False)
    (within,) = judged.comparisons
    larger = "No difference is larger than that between two trials of one treatment."
    assert larger in badge(judged).explanation
    alone = badge(replace(judged, noise_floor=None))
    assert alone.explanation.startswith("There is no A/A control")
    reason = "the interval includes 1, that is, no difference"
    beyond = replace(within, ratio=examples.estimate(1.3, "", 0.4), floor=1.02, reason=reason)
    unsure = badge(replace(judged, comparisons=(beyond,)))
    assert (unsure.text, unsure.tone) == ("Not resolved", "unsure")
    assert unsure.explanation.startswith(
        "A difference is larger than that between two trials of one treatment, but it is not "
        f"sure: {reason}."
    )
    nothing = replace(within, ratio=None, verdict="not comparable", reason="no trial is valid")
    assert "can be compared: no trial is valid." in (
        badge(replace(judged, comparisons=(nothing,))).explanation
    )
    assert "that could be compared" in (
        badge(replace(judged, comparisons=(within, nothing))).explanation
    )
    assert "nothing to compare" in badge(replace(judged, comparisons=())).explanation


def test_the_badge_names_the_best_and_only_that() -> None:
    judged = examples.judgement(4)
    best = badge(judged)
    assert best.text == "Resolved"
    assert best.explanation.startswith(f"{judged.treatments[0].label} is better than every other.")
    verdict = replace(judged.verdict, best=None, doubts="not compared with another")
    leads = badge(replace(judged, verdict=verdict))
    assert (leads.text, leads.tone) == ("Partly resolved", "unsure")
    assert "nothing is shown to be better than all others" in leads.explanation
    one_query = tuple(replace(c, queries_used=1, queries_measured=1) for c in judged.comparisons)
    verdict = replace(judged.verdict, best=None)
    alone = badge(replace(judged, verdict=verdict, comparisons=one_query))
    assert alone.text == "Partly resolved"
    assert alone.explanation.startswith("A difference is resolved on one query alone. So nothing")
    assert "no valid A/A control" in badge(replace(judged, noise_floor=None)).explanation


def test_the_badge_says_where_the_best_ranks_otherwise() -> None:
    judged = examples.judgement(3)

    def explained(same: int) -> str:
        found = [
            replace(c, queries_used=61, queries_measured=61, same_top_k=same, empty=13)
            for c in judged.comparisons
        ]
        return badge(replace(judged, comparisons=tuple(found))).explanation

    said = "of 48 queries that find something, the first hits are the same on only 6:"
    assert said in explained(6)
    assert "first hits" not in explained(24)


def test_the_badge_does_not_say_resolved_where_first_hits_were_never_the_same() -> None:
    judged = examples.judgement(3)
    assert badge(judged).tone == "good"
    (_, one) = judged.comparisons
    other = replace(one, queries_used=61, queries_measured=61, same_top_k=0, empty=13)
    for found in (other, pairs.of(other.a, other)):
        verdict = replace(judged.verdict, best=None)
        said = badge(replace(judged, verdict=verdict, comparisons=(found,)))
        text = "Faster, but not shown to return the same first hits"
        assert (said.text, said.tone) == (text, "unsure")
        (row,) = comparisons([found], {}).rows
        assert "first hits never seen to be the same" in row[2].below


def test_rows_of_comparisons_have_ratios_above_one_and_an_unknown_floor_is_not_nought() -> None:
    (_, one) = examples.judgement(3).comparisons
    low = pairs.of(one.a, one) if one.ratio and one.ratio.value > 1 else one
    for found in (low, pairs.of(low.a, low)):
        ((this, _, verdict, ratio, *_),) = comparisons([found], {}).rows
        assert (this.text, this.below) == (low.a, f"against {low.b}")
        assert verdict.text == "faster"
        assert float(ratio.text.removesuffix("×")) > 1
    floors = [comparisons([replace(one, floor=f)], {}).rows[0][5].text for f in (1.0, 1.05)]
    assert floors == ["unknown", "±5.0 %"]


def test_a_quantile_has_one_interval_wherever_it_stands() -> None:
    judged = examples.judgement(2)
    (first, *_) = judged.treatments
    figures = first.figures | {"service_p99": examples.estimate(0.02, "s", 0.5)}
    judged = replace(judged, treatments=(replace(first, figures=figures),))
    (above,) = overview(judged, "throughput", open_loop=False).rows
    (below,) = quantiles(judged, "service").rows
    assert (above[3].text, above[3].below) == (below[3].text, below[3].below)


def test_only_where_a_factor_has_numbers_is_there_a_section_about_it() -> None:
    judged = replace(examples.judgement(2), scales=())
    found = document(examples.record(judged), judged)
    assert "throughput" not in {s.id for s in found.sections}


def test_the_best_is_the_first_row_and_no_other_is_called_so() -> None:
    judged = examples.judgement(4)
    second = judged.treatments[1].treatment
    for best, marks in ((second, ["best", "", "", ""]), (None, [""] * 4)):
        verdict = replace(judged.verdict, best=best)
        table = overview(replace(judged, verdict=verdict), "throughput", open_loop=False)
        assert [row[0].below for row in table.rows] == marks


def test_the_table_of_comparisons_has_the_queries_measured_on_both_sides() -> None:
    judged = examples.judgement(2)
    found = [replace(judged.comparisons[0], queries_measured=36)]
    (row,) = comparisons(found, {}).rows
    assert row[-1].below == "12 left out; 36 measured on both sides"


def test_the_page_says_how_its_systems_were_driven(tmp_path: Path) -> None:
    trials, swept, searched = examples.judgement(2), examples.sweep(), examples.searched()
    kinds = [
        (examples.record(trials), trials, "Each treatment was started anew for every measurement."),
        (
            examples.driven(swept),
            swept,
            "The steps of a load were driven one after another on the same warm system.",
        ),
        (
            examples.driven(searched),
            searched,
            "For each configuration, rates were driven one after another on one warm system until "
            "the limit was found.",
        ),
    ]
    for record, judged, sentence in kinds:
        before, _, after = page(document(record, judged)).partition(
            f'<p class="about method">{sentence}</p>'
        )
        assert "<section" not in before
        assert '<section id="answer">' in after


def test_systems_that_ran_already_were_not_started_and_the_page_does_not_say_so() -> None:
    judged = examples.judgement(4)
    record = examples.record(judged)
    for trial in record.trials:
        trial.attached = "http://127.0.0.1:1" if trial.system == "sqlite" else None
    assert "except of the systems that ran already (sqlite)" in document(record, judged).method
    for trial in record.trials:
        trial.attached = "http://127.0.0.1:1"
    assert document(record, judged).method.startswith("The systems ran already;")


def test_what_is_not_known_of_a_trial_is_left_out_and_nought_is_not() -> None:
    judged = examples.judgement(2)
    record = examples.record(judged)
    for trial in record.trials:
        trial.load = Load(kind="open", rate_per_s=1000.0, warmup_s=0.0)
    details = document(record, judged).sections[-1].blocks[0]
    assert isinstance(details, Details)
    pairs = dict(pair for b in details.blocks if isinstance(b, Facts) for pair in b.pairs)
    assert pairs["rate per s"] == "1,000/s"
    assert pairs["warmup"] == "0 s"
    assert "clients" not in pairs
    assert "promise" not in pairs


def test_the_page_asks_the_network_for_nothing(tmp_path: Path) -> None:
    page = write(tmp_path, examples.judgement(4)).html.read_text("utf-8")
    assert not re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(?:https?:)?//""", page)
    assert not re.findall(r"@import|<link[^>]+stylesheet|<script[^>]+src", page)
    # Names of XML vocabularies are no addresses; nothing else begins like one.
    assert set(re.findall(r"https?://[^\s\"'<]+", page)) == {"http://www.w3.org/2000/svg"}


def test_only_an_open_loop_shows_response_times_and_only_a_closed_one_is_warned_of() -> None:
    judged = examples.judgement(2)
    closed, opened = (
        document(examples.record(judged, load=load), judged).sections[2].blocks
        for load in ("closed", "open")
    )
    assert [b.name for b in closed if isinstance(b, Figure)] == ["latency-service"]
    assert "coordinated omission" in str(closed)
    names = [b.name for b in opened if isinstance(b, Figure)]
    assert names == ["latency-service", "latency-response"]
    assert "coordinated omission" not in str(opened)


def test_a_quantile_without_samples_enough_is_a_dash_not_a_number() -> None:
    judged = examples.judgement(2)
    blocks = document(examples.record(judged), judged).sections[2].blocks
    table = next(b for b in blocks if isinstance(b, Table))
    heads = [column.name for column in table.columns]
    assert heads[1:5] == ["p50", "p90", "p99", "p99.9"]
    assert table.rows[0][4].text != "–"
    assert table.rows[1][4].text == "–"
    assert "too few samples" in table.rows[1][4].exact


def test_numbers_are_round_to_read_and_whole_in_the_title(tmp_path: Path) -> None:
    judged = examples.judgement(2)
    page = write(tmp_path, judged).html.read_text("utf-8")
    whole = repr(judged.treatments[1].figures["service_p99"].value)
    assert f'title="{whole} s, n = 5; 95% interval' in page
    assert "15.2 ms" in page


def test_every_treatment_can_be_followed_down_to_its_files_and_command_line() -> None:
    judged = examples.judgement(4)
    details = document(examples.record(judged), judged).sections[-1].blocks
    titles = [b.title for b in details if isinstance(b, Details)]
    assert titles[0] == "Held for all treatments"
    assert titles[1:5] == [t.label for t in judged.treatments]
    assert titles[5:] == ["1 crossing not run", "The study as run", "Run it again"]
    assert "searchbench-host sqlite --port 0" in str(details[2])
    assert "threads = 4" in str(details[2])
    assert "did not answer within 30 s" in str(details[3])


def test_a_pair_has_the_measures_of_the_sphinx_study_under_their_names() -> None:
    judged = examples.judgement(2)
    sections = document(examples.record(judged), judged).sections
    blocks = next(s for s in sections if s.id == "agreement").blocks
    detail = next(b for b in blocks if isinstance(b, Details) and "groups" in b.title)
    table = next(b for b in detail.blocks if isinstance(b, Table))
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["Total results match", "6,770 of 6,770 queries", "100 %"],
        ["Total found match", "6,586 of 6,770 queries", "97.3 %"],
        ["Top 10 match", "6,374 of 6,770 queries", "94.2 %"],
        ["Document set match", "5,563 of 6,770 queries", "82.2 %"],
        ["Document groups match", "5,389 of 5,993 queries", "89.9 %"],
        ["Document mismatch", "4,532 of 673,551 documents", "0.7 %"],
        ["Max mismatch", "90 documents of a query", "–"],
        ["Median mismatch", "1.5 documents, of queries that have any", "–"],
        [
            "Mismatch distribution",
            "1: 288, 2: 97, 3: 37, 4: 20, 5: 12, 6: 7, 7: 9, 8: 10, 9: 7, 10: 3, above 10: 86",
            "–",
        ],
        ["Kendall's tau-b", "mean 0.9712, over 6,601 queries", "–"],
        ["Score difference", "mean 0.00125, greatest 2.5, of 669,019 documents", "–"],
    ]


def test_the_measures_have_their_columns_in_the_sheet(tmp_path: Path) -> None:
    judged = examples.judgement(2)
    write_sheets(judged, tmp_path)
    row = rows(tmp_path / "agreement.csv")[0]
    assert (row["document_groups_match"], row["document_groups_match_of"]) == ("5389", "5993")
    assert (row["document_mismatch"], row["document_mismatch_of"]) == ("4532", "673551")
    assert (row["mismatch_1"], row["mismatch_10"], row["mismatch_above_10"]) == ("288", "3", "86")
    assert (row["max_mismatch"], row["median_mismatch"]) == ("90", "1.5")
    assert (row["kendall_tau"], row["score_documents"]) == ("0.9712", "669019")
    (pair,) = judged.agreement
    write_sheets(replace(judged, agreement=(replace(pair, groups=None),)), tmp_path)
    row = rows(tmp_path / "agreement.csv")[0]
    assert (row["differing"], row["total_results_match"], row["score_documents"]) == ("2", "", "")


def test_sheets_have_their_headers_even_without_rows(tmp_path: Path) -> None:
    empty = Judgement("?", "", Verdict("Nothing.", False, None), (), (), None, (), (), ())
    for path in write_sheets(empty, tmp_path):
        text = path.read_text("utf-8")
        assert text == ",".join(HEADERS[path.stem]) + "\n"


def test_faults_and_overloads_have_sheets_where_there_are_any(tmp_path: Path) -> None:
    judged = examples.judgement(2)
    assert {p.stem for p in write_sheets(judged, tmp_path)} == set(HEADERS)
    fault = FaultResult("crash", "kill", "server", "t", "=t", {"clients": 2}, 3, back=False,
                        why="it did not serve again", trouble="exit 1")  # fmt: skip
    rates = 100.0, 300.0, None, 300.0, 200.0, 0.0
    seen = OverloadSeen(0, 2, 5.0, 2.0, *rates, 0.1, 0.0, "", "", None, 4.0, 0.1, 0.0, "",
                        "too few requests", 0.0)  # fmt: skip
    figures = {"failed": Estimate(0.1, "share", 2), "normal_s": Estimate(math.inf, "s", 2)}
    overload = OverloadResult("t", "=t", {"clients": 2}, 1, 2, figures, 2, 0, 0.0, seen)
    asked = Visible({"p50": Estimate(0.2, "s", 9)}, 9, 1, 0.2, 0.01, 100.0, None)
    wrote = RoleResult("crash", "write", "t", "=t", {}, idle=False, trials=3, visible=asked,
                       figures={"accepted_per_s": Estimate(10.0, "/s", 3)})  # fmt: skip
    slower = Beside("t", "=t", "u", "idle", {"throughput": Estimate(0.5, "", 3)})
    roles = RolesJudged(faults=(fault,), results=(wrote,), beside=(slower,))
    write_sheets(replace(judged, roles=roles, overloads=(overload,)), tmp_path)
    (row,) = rows(tmp_path / "faults.csv")
    assert (row["label"], row["trials"], row["back"], row["figure"]) == ("'=t", "3", "False", "")
    assert (row["trouble"], row["writes_lost"]) == ("exit 1", "")
    first, second = rows(tmp_path / "roles.csv")
    assert (first["figure"], first["value"], first["markers"]) == ("accepted_per_s", "10.0", "9")
    assert (second["figure"], second["value"], second["unseen"]) == ("visible p50", "0.2", "1")
    (row,) = rows(tmp_path / "beside.csv")
    assert (row["metric"], row["ratio"], row["idle_label"]) == ("throughput", "0.5", "idle")
    first, second = rows(tmp_path / "overloads.csv")
    assert (first["figure"], first["value"], first["times"]) == ("failed", "0.1", "")
    assert (second["figure"], second["value"], second["not_within"]) == ("normal_s", "inf", "2")
    assert (second["base_per_s"], second["most_per_s"]) == ("100.0", "300.0")


def test_the_sheet_of_faults_says_where_a_count_may_cancel_out(tmp_path: Path) -> None:
    durable = Durable(acknowledged=100, lost=3, unapplied=0, unknown=0, asked=0, missing=0,
                      counted=2, cancels=1)  # fmt: skip
    fault = FaultResult("crash", "kill", "server", "t", "t", {}, 2, back=True, durable=durable)
    judged = replace(examples.judgement(2), roles=RolesJudged(faults=(fault,)))
    write_sheets(judged, tmp_path)
    (row,) = rows(tmp_path / "faults.csv")
    assert (row["writes_lost"], row["writes_counted"], row["writes_cancels"]) == ("3", "2", "1")


def test_sheets_hold_whole_numbers_and_no_formulas(tmp_path: Path) -> None:
    judged = examples.judgement(2, hostile=True)
    write_sheets(judged, tmp_path)
    quantiles = rows(tmp_path / "quantiles.csv")
    first = judged.treatments[0].service
    assert float(quantiles[0]["seconds"]) == first.y[0]
    assert float(quantiles[0]["quantile"]) == first.x[0]
    for path in tmp_path.glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        unsafe = [c for c in cells if c[:1] in "=+@" and c]
        assert not unsafe
        assert not [c for c in cells if c[:1] == "-" and not re.fullmatch(r"-[\d.e-]+", c)]


@pytest.mark.parametrize("judged", [
    Judgement("", "", Verdict("No trial has ended yet.", False, None), (), (), None, (), (), ()),
    examples.judgement(1, resolved=False),
], ids=["nothing", "one treatment"])  # fmt: skip
def test_a_study_with_little_or_nothing_to_show_still_makes_a_report(
    tmp_path: Path, judged: Judgement
) -> None:
    report = write(tmp_path, judged)
    page = report.html.read_text("utf-8")
    for section in [s for s in SECTIONS if judged.treatments or s not in ("places", "throughput")]:
        assert f'<section id="{section}">' in page
    assert report.pdf.read_bytes().startswith(b"%PDF-")


def test_hostile_text_breaks_neither_page_nor_document(tmp_path: Path) -> None:
    judged = examples.judgement(4, hostile=True)
    report = write(tmp_path, judged, hostile=True, load="open")
    page = report.html.read_bytes().decode("utf-8")  # strictly
    assert page.count("<script>") == 1
    assert page.count("</script>") == 1
    assert "<img" not in page
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    assert "\\u202eto left" in page
    assert "{{ 7*7 }}" in page
    assert "日本語の検索" in page
    assert report.pdf.read_bytes().startswith(b"%PDF-")


def test_the_same_judgement_gives_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draw.vl_convert, "vegalite_to_svg", RENDER)
    judged = examples.judgement(3)
    record = examples.record(judged)
    one, other = (document(record, judged) for _ in "ab")
    assert page(one) == page(other)
    assert document_pdf(one) == document_pdf(other)


def test_twelve_treatments_make_a_page_that_is_small_and_not_slower_than_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draw.vl_convert, "vegalite_to_svg", RENDER)

    def spent_s(n: int) -> float:
        started = time.process_time()
        write(tmp_path / str(n), examples.judgement(n), load="open")
        return time.process_time() - started

    spent_s(3)  # fonts and templates are loaded once
    # Four times the treatments: a figure or a table that grew with their square would take 16.
    assert spent_s(12) < 10 * spent_s(3)
    assert (tmp_path / "12" / "report.html").stat().st_size < 1_500_000


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(RecordError, match=r"report cannot be written .*name another folder"):
        write(blocked, examples.judgement(1))


def test_a_notice_is_made_of_whole_sentences() -> None:
    (one,) = notices([Finding("busy", "warning", "", "2 of 2", "it slows", "stop it")])
    assert isinstance(one, Notice)
    assert (one.meaning, one.remedy) == ("It slows.", "Stop it.")


def test_findings_alike_in_several_trials_are_shown_once() -> None:
    text = "After that instant all {} requests failed."
    found = [Finding("died", "invalid", f"t{n}", f"{n} s", text.format(n), "Look.") for n in (3, 4)]
    other = Finding("died", "invalid", "t5", "5 s", "Something else.", "Look.")
    notice, alone = notices([*found, other])
    assert isinstance(notice, Notice)
    assert (notice.number, notice.where) == ("3 s; 4 s", "t3, t4")
    assert notice.meaning == text.format(3) + " (In t3; the others are alike.)"
    assert isinstance(alone, Notice)
    assert alone.meaning == "Something else."


def test_a_comparison_is_turned_to_be_of_the_best_over_the_other() -> None:
    judged = examples.judgement(2)
    forth = examples.compared(judged.treatments)[0]
    judged = replace(judged, verdict=replace(judged.verdict, best="t00"), comparisons=(forth,))
    (turned,) = shown_comparisons(judged, "throughput")
    assert (turned.a, turned.b) == (forth.b, forth.a)
    assert turned.ratio is not None
    assert forth.ratio is not None
    assert turned.ratio.value == pytest.approx(1 / forth.ratio.value)
    ends = turned.ratio.interval
    assert ends is not None
    assert ends.low < turned.ratio.value < ends.high
