r"""Statements of SQL with other words: in literals, and numbers. Comments go.

What says how to answer, or would be refused if it were made up, stays, if it has the form of that
(how.py), and so nobody's words:

    literals  the configuration of a text search, weights of its words, options of ts_headline;
              what is cast to a name ('english'::regconfig); names in JSON (``data->>'author'``);
              parts and formats of dates, intervals, zones; flags of regular expressions
    numbers   of LIMIT and OFFSET, of columns in ORDER BY 2 and GROUP BY 1, of types (varchar(20)),
              of sleep(1)
    OPTION    of SphinxQL, but for its comment
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson

from searchbench.logs.anonymous.how import says_how
from searchbench.logs.anonymous.words import NotAnonymised, Words, in_text, names

_COMMENT = {
    "postgresql": r"/\*.*?(?:\*/|$)|--[^\n]*",
    "": r"/\*.*?(?:\*/|$)|--(?=\s|$)[^\n]*|\#[^\n]*",
}
_ESCAPED = r"'(?:[^'\\]|\\.|'')*'"
_LITERALS = {
    "postgresql": rf"(?P<dollar>(?P<tag>\$(?:[^\W\d]\w*)?\$).*?(?P=tag))|(?P<bits>\b[bB]'|\b[uU]&')"
    rf"|(?P<xliteral>\b[xX]'[0-9a-fA-F]*')|\b[eE](?P<escaped>{_ESCAPED})|(?P<literal>'(?:[^']|'')*')"
    r'|(?P<name>"(?:[^"]|"")*")',
    "": r"(?P<bits>\b[bB]')|(?P<xliteral>\b[xX]'[0-9a-fA-F]*')"
    rf'|(?P<escaped>{_ESCAPED}|"(?:[^"\\]|\\.|"")*")|(?P<name>`[^`]*`)',
}
_TOKENS = {
    dialect: re.compile(
        rf"(?P<comment>{_COMMENT[dialect]})|{_LITERALS[dialect]}"
        r"|(?P<hex>\b0x[0-9a-fA-F]+\b)|(?P<binary>\b0b[01]+\b)|(?P<open>['\"`])"
        r"|(?P<kept>\b(?:LIMIT|OFFSET|TOP|FETCH\s+(?:FIRST|NEXT))\s+\d+(?:\s*,\s*\d+)?)"
        r"|(?P<word>[^\W\d][\w$]*)|(?P<number>\d+(?:_\d+)*(?:[eE][+-]?\d+)?)|(?P<blank>\s+)"
        r"|(?P<sign>::|[-\#]>>?|!?~~?\*?|.)",
        re.IGNORECASE | re.DOTALL,
    )
    for dialect in ("postgresql", "")
}
_OPTION = re.compile(
    rf"(?is)\bOPTION\s+(?:,?\s*\w+\s*=\s*(?:{_ESCAPED}|\w+\s*\(\s*{_ESCAPED}\s*\)|[\w.-]+"
    r"|\([\w\s=,.-]*\)))+"
)
# Literals in them: all but the formula of a ranker are anybody's.
_NOTED = re.compile(rf"(?is)(\bexpr\s*\(\s*)?({_ESCAPED})")
_GOES_ON = re.compile(r"(?i)\s*[-+*/%.=<>!|&^]|\s+(?:div|mod|in|between)\b")
_SHARE = re.compile(r"\.\d")
_MORE = re.compile(r"\s*(?:::\s*\w+\s*)?,")
_SPELT = re.compile(r"(?<!\\)(?:\\\\)*\\[^\WbfnrtZ0_]")
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_CAST = re.compile(r"\s*::\s*(\w+)")
_CONFIGURED = re.compile(r"(?:\w*to_tsquery|\w*to_tsvector|ts_headline|websearch_to_tsquery)")
_HEADLINE = re.compile(
    r"(?is)(?:\s*,?\s*(?:StartSel|StopSel|MaxWords|MinWords|ShortWord|HighlightAll|MaxFragments"
    r"|FragmentDelimiter)\s*=\s*(?:\"[^\"]*\"|[^,\"]*))+"
)
_JSON_PATH = re.compile(r"\$(?:\.\w+|\.\"\w+\"|\[[\d*]+\]|\.\*)*")


_FLAGS = {"regexp_replace": 3, "regexp_match": 2, "regexp_matches": 2, "regexp_like": 2}
_TYPES = names(
    "decimal numeric dec char varchar character varying binary varbinary bit float double "
    "timestamp timestamptz time timetz datetime signed unsigned vector halfvec"
)
_NUMBERS_STAY = _TYPES | names("sleep pg_sleep benchmark percentile_cont percentile_disc")
_ENDS_BY = names("kept limit offset having where select union option fetch for window within facet")
_TRUE = names("t f true false")
_CONFIGURATIONS = names(
    "simple arabic armenian basque catalan danish dutch english estonian finnish french german "
    "greek hindi hungarian indonesian irish italian lithuanian nepali norwegian polish portuguese "
    "romanian russian serbian spanish swedish tamil turkish yiddish"
)


@dataclass
class _Bracket:
    """A pair of brackets: of which function, how many commas so far; whether in ORDER BY there."""

    function: str = ""
    commas: int = 0
    by: bool = False


@dataclass
class _Where:
    """Where in a statement one is."""

    stack: list[_Bracket] = field(default_factory=lambda: [_Bracket()])
    before: str = ""  # the word or sign before, in lower case
    second: str = ""  # the one before that

    def step(self, told: str) -> None:
        if told == "(":
            name = self.before if self.before.isidentifier() else ""
            if name in _TYPES and self.second not in ("as", "::", "character"):
                name = ""  # CHAR(65) is a text
            self.stack.append(_Bracket(name))
        elif told == ")" and len(self.stack) > 1:
            self.stack.pop()
        elif told == ",":
            self.stack[-1].commas += 1
        elif told == "by" and self.before in ("order", "group"):
            self.stack[-1].by = True
        elif told in _ENDS_BY or told == ";":
            self.stack[-1].by = False
        self.before, self.second = told, self.before


def in_statement(text: str, of: Words, dialects: Iterable[str]) -> str:
    """A statement with other words. ``dialects``: those that it may be in, of "postgresql",
    "mysql" and "sphinxql".

    NotAnonymised where its parts cannot be told apart.
    """
    told = {_in_dialect(text, of, dialect) for dialect in dialects}
    if len(told) > 1:
        raise NotAnonymised("a statement that means another thing to another server")
    return told.pop()


def _in_dialect(text: str, of: Words, dialect: str) -> str:
    if dialect != "sphinxql":
        return _in_part(text, of, dialect)
    told, at = "", 0
    for option in _options(text):
        told += _in_part(text[at : option.start()], of, dialect)
        told += _NOTED.sub(
            lambda c: c[0] if c[1] else f"'{in_text(_plainly(c[2][1:-1]), of, 'escaped')}'",
            option[0],
        )
        at = option.end()
    return told + _in_part(text[at:], of, dialect)


def _options(text: str) -> list[re.Match[str]]:
    """Those that stand outside of literals."""
    inside = [found.span() for found in _TOKENS[""].finditer(text) if found["escaped"]]
    return [
        found for found in _OPTION.finditer(text)
        if not any(a <= found.start() < b for a, b in inside)
    ]  # fmt: skip


def _in_part(text: str, of: Words, dialect: str) -> str:
    postgresql = dialect == "postgresql"
    where, told = _Where(), []
    for found in _TOKENS["postgresql" if postgresql else ""].finditer(text):
        kind, run = str(found.lastgroup), found[0]
        if kind == "tag":
            kind = "dollar"
        if kind in ("bits", "open"):
            raise NotAnonymised("a literal that does not end, or of a form that is not known")
        if kind == "blank":
            told.append(run)
            continue
        if kind == "comment":
            if postgresql and run.startswith("/*") and "/*" in run[2:]:
                raise NotAnonymised("a comment inside of a comment")
            told.append(" ")
            continue
        if kind == "number":
            stays = _stays(where, text, found.end())
            told.append(run if stays else _number(run, text, found.end(), of))
        elif kind == "dollar":
            tag = found["tag"]
            language = _language(where, "", postgresql=True, plain=True)
            told.append(tag + in_text(run[len(tag) : -len(tag)], of, language) + tag)
        elif kind == "binary":
            told.append(f"0b{int(of(str(int(run[2:], 2)))):b}")
        elif kind == "hex":
            told.append("0x" + _hexadecimal(run[2:], of))
        elif kind == "xliteral":
            digits = _hexadecimal(run[2:-1], of)
            told.append(f"{run[:2]}{'0' * (len(digits) % 2)}{digits}'")
        elif kind in ("literal", "escaped"):
            written = found[kind]
            before = run[: len(run) - len(written)]
            inner = _literal(written[1:-1], found, of, where, dialect)
            told.append(before + written[0] + inner + written[0])
        else:
            told.append(run)
        where.step(run.lower() if kind in ("word", "sign") else kind)
    return "".join(told)


def _stays(where: _Where, text: str, at: int) -> bool:
    """Whether a number is that of a column to order by, or says how."""
    here = where.stack[-1]
    if here.function in _NUMBERS_STAY:
        return True
    behind = where.before in ("by", ",") and here.by
    return behind and not _GOES_ON.match(text, at)


def _number(run: str, text: str, at: int, of: Words) -> str:
    if run == "0" and _SHARE.match(text, at):
        return run  # a share stays one
    digits = run.lower().partition("e")[0]
    return re.sub(r"\d+", lambda d: of(d[0]), digits) + run[len(digits) :]


def _hexadecimal(digits: str, of: Words) -> str:
    """Of a text the digits of another text, of a number those of another number."""
    with suppress(ValueError):
        text = bytes.fromhex(digits).decode()
        if text.isprintable() and re.search(r"[^\W_]", text):
            return in_text(text, of).encode().hex()
    # Digits are a number to any base.
    return of(str(int(digits or "0", 16)))


def _literal(inner: str, found: re.Match[str], of: Words, where: _Where, dialect: str) -> str:
    postgresql, plain = dialect == "postgresql", found.lastgroup == "literal"
    cast = _CAST.match(found.string, found.end())
    more = _MORE.match(found.string, found.end()) is not None
    to = cast[1].lower() if cast else ""
    if _is_how(inner, where, to, more=more, postgresql=postgresql):
        return inner
    if dialect == "sphinxql":
        matched = where.stack[-1].function == "match"
        return in_text(inner, of, "@") if matched else in_text(_plainly(inner), of, "escaped")
    if (told := _json(inner, of)) is not None:
        return told
    language = _language(where, to, postgresql=postgresql, plain=plain)
    return in_text(_plainly(inner) if language == "escaped" else inner, of, language)


def _plainly(inner: str) -> str:
    """What stands between quotes, if its escapes hide no letters."""
    if _SPELT.search(inner):
        raise NotAnonymised("a literal with escapes that may be letters")
    return inner


def _language(where: _Where, to: str, *, postgresql: bool, plain: bool) -> str:
    here = where.stack[-1]
    if where.before in ("~", "~*", "!~", "!~*", "regexp", "rlike") or (
        where.before == "to" and where.second == "similar"
    ) or (here.function.startswith("regexp_") and here.commas == 1):  # fmt: skip
        return "regex"
    if postgresql and (to == "tsquery" or here.function == "to_tsquery"):
        return "tsquery"
    return "" if plain else "escaped"


def _is_how(inner: str, where: _Where, to: str, *, more: bool, postgresql: bool) -> bool:
    here = where.stack[-1]
    first, named = here.commas == 0, re.fullmatch(r"[\w.]+", inner) is not None
    if says_how(inner, to or where.before, here.function, here.commas):
        return True
    if not first and here.commas >= _FLAGS.get(here.function, 99):
        return re.fullmatch(r"[a-z]{1,4}", inner) is not None
    in_json = where.before in ("->", "->>") or (not first and here.function.startswith("json"))
    if in_json and _JSON_PATH.fullmatch(inner):
        return True
    if not postgresql:
        return False
    if first and more and named and _CONFIGURED.fullmatch(here.function):
        # Its first argument may also be the document, and the last one options.
        return here.function != "ts_headline" or inner.lower() in _CONFIGURATIONS
    if here.function == "ts_headline" and not first and _HEADLINE.fullmatch(inner):
        return True
    names = named and (to.startswith("reg") or where.before in ("->", "->>"))
    path = where.before in ("#>", "#>>") and re.fullmatch(r"\{[\w,]+\}", inner) is not None
    return names or path or inner.lower() in _TRUE


def _json(inner: str, of: Words) -> str | None:
    """JSON with other values below the same names; None for any other text."""
    if "\\" in inner or not re.match(r"\s*(?:\{\s*\"|\[)", inner):
        return None
    try:
        found = orjson.loads(inner)
    except orjson.JSONDecodeError:
        return None
    return orjson.dumps(_values(found, of)).decode()


def _values(value: Any, of: Words) -> Any:
    if isinstance(value, dict):
        return {
            name if _NAME.fullmatch(name) else in_text(name, of): _values(inner, of)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_values(inner, of) for inner in value]
    if isinstance(value, str):
        return in_text(value, of)
    if isinstance(value, bool) or value is None:
        return value
    return number(value, of)


def number(value: float, of: Words) -> float:
    """Another number with as many digits; a share stays one."""
    digits, exponent, power = repr(value).partition("e")
    told = re.sub(
        r"\d+",
        lambda d: d[0] if d[0] == "0" and digits[d.end() : d.end() + 1] == "." else of(d[0]),
        digits,
    )
    told += exponent + power
    return int(told) if isinstance(value, int) else float(told)
