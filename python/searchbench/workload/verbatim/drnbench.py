"""Requests as drnbench has them in JSON: lists, groups with a frequency, maps of groups.

    ["/d/select?..", {"path": "/d/load?..", "method": "POST", "body": [..]}]     a list
    {"frequency": 0.6, "method": "GET", "patterns": [..]}                        one group
    {"users": {"frequency": 0.6, "patterns": [..]}, "items": [..]}               groups with names
    [{"patterns": [..]}, ["/a", "/b"], {"pattern": "/c"}]                        groups without

A list has no groups and is asked in its order. A group's ``host``, ``port``, ``method``,
``timeout``, ``path`` and ``headers`` are those of its patterns where a pattern says none.
A group without ``frequency`` has 1 / number of groups, as drnbench has it; then all are divided
by their sum, so that they are shares.

As in drnbench, a body that is an object and goes with GET, said so, becomes parameters of the
path (``a[b]=c``); with any other method objects and lists are sent as JSON, texts as they are.
Other than drnbench: where no method is said, a request with a body is a POST (its README says
so, its code made them parameters); methods besides GET and POST are sent and not made GET;
what drnbench would overlook (a key that nobody reads) is an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson

from searchbench.errors import QueryError
from searchbench.workload.queries.sets import SHOWN
from searchbench.workload.verbatim.build import (
    BadRequest,
    Builder,
    ask_of,
    escape,
    known,
    number_of,
    told,
)
from searchbench.workload.verbatim.model import Ask, Group

_INHERITED = ("host", "port", "method", "timeout", "path", "headers")
_OF_REQUEST = (*_INHERITED, "body")
_OF_GROUP = ("frequency", "patterns", "pattern", *_INHERITED)
_EXPECTED = (
    'a list of paths or of objects {"path": .., "method": .., "body": ..}, or groups '
    '{"NAME": {"frequency": 0.5, "patterns": [..]}}'
)

Trail = tuple[str | int, ...]


def read_json(text: str, builder: Builder, method: str | None = None) -> tuple[Group, ...]:
    """Every request into ``builder``; the groups, () where there are none.

    ``method`` is that of a request that says none. QueryError where it is no JSON at all; what
    is wrong in it is a bad line of ``builder``, with its place.
    """
    try:
        source = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise QueryError(
            f"{builder.file}:{error.lineno}: not JSON: {error.msg} (column {error.colno}); "
            f"expected {_EXPECTED}"
        ) from None
    return _Reader(text, builder, method).read(source)


class _Reader:
    def __init__(self, text: str, builder: Builder, method: str | None) -> None:
        self.text, self.builder, self.method = text, builder, method

    def read(self, source: Any) -> tuple[Group, ...]:
        if isinstance(source, dict) and "path" in source and not _is_group(source):
            source = [source]
        if isinstance(source, dict):
            if _is_group(source):
                return self.groups([("", source, ())])
            return self.groups([(name, group, (name,)) for name, group in source.items()])
        if isinstance(source, list):
            if any(_is_group(entry) for entry in source):
                return self.groups([(str(n + 1), group, (n,)) for n, group in enumerate(source)])
            self.patterns(source, {}, "", ())
            return ()
        self.refuse((), f"{told(source)} is neither a list nor an object; expected {_EXPECTED}")
        return ()

    def groups(self, sources: list[tuple[str, Any, Trail]]) -> tuple[Group, ...]:
        found: list[tuple[str, float, tuple[int, ...]]] = []
        for name, source, trail in sources:
            try:
                frequency, patterns, below = self.group(source, len(sources))
            except BadRequest as reason:
                self.refuse(trail, f"{_named(name)}: {reason}")
                continue
            inherited = source if isinstance(source, dict) else {}
            members = self.patterns(patterns, inherited, name, (*trail, *below))
            if members:
                found.append((name, frequency, tuple(members)))
        total = sum(frequency for _, frequency, _ in found)
        if found and total <= 0:
            self.refuse((), "every group has the frequency 0; one at least must be asked")
            return ()
        return tuple(Group(name, frequency / total, members) for name, frequency, members in found)

    def group(self, source: Any, count: int) -> tuple[float, list[Any], Trail]:
        """Its frequency, its patterns, and where below it they stand."""
        if isinstance(source, list):
            if not source:
                raise BadRequest("the list of its patterns is empty")
            return 1 / count, source, ()
        if not isinstance(source, dict):
            raise BadRequest(
                f"a group is a list of patterns or an object with `patterns`, not {told(source)}"
            )
        if "command" in source:
            raise BadRequest(
                "`command` is for drnbench's mode http-droonga; over HTTP a pattern has `path`, "
                "`method` and `body`"
            )
        known(source, _OF_GROUP)
        frequency = 1 / count
        if source.get("frequency") is not None:
            frequency = number_of("frequency", source["frequency"], "from 0 up")
            if frequency < 0:
                raise BadRequest(f"`frequency` must be 0 or more, not {frequency:g}")
        if "pattern" in source:
            if "patterns" in source:
                raise BadRequest("it has `pattern` and `patterns`; give one of them")
            return frequency, [source["pattern"]], ()
        if "patterns" not in source:
            raise BadRequest('it has no `patterns`: {"frequency": 0.5, "patterns": [..]}')
        patterns = source["patterns"]
        if not isinstance(patterns, list) or not patterns:
            raise BadRequest(f"`patterns` must be a list of requests, not {told(patterns)}")
        return frequency, patterns, ("patterns",)

    def patterns(
        self, sources: list[Any], group: dict[str, Any], name: str, trail: Trail
    ) -> list[int]:
        members: list[int] = []
        inherited = {key: group[key] for key in _INHERITED if group.get(key) is not None}
        for number, source in enumerate(sources):
            try:
                members.append(self.builder.add(self.pattern(source, inherited, name)))
            except BadRequest as reason:
                at = trail if trail or not group else ("pattern",)
                place = f"pattern {number + 1}" + (f" of {_named(name)}" if group or name else "")
                self.refuse((*at, number), f"{place}: {reason}")
        return members

    def pattern(self, source: Any, inherited: dict[str, Any], group: str) -> Ask:
        if isinstance(source, str):
            source = {"path": source}
        if not isinstance(source, dict):
            raise BadRequest(f"a request is a path or an object with `path`, not {told(source)}")
        known(source, _OF_REQUEST)
        # As in drnbench, null is as good as nothing.
        given = {**inherited, **{key: v for key, v in source.items() if v is not None}}
        method, body = given.get("method", self.method), given.get("body")
        if isinstance(method, str) and method.upper() == "GET" and isinstance(body, dict):
            del given["body"]
            if body and isinstance(given.get("path"), str):
                given["path"] += f"?{'&'.join(_nested('', body))}"
        return ask_of(given, method=self.method, group=group)

    def refuse(self, trail: Trail, reason: str) -> None:
        # The place is looked up only for those that are shown: it costs a walk through the file.
        shown = len(self.builder.bad) < SHOWN
        self.builder.leave_out(line_of(self.text, trail) if shown else 0, reason)


def _is_group(entry: Any) -> bool:
    return isinstance(entry, list) or (
        isinstance(entry, dict) and ("patterns" in entry or "pattern" in entry)
    )


def _named(name: str) -> str:
    return f"group {name!r}" if name else "the group"


def _nested(prefix: str, value: Any) -> Iterator[str]:
    """Parameters as Ruby's Rack nests them: ``a=1``, ``a[b]=2``, ``a[]=3``."""
    if isinstance(value, dict):
        for key, part in value.items():
            name = _quoted(key)
            yield from _nested(f"{prefix}[{name}]" if prefix else name, part)
    elif isinstance(value, list):
        for part in value:
            yield from _nested(f"{prefix}[]", part)
    elif value is None:
        yield prefix
    else:
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        yield f"{prefix}={_quoted(text)}"


def _quoted(text: str) -> str:
    reserved = {ord(c): f"%{ord(c):02X}" for c in "%&=+#[]?/:;,@!$'()*\" <>^`{|}\\"}
    return escape(text.translate(reserved).encode())


def line_of(text: str, trail: Trail) -> int:
    """The line, from 1, of what stands at ``trail`` (keys and indices) in a JSON text.

    Where the trail ends too early it is the line of what was found last.
    """
    decoder = json.JSONDecoder()
    at = _skip(text, 0)
    for step in trail:
        end = _member(decoder, text, at, step)
        if end is None:
            break
        at = end
    return text.count("\n", 0, at) + 1


def _member(decoder: json.JSONDecoder, text: str, at: int, step: str | int) -> int | None:
    """Where the member ``step`` of the object or list at ``at`` begins."""
    is_object = text[at] == "{"
    if text[at] not in "{[" or is_object != isinstance(step, str):
        return None
    found: int | None = None
    at, count = _skip(text, at + 1), 0
    while text[at] not in "]}":
        name: Any = count
        if is_object:
            name, at = decoder.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)  # over the colon
        if name == step:
            found = at  # of a key that is there twice the last one holds
            if not is_object:
                return found
        _, at = decoder.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
        count += 1
    return found


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at
