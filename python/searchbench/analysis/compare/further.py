"""What the second of two records lost that no line of times shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Whys = Mapping[str, str]  # by label of a treatment, clauses
MIXED = "but the runs of a side are not of the same versions and settings"


@dataclass(frozen=True)
class Further:
    """``lost``: what worked in the first and not in the second; ``later``: after what answers are
    normal again later than before, as far as these runs show; ``not_known``: of what that cannot be
    told. ``said``: sentences on what is neither.
    """

    lost: Whys = field(default_factory=dict)
    later: Whys = field(default_factory=dict)
    not_known: Whys = field(default_factory=dict)
    said: Sequence[str] = ()

    @property
    def worse(self) -> Whys:
        """Of what it is known that the second is worse."""
        return joined(self.lost, self.later)


def joined(*found: Whys) -> dict[str, str]:
    """The clauses on each label."""
    each: dict[str, dict[str, None]] = {}
    for label, why in (item for one in found for item in one.items()):
        each.setdefault(label, {})[why] = None
    return {label: "; ".join(whys) for label, whys in each.items()}


def gathered(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Of labels and clauses, the clauses on each label."""
    return joined(*({label: why} for label, why in pairs))


def together(*found: Further, mixed: bool = False) -> Further:
    """All of these. ``mixed``: the runs of a side are not of one thing, so another setting may have
    done it.
    """
    lost, later, not_known = (
        joined(*(getattr(one, name) for one in found)) for name in ("lost", "later", "not_known")
    )
    if mixed:
        unknown = {label: f"{why}, {MIXED}" for label, why in joined(lost, later).items()}
        lost, later, not_known = {}, {}, joined(unknown, not_known)
    return Further(lost, later, not_known, [text for one in found for text in one.said])
