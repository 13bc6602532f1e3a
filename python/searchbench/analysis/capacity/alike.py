"""Did two subjects of a search do the same work? As far as what each returned tells.

A limit is of all requests that were sent, so nearly all of them have to be answered alike.
"""

from __future__ import annotations

from searchbench.analysis.agreement import agreement
from searchbench.analysis.agreement.agreement import Pair
from searchbench.analysis.compare import pairs, standing
from searchbench.analysis.sweep.words import disagreement


def apart(a: str, b: str, pair: Pair | None) -> str:
    """A sentence: why two subjects are not comparable; empty: they are, or nothing is known."""
    if pair is None or (pair.agreement.agreeing and not pairs.all_empty(pair)):
        return ""
    of, agree = pair.agreement.queries, pair.agreement.agreeing
    if of and not agree:
        return disagreement(a, b, agree, of)
    why = pairs.all_empty(pair) or "there is no request that both answered when asked alone"
    return f"{a} and {b} are not comparable: {why}."


def doubt(pair: Pair | None) -> str:
    """Why a subject only leads another, in a clause; empty: they answer alike, or it is not known.

    Of requests that find nothing on either side nothing is learnt.
    """
    if pair is None or pair.agreement.require == "none":
        return ""
    found = pair.agreement
    of = found.queries + found.causes.get(agreement.ERROR, 0) - found.empty
    agree = found.agreeing - found.empty
    if agree < standing.MOST * of:
        which = " that find something" if found.empty else ""
        return f"they answer only {agree} of {of} requests{which} alike"
    if standing.first_hits(found) == 0:
        return "they were never seen to return the same first hits"
    return ""


def said(a: str, b: str, pair: Pair | None) -> list[str]:
    """Sentences: how their answers differ; none where they are alike, or it is not known."""
    if why := apart(a, b, pair):
        return [why]
    if pair is None:
        return []
    agree, of = pair.agreement.agreeing, pair.agreement.queries
    differ = [disagreement(a, b, agree, of)] if agree < of else []
    if standing.first_hits(pair.agreement) == 0:
        n = agree - pair.agreement.empty
        differ.append(
            f"On none of the {n} requests that both answer with the same {pair.agreement.require} "
            f"and that find something were {a} and {b} seen to return the same first hits, so "
            "whether they did the same work is unknown: look at what each returns."
        )
    return differ
