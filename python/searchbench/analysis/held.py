"""What a study says it held constant: its author's word, but where the record has the value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from searchbench.analysis.judgement import Finding
from searchbench.record import Record, Trial


@dataclass(frozen=True, slots=True)
class Held:
    """One entry of ``[held]``. ``found``: the values on record, each once; empty: none to check."""

    key: str
    stated: str
    found: tuple[str, ...] = ()

    @property
    def true(self) -> bool:
        """Whether the record does not contradict it."""
        return all(value.lower() == self.stated.lower() for value in self.found)


def entries(record: Record) -> list[Held]:
    """Every entry, as stated and as on record. Prose (a text with blanks) is never checked."""
    stated = record.plan.judging.held
    if isinstance(stated, str):
        return [Held("", stated.strip())] if stated.strip() else []
    flat = dict(_flat(stated))
    return [Held(key, value, _found(record, key, value)) for key, value in flat.items()]


def findings(record: Record) -> Iterator[Finding]:
    """A warning for each entry that the record contradicts."""
    for one in entries(record):
        if not one.true:
            yield Finding(
                "not held",
                "warning",
                "",
                f"{one.key}: stated {one.stated}, on record {', '.join(one.found)}",
                "The study says that this was held constant, and the record has another value.",
                "Correct [held] or the setting, and measure again if the setting was wrong.",
            )


def _flat(table: Mapping[str, Any], begun: str = "") -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{begun}{key}.")
        else:
            yield f"{begun}{key}", str(value)


def _found(record: Record, key: str, stated: str) -> tuple[str, ...]:
    if " " in stated:
        return ()
    values = [record.host.get(key), *(_value(trial, key) for trial in record.trials)]
    return tuple(dict.fromkeys(str(value) for value in values if value is not None))


def _value(trial: Trial, key: str) -> Any:
    """Of "TABLE.KEY", "systems.NAME.LEVER" or a lever's own name; None where it is not there."""
    table, _, rest = key.partition(".")
    system, _, lever = rest.partition(".")
    if not rest:
        return trial.parameters.get(key)
    if table == "systems":
        return trial.parameters.get(lever) if system in ("*", trial.system) else None
    if table in ("corpus", "queries", "load"):
        return msgspec.to_builtins(getattr(trial, table)).get(rest)
    return None
