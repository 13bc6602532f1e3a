"""Do two systems return the same? Totals, top-k sets, top-k order, RBO; and why not.

Hits whose scores tie may swap, within a list and across its cut: which of them comes first
is no fault of anybody's. Facets and groups, where asked for, must be the same at every level.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.agreement import causes, groups, ranking
from searchbench.analysis.judgement import Agreement, Difference
from searchbench.record import Record, Trial
from searchbench.study.plan import Require

EXAMPLES = 20

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Answers:
    """The captured replies of one treatment, a row a query, ascending by query.

    ``ok``: the reply was well (outcome ok or partial, no error). ``total`` is -1 where the
    engine gives none; ``exact`` where it is no bound and the answer is not ``partial``. ``ids``
    and ``scores`` are flat, with ``offsets`` (rows + 1).
    ``digest``: the same for treatments that answer the same, scores apart.
    """

    query: NDArray[np.int64]
    ok: Bools
    total: NDArray[np.int64]
    exact: Bools
    partial: Bools
    ids: Any
    scores: NDArray[np.float64]
    offsets: NDArray[np.int64]
    facets: NDArray[Any]
    groups: NDArray[Any]
    error: NDArray[Any]
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
    agreeing: NDArray[np.int64]


def read_answers(record: Record, trial: Trial) -> Answers:
    """The captured replies of a trial; of several for a query, the first."""
    table = record.replies(trial.trial).combine_chunks()
    phase = table.column("phase").to_pylist()
    number = table.column("query").to_numpy().astype(np.int64)
    captured = np.array([p == "captured" for p in phase], dtype=bool)
    _, first = np.unique(number[captured], return_index=True)
    table = table.take(np.flatnonzero(captured)[first]).combine_chunks()
    outcome = table.column("outcome").to_numpy()
    names = trial.outcomes or ["ok"]
    good = np.isin(outcome, [i for i, name in enumerate(names) if name in ("ok", "partial")])
    error = np.array(table.column("error").to_pylist(), dtype=object)
    lists = table.column("ids").combine_chunks()
    scores = table.column("scores").combine_chunks()
    if hasattr(lists, "chunks"):  # older pyarrow: a chunked array of one chunk
        lists, scores = lists.chunk(0), scores.chunk(0)
    offsets = _offsets(lists)
    flat = lists.flatten()
    flat_scores = np.full(len(flat), np.nan)
    given = scores.flatten().fill_null(float("nan")).to_numpy(zero_copy_only=False)
    if np.array_equal(_offsets(scores), offsets):
        flat_scores = given.astype(np.float64)
    partial = np.array([i < len(names) and names[i] == "partial" for i in outcome], dtype=bool)
    answers: dict[str, Any] = {
        "query": table.column("query").to_numpy().astype(np.int64),
        "ok": good & np.array([e is None for e in error], dtype=bool),
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
        error=error,
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
    examples: int = EXAMPLES,
) -> Pair:
    """How far two treatments return the same, over the distinct queries that both answered.

    ``k``: how many hits from the top are looked at. ``queries``: rows of the query set, for the
    text and for naming causes.
    """
    asked, at_a, at_b = np.intersect1d(a.query, b.query, return_indices=True)
    answered = a.ok[at_a] & b.ok[at_b]
    both, at_a, at_b = asked[answered], at_a[answered], at_b[answered]
    numbers = _number(a.ids, b.ids)
    lists_a, lists_b = _lists(a, b, at_a, at_b, numbers, k)
    found = ranking.match(lists_a, lists_b)
    extras = (a.facets[at_a] == b.facets[at_b]) & (a.groups[at_a] == b.groups[at_b])
    total_a, total_b = a.total[at_a], b.total[at_b]
    known = a.exact[at_a] & b.exact[at_b] & (total_a >= 0) & (total_b >= 0)
    totals = (total_a == total_b) & known
    agreeing = {
        "none": np.ones(both.size, dtype=bool),
        "totals": totals & extras,
        "set": totals & extras & found.set_same,
        "order": totals & extras & found.order_same,
    }[require]
    by_number = {int(row["query"]): row for row in queries}
    namer = causes.Namer(a.about, b.about, by_number)
    counts: Counter[str] = Counter()
    shown: list[tuple[int, int, str]] = []
    same_all = totals & extras & found.same
    for i in np.flatnonzero(~same_all):
        cause = namer.name(
            int(both[i]),
            totals_same=bool(totals[i]),
            totals_known=bool(known[i]),
            partial=bool(a.partial[at_a[i]] or b.partial[at_b[i]]),
            extras_same=bool(extras[i]),
            ties_only=bool(found.order_same[i]),
        )
        counts[cause] += 1
        shown.append((int(i), 1 if cause == causes.TIE else 0, cause))
    errors_a = int(np.count_nonzero(~a.ok))
    errors_b = int(np.count_nonzero(~b.ok))
    one_sided = int(np.count_nonzero(~answered))
    if one_sided:
        counts[causes.ERROR] += one_sided
    n = both.size
    agreement = Agreement(
        a=a.about.treatment,
        b=b.about.treatment,
        queries=int(n),
        totals_match=_share(totals),
        top_k_set_match=_share(found.set_same),
        top_k_order_match=_share(found.order_same),
        rbo_mean=float(found.rbo.mean()) if n else 0.0,
        k=k,
        unsupported_a=len(a.unsupported),
        unsupported_b=len(b.unsupported),
        errors_a=errors_a,
        errors_b=errors_b,
        causes=dict(counts.most_common()),
        examples=tuple(
            Difference(
                query=int(both[i]),
                text=str(by_number.get(int(both[i]), {}).get("text", "")),
                cause=cause,
                total_a=int(total_a[i]) if total_a[i] >= 0 else None,
                total_b=int(total_b[i]) if total_b[i] >= 0 else None,
                hits_a=_hits(a, int(at_a[i]), k),
                hits_b=_hits(b, int(at_b[i]), k),
            )
            for i, _, cause in _varied(shown, examples)
        ),
        label_a=a.about.label,
        label_b=b.about.label,
        require=require,
        agreeing=int(np.count_nonzero(agreeing)),
        groups=groups.measure(
            _all_hits(a, numbers[0], at_a),
            _all_hits(b, numbers[1], at_b),
            found_same=int(np.count_nonzero(totals)),
            scores_alike=groups.same_scoring(a.about, b.about),
        ),
    )
    return Pair(agreement, both[agreeing])


def under_load(record: Record, trial: Trial) -> tuple[int, int]:
    """Replies kept from the timed span that are not those captured before; of how many.

    Another total, or other documents; not documents that merely swapped at equal scores.
    """
    table = record.replies(trial.trial)
    table = table.select(["query", "phase", "total", "ids", "scores", "error"])
    phase = np.array(table.column("phase").to_pylist(), dtype=object)
    number = table.column("query").to_numpy()
    sampled = np.flatnonzero(phase == "under_load")
    wanted = np.flatnonzero((phase == "captured") & np.isin(number, number[sampled]))
    captured: dict[int, dict[str, Any]] = {}
    for row in table.take(wanted).to_pylist():
        captured.setdefault(row["query"], row)
    differ = looked = 0
    for row in table.take(sampled).to_pylist():
        alone = captured.get(row["query"])
        if alone is None or row["error"] is not None or alone["error"] is not None:
            continue
        looked += 1
        same_ids = row["ids"] == alone["ids"]
        tie = row["scores"] is not None and row["scores"] == alone["scores"]
        scored = tie and any(score is not None for score in row["scores"])
        differ += row["total"] != alone["total"] or not (same_ids or scored)
    return differ, looked


def _offsets(lists: Any) -> NDArray[np.int64]:
    """Offsets from 0 of a list array; a null is an empty list."""
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    offsets: NDArray[np.int64] = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    return offsets


def _lists(
    a: Answers,
    b: Answers,
    at_a: NDArray[np.int64],
    at_b: NDArray[np.int64],
    encoded: tuple[NDArray[np.int32], NDArray[np.int32]],
    k: int,
) -> tuple[ranking.Lists, ranking.Lists]:
    """Both sides' top k as matrices, the documents numbered alike."""
    made = []
    for answers, numbers, at in ((a, encoded[0], at_a), (b, encoded[1], at_b)):
        length = np.minimum(np.diff(answers.offsets), k)[at]
        total = answers.total[at]
        # A list is cut where more match than it holds; an unknown total counts as more.
        cut = (total < 0) | (total > length)
        made.append(
            ranking.Lists(
                ids=ranking.as_matrix(numbers, answers.offsets, k, -1)[at],
                scores=ranking.as_matrix(answers.scores, answers.offsets, k, np.nan)[at],
                length=length,
                cut=cut,
            )
        )
    return made[0], made[1]


def _all_hits(answers: Answers, numbers: NDArray[np.int32], at: NDArray[np.int64]) -> groups.Hits:
    """Every hit of the queries ``at``, however deep the lists are."""
    length = np.diff(answers.offsets)[at]
    begin = answers.offsets[:-1][at] - (np.cumsum(length) - length)
    taken = np.repeat(begin, length) + np.arange(int(length.sum()))
    return groups.Hits(length, numbers[taken].astype(np.int64), answers.scores[taken])


def _number(a: Any, b: Any) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """A number for each id, the same for the same id on both sides."""
    import pyarrow as pa

    both: Any = pa.chunked_array([a, b], type=a.type).combine_chunks()
    if hasattr(both, "chunks"):
        both = both.chunk(0)
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


def _hits(answers: Answers, row: int, k: int) -> tuple[tuple[str, float | None], ...]:
    begin = int(answers.offsets[row])
    end = min(int(answers.offsets[row + 1]), begin + k)
    ids = answers.ids.slice(begin, end - begin).to_pylist()
    scores = answers.scores[begin:end].tolist()
    return tuple((i, None if s != s else s) for i, s in zip(ids, scores, strict=True))


def _share(matches: Bools) -> float:
    return float(matches.mean()) if matches.size else 0.0


def _varied(shown: list[tuple[int, int, str]], limit: int) -> list[tuple[int, int, str]]:
    """Examples of every cause in turn, real differences before mere ties."""
    turn: Counter[str] = Counter()
    keyed = []
    for row in shown:
        keyed.append((row[1], turn[row[2]], row))
        turn[row[2]] += 1
    return [row for _, _, row in sorted(keyed)[:limit]]
