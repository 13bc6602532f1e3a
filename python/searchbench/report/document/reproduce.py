"""How to run the study again, and the study as it was run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from searchbench.report.document.blocks import Code, Details, Facts, Text
from searchbench.report.document.text import fit, line


class Kept(Protocol):
    """What of a record is needed to repeat it."""

    @property
    def about(self) -> Mapping[str, Any]:
        """record.json."""

    @property
    def plan(self) -> Mapping[str, Any]:
        """plan.json."""

    @property
    def trials(self) -> list[dict[str, Any]]:
        """Every trial.json."""


def as_run(study_text: str) -> Details:
    """The study file."""
    return Details("The study as run", (Code(fit(study_text), "study.toml"),))


def reproduce(record: Kept) -> Details:
    """The commands, and the digests by which one knows that it was the same again."""
    pairs = [
        ("searchbench", line(str(record.about.get("searchbench", "not known")))),
        ("seed", line(str(record.plan.get("seed", "not known")))),
    ]
    for kind in ("corpus", "queries"):
        seen = dict.fromkeys(
            f"{line(str(t[kind].get('name')))}: {line(str(t[kind].get('digest')))}"
            for t in record.trials
            if isinstance(t.get(kind), Mapping)
        )
        pairs += [(f"{kind} digest", said) for said in seen]
    versions = dict.fromkeys(
        f"{line(str(t.get('engine')))} {line(str(t.get('version')))}"
        for t in record.trials
        if t.get("version")
    )
    pairs += [("engine", said) for said in versions]
    commands = (
        "searchbench check study.toml     # is it right\n"
        "searchbench run study.toml       # measure again: same seed, same order of trials\n"
        "searchbench compare OLD NEW      # faster, slower, or not resolved"
    )
    return Details(
        "Run it again",
        (
            Text("study.toml is in the record's folder, and above."),
            Code(commands),
            Text("It was the same study if these are the same:"),
            Facts(tuple(pairs)),
        ),
        open=True,
    )
