"""``searchbench wire STUDY METHOD``: the exchanges of one operation, as they are sent."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

_ROWS = 3
_SHOWN = 6
"""Exchanges of a kind that are printed; the rest are counted."""
_DUMPED = 512
"""Bytes of an exchange or a reply that are printed."""


def wire_operation(study: Path, method: str, given: Mapping[str, str], *, as_json: bool) -> int:
    """Print what a method of a study sends for one operation, and what comes back."""
    from searchbench.errors import SearchbenchError
    from searchbench.lab.conduct.serve import hexdump
    from searchbench.lab.conduct.tapping import tap_operation
    from searchbench.study import read_study
    from searchbench.terminal import out

    if strange := set(given) - {"rows", "system"}:
        raise SearchbenchError(
            f"--set.{min(strange)} has no effect here; give --set.rows, --set.system"
        )
    rows = given.get("rows", str(_ROWS))
    if not rows.isdigit() or rows == "0":
        raise SearchbenchError(f"--set.rows takes a whole number from 1 on, not {rows!r}")
    found = tap_operation(read_study(study), method, int(rows), given.get("system", ""))
    if as_json:
        out.as_json(
            {
                "system": found.system,
                "version": found.version,
                "method": found.method,
                "rows": found.rows,
                "exchanges": [{"when": when, "sent": sent.hex()} for when, sent in found.sent],
                "received": found.received.hex(),
                "answer": list(found.lines),
                "error": found.error,
            }
        )
        return 0
    out.say(f"{found.system} {found.version}: {found.method}, {_rows(found.rows)} asked for")
    counts: dict[str, int] = {}
    for when, sent in found.sent:
        counts[when] = counts.get(when, 0) + 1
        if counts[when] <= _SHOWN:
            out.say(f"\n{when}, exchange {counts[when]}: {len(sent)} bytes")
            sys.stdout.write(hexdump(sent, _DUMPED) + "\n")
    for when, count in counts.items():
        if count > _SHOWN:
            out.say(f"\n{when}: {count - _SHOWN} exchanges more")
    out.say(f"\nreceived of what is timed: {len(found.received)} bytes")
    sys.stdout.write(hexdump(found.received, _DUMPED) + "\n")
    if found.error:
        out.say(f"\nwhich means: {found.error}")
        return 1
    out.say(f"\nwhich means: {_rows(len(found.lines))}")
    for line in found.lines[:_SHOWN]:
        out.say(f"  {line}")
    return 0


def _rows(n: int) -> str:
    return f"{n} row{'' if n == 1 else 's'}"
