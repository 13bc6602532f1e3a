r"""Lines of a log with other words (pseudonyms.py) in the same structure.

    words        every word; not operators (OR, AND, NOT, quotes, signs)
    paths        words of parameters; parameters that only say how to answer (``limit``, ``table``)
                 stay, those that say who asked (``user``, ``session``) go; numbers in the path
    statements   words in literals, and numbers; not LIMIT, OFFSET and OPTION; comments go
    bodies       strings and numbers below keys of JSON; not those that say how to answer

Names of fields stay where the language that was asked in has them: ``title:`` in parameters and in
``query_string``, ``@title`` in SphinxQL. Elsewhere ``@name`` is what somebody typed. Dates in ISO's
form stay, for a server would refuse others. Headers go.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote_plus

import numpy as np

from searchbench.logs.pseudonyms import Pseudonyms
from searchbench.logs.searches import Searches
from searchbench.workload.queries.analysis import lower

Words = Callable[[str], str]

# By what names a field: nothing, a colon (title:red), an at sign (@title, @(title,body)).
_RUNS = {
    fields: re.compile(
        r"\\.|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?"  # an escape, a date
        + named
        + r"|\b(?:OR|AND|NOT|TO|NEAR|MAYBE|SENTENCE|PARAGRAPH)\b|(?P<word>[^\W_]+)"
    )
    for fields, named in (
        ("", ""),
        (":", r"|[^\W_]+(?:[._][^\W_]+)*:(?=[^\s:/])"),
        ("@", r"|@\(?\w+(?:,\s*\w+)*\)?"),
    )
}
_SQL = re.compile(
    r"(?P<comment>/\*.*?\*/|--[^\n]*(?=\n|$))"
    r"|(?P<dollar>(?P<tag>\$(?:[^\W\d]\w*)?\$).*?(?P=tag))|(?P<hex>\b0x[0-9a-f]+\b)"
    r"|(?P<literal>'(?:[^'\\]|\\.|'')*')|(?P<double>\"(?:[^\"\\]|\\.|\"\")*\")|(?P<name>`[^`]*`)"
    r"|(?P<kept>\b(?:LIMIT|OFFSET)\s+\d+(?:\s*,\s*\d+)?|\bOPTION\s+\w+\s*=\s*(?=[\w('\"]).*)"
    r"|(?P<word>[^\W\d]\w*)|(?P<number>\d+)",
    re.IGNORECASE | re.DOTALL,
)
_DOLLAR = re.compile(r"(\$(?:[^\W\d]\w*)?\$).*?\1", re.DOTALL)
_COMMENT = re.compile(r"(?i)(?<=comment)(\s*=\s*)'((?:[^'\\]|\\.|'')*)'")
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|(?<![\w.])\d+(?![\w])")
_SEARCHING = re.compile(r"(?i)search|find|query|suggest|select")


def _names(together: str) -> frozenset[str]:
    return frozenset(together.split())


# Parameters that say how to answer, and not what is looked for.
_HOW = _names(
    "limit offset page pagesize page_size per_page size rows start from table match_columns "
    "output_columns output_type sortby sort_keys sort order orderby drilldown drilldown_sortby "
    "drilldown_sort_keys drilldown_output_columns drilldown_offset drilldown_limit cache "
    "command_version wt fl df deftype qf pf mm op q.op facet facet.field facet.limit hl hl.fl lang "
    "locale format indent columns fields typed_keys request_cache index collection"
)

# Those that have no value where they are asked for; any other without one may be what was typed.
_FLAGS = _names("pretty human explain error_trace flat_settings v help debug debugquery")

# Those in which names of fields stand beside values.
_SCRIPTS = _names("filter scorer drilldown_filter post_filter slice_filter")

# Those that say who asked.
_WHO = _names(
    "user user_id userid uid username login email mail session session_id sessionid sid token "
    "access_token auth apikey api_key key password pass ip client client_id visitor cookie "
    "callback jsonp _ ts timestamp signature sig tracking_id gclid fbclid"
)

_HOW_IN_BODIES = _names(
    "field fields type operator order format path _source analyzer rewrite boost_mode score_mode "
    "minimum_should_match mode relation default_operator default_field gap_policy interval "
    "calendar_interval fixed_interval time_zone pre_tags post_tags stored_fields docvalue_fields "
    "sort size from boost slop fuzziness prefix_length max_expansions tie_breaker "
    "number_of_fragments track_total_hits shard_size min_doc_count timeout terminate_after weight "
    "factor collapse explain version seq_no_primary_term track_scores"
)

# Below these a key is the name of a field, whatever it is called.
_LEAVES = _names(
    "term terms match match_phrase match_phrase_prefix match_bool_prefix prefix wildcard fuzzy "
    "range regexp span_term"
)


def words_asked(of: Searches) -> dict[str, int]:
    """In how many searches each word is, in lower case."""
    times = np.bincount(of.line, minlength=len(of.lines)).tolist()
    found: Counter[str] = Counter()
    for line, n in zip(of.lines, times, strict=True):
        if n:
            met: set[str] = set()
            _line(line, _Listening(met), of.formats)
            for word in met:
                found[word] += n
    return dict(found)


def anonymised(of: Searches, names: Pseudonyms) -> Searches:
    """The same searches with other words; their times are counted from the first."""
    lines = [_line(line, names.of, of.formats) for line in of.lines]
    at = None if of.at_ns is None or not len(of) else of.at_ns - of.at_ns[0]
    return replace(of, lines=lines, at_ns=at)


class _Listening:
    """Takes note of words, and leaves them."""

    def __init__(self, met: set[str]) -> None:
        self.met = met

    def __call__(self, word: str) -> str:
        self.met.add(lower(word))
        return word


def _line(line: Mapping[str, Any], of: Words, formats: Sequence[str]) -> dict[str, Any]:
    found = dict(line)
    if "sql" in found:
        names_in_quotes = any(form.startswith("postgresql") for form in formats)
        fields = "@" if set(formats) == {"sphinxql"} else ""
        found["sql"] = _statement(found["sql"], of, names_in_quotes, fields)
        # A fingerprint has no values but these.
        found["class"] = _DOLLAR.sub("?", str(found["class"]))
    elif "path" in found:
        found["class"] = _class_of_path(str(found["class"]), of, _bare(found["path"]))
        found["path"] = _path(found["path"], of)
        if "body" in found:
            found["body"] = _body(found["body"], of)
        if "headers" in found:
            kept = {k: v for k, v in found["headers"].items() if k.lower() == "content-type"}
            found["headers"] = kept
    elif "text" in found:
        found["text"] = in_text(found["text"], of)
    else:
        found["match"] = _match(found["match"], of)
    return found


def in_text(text: str, of: Words, fields: str = "") -> str:
    """A text that somebody typed, with its operators; ``fields``: by what it names fields."""
    return _RUNS[fields].sub(lambda run: of(run[0]) if run["word"] else run[0], text)


def _match(match: Mapping[str, Any], of: Words) -> dict[str, Any]:
    if "terms" in match:
        return {**match, "terms": [lower(of(term)) for term in match["terms"]]}
    return {key: [_match(part, of) for part in parts] for key, parts in match.items()}


def _statement(text: str, of: Words, names_in_quotes: bool, fields: str) -> str:
    def put(found: re.Match[str]) -> str:
        if found["comment"]:
            return " "
        if found["dollar"]:
            tag = found["tag"]
            return tag + in_text(found[0][len(tag) : -len(tag)], of) + tag
        if found["literal"] or (found["double"] and not names_in_quotes):
            return found[0][0] + in_text(found[0][1:-1], of, fields) + found[0][-1]
        if found["hex"]:
            # Digits are a number to any base.
            return "0x" + of(str(int(found[0], 16)))
        if found["kept"]:
            return _COMMENT.sub(lambda c: f"{c[1]}'{in_text(c[2], of)}'", found[0])
        return of(found[0]) if found["number"] else found[0]

    return _SQL.sub(put, text)


def _path(path: str, of: Words) -> str:
    before, mark, query = path.partition("?")
    kept = ""
    # Parameters and what stands between them, in turn.
    for pair, behind in zip(*[iter([*re.split("([&;])", query), ""])] * 2, strict=True):
        name, equals, value = pair.partition("=")
        known = unquote_plus(name).lower().removesuffix("[]")
        if known in _WHO:
            continue
        if equals and known not in _HOW:
            plain = unquote_plus(value, errors="surrogateescape")
            put = _script(plain, of) if known in _SCRIPTS else in_text(plain, of, ":")
            value = quote(put, safe="!'()*,:@/$-._~", errors="surrogateescape")
        elif known and not equals and known not in (_HOW | _FLAGS):
            name = _typed(name, of)
        kept += name + equals + value + behind
    kept = kept.rstrip("&;") if not query.endswith(("&", ";")) else kept
    return _segments(before, of) + (mark if kept else "") + kept


def _bare(path: str) -> set[str]:
    """Parameters without a value (``/search?red``), lowered: somebody may have typed them."""
    pairs = re.split("[&;]", path.partition("?")[2])
    names = {unquote_plus(pair).lower() for pair in pairs if pair and "=" not in pair}
    return names - _HOW - _FLAGS


def _typed(name: str, of: Words) -> str:
    plain = unquote_plus(name, errors="surrogateescape")
    return quote(in_text(plain, of), safe=".-_~", errors="surrogateescape")


def _segments(path: str, of: Words) -> str:
    """The path itself: its numbers, and what follows a segment that says that it searches."""
    found, searching = [], False
    for segment in path.split("/"):
        if segment.isdigit():
            found.append(of(segment))
        elif searching and segment:
            found.append(quote(in_text(unquote_plus(segment), of), safe=".-_~"))
        else:
            found.append(segment)
        searching = bool(_SEARCHING.search(segment))
    return "/".join(found)


def _class_of_path(of_class: str, of: Words, bare: set[str]) -> str:
    """A class is the path with the names of its parameters; numbers in it are N already. ``bare``:
    those that somebody may have typed.
    """
    method, blank, rest = of_class.rpartition(" ") if " /" in of_class else ("", "", of_class)
    path, mark, names = rest.partition("?")
    each = re.split("([&;])", names)
    told = "".join(_typed(n, of) if unquote_plus(n).lower() in bare else n for n in each)
    return method + blank + _segments(path, of) + mark + told


def _script(text: str, of: Words) -> str:
    """What stands in quotes, numbers, and values behind a field's name (``title:red``)."""

    def put(found: re.Match[str]) -> str:
        return in_text(found[0], of)

    told = _QUOTED.sub(put, text)
    return re.sub(r"(?<=:)(?![\"'(\[])[^\s)\"']+", put, told) if told == text else told


def _body(value: Any, of: Words, key: str = "", below: str = "") -> Any:
    if key in _HOW_IN_BODIES and below not in _LEAVES:
        return value
    if isinstance(value, dict):
        return {name: _body(inner, of, name, key) for name, inner in value.items()}
    if isinstance(value, list):
        return [_body(inner, of) for inner in value]
    if isinstance(value, str):
        lucene = key == "query" and below in ("query_string", "simple_query_string")
        # Manticore's query_string is a text, and names fields as SphinxQL does.
        return in_text(value, of, ":" if lucene else "@" if key == "query_string" else "")
    if isinstance(value, bool) or value is None:
        return value
    digits, exponent, power = repr(value).partition("e")
    told = re.sub(r"\d+", lambda found: of(found[0]), digits) + exponent + power
    return int(told) if isinstance(value, int) else float(told)
