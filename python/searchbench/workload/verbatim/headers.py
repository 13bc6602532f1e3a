"""Headers of HTTP as people write them, and which of them may be on record.

A header may be the key to a system, so all are taken for secret but those that never are. A value
that is secret is never written down: ``${NAME}`` in its place names an environment variable.
"""

from __future__ import annotations

import re

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
NOT_RECORDED = "(not recorded)"
_OPEN = frozenset({
    "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "connection",
    "content-length", "content-type", "expect", "host", "pragma", "prefer", "range", "te",
    "traceparent", "user-agent", "x-opaque-id", "x-request-id",
})  # fmt: skip


def is_open(name: str) -> bool:
    """Whether the value of that header is known to be no secret."""
    return name.lower() in _OPEN


def parse(text: str) -> tuple[str, str]:
    """Name and value of ``Name: value``; ValueError with what is wrong, without the value."""
    name, colon, value = text.partition(":")
    if not colon or not HEADER_NAME.fullmatch(name.strip()):
        raise ValueError("a header is written 'Name: value'")
    if any(c < " " and c != "\t" for c in value) or "\x7f" in value:
        raise ValueError(f"the header {name.strip()} has a control character in its value")
    return name.strip(), value.strip()
