"""A study file → a Study, or all of its mistakes."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from searchbench import corpora
from searchbench.engines import ENGINES, defaults
from searchbench.engines.engine import Level
from searchbench.errors import Complaint, StudyError
from searchbench.spec import SpecKey, nearest, show
from searchbench.study.exclusions import read_exclusions
from searchbench.study.factors import key_of, read_factors
from searchbench.study.model import Agreement, Control, Factor, Study, System, VerdictRule
from searchbench.study.positions import Source
from searchbench.workload import loads
from searchbench.workload.queries import registry

TOP_KEYS: tuple[SpecKey, ...] = (
    SpecKey("question", "text", None, "what you want to know; the report answers it"),
    SpecKey("analysis", "text", "", "what to look for, and the limits; reaches the report"),
    SpecKey("seed", "integer", 1, "of everything that is drawn or shuffled", minimum=0,
            maximum=2**53),
    SpecKey("replicates", "integer", 3, "blocks, each with every treatment once", minimum=1,
            maximum=1000),
    SpecKey("exclude", "list", (), "crossings that are not to be run, with the reason"),
)  # fmt: skip
CONTROL_KEYS: tuple[SpecKey, ...] = (
    SpecKey("aa", "boolean", True, "measure one treatment twice a block, to know the noise"),
    SpecKey("treatment", "text", None, "which one, by its id in the plan; default: the first"),
)
INGEST_KEYS: tuple[SpecKey, ...] = (
    SpecKey("index", "text", "per-block", "how long an index is used before it is built anew",
            ("per-block", "per-trial", "once")),
)  # fmt: skip
AGREEMENT_KEYS: tuple[SpecKey, ...] = (
    SpecKey("require", "text", "totals", "what must be the same before speeds are compared",
            ("totals", "set", "order", "none")),
    SpecKey("k", "integer", 10, "how many hits are compared", minimum=1, maximum=10_000),
)  # fmt: skip
SYSTEM_KEYS: tuple[SpecKey, ...] = (
    SpecKey("engine", "text", None, "the engine's name; NAME if it is not said"),
    SpecKey("attach", "text", None, "HOST:PORT of one that already runs, which is then neither "
            "started nor stopped; documents are put in if it has none"),
)  # fmt: skip
METRICS = (
    "throughput",
    *(f"{time}_{q}" for time in ("service", "response")
      for q in ("p50", "p90", "p95", "p99", "p999", "mean", "max")),
)  # fmt: skip
VERDICT_KEYS: tuple[SpecKey, ...] = (
    SpecKey("metric", "text", None, "what the verdict goes by; default: throughput of closed "
            "loops, else response_p99", METRICS),
)  # fmt: skip
_TABLES = (
    "corpus", "queries", "systems", "load", "factors", "held", "control", "ingest", "agreement",
    "verdict",
)  # fmt: skip
_SYSTEM_NAME = re.compile(r"[A-Za-z0-9_-]+")


def read_study(path: Path | str) -> Study:
    """The study of a file; StudyError with every mistake in it."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        wrong = Complaint(str(path), line, 1, "a study file is UTF-8, and this line is not")
        raise StudyError([wrong]) from error
    except OSError as error:
        raise StudyError(
            [Complaint(str(path), 0, 0, f"the study cannot be read: {error.strerror}")]
        ) from error
    return parse_study(text, str(path), path.resolve().parent)


def parse_study(text: str, file: str, base: Path) -> Study:
    """The study of a text. ``file`` names it in complaints; its file names are below ``base``."""
    source = Source(text, file)
    top = _top(source)
    systems, named = _systems(source)
    given = {
        "queries": source.checked(("queries",), registry.SPEC_KEYS),
        "load": source.checked(("load",), loads.SPEC_KEYS),
        "corpus": source.table("corpus"),
    }
    factors = read_factors(source, systems, named)
    _corpus(source, given["corpus"], factors, base)
    _queries(source, given["queries"], factors, base)
    _load(source, given["load"], factors, base)
    exclude = read_exclusions(source, factors, named)
    control = source.checked(("control",), CONTROL_KEYS)
    ingest = source.checked(("ingest",), INGEST_KEYS)
    agreement = source.checked(("agreement",), AGREEMENT_KEYS)
    verdict = source.checked(("verdict",), VERDICT_KEYS)
    source.finish()
    return Study(
        path=file,
        base=base,
        text=text,
        question=top["question"].strip(),
        systems=tuple(systems.values()),
        **given,
        factors=factors,
        exclude=exclude,
        analysis=top.get("analysis", "").strip(),
        held=source.tables.get("held", ""),
        seed=top.get("seed", 1),
        replicates=top.get("replicates", 3),
        control=Control(**control),
        ingest=ingest.get("index", "per-block"),
        agreement=Agreement(**agreement),
        verdict=VerdictRule(**verdict),
    )


def _top(source: Source) -> dict[str, Any]:
    """The keys beside the tables."""
    known = {key.name: key for key in TOP_KEYS}
    good: dict[str, Any] = {}
    for name, value in source.tables.items():
        if name in known:
            if reason := known[name].mismatch(value):
                source.at_value((name,), reason)
            else:
                good[name] = value
        elif name not in _TABLES:
            source.at_key(
                (name,), f"a study has no key `{name}`", nearest(name, [*known, *_TABLES])
            )
    if "question" not in source.tables:
        source.at_key((), 'a study asks something: `question = "..."` is missing')
    elif not good.get("question", "?").strip():
        source.at_value(("question",), "`question` is empty")
    held = source.tables.get("held", "")
    if not isinstance(held, str | Mapping):
        source.at_value(("held",), f"`held` must be a text or a table, not {show(held)}")
    return good


def _systems(source: Source) -> tuple[dict[str, System], set[str]]:
    """The systems whose engine is known, by name; and all names."""
    tables = source.table("systems")
    systems: dict[str, System] = {}
    if not tables:
        source.at_key(("systems",), "a study needs at least one system",
                      f"for example [systems.{next(iter(ENGINES))}]")  # fmt: skip
    for name in tables:
        path = ("systems", name)
        table = source.table(*path)
        if not _SYSTEM_NAME.fullmatch(name):
            source.at_key(path, f"a system's name is letters, digits, - and _, not {show(name)}")
        engine = table.get("engine", name)
        if not isinstance(engine, str):
            source.at_value((*path, "engine"), f"`engine` must be a text, not {show(engine)}")
            continue
        if engine not in ENGINES:
            where = (*path, "engine") if "engine" in table else path
            report = source.at_value if "engine" in table else source.at_key
            report(where, f"there is no engine `{engine}`", nearest(engine, ENGINES))
            continue
        keys = [key_of(p) for p in ENGINES[engine].parameters]
        keys += SYSTEM_KEYS
        good = source.checked(path, keys, what=f"{engine}")
        good.pop("engine", None)
        attach = good.pop("attach", None)
        if not attach and ENGINES[engine].can.unavailable:
            source.at_key(path, f"{engine} is not run here: {ENGINES[engine].can.unavailable}",
                          'give `attach = "127.0.0.1:PORT"` of one that runs')  # fmt: skip
        systems[name] = System(name, engine, {**defaults(ENGINES[engine]), **good}, attach)
    return systems, set(tables)


def _first_levels(factors: Iterable[Factor], table: str) -> dict[str, Level]:
    return {f.key: f.levels[0] for f in factors if f.table == table}


def _place(source: Source, table: str, key: str) -> tuple[str, ...]:
    """Where a key of a table stands: there, or in [factors]."""
    if key in source.table(table):
        return table, key
    factors = source.table("factors")
    dotted = f"{table}.{key}"
    return ("factors", dotted) if dotted in factors else ("factors", table, key)


def _corpus(
    source: Source, given: Mapping[str, Any], factors: tuple[Factor, ...], base: Path
) -> None:
    if "corpus" not in source.tables:
        source.at_key((), "a study needs a corpus",
                      '[corpus] with `files = "..."`, or with `family = "debian"`')  # fmt: skip
        return
    whole = {**given, **_first_levels(factors, "corpus")}
    for key, sentence in corpora.complaints(whole):
        place = _place(source, "corpus", key)
        family = str(whole.get("family", "files"))
        known = family not in corpora.FAMILIES or key in corpora.keys_of(family)
        if key not in whole:
            source.at_key(("corpus",), sentence)
        elif known:
            source.at_value(place, sentence)
        else:
            source.at_key(place, sentence)
    for factor in factors:
        for i, level in enumerate(factor.levels[1:] if factor.table == "corpus" else (), 1):
            for key, sentence in corpora.complaints({**whole, factor.key: level}):
                if key == factor.key:
                    source.at_value((*_place(source, "corpus", key), str(i)), sentence)
    named: list[tuple[tuple[str, ...], object]] = [
        (("corpus", "files", str(i)) if isinstance(given.get("files"), list)
         else ("corpus", "files"), name)
        for i, name in enumerate(_several(given.get("files")))
    ]  # fmt: skip
    named += _varied_files(source, factors, "corpus", ("files",))
    for place, name in named:
        if isinstance(name, str) and not _exists(base, name):
            source.at_value(place, f'there is no file "{name}" in {base}')


def _queries(
    source: Source, given: Mapping[str, Any], factors: tuple[Factor, ...], base: Path
) -> None:
    whole = {**given, **_first_levels(factors, "queries")}
    for key, sentence in registry.problems(whole):
        source.at_value(_place(source, "queries", key), sentence)
    _files(source, "queries", ("file", "files"), given, factors, base)


def _load(
    source: Source, given: Mapping[str, Any], factors: tuple[Factor, ...], base: Path
) -> None:
    varied = _first_levels(factors, "load")
    for key, sentence in loads.problems({**given, **varied}, frozenset(varied)):
        source.at_value(_place(source, "load", key), sentence)
    _files(source, "load", ("times",), given, factors, base)


def _files(
    source: Source,
    table: str,
    keys: tuple[str, ...],
    given: Mapping[str, Any],
    factors: tuple[Factor, ...],
    base: Path,
) -> None:
    """Complain of files that do not exist."""
    named: list[tuple[tuple[str, ...], object]] = []
    for key in keys:
        value = given.get(key)
        if isinstance(value, list):
            named += [((table, key, str(i)), name) for i, name in enumerate(value)]
        elif value is not None:
            named.append(((table, key), value))
    named += _varied_files(source, factors, table, keys)
    for place, name in named:
        if isinstance(name, str) and not (base / name).is_file():
            source.at_value(place, f'there is no file "{name}" in {base}')


def _varied_files(
    source: Source, factors: tuple[Factor, ...], table: str, keys: tuple[str, ...]
) -> list[tuple[tuple[str, ...], object]]:
    return [
        ((*_place(source, table, factor.key), str(i)), level)
        for factor in factors
        if factor.table == table and factor.key in keys
        for i, level in enumerate(factor.levels)
    ]


def _exists(base: Path, name: str) -> bool:
    """A file, a folder, or a pattern that something matches."""
    if (base / name).exists():
        return True
    # A pattern may be absolute, which Path.glob() refuses.
    return bool(glob.glob(name, root_dir=base, recursive=True))  # noqa: PTH207


def _several(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
