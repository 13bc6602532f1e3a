"""What took from the machine while the runs were measured: a sentence beside the decision.

A trial with such a warning counts, as it may be that of a system that ran already, or of a machine
that is always shared. So the decision has to say it.
"""

from __future__ import annotations

from collections.abc import Sequence

from searchbench.analysis.judgement import Judgement
from searchbench.analysis.words import listed

KINDS = (
    "foreign CPU", "foreign CPU on a host", "steal", "steal on a host", "client starved",
    "generator lag", "CPU frequency",
)  # fmt: skip

_CALLED = {"CPU frequency": "a changing CPU frequency"}


def sentence(sides: Sequence[Sequence[Judgement]]) -> str:
    """Of the first's runs and the second's: in how many of each side what was found.

    Empty: nothing was.
    """
    found = [said for name, runs in zip(("first", "second"), sides, strict=True)
             if (said := _of_side(name, runs))]  # fmt: skip
    if not found:
        return ""
    return f"The machine was disturbed: {'; '.join(found)}. The figures include the effect."


def _of_side(name: str, runs: Sequence[Judgement]) -> str:
    kinds = []
    for kind in KINDS:
        n = sum(any(f.kind == kind and f.severity != "note" for f in r.findings) for r in runs)
        if n:
            of = "" if len(runs) == 1 else f" in {n} of {len(runs)} runs"
            kinds.append(f"{_CALLED.get(kind, kind)}{of}")
    return f"in the {name} by {listed(kinds)}" if kinds else ""
