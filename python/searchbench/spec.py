"""The keys that a study's tables may have: declared once, checked and documented from here.

Each part that a study describes (queries, loads, corpora) declares its keys as a tuple of
``SpecKey``; engines declare ``Parameter``, which says the same of a lever.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeGuard

from searchbench import sizes

Kind = Literal[
    "text",
    "integer",
    "integers",
    "number",
    "size",
    "boolean",
    "path",
    "paths",
    "named paths",
    "promises",
    "texts",
    "numbers",
    "table",
    "list",
    "list or table",
]

# "path" and "paths" name files relative to the study file; a plural kind also takes one value
# alone, so that ``files = "a.csv"`` reads as it should.
_NAMES: Mapping[Kind, str] = {
    "text": "a string",
    "integer": "an integer",
    "integers": "an integer or a list of integers",
    "number": "a number",
    "size": 'a size (as "256MB" or "64k")',
    "boolean": "true or false",
    "path": "a path",
    "paths": "a path or a list of paths",
    "named paths": "a path, a list of paths, or a table of these by name",
    "promises": "a promise, a table with a promise for each class, or a list of these",
    "texts": "a string or a list of strings",
    "numbers": "a list of numbers",
    "table": "a table",
    "list": "a list",
    "list or table": "a list or a table",
}


@dataclass(frozen=True, slots=True)
class SpecKey:
    """One key of a table: its kind, default (None: not set), and what it may hold.

    ``minimum`` and ``maximum`` bound numbers (each of a list of integers, and the bytes of a size),
    inclusively; ``above`` is an exclusive lower bound. ``also``: what others call it, for hints.
    """

    name: str
    kind: Kind
    default: Any = None
    doc: str = ""
    choices: tuple[str | int | float | bool, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    also: tuple[str, ...] = ()

    def expected(self) -> str:
        """What a value has to be, as the end of a sentence."""
        if self.choices:
            return "one of " + ", ".join(show(c) for c in self.choices)
        said = _NAMES[self.kind]
        bound = _size if self.kind == "size" else _number
        if self.above is not None:
            said += f" above {bound(self.above)}"
            return said if self.maximum is None else f"{said} and at most {bound(self.maximum)}"
        if self.minimum is not None and self.maximum is not None:
            said += f" from {bound(self.minimum)} to {bound(self.maximum)}"
        elif self.minimum is not None:
            said += f" of at least {bound(self.minimum)}"
        elif self.maximum is not None:
            said += f" of at most {bound(self.maximum)}"
        return said

    def mismatch(self, value: object) -> str | None:
        """Why ``value`` does not fit, as a sentence that begins with the key; None if it fits."""
        if self._fits(value):
            return None
        why = _size_wrong(value) if self.kind == "size" and isinstance(value, str) else ""
        said = f": {why}" if why else ""
        return f"`{self.name}` must be {self.expected()}, not {show(value)}{said}"

    def _fits(self, value: object) -> bool:
        if not _is_kind(self.kind, value):
            return False
        if self.choices:
            # 1 == True in Python; a study means what it says.
            return any(
                value == c and isinstance(value, bool) == isinstance(c, bool) for c in self.choices
            )
        if self.kind == "integers" and _is_list(value):
            return all(map(self._bounded, value))
        if self.kind == "size":
            return self._bounded(sizes.size_bytes(str(value)))
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._bounded(value)
        return True

    def _bounded(self, value: float) -> bool:
        return (
            (self.minimum is None or value >= self.minimum)
            and (self.maximum is None or value <= self.maximum)
            and (self.above is None or value > self.above)
        )


def _is_kind(kind: Kind, value: object) -> bool:
    match kind:
        case "text" | "path":
            return isinstance(value, str) and (kind == "text" or value != "")
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "integers":
            each = value if _is_list(value) else [value]
            return bool(each) and all(_is_kind("integer", one) for one in each)
        case "size":
            return isinstance(value, str) and _size_wrong(value) == ""
        case "number":
            return _is_number(value)
        case "boolean":
            return isinstance(value, bool)
        case "paths" | "texts":
            if isinstance(value, str):
                return kind == "texts" or value != ""
            texts = _is_list(value) and all(isinstance(v, str) for v in value)
            return texts and (kind == "texts" or bool(value))
        case "named paths":
            if isinstance(value, Mapping):
                return bool(value) and all(_is_kind("paths", v) for v in value.values())
            return _is_kind("paths", value)
        case "promises":
            each = value if _is_list(value) else [value]
            return all(isinstance(one, str) or _is_texts(one) for one in each)
        case "numbers":
            return _is_list(value) and all(_is_number(v) for v in value)
        case "table":
            return isinstance(value, Mapping)
        case "list":
            return _is_list(value)
        case "list or table":
            return _is_list(value) or isinstance(value, Mapping)


def _is_texts(value: object) -> bool:
    """A table of texts."""
    if not isinstance(value, Mapping) or not value:
        return False
    return all(isinstance(one, str) for one in value.values())


def _is_number(value: object) -> bool:
    # x - x is 0 for every finite number: neither inf nor nan is a measure of anything here.
    return isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _size(value: float) -> str:
    return sizes.size_text(int(value))


def _size_wrong(text: str) -> str:
    """Why a text is no size; "" if it is one."""
    try:
        sizes.size_bytes(text)
    except ValueError as wrong:
        return str(wrong)
    return ""


def _number(value: float) -> str:
    """In full: a bound has to be readable, not short."""
    return str(int(value)) if value == int(value) else str(value)


def show(value: object) -> str:
    """A value as TOML would write it, shortened."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 60 else f'"{value[:57]}..."'
    if isinstance(value, Mapping):
        return "a table"
    if _is_list(value):
        shown = ", ".join(show(v) for v in value[:4])
        return f"[{shown}{', ...' if len(value) > 4 else ''}]"
    return str(value)


# A hint that lists more names than this is not read.
_NAMED = 12


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint for a name that does not exist: the nearest that does, else all of them."""
    known = list(names)
    if hint := near(name, known):
        return hint
    if not known:
        return "there are none"
    shown = ", ".join(f"`{k}`" for k in known[:_NAMED])
    rest = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    return f"there {'is' if len(known) == 1 else 'are'} {shown}{rest}"


def nearest_key(name: str, keys: Iterable[SpecKey]) -> str:
    """A hint for a key that does not exist: the first that others call so, with what it says; else
    the nearest.
    """
    known = list(keys)
    called = next((key for key in known if name.lower().replace("-", "_") in key.also), None)
    if called is not None:
        return f"here it is called `{called.name}`: {called.doc}"
    return nearest(name, (key.name for key in known))


def near(name: str, names: Iterable[str]) -> str:
    """The same where a name is near, else ""."""
    found = _nearest(name, names)
    return f"did you mean `{found}`?" if found else ""


def near_file(path: Path, named: str = "") -> str:
    """A hint for a file that does not exist: the nearest in its folder; "" where none is near.

    ``named``: the file as it was given, so that the other can be given in the same way.
    """
    folder = path.parent
    if not folder.is_dir():
        return "" if "*" in str(folder) else f"there is no folder {folder}"
    there = folder.iterdir() if os.access(folder, os.R_OK) else ()
    found = _nearest(path.name, (each.name for each in there))
    return f"did you mean `{Path(named or path).with_name(found)}`?" if found else ""


def _nearest(name: str, names: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return found[0] if found else ""


def defaults(keys: Iterable[SpecKey]) -> dict[str, Any]:
    """Every key at its default."""
    return {key.name: key.default for key in keys}
