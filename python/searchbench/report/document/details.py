"""The last pages: the machine, and each treatment down to its command line and files."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from searchbench.analysis.judgement import TreatmentResult
from searchbench.report.document.blocks import Block, Code, Details, Facts, Text
from searchbench.report.document.text import fit, line, short
from searchbench.report.tables import numbers
from searchbench.report.tables import study as tables
from searchbench.report.tables.cells import unit_of

_HEAD = 200  # longest file shown whole, in lines; a configuration is shorter, a dump is not


_PARTS = {
    "parameters": "Parameters, complete",
    "corpus": "Corpus",
    "queries": "Queries",
    "load": "Load",
    "ingest": "Ingest",
    "drive": "Driving",
    "stages": "Time in each stage",
}


class Trials(Protocol):
    """Where the trials of a record are found."""

    @property
    def trials(self) -> list[dict[str, Any]]:
        """Every trial.json."""


def machine(host: Mapping[str, Any]) -> tuple[Block, ...]:
    """The fingerprint of the machine as pairs; nested ones are named by their path."""
    pairs = flat(host)
    return (
        (Facts(tuple(pairs)),) if pairs else (Text("The record holds nothing about the machine."),)
    )


def common(trials: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Which of corpus, queries and load are the same in every trial; said once, then."""
    good = [t for t in trials if t.get("status") == "ok"]
    return {
        key: good[0][key]
        for key in ("corpus", "queries", "load")
        if len(good) > 1 and good[0].get(key) and all(t.get(key) == good[0][key] for t in good)
    }


def in_common(shared: Mapping[str, Any]) -> Details:
    """What all treatments share."""
    blocks: list[Block] = []
    for key, value in shared.items():
        blocks += [Text(_PARTS[key]), Facts(tuple(flat(value)))]
    return Details("Held for all treatments", tuple(blocks), ", ".join(shared))


def treatment_details(
    treatment: TreatmentResult, record: Trials, shared: Mapping[str, Any]
) -> Details:
    """Levels, versions, server configuration, all trials, and what is not ``shared`` by all."""
    mine = [t for t in record.trials if t.get("treatment") == treatment.treatment]
    blocks: list[Block] = [
        Facts(tuple((line(k), line(str(v))) for k, v in treatment.levels.items()))
    ]
    positions = {str(t["trial"]): t.get("position") for t in mine}
    if treatment.trials:
        blocks.append(tables.trials(treatment, positions))
    shown = next((t for t in mine if t.get("status") == "ok"), mine[0] if mine else None)
    if shown is not None:
        blocks += _as_started(shown, shared)
        versions = list(dict.fromkeys(line(str(t.get("version", ""))) for t in mine))
        versions = [v for v in versions if v]
        if len(versions) > 1:
            said = ", ".join(versions)
            blocks.append(Text(f"The trials ran with different versions: {said}."))
    valid = tables.valid_trials(treatment)
    return Details(short(treatment.label, 200), tuple(blocks), f"{valid.text} trials valid")


def _as_started(trial: Mapping[str, Any], shared: Mapping[str, Any]) -> list[Block]:
    service = trial.get("service") or {}
    blocks: list[Block] = [
        Facts(
            (
                ("Engine", f"{line(str(trial.get('engine')))} {line(str(trial.get('version')))}"),
                ("System", line(str(trial.get("system")))),
            )
        )
    ]
    argv = service.get("argv")
    if argv:
        command = shlex.join(str(part) for part in argv)
        blocks.append(Code(fit(command), f"Command line, as started for {line(trial['trial'])}"))
    for name, text in (service.get("files") or {}).items():
        blocks.append(Code(_cut(fit(str(text))), f"File {line(str(name))}"))
    if service.get("env"):
        text = "\n".join(f"{k}={v}" for k, v in service["env"].items())
        blocks.append(Code(fit(text), "Environment"))
    for key, title in _PARTS.items():
        value = trial.get(key)
        if key not in shared and isinstance(value, Mapping) and value:
            blocks.append(Details(title, (Facts(tuple(flat(value))),)))
    unsupported = trial.get("unsupported") or []
    if unsupported:
        reasons: dict[str, int] = {}
        for entry in unsupported:
            reason = line(str(entry.get("reason")))
            reasons[reason] = reasons.get(reason, 0) + 1
        pairs = tuple((numbers.counted(n, "query", "queries"), r) for r, n in reasons.items())
        blocks.append(Details("Queries it cannot express", (Facts(pairs),)))
    return blocks


def flat(value: Mapping[str, Any], path: str = "", unit: str = "") -> list[tuple[str, str]]:
    """Nested mappings as pairs: the path in words, the value for people with its unit."""
    pairs: list[tuple[str, str]] = []
    for key, held in value.items():
        name = f"{path}{_words(str(key))}"
        inner = "s" if key == "stages" else unit
        if isinstance(held, Mapping):
            pairs += flat(held, f"{name} · ", inner) or [(name, "none")]
        elif isinstance(held, list) and held and all(isinstance(x, Mapping) for x in held):
            for i, entry in enumerate(held, start=1):
                pairs += flat(entry, f"{name} {i} · ", inner)
        else:
            pairs.append((name, _said(str(key), held, unit)))
    return pairs


def _words(key: str) -> str:
    """A key without the ending that names its unit, which goes beside the value."""
    for ending in ("_bytes", "_ns", "_s", "_seconds"):
        if key.endswith(ending) and not key.endswith("_per_s") and len(key) > len(ending):
            key = key.removesuffix(ending)
            break
    return line(key).replace("_", " ")


def _said(key: str, value: Any, unit: str) -> str:
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        unit = unit or unit_of(key)
        if key.endswith("unix_ns"):
            return f"{value}"
        if key.endswith("_ns"):
            value, unit = value / 1e9, "s"
        if key == "seconds" or key.endswith("_seconds"):
            unit = "s"
        if unit in ("bytes", "s", "bytes/s", "1/s"):
            return numbers.human(float(value), unit)
        return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else f"{value}"
    if isinstance(value, list):
        return ", ".join(line(str(v)) for v in value) or "none"
    return line(str(value))


def _cut(text: str) -> str:
    lines = text.split("\n")
    if len(lines) <= _HEAD:
        return text
    return "\n".join([*lines[:_HEAD], f"… {len(lines) - _HEAD:,} more lines are in the record"])
