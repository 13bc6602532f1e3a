"""Who is slower while the compilers of its JVM are still busy may only be early.

Steady times do not show it: code that is compiled later makes a step, which nothing in the times
announces. How much faster it will be is not known, so no bound is set, and the verdict says it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from searchbench.analysis.judgement import Comparison, TrialResult
from searchbench.analysis.words import listed


def sentence(
    own: Sequence[Comparison],
    trials: Mapping[str, Sequence[TrialResult]],
    labels: Mapping[str, str],
) -> str:
    """Whose compilers were busy in most of its valid trials, of those that are the slower one of a
    difference that is resolved; empty: nobody's. ``trials`` and ``labels`` by the names that
    comparisons have.
    """
    beaten = {"faster": 0, "slower": 1}
    lost = dict.fromkeys((c.a, c.b)[beaten[c.verdict]] for c in own if c.verdict in beaten)
    return said([labels.get(name, name) for name in lost if mostly(trials.get(name, ()))])


def said(busy: Sequence[str]) -> str:
    """That these may be early, a sentence; empty where there are none."""
    if not busy:
        return ""
    named = listed(busy)
    return (
        f"In most trials of {named} the compilers of the JVM were still busy. With a longer "
        f"warm-up {named} may be faster, and the difference smaller."
    )


def mostly(trials: Sequence[TrialResult]) -> bool:
    """Whether the compilers were busy in most of the valid ones."""
    valid = [t for t in trials if t.status == "valid"]
    return 2 * sum(t.compiling for t in valid) > len(valid)
