"""What is to be said of statements that compare a column of numbers with a date in quotes.

Only of systems that are started: their databases are filled from the corpus, with numbers for
dates. A database that runs already may have columns of dates.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

from searchbench import corpora
from searchbench.corpora.corpus import Corpus, FieldType
from searchbench.errors import CorpusError
from searchbench.study.model import Study
from searchbench.study.plan import Plan, Treatment
from searchbench.workload.operations.dates import Compared, dates_compared

_NUMBERS = (FieldType.DATE, FieldType.INTEGER, FieldType.FLOAT)


def doubts(study: Study, plan: Plan) -> Iterator[str]:
    """A sentence for each such comparison, with its place and the remedy."""
    opened: dict[str, Corpus | None] = {}
    engines: dict[str, dict[str, Treatment]] = {}
    for treatment in plan.treatments:
        own = treatment.operation
        if own.get("language") == "sql" and not treatment.attach:
            key = repr((own["text"], own["file"], own["line"], treatment.corpus))
            engines.setdefault(key, {}).setdefault(treatment.engine, treatment)
    for by_engine in engines.values():
        treatment = next(iter(by_engine.values()))
        corpus = _corpus(opened, treatment, study)
        for each in _compared(treatment, corpus) if corpus is not None else ():
            yield _said(study, treatment, [*by_engine], *each)


def _corpus(opened: dict[str, Corpus | None], treatment: Treatment, study: Study) -> Corpus | None:
    table = {k: v for k, v in corpora.unscaled(treatment.corpus).items() if v is not None}
    key = repr(table)
    if key not in opened:
        opened[key] = None
        if corpora.family_of(table) != "debian":
            with suppress(CorpusError):  # which is said where the corpus is looked at
                opened[key] = corpora.open_corpus(table, study.base)
    return opened[key]


def _compared(treatment: Treatment, corpus: Corpus) -> Iterator[tuple[Compared, FieldType]]:
    table = getattr(corpus.schema, "table", None)
    fields = [*corpus.schema.fields, *(table.key if table is not None else ())]
    kinds = {f.name.lower(): f.type for f in fields if f.type in _NUMBERS}
    for each in dates_compared(treatment.operation["text"].replace("\r\n", "\n"), kinds):
        yield each, kinds[each.column]


def _said(
    study: Study,
    treatment: Treatment,
    engines: list[str],
    found: Compared,
    kind: FieldType,
) -> str:
    own = treatment.operation
    line = found.line if own["file"] else own["line"] + found.line
    known = own["file"] or own["line"]
    where = f"{own['file'] or study.path}:{line}" if known else f"method {own['method']}"
    does = (
        f"MariaDB compares it with the number {found.date[:4]}, without a message"
        if "mariadb" in engines
        else "PostgreSQL cannot compare it with text"
    )
    if kind is not FieldType.DATE:
        is_one = "an integer" if kind is FieldType.INTEGER else "a number"
        return (f"{where}: `{found.column}` is {is_one}, but '{found.date}' is a date: {does}. "
                "Compare it with a number")  # fmt: skip
    ms = _milliseconds(found.date)
    instead = f"{ms} in place of '{found.date}'" if ms is not None else "a number"
    under = "columns" if corpora.family_of(treatment.corpus) == "table" else "fields"
    keep = f", or declare the column as a keyword under `{under}` of [corpus], which keeps its text"
    return (f"{where}: `{found.column}` is a date. In a database that is filled from the corpus, "
            f"that is a number (milliseconds since 1970, UTC): {does}. Write {instead}"
            + (keep if treatment.corpus.get("files") else ""))  # fmt: skip


def _milliseconds(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None  # the 30th of February
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)
