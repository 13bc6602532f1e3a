"""Literals of SQL that say how to answer: units, formats, zones, encodings.

Where such a literal is expected, anything can stand: a password behind DECODE(, a name behind
timezone(. So it stays only if it has the form of what is expected.
"""

from __future__ import annotations

import re
from functools import cache
from zoneinfo import available_timezones

_UNIT = (
    r"(?:micro|milli)?seconds?|mins?|minutes?|hours?|days?|weeks?|months?|quarters?|years?"
    r"|decades?|century|centuries|millenniums?|millennia|dow|doy|isodow|isoyear|epoch|julian"
    r"|timezone(?:_hour|_minute)?|secs?|hrs?|mons?|yrs?|[a-z]+_(?:microsecond|second|minute|hour)"
    r"|year_month"
)
_INTERVAL = (
    rf"(?:[@+-]?\s*\d+(?:\.\d+)?\s*(?:{_UNIT}|[smhdwy])?|ago|[+-]?\d+[-:]\d+(?::\d+(?:\.\d+)?)?"
    r"|P(?:\d+[YMWD])*(?:T(?:\d+(?:\.\d+)?[HMS])+)?|[\s,])+"
)
_TIME = re.compile(r"\d\d:\d\d(?::\d\d(?:\.\d+)?)?|[+-]\d\d:\d\d")
# PostgreSQL's templates, and MySQL's.
_TEMPLATE = (
    r"(?:I?Y,?YYY|I?YYY|I?YY|IY|Y|BC|AD|MONTH|MON|MM|DAY|DY|I?DDD|I?DD|ID|D|WW|IW|W|CC|J|Q|RM|TZH"
    r"|TZM|TZ|OF|HH24|HH12|HH|MI|S{4,5}|SS|MS|US|FF[1-6]|[AP]\.?M\.?|FM|FX|TM|TH|SP|EEEE|PR|PL|SG"
    r"|RN|[TSLGV90]|[^\w%])+|(?:%[a-z%]|[^\w%]|T)*"
)
_FORMS = {
    "unit": _UNIT,
    "interval": _INTERVAL,
    "template": _TEMPLATE,
    "encoding": r"hex|base64|escape",
    "weight": r"[A-D]|\{[A-D](?:,[A-D])*\}",
    "kinds": r"[\[\]\s\",]*(?:(?:all|string|numeric|boolean|key)[\[\]\s\",]*)+",
    "setting": r"[a-z_]+(?:\.[a-z_]+)?",
    "sign": r"\W{0,3}",
    "collation": r"[a-z]+(?:[_-][a-z0-9]+)*",
    "one": r"one|all",
}
_KNOWN = {name: re.compile(form, re.IGNORECASE) for name, form in _FORMS.items()}
# What stands before the literal; and the function that it is given to, by the number of commas.
_BEHIND = {
    "interval": "interval", "zone": "zone", "collate": "collation", "separator": "sign",
    "escape": "sign", "uescape": "sign",
}  # fmt: skip
_GIVEN = {
    "date_trunc": ("unit", "", "zone"),
    "date_part": ("unit",),
    "extract": ("unit",),
    "timezone": ("zone",),
    "date_bin": ("interval",),
    "current_setting": ("setting",),
    **dict.fromkeys(
        ("to_char", "to_date", "to_timestamp", "to_number", "date_format", "str_to_date",
         "time_format"),
        ("", "template"),
    ),
    "convert_tz": ("", "zone", "zone"),
    "encode": ("", "encoding"),
    "decode": ("", "encoding"),
    "setweight": ("", "weight", "kinds"),
    "ts_filter": ("", "weight"),
    "json_to_tsvector": ("", "kinds", "kinds"),
    "jsonb_to_tsvector": ("", "kinds", "kinds"),
    "json_search": ("", "one"),
}  # fmt: skip


def says_how(inner: str, behind: str, function: str, commas: int) -> bool:
    """Whether a literal says how. ``inner``: what is between its quotes; ``behind``: the word
    before it, or the type that it is cast to; ``function``: whose argument it is, after how many
    commas.
    """
    if _TIME.fullmatch(inner) or (behind in _BEHIND and _is(inner, _BEHIND[behind])):
        return True
    given = _GIVEN.get(function, ())
    return commas < len(given) and _is(inner, given[commas])


def _is(inner: str, form: str) -> bool:
    if form == "zone":
        return inner.lower() in _zones() or re.fullmatch(r"[+-]\d\d?(?::?\d\d)?", inner) is not None
    return form in _KNOWN and _KNOWN[form].fullmatch(inner) is not None


@cache
def _zones() -> frozenset[str]:
    letters = {"utc", "gmt", "z", "system", "cet", "cest", "est", "edt", "cst", "cdt", "pst", "pdt",
               "bst", "jst", "msk", "ist"}  # fmt: skip
    return frozenset({zone.lower() for zone in available_timezones()} | letters)
