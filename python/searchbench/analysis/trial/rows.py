"""A finding before it knows its trial."""

from __future__ import annotations

from typing import Literal

Severity = Literal["invalid", "warning", "note"]
Row = tuple[str, Severity, str, str, str]
"""Kind, severity, number, meaning, remedy."""
