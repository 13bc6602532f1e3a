"""Corpora: where documents come from. ``open_corpus`` makes one of a study's table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from searchbench.corpora.corpus import Corpus
from searchbench.corpora.spec import (
    FAMILIES,
    OPERATIONS,
    SPEC_KEYS,
    CorpusKey,
    family_of,
    keys_of,
    scale_of,
)
from searchbench.errors import CorpusError
from searchbench.spec import nearest

__all__ = ["FAMILIES", "SPEC_KEYS", "CorpusKey", "complaints", "keys_of", "open_corpus", "unscaled"]


def open_corpus(spec: Mapping[str, object], base: Path) -> Corpus:
    """The corpus of a study's ``[corpus]`` table; paths are relative to ``base``.

    Operations apply in the order scale (or decimate and duplicate), then part. CorpusError in one
    sentence for a table that is wrong, and where the files are.
    """
    wrong = complaints(spec)
    if wrong:
        raise CorpusError("; ".join(message for _, message in wrong))
    family = family_of(spec)
    given: dict[str, Any] = {
        name: value for name, value in spec.items() if name not in ("family", *OPERATIONS)
    }
    corpus = _open(family, given, base)
    # Imported here, not above: the table of keys must be there at once.
    from searchbench.corpora.operations import decimate, duplicate, part

    taken: dict[str, Any] = {name: spec[name] for name in OPERATIONS if name in spec}
    times, every = scale_of(spec)
    corpus = decimate(corpus, every)
    corpus = duplicate(corpus, times)
    if "part" in taken:
        rule = taken.get("split_by", "round-robin")
        corpus = part(corpus, taken["part"], taken.get("parts", 1), rule)
    return corpus


def unscaled(spec: Mapping[str, object]) -> dict[str, object]:
    """The table of the same corpus at its natural size: all of its documents, each once.

    Queries are sampled from this one, so that every size is asked the same queries. Not each of
    them then matches something in a smaller one.
    """
    return {name: value for name, value in spec.items() if name not in OPERATIONS}


def complaints(spec: Mapping[str, object]) -> list[tuple[str, str]]:
    """Every mistake of a ``[corpus]`` table, as (key, sentence); opens nothing."""
    family = family_of(spec)
    if family not in FAMILIES:
        hint = nearest(family, FAMILIES)
        return [("family", f"there is no corpus family {family!r}; {hint}")]
    keys = keys_of(family)
    found: list[tuple[str, str]] = []
    for name, value in spec.items():
        key = keys.get(name)
        if key is None:
            hint = nearest(name, keys)
            found.append((name, f"a {family} corpus has no key {name!r}; {hint}"))
        elif reason := key.mismatch(value) or (name == "fields" and _wrong_fields(family, value)):
            found.append((name, reason))
    found += [
        (key.name, f"a {family} corpus needs `{key.name}`: {key.doc}")
        for key in keys.values()
        if key.required and key.name not in spec
    ]
    found += _wrong_scale(spec)
    parts, part = spec.get("parts", 1), spec.get("part")
    if isinstance(part, int) and isinstance(parts, int) and part > parts:
        found.append(("part", f"there is no part {part} of {parts}"))
    return found


def _wrong_scale(spec: Mapping[str, object]) -> list[tuple[str, str]]:
    """What is wrong with a scale that is a number above 0."""
    scale = spec.get("scale")
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not scale > 0:
        return []  # absent, or complained about already
    both = [name for name in ("decimate", "duplicate") if name in spec]
    if both:
        return [("scale", f"`scale` and `{both[0]}` both set the size; keep one of them")]
    try:
        scale_of(spec)
    except ValueError as error:
        near = max(1, round(scale if scale >= 1 else 1 / scale))
        instead = str(near) if scale >= 1 else f"{1 / near:.6g} (1/{near})"
        return [("scale", f"`scale` = {error}; the nearest is {instead}")]
    return []


def _open(family: str, given: dict[str, Any], base: Path) -> Corpus:
    if family == "files":
        from searchbench.corpora.files import open_files

        return open_files(given.pop("files"), base, **given)
    if family == "generated":
        from searchbench.corpora.generated import open_generated

        return open_generated(**given)
    from searchbench.corpora.debian import open_snapshot

    if "snapshot" not in given:
        raise CorpusError(
            "The package descriptions have not been fetched: there is no `snapshot` to read."
        )
    return open_snapshot(base / given["snapshot"], given.get("name", ""))


def _wrong_fields(family: str, fields: Any) -> str:
    """The first mistake in a table of fields; empty if there is none."""
    try:
        if family == "files":
            from searchbench.corpora.locate import declared

            declared(fields)
        else:
            from searchbench.corpora.drawn import drawn_fields

            drawn_fields(fields)
    except CorpusError as error:
        return str(error)
    return ""
