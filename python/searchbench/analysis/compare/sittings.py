"""Were both sides of a pair measured at one sitting?

What was spoilt may be measured once more later, and the machine may be another then.

In some of the blocks that is in their scatter. In all of them it is in none, as if it were the
difference of the two.
"""

from __future__ import annotations

from collections.abc import Mapping

from searchbench.analysis.judgement import Comparison, TreatmentResult

LEAST = 2  # blocks that were measured at one sitting, so that their scatter shows what others do
APART = "was measured again later, and the other was not"


def against(c: Comparison, by_id: Mapping[str, TreatmentResult]) -> str:
    """Why trials that were measured again keep a ratio from being resolved; empty: they do not."""
    if c.ratio is None:
        return ""
    both = [{x.block: x.again for x in by_id[name].trials if x.counts} for name in (c.a, c.b)]
    blocks = both[0].keys() & both[1].keys()
    apart = sum(both[0][block] != both[1][block] for block in blocks)
    if not apart or len(blocks) - apart >= LEAST:
        return ""
    return f"in {apart} of {len(blocks)} blocks one of the two {APART}"
