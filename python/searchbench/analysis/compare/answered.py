"""Whether two records answer the same, and at which level: totals, first hits, their order.

What only one of them answered well when asked alone is not answered the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from searchbench.analysis.agreement import agreement
from searchbench.analysis.judgement import Agreement, Finding
from searchbench.analysis.words import listed, plural, upper

REQUIRED = {
    "none": "a reply",
    "totals": "the same totals",
    "set": "the same totals and first hits",
    "order": "the same totals and first hits, in the same order",
}
KINDS = ("answers changed", "other hits")  # of findings
LEAVE_OUT = ' To leave them out of the ratios: [agreement] require = "order".'


def with_failed(one: Agreement) -> Agreement:
    """The same, where what only one side answered well counts as differing at every level."""
    only = one.only_a + one.only_b + one.dropped_a + one.dropped_b
    levels = {level: (same, differ + only, unknown)
              for level, (same, differ, unknown) in one.levels.items()}  # fmt: skip
    n, differing = one.queries + only, one.differing + only
    return replace(one, queries=n, differing=differing, levels=levels)


def changed(agreed: Mapping[str, Agreement]) -> dict[str, tuple[int, int]]:
    """By label, answers that differ when asked alone, and of how many."""
    return {
        label: (own.differing, own.queries)
        for label, own in ((label, with_failed(one)) for label, one in agreed.items())
    }


def sentence(agreed: Mapping[str, Agreement]) -> str:
    """What is the same and what differs, over all treatments; empty where nothing was compared.

    Answers are called the same only if they are so at every level: a change of ranking leaves
    every total as it was.
    """
    several = [own for one in agreed.values() if (own := with_failed(one)).queries]
    n = sum(one.queries for one in several)
    if not n:
        return ""
    which = _counted([one.queries for one in several], sum(one.empty for one in several))
    left = sum(one.uncompared for one in several)
    more = f" {left:,} more were not compared." if left else ""
    which += " that were compared" if left else ""
    if any(_unanswered(one) for one in several):
        which += " and" if left else ""
        which += " that either answered" if _only(several) else " that both answered"
    found = _levels(several)
    if all(same == n for same, _, _ in found.values()):
        hits = _of_hits(several)
        whole = f"The answers to all {which}" if len(several) == 1 else f"All {which}"
        return f"{whole} are the same: totals, {hits} and their order.{more}"
    names = {"totals": "totals", "set": f"the {_of_hits(several)}", "order": "their order",
             "extras": "facets or groups"}  # fmt: skip
    first, *rest = (_level(names[level], counts, n) for level, counts in found.items())
    return f"Of {which}, {first}; {listed(rest)}.{_causes(several)}{_only(several)}{more}"


def _unanswered(one: Agreement) -> bool:
    """Whether there are queries that neither side answered well, or that one does not support."""
    failed = one.causes.get(agreement.ERROR, 0) - one.only_a - one.only_b
    dropped = one.dropped_a + one.dropped_b
    return bool(failed > 0 or one.unsupported_a + one.unsupported_b > dropped)


def _only(several: Sequence[Agreement]) -> str:
    """How many queries only one side answered well, a sentence; empty: none."""
    counts = (
        ("the first", sum(one.only_a for one in several)),
        ("the second", sum(one.only_b for one in several)),
    )
    said = [f"{n} by {who} only" for who, n in counts if n]
    told = f" Of these, answered well when asked alone: {', '.join(said)}." if said else ""
    dropped = (
        ("the first", "the second", sum(one.dropped_a for one in several)),
        ("the second", "the first", sum(one.dropped_b for one in several)),
    )
    told += "".join(
        f" {upper(who)} cannot be asked {n} of these, which {other} answers."
        for who, other, n in dropped
        if n
    )
    return told


def dropped(agreed: Mapping[str, Agreement]) -> dict[str, str]:
    """By label, which queries the second cannot be asked that the first answered, a clause."""
    return {
        label: f"{one.dropped_b} of {own.queries} queries that the first answers are not supported "
        "by the second"
        for label, one in agreed.items()
        if one.dropped_b and (own := with_failed(one))
    }


def _counted(queries: Sequence[int], empty: int) -> str:
    """How many answers are compared. ``queries``: of each treatment, which may be the same ones.

    ``empty``: of all, on how many neither side finds anything, so that no hits are compared.
    """
    n, most = sum(queries), max(queries)
    aside = [f"{empty} of these find nothing on either side"] if empty else []
    said = f"{n} {plural(n, 'query', 'queries')}"
    if len(queries) > 1:
        said = f"{n} answers"
        each = f"{plural(most, '1 query', f'{most} queries')} of each of "
        aside.insert(0, f"{each if min(queries) == most else 'of '}{len(queries)} treatments")
    return f"{said} ({'; '.join(aside)})" if aside else said


def findings(agreed: Mapping[str, Agreement], trials: bool) -> Iterator[Finding]:
    """That answers changed: at the level that decides which queries are compared, or at another.

    ``trials``: else the records are sweeps or searches, whose ratios are over all requests.
    """
    page = "The page (--out) shows them side by side; see whether the change was meant."
    over_all = "The ratios are over all requests, these too."
    for label, one in ((label, with_failed(one)) for label, one in agreed.items()):
        if one.differing:
            rest = (
                "The ratios are over the rest, except where the loss over everything asked is "
                "greater."
            )
            yield Finding(
                "answers changed",
                "warning",
                "",
                f"{one.differing} of {one.queries} queries of {label}",
                "The two records answer these queries differently. "
                + (rest if trials else over_all),
                page,
            )
        if one.agreeing_changed:
            yield Finding(
                "other hits",
                "warning",
                "",
                f"{one.agreeing_changed} of {one.agreeing} queries of {label}",
                "The study requires no more than "
                f"{REQUIRED[one.require]}, so these count as answered the same; other parts of "
                f"the answers changed. {'The ratios are over them too.' if trials else over_all}",
                page + (LEAVE_OUT if trials else ""),
            )


def _levels(several: Sequence[Agreement]) -> dict[str, tuple[int, int, int]]:
    """By level, over all treatments: on how many queries same, different, unknown.

    What only some treatments have (facets, groups) is the same where the others have none.
    """
    names = dict.fromkeys(level for one in several for level in one.levels)
    each = {level: [one.levels.get(level, (one.queries, 0, 0)) for one in several]
            for level in names}  # fmt: skip
    return {
        level: (sum(s for s, _, _ in own), sum(d for _, d, _ in own), sum(u for _, _, u in own))
        for level, own in each.items()
    }


def _level(name: str, counts: tuple[int, int, int], n: int) -> str:
    same, differ, unknown = counts
    verb = "is" if name == "their order" else "are"
    if same == n:
        return f"{name} {verb} the same on all"
    said = [f"{'differs' if verb == 'is' else 'differ'} on {differ}"] if differ else []
    said += [f"{verb} unknown on {unknown}"] if unknown else []
    return f"{name} {' and '.join(said)}"


def _of_hits(several: Sequence[Agreement]) -> str:
    k = max(one.k for one in several)
    return f"first {k} hits" if k > 1 else "first hit"


def _causes(several: Sequence[Agreement]) -> str:
    """Why, as far as it is known; ties are no difference."""
    counts: Counter[str] = Counter()
    for one in several:
        counts.update(one.causes)
    said = [
        f"{cause} ({n})"
        for cause, n in counts.most_common()
        if cause not in (agreement.TIE, agreement.ERROR)
    ]
    return f" {plural(len(said), 'Cause', 'Causes')}: {', '.join(said)}." if said else ""
