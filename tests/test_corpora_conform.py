"""Values that fit a schema, and the reasons against those that do not."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchbench.corpora.conform import Conformer, Misfit
from searchbench.corpora.corpus import Field, FieldType, Schema


def one(kind: str, value: Any, **options: Any) -> Any:
    """The canonical value, or the reason as a string in a tuple."""
    try:
        return Conformer(Schema((Field("x", FieldType(kind)),)), **options)({"x": value})["x"]
    except Misfit as misfit:
        return (str(misfit),)


@pytest.mark.parametrize(
    ("kind", "value", "canonical"),
    [
        ("text", "", ""),
        ("text", " as it is ", " as it is "),
        ("keyword", 12, "12"),
        ("keywords", ["b", "a", 3], ["b", "a", "3"]),
        ("keywords", "a | b||c", ["a | b||c"]),
        ("integer", "12", 12),
        ("integer", " -7 ", -7),
        ("integer", 3.0, 3),
        ("integer", "3.0", 3),
        ("integer", Decimal("5"), 5),
        ("integer", -(2**63), -(2**63)),
        ("integer", str(2**63 - 1), 2**63 - 1),
        ("float", "1e3", 1000.0),
        ("float", 2, 2.0),
        ("float", ".5", 0.5),
        ("date", "1970-01-01", 0),
        ("date", "1970-01-01T01:00:00+01:00", 0),
        ("date", "1970-01-01T00:00:00.0019Z", 1),
        ("date", "1969-12-31T23:59:59.9999Z", -1),
        ("date", date(1970, 1, 2), 86_400_000),
        ("date", datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), 0),
        ("date", 17, 17),
        ("date", "17", 17),
        ("boolean", "TRUE", True),
        ("boolean", "0", False),
        ("boolean", 1, True),
    ],
)
def test_a_value_that_fits_is_canonical(kind: str, value: Any, canonical: Any) -> None:
    found = one(kind, value)
    assert found == canonical
    assert type(found) is type(canonical)


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("text", 5, "x: 5 is an integer, not text"),
        ("text", {"a": 1}, "an object, not text"),
        ("text", [True, None, 2**64], "x: [true, null, 18446744073709551616] is"),
        ("date", True, "x: true is not a date"),
        ("keyword", True, "a boolean"),
        ("keywords", ["a", None], "None"),
        ("integer", "3.5", "'3.5' is not an integer"),
        ("integer", 3.5, "not an integer"),
        ("integer", True, "a boolean, not an integer"),
        ("integer", "1_000", "not an integer"),
        ("integer", "٣", "not an integer"),
        ("integer", 2**63, "beyond 64 bits"),
        ("integer", "9" * 5000, "beyond 64 bits"),
        ("float", "12,5", "'12,5' is not a number"),
        ("float", "nan", "not a number"),
        ("float", float("nan"), "not finite"),
        ("float", "1e999", "not finite"),
        ("float", 2**53 + 1, "cannot be held exactly"),
        ("float", 10**400, "cannot be held exactly"),
        ("date", "31.12.2024", "not an ISO 8601 date"),
        ("date", True, "not a date"),
        ("date", [1], "not a date"),
        ("boolean", "maybe", "not true or false"),
        ("boolean", 2, "not true or false"),
    ],
)
def test_a_value_that_does_not_fit_has_its_reason(kind: str, value: Any, reason: str) -> None:
    found = one(kind, value)
    assert isinstance(found, tuple)
    assert reason in found[0]


def test_every_reason_of_a_row_is_given_and_none_is_an_absent_field() -> None:
    schema = Schema(
        tuple(Field(n, FieldType(t)) for n, t in [("a", "integer"), ("b", "date"), ("c", "text")])
    )
    with pytest.raises(Misfit, match=r"^a: 'one' is not .*; b: 'soon' is not .*"):
        Conformer(schema)({"a": "one", "b": "soon", "c": None})
    assert Conformer(schema)({"c": None, "other": 1}) == {}


def test_text_is_cut_into_keywords_where_there_is_a_separator() -> None:
    assert one("keywords", "a | b||c", separator="|") == ["a", "b", "c"]


def test_dates_that_are_numbers_count_the_declared_unit() -> None:
    assert one("date", "1700000000", date_unit="s") == 1_700_000_000_000
    assert one("date", 1.5, date_unit="s") == 1500


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_date_is_the_same_as_text_and_as_a_datetime(moment: datetime) -> None:
    assert one("date", moment.isoformat()) == one("date", moment)
    back = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=one("date", moment))
    assert timedelta(0) <= moment - back < timedelta(milliseconds=1)


@given(st.integers(-(2**63), 2**63 - 1))
def test_an_integer_is_the_same_as_text(number: int) -> None:
    assert one("integer", str(number)) == one("integer", number) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_the_same_as_text(number: float) -> None:
    assert one("float", repr(number)) == number
