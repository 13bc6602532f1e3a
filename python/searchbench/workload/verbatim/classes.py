"""Classes of requests by what they ask, when nobody said it.

    path             "GET /d/select": method and path, a number in it as N
    shape            the class that `searchbench logs` gives it: the path with the names of its
                     parameters, or the statement without its values
    words            how many words the parameter with the words has (q, query, ..)
    parameter:NAME   the value of a parameter of the path: "table=Docs"

A class that somebody gave (the key ``class`` of a line, the name of a group) is not of this file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qsl

from searchbench import _core
from searchbench.workload.queries.analysis import terms
from searchbench.workload.queries.classes import LONGEST, by_words
from searchbench.workload.verbatim.model import Ask

BY = ("path", "shape", "words")
PARAMETER = "parameter:"
# The parameters of a path that hold words, as in logs.
_WORDS = ("q", "query", "s", "search", "term", "terms", "keyword", "keywords", "words", "text")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.|'')*)'")


def problem(by: str) -> str:
    """Why this is no way to class requests, as a sentence; empty if it is one."""
    if by in BY or (by.startswith(PARAMETER) and by != PARAMETER):
        return ""
    return f'`classes` must be one of {", ".join(BY)}, or "parameter:NAME", not "{by}"'


def of_request(ask: Ask, by: str) -> str:
    """The class of a request; ``by``: one for which ``problem`` has nothing to say."""
    if by.startswith(PARAMETER):
        name = by.removeprefix(PARAMETER)
        value = _parameters(ask).get(name)
        made = f"no {name}" if value is None else f"{name}={value}"
    else:
        made = _OF[by](ask)
    # A name has no quotation marks, so that a promise can name it between them.
    return made.replace('"', "'")[:LONGEST] or "empty"


def _parameters(ask: Ask) -> dict[str, str]:
    """The parameters of a path, the first of each name."""
    if not ask.is_path:
        return {}
    found: dict[str, str] = {}
    for name, value in parse_qsl(ask.text.partition("?")[2], keep_blank_values=True):
        found.setdefault(name, value)
    return found


def _path(ask: Ask) -> str:
    if not ask.is_path:
        return ask.text.split(None, 1)[0].upper()
    return _core.class_of_request(ask.method, ask.text.partition("?")[0])


def _shape(ask: Ask) -> str:
    return _core.class_of_request(ask.method if ask.is_path else "", ask.text)


def _words(ask: Ask) -> str:
    if ask.is_path:
        given = _parameters(ask)
        text = next((given[name] for name in _WORDS if name in given), "")
    else:
        text = " ".join(_QUOTED.findall(ask.text))
    return by_words(len(terms(text)))


_OF: dict[str, Callable[[Ask], str]] = {"path": _path, "shape": _shape, "words": _words}
