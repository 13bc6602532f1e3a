"""The last section: each configuration down to its command line and files, and the study itself."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from searchbench.analysis.held import entries
from searchbench.analysis.judgement import TreatmentResult
from searchbench.analysis.trial import driven
from searchbench.record import Record
from searchbench.record.queries import Unsupported
from searchbench.record.trial import Trial
from searchbench.report.document.blocks import Block, Code, Details, Facts, Section, Text
from searchbench.report.document.content import Content
from searchbench.report.document.text import fit, line, short
from searchbench.report.tables import numbers
from searchbench.report.tables import study as tables

_HEAD = 200  # longest file shown whole, in lines; a configuration is shorter, a dump is not
_MACHINES = 12  # trials of which the client machines are listed
_TRIALS = "trials/*/trial.json of the record"
_OPEN = 2  # configurations up to which those that ran already are shown open


@dataclass(frozen=True, slots=True)
class _Configuration:
    """One configuration and the trials that were run with it.

    ``result``: set where the configuration is one treatment, whose trials are listed.
    """

    name: str
    levels: Mapping[str, Any]
    trials: Sequence[Trial]
    result: TreatmentResult | None = None


def section(content: Content) -> Section:
    """Each configuration, what all share, what was not run, and how to run it again."""
    trials = content.record.trials
    shared, found = _shared(trials), _configurations(content)
    blocks: list[Block] = []
    if shared:
        inner = [b for k, facts in shared.items() for b in (Text(_PARTS[k]), Facts(tuple(facts)))]
        title = "Held for all trials" if content.stepped else "Held for all treatments"
        blocks.append(Details(title, tuple(inner), ", ".join(shared)))
    blocks += _held(content.record)
    blocks += [_configuration(each, shared, few=len(found) <= _OPEN) for each in found]
    blocks += _machines(trials)
    if content.judgement.excluded:
        title = f"{numbers.counted(len(content.judgement.excluded), 'crossing')} not run"
        blocks.append(Details(title, (tables.excluded(content.judgement.excluded),)))
    study = Code(fit(content.record.study_text), "study.toml")
    again = (
        *_again(content.record),
        Text("It was the same study if these are the same:"),
        Facts(tuple(_digests(content.record))),
    )
    blocks.append(Details("The study as run", (study,), source="study.toml of the record"))
    blocks.append(Details("Run it again", again, open=True))
    return Section("details", "Every detail", tuple(blocks), "Details")


def _held(record: Record) -> list[Block]:
    """What the author says was held constant, and which of it the record confirms."""
    pairs = []
    for one in entries(record):
        said = "stated by the author, not checked"
        if one.found:
            said = "as on record" if one.true else f"the record has {', '.join(one.found)}"
        pairs.append((line(one.key) or "In words", f"{line(one.stated)} ({line(said)})"))
    return [Details("Held constant, as the author says", (Facts(tuple(pairs)),))] if pairs else []


def _configurations(content: Content) -> list[_Configuration]:
    """Treatments; of the steps of a load, what they have in common: the subjects."""
    by_treatment = driven.by_treatment(content.record)
    if not content.stepped:
        return [
            _Configuration(t.label, t.levels, by_treatment.get(t.treatment, []), t)
            for t in content.judgement.treatments
        ]
    found = []
    for name, members in content.subjects.items():
        own = [trial for t in members for trial in by_treatment.get(t.treatment, [])]
        levels = {k: v for k, v in members[0].levels.items() if not k.startswith("load.")}
        found.append(_Configuration(name, levels, own))
    return found


def _configuration(each: _Configuration, shared: Mapping[str, Any], *, few: bool) -> Details:
    """Levels, versions, server configuration, all trials, and what is not ``shared`` by all."""
    blocks: list[Block] = []
    if each.levels:
        blocks.append(Facts(tuple((line(k), line(str(v))) for k, v in each.levels.items())))
    if each.result is not None and each.result.trials:
        positions = {t.trial: t.position for t in each.trials}
        blocks.append(tables.trials(each.result, positions))
    shown = next((t for t in each.trials if t.status == "ok"), next(iter(each.trials), None))
    attached = shown is not None and shown.attached is not None
    if shown is not None:
        stepped = each.result is None
        blocks += _as_started(shown, set(shared) | ({"load", "drive"} if stepped else set()))
        versions = [v for v in dict.fromkeys(line(t.version) for t in each.trials) if v]
        if len(versions) > 1:
            blocks.append(Text(f"The trials ran with different versions: {', '.join(versions)}."))
    if each.result is not None:
        note = f"{tables.valid_trials(each.result).text} trials valid"
    else:
        note = "as it was found" if attached else numbers.counted(len(each.trials), "trial")
    return Details(
        short(each.name, 200), tuple(blocks), note, attached and few, "configurations", _TRIALS
    )


# The unit of a number, from the ending of its name; the first that fits.
_UNITS = (
    ("bytes_per_s", "bytes/s"),
    ("_per_s", "1/s"),
    ("_bytes", "bytes"),
    ("bytes_per_query", "bytes"),
    ("_s", "s"),
    ("_s_per_query", "s"),
)
_PARTS = {
    "parameters": "Parameters, complete",
    "corpus": "Corpus",
    "queries": "Queries",
    "load": "Load",
    "ingest": "Ingest",
    "drive": "Driving",
    "phases": "Time in each phase",
}


def _part(trial: Trial, key: str) -> list[tuple[str, str]]:
    """One part of a trial as pairs; empty where nothing is known of it."""
    held = getattr(trial, key)
    plain = msgspec.to_builtins(held)
    if isinstance(held, msgspec.Struct):
        plain = _known(plain)
    return flat(plain, unit="s" if key == "phases" else "") if plain else []


def _known(value: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is absent: a key of another kind of load, say, or a count nobody made."""
    kept: dict[str, Any] = {}
    for key, held in value.items():
        if isinstance(held, Mapping):
            held = _known(held)
        elif isinstance(held, list):
            held = [_known(x) if isinstance(x, Mapping) else x for x in held]
        if held not in (None, "", [], {}):
            kept[key] = held
    return kept


def _shared(trials: Sequence[Trial]) -> dict[str, list[tuple[str, str]]]:
    """Which of corpus, queries and load are the same in every trial, to be shown once."""
    good = [t for t in trials if t.status == "ok"]
    return {
        key: facts
        for key in ("corpus", "queries", "load")
        if len(good) > 1
        and all(getattr(t, key) == getattr(good[0], key) for t in good)
        and (facts := _part(good[0], key))
    }


def _as_started(trial: Trial, without: set[str]) -> list[Block]:
    """What was started for a trial, or found running; the parts in ``without`` are left out."""
    pairs = [
        ("Engine", line(f"{trial.engine or 'not known'} {trial.version}")),
        ("System", line(trial.system)),
    ]
    if trial.attached is not None:
        pairs.append(("Target", line(trial.attached)))
        pairs.append(("Endpoints", ", ".join(map(line, trial.endpoints)) or "not known"))
    if trial.drive is not None and trial.drive.tls:
        drive = trial.drive
        counts = f"{drive.handshakes:,} handshakes, {drive.resumed:,} of them resumed"
        pairs.append(("TLS", line(f"{drive.tls}; {counts}")))
    pairs += flat(_known(trial.facts.extra))
    blocks: list[Block] = [Facts(tuple(pairs))]
    service = trial.service
    if service.argv:
        command = shlex.join(service.argv)
        blocks.append(Code(fit(command), f"Command line, as started for {line(trial.trial)}"))
    for name, text in service.files.items():
        blocks.append(Code(_cut(fit(text)), f"File {line(name)}"))
    if service.env:
        text = "\n".join(f"{k}={v}" for k, v in service.env.items())
        blocks.append(Code(fit(text), "Environment"))
    for key, title in _PARTS.items():
        if key not in without and (facts := _part(trial, key)):
            blocks.append(Details(title, (Facts(tuple(facts)),), source=_TRIALS))
    return blocks + _unsupported(trial.unsupported)


def _unsupported(found: Sequence[Unsupported]) -> list[Block]:
    reasons = Counter(line(each.reason) for each in found)
    pairs = tuple((numbers.counted(n, "query", "queries"), r) for r, n in reasons.items())
    return [Details("Queries it cannot express", (Facts(pairs),), source=_TRIALS)] if pairs else []


def _machines(trials: Sequence[Trial]) -> list[Block]:
    """The machines that drove, where they were several: their clocks, and what each sent."""
    found: list[Block] = []
    for trial in trials:
        pairs: list[tuple[str, str]] = []
        for each in trial.drive.machines if trial.drive is not None else []:
            own = {k: v for k, v in each.items() if not isinstance(v, Mapping) and k != "host"}
            pairs += flat(own, f"{line(str(each.get('host', 'a machine')))} · ")
        if pairs:
            title = f"Client machines of {line(trial.trial)}"
            inner = (Facts(tuple(pairs)),)
            found.append(Details(title, inner, each="lists of client machines", source=_TRIALS))
    return found[:_MACHINES]


def flat(value: Mapping[str, Any], path: str = "", unit: str = "") -> list[tuple[str, str]]:
    """Nested mappings as pairs: the path in words, the value for people with its unit."""
    pairs: list[tuple[str, str]] = []
    for key, held in value.items():
        name = f"{path}{_words(str(key))}"
        if isinstance(held, Mapping):
            pairs += flat(held, f"{name} · ", unit) or [(name, "none")]
        elif isinstance(held, list) and held and all(isinstance(x, Mapping) for x in held):
            for i, entry in enumerate(held, start=1):
                pairs += flat(entry, f"{name} {i} · ", unit)
        else:
            pairs.append((name, _value(str(key), held, unit)))
    return pairs


def _words(key: str) -> str:
    """A key without the ending that names its unit, which goes beside the value."""
    for ending in ("_bytes", "_ns", "_s", "_seconds"):
        if key.endswith(ending) and not key.endswith("_per_s") and len(key) > len(ending):
            key = key.removesuffix(ending)
            break
    return line(key).replace("_", " ")


def _value(key: str, value: Any, unit: str) -> str:
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        unit = unit or next((u for ending, u in _UNITS if key.endswith(ending)), "")
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


def _again(record: Record) -> list[Block]:
    """The command that the study was made from, if it was; else how to run its file."""
    command = record.plan.judging.command
    if command:
        return [
            Code(fit(shlex.join(["searchbench", *command]))),
            Text("To see what a change did, compare the records from before and after it:"),
            Code("searchbench compare BEFORE AFTER"),
        ]
    commands = (
        "searchbench check study.toml     # is it right?\n"
        "searchbench run study.toml       # measure again\n"
        "searchbench compare OLD NEW      # faster, slower, or not resolved"
    )
    return [Text("study.toml is in the record's folder, and above."), Code(commands)]


def _digests(record: Record) -> list[tuple[str, str]]:
    pairs = [
        ("searchbench", line(str(record.about.get("searchbench", "not known")))),
        ("seed", str(record.plan.seed)),
        ("draw_seed", str(record.plan.draws)),
    ]
    for kind in ("corpus", "queries"):
        held = [getattr(t, kind) for t in record.trials]
        seen = dict.fromkeys(f"{line(h.name)}: {line(h.digest)}" for h in held if h.digest)
        pairs += [(f"{kind} digest", digest) for digest in seen]
    engines = [f"{line(t.engine)} {line(t.version)}" for t in record.trials if t.version]
    return pairs + [("engine", version) for version in dict.fromkeys(engines)]
