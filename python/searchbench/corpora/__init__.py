"""Corpora: where documents come from. ``open_corpus`` makes one of a study's table."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from searchbench.corpora.corpus import Corpus
from searchbench.corpora.spec import FAMILIES, SPEC_KEYS, SpecKey, family_of, keys_of
from searchbench.errors import CorpusError

__all__ = ["FAMILIES", "SPEC_KEYS", "SpecKey", "complaints", "keys_of", "open_corpus"]

_OPERATIONS = ("decimate", "duplicate", "parts", "part", "split_by")


def open_corpus(spec: Mapping[str, object], base: Path) -> Corpus:
    """The corpus of a study's ``[corpus]`` table; paths are relative to ``base``.

    Operations apply in the order decimate, duplicate, part. CorpusError in one sentence for
    a table that is wrong, and where the files are.
    """
    wrong = complaints(spec)
    if wrong:
        raise CorpusError("; ".join(message for _, message in wrong))
    family = family_of(spec)
    given: dict[str, Any] = {
        name: value for name, value in spec.items() if name not in ("family", *_OPERATIONS)
    }
    corpus = _open(family, given, base)
    # Imported here, not above: the table of keys must be there at once.
    from searchbench.corpora.operations import decimate, duplicate, part

    taken: dict[str, Any] = {name: spec[name] for name in _OPERATIONS if name in spec}
    corpus = decimate(corpus, taken.get("decimate", 1))
    corpus = duplicate(corpus, taken.get("duplicate", 1))
    if "part" in taken:
        rule = taken.get("split_by", "round-robin")
        corpus = part(corpus, taken["part"], taken.get("parts", 1), rule)
    return corpus


def complaints(spec: Mapping[str, object]) -> list[tuple[str, str]]:
    """Every mistake of a ``[corpus]`` table, as (key, sentence); opens nothing."""
    family = family_of(spec)
    if family not in FAMILIES:
        return [
            (
                "family",
                f"there is no corpus family {family!r}; there are {', '.join(FAMILIES)}"
                + _near(family, FAMILIES),
            )
        ]
    keys = keys_of(family)
    found: list[tuple[str, str]] = []
    for name, value in spec.items():
        key = keys.get(name)
        if key is None:
            found.append((name, f"a corpus of {family} has no key {name!r}{_near(name, keys)}"))
        elif reason := _misfit(key, value):
            found.append((name, f"{name} {reason}"))
    found += [
        (key.name, f"a corpus of {family} needs `{key.name}`: {key.doc}")
        for key in keys.values()
        if key.required and key.name not in spec
    ]
    parts, part = spec.get("parts", 1), spec.get("part")
    if isinstance(part, int) and isinstance(parts, int) and part > parts:
        found.append(("part", f"there is no part {part} of {parts}"))
    return found


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


def _misfit(key: SpecKey, value: object) -> str:
    """Why a value is not one for this key; empty if it is."""
    if isinstance(value, bool) or not isinstance(value, key.kinds):
        kinds = " or ".join(_KINDS[kind] for kind in key.kinds)
        return f"is {value!r}, and {kinds} is expected"
    if key.choices and value not in key.choices:
        return f"is {value!r}, and one of {', '.join(key.choices)} is expected" + (
            _near(str(value), key.choices)
        )
    if isinstance(value, (int, float)):
        if key.minimum is not None and value < key.minimum:
            return f"is {value}, and at least {key.minimum:g} is expected"
        if key.maximum is not None and value > key.maximum:
            return f"is {value}, and at most {key.maximum:g} is expected"
    return ""


_KINDS = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
}


def _near(name: str, names: Mapping[str, object] | tuple[str, ...]) -> str:
    close = get_close_matches(name, list(names), 1)
    return f"; did you mean {close[0]}?" if close else ""
