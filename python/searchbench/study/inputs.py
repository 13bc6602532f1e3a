"""What the files that a study names say at a first look: headers, first rows, first lines.

It takes seconds where a measurement, which reads them whole, takes minutes; what is complained of
here would end the run.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from typing import Any

import numpy as np

from searchbench import corpora
from searchbench.corpora.corpus import Schema
from searchbench.corpora.doubts import Doubts
from searchbench.corpora.files import FileCorpus, insist_on_fields
from searchbench.corpora.rows import usual
from searchbench.corpora.table import TableFiles
from searchbench.corpora.triples import TripleFiles
from searchbench.corpora.validate import validate
from searchbench.errors import CorpusError, QueryError
from searchbench.spec import nearest
from searchbench.study import dates, operations, roles
from searchbench.study.model import Study
from searchbench.study.plan import Plan
from searchbench.study.positions import Path, Source
from searchbench.workload import reading
from searchbench.workload.load_table import classes_promised
from searchbench.workload.queries import registry
from searchbench.workload.queries.algebra import Query
from searchbench.workload.queries.sets import QuerySet
from searchbench.workload.verbatim.files import read_requests
from searchbench.workload.verbatim.model import RequestSet

LOOKED_AT = 1000
"""Rows of a corpus, lines of queries, lines of requests."""


_NAMING = ("search_fields", "filters", "sort", "facets", "group_by", "fields", "snippets")


_NAMED = 6  # classes


class _PromiseError(QueryError):
    """A promise is for a class that nothing has."""


class _KeyError(QueryError):
    """A key of [queries] names a field that will not do."""

    def __init__(self, key: str, reason: QueryError) -> None:
        self.key = key
        super().__init__(str(reason))


def look(study: Study, plan: Plan, *, alone: bool = False) -> list[str]:
    """Open what every treatment names; StudyError with each mistake and its position.

    The result: sentences about lines that will be left out, about columns whose guessed type is to
    be doubted, and about numbers that statements compare with a date in quotes. ``alone``: also
    what a run says by itself when it reads the files whole: the fields that were guessed, and
    queries with operators.
    """
    source, told = Source(study.text, study.path, study.moved), list[str]()
    for table in _different(
        dict(t.settings, load={}, system={}, place={}, jobs={}, operation={}, roles={})
        for t in plan.treatments
    ):
        asked = "requests" if "requests" in table else "queries"
        given = {name: _given(part) for name, part in table.items()}
        try:
            if asked == "requests":
                told += _requests(study, given["requests"], alone)
            elif "queries" not in given:
                told += _corpus_alone(study, given["corpus"], alone)
            else:
                told += _corpus_and_queries(study, given["corpus"], given["queries"], alone)
        except CorpusError as error:
            source.at_value(_place(study, "corpus", error.at or ("files",)), str(error))
        except _PromiseError as error:
            source.at_value(("load", "slo"), str(error))
        except QueryError as error:
            key = "files" if "files" in given[asked] else "file"
            key = error.key if isinstance(error, _KeyError) else key
            source.at_value(_place(study, asked, (key,)), str(error))
    told += _of_roles(study, plan, source, alone)
    source.finish()
    if study.operations:
        operations.look(study, plan)
        told += dates.doubts(study, plan)
    if study.roles:
        roles.look(study, plan)
    return list(dict.fromkeys(told))


def _classes(study: Study, found: QuerySet | RequestSet, alone: bool) -> Iterator[str]:
    """Complain of promises for classes that nothing has; which classes there are, if ``alone``.

    Where not all lines were read, a class may come further down.
    """
    names = [name for name in dict.fromkeys(found.classes) if name]
    cut = len(found.log) + found.bad_count >= LOOKED_AT
    lacking = [c for c in classes_promised(study.promises) if c not in names]
    if lacking and not cut:
        hint = nearest(lacking[0], names) if names else "there are none"
        raise _PromiseError(
            f'a promise is for the class "{lacking[0]}", and nothing in {found.name} is of it; '
            f"{hint}"
        )
    if alone and names:
        shares = np.bincount(found.log, minlength=len(found.classes)) / len(found.log)
        by_class: dict[str, float] = {}
        for name, part in zip(found.classes, shares.tolist(), strict=True):
            by_class[name or "without a class"] = by_class.get(name or "without a class", 0) + part
        most = sorted(by_class.items(), key=lambda item: -item[1])
        shown = ", ".join(f"{name} {100 * part:.0f} %" for name, part in most[:_NAMED])
        more = f" and {len(most) - _NAMED} more" if len(most) > _NAMED else ""
        yield f"{found.name}: classes {'at the beginning ' if cut else ''}are {shown}{more}"


def _different(tables: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each once; corpora that differ in their size alone are the same files."""
    seen = set[str]()
    for table in tables:
        if "corpus" in table:
            table["corpus"] = corpora.unscaled(table["corpus"])
        key = json.dumps(table, sort_keys=True, default=str)
        if key not in seen:
            seen.add(key)
            yield table


def _given(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}


def _place(study: Study, table: str, keys: tuple[str, ...]) -> Path:
    """Where a key has its value: in its table, or where factors have their levels."""
    if keys[0] in getattr(study, table):
        return (table, *keys)
    varied = any(f"{table}.{keys[0]}" in factor.paths for factor in study.factors)
    return ("factors", f"{table}.{keys[0]}") if varied else (table,)


def _corpus_alone(study: Study, corpus: dict[str, Any], alone: bool) -> Iterator[str]:
    yield from _corpus(study, corpus, alone)


def _corpus_and_queries(
    study: Study, corpus: dict[str, Any], queries: dict[str, Any], alone: bool
) -> Iterator[str]:
    schema, doubted = yield from _corpus(study, corpus, alone)
    found = _fitting(study, queries, schema, doubted)
    yield from _left_out(found, "query")
    if registry.files_of(queries, study.base):  # else the queries are sampled later
        yield from _classes(study, found, alone)
    if alone:
        cut = len(found.log) + found.bad_count >= LOOKED_AT
        yield from operators_said(found, "the first " if cut else "")


def _fitting(
    study: Study, queries: dict[str, Any], schema: Schema, doubted: Doubts | None
) -> QuerySet:
    """The first queries of a set; QueryError where one does not fit the fields of the corpus."""
    for key in filter(queries.__contains__, _NAMING):
        own = registry.first_queries({key: queries[key]}, study.base, 1)
        try:
            _fit(own.queries[0], schema, doubted)
        except QueryError as error:
            raise _KeyError(key, error) from None
    found = registry.first_queries(queries, study.base, LOOKED_AT)
    for number, query in enumerate(found.queries, 1):
        try:
            _fit(query, schema, doubted)
        except QueryError as error:
            raise QueryError(f"{found.name}, query {number}: {error}") from None
    return found


def _of_roles(study: Study, plan: Plan, source: Source, alone: bool) -> Iterator[str]:
    """The same of what each role that reads asks; mistakes go to ``source``."""
    seen = set[str]()
    for treatment in plan.treatments:
        for name, role in treatment.roles.items():
            corpus = _given(corpora.unscaled(treatment.corpus))
            key = json.dumps([name, role.get("queries"), corpus], sort_keys=True, default=str)
            if role["does"] != "read" or key in seen or source.complaints:
                continue
            seen.add(key)
            at = ("roles", name, "queries")
            asked = _given(role["queries"])
            try:
                found = yield from _of_role(study, corpus, asked, alone)
            except QueryError as error:
                of = error.key if isinstance(error, _KeyError) else "file"
                of = "files" if of == "file" and "files" in asked else of
                path = f"roles.{name}.queries.{of}"
                varied = any(path in factor.paths for factor in study.factors)
                source.at_value(("factors", path) if varied else (*at, of), str(error))
                continue
            if reading.replays_log(role) and found.times_s is None:
                source.at_key(at, f"{found.name} has no times, and a role without another pace "
                              "replays them; give each query its `t`, or the role `clients`, "
                              "`rate_per_s`, `every_s`, `stages` or `times`")  # fmt: skip


def _of_role(
    study: Study, corpus: dict[str, Any], queries: dict[str, Any], alone: bool
) -> Generator[str, None, QuerySet]:
    schema, doubted = yield from _corpus(study, corpus, alone)
    found = _fitting(study, queries, schema, doubted)
    yield from _left_out(found, "query")
    if alone:
        cut = len(found.log) + found.bad_count >= LOOKED_AT
        yield from operators_said(found, "the first " if cut else "")
    return found


def operators_said(found: QuerySet, which: str = "") -> Iterator[str]:
    """That queries have operators, which are taken as words; nothing where none has.

    ``which``: "the first " where not all lines were read.
    """
    if found.operated is None:
        return
    n, of = found.operated.lines, found.operated.of
    have = "has" if n == 1 else "have"
    yield (
        f"{found.name}: {n:,} of {which}{of:,} {'query' if of == 1 else 'queries'} {have} "
        "operators (quotes, minus, OR, parentheses), which are taken as plain words, as in "
        f"{found.operated.first}; to keep what they mean, write such queries as JSON lines "
        "(FORMATS.md)"
    )


def _fit(query: Query, schema: Schema, doubted: Doubts | None) -> None:
    """Nothing if a query fits; else QueryError, with what a field's type is to be doubted for."""
    try:
        validate(query, schema)
    except QueryError as error:
        sentences = doubted.sentences.items() if doubted else ()
        why = [sentence for field, sentence in sentences if f"`{field}`" in str(error)]
        said = str(error) if not why or str(error).endswith("?") else f"{error}."
        raise QueryError(" ".join([said, *why])) from None


def guessed(corpus: FileCorpus) -> str:
    """Which fields were guessed, and what of the columns is no field; empty where none was."""
    if corpus.inference is None or not corpus.schema.fields:
        return ""
    fields = ", ".join(f"{field.name} {field.type}" for field in corpus.schema.fields)
    key = f"the id is the column {corpus.id_column}" if corpus.id_column else "rows are numbered"
    known = {*corpus.columns.values(), corpus.id_column}
    out = [f"{c} is {note}" for c, note in corpus.inference.notes.items() if c not in known]
    return (
        f"{corpus.name}: fields as guessed from the first rows: {fields}; "
        + "; ".join([key, *out])
        + ". Declare them in [corpus] to be sure (fields.NAME = TYPE)"
    )


def _corpus(
    study: Study, table: dict[str, Any], alone: bool
) -> Generator[str, None, tuple[Schema, Doubts | None]]:
    """Its schema, as its header and first rows have it, and what is to be doubted in it."""
    if corpora.family_of(table) == "debian":
        from searchbench.corpora.debian import SCHEMA

        return SCHEMA, None
    corpus = corpora.open_corpus(table, study.base)
    schema = corpus.schema
    if isinstance(corpus, TableFiles):
        corpus = corpus.below
    if not isinstance(corpus, FileCorpus | TripleFiles):
        return schema, None
    if not (study.operations and all(system.attach for system in study.systems)):
        insist_on_fields(corpus)
    intake = corpus.first_rows(LOOKED_AT)
    if intake.refused:
        first = f"{intake.refused} of the first {intake.rows:,} rows do not fit: {intake.first[0]}"
        if isinstance(corpus, FileCorpus) and corpus.bad_rows == "refuse":
            raise CorpusError(f'{first}; correct them, or leave them out with bad_rows = "skip"')
        yield f"{corpus.name}: {first}; they will be left out"
    doubts = None
    if isinstance(corpus, FileCorpus):
        doubts = corpus.doubts
        if alone and (fields := guessed(corpus)):
            yield fields
        if not table.get("delimiter") and corpus.dialect.delimiter not in (
            "",
            usual(corpus.dialect),
        ):
            yield f"{corpus.name}: cells are {corpus.separated}, as seen from the first rows"
    if doubts:
        yield str(doubts)
    return schema, doubts


def _requests(study: Study, table: dict[str, Any], alone: bool) -> Iterator[str]:
    if "file" not in table:
        return
    path, form = study.base / table["file"], table.get("form", "auto")
    how: dict[str, Any] = {"method": table.get("method"), "classes": table.get("classes")}
    try:
        found = read_requests(path, form, lines=LOOKED_AT, **how)
    except QueryError:  # further down there may be what is missing here
        found = read_requests(path, form, **how)
    yield from _left_out(found, "request")
    yield from _classes(study, found, alone)


def _left_out(found: QuerySet | RequestSet, what: str) -> Iterator[str]:
    if found.bad_count:
        seen = len(found.log) + found.bad_count
        are = "is" if found.bad_count == 1 else "are"
        yield (
            f"{found.name}: {found.bad_count:,} of the first {seen:,} lines {are} no {what} and "
            f"will be left out: {found.bad[0]}"
        )
