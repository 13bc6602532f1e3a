"""Judgements as plain values for machines: JSON with the field names of judgement.py."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from searchbench.analysis.judgement import Judgement, RecordComparison


def to_json(judged: Judgement | RecordComparison) -> dict[str, Any]:
    """Plain dicts, lists, strings, numbers, null; field names as in judgement.py.

    What is not a finite number becomes null. Mapping keys become strings.
    """
    plain: dict[str, Any] = _plain(judged)
    return plain


def steps_json(judged: Judgement) -> list[dict[str, Any]]:
    """One object for each load step, in the order they were driven; fields as in ``Step``."""
    return [_plain(step) for step in judged.steps]


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
