"""[operations.NAME] of a study: what is asked in the engines' own words, and by which methods.

``asked`` is what a crossing of the plan has of it: one method of one operation. The texts of
methods are read here, once, and stand in the plan as they were.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from searchbench import corpora
from searchbench.corpora.corpus import Corpus, Schema
from searchbench.corpora.validate import validate
from searchbench.engines import ENGINES, defaults
from searchbench.engines.dialects import dialect_for, languages_of
from searchbench.engines.engine import Level, Wire
from searchbench.engines.features import refuse
from searchbench.engines.native import rows_lie_at
from searchbench.errors import CorpusError, QueryError, Unsupported
from searchbench.spec import near_file, nearest, show
from searchbench.study.model import Factor, Study, System, section_of
from searchbench.study.plan import Plan, Treatment
from searchbench.study.positions import Source
from searchbench.study.systems import listed
from searchbench.workload.changes import kept_back
from searchbench.workload.operations.keys import METHOD_KEYS, OPERATION_KEYS
from searchbench.workload.operations.model import Operation, sent_for
from searchbench.workload.operations.paths import read_rows_at
from searchbench.workload.operations.portable import query_of
from searchbench.workload.operations.portable import rows_lie_at as rows_of_query
from searchbench.workload.operations.text import (
    LANGUAGES,
    BadText,
    Statement,
    check_names,
    read_method,
)
from searchbench.workload.queries.algebra import Query

_ENDINGS = {".bql": "bql", ".http": "http", ".rest": "http", ".json": "query"}
ID = "id"
Tables = dict[str, dict[str, Any]]


def read_operations(source: Source, systems: Mapping[str, System], base: Path) -> Tables:
    """The keys of each operation that are known and hold what they may, with its methods."""
    found: Tables = {}
    tables = source.table("operations")
    if "operations" in source.tables and not tables:
        source.at_key(("operations",), "[operations] names no operation",
                      "as in [operations.fetch]")  # fmt: skip
    for name in tables:
        at = ("operations", name)
        good = source.checked(at, OPERATION_KEYS, elsewhere=("methods",))
        key = good.get("key", ())
        good["key"] = [key] if isinstance(key, str) else list(key)
        good["methods"] = methods = {}
        for method in source.table(*at, "methods"):
            if (read := _method(source, (*at, "methods", method), systems, base)) is not None:
                methods[method] = read
                _check(source, (*at, "methods", method), read, good["key"], systems, base)
        if not source.table(*at, "methods"):
            hint = f"give [operations.{name}.methods.NAME] with `sql` or `file`"
            source.at_key(at, f"the operation {name} has no method that answers it", hint)
        if not good["key"] and "rows" in good:
            wrong = "`rows` has no meaning without `key`, the columns by which rows are asked for"
            source.at_value((*at, "rows"), wrong)
        found[name] = good
    if tables:
        _go_together(source, systems.values(), found)
    return found


def _method(
    source: Source, at: tuple[str, ...], systems: Mapping[str, System], base: Path
) -> dict[str, Any] | None:
    good = source.checked(at, METHOD_KEYS)
    given = [key for key in (*LANGUAGES, "file") if key in good]
    if len(given) != 1:
        both = f"not in {' and '.join(given)}" if given else 'as in sql = "SELECT ..;"'
        source.at_key(at, "a method has its statements in `sql`, `bql`, `http` or `query`, or in a "
                      "`file`, " + both)  # fmt: skip
        return None
    language = given[0] if given[0] in LANGUAGES else _ENDINGS.get(Path(good["file"]).suffix, "sql")
    only = listed(good.get("systems") or ())
    for i, system in enumerate(only):
        if system not in systems:
            source.at_each((*at, "systems"), i, f"there is no system {show(system)}",
                           nearest(str(system), systems))  # fmt: skip
    rows_at = listed(good.get("rows_at") or ())
    for i, path in enumerate(rows_at):
        try:
            read_rows_at(path)
        except QueryError as error:
            source.at_each((*at, "rows_at"), i, str(error))
            return None
    if rows_at and language == "sql":
        source.at_key(
            (*at, "rows_at"), "`rows_at` is for replies in JSON; the rows of SQL do not need it"
        )
    found: dict[str, Any] = {
        "systems": list(only), "language": language, "rows_at": list(rows_at),
        "text": good.get(given[0], ""), "file": "", "line": 0,
    }  # fmt: skip
    if "file" in good:
        path = base / good["file"]
        try:
            found |= {"text": path.read_text(encoding="utf-8"), "file": str(good["file"])}
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            source.at_value((*at, "file"), f"the statements cannot be read from {path}: {why}",
                            near_file(path, good["file"]))  # fmt: skip
            return None
    else:
        found["line"] = source.line_before((*at, language))
    return found


def _check(
    source: Source,
    at: tuple[str, ...],
    method: Mapping[str, Any],
    columns: list[str],
    systems: Mapping[str, System],
    base: Path,
) -> None:
    """Complain of a text that is no method, and of a system that is not asked in its language."""
    language = method["language"]
    key = "file" if method["file"] else language
    for i, name in enumerate(method["systems"]):
        if name in systems and language not in _spoken(systems[name]):
            system = systems[name]
            what = "a query of the algebra" if language == "query" else f"in {language.upper()}"
            source.at_each((*at, "systems"), i, f"the method is {what}, and "
                           f"{system.engine} {_asked_in(system)}")  # fmt: skip
            return
    try:
        statements = read_method(method["text"], language)
        if _strange(statements, columns) and _wrong_key(source, at[:2], columns, base):
            return
        for system in systems.values():
            if _is_for(method, system):
                check_names(statements, columns, list(system.parameters))
                if system.attach and any(s.when == "once" for s in statements):
                    line = next(s.line for s in statements if s.when == "once")
                    wrong = f"@once is sent when an index is made, and {system.name} runs already"
                    raise BadText(line, f"{wrong}: do it by hand, and leave this out")
                _say_where(statements, method, system)
        if language == "query" and not any(each.names for each in statements):
            rows_of_query(query_of(statements[0].written), method["rows_at"])
    except BadText as error:
        where = f"line {error.line} of {method['file']}" if method["file"] else f"line {error.line}"
        source.at_value((*at, key), f"{where}: {error.sentence}")
    except QueryError as error:
        source.at_value((*at, key), str(error))


def _strange(statements: Iterable[Statement], columns: Iterable[str]) -> set[str]:
    """The names in placeholders that are columns of no key."""
    names = {name for each in statements for name in each.names}
    return {each for each in names - {*columns, "rows"} if not each.startswith("system.")}


def _wrong_key(source: Source, at: tuple[str, ...], columns: list[str], base: Path) -> bool:
    """Is it not a text that is wrong, but a key of the study? Then it is complained of.

    The corpus says so, which is opened only where a text and a key do not fit together.
    """
    corpus = source.table("corpus")
    if not columns or corpora.family_of(corpus) == "debian":
        return False
    if wrong := corpora.complaints(corpus):
        return any(key == "key" for key, _ in wrong)  # it is said where the corpus is looked at
    try:
        return _not_there(source, at, columns, corpora.open_corpus(corpus, base))
    except CorpusError as error:
        if error.at[:1] == ("key",):
            source.at_value(("corpus", *error.at), str(error))
        return error.at[:1] == ("key",)


def _not_there(source: Source, at: tuple[str, ...], columns: list[str], corpus: Corpus) -> bool:
    """Complain of the first column of an operation's key that the corpus has not, if any."""
    known = [ID, *(f.name for f in corpus.schema.fields)]
    table = getattr(corpus.schema, "table", None)
    known += [f.name for f in table.key] if table is not None else []
    for i, column in enumerate(columns):
        if column not in known:
            source.at_each((*at, "key"), i, f"{corpus.name} has no column {show(column)}, which "
                           f"`key` of {'.'.join(at)} names", nearest(column, known))  # fmt: skip
            return True
    return False


def _say_where(statements: Iterable[Statement], method: Mapping[str, Any], system: System) -> None:
    """BadText where nothing says where the rows of a request lie, or where it goes."""
    native = ENGINES[system.engine].native
    if native is None or method["language"] in ("sql", "query"):
        return
    for each in statements:
        text = "".join(part if isinstance(part, str) else "0" for part in each.parts)
        here = native.asks_here(method["language"], text)
        try:
            native.request(method["language"], text)
            if each.when == "timed" and not each.ignored:
                rows_lie_at(native, [each.rows] if each.rows else method["rows_at"], here)
        except Unsupported as reason:
            raise BadText(each.line, str(reason)) from None


def _is_for(method: Mapping[str, Any], system: System) -> bool:
    """Is a method for a system: one that it names, or else any that is asked in its language?"""
    if method["systems"]:
        return system.name in method["systems"]
    return method["language"] in _spoken(system)


def _go_together(source: Source, systems: Iterable[System], found: Tables) -> None:
    for table in ("queries", "requests"):
        if table in source.tables:
            source.at_key((table,), f"[operations] say what is asked; leave [{table}] out")
    if "machines" in source.table("load"):
        source.at_key(("load", "machines"), "operations are sent only from this machine")
    if "jobs" in source.tables:
        source.at_key(("jobs",), "a study has jobs or operations, not both")
    methods = [m for operation in found.values() for m in operation["methods"].values()]
    for system in systems:
        if methods and not any(_is_for(m, system) for m in methods):
            source.at_key(
                ("systems", system.name),
                f"no method is for {system.name}: {system.engine} {_asked_in(system)}",
                "engines that take SQL, BQL or HTTP: "
                + ", ".join(name for name in ENGINES if _of(name))
                + "; `query` asks any engine",
            )


def _asked_in(system: System) -> str:
    languages = _spoken(system)
    return f"is asked in {' or '.join(f'`{each}`' for each in languages)}"


def _spoken(system: System) -> tuple[str, ...]:
    engine = ENGINES[system.engine]
    portable = ("query",) if engine.portable(system.parameters) else ()
    return (*languages_of(engine, _wire(system)), *portable)


def _wire(system: System) -> Wire:
    return ENGINES[system.engine].service(system.parameters, Schema(())).wire


def _of(name: str) -> tuple[str, ...]:
    engine = ENGINES[name]
    return languages_of(engine, engine.service(defaults(engine), Schema(())).wire)


def asked(study: Study, system: System) -> Iterator[tuple[dict[str, Level], Tables]]:
    """Each method of each operation that is for a system: its levels, and its tables."""
    if not study.operations:
        yield {}, {}
        return
    several = len(study.operations) > 1
    once = _once(study, system)
    for name, operation in study.operations.items():
        for method, own in operation["methods"].items():
            if not _is_for(own, system):
                continue
            levels: dict[str, Level] = {"operation": name} if several else {}
            told = {key.name: key.default for key in OPERATION_KEYS}
            given = {k: v for k, v in operation.items() if k != "methods"}
            texts = {k: own[k] for k in ("language", "text", "rows_at", "file", "line")}
            table = {**told, "seed": study.seed, **given, **texts, "once": once}
            named = {"name": name, "method": method}
            yield {**levels, "method": method}, {f"operations.{name}": {**named, **table}}


def _once(study: Study, system: System) -> list[list[str]]:
    """Language and text of the methods that send something when an index is made, each once."""
    texts = (
        (own["language"], own["text"])
        for operation in study.operations.values()
        for own in operation["methods"].values()
        if _is_for(own, system)
    )
    wanted = (t for t in texts if any(s.when == "once" for s in read_method(t[1], t[0])))
    return [list(each) for each in dict.fromkeys(wanted)]


def concerns(factor: Factor, tables: Tables) -> bool:
    """Whether a factor is of this operation, or of none."""
    of = {section_of(path) for path in factor.paths if path.startswith("operations.")}
    return not of or bool(of & set(tables))


def settle(tables: Tables) -> None:
    """Call the table of the one operation of a crossing "operation"."""
    for name in [name for name in tables if name.startswith("operations.")]:
        tables["operation"] = tables.pop(name)


def look(study: Study, plan: Plan) -> None:
    """StudyError where a corpus has not the columns or not the rows that are asked for."""
    source = Source(study.text, study.path, study.moved)
    seen = set[str]()
    queries_fit(source, study, plan)
    for treatment in plan.treatments:
        operation = treatment.operation
        writer = next((t for t in treatment.roles.values() if t["does"] == "write"), {})
        kept = writer.get("documents"), writer.get("share")
        key = repr((treatment.corpus, operation["key"], operation["rows"], kept))
        if key in seen or not operation["key"]:
            continue
        seen.add(key)
        corpus = {k: v for k, v in treatment.corpus.items() if v is not None}
        if corpora.family_of(corpus) == "debian":
            continue
        try:
            _fits(source, study, treatment, corpora.open_corpus(corpus, study.base), writer)
        except CorpusError:
            continue  # it is said where the corpus is looked at
    source.finish()


def _fits(
    source: Source, study: Study, treatment: Treatment, corpus: Corpus, writer: Mapping[str, Any]
) -> None:
    operation = treatment.operation
    name, wanted = operation["name"], operation["rows"]
    if _not_there(source, ("operations", name), operation["key"], corpus):
        return
    held, but = getattr(corpus, "count", None), ""
    if not isinstance(held, int):
        held = sum(1 for _ in itertools.islice(corpus.documents(), wanted))
    elif kept := min(held, kept_back(writer, held)):
        held, but = held - kept, f" that are not kept back ({kept:,} are)"
    if held < wanted:
        path = f"operations.{name}.rows"
        at: tuple[str, ...] = ("operations", name, "rows")
        for factor in study.factors:
            if path in factor.paths:
                at = ("factors", path)
        source.at_value(at, f"{wanted:,} different rows are asked for, and {corpus.name} has "
                        f"{held:,}{but}: ask for fewer, or use a larger corpus")  # fmt: skip


def queries_fit(source: Source, study: Study, plan: Plan) -> None:
    """Complain of queries that do not fit the corpus or that a system cannot be asked."""
    seen = set[str]()
    for treatment in plan.treatments:
        own = treatment.operation
        if own.get("language") != "query":
            continue
        key = repr((own["text"], own["key"], treatment.corpus, treatment.engine,
                    sorted(treatment.parameters.items())))  # fmt: skip
        corpus = {k: v for k, v in treatment.corpus.items() if v is not None}
        if key in seen or corpora.family_of(corpus) == "debian":
            continue
        seen.add(key)
        method = ("operations", own["name"], "methods", own["method"])
        at = (*method, "file" if own["file"] else "query")
        try:
            opened = corpora.open_corpus(corpus, study.base)
            if (query := _first_asked(own, opened, treatment)) is None:
                continue
            rows_of_query(query, own["rows_at"])
            validate(query, opened.schema)
            engine = ENGINES[treatment.engine]
            refuse(engine.can, query)
            engine.compile(query, opened.schema, treatment.parameters)
        except CorpusError:
            continue  # it is said where the corpus is looked at
        except Unsupported as reason:
            hint = "ask for less, or name the systems that can under `systems`"
            source.at_value(at, f"{treatment.system} cannot be asked this: {reason}", hint)
        except QueryError as error:
            source.at_value(at, str(error))


def _first_asked(own: Mapping[str, Any], corpus: Corpus, treatment: Treatment) -> Query | None:
    """The query with the values of the corpus's first document; None where it has not them."""
    first = next(iter(corpus.documents()), None)
    names = list(own["key"])
    if first is None:
        return None
    values = [first.values.get(n, first.id if n == ID else None) for n in names]
    if None in values:
        return None
    draw = tuple([value] for value in values)
    asked = Operation(own["name"], tuple(names), (draw,) if names else ((),))
    literal = dialect_for(ENGINES[treatment.engine], None, "query").literal
    (sent,) = sent_for(statements_of(own), asked, 0, treatment.parameters, literal, str)
    return query_of(sent.text)


def statements_of(table: Mapping[str, Any]) -> tuple[Statement, ...]:
    """The statements of the method that a plan's table has."""
    return read_method(table["text"], table.get("language", "sql"))
