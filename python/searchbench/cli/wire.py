"""``searchbench wire ENGINE QUERY``: the exact bytes that are sent and received."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from searchbench.cli.flags import Json

if TYPE_CHECKING:
    from searchbench.engines.engine import Engine
    from searchbench.workload.queries.algebra import Query


def wire(
    engine: str,
    query: str,
    *,
    match: Literal["any", "all", "phrase", "prefix", "fuzzy"] = "all",
    files: Annotated[list[Path] | None, Parameter(negative=())] = None,
    set: Annotated[dict[str, str] | None, Parameter(negative=())] = None,  # noqa: A002
    as_json: Json = False,
) -> int:
    """Send one query to a real engine, and print the exact bytes sent and received.

    With a study file in place of the engine, and a method of its operations in place of the query,
    print what that method sends for one operation: the study's system is made ready for it.

    Parameters
    ----------
    engine
        The engine, as `searchbench engines` lists them; or a study file with operations.
    query
        Words, or the query as JSON (FORMATS.md); or METHOD or OPERATION/METHOD.
    match
        How the words are to be found.
    files
        The documents to search; by default, four sentences that come with searchbench.
    set
        Engine parameters, e.g. --set.parts 4; of an operation --set.rows 3 and --set.system NAME.
    as_json
        Print JSON, with the bytes in hexadecimal.
    """
    from searchbench.corpora import open_corpus
    from searchbench.engines import engine as find
    from searchbench.lab.conduct.serve import hexdump, tap
    from searchbench.terminal import out

    if engine.endswith(".toml"):
        from searchbench.cli.wire_operation import wire_operation

        return wire_operation(Path(engine), query, set or {}, as_json=as_json)
    found = find(engine)
    levels = {name: _level(found, name, text) for name, text in (set or {}).items()}
    corpus = open_corpus({"files": [str(f) for f in files]}, Path.cwd()) if files else None
    result = tap(found, _query(query, match), levels, corpus)
    if as_json:
        out.as_json(
            {
                "engine": engine,
                "version": result.version,
                "argv": result.argv,
                "sent": [e.hex() for e in result.sent],
                "received": result.received.hex(),
                "total": result.hits.total,
                "hits": [[h.id, h.score] for h in result.hits.hits],
                "error": result.hits.error,
            }
        )
        return 0
    out.say(f"{found.can.title} {result.version}")
    for number, exchange in enumerate(result.sent, 1):
        out.say(f"\nsent, exchange {number}: {len(exchange)} bytes")
        sys.stdout.write(hexdump(exchange) + "\n")
    out.say(f"\nreceived: {len(result.received)} bytes")
    sys.stdout.write(hexdump(result.received) + "\n")
    if result.hits.error:
        out.say(f"\nwhich means: {result.hits.error}")
    else:
        ids = ", ".join(h.id for h in result.hits.hits)
        out.say(f"\nwhich means: {result.hits.total} documents match; returned: {ids or 'none'}")
    return 0


def _query(text: str, match: str) -> Query:
    """The query that was given: JSON if it looks like it, else words."""
    import json

    from searchbench.errors import QueryError
    from searchbench.workload.queries.algebra import Mode, Query, Terms
    from searchbench.workload.queries.analysis import terms
    from searchbench.workload.queries.forms import from_json

    if text.lstrip().startswith("{"):
        try:
            return from_json(json.loads(text))
        except json.JSONDecodeError as error:
            raise QueryError(f"the query is not JSON: {error}") from None
    words = terms(text)
    if not words:
        raise QueryError(f"{text!r} has no letter or digit, so no term to search")
    return Query(Terms(Mode(match), words))


def _level(engine: Engine, name: str, text: str) -> str | int | float | bool:
    """A parameter's level from the command line."""
    from searchbench.errors import SearchbenchError

    declared = {p.name: p for p in engine.parameters}
    if name not in declared:
        raise SearchbenchError(f"there is no parameter {name!r}; there are {', '.join(declared)}")
    kind = declared[name].kind
    try:
        return text.lower() in ("true", "yes", "1") if kind is bool else kind(text)
    except ValueError:
        raise SearchbenchError(f"{name} takes {kind.__name__}, not {text!r}") from None
