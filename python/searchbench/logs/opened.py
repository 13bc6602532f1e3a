"""What the readings of a record left open: entries whose lines may go on.

A reading ends before an entry that may not be whole, and the next one begins there. What is
counted of all before is kept; what is open is counted anew each time the record is shown, as if
nothing more came, and is never added to what is kept. So increments say what one reading says.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from searchbench import _core
from searchbench.logs.counts import (
    Counts,
    Opened,
    Options,
    add_tables,
    settings,
    tables_of,
)
from searchbench.logs.mixed import with_others
from searchbench.logs.sources import opened

_EXAMPLES = 5  # lines that could not be read, of a source
_SUMS = ("n", "sum_ns", "zero", "errors")


def kept(found: Opened) -> dict[str, Any]:
    """What is open, as a record keeps it."""
    state, before, text, last_ns, at_s = found
    parts = {"state": state, "before": before, "text": text}
    plain = {name: base64.b64encode(part).decode() for name, part in parts.items()}
    return {**plain, "last_ns": last_ns, "at_s": at_s}


def with_open(settled: Counts, options: Options) -> Counts:
    """The counts with what is open in their sources. ``options``: those of the record."""
    open_, whole = open_in(settled.sources, options)
    sources = [{k: v for k, v in source.items() if k != "open"} for source in whole]
    if not open_:
        return Counts(settled.tables, sources)
    return Counts(_added(settled.tables, open_, options.distinct), sources)


def open_in(
    sources: Sequence[dict[str, Any]], options: Options
) -> tuple[dict[str, pa.Table], list[dict[str, Any]]]:
    """The counts of what is open in sources, and the sources with it; nothing where nothing is."""
    several = [(i, opened(s)) for i, s in enumerate(sources) if s["format"]]
    several = [(i, found) for i, found in several if any(found[:3])]
    whole = list(sources)
    if not several:
        return {}, whole
    log = _core.Log(options.distinct)
    seen = log.read_open(
        [(whole[i]["server"], whole[i]["format"]) for i, _ in several],
        [found for _, found in several],
        **settings(options),
    )
    for (i, _), more in zip(several, seen, strict=True):
        whole[i] = joined(whole[i], more)
    return tables_of(log), whole


def joined(source: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """What became of a source, with what follows in it; all else as of ``source``."""
    found = {**source, "notes": dict(source["notes"])}
    for name in ("lines", "entries", "unread", "back"):
        found[name] += more[name]
    found["longest_line"] = max(source["longest_line"], more["longest_line"])
    later = [(line + source["lines"], *rest) for line, *rest in more["examples"]]
    found["examples"] = [*source["examples"], *later][:_EXAMPLES]
    found["other_formats"] = with_others(source, more, source["lines"])
    for what, n in more["notes"].items():
        found["notes"][what] = found["notes"].get(what, 0) + n
    found["notes"] = dict(sorted(found["notes"].items()))
    return found


def _added(
    tables: Mapping[str, pa.Table], more: Mapping[str, pa.Table], distinct: int
) -> dict[str, pa.Table]:
    """Large tables and small ones together; the millions of queries are not copied."""
    log = _core.Log(distinct)
    for each in (tables, more):
        add_tables(log, {name: table for name, table in each.items() if name != "queries"})
    return {**tables_of(log), "queries": _queries(tables["queries"], more["queries"])}


def _queries(table: pa.Table, more: pa.Table) -> pa.Table:
    """Both tables of queries as one; rows stay in the order of their hashes."""
    if not len(more):
        return table
    hashes = table.column("hash").to_numpy()
    pieces, at = [], 0
    for number, row in enumerate(more.to_pylist()):
        place = int(np.searchsorted(hashes, np.uint64(row["hash"])))
        pieces.append(table.slice(at, place - at))
        at = place
        new = more.slice(number, 1)
        if place < len(hashes) and hashes[place] == row["hash"]:
            new = _sum(table.slice(place, 1).to_pylist()[0], row, more.schema)
            at += 1
        pieces.append(new)
    return pa.concat_tables([*pieces, table.slice(at)])


def _sum(one: Mapping[str, Any], two: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    row = {**one, **{name: one[name] + two[name] for name in _SUMS}}
    row["max_ns"] = max(one["max_ns"], two["max_ns"])
    row["first"] = min(one["first"], two["first"])
    return pa.Table.from_pylist([row], schema)
