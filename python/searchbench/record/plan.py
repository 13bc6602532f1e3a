"""plan.json: the plan of a record, written and read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from searchbench.errors import RecordError
from searchbench.record import old
from searchbench.study.plan import Plan


def to_json(plan: Plan) -> dict[str, Any]:
    """The plan as plan.json has it: plain objects and lists."""
    plain: dict[str, Any] = msgspec.to_builtins(plan)
    return plain


def from_json(payload: Any, where: Path | str = "this plan") -> Plan:
    """The plan of a plan.json, of this format or an older one; RecordError if it is not whole."""
    if isinstance(payload, dict) and payload.get("format") == 1:
        try:
            payload = old.plan(payload)
        except (AttributeError, KeyError, TypeError) as error:
            raise RecordError(f"{where} is not whole: {error!r}") from error
    found = payload.get("format") if isinstance(payload, dict) else None
    if found != 2:
        raise RecordError(
            f"{where} is of format {found!r}, and this searchbench reads formats 1 and 2; use the "
            "version that wrote it, which record.json names"
        )
    try:
        return msgspec.convert(payload, Plan)
    except msgspec.ValidationError as error:
        raise RecordError(f"{where} is not whole: {error}") from error
