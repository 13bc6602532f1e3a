"""The ``[queries]`` table of a study: its keys, what is wrong with it, and the set it means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from searchbench.errors import QueryError
from searchbench.spec import SpecKey, defaults
from searchbench.workload.queries import classes
from searchbench.workload.queries.algebra import Mode
from searchbench.workload.queries.forms import Reader
from searchbench.workload.queries.orders import Repetition, by_first_appearance, repeat
from searchbench.workload.queries.sample import Distribution, Documents, Lengths, sample
from searchbench.workload.queries.sets import (
    Form,
    QuerySet,
    Template,
    check_readable,
    from_files,
)

_MODES = tuple(str(mode) for mode in Mode)
# What a template says of each query besides lists of texts, as the JSON form has it.
_OF_REST = ("filters", "sort", "facets", "group_by", "offset", "limit")

_TEMPLATE_KEYS: tuple[SpecKey, ...] = (
    SpecKey("match", "text", "all", "how the words of a line are to be found", _MODES),
    SpecKey(
        "distance",
        "integer",
        1,
        'with match = "fuzzy": at how many edits a word still matches',
        minimum=1,
        maximum=2,
    ),
    SpecKey("search_fields", "texts", None, "text fields to search in; default: all of them"),
    SpecKey("filters", "list", None, "filters of every query, as in FORMATS.md"),
    SpecKey("sort", "list", None, 'sort keys of every query: "price", "-price" for descending'),
    SpecKey("facets", "list", None, "facets of every query: names of fields"),
    SpecKey("group_by", "text", None, "field to count the matching documents by"),
    SpecKey("offset", "integer", 0, "how many of the first hits to skip", minimum=0),
    SpecKey("limit", "integer", 10, "how many hits to return", minimum=0, maximum=100_000),
    SpecKey("fields", "texts", None, "stored fields to return with each hit"),
    SpecKey(
        "snippets",
        "texts",
        None,
        "stored text fields; each hit shows their pieces around the matching words",
    ),
)
_FILE_KEYS: tuple[SpecKey, ...] = (
    SpecKey(
        "file",
        "path",
        None,
        "a file of queries, one a line; also .jsonl, Sphinx's plain query log, .gz, .zst",
    ),
    SpecKey(
        "files",
        "named paths",
        None,
        "several files, read one after another as one log; as a table, the files of each class: "
        '{ autocomplete = "prefixes.txt", search = "queries.txt" }',
    ),
    SpecKey(
        "format",
        "text",
        None,
        "form of the file; default: recognised by its name and content",
        get_args(Form),
    ),
    SpecKey(
        "text_key",
        "text",
        None,
        "for JSON lines in another form: the key that holds the words; only this key, the class "
        "and `t` are read",
    ),
    SpecKey("class_key", "text", "class", "for JSON lines: the key that holds a line's class"),
    SpecKey(
        "bad_lines",
        "text",
        "skip",
        "what to do with lines that are not queries",
        ("skip", "refuse"),
    ),
    SpecKey("lines", "integer", None, "read only this many lines", minimum=1),
)
_SAMPLE_KEYS: tuple[SpecKey, ...] = (
    SpecKey(
        "distinct",
        "integer",
        1000,
        "how many different queries to sample from the corpus",
        minimum=1,
        maximum=10_000_000,
    ),
    SpecKey(
        "words", "number", 3.1, "mean number of words in a sampled query", minimum=1, maximum=50
    ),
    SpecKey(
        "lengths",
        "text",
        "geometric",
        "how the number of words is distributed",
        get_args(Distribution),
    ),
    SpecKey(
        "length_weights",
        "numbers",
        None,
        "relative frequencies of 1, 2, 3, ... words, instead of `words`",
    ),
    SpecKey(
        "max_words",
        "integer",
        12,
        "most words that a sampled query may have",
        minimum=1,
        maximum=50,
    ),
    SpecKey(
        "draw",
        "text",
        None,
        "where the words of a sampled query come from: scattered over one document, or a run of "
        "its text (default: run for phrases, else scattered)",
        ("scattered", "run"),
    ),
)
_LOG_KEYS: tuple[SpecKey, ...] = (
    SpecKey("name", "text", None, "a short name, for the report's tables"),
    SpecKey(
        "classes",
        "text",
        None,
        "class the queries by their shape, in place of any other class: by the number of words, "
        "how they match, the fields of their filters, their order, or all of these but the words",
        classes.BY,
    ),
    SpecKey(
        "logged",
        "integer",
        None,
        "how many queries the log has that is made by repeating them",
        minimum=1,
        maximum=100_000_000,
    ),
    SpecKey(
        "repetition",
        "text",
        None,
        "how often each query is asked (default: zipf if "
        "`logged` is given, else each once, or a file's own log)",
        get_args(Repetition),
    ),
    SpecKey(
        "exponent", "number", 1.0, 'with repetition = "zipf": its exponent', above=0, maximum=10
    ),
    SpecKey(
        "seed", "integer", None, "seed of sampling and repetition; default: the study's", minimum=0
    ),
)
SPEC_KEYS: tuple[SpecKey, ...] = _FILE_KEYS + _TEMPLATE_KEYS + _SAMPLE_KEYS + _LOG_KEYS


def problems(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(key, sentence) for everything wrong with a table whose single values fit their keys.

    ``spec`` has only the keys that were given.
    """
    from_file = "file" in spec or "files" in spec
    if "file" in spec and "files" in spec:
        yield "files", "give `file` or `files`, not both"
    other, what = (
        (_SAMPLE_KEYS, "queries sampled from the corpus")
        if from_file
        else (_FILE_KEYS, "queries read from a file, and no `file` is given")
    )
    for key in other:
        if key.name in spec:
            yield key.name, f"`{key.name}` is for {what}"
    yield from _log_problems(spec, from_file)
    if isinstance(files := spec.get("files"), Mapping):
        yield from (
            ("files", f'"{name}" names a class in `files`, and {why}')
            for name in files
            if (why := classes.wrong(name))
        )
    if not from_file:
        if "words" in spec and "length_weights" in spec:
            yield "length_weights", "give `words` or `length_weights`, not both"
        else:
            try:
                _lengths({**defaults(SPEC_KEYS), **spec})
            except QueryError as error:
                yield "length_weights" if "length_weights" in spec else "words", str(error)
    reader = Reader()
    for name in ("filters", "sort", "facets"):
        getattr(reader, name)(spec.get(name, []))
        yield from ((name, reason) for reason in reader.reasons)
        reader.reasons.clear()


def _log_problems(spec: Mapping[str, Any], from_file: bool) -> Iterator[tuple[str, str]]:
    logged, repetition = spec.get("logged"), spec.get("repetition")
    distinct = spec.get("distinct", defaults(SPEC_KEYS)["distinct"])
    if logged is not None and not from_file and logged < distinct:
        yield "logged", f"a log of {logged} cannot hold {distinct} distinct queries"
    if repetition in ("uniform", "zipf") and logged is None:
        yield "repetition", f'`repetition = "{repetition}"` needs `logged`, the length of the log'
    if "exponent" in spec and repetition != "zipf" and (repetition or logged is None):
        yield "exponent", '`exponent` is for `repetition = "zipf"`'


def features(queries: Mapping[str, Any]) -> Iterator[str]:
    """What every query of the set needs, by the names of ``Capabilities.cannot``.

    Lines of a JSON file may say otherwise; those are outcomes of single queries.
    """
    if queries.get("match") in ("phrase", "prefix", "fuzzy"):
        yield str(queries["match"])
    if any(key != "_score" for key in queries.get("sort") or ()):
        yield "sort"
    for key in ("filters", "facets", "group_by", "fields"):
        if queries.get(key):
            yield key


def _template_of(spec: Mapping[str, Any]) -> Template:
    """The set-wide options of a table; QueryError with every reason."""
    reader = Reader()
    template = Template(
        reader.mode(spec.get("match") or "all"),
        spec.get("distance") or 1,
        _texts(spec.get("search_fields")),
        reader.query(
            {
                "fields": _texts(spec.get("fields")),
                "snippets": _texts(spec.get("snippets")),
                **{key: spec[key] for key in _OF_REST if spec.get(key) is not None},
            }
        ),
    )
    reader.finish()
    return template


def files_of(spec: Mapping[str, Any], base: Path) -> list[Path]:
    """The query files of a table; none if the queries are sampled."""
    return [base / name for name, _ in _named(spec)]


def _named(spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The query files of a table with the class of each, "" where that is not said."""
    several = spec.get("files")
    if isinstance(several, Mapping):
        found = [(name, of) for of, names in several.items() for name in _texts(names)]
    else:
        found = [(name, "") for name in _texts(several)]
    return [*((name, "") for name in _texts(spec.get("file"))), *found]


def open_queries(
    spec: Mapping[str, Any],
    base: Path,
    documents: Documents | None = None,
    text_fields: Sequence[str] = (),
) -> QuerySet:
    """The query set that a ``[queries]`` table means.

    ``base`` is the directory that its file names are relative to. ``documents`` (values of one
    document after another, by field name, the same each time) and ``text_fields`` are needed
    where queries are sampled. Absent keys have their defaults. QueryError.
    """
    full = {**defaults(SPEC_KEYS), **spec}
    seed = full["seed"] or 0
    template = _template_of(full)
    if files := files_of(full, base):
        found = _read(files, full, full["lines"])
        if full["repetition"] is None and full["logged"] is None:
            return _classed(found, full["classes"])
    else:
        found = _sampled(full, template, documents, text_fields, seed)
    repetition: Repetition = full["repetition"] or ("zipf" if full["logged"] else "each")
    log = repeat(
        found.distinct, full["logged"] or found.distinct, repetition, full["exponent"], seed
    )
    old, log = by_first_appearance(log)
    own = tuple(found.classes[i] for i in old) if found.classes else ()
    queries = tuple(found.queries[i] for i in old)
    found = replace(found, queries=queries, log=log, times_s=None, classes=own)
    return _classed(found, full["classes"])


def _classed(found: QuerySet, by: str | None) -> QuerySet:
    """The same, with classes by the shape of the queries if that is wanted."""
    if by is None:
        return found
    return replace(found, classes=tuple(classes.of_query(q, by) for q in found.queries))


def first_queries(spec: Mapping[str, Any], base: Path, most: int) -> QuerySet:
    """What is seen of a set without its documents, in the first ``most`` lines of its files.

    Of queries that are sampled, one that stands for all. QueryError where ``open_queries`` would
    raise it, as far as that is seen: where a file cannot be read, or nothing in it is a query.
    """
    full = {**defaults(SPEC_KEYS), **spec}
    files = files_of(full, base)
    if not files:
        one = _template_of(full).query(("word",))
        found = QuerySet(full["name"] or "sampled", (one,), np.zeros(1, np.uint32))
        # Of how many words the others will be is not known.
        return found if full["classes"] == "words" else _classed(found, full["classes"])
    for path in files:
        check_readable(path)
    try:
        found = _read(files, full, min(most, full["lines"] or most))
    except QueryError:  # further down there may be what is missing here
        found = _read(files, full, full["lines"])
    return _classed(found, full["classes"])


def _read(files: Sequence[Path], full: Mapping[str, Any], lines: int | None) -> QuerySet:
    return from_files(
        files,
        _template_of(full),
        name=full["name"] or "",
        form=full["format"],
        bad_lines=full["bad_lines"],
        lines=lines,
        text_key=full["text_key"],
        class_key=full["class_key"],
        of_files=[of for _, of in _named(full)],
    )


def _sampled(
    spec: Mapping[str, Any],
    template: Template,
    documents: Documents | None,
    text_fields: Sequence[str],
    seed: int,
) -> QuerySet:
    """The distinct queries, each once."""
    if documents is None:
        raise QueryError("no query file is given, and there is no corpus to sample queries from")
    searched = template.search_fields or tuple(text_fields)
    unknown = [name for name in searched if name not in text_fields]
    if unknown or not searched:
        missing = f"`{unknown[0]}` is not one" if unknown else "there is none"
        raise QueryError(f"queries are sampled from text fields, and {missing}")
    draw = spec["draw"] or ("run" if template.mode is Mode.PHRASE else "scattered")
    drawn = sample(
        documents,
        searched,
        distinct=spec["distinct"],
        mode=template.mode,
        lengths=_lengths(spec),
        contiguous=draw == "run",
        distance=template.distance,
        seed=seed,
    )
    queries = tuple(template.query(words) for words in drawn)
    once = np.arange(len(queries), dtype=np.uint32)
    return QuerySet(spec["name"] or "sampled", queries, once)


def _lengths(spec: Mapping[str, Any]) -> Lengths:
    weights = spec["length_weights"]
    if weights:
        return Lengths(tuple(float(w) for w in weights))
    return Lengths.of_mean(spec["words"], spec["lengths"], spec["max_words"])


def _texts(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)  # type: ignore[arg-type]
