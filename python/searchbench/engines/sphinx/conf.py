"""Levers, and what they are in configuration files of searchd and indexer: parts, who serves them,
and how they are merged.

Document n goes to part n mod parts. The index that is asked is always ``docs``, distributed over
parts; over two levels it is distributed over indexes of a searchd in between, which are
distributed over parts. A part that is an agent has a searchd of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from searchbench.corpora.corpus import Schema
from searchbench.engines.engine import Companion, Offline, Parameters
from searchbench.engines.levers import choice, described, number
from searchbench.engines.sphinx.query import RANKERS
from searchbench.engines.sphinx.values import KEY, charset_table, columns

ASKED = "docs"
ANALYSIS = "analysis"
ABOUT = "about"
MIDDLE = "middle"
_CONFIG = "sphinx.conf"
_INDEXING = "indexing.conf"
MATCH_MODES = ("algebra", "any", "all", "phrase", "boolean")
PARAMETERS = described(
    {
        choice("workers", "threads", "fork", "prefork", "none"): "how requests are served: one "
        "after another, by a process or a thread for each, or by processes forked beforehand; none "
        "and prefork serve a connection until it is closed",
        number("max_children", 0, (0, 10_000)): "connections served at once, those beyond are "
        "turned away; prefork: processes forked beforehand (0: no limit; prefork: 16)",
        number("dist_threads", 0, (0, 256)): "threads over which the local parts of one query are "
        "spread; 0: one after another",
        number("listen_backlog", 128, (1, 65_535)): "connections that may wait to be accepted "
        "(searchd's own default: 5)",
        number("parts", 1, (1, 64), index=True): "indexes that are searched as one",
        choice("part_kind", "local", "agent", "mixed"): "who searches a part: the server that is "
        "asked, an agent (a searchd of its own on this machine), or mixed: the first is local, the "
        "others are agents",
        choice("levels", 1, 2): "merge the parts at once, or first by searchds in between and "
        "then by the one that is asked",
        number("agent_query_timeout_ms", 3000, (1, 3_600_000)): "an agent that takes longer is "
        "left out, with a warning (searchd's own default)",
        choice("match_mode", *MATCH_MODES): "how plain terms are asked: in the extended syntax as "
        "the algebra has them, or by the older match mode that means the same, with its own "
        "ranker",
        choice("ranker", *RANKERS): "how matches are weighted, where match_mode is algebra",
        choice("statistics", "local", "global"): "term statistics of each part, or of all local "
        "parts together",
        choice("index", "offline", "realtime", index=True): "made by indexer before the server "
        "starts, or put into real-time indexes",
        number("rt_mem_limit_mb", 128, (1, 1_000_000), index=True): "memory of a real-time index; "
        "what is beyond goes to disk",
    }
)


def part(number: int) -> str:
    """The name of a part."""
    return f"p{number}"


def files(schema: Schema, params: Parameters, listen: str) -> dict[str, str]:
    """The configuration of each searchd. ``listen``: what the one that is asked speaks."""
    parts = range(int(params["parts"]))
    made = {
        f"{part(n)}.conf": _part(n, schema, params) + _searchd(part(n), _port(part(n)), params)
        for n in parts
        if _is_agent(n, params)
    }
    local = [_part(n, schema, params) for n in parts if not _is_agent(n, params)]
    top = _members(parts, params)
    if int(params["levels"]) == 2:
        groups = halves(len(parts))
        merged = [_distributed(_between(g), _members(g, params), params) for g in groups]
        middle = _searchd(MIDDLE, _port(MIDDLE), params)
        made[f"{MIDDLE}.conf"] = "".join([*local, *merged, middle])
        local = []
        top = (f"agent = 127.0.0.1:{_port(MIDDLE)}:{_between(group)}" for group in groups)
    made[_CONFIG] = "".join(
        [
            *local,
            _distributed(ASKED, top, params),
            _section(f"index {ANALYSIS}", ["type = template", *_analysis()]),
            _about(),
            _searchd("searchd", f"{{port}}{listen}", params),
        ]
    )
    return made


def companions(params: Parameters) -> tuple[Companion, ...]:
    """The searchd of each agent, and the one between two levels."""
    names = [part(n) for n in range(int(params["parts"])) if _is_agent(n, params)]
    if int(params["levels"]) == 2:
        names.append(MIDDLE)
    return tuple(
        Companion(name, ("searchd", "--config", f"{{run}}/{name}.conf", "--nodetach"))
        for name in names
    )


def halves(parts: int) -> list[range]:
    """The parts in as many groups as there are parts in a group, about."""
    size = math.isqrt(max(0, parts - 1)) + 1
    return [range(at, min(at + size, parts)) for at in range(0, parts, size)]


def offline(schema: Schema, params: Parameters) -> Offline:
    """indexer and its configuration: a source and an index of each part."""
    parts = int(params["parts"])
    made = []
    for n in range(parts):
        every = "cat" if parts == 1 else f"sed -n '{n + 1}~{parts}p'"
        source = [f"tsvpipe_command = {every} '{{batches}}'", *_columns("tsvpipe", schema)]
        index = [f"path = {{data}}/{part(n)}", *_analysis()]
        made.append(_piped(part(n), source, index))
    made.append(_section("indexer", ["mem_limit = 256M"]))
    return Offline(
        commands=(("indexer", "--config", f"{{run}}/{_INDEXING}", "--all"),),
        files={_INDEXING: "".join(made)},
    )


def _is_agent(number: int, params: Parameters) -> bool:
    """Whether a part is an agent: all, none, or (as it was measured in 2011) all but the first."""
    kind = params["part_kind"]
    return kind == "agent" or (kind == "mixed" and number > 0)


def _port(name: str) -> str:
    return f"{{port:{name}}}"


def _between(parts: range) -> str:
    """The name of an index between two levels: the first and the last of its parts."""
    return f"{MIDDLE}{parts[0]}_{parts[-1]}"


def _members(parts: Iterable[int], params: Parameters) -> Iterator[str]:
    for n in parts:
        agent = _is_agent(n, params)
        yield f"agent = 127.0.0.1:{_port(part(n))}:{part(n)}" if agent else f"local = {part(n)}"


def _distributed(name: str, members: Iterable[str], params: Parameters) -> str:
    return _section(
        f"index {name}",
        [
            "type = distributed",
            *members,
            "agent_connect_timeout = 1000",
            f"agent_query_timeout = {params['agent_query_timeout_ms']}",
        ],
    )


def _part(number: int, schema: Schema, params: Parameters) -> str:
    lines = [f"path = {{data}}/{part(number)}"]
    if params["index"] == "realtime":
        limit = f"rt_mem_limit = {params['rt_mem_limit_mb']}M"
        lines = ["type = rt", *lines, limit, *_columns("rt", schema), *_analysis()]
    return _section(f"index {part(number)}", lines)


def _columns(reader: str, schema: Schema) -> Iterator[str]:
    for name, kind in ((KEY, "string"), *columns(schema)):
        yield f"{reader}_{'field' if kind == 'field' else f'attr_{kind}'} = {name}"


def _analysis() -> list[str]:
    return [
        "dict = keywords",
        "min_word_len = 1",
        "min_prefix_len = 1",
        f"charset_table = {charset_table()}",
    ]


def _about() -> str:
    """An index of one row, made at each start: what the program says of itself.

    Nothing that searchd answers tells its version but the greeting of the MySQL protocol.
    """
    source = [
        "tsvpipe_command = cat '{run}/about.tsv'",
        "tsvpipe_field = nothing",
        "tsvpipe_attr_string = version",
    ]
    return _piped(ABOUT, source, ["path = {run}/about"])


def _piped(name: str, source: Iterable[str], index: Iterable[str]) -> str:
    """A source of rows of TSV, and the index made of it."""
    return _section(f"source {name}", ["type = tsvpipe", *source]) + _section(
        f"index {name}", [f"source = {name}", *index]
    )


def _searchd(name: str, listen: str, params: Parameters) -> str:
    binlog = "{data}" if params["index"] == "realtime" else ""
    children = int(params["max_children"])
    if params["workers"] == "prefork" and not children:
        children = 16  # with none of them it would accept and never answer
    return _section(
        "searchd",
        [
            f"listen = 127.0.0.1:{listen}",
            f"log = {{run}}/{name}.searchd.log",
            f"pid_file = {{run}}/{name}.pid",
            f"binlog_path = {binlog}",
            f"workers = {params['workers']}",
            f"max_children = {children}",
            f"dist_threads = {params['dist_threads']}",
            f"listen_backlog = {params['listen_backlog']}",
            "collation_server = binary",
            "expansion_limit = 0",
            "client_timeout = 3600",
            "max_packet_size = 128M",
        ],
    )


def _section(head: str, lines: Iterable[str]) -> str:
    # Each bracket and each option on a line of its own: the parser of 2.2 reads nothing else.
    return f"{head}\n{{\n" + "".join(f"  {line}\n" for line in lines) + "}\n\n"
