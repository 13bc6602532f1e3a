"""Records of format 1, read as this one: what was renamed and what moved.

Format 1 had two kinds of records. A study's had four fixed tables in each treatment. A load run's
had a treatment for each step and the result of a search in its plan; that result is not taken over:
the bracket is computed from the samples, as that of any record.
"""

from __future__ import annotations

from typing import Any

# What is said of cache hits is computed from the record now.
_JUDGED = ("cache hits", "cache hits not verified")
_BY_SHARD = ("the request cache", "the query cache")
_JUDGING = ("question", "analysis", "held", "metric", "agreement", "control", "replicates",
            "ingest", "factors")  # fmt: skip


def plan(payload: dict[str, Any]) -> dict[str, Any]:
    """A plan.json of format 1 as one of format 2."""
    judging = dict(payload.get("judging") or {})
    load_run = judging.get("kind") == "load"
    kept: dict[str, Any] = {"ingest": ""}  # unknown, unless it is there
    kept |= {key: judging[key] for key in _JUDGING if judging.get(key) is not None}
    if load_run:
        searched = judging.get("slo") and judging.get("capacity") is not None
        kept["measure"] = "capacity" if searched else "sweep"
        kept["promises"] = [judging["slo"]] if judging.get("slo") else []
        kept["command"] = [str(word) for word in judging.get("command") or []]
    return {
        "format": 2,
        "question": payload.get("question", ""),
        "seed": payload.get("seed", 1),
        "treatments": [_treatment(t, load_run) for t in payload.get("treatments") or []],
        "trials": payload.get("trials") or [],
        "excluded": payload.get("excluded") or [],
        "estimated_s": payload.get("estimated_s") or 0.0,
        "judging": kept,
    }


def trial(payload: dict[str, Any]) -> dict[str, Any]:
    """A trial.json of format 1 as one of format 2."""
    told = {**payload, "format": 2}
    told["phases"] = told.pop("stages", None) or {}
    told["endpoints"] = told.pop("places", None) or []
    attached = told.get("attached")
    told["subject"] = str(told.get("system", "")) if told["endpoints"] else str(told.get("label"))
    if attached is None:
        told.pop("attached", None)
    cache = told.get("cache")
    if cache is not None:
        told["cache"] = {**cache, "counted": _counted(cache.get("counted"))}
        notes = told.get("notes") or []
        told["notes"] = [note for note in notes if note.get("kind") not in _JUDGED]
    # What was absent for want of knowledge was sometimes null and sometimes empty.
    return {key: value for key, value in told.items() if value is not None}


def _counted(count: dict[str, Any] | None) -> dict[str, Any] | None:
    """Format 1 did not say whether a request was one lookup or one for each shard."""
    return {**count, "single": count.get("source") not in _BY_SHARD} if count else None


def _treatment(payload: dict[str, Any], load_run: bool) -> dict[str, Any]:
    settings = {key: payload.get(key) or {} for key in ("corpus", "queries", "load")}
    settings["system"] = payload.get("parameters") or {}
    if load_run:
        settings["requests"] = settings.pop("queries")
    attach = payload.get("attach")
    label = payload.get("label") or payload["id"]
    return {
        "id": payload["id"],
        "label": label,
        "system": payload.get("system", ""),
        "engine": payload.get("engine", ""),
        "levels": payload.get("levels") or {},
        "settings": settings,
        "attach": [attach] if attach else [],
        "subject": payload.get("system", "") if load_run else label,
    }
