"""A judgement of a log as plain values, with stable names; FORMATS.md describes them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from searchbench.analysis.logs.judge import rows_as_json
from searchbench.analysis.logs.model import LogJudgement, Row


def as_json(of: LogJudgement) -> dict[str, Any]:
    """Everything but the histogram itself, which the record has."""

    def rows(given: tuple[Row, ...]) -> list[dict[str, Any]]:
        return rows_as_json(given)

    return {
        "headline": of.headline,
        "first_s": of.first_s,
        "last_s": of.last_s,
        "zone": of.zone,
        "zones": dict(of.zones),
        "more_names_than_told_apart": list(of.crowded),
        "during": asdict(of.during) if of.during else None,
        "remarks": [asdict(remark) for remark in of.remarks],
        "all": rows((of.all,))[0] if of.all else None,
        "resolution_s": of.resolution_s,
        "finer_clocks": asdict(of.finer) if of.finer else None,
        "clock_steps": [asdict(clock) for clock in of.clocks],
        "below_resolution": of.below_resolution,
        "within": {str(limit): share for limit, share in of.within.items()},
        "rate_mean": of.rate_mean,
        "holes": [{"from_s": start, "to_s": end} for start, end in of.holes],
        "rate_peak": of.rate_peak,
        "bands": [
            {**asdict(band), "over_represented": list(inside)}
            for band, inside in zip(of.bands.bands, of.in_bands, strict=True)
        ],
        "not_told_apart": [{"at_s": at, "why": why} for at, why in of.bands.doubted],
        "by": {kind: rows(given) for kind, given in of.by.items()},
        "by_words": rows(of.words),
        "by_size": rows(of.sizes),
        "parts": of.parts,
        "served": rows((of.served,))[0] if of.served else None,
        "served_by": rows(of.served_by),
        "others": of.others,
        "step_s": of.step_s,
        "over_time": [asdict(moment) for moment in of.over],
        "worst_minutes": [asdict(moment) for moment in of.worst],
        "worst_hour": asdict(of.worst_hour) if of.worst_hour else None,
        "most_asked": [asdict(one) for one in of.most],
        "most_time": [asdict(one) for one in of.longest],
        "without_hits": [asdict(one) for one in of.without_hits],
        "repetition": asdict(of.repeats) if of.repeats else None,
        "hits": [{"hits": name, "n": n} for name, n in of.hits],
        "sources": [dict(source) for source in of.sources],
        "published": asdict(of.published) if of.published else None,
        "new": {kind: list(names) for kind, names in of.new.items()},
    }
