"""How to run the study again, and the study as it was run."""

from __future__ import annotations

import shlex

from searchbench.report.document.blocks import Block, Code, Details, Facts, Text
from searchbench.report.document.content import RecordView
from searchbench.report.document.text import fit, line


def as_run(study_text: str) -> Details:
    """The study file."""
    return Details("The study as run", (Code(fit(study_text), "study.toml"),))


def reproduce(record: RecordView) -> Details:
    """The commands, and the digests by which one knows that it was the same again."""
    return Details(
        "Run it again",
        (
            *_again(record),
            Text("It was the same study if these are the same:"),
            Facts(tuple(_digests(record))),
        ),
        open=True,
    )


def _again(record: RecordView) -> list[Block]:
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
        "searchbench run study.toml       # measure again, with the same seed\n"
        "searchbench compare OLD NEW      # faster, slower, or not resolved"
    )
    return [Text("study.toml is in the record's folder, and above."), Code(commands)]


def _digests(record: RecordView) -> list[tuple[str, str]]:
    pairs = [
        ("searchbench", line(str(record.about.get("searchbench", "not known")))),
        ("seed", str(record.plan.seed)),
    ]
    for kind in ("corpus", "queries"):
        held = [getattr(t, kind) for t in record.trials]
        seen = dict.fromkeys(f"{line(h.name)}: {line(h.digest)}" for h in held if h.digest)
        pairs += [(f"{kind} digest", digest) for digest in seen]
    versions = dict.fromkeys(
        f"{line(t.engine)} {line(t.version)}" for t in record.trials if t.version
    )
    return pairs + [("engine", version) for version in versions]
