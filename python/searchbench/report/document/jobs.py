"""What each treatment did once: a table and figures for each job."""

from __future__ import annotations

from functools import partial

from searchbench.analysis.judgement import JobResult
from searchbench.report.document.blocks import Block, Section, Text
from searchbench.report.document.content import Content, figure
from searchbench.report.document.text import line
from searchbench.report.figures import jobs as figures
from searchbench.report.tables import jobs as tables

_HOW = (
    "Each job was done on a server that had just started, and timed from the first byte sent to "
    "the last answer. Then the server was stopped and everything synchronized. The sizes of files "
    "are those that are allocated: a file that the file system compresses counts as compressed."
)


def section(content: Content) -> Section | None:
    """All jobs in their order; None where there are none."""
    found: dict[str, list[JobResult]] = {}
    for result in content.judgement.jobs:
        found.setdefault(result.job, []).append(result)
    if not found:
        return None
    blocks: list[Block] = [Text(_HOW, "quiet")]
    for job, results in found.items():
        blocks.append(Text(f"{job.capitalize()}.", "lead"))
        blocks.append(tables.job(results))
        if (weighed := tables.files(results)) is not None:
            blocks += [Text(f"Files after it, by kind{_of_lengths(results)}."), weighed]
        if (each := tables.requests(results)) is not None:
            blocks += [Text("One request after another:"), each]
        blocks += [Text(said, "quiet") for said in _said(results)]
        blocks += figure(
            f"job-{job}-s",
            f"Time of {job}",
            "Over the valid trials, with the intervals.",
            partial(figures.times, results),
        )
        blocks += figure(
            f"job-{job}-files",
            f"Files after {job}",
            "By kind, as allocated: the greatest of the valid trials.",
            partial(figures.files, results),
        )
        blocks += figure(
            f"job-{job}-progress",
            f"Progress of {job}",
            "Documents whose request was answered, of one trial of each.",
            partial(figures.progress, results),
        )
    return Section("jobs", "Jobs", tuple(blocks))


def _of_lengths(results: list[JobResult]) -> str:
    """What the small print of the sizes is, where there is any."""
    pairs = [(r.files[k][1], r.lengths[k][1]) for r in results for k in r.files if k in r.lengths]
    some = any(length and not 0.97 <= room / length <= 1.03 for room, length in pairs)
    return "; in small print their length, where what they take is something else" * some


def _said(results: list[JobResult]) -> list[str]:
    """How durable it was, and what was looked at afterwards."""
    found = []
    durable = {r.durable: None for r in results if r.durable}
    for said in durable:
        who = [line(r.label) for r in results if r.durable == said]
        where = "" if len(durable) == 1 else f" ({', '.join(who)})"
        found.append(f"How durable{where}: {line(said)}.")
    if compared := list(dict.fromkeys(what for r in results for what in r.compared)):
        found.append(f"The same in what the job made as in the original: {', '.join(compared)}.")
    counted = [line(r.label) for r in results if r.documents is not None]
    if counted:
        where = "" if len(counted) == len(results) else f" of {', '.join(counted)}"
        found.append(f"After the job the documents{where} were counted, and none was missing.")
    return found
