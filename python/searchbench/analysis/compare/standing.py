"""What keeps a leader from being the best, and on how many queries a ratio rests.

The best is resolved as better than every rival; every other leader only leads, and the sentence
names the rivals that it is not shown to beat.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from searchbench.analysis.judgement import Agreement, Comparison, RecordLine
from searchbench.analysis.words import listed, of_job, percent, plural

NAMED = 3  # rivals that a headline names of each kind
MOST = 0.9  # of all queries must agree, and of these be measured on both sides, to be the best
NOT_KNOWN_ALIKE = "not known to answer the same as"
OTHER_RANKING = "never seen to rank hits like"
ALIKE_ON_FEW = f"answering fewer than {100 * MOST:g} % of the queries the same as"
FEW_REQUESTS = f"answering fewer than {100 * MOST:g} % of the requests the same as"
UNREAD = "; the replies were not read, so whether both answer the same is not known"


def covered(c: Comparison | RecordLine) -> bool:
    """Whether most of the queries that agree were measured on both sides; False if not known.

    A job is no query, and is the same on both sides.
    """
    if of_job(c.metric):
        return True
    return c.queries_measured is not None and c.queries_measured >= MOST * c.queries_used


def alike(c: Comparison) -> bool:
    """Whether most of the queries are answered alike: a ratio over the few is not of the rest."""
    return c.queries_used >= MOST * (c.queries_used + c.queries_left_out)


def _few_requests(c: Comparison) -> bool:
    """Whether most of the queries, but not of the requests, are answered alike, in whole percent:
    how often each was asked in a window is chance.
    """
    return round(c.requests_alike, 2) < MOST


def part(several: Sequence[Comparison]) -> str:
    """A clause where ratios are over a part of the requests, and where nobody read the replies."""
    with_ratio = [c for c in several if c.ratio is not None]
    left_out = [c for c in with_ratio if c.queries_left_out]
    said = ""
    if left_out:
        c = min(left_out, key=lambda one: one.queries_used)
        how = "whose replies are of about the same size" if c.not_read else "that both answer alike"
        said = (
            f", over the {c.queries_used} of {c.queries_used + c.queries_left_out} requests {how}"
        )
    return said + (UNREAD if any(c.not_read for c in with_ratio) else "")


def first_hits(found: Agreement) -> int | None:
    """On how many of the queries that agree the first hits were seen to be the same too.

    What finds nothing on either side is not counted. None where nothing needs to agree.
    """
    return found.same_top_k if found.require != "none" else None


def ranked_alike(found: Agreement) -> tuple[int, int] | None:
    """On how many queries both were seen to rank alike, and on how many that could be seen; None
    where more or less than totals needs to agree.
    """
    return found.ranked_alike if found.require == "totals" else None


def unlike(found: Agreement) -> str:
    """Why answers that agree may be other work, a clause about both; empty: nothing shows that.
    Ranking is looked at where only totals need to agree.
    """
    if first_hits(found) == 0:
        return "they were never seen to return the same first hits"
    if _never(ranked_alike(found), found.agreeing - found.empty):
        return "they were never seen to rank hits alike"
    return ""


def other_hits(c: Comparison) -> bool:
    """Whether both find something, and on no query the first hits were seen to be the same."""
    return c.same_top_k == 0 and c.empty < c.queries_used


def other_ranking(c: Comparison) -> bool:
    """Whether both were never seen to rank alike, though more than a tenth of the queries that find
    something could show it.

    Two lists of all that match are the same however one of them ranks.
    """
    return not other_hits(c) and _never(c.ranked_alike, c.queries_used - c.empty)


def _never(ranked: tuple[int, int] | None, found: int) -> bool:
    """Whether none was ranked alike, though more than a tenth of the ``found`` could show it."""
    return ranked is not None and ranked[0] == 0 and ranked[1] > (1 - MOST) * found


def doubt(c: Comparison | None) -> str:
    """Why this comparison does not show its ``b`` as the better one; empty: it does.

    The words go before the rival's name. None: there is no comparison.
    """
    if c is None:
        return "not compared with"
    if c.verdict == "faster":
        if c.not_read:
            return NOT_KNOWN_ALIKE
        if c.queries_measured == 1:
            return "compared on one query alone with"
        if not covered(c):
            return "compared over too few queries with"
        if other_hits(c):
            return "never seen to return the same first hits as"
        if other_ranking(c):
            return OTHER_RANKING
        if not alike(c):
            return ALIKE_ON_FEW
        return FEW_REQUESTS if _few_requests(c) else ""
    said = {"slower": "worse than", "not resolved": "not told apart from"}
    return said.get(c.verdict, "not comparable with")


def doubts(found: Iterable[tuple[str, Comparison | None]]) -> str:
    """Every doubt with the names of its rivals, in a clause; empty: it is the best.

    ``found``: rival and comparison, the leader its ``b``. More than three names would be no
    headline, and the table has them all.
    """
    by_doubt: dict[str, dict[str, None]] = {}  # names in their order, each once
    for rival, c in found:
        if said := doubt(c):
            by_doubt.setdefault(said, {})[rival] = None
    return ", ".join(
        f"{said} {listed(list(names)) if len(names) <= NAMED else f'{len(names)} others'}"
        for said, names in by_doubt.items()
    )


def unsure(own: Sequence[Comparison]) -> str:
    """That it is not known how large a difference is, where both may not have been steady."""
    found = [c for c in own if c.verdict in ("faster", "slower") and c.state == "unknown"]
    if not found:
        return ""
    n = len(found)
    which = (
        f"{n} of the differences {plural(n, 'is', 'are')}" if len(own) > 1 else "the difference is"
    )
    return (
        f"Whether both were steady is unknown: {which} larger than a smooth warm-up at this "
        "pace would make, but how large is not sure (measure longer to know). A warm-up in sudden "
        "steps is not excluded."
    )


def few(several: Sequence[Comparison | RecordLine]) -> str:
    """A clause where a ratio rests on few of the queries that agree; else empty."""
    measured = [(c.queries_measured, covered(c)) for c in several]
    least = [n for n, most in measured if n is not None and (n == 1 or not most)]
    return f", over only {_queries(min(least))}" if least else ""


def over_all(several: Sequence[Comparison], require: str) -> str:
    """A sentence: over how many queries all ratios are, or those that rest on the fewest."""
    found = [c for c in several if c.ratio is not None and not of_job(c.metric)]
    if not found:
        return ""
    said = {over(c, require) for c in found}
    if len(said) == 1:
        return f"{'All ratios are' if len(found) > 1 else 'The ratio is'} {said.pop()}."
    known = [c for c in found if c.queries_measured is not None] or found
    least = min(known, key=lambda c: (c.queries_measured or 0) / max(c.queries_used, 1))
    return f"Where they rest on the fewest queries, ratios are {over(least, require)}."


def over(c: Comparison, require: str) -> str:
    """A clause: over how many queries a ratio is."""
    used, measured = c.queries_used, c.queries_measured
    if measured is None:
        return "over all queries of each, as it is not known on which both return the same"
    total = used + c.queries_left_out
    which = f"the {used} of {total} queries on which both return the same {require}"
    if not c.queries_left_out:
        which = f"all {total} queries, on each of which both return the same {require}"
        if total == 1:
            which = f"the one query, on which both return the same {require}"
    more = []
    if require == "none":
        which = f"all {total} queries, whatever they return"
    if _few_requests(c):
        more.append(f"other queries are {percent(1 - c.requests_alike)} of the requests")
    if c.empty:
        few = str(c.empty) if c.empty < used else "all"
        more.append(f"{few} of these find nothing on either side")
    if require == "totals" and c.same_top_k is not None and c.empty < used:
        more.append(_of_first_hits(c.same_top_k, used - c.empty, used))
    which += f" ({'; '.join(more)})" if more else ""
    if not covered(c):
        return f"over only {_queries(measured)} measured on both sides, of {which}"
    count = "all" if measured >= used else f"at least {measured}"
    return f"over {which}, {count} of them measured on both sides"


def _of_first_hits(same: int, found: int, used: int) -> str:
    """On how many of the ``found`` queries that find something the first hits are the same.

    ``used``: with those that find nothing.
    """
    if same == found == used:
        return "and the same first hits"
    where = f"of the {found} that find something" if found < used else "of these"
    some = {0: "none", found: "all"}.get(same, str(same))
    return f"{where}, the first hits {'were seen to be' if not same else 'are'} the same on {some}"


def _queries(n: int) -> str:
    return f"{n} {plural(n, 'query', 'queries')}"
