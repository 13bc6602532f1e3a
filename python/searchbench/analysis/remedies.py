"""Remedies that whoever made a record can carry out: a search's own, and options as they are spelt.

The audit speaks of a trial by itself: a longer window, a longer warm-up, fewer clients. A search
for capacity chooses these itself and refuses them; what it takes is ``effort``. And what is an
option of ``searchbench load`` is a key of a study.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from searchbench.analysis.judgement import Finding
from searchbench.study.plan import Judging

_LONGER = "Search with longer trials, which have longer warm-ups (more effort)"
# In a search, by the kind of finding. What is not here needs nothing that a search refuses.
_OF_SEARCH: Mapping[str, str] = {
    "too few samples": "Longer trials (more effort).",
    "behind at the end": "Longer trials (more effort).",
    "no answers": "See its log, and what it answers to one request alone; longer trials (more "
    "effort) if 0 of 0.",
    "errors": "See its log for the cause.",
    "partial results": "Raise its own time limit.",
    "other answers under load": "Raise its limits.",
    "stalls": "See the server's log at that time: a collector, a merge, something loaded. Longer "
    "trials (more effort) show how often that happens.",
    "never steady": f"{_LONGER}.",
    "warm-up not reached": f"{_LONGER}, or ask the server for a while before.",
    "warm-up limit": f"{_LONGER}, or draw fewer distinct queries.",
    "not steady": f"{_LONGER}. If it still changes: look for a leak, merges, other load.",
    "steadiness unknown": f"{_LONGER}, or draw fewer distinct queries.",
    "compilers busy": f"{_LONGER}, or ask the server for a while before.",
    "part of the log": "Let them come from all over the log (--order stretches), or longer trials "
    "(more effort).",
    "pressure on disk": "Ask the server for a while before, until the index is in memory, and stop "
    "what else uses the disks.",
    "reads from disk": "Ask the server for a while before, or give it more memory, unless a cold "
    "system is what is measured.",
    "major faults": "Ask the server for a while before, give the machine more memory, and make "
    "sure that it does not swap.",
}
# As `searchbench load` has it, and the key of a study.
_KEYS: Mapping[str, str] = {
    "--cpus": "`load.cpus`",
    "--realtime": "`load.realtime = true`",
    "--cache-entries": "`load.cache_entries`",
    "--effort": "`load.effort`",
    "--order stretches": '`load.order` "stretches"',
    "--repeat 5": "`replicates = 5`",
    "--engine": "`engine` in [systems]",
    "--captures": "`captures` in [agreement]",
}
_OPTION = re.compile("|".join(map(re.escape, _KEYS)) + r"(?![\w-])")


def _without_repeat(text: str) -> str:
    """Of a search that is asked for by options, which takes no --repeat."""
    text = text.replace("; more replicates help", "")
    return text.replace("(`replicates = 3`)", "(a study with `replicates = 3`)")


def fitted(findings: Iterable[Finding], judging: Judging) -> tuple[Finding, ...]:
    """The same with remedies for the kind of measurement that it was, and of who asked for it."""
    searched = judging.measure == "capacity"
    remedies = _OF_SEARCH if searched else {}
    return tuple(
        replace(f, remedy=spelt(remedies.get(f.kind, f.remedy), judging)) for f in findings
    )


def spelt(text: str, judging: Judging) -> str:
    """With options of the command line where it was one that made the record, else keys."""
    text = text.replace("more effort", "a greater --effort")
    if judging.command[:1] == ("load",):
        return _without_repeat(text) if judging.measure == "capacity" else text
    return _OPTION.sub(lambda found: _KEYS[found[0]], text)
