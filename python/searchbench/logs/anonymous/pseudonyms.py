"""Other words for words: the same for the same, of like frequency, of equal length.

A *vocabulary* says how often words occur: in documents, or, without them, in the log itself (those
asked at least ``LEAST`` times there). Its words take each other's places: within a band (as long,
of the same kind, frequency within a factor of two) a key decides who takes whose, in one circle, so
that none keeps its own. A band of one is joined with the next; a word that is alone in its length
leaves the vocabulary.

All other words are replaced by made-up ones, letter by letter from the alphabet of each letter,
digits by digits: a permutation, by the key, of everything that could be written so, in which none
keeps its place and nothing becomes a word of the vocabulary. So a word that no document has becomes
one that no document has. Both maps are one to one, and rest on nothing but the key, the vocabulary
and the word: what is the same stays the same, in every file.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from unicodedata import name as name_of

import orjson

from searchbench.errors import QueryError
from searchbench.packed import lines
from searchbench.whole import not_written, on_disk
from searchbench.workload.queries.analysis import is_term, lower, terms

LEAST = 10  # searches that a word of a log's own vocabulary is in, at least
FORMAT = 1
_ROUNDS = 6  # of the Feistel network; four would do against who sees some pairs
_WIDE = ((0x4E00, 0xA000), (0x3400, 0x4DC0), (0xAC00, 0xD7A4))  # Han, its first extension, Hangul


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """How often words occur. ``origin``: "log" or "documents"; ``digest`` names the latter."""

    origin: str
    counts: Mapping[str, int]
    digest: str = ""


@dataclass(eq=False)
class Pseudonyms:
    """The replacements under one key and one vocabulary. ``made_up``, ``kept``: distinct words
    that were made up, and that are their own replacement because nothing else can be."""

    key: bytes
    vocabulary: Vocabulary
    permuted: dict[str, str] = field(init=False)
    made_up: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.permuted = _circles(self.key, self.vocabulary.counts)

    def of(self, word: str) -> str:
        """What stands in a word's place: in lower case, or in capitals where it had them."""
        small = lower(word)
        found = self.permuted.get(small)
        if found is None:
            found = self.made_up.get(small)
            if found is None:
                found = self.made_up[small] = self._made_up(small)
        else:
            self.used.add(small)
        return _in_case(found, word)

    @property
    def kept(self) -> int:
        """How many distinct words are their own replacement."""
        return sum(word == other for word, other in self.made_up.items())

    def _made_up(self, word: str) -> str:
        alphabets = _alphabets(word)
        domain = _Domain(self.key, alphabets)
        if domain.size < 2:
            return word
        start = at = domain.place(domain.number(word))
        while True:
            at = (at + 1) % domain.size
            found = domain.text(domain.back(at))
            if at == start or (found not in self.permuted and is_term(found)):
                return found


def vocabulary_of_log(words: Mapping[str, int]) -> Vocabulary:
    """The words that are asked often enough not to point to who asked."""
    return Vocabulary("log", {word: n for word, n in words.items() if n >= LEAST})


def vocabulary_of_documents(path: Path) -> Vocabulary:
    """Words by how many documents have them, from documents as JSON lines, or from lines with a
    word and a number. QueryError where a line is neither, or the file cannot be read."""
    counts: Counter[str] = Counter()
    try:
        for number, raw in enumerate(lines(path), 1):
            line = raw.strip()
            if not line:
                continue
            if line.startswith(b"{"):
                counts.update(set(terms(" ".join(_texts(orjson.loads(line))))))
                continue
            word, _, n = line.decode().replace("\t", " ").rpartition(" ")
            if not is_term(lower(word.strip())) or not n.isdigit():
                raise QueryError(
                    f"{path}:{number}: a line is a document as JSON, or a word and the number of "
                    f"documents that have it, not {line[:60].decode(errors='replace')!r}"
                )
            counts[lower(word.strip())] += int(n)
    except OSError as error:
        raise QueryError(f"{path} cannot be read: {error.strerror or error}") from error
    except (orjson.JSONDecodeError, UnicodeDecodeError) as error:
        raise QueryError(f"{path}:{number}: {error}") from None
    told = orjson.dumps(dict(counts), option=orjson.OPT_SORT_KEYS)
    return Vocabulary("documents", counts, hashlib.sha256(told).hexdigest()[:32])


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def pseudonyms(path: Path | None, of_log: Vocabulary, documents: Vocabulary | None) -> Pseudonyms:
    """Replacements under a new key, or under that of the file ``path``, which is made if need be.

    The file keeps a log's own vocabulary too, so that later logs get the same replacements.
    QueryError where the file is no key, or was made for other documents.
    """
    wanted = documents or of_log
    if path is None:
        return Pseudonyms(secrets.token_bytes(32), wanted)
    if path.exists():
        return _kept(path, documents)
    found = Pseudonyms(secrets.token_bytes(32), wanted)
    told = {
        "searchbench": "key of anonymised logs",
        "format": FORMAT,
        "key": found.key.hex(),
        "vocabulary": wanted.origin,
        "digest": wanted.digest,
        "words": dict(wanted.counts) if wanted.origin == "log" else {},
    }
    made = False
    try:
        # Whoever reads the key can undo what it did.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        made = True
        with os.fdopen(handle, "wb") as file:
            file.write(orjson.dumps(told, option=orjson.OPT_INDENT_2))
        on_disk(path)
    except BaseException as error:
        if made:  # a part of a key is none
            with suppress(OSError):
                path.unlink()
        if not isinstance(error, OSError):
            raise
        raise QueryError(not_written(path, error, "the key")) from error
    return found


def _kept(path: Path, documents: Vocabulary | None) -> Pseudonyms:
    try:
        told = orjson.loads(path.read_bytes())
        key, words = bytes.fromhex(told["key"]), told["words"]
        origin, digest = told["vocabulary"], told["digest"]
        ours = told["format"] == FORMAT and len(key) == 32
    except OSError as error:
        raise QueryError(f"the key {path} cannot be read: {error.strerror}") from error
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        ours = False
    if not ours:
        raise QueryError(f"{path} is not a key of --anonymise; name a new file, which is then made")
    if origin == "documents":
        if documents is None or documents.digest != digest:
            raise QueryError(
                f"{path} was made with other documents (--documents); with these the same word "
                "would get another replacement: give the same documents, or a new key"
            )
        return Pseudonyms(key, documents)
    if documents is not None:
        raise QueryError(f"{path} was made without --documents; leave them out, or give a new key")
    return Pseudonyms(key, Vocabulary("log", words))


def _circles(key: bytes, counts: Mapping[str, int]) -> dict[str, str]:
    """Within each band every word is followed by the next by the key, the last by the first."""
    by_length: dict[tuple[str, int], dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for word, n in counts.items():
        if n > 0:
            by_length[_kind(word), len(word)][n.bit_length()].append(word)
    found: dict[str, str] = {}
    for bands in by_length.values():
        for band in _joined([bands[n] for n in sorted(bands)]):
            ordered = sorted(band, key=lambda word: _digest(key, b"circle", word.encode()))
            found.update(zip(ordered, [*ordered[1:], ordered[0]], strict=True))
    return found


def _joined(bands: list[list[str]]) -> list[list[str]]:
    """Bands of two words at least; none where there are not so many."""
    found: list[list[str]] = []
    held: list[str] = []
    for band in bands:
        held = held + band
        if len(held) > 1:
            found.append(held)
            held = []
    if held and found:
        found[-1] = found[-1] + held
    return found


def _kind(word: str) -> str:
    if word.isascii():
        return "digits" if word.isdigit() else "letters" if word.isalpha() else "both"
    return name_of(word[0], "other").split(" ")[0].split("-")[0]


def _digest(key: bytes, what: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(what + b"\0" + data, key=key, digest_size=16).digest()


def _in_case(found: str, like: str) -> str:
    if like.islower() or not found.isascii() or not like.isascii():
        return found
    if like.isupper() and any(letter.isalpha() for letter in like):
        return found.upper()
    return found.capitalize() if like[:1].isupper() else found


def _alphabets(word: str) -> tuple[str, ...]:
    """For each letter those that may stand in its place; a number keeps its length as one."""
    found = [_alphabet(letter) for letter in word]
    if word.isascii() and word.isdigit() and len(word) > 1:
        found[0] = "0" if word[0] == "0" else "123456789"
    return tuple(found)


@lru_cache(maxsize=4096)
def _alphabet(letter: str) -> str:
    code = ord(letter)
    if code < 128:
        return "0123456789" if letter.isdigit() else "abcdefghijklmnopqrstuvwxyz"
    low, high = next((r for r in _WIDE if r[0] <= code < r[1]), (code & ~0xFF, (code | 0xFF) + 1))
    found = "".join(c for c in map(chr, range(low, high)) if ord(c) > 127 and is_term(c))
    return found if letter in found else found + letter


@dataclass(frozen=True)
class _Domain:
    """All texts over the alphabets of a word's letters, as numbers, permuted by the key."""

    key: bytes
    alphabets: tuple[str, ...]

    @cached_property
    def size(self) -> int:
        """How many texts there are."""
        size = 1
        for alphabet in self.alphabets:
            size *= len(alphabet)
        return size

    @cached_property
    def _told(self) -> bytes:
        return _digest(self.key, b"alphabets", repr(self.alphabets).encode())

    def number(self, word: str) -> int:
        """The number of a text."""
        found = 0
        for letter, alphabet in zip(word, self.alphabets, strict=True):
            at = bisect_left(alphabet, letter)
            if at == len(alphabet) or alphabet[at] != letter:
                at = alphabet.index(letter)
            found = found * len(alphabet) + at
        return found

    def text(self, number: int) -> str:
        """The text of a number."""
        letters = []
        for alphabet in reversed(self.alphabets):
            number, at = divmod(number, len(alphabet))
            letters.append(alphabet[at])
        return "".join(reversed(letters))

    def place(self, number: int) -> int:
        """Where the key puts a number: a Feistel network, until it is in the domain."""
        while True:
            number = self._network(number, range(_ROUNDS), back=False)
            if number < self.size:
                return number

    def back(self, number: int) -> int:
        """The number that the key puts there."""
        while True:
            number = self._network(number, range(_ROUNDS - 1, -1, -1), back=True)
            if number < self.size:
                return number

    def _network(self, number: int, rounds: Iterable[int], *, back: bool) -> int:
        half = max(1, (max(1, self.size - 1).bit_length() + 1) // 2)
        mask = (1 << half) - 1
        left, right = number >> half, number & mask
        for turn in rounds:
            mixed = right if not back else left
            data = self._told + b"%d " % turn + mixed.to_bytes((half + 7) // 8, "little")
            drawn = int.from_bytes(_stream(self.key, data, half), "little") & mask
            if back:
                left, right = right ^ drawn, left
            else:
                left, right = right, left ^ drawn
        return left << half | right


def _stream(key: bytes, data: bytes, bits: int) -> bytes:
    wanted = (bits + 7) // 8
    if wanted <= 64:
        return hashlib.blake2b(b"letters\0" + data, key=key, digest_size=max(1, wanted)).digest()
    found = b"".join(
        hashlib.blake2b(b"letters%d\0" % n + data, key=key, digest_size=64).digest()
        for n in range(-(-wanted // 64))
    )
    return found[:wanted]
