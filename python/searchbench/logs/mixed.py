"""Lines of another format in a log: what was counted of them in its parts, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_KEY = "other_formats"  # of what became of a source: (format, lines, number of the first line)


def with_others(
    before: Mapping[str, Any], following: Mapping[str, Any], lines: int
) -> list[Sequence[Any]]:
    """Those of both parts of a source, of which the second begins after so many ``lines``.

    Records of earlier versions did not count them.
    """
    found = {name: (name, n, first) for name, n, first in before.get(_KEY, ())}
    for name, n, first in following.get(_KEY, ()):
        _, earlier, begun = found.get(name, (name, 0, lines + first))
        found[name] = (name, earlier + n, begun)
    return list(found.values())
