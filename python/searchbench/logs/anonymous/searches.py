"""Searches of a log with other words (pseudonyms.py) in the same structure.

    words        every word; not operators                        words.py
    paths        words in values of parameters                    paths.py
    statements   words in literals, and numbers                   statements.py
    bodies       values of queries                                bodies.py

Where names and words cannot be told apart, a search is left out: it would show a word, or a server
would refuse it. Headers go.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import numpy as np
import orjson

from searchbench import _core
from searchbench.errors import QueryError
from searchbench.logs.anonymous.bodies import in_body
from searchbench.logs.anonymous.paths import in_class, in_path
from searchbench.logs.anonymous.pseudonyms import Pseudonyms
from searchbench.logs.anonymous.statements import in_statement
from searchbench.logs.anonymous.words import NotAnonymised, Words, in_text, of_numbers_too
from searchbench.logs.entries import UNKNOWN
from searchbench.logs.searches import UNNAMED, Lost, Searches
from searchbench.workload.queries.analysis import lower

_NEXT = {
    a: b
    for row in ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789")
    for a, b in zip(row, row[1:] + row[0], strict=True)
}
_WHY = "cannot be anonymised: "


def without_unsafe(of: Searches) -> Searches:
    """Without those that cannot get other words; they are counted by reason."""
    times = np.bincount(of.line, minlength=len(of.lines)).tolist()
    left_out, lost = Counter(of.left_out), Counter(dict(of.lost.classes) if of.lost else {})
    unsafe = []
    for number, line in enumerate(of.lines):
        try:
            _insist_safe(line, of.formats)
        except NotAnonymised as reason:
            unsafe.append(number)
            left_out[_WHY + str(reason)] += times[number]
            lost[str(line["class"])] += times[number]
    if not unsafe:
        return of
    kept = of.only(np.flatnonzero(~np.isin(of.line, unsafe)))
    if not len(kept):
        raise QueryError(
            "none of these searches can be anonymised: "
            + "; ".join(f"{n:,} {why.removeprefix(_WHY)}" for why, n in left_out.items()
                        if why.startswith(_WHY))
        )  # fmt: skip
    classes = tuple(sorted(lost.items(), key=lambda one: (-one[1], one[0])))
    return replace(kept, left_out=left_out, lost=Lost(_share(of, kept), classes))


def _insist_safe(line: Mapping[str, Any], formats: Sequence[str]) -> None:
    """NotAnonymised where a line cannot get other words, or where the reader of logs, which has no
    part in giving other words, takes other parts of the statement for its values.
    """
    other = _line(line, _next, formats)
    if "sql" in line and any(
        _core.class_of_request("", line["sql"], dialect)
        != _core.class_of_request("", other["sql"], dialect)
        for dialect in _dialects(formats)
    ):
        raise NotAnonymised("a statement that can be read in two ways")


def _next(word: str) -> str:
    """Another word of the same form for each: to see what is replaced, and what stays."""
    return "".join(_NEXT[c] if c in _NEXT else _neighbour(c) for c in word)


def _neighbour(letter: str) -> str:
    """A letter for a letter, a digit for a digit, of any alphabet."""
    beside = (chr(ord(letter) + 1), chr(ord(letter) - 1))
    return next((b for b in beside if b.isalnum() and b.isdigit() == letter.isdigit()), letter)


def _share(of: Searches, kept: Searches) -> float | None:
    """Of the time of all searches, how much those took that are left out."""
    before = of.lost.share_of_time if of.lost else 0.0
    all_ns, kept_ns = (
        float(one.ns[one.ns != UNKNOWN].astype(np.float64).sum()) for one in (of, kept)
    )
    if before is None or not all_ns:
        return None
    return 1 - (1 - before) * kept_ns / all_ns


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
    try:
        lines = [_line(line, names.of, of.formats) for line in of.lines]
    except NotAnonymised as reason:  # with these words, and not with others: give it others
        raise QueryError(f"a search cannot be anonymised with this key: {reason}") from None
    at = None if of.at_ns is None or not len(of) else of.at_ns - of.at_ns[0]
    return replace(of, lines=lines, at_ns=at)


def with_signs(of: Searches) -> int:
    """How many searches have signs that stay, and may tell what was asked: marks of letters, and
    symbols of people (emoji) or of other scripts.
    """
    have = [
        any(_tells(c) for key in ("sql", "path", "text", "body", "match") if key in line
            for c in _written(line[key]))
        for line in of.lines
    ]  # fmt: skip
    return int(np.asarray(have, bool)[of.line].sum()) if have else 0


def _written(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return unquote(text) if "%" in text else text


def _tells(sign: str) -> bool:
    return not sign.isascii() and unicodedata.category(sign) in ("Mn", "Mc", "So", "Sk")


def without_places(of: Searches) -> Searches:
    """Without names of files and servers: files are often called as their servers are."""
    files = [
        {**file, "name": f"file {n}", "refused": "it cannot be read" if file["refused"] else ""}
        for n, file in enumerate(of.files, 1)
    ]
    zones = dict.fromkeys(zone.rpartition("=")[2] for zone in of.zone.split(", "))
    return replace(of, files=files, zone=", ".join(zones))


def without_classes(of: Searches, names: Pseudonyms) -> Searches:
    """What is told of searches that are left out, without the words that their classes have."""
    if of.lost is None:
        return of
    # Of a class alone it is not known which parameters somebody typed.
    lost = dict(of.lost.classes)
    other = {
        str(line["class"]): str(_line(line, names.of, of.formats)["class"])
        for line in of.lines
        if line["class"] in lost
    }
    told: Counter[str] = Counter()
    for name, n in lost.items():
        told[other.get(name, UNNAMED)] += n
    return replace(of, lost=replace(of.lost, classes=tuple(told.most_common())))


class _Listening:
    """Takes note of words, and leaves them."""

    def __init__(self, met: set[str]) -> None:
        self.met = met

    def __call__(self, word: str) -> str:
        self.met.add(lower(word))
        return word


def _line(line: Mapping[str, Any], of: Words, formats: Sequence[str]) -> dict[str, Any]:
    found, of = dict(line), of_numbers_too(of)
    if "sql" in found:
        found["sql"] = in_statement(found["sql"], of, _dialects(formats))
    elif "path" in found:
        found["class"] = in_class(str(found["class"]), found["path"], of)
        found["path"] = in_path(found["path"], of)
        if "body" in found:
            found["body"] = in_body(found["body"], of)
        if "headers" in found:
            kept = {k: v for k, v in found["headers"].items() if k.lower() == "content-type"}
            found["headers"] = kept
    elif "text" in found:
        found["text"] = in_text(found["text"], of)
    else:
        found["match"] = _match(found["match"], of)
    return found


def _dialects(formats: Sequence[str]) -> set[str]:
    """Of which servers a statement may be; a log with named fields does not say."""
    found = set()
    for form in formats:
        known = form.partition("-")[0]
        either = {"mysql", "postgresql"}
        found |= {known} if known in ("mysql", "postgresql", "sphinxql") else either
    return found


def _match(match: Mapping[str, Any], of: Words) -> dict[str, Any]:
    if "terms" in match:
        return {**match, "terms": [lower(of(term)) for term in match["terms"]]}
    return {key: [_match(part, of) for part in parts] for key, parts in match.items()}
