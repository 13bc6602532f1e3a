"""Do two systems return the same? Totals, top-k sets, top-k order, RBO; and why not.

Hits whose scores tie may swap, within a list and across its cut: which of them comes first
is no fault of anybody's. But lists in which all hits tie have no order, and nothing is decided by
it. Facets and groups, where asked for, must be the same at every level. Longer than most files:
what is held against what, alone and under load, is read side by side.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from searchbench.analysis.agreement import groups, ranking
from searchbench.analysis.judgement import Agreement, Difference
from searchbench.analysis.stats.distributions import chi_square
from searchbench.record import Record, Trial
from searchbench.study.plan import Require

EXAMPLES = 20
FEW_CUT = 0.1  # of the queries that agree and list hits
CHANCE = 0.05  # of so many lists with the same hits or order, if either system draws them by lot
FAR_BEYOND = 1000  # matches that are in neither list; of more, chance makes no list the same
WITHOUT = "without a class"  # queries that have none, where others have

# Why two systems answer a query differently, where the record can tell.
ERROR = "error"  # one of them refused or failed
PARTIAL = "partial"  # one of them answered from a part of its index only
TRUNCATION = "truncation"  # a total is only a bound, or there is no total
ANALYSIS = "analysis"  # other totals, and the text is cut into other terms
OPERATOR = "operator"  # other totals from the same terms: the operators mean different things
ANALYSIS_OR_OPERATOR = "analysis or operator"  # other totals, and no terms on record to tell which
EXTRAS = "facets or groups"  # the same documents match, counted differently
PARTS = "part statistics"  # one engine, with other parts: each scores by its own frequencies
NO_HITS = "no hits returned"  # one of them lists none, at the same total
SCORING = "scoring"  # the same documents match, ranked differently
UNDECIDED = "undecidable by order"  # so many hits have one score that their order is chance
TIE = "tie"  # only hits of equal score swapped; counts as the same

# Parameters that say how an index is cut up and whose statistics are used for scoring.
PART_PARAMETERS = frozenset({"parts", "part_kind", "levels", "shards", "statistics", "merge"})

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Hits = tuple[tuple[str, float | None], ...]  # ids with scores


@dataclass(frozen=True, slots=True)
class Answers:
    """The captured replies of one treatment, a row a query, ascending by query.

    ``ok``: the reply was well (outcome ok or partial, no error). ``total`` is -1 where the
    engine gives none; ``exact`` where it is no bound and the answer is not ``partial``. ``ids``
    and ``scores`` are flat, with ``offsets`` (rows + 1).
    ``digest``: the same for treatments that answer the same, scores apart.
    """

    query: Ints
    ok: Bools
    total: Ints
    exact: Bools
    partial: Bools
    ids: Any
    scores: NDArray[np.float64]
    offsets: Ints
    facets: NDArray[Any]
    groups: NDArray[Any]
    unsupported: Mapping[int, str]
    about: Trial
    digest: str

    @property
    def readable(self) -> bool:
        """Whether any reply could be read: a total or hits. Else there is nothing to compare."""
        return bool((self.total >= 0).any() or self.offsets[-1])


@dataclass(frozen=True, slots=True)
class Pair:
    """How two treatments agree: the report's figures, and which queries they answer the same.

    ``agreeing``: query numbers that both answered well and the same at the required level.
    """

    agreement: Agreement
    agreeing: Ints


def read_answers(record: Record, trial: Trial, more: pa.Table | None = None) -> Answers:
    """The captured replies of a trial; of several for a query, the first.

    ``more``: replies of the same system, as ``loaded`` has them; they stand for queries that were
    never asked alone.
    """
    table = record.replies(trial.trial).combine_chunks()
    own = table.take(_captured(table))
    if more is not None:
        further = ~np.isin(more.column("query").to_numpy(), own.column("query").to_numpy())
        own = pa.concat_tables([own, more.filter(pa.array(further))]).combine_chunks()
        own = own.take(np.argsort(own.column("query").to_numpy(), kind="stable"))
    return _decoded(own, trial)


def loaded(record: Record, trials: Sequence[Trial]) -> pa.Table | None:
    """Of each query the first whole answer under load, in the order of ``trials``, as far as their
    replies were kept; None where there are none.
    """
    found: list[pa.Table] = []
    known = np.empty(0, np.int64)
    for trial in trials:
        table = record.replies(trial.trial).combine_chunks()
        rows = _good(table, _of_phase(table, "under_load"), trial)
        numbers, first = np.unique(table.column("query").to_numpy()[rows], return_index=True)
        more = ~np.isin(numbers, known)
        if trial.outcomes == trials[0].outcomes and more.any():
            found.append(table.take(rows[first[more]]))
            known = np.union1d(known, numbers[more])
    return pa.concat_tables(found).combine_chunks() if found else None


def _good(table: pa.Table, rows: Ints, trial: Trial) -> Ints:
    """Those of the ``rows`` that are whole answers without an error."""
    well = (trial.outcomes or ["ok"]).index("ok")
    fine = (table.column("outcome").to_numpy() == well) & table.column("error").is_null().to_numpy()
    good: Ints = rows[fine[rows]]
    return good


def _uncompared(a: Answers, b: Answers, asked: Ints) -> int:
    """Of how many distinct queries of the set no reply of either side, or of one, is on record."""
    barred = np.array([*a.unsupported, *b.unsupported], np.int64)
    return max(0, (a.about.queries.distinct or 0) - np.union1d(asked, barred).size)


def _of_phase(table: pa.Table, phase: str) -> Ints:
    return np.flatnonzero(np.array(table.column("phase").to_pylist(), dtype=object) == phase)


def _captured(table: pa.Table) -> Ints:
    """The rows of what was asked alone, ascending by query; of several for one the first."""
    rows = _of_phase(table, "captured")
    _, first = np.unique(table.column("query").to_numpy()[rows], return_index=True)
    return rows[first]


def _decoded(table: pa.Table, trial: Trial) -> Answers:
    """Rows of replies.parquet, in their order."""
    names = trial.outcomes or ["ok"]
    outcome = table.column("outcome").to_numpy()
    good = np.isin(outcome, [i for i, name in enumerate(names) if name in ("ok", "partial")])
    partial = np.isin(outcome, [i for i, name in enumerate(names) if name == "partial"])
    lists = table.column("ids").combine_chunks()
    scores = table.column("scores").combine_chunks()
    offsets = _offsets(lists)
    flat = lists.flatten()
    flat_scores = np.full(len(flat), np.nan)
    given = scores.flatten().fill_null(float("nan")).to_numpy(zero_copy_only=False)
    if np.array_equal(_offsets(scores), offsets):
        flat_scores = given.astype(np.float64)
    answers: dict[str, Any] = {
        "query": table.column("query").to_numpy().astype(np.int64),
        "ok": good & table.column("error").is_null().to_numpy(),
        "total": table.column("total").fill_null(-1).to_numpy(),
        "exact": table.column("total_exact").fill_null(False).to_numpy() & ~partial,
        "partial": partial,
    }
    facets = _canonical(table.column("facets").to_pylist())
    groups = _canonical(table.column("groups").to_pylist())
    seen = hashlib.blake2b(digest_size=16)
    for part in (*answers.values(), offsets):
        seen.update(np.ascontiguousarray(part).tobytes())
    for text in ("\n".join(flat.to_pylist()), "\n".join(facets), "\n".join(groups)):
        seen.update(text.encode())
    return Answers(
        **answers,
        ids=flat,
        scores=flat_scores,
        offsets=offsets,
        facets=facets,
        groups=groups,
        unsupported={row.query: row.reason for row in trial.unsupported},
        about=trial,
        digest=seen.hexdigest(),
    )


def compare(
    a: Answers,
    b: Answers,
    *,
    require: Require,
    k: int,
    queries: Sequence[Mapping[str, Any]] = (),
    titles: Mapping[str, str] = MappingProxyType({}),
) -> Pair:
    """How far two treatments return the same, over the distinct queries that both answered.

    ``k``: how many hits from the top are looked at. ``queries``: rows of the query set, for the
    text and for naming causes. ``titles``: of documents, by id, for the examples.
    """
    asked, at_a, at_b = np.intersect1d(a.query, b.query, return_indices=True)
    ok_a, ok_b = a.ok[at_a], b.ok[at_b]
    answered = ok_a & ok_b
    both, at_a, at_b = asked[answered], at_a[answered], at_b[answered]
    numbers = _number(a.ids, b.ids)
    tops = _top(a, numbers[0], at_a, k), _top(b, numbers[1], at_b, k)
    found = ranking.match(*tops)
    extras = (a.facets[at_a] == b.facets[at_b]) & (a.groups[at_a] == b.groups[at_b])
    total_a, total_b = a.total[at_a], b.total[at_b]
    known = a.exact[at_a] & b.exact[at_b] & (total_a >= 0) & (total_b >= 0)
    totals = (total_a == total_b) & known
    none_a, none_b = (np.diff(side.offsets)[at] == 0 for side, at in ((a, at_a), (b, at_b)))
    no_hits = none_a != none_b
    undecided = totals & extras & found.undecided & ~no_hits
    unseen = none_a & none_b & ~(totals & (total_a == 0))  # no hits are on record to be compared
    listed = ~(none_a & none_b)  # two lists without a hit are no agreement on first hits
    levels = {
        "totals": _level(totals, ~known),
        "set": _level(found.set_same & ~unseen, unseen | (found.undecided & ~found.set_same)),
        "order": _level((found.order_same | found.same) & ~unseen, unseen | found.undecided),
    }
    if any(side.size and (side != "").any() for side in (a.facets, b.facets, a.groups, b.groups)):
        levels["extras"] = _level(extras, np.zeros_like(extras))
    agreeing = {
        "none": np.ones(both.size, dtype=bool),
        "totals": totals & extras,
        "set": totals & extras & found.set_same,
        "order": totals & extras & found.order_same,
    }[require]
    by_number = {int(row["query"]): row for row in queries}
    classes = [str(by_number.get(int(q), {}).get("class") or "") for q in both]
    # The first that holds; "" is to be named query by query.
    named = np.select(
        [
            *(a.partial[at_a] | b.partial[at_b], ~known, ~totals, no_hits, ~extras),
            *(found.undecided, found.order_same),
        ],
        [PARTIAL, TRUNCATION, "", NO_HITS, EXTRAS, UNDECIDED, TIE],
        PARTS if _only_parts_differ(a.about, b.about) else SCORING,
    )
    identical = totals & extras & found.same
    if require == "order":
        identical &= ~undecided
    shown: list[tuple[int, str]] = []
    for i in np.flatnonzero(~identical).tolist():
        query = int(both[i])
        cause = str(named[i]) or _of_totals(a.about, b.about, query, by_number.get(query))
        shown.append((i, cause))
    counts = Counter(cause for _, cause in shown)
    if one_sided := int(np.count_nonzero(~answered)):
        counts[ERROR] += one_sided
    n = both.size
    agreement = Agreement(
        a=a.about.treatment,
        b=b.about.treatment,
        queries=int(n),
        totals_match=_mean(totals) or 0.0,
        top_k_set_match=_mean(found.set_same[listed]),
        top_k_order_match=_mean(found.order_same[listed]),
        rbo_mean=_mean(found.rbo[listed]),
        k=_listed(k, (a, at_a), (b, at_b)),
        unsupported_a=len(a.unsupported),
        unsupported_b=len(b.unsupported),
        errors_a=int(np.count_nonzero(~a.ok)),
        errors_b=int(np.count_nonzero(~b.ok)),
        causes=dict(counts.most_common()),
        examples=tuple(
            _difference(
                int(both[i]),
                str(by_number.get(int(both[i]), {}).get("text", "")),
                cause,
                (int(total_a[i]), int(total_b[i])),
                (_hits(a, int(at_a[i]), k), _hits(b, int(at_b[i]), k)),
                titles,
            )
            for i, cause in _varied(sorted(shown, key=lambda one: float(found.rbo[one[0]])))
        ),
        label_a=a.about.label,
        label_b=b.about.label,
        require=require,
        agreeing=int(np.count_nonzero(agreeing)),
        differing=int(np.count_nonzero(~agreeing & ~(undecided & (require in ("set", "order"))))),
        same_top_k=int(np.count_nonzero(agreeing & found.set_same & listed)),
        ranked_alike=_ranked_alike(tops, found, agreeing & listed),
        without_order=int(np.count_nonzero(found.undecided)),
        groups=groups.measure(
            _all_hits(a, numbers[0], at_a),
            _all_hits(b, numbers[1], at_b),
            found_same=int(np.count_nonzero(totals)),
            scores_alike=groups.same_scoring(a.about, b.about),
        ),
        empty=int(np.count_nonzero(agreeing & totals & (total_a == 0))),
        levels=levels,
        without_hits=int(np.count_nonzero(~listed)),
        uncompared=_uncompared(a, b, asked),
        only_a=int(np.count_nonzero(ok_a & ~ok_b)),
        only_b=int(np.count_nonzero(ok_b & ~ok_a)),
        dropped_a=_dropped(b, a),
        dropped_b=_dropped(a, b),
        agreeing_changed=int(
            np.count_nonzero(
                agreeing & ~((totals | ~known) & (found.order_same | found.undecided) & extras)
            )
        ),
        by_class=_by_class(classes, agreeing),
    )
    return Pair(agreement, both[agreeing])


def _ranked_alike(
    tops: tuple[ranking.Lists, ranking.Lists], found: ranking.Match, which: Bools
) -> tuple[int, int]:
    """On how many of ``which`` both were seen to rank alike, and on how many that could be seen.

    Two lists of all that match hold the same documents, however either ranks. So what counts is
    which documents of more are in a list; where such lists are few (``FEW_CUT``), the order of all
    that match, if it is the same more often than chance makes it (n hits: one in n!). Two lists
    neither of which has an order show nothing.
    """
    a, b = tops
    of = which & ~(ranking.without_order(a) & ranking.without_order(b))
    cut = of & (a.cut | b.cut)
    if np.count_nonzero(cut) > FEW_CUT * np.count_nonzero(which):
        return _same_of_cut(a, cut, found), int(np.count_nonzero(cut))
    lengths = np.minimum(a.length, b.length)
    whole = of & ~cut & (lengths > 1)
    alike = int(np.count_nonzero(whole & found.order_same))
    by_chance = sum(1 / math.factorial(min(n, 20)) for n in lengths[whole].tolist())
    alike = alike if _more_than(alike, by_chance) else 0
    some = _same_of_cut(a, cut, found)
    return alike + some, int(np.count_nonzero(whole | cut))


def _same_of_cut(lists: ranking.Lists, cut: Bools, found: ranking.Match) -> int:
    """On how many cut lists both have the same hits, but for ties; 0 where chance makes as many.

    Of two lists that are drawn by lot of n + m matches all n are the same once in C(n + m, n): of
    eleven matches, ten are the same ten once in eleven. Where a tie excuses others, so many as both
    do have are the same by the hypergeometric distribution.
    """
    alike = cut & found.set_same
    if lists.beyond is None:
        return int(np.count_nonzero(alike))
    least = np.where(alike, found.shared, lists.length)[cut].tolist()
    sizes = zip(lists.length[cut].tolist(), lists.beyond[cut].tolist(), least, strict=True)
    by_chance = sum(_shared_by_lot(n, m, s) for n, m, s in sizes if 0 <= m <= FAR_BEYOND)
    n = int(np.count_nonzero(alike))
    return n if _more_than(n, by_chance) else 0


def _shared_by_lot(n: int, m: int, least: int) -> float:
    """The chance that two draws of ``n`` of n + m have ``least`` or more in common."""
    ways = sum(math.comb(n, s) * math.comb(m, n - s) for s in range(least, n + 1) if n - s <= m)
    return ways / math.comb(n + m, n)


def _more_than(n: int, by_chance: float) -> bool:
    """Whether ``n`` rare events are more than chance makes, which makes ``by_chance`` of them on
    average (Poisson; its tail by chi-squared, Garwood 1936).
    """
    return n > 0 and 2 * by_chance < chi_square(CHANCE, 2 * n)


def _listed(k: int, *sides: tuple[Answers, Ints]) -> int:
    """How many first hits were looked at: fewer than ``k`` where no list is as long, as they were
    cut before that.
    """
    lengths = np.concatenate([np.diff(side.offsets)[at] for side, at in sides])
    totals = np.concatenate([side.total[at] for side, at in sides])
    longest = int(lengths.max(initial=0))
    cut = bool(((lengths < k) & (lengths < totals)).any())
    return min(k, longest) if longest and cut else k


def _dropped(a: Answers, b: Answers) -> int:
    """How many queries ``a`` answered well that ``b`` cannot be asked."""
    return sum(q in b.unsupported and q not in a.unsupported for q in a.query[a.ok].tolist())


def _by_class(classes: Sequence[str], agreeing: Bools) -> dict[str, tuple[int, int]]:
    """By class, how many of its queries agree, and of how many; empty where none has a class."""
    if not any(classes):
        return {}
    of = Counter(classes)
    agree = Counter(name for name, same in zip(classes, agreeing.tolist(), strict=True) if same)
    return {name or WITHOUT: (agree[name], n) for name, n in of.items()}


class UnderLoad(NamedTuple):
    """Of ``looked`` sampled replies ``differ`` are not those of before, of which ``unread`` are
    errors or cannot be read. ``unordered`` more have other documents in lists without an order, at
    the same total: whether these are others' hits or another order of the same is not known.
    """

    differ: int = 0
    unread: int = 0
    looked: int = 0
    unordered: int = 0


def under_load(
    record: Record,
    trial: Trial,
    *,
    answered: bool = False,
    phase: str = "under_load",
    role: str = "",
) -> UnderLoad:
    """Replies kept from the timed span (or from another ``phase``) against those captured before.

    Looked at are replies to queries that were answered well when asked alone. Another total, other
    documents, another order, other facets or groups differ; ties may swap, as in ``compare``. Where
    a list has no order, other documents at the same total say nothing: they are ``unordered``.
    ``answered``: errors are not looked at, only replies that count as answered. ``role``: the
    replies are those of a role that reads beside the readers.
    """
    found = record.replies_of_role(trial.trial, role) if role else record.replies(trial.trial)
    table = found.combine_chunks()
    number, sampled, captured = (
        table["query"].to_numpy(),
        _of_phase(table, phase),
        _captured(table),
    )
    if answered:
        sampled = sampled[table["outcome"].to_numpy()[sampled] == 0]
    captured = captured[np.isin(number[captured], number[sampled])]
    if not captured.size:
        return UnderLoad()
    alone, loaded = (_decoded(table.take(rows), trial) for rows in (captured, sampled))
    at_b = np.flatnonzero(np.isin(loaded.query, alone.query[alone.ok]))
    at_a = np.searchsorted(alone.query, loaded.query[at_b])
    numbers = _number(alone.ids, loaded.ids)
    k = max(1, *(int(np.diff(side.offsets).max()) for side in (alone, loaded)))
    match = ranking.match(_top(alone, numbers[0], at_a, k), _top(loaded, numbers[1], at_b, k))
    failed = ~loaded.ok[at_b]
    changed = failed | (alone.total[at_a] != loaded.total[at_b])
    unknown = match.undecided & ~match.set_same & ~changed
    changed |= ~match.order_same & ~match.undecided
    # Facets and groups, and the digest of all rows of an operation, which is kept as a facet.
    changed |= alone.facets[at_a] != loaded.facets[at_b]
    changed |= alone.groups[at_a] != loaded.groups[at_b]
    unknown &= ~changed
    counts = changed.sum(), failed.sum(), (~unknown).sum(), unknown.sum()
    return UnderLoad(*map(int, counts))


def _offsets(lists: Any) -> Ints:
    """Offsets from 0 of a list array; a null is an empty list."""
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def _top(answers: Answers, numbers: NDArray[np.int32], at: Ints, k: int) -> ranking.Lists:
    """The top k of the queries ``at`` as matrices."""
    length = np.minimum(np.diff(answers.offsets), k)[at]
    total = answers.total[at]
    return ranking.Lists(
        ids=ranking.as_matrix(numbers, answers.offsets, k, -1)[at],
        scores=ranking.as_matrix(answers.scores, answers.offsets, k, np.nan)[at],
        length=length,
        # A list is cut where more match than it holds; an unknown total counts as more.
        cut=(total < 0) | (total > length),
        beyond=np.where(total < 0, ranking.UNKNOWN, total - length),
    )


def _all_hits(answers: Answers, numbers: NDArray[np.int32], at: Ints) -> groups.Hits:
    """Every hit of the queries ``at``, however deep the lists are."""
    length = np.diff(answers.offsets)[at]
    begin = answers.offsets[:-1][at] - (np.cumsum(length) - length)
    taken = np.repeat(begin, length) + np.arange(int(length.sum()))
    return groups.Hits(length, numbers[taken].astype(np.int64), answers.scores[taken])


def _number(a: Any, b: Any) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """A number for each id, the same for the same id on both sides."""
    both = pa.concat_arrays([a, b])
    numbers = both.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int32)
    return numbers[: len(a)], numbers[len(a) :]


def _canonical(texts: list[str | None]) -> NDArray[Any]:
    """JSON texts in one spelling, so that equal ones are equal strings; empty ones are ""."""
    spelled: dict[str, str] = {}
    out = np.empty(len(texts), dtype=object)
    for i, text in enumerate(texts):
        if not text or text in ("{}", "[]", "null"):
            out[i] = ""
            continue
        if text not in spelled:
            try:
                spelled[text] = json.dumps(json.loads(text), sort_keys=True)
            except ValueError:
                spelled[text] = text
        out[i] = spelled[text]
    return out


def _difference(
    query: int,
    text: str,
    cause: str,
    totals: tuple[int, int],
    hits: tuple[Hits, Hits],
    titles: Mapping[str, str],
) -> Difference:
    """``totals``: below 0 where there is none."""
    total_a, total_b = (total if total >= 0 else None for total in totals)
    listed = {hit: titles[hit] for side in hits for hit, _ in side if hit in titles}
    return Difference(query, text, cause, total_a, total_b, *hits, titles=listed)


def _hits(answers: Answers, row: int, k: int) -> Hits:
    begin = int(answers.offsets[row])
    end = min(int(answers.offsets[row + 1]), begin + k)
    ids = answers.ids.slice(begin, end - begin).to_pylist()
    scores = answers.scores[begin:end].tolist()
    return tuple((i, None if s != s else s) for i, s in zip(ids, scores, strict=True))


def _level(same: Bools, unknown: Bools) -> tuple[int, int, int]:
    """On how many queries it is the same, differs, and is unknown."""
    alike, differ, open_ = (
        int(np.count_nonzero(of)) for of in (same, ~same & ~unknown, ~same & unknown)
    )
    return alike, differ, open_


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean()) if values.size else None


def _varied(shown: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Examples of every cause in turn, real differences before mere ties and what has no order.

    Of each cause in the order given.
    """
    turn: Counter[str] = Counter()
    keyed = []
    for place, (i, cause) in enumerate(shown):
        keyed.append((cause in (TIE, UNDECIDED), turn[cause], place, i, cause))
        turn[cause] += 1
    return [(i, cause) for *_, i, cause in sorted(keyed)[:EXAMPLES]]


def _of_totals(a: Trial, b: Trial, query: int, asked: Mapping[str, Any] | None) -> str:
    """Why totals differ. ``asked``: the query's row, None where it is not on record."""
    algebra = (asked or {}).get("algebra") or {}
    matched = algebra.get("match") or {}
    if asked is not None and a.terms is not None and b.terms is not None:
        # ``other`` has only the queries whose terms an engine sees otherwise than declared.
        declared = _declared_terms(matched)
        x, y = (tuple(seen.other.get(str(query), declared)) for seen in (a.terms, b.terms))
        return OPERATOR if x == y else ANALYSIS
    simple = isinstance(matched, Mapping) and matched.get("mode") in ("any", "all")
    # Any and all of plain terms mean one thing only, and the conformance suite holds every
    # engine to it; so what differs must be the terms.
    return ANALYSIS if simple and not algebra.get("filters") else ANALYSIS_OR_OPERATOR


def _declared_terms(match: Any) -> tuple[str, ...]:
    """All terms of a match in its JSON form, at any depth, in order."""
    if not isinstance(match, Mapping):
        return ()
    if "terms" in match:
        return tuple(str(term) for term in match["terms"])
    parts = [p for key in ("must", "should", "must_not") for p in match.get(key) or ()]
    return tuple(term for part in parts for term in _declared_terms(part))


def _only_parts_differ(a: Trial, b: Trial) -> bool:
    x, y = a.parameters, b.parameters
    differing = {name for name in {*x, *y} if x.get(name) != y.get(name)}
    return (a.engine, a.version) == (b.engine, b.version) and bool(differing & PART_PARAMETERS)
