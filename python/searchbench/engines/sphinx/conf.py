"""Configuration files of searchd and indexer: parts, who serves them, and how they are merged.

Document n goes to part n mod parts. The index that is asked is always ``docs``, distributed over
parts; over two levels it is distributed over indexes of a searchd in between, which are
distributed over parts. A part that is an agent has a searchd of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from searchbench.corpora.corpus import Schema
from searchbench.engines.engine import Companion, Parameters
from searchbench.engines.sphinx.charset import charset_table
from searchbench.engines.sphinx.values import KEY, columns

ASKED = "docs"
ANALYSIS = "analysis"
ABOUT = "about"
CONFIG = "sphinx.conf"
INDEXING = "indexing.conf"
MIDDLE = "middle"
_PACKET = "128M"


def part(number: int) -> str:
    """The name of a part."""
    return f"p{number}"


def is_agent(number: int, params: Parameters) -> bool:
    """Whether a part is an agent: all, none, or (as it was measured in 2011) all but the first."""
    kind = params["part_kind"]
    return kind == "agent" or (kind == "mixed" and number > 0)


def files(schema: Schema, params: Parameters, listen: str) -> dict[str, str]:
    """The configuration of each searchd. ``listen``: what the one that is asked speaks."""
    parts = range(int(params["parts"]))
    local = [n for n in parts if not is_agent(n, params)]
    made: dict[str, str] = {}
    for number in set(parts) - set(local):
        name = part(number)
        made[f"{name}.conf"] = "".join(
            [_part(number, schema, params), _searchd(name, f"{{port:{name}}}", params)]
        )
    if int(params["levels"]) == 2:
        groups = halves(len(parts))
        merged = [
            _distributed(_between(group), _members(group, params), params) for group in groups
        ]
        made[f"{MIDDLE}.conf"] = "".join(
            [
                *(_part(n, schema, params) for n in local),
                *merged,
                _searchd(MIDDLE, f"{{port:{MIDDLE}}}", params),
            ]
        )
        local = []
        top = [f"agent = 127.0.0.1:{{port:{MIDDLE}}}:{_between(group)}" for group in groups]
    else:
        top = list(_members(parts, params))
    made[CONFIG] = "".join(
        [
            *(_part(n, schema, params) for n in local),
            _distributed(ASKED, top, params),
            _section(f"index {ANALYSIS}", ["type = template", *_analysis()]),
            _about(),
            _searchd("searchd", f"{{port}}{listen}", params),
        ]
    )
    return made


def companions(params: Parameters) -> tuple[Companion, ...]:
    """The searchd of each agent, and the one between two levels."""
    names = [part(n) for n in range(int(params["parts"])) if is_agent(n, params)]
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


def indexing(schema: Schema, params: Parameters) -> str:
    """The configuration of indexer: a source and an index of each part."""
    parts = int(params["parts"])
    made = []
    for number in range(parts):
        every = "cat" if parts == 1 else f"sed -n '{number + 1}~{parts}p'"
        source = [
            "type = tsvpipe",
            f"tsvpipe_command = {every} '{{batches}}'",
            f"tsvpipe_attr_string = {KEY}",
            *(
                f"tsvpipe_field = {name}" if kind == "field" else f"tsvpipe_attr_{kind} = {name}"
                for name, kind in columns(schema)
            ),
        ]
        made.append(_section(f"source {part(number)}", source))
        made.append(
            _section(
                f"index {part(number)}",
                [f"source = {part(number)}", f"path = {{data}}/{part(number)}", *_analysis()],
            )
        )
    made.append(_section("indexer", ["mem_limit = 256M"]))
    return "".join(made)


def _between(parts: range) -> str:
    """The name of an index between two levels: the first and the last of its parts."""
    return f"{MIDDLE}{parts[0]}_{parts[-1]}"


def _members(parts: Iterable[int], params: Parameters) -> Iterator[str]:
    for number in parts:
        name = part(number)
        where = f"agent = 127.0.0.1:{{port:{name}}}:" if is_agent(number, params) else "local = "
        yield where + name


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
        kinds = [(KEY, "string"), *columns(schema)]
        lines = [
            "type = rt",
            *lines,
            f"rt_mem_limit = {params['rt_mem_limit_mb']}M",
            *(
                f"rt_field = {name}" if kind == "field" else f"rt_attr_{kind} = {name}"
                for name, kind in kinds
            ),
            *_analysis(),
        ]
    return _section(f"index {part(number)}", lines)


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
        "type = tsvpipe",
        "tsvpipe_command = cat '{run}/about.tsv'",
        "tsvpipe_field = nothing",
        "tsvpipe_attr_string = version",
    ]
    return _section(f"source {ABOUT}", source) + _section(
        f"index {ABOUT}", [f"source = {ABOUT}", "path = {run}/about"]
    )


def _searchd(name: str, listen: str, params: Parameters) -> str:
    binlog = "{data}" if params["index"] == "realtime" else ""
    return _section(
        "searchd",
        [
            f"listen = 127.0.0.1:{listen}",
            f"log = {{run}}/{name}.searchd.log",
            f"pid_file = {{run}}/{name}.pid",
            f"binlog_path = {binlog}",
            f"workers = {params['workers']}",
            f"max_children = {max_children(params)}",
            f"dist_threads = {params['dist_threads']}",
            f"listen_backlog = {params['listen_backlog']}",
            "collation_server = binary",
            "expansion_limit = 0",
            "client_timeout = 3600",
            f"max_packet_size = {_PACKET}",
        ],
    )


def max_children(params: Parameters) -> int:
    """prefork with none of them would accept and never answer."""
    wanted = int(params["max_children"])
    return 16 if params["workers"] == "prefork" and not wanted else wanted


def _section(head: str, lines: Iterable[str]) -> str:
    # Each bracket and each option on a line of its own: the parser of 2.2 reads nothing else.
    return f"{head}\n{{\n" + "".join(f"  {line}\n" for line in lines) + "}\n\n"
