"""A log cut into pieces that can be counted anywhere, and what was found in them put together.

A piece is a run of the blocks in which a whole reading cuts the file, or a whole file where lines
must come in order, or where it is packed. So all pieces together have the entries, the notes and
the line numbers of one reading, however they were shared out.
"""

from __future__ import annotations

import hashlib
import heapq
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from searchbench import _core
from searchbench.errors import QueryError
from searchbench.logs.counts import (
    OTHERS,
    Counts,
    Options,
    insist_known,
    named_format,
    read_into,
    refused_source,
)
from searchbench.logs.mixed import with_others
from searchbench.logs.parquet import readable, with_names
from searchbench.logs.sources import STANDARD_INPUT, Source

BLOCK_BYTES = _core.LOG_BLOCK_BYTES
_MARK_BYTES = 4096  # at the beginning and at the end, by which a file is known to be the same
_EXAMPLES = 5  # lines that could not be read, of a source


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a source, or all of it.

    ``number``: of its source among all that are read. ``part``: as of the core (length of the file,
    first block, block after the last); None: all of it, as a stream. ``whole``: it cannot be cut,
    because its lines must come in order, or it is packed. ``work_bytes``: how much there
    is to read, on disk. ``size_bytes``, ``mark``: of the whole file when it was cut, by which
    another machine sees that it reads the same.
    """

    source: Source
    number: int
    part: tuple[int, int, int] | None
    whole: bool
    work_bytes: int
    size_bytes: int
    mark: str


def looked_at(
    sources: Sequence[Source], options: Options
) -> tuple[list[Piece], dict[int, dict[str, Any]]]:
    """Each source that can be read as one piece, and what became of the others, by number.

    QueryError where one is no file, such as standard input, or where an option is wrong.
    """
    insist_known(options)
    named = named_format(options)
    whole: list[Piece] = []
    refused: dict[int, dict[str, Any]] = {}
    for number, source in enumerate(sources):
        if source.path == STANDARD_INPUT or not Path(source.path).is_file():
            name = "standard input" if source.path == STANDARD_INPUT else source.path
            raise QueryError(f"{name} is not a file that other machines can read; write it into "
                             "one that all of them see")  # fmt: skip
        with readable([source]) as (path,):
            form, why, length, joins = _core.look_at_log(
                path, named=named or source.format, keep_tail=options.keep_tail
            )
        if not form:
            refused[number] = refused_source(source, with_names(why, [source], [path]))
            continue
        size, mark = _size_and_mark(source)
        goes_on = number + 1 < len(sources) and sources[number + 1].follows
        alone = length is not None and not source.follows and not goes_on
        part = (length, 0, _blocks(length, source)) if length is not None and alone else None
        work = size if length is None else max(0, length - source.skip_bytes)
        told = replace(source, format=form)
        whole.append(Piece(told, number, part, part is None or joins, work, size, mark))
    return whole, refused


def cut(whole: Iterable[Piece], most_bytes: int) -> list[Piece]:
    """Pieces of at most so many bytes (of whole blocks, one at least), where files can be cut."""
    step = max(1, most_bytes // BLOCK_BYTES)
    found = []
    for piece in whole:
        if piece.whole or piece.part is None:
            found.append(piece)
            continue
        length, _, blocks = piece.part
        # A file without a block is a piece too, because its server and its path are named.
        for begin in range(0, max(1, blocks), step):
            end = min(begin + step, blocks)
            work = min(piece.work_bytes, end * BLOCK_BYTES) - begin * BLOCK_BYTES
            found.append(replace(piece, part=(length, begin, end), work_bytes=max(0, work)))
    return found


def shared_out(pieces: Sequence[Piece], shares: int) -> list[list[Piece]]:
    """Pieces in at most so many shares of like work: the largest first, each where least is. Files
    of which each goes on with the other stay together, in their order.
    """
    together: list[list[Piece]] = []
    for piece in pieces:
        if piece.source.follows and together:
            together[-1].append(piece)
        else:
            together.append([piece])
    found: list[list[Piece]] = [[] for _ in range(max(1, min(shares, len(together))))]
    least = [(0, at) for at in range(len(found))]
    for some in sorted(together, key=lambda run: -sum(p.work_bytes for p in run)):
        work, at = heapq.heappop(least)
        found[at] += some
        heapq.heappush(least, (work + sum(p.work_bytes for p in some), at))
    return found


def count_pieces(
    log: _core.Log, pieces: Sequence[Piece], options: Options
) -> list[tuple[int, int, dict[str, Any]]]:
    """Count pieces into a log: for each the number of its source, its first block, what was found.

    QueryError where one cannot be read, or is not the file that was cut.
    """
    for piece in pieces:
        _insist_same(piece)
    read = read_into(log, [p.source for p in pieces], options, [p.part for p in pieces])
    if broken := next((one for one in read if one["refused"]), None):
        raise QueryError(str(broken["refused"]))
    return [
        (piece.number, piece.part[1] if piece.part else 0, one)
        for piece, one in zip(pieces, read, strict=True)
    ]


def joined(
    found: Iterable[tuple[int, int, dict[str, Any]]], refused: dict[int, dict[str, Any]]
) -> list[dict[str, Any]]:
    """What became of each source, as one reading says it: ``found`` of ``count_pieces``, all."""
    whole = dict(refused)
    spans: dict[int, tuple[int, int] | None] = {}
    for number, _, one in sorted(found, key=lambda entry: entry[:2]):
        span = one.pop("span_ns")
        if number not in whole:
            whole[number], spans[number] = one, span
            continue
        _append(whole[number], one)
        before = spans[number]
        if before and span:
            _between(whole[number], before[1], span[0])
            spans[number] = (before[0], span[1])
        else:
            spans[number] = before or span
    return [whole[number] for number in sorted(whole)]


def _between(whole: dict[str, Any], from_ns: int, to_ns: int) -> None:
    """The clock from the last entry of a piece to the first of the next one."""
    as_set_back = _core.log_went_back(from_ns, to_ns)
    if as_set_back is not None:
        whole["back"] += 1
        if as_set_back:
            notes = whole["notes"]
            notes[_core.LOG_HOUR_BACK] = notes.get(_core.LOG_HOUR_BACK, 0) + 1


def _append(whole: dict[str, Any], following: dict[str, Any]) -> None:
    """Add what was found in the following blocks of the same file."""
    later = [(line + whole["lines"], *rest) for line, *rest in following["examples"]]
    whole["examples"] = [*whole["examples"], *later][:_EXAMPLES]
    whole["other_formats"] = with_others(whole, following, whole["lines"])
    for name in ("bytes", "lines", "entries", "unread", "back"):
        whole[name] += following[name]
    if "open" in following:
        *_, last_before, at_before = whole["open"]
        state, before, text, last_ns, at_s = following["open"]
        last_ns = last_before if last_ns is None else last_ns
        whole["open"] = (state, before, text, last_ns, at_before if at_s is None else at_s)
    whole["longest_line"] = max(whole["longest_line"], following["longest_line"])
    for what, n in following["notes"].items():
        whole["notes"][what] = whole["notes"].get(what, 0) + n


def in_any_order(counts: Counts) -> bool:
    """Whether another order of reading surely gives the same counts: nothing was too much.

    Above the limits of distinct queries and of names, the order decides which of them are kept.
    """
    if counts.numbers("dropped", "dropped").sum():
        return False
    return OTHERS not in set(counts.texts("groups", "name"))


def _blocks(length: int, source: Source) -> int:
    return -(-max(0, length - source.skip_bytes) // BLOCK_BYTES)


def _size_and_mark(source: Source, size: int | None = None) -> tuple[int, str]:
    """The size of a file, and a digest of its beginning and of its end, packed as it is.

    ``size``: that of an earlier look; what was appended since does not change the mark.
    """
    try:
        with Path(source.path).open("rb") as file:
            size = file.seek(0, io.SEEK_END) if size is None else size
            file.seek(0)
            first = file.read(min(size, _MARK_BYTES))
            file.seek(max(0, size - _MARK_BYTES))
            last = file.read(min(size, _MARK_BYTES))
    except OSError as error:
        raise QueryError(f"{source.path} cannot be read: {error.strerror or error}") from None
    return size, hashlib.sha256(first + last).hexdigest()[:32]


def _insist_same(piece: Piece) -> None:
    _, mark = _size_and_mark(piece.source, piece.size_bytes)
    if mark != piece.mark:
        raise QueryError(f"{piece.source.path} is another file there, or was changed meanwhile")
