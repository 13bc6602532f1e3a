"""Numbers and texts as people read them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchbench.analysis.judgement import Estimate, Interval
from searchbench.analysis.words import percent, times
from searchbench.report.document.blocks import Span
from searchbench.report.document.text import fit, line, short
from searchbench.report.tables import numbers
from searchbench.report.tables.cells import bars, of_estimate, title_of


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (0.00123456, "s", "1.23 ms"),
        (0.000000123, "s", "123 ns"),
        (0.0009994, "s", "999 µs"),
        (0.00099999, "s", "1.00 ms"),
        (90, "s", "90 s"),
        (600, "s", "10 min"),
        (0, "s", "0 s"),
        (12345.6, "queries/s", "12,300/s"),
        (3_000_000, "1/s", "3 M/s"),
        (120_000_000, "bytes", "120 MB"),
        (4096, "bytes", "4.10 kB"),
        (512, "bytes", "512 B"),
        (0.25, "share", "25 %"),
        (1.5, "ratio", "1.50×"),
        (1.5, "cores", "1.50"),
        (7, "parsecs", "7 parsecs"),
        (-0.5, "", "−0.500"),
        (math.inf, "s", "∞"),
    ],
)
def test_three_digits_and_the_unit_that_suits(value: float, unit: str, said: str) -> None:
    assert numbers.human(value, unit) == said


@given(st.floats(1e-9, 1e12))
def test_rounding_is_never_off_by_more_than_half_a_unit_of_the_third_digit(value: float) -> None:
    read = float(numbers.digits(value).replace(",", ""))
    assert abs(read - value) <= value * 0.00501


def test_both_ends_of_an_interval_share_the_unit_of_the_value() -> None:
    interval = Interval(0.00095, 0.00105, 0.95, "x")
    assert numbers.between(interval, "s", 0.001) == "0.950–1.05 ms"


def test_an_interval_that_tells_nothing_is_called_not_known() -> None:
    def said(low: float, high: float, unit: str = "s") -> str:
        return numbers.between(Interval(low, high, 0.95, "t"), unit, 1.0)

    assert said(1e-5, 2.2e7) == said(0, 6.67, "cores") == "not known"
    assert (said(0.5, 49), said(0, 0)) == ("0.500–49 s", "0 s")
    assert "–" in said(0, 0.001, "share")
    wide = Estimate(2.0, "", 3, Interval(0.0001, 9_296_981.97, 0.95, "t"))
    assert times(wide) == "2 times (95 % interval not known)"
    assert "1–4" in times(replace(wide, interval=Interval(1, 4, 0.95, "t")))
    cores = Estimate(1.2, "cores", 3, Interval(0.4, 6.67, 0.95, "t"))
    assert [of_estimate(cores, most=m).below for m in (2, 8)] == ["not known", "0.400–6.67"]
    place = bars([replace(wide, value=8.0), wide])
    assert place(wide) == Span(0.25)


def test_almost_all_is_never_rounded_to_all() -> None:
    said = [numbers.percent(s) for s in (1, 0.99999, 0.999, 0.5, 0.00001, 0)]
    assert said == ["100 %", "> 99.9 %", "99.9 %", "50 %", "< 0.1 %", "0 %"]


def test_the_exact_value_and_the_method_go_with_an_estimate() -> None:
    cell = of_estimate(Estimate(0.0021234567, "s", 40, Interval(0.002, 0.0022, 0.95, "BCa")))
    assert cell.text == "2.12 ms"
    assert cell.below == "2–2.20 ms"
    assert cell.exact == "0.0021234567 s, n = 40; 95% interval 0.002 to 0.0022 (BCa)"


def test_figures_have_names_for_people() -> None:
    assert [title_of(n) for n in ("service_p50", "response_p999", "error_share")] == [
        "Service p50",
        "Response p99.9",
        "Errors",
    ]
    assert title_of("some_new_figure") == "Some new figure"


def test_bars_stand_on_one_scale_from_nought() -> None:
    five, ten = Estimate(5, "", 1), Estimate(10, "", 1)
    half, whole, none = map(bars([five, ten, None]), (five, ten, None))
    assert half is not None
    assert whole is not None
    assert (half.value, whole.value, none) == (0.5, 1.0, None)


@given(st.text(st.characters()))
def test_fit_text_can_always_be_encoded_and_holds_no_controls(text: str) -> None:
    shown = fit(text)
    shown.encode("utf-8")
    assert not any(ord(c) < 32 and c not in "\t\n" for c in shown)
    assert not any(c in shown for c in "\x7f\u202e\u2066\u200b\ufeff\uffff")
    assert "\n" not in line(text)
    assert len(short(text, 20)) <= 20


def test_unfit_characters_are_written_out_not_dropped() -> None:
    assert fit("a\x00b\u202ec\ud800") == "a\\x00b\\u202ec\\ud800"
    assert fit("שלום 日本語 e\u0301 🔎") == "שלום 日本語 e\u0301 🔎"


@pytest.mark.parametrize(
    ("share", "said"),
    [(1.103, "+110 %"), (-0.874, "−87 %"), (0.0123, "+1.2 %"), (12.0, "+1,200 %"),
     (1e-7, "+0.00001 %"), (0.0996, "+10 %"), (-0.0, "+0 %")],
)  # fmt: skip
def test_a_share_as_per_cent_never_has_an_exponent(share: float, said: str) -> None:
    assert percent(share, signed=True) == said
    assert percent(abs(share)) == said[1:]
