"""Figures as specifications: valid, in known colours, with labels that do not collide."""

from __future__ import annotations

import json
import re
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import report_examples as examples
from searchbench.analysis.judgement import Curve, Judgement, Scale
from searchbench.analysis.roles.model import Event, OverTime
from searchbench.report.document.compare import shown_comparisons
from searchbench.report.figures import study as figures
from searchbench.report.figures.curves import (
    against,
    apart,
    by_nines,
    log_domain,
    log_ticks,
    names,
    nines,
)
from searchbench.report.figures.draw import svg
from searchbench.report.figures.look import DARK, MANY, NARROW, SERIES, SERIES_DARK, WIDE, Look
from searchbench.report.figures.roles import over_time

LOOKS = pytest.mark.parametrize("look", [WIDE, NARROW], ids=["wide", "narrow"])


def all_of(judged: Judgement, look: Look) -> dict[str, Any]:
    labels = {t.treatment: t.label for t in judged.treatments}
    windows = {r.trial: (2.0, 10.0) for t in judged.treatments for r in t.trials}
    found = {
        "service": figures.latency(judged, "service", look),
        "response": figures.latency(judged, "response", look),
        "scaling": figures.scaling(judged.scales, look),
        "warmup": figures.warmup(judged, windows, look),
        "differences": figures.differences(shown_comparisons(judged, "throughput"), labels, look),
    }
    return {name: chart for name, chart in found.items() if chart is not None}


@LOOKS
@pytest.mark.parametrize("n", [2, MANY, 12])
def test_every_figure_is_valid_vega_lite(n: int, look: Look) -> None:
    drawn = all_of(examples.judgement(n), look)
    assert set(drawn) == {"service", "response", "scaling", "warmup", "differences"}
    for chart in drawn.values():
        chart.to_dict(validate=True)


def test_a_warm_up_is_shaded_only_where_a_trial_was_measured() -> None:
    assert figures.joined([(40.0, 50.0), (3.0, 13.0), (12.0, 22.0)]) == [(3.0, 22.0), (40.0, 50.0)]
    judged = examples.judgement(2)
    windows = {r.trial: (3.0 * r.block, 3.0 * r.block + 1) for t in judged.treatments
               for r in t.trials}  # fmt: skip
    (drawn,) = figures.warmup(judged, windows, WIDE).to_dict()["datasets"].values()
    rows = json.loads(drawn)
    shaded = {(row["from"], row["to"]) for row in rows if "from" in row}
    assert shaded == set(windows.values())


@LOOKS
def test_every_colour_of_a_figure_is_known_to_the_style_sheet(look: Look) -> None:
    for n in (4, 12):
        for name, chart in all_of(examples.judgement(n), look).items():
            used = set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg(chart, name, name)))
            assert used - {"none", "transparent"} <= set(DARK), name


@LOOKS
def test_figures_are_no_wider_than_their_room(look: Look) -> None:
    for n in (1, 3, MANY, 12):
        for name, chart in all_of(examples.judgement(n), look).items():
            found = re.search(r'viewBox="0 0 (\d+(?:\.\d+)?) ', svg(chart, name, name))
            assert found is not None
            assert float(found[1]) <= look.width * 1.04, (name, n)


def test_series_are_told_apart_with_any_kind_of_colour_vision() -> None:
    # Viénot, Brettel and Mollon (1999): what a dichromat sees, in linear RGB.
    deutan = ((0.29275, 0.70725, 0.0), (0.29275, 0.70725, 0.0), (-0.02234, 0.02234, 1.0))
    protan = ((0.11238, 0.88762, 0.0), (0.11238, 0.88762, 0.0), (0.00401, -0.00401, 1.0))

    def linear(colour: str) -> list[float]:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        return [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]

    def seen(colour: str, matrix: tuple[tuple[float, ...], ...]) -> list[float]:
        rgb = linear(colour)
        mixed = [sum(m * c for m, c in zip(row, rgb, strict=True)) for row in matrix]
        return [max(0.0, v) ** (1 / 2.4) for v in mixed]

    for matrix, series in product((deutan, protan), (SERIES, SERIES_DARK)):
        looks = [seen(c, matrix) for c in series]
        for i, a in enumerate(looks):
            for b in looks[i + 1 :]:
                assert sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5 > 0.1


def test_many_lines_get_a_panel_each_and_few_share_one() -> None:
    few, many = (figures.latency(examples.judgement(n), "service", WIDE) for n in (MANY, 12))
    assert "facet" not in few.to_dict(validate=False)
    assert "facet" in many.to_dict(validate=False)


def test_a_figure_of_nothing_is_none() -> None:
    judged = examples.judgement(1)
    assert figures.scaling([], WIDE) is None
    assert figures.differences([], {}, WIDE) is None
    empty = Judgement("", "", judged.verdict, (), (), None, (), (), ())
    assert figures.latency(empty, "service", WIDE) is None
    assert figures.warmup(empty, {}, WIDE) is None


def test_the_quantile_axis_gives_each_nine_the_same_room() -> None:
    assert [round(nines(q), 9) for q in (0, 0.9, 0.99, 0.999)] == [0, 1, 2, 3]
    curve = by_nines(examples.quantile_curve("a", 0.002, 0.7), 60)
    assert list(curve.x) == sorted(curve.x)
    assert curve.x[-1] == pytest.approx(4)


def test_a_tip_names_the_line_the_place_and_the_value_with_its_interval() -> None:
    drawn = svg(figures.latency(examples.judgement(2), "service", WIDE), "x", "x")
    assert re.search(r"<title>tantivy · 1 clients\np99: 10\.7 ms \([\d.]+ ms to", drawn)


def test_hostile_names_stay_text_in_a_figure() -> None:
    judged = examples.judgement(4, hostile=True)
    for name, chart in all_of(judged, WIDE).items():
        drawn = svg(chart, name, examples.HOSTILE[0])
        assert "<script" not in drawn
        assert "<img" not in drawn
        assert "onload=document" not in re.sub(r">[^<]*<", "><", drawn)
        assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", drawn)


def test_a_seconds_axis_is_logarithmic_and_a_count_axis_begins_at_nought() -> None:
    curve = examples.judgement(2).scaling["load.clients"][0]
    for unit, kind in (("s", "log"), ("queries/s", "linear")):
        chart = figures.scaling([Scale("f", "m", unit, {}, curve, 1.0)], WIDE)
        text = json.dumps(chart.to_dict(validate=False))
        assert f'"type": "{kind}"' in text
    assert '"domain": [0' in text


@given(st.lists(st.floats(0, 300), max_size=12))
def test_labels_are_kept_apart_in_their_order_and_in_the_picture(at: list[float]) -> None:
    placed = apart(at, 14, 0, 300)
    ordered = sorted(range(len(at)), key=lambda i: at[i])
    for before, after in pairwise(ordered):
        assert placed[after] - placed[before] >= 14 - 1e-6
    assert all(-1e-6 <= p <= 300 + 1e-6 for p in placed)


def test_labels_with_room_stay_where_they_are() -> None:
    assert apart([10, 100, 200], 14, 0, 300) == [10, 100, 200]


def test_long_names_lose_what_all_share_and_are_still_told_apart() -> None:
    long = [f"tantivy, search threads {n}, load.clients 16" for n in (1, 2, 4)]
    cut = names(long, 20)
    assert len(set(cut)) == 3
    assert [re.findall(r"\d", name) for name in cut] == [["1"], ["2"], ["4"]]
    assert all(len(name) <= 20 for name in cut)
    assert names(["a" * 50, "a" * 50], 10) == ["aaaa…aaaaa #1", "aaaa…aaaaa #2"]


def test_levels_that_say_what_they_are_lose_their_names_before_their_middle() -> None:
    of = "clients={} place={} searcher=per-thread keys=true memory={}"
    long = [
        of.format(n, p, m) for n in (1, 2) for p in ("disk", "ssd") for m in ("little", "ample")
    ]
    assert names(long, 44)[:2] == [
        "clients=1 disk per-thread keys=true little",
        "clients=1 disk per-thread keys=true ample",
    ]
    assert names(long, 70) == long, "there is room for all of it"
    same = ["a=x b=y", "b=x a=y", "a=xx b=y" * 9]
    assert names(same, 20)[:2] == same[:2], "without their names these would be one"


def test_a_pair_is_named_by_the_levels_in_which_it_differs() -> None:
    a, b = "clients=2 place=ssd memory=little", "clients=2 place=disk memory=little"
    assert against(b, a) == "place=disk against ssd: clients=2 memory=little"
    assert against("place=ssd memory=enough", "place=disk memory=little") == (
        "place=ssd memory=enough against place=disk memory=little"
    )
    assert against("tantivy", "sqlite") == "tantivy against sqlite"
    assert against("a=1 b=2", "a=1 c=2") == "a=1 b=2 against a=1 c=2"


@given(st.floats(1e-9, 1e4), st.floats(1, 1e6))
def test_a_logarithmic_axis_has_its_values_inside_and_ends_on_ticks(low: float, by: float) -> None:
    values = [low, low * by]
    start, end = log_domain(values)
    assert start <= values[0] * 1.0001
    assert end >= values[1] * 0.9999
    ticks = log_ticks(start, end)
    assert ticks
    assert all(start * 0.99 <= t <= end * 1.01 for t in ticks)


def lines_of(drawn: str) -> list[list[list[tuple[float, float]]]]:
    """Of each line of a drawing its unbroken parts, as points in the drawing's units."""
    found = []
    for path in re.findall(r'<path (?:[\w:-]+="[^"]*" )*?d="([^"]+)"', drawn):
        if "L" not in path or "Z" in path:
            continue
        parts = [
            [tuple(map(float, point.split(","))) for point in part.split("L")]
            for part in path.split("M")[1:]
        ]
        found.append(parts)
    return found


@pytest.mark.parametrize("treatments", [1, MANY], ids=["together", "panels"])
def test_no_line_crosses_the_time_in_which_a_server_was_down(treatments: int) -> None:
    """Between 4 and 7 s nothing was answered well, so there is nothing to draw."""
    seconds = tuple(at + 0.5 for at in range(20))
    up = tuple(x for x in seconds if not 4 < x < 7)
    times = (Curve("half", up, (0.002,) * len(up)), Curve("95 %", up, (0.01,) * len(up)))
    good = Curve("good answers", seconds, tuple(100.0 * (x in up) for x in seconds))
    down = Event("server killed", 4.0, 7.0)

    def drawn(good: Curve | None) -> list[list[list[tuple[float, float]]]]:
        over = OverTime("b01-t001", *times, (0.0, 20.0), (down,), good)
        chart = over_time([(f"load {at}", over) for at in range(treatments)], WIDE)
        level = (parts for parts in lines_of(svg(chart, "x", "x")) if len(parts[0]) > 2)
        return [
            parts for parts in level if len({y for part in parts for _, y in part}) == 1
        ]  # those of the good answers go up and down

    assert all(len(parts) == 1 for parts in drawn(None))
    broken = drawn(good)
    assert len(broken) >= 2 * treatments
    halves = [parts for parts in broken if len(parts) == 2]
    assert len(halves) == 2 * treatments
    for before, after in halves:
        gap = 4 * (before[1][0] - before[0][0])
        assert (len(before), len(after)) == (4, 13)
        assert after[0][0] - before[-1][0] == pytest.approx(gap, rel=0.01)
