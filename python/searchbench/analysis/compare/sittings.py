"""Were both sides of a pair measured at one sitting?

What was spoilt or failed may be measured once more later, and the machine may be another then.

In some of the blocks that is in their scatter. In all of them it is in none, as if it were the
difference of the two.
"""

from __future__ import annotations

from collections.abc import Mapping

from searchbench.analysis.judgement import Comparison, TreatmentResult

LEAST = 2  # blocks that were measured at one sitting, so that their scatter shows what others do
APART = "was measured later, in another pass through the plan, so the machine may have changed"


def against(c: Comparison, by_id: Mapping[str, TreatmentResult]) -> str:
    """Why trials of several sittings keep a ratio from being resolved; empty: they do not."""
    if c.ratio is None:
        return ""
    both = [{x.block: x.sitting for x in by_id[name].trials if x.counts} for name in (c.a, c.b)]
    blocks = both[0].keys() & both[1].keys()
    apart = sum(both[0][block] != both[1][block] for block in blocks)
    if not apart or len(blocks) - apart >= LEAST:
        return ""
    return f"in {apart} of {len(blocks)} blocks one of the two {APART}"
