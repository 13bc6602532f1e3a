"""A study file as text, as tables, and as positions: where each key and value stands."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from searchbench import _core
from searchbench.errors import Complaint, StudyError
from searchbench.spec import SpecKey, near, nearest, nearest_key, show

Path = tuple[str, ...]
Position = tuple[int, int]
"""Line and column, both from 1; (0, 0) for the whole file."""
Moved = Mapping[Position, Position | str]
"""Of a study that a command line changed: where in the user's own file what stands at a position
of the changed text is, or the option that put it there. Empty: nothing was changed."""

_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")


class Source:
    """The tables of a study file, and a collector of complaints about them.

    ``path`` arguments are keys from the top of the file; an index into an array is a text.
    ``moved``: complaints name the user's file, or the option that changed it.
    """

    def __init__(self, text: str, file: str, moved: Moved | None = None) -> None:
        self.file = file
        self.moved = moved or {}
        self.complaints: list[Complaint] = []
        self._rows = text.split("\n")
        try:
            spans = _core.toml_spans(text)
            self.tables: dict[str, Any] = tomllib.loads(text)
        except ValueError as error:  # TOMLDecodeError is one
            raise self._syntax(text, str(error)) from error
        self._keys = {path: (line, column) for path, line, column, _, _ in spans}
        self._values = {path: (line, column) for path, _, _, line, column in spans}

    def _syntax(self, text: str, message: str) -> StudyError:
        """The error of a text that is not TOML, with its position taken out of the message."""
        line, column = 0, 0
        if found := re.fullmatch(r"(?s)(\d+):(\d+): (.*)", message):
            line, column, message = int(found[1]), int(found[2]), found[3]
        elif found := re.fullmatch(r"(?s)(.*) \(at line (\d+), column (\d+)\)", message):
            line, column, message = int(found[2]), int(found[3]), found[1]
        said = " ".join(message.split())
        if said == "duplicate key" and (first := _first_of(text, line, column)):
            said += f"; it was set before at {first}"
        return StudyError([Complaint(self.file, line, column, f"this is not TOML: {said}")])

    def where(self, path: Path) -> str:
        """LINE:COLUMN of a key, for sentences that name a second position."""
        at = self._given(self._position(self._keys, path))
        return at if isinstance(at, str) else f"{at[0]}:{at[1]}"

    def line_before(self, path: Path) -> int:
        """The line before the first of a text, in the user's file; 0 where an option gave it.

        What follows the quotes that open a text of several lines may begin on the line below.
        """
        here = self._position(self._values, path)
        at = self._given(here)
        if isinstance(at, str) or not here[0]:
            return 0
        below = self._rows[here[0] - 1].rstrip().endswith(('"""', "'''"))
        return at[0] if below else at[0] - 1

    def at_key(self, path: Path, message: str, hint: str = "") -> None:
        """Complain where a key stands."""
        self._complain(self._keys, path, message, hint)

    def at_value(self, path: Path, message: str, hint: str = "") -> None:
        """Complain where a value stands."""
        self._complain(self._values, path, message, hint)

    def at_each(self, path: Path, i: int, message: str, hint: str = "") -> None:
        """Complain of value ``i`` of a list, which may stand alone in place of the list."""
        one = (*path, str(i))
        self.at_value(one if one in self._values else path, message, hint)

    def _complain(
        self, positions: Mapping[Path, Position], path: Path, message: str, hint: str
    ) -> None:
        at = self._given(self._position(positions, path))
        if isinstance(at, str):
            complaint = Complaint(at, 0, 0, message, hint)
        else:
            complaint = Complaint(self.file, *at, message, hint)
        if complaint not in self.complaints:
            self.complaints.append(complaint)

    def _given(self, at: Position) -> Position | str:
        """Where the user gave what stands there: in the file, or an option."""
        return self.moved.get(at, (0, 0)) if self.moved else at

    def _position(self, positions: Mapping[Path, Position], path: Path) -> Position:
        # What is missing has no position of its own: then it is that of the table around it.
        while path and path not in positions:
            path, positions = path[:-1], self._keys
        return positions.get(path, (0, 0))

    def table(self, *path: str) -> dict[str, Any]:
        """A table; empty where it is absent or, with a complaint, where it is none."""
        found: Any = self.tables
        for part in path:
            if not isinstance(found, Mapping) or part not in found:
                return {}
            found = found[part]
        if isinstance(found, Mapping):
            return dict(found)
        self.at_value(path, f"`{'.'.join(path)}` must be a table, not {show(found)}")
        return {}

    def only(self, path: Path, table: Iterable[str], known: Collection[str], what: str) -> None:
        """Complain of the keys of a table that are not known; ``what`` has no such key."""
        for name in table:
            if name not in known:
                self.at_key((*path, name), f"{what} has no key `{name}`", nearest(name, known))

    def checked(
        self,
        path: Path,
        keys: Sequence[SpecKey],
        what: str = "",
        elsewhere: Collection[str] = (),
    ) -> dict[str, Any]:
        """The keys of a table that are known and hold what they may; complaints for the rest.

        ``elsewhere``: keys that somebody else looks at.
        """
        table = {k: v for k, v in self.table(*path).items() if k not in elsewhere}
        known = {key.name: key for key in keys}
        own = what or f"[{'.'.join(path)}]"
        for name in table:
            if name not in known:
                self.at_key((*path, name), f"{own} has no key `{name}`", nearest_key(name, keys))
        good: dict[str, Any] = {}
        for name in filter(known.__contains__, table):
            if reason := known[name].mismatch(table[name]):
                hint = choice_hint(known[name], table[name])
                hint = hint or levels_hint(path, known[name], table[name])
                self.at_value((*path, name), reason, hint)
            else:
                good[name] = table[name]
        return good

    def finish(self) -> None:
        """Raise StudyError if there was any complaint."""
        if self.complaints:
            raise StudyError(self.complaints)


def flat(
    table: Mapping[str, Any], at: Path, whole: str = "", begun: str = ""
) -> Iterator[tuple[Path, str, Any]]:
    """(position, dotted path, value); ``load.clients = [1]`` is the same as ``"load.clients"``.

    ``whole``: of paths that begin with it, tables are values. ``begun``: of the path.
    """
    for key, value in table.items():
        path = f"{begun}{key}"
        if isinstance(value, Mapping) and not (whole and path.startswith(whole)):
            yield from flat(value, (*at, key), whole, f"{path}.")
        else:
            yield (*at, key), path, value


def choice_hint(key: SpecKey, value: object) -> str:
    """The nearest of a key's choices to a text that is none of them, if one is near."""
    return near(value, map(str, key.choices)) if isinstance(value, str) else ""


def _first_of(text: str, line: int, column: int) -> str:
    """LINE:COLUMN where a key that is set twice was set first; "" where that is not to be seen.

    The second is given another name, so that the text can be read, and the first is then the key
    of the same table that has the old name.
    """
    rows = text.split("\n")
    row = rows[line - 1] if 0 < line <= len(rows) else ""
    token = _KEY.match(row, column - 1)
    if token is None:
        return ""
    new = "searchbench-the-second"
    rows[line - 1] = row[: column - 1] + new + row[token.end() :]
    try:
        spans = _core.toml_spans("\n".join(rows))
        old = next(iter(tomllib.loads(f"{token[0]} = 1")))
    except ValueError:
        return ""
    at = {path: f"{span[0]}:{span[1]}" for path, *span in spans}
    return next((at.get((*path[:-1], old), "") for path in at if path and path[-1] == new), "")


def levels_hint(path: Path, key: SpecKey, value: object) -> str:
    """How to vary a key of a place, to whoever gave it a list of values that fit one by one."""
    if path[:1] not in (("places",), ("hosts",), ("storages",)) or not isinstance(value, list):
        return ""
    if not value or any(key.mismatch(each) for each in value):
        return ""
    dotted = ".".join(map(str, (*path, key.name)))
    return f"to vary it, say {show(dotted)} = {show(value)} in [factors]"
