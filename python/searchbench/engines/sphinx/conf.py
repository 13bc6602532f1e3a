"""Levers, and what they are in configuration files of searchd and indexer: parts, who serves them,
how they are merged; main and delta.

Document n goes to part n mod parts. The index that is asked is always ``docs``, distributed over
parts; over two levels it is distributed over indexes of a searchd in between, which are
distributed over parts. A part that is an agent has a searchd of its own, or one together with
others: then that searchd also has ``docs`` over what it holds, and is asked by itself as the whole
is.

With ``index = "main+delta"`` it is distributed over two indexes that indexer makes: ``main``, of
all documents, and after it ``delta``, of those that changed since, whose kill list hides what main
has of them. What changed is kept by a companion, the ``source`` (searchbench.sphinx_source), which
also runs indexer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from searchbench.corpora.corpus import Schema
from searchbench.engines.engine import Companion, Offline, Parameters, Writing
from searchbench.engines.levers import choice, counts, described, number
from searchbench.engines.mysql_form import request
from searchbench.engines.sphinx.query import RANKERS
from searchbench.engines.sphinx.values import KEY, charset_table, columns

ASKED = "docs"
ANALYSIS = "analysis"
ABOUT = "about"
MIDDLE = "middle"
MAIN, DELTA, MAIN_DELTA = "main", "delta", "main+delta"
SOURCE = "source"
_CONFIG = "sphinx.conf"
_INDEXING = "indexing.conf"
_REMAKING, _EMPTYING = "delta.conf", "empty-delta.conf"
MATCH_MODES = ("algebra", "any", "all", "phrase", "boolean")
PARAMETERS = described(
    {
        choice("workers", "threads", "fork", "prefork", "none"): "how requests are served. "
        "threads, fork: by a thread or a process for each connection; prefork: by processes that "
        "were forked beforehand; none: one after another. With none and prefork, a connection is "
        "served until it is closed",
        number("max_children", 0, (0, 10_000)): "how many connections are served at once; more are "
        "turned away (0: no limit). With prefork: how many processes are forked beforehand (0: "
        "16)",
        number("dist_threads", 0, (0, 256)): "over how many threads the local parts of one query "
        "are spread; 0: one part after another",
        number("listen_backlog", 128, (1, 65_535)): "how many connections may wait to be accepted "
        "(searchd's own default: 5)",
        number("parts", 1, (1, 64), index=True): "how many indexes are searched as one",
        choice("part_kind", "local", "agent", "mixed"): "who searches a part. local: the server "
        "that is asked; agent: an agent, which is a searchd of its own on this machine; mixed: "
        "the first part is local, the others have agents",
        counts(
            "parts_by_agent", (1, 64)
        ): "how many parts each agent has: a list in the order of the agents, or one number for "
        "all; `parts` follows from it. Without it, and without `agents`, each part that is not "
        "local has an agent of its own",
        choice("levels", 1, 2): "1: the searchd that is asked merges all parts; 2: intermediate "
        "searchds first merge the results of some parts each, then the one that is asked merges "
        "theirs",
        number("agent_query_timeout_ms", 3000, (1, 3_600_000)): "an agent that takes longer is "
        "left out, with a warning (3000: searchd's own default)",
        choice("match_mode", *MATCH_MODES): "how plain terms are asked for. algebra: in the "
        "extended syntax, as the query says; the others: by the older match mode that means the "
        "same, with its own ranker",
        choice("ranker", *RANKERS): "how matches are weighted, if match_mode is algebra",
        choice("statistics", "local", "global"): "term statistics of each part (local), or of all "
        "local parts together (global)",
        choice("index", "offline", "realtime", MAIN_DELTA, index=True): "offline: the program "
        "indexer makes the index before the server starts; realtime: documents are put into "
        "real-time indexes; main+delta: indexer makes a main index before the server starts, and "
        "at each publish an index of what changed since, which the server rotates in",
        number("rt_mem_limit_mb", 128, (1, 1_000_000), index=True): "memory of a real-time index; "
        "what exceeds it goes to disk",
        number("refresh_ms", 0, (0, 3_600_000)): "main+delta: how often, in ms, the delta is made "
        "anew if something changed; 0: only when a publisher asks",
        number("merge_every", 0, (0, 1_000_000)): "main+delta: how many times the delta is "
        "made before it is merged into main (`indexer --merge`); 0: it never is",
    }
)


def part(number: int) -> str:
    """The name of a part."""
    return f"p{number}"


def files(schema: Schema, params: Parameters, listen: str) -> dict[str, str]:
    """The configuration of each searchd. ``listen``: what the one that is asked speaks."""
    if params["index"] == MAIN_DELTA:
        return _files_of_delta(schema, params, listen)
    members = _members(params)
    made = {
        f"{_agent(each)}.conf": _of_agent(each, schema, params, listen)
        for each in members
        if _is_agent(each[0], params)
    }
    local = [_part(n, schema, params) for (n, *_) in members if not _is_agent(n, params)]
    top = [_asked(each, params) for each in members]
    if int(params["levels"]) == 2:
        groups = [[members[i] for i in group] for group in halves(len(members))]
        merged = [
            _distributed(_between(group), [_asked(each, params) for each in group], params)
            for group in groups
        ]
        middle = _searchd(MIDDLE, [f"{_at(MIDDLE)}:{_port(MIDDLE)}"], params)
        made[f"{MIDDLE}.conf"] = "".join([*local, *merged, middle])
        local = []
        top = [f"agent = {_at(MIDDLE)}:{_port(MIDDLE)}:{_between(group)}" for group in groups]
    made[_CONFIG] = _of_asked(local, top, params, listen)
    return made


def _of_asked(local: Iterable[str], top: Iterable[str], params: Parameters, listen: str) -> str:
    """The configuration of the searchd that is asked: its parts, and what they are together."""
    return "".join(
        [
            *local,
            _distributed(ASKED, top, params),
            _section(f"index {ANALYSIS}", ["type = template", *_analysis()]),
            _about(),
            _searchd("searchd", [f"{{address}}:{{port}}{listen}"], params),
        ]
    )


def _files_of_delta(schema: Schema, params: Parameters, listen: str) -> dict[str, str]:
    """For searchd, and for indexer, which makes the delta and tells searchd of it."""
    names = (MAIN, DELTA)  # a kill list counts for the indexes before its own
    local = [_section(f"index {name}", _made(name)) for name in names]
    own = [
        _section(f"index {MAIN}", _made(MAIN)),
        _section("indexer", ["mem_limit = 256M"]),
        _section("searchd", ["pid_file = {run}/searchd.pid"]),
    ]
    return {
        _CONFIG: _of_asked(local, [f"local = {name}" for name in names], params, listen),
        _REMAKING: "".join([*_delta(schema, rows=True), *own]),
        _EMPTYING: "".join([*_delta(schema, rows=False), *own]),
    }


def _delta(schema: Schema, *, rows: bool) -> Iterator[str]:
    """The sources of the delta and itself: rows, and a kill list, which only XML can bring.

    Without rows, XML alone: a source of TSV that has none is an error.
    """
    gone = ["xmlpipe_command = cat '{run}/delta.xml'", *_columns("xmlpipe", schema)]
    yield _section("source killed", ["type = xmlpipe2", *gone])
    sources = ["source = killed"]
    if rows:
        changed = ["tsvpipe_command = cat '{run}/delta.tsv'", *_columns("tsvpipe", schema)]
        yield _section("source changed", ["type = tsvpipe", *changed])
        sources.append("source = changed")
    yield _section(f"index {DELTA}", [*sources, *_made(DELTA)])


def _made(name: str) -> list[str]:
    """What an index that indexer makes is, but for its source."""
    return [f"path = {{part:0}}/{name}", *_analysis()]


def writing(params: Parameters) -> Writing | None:
    """Where changes are sent, if that is not searchd."""
    return Writing(SOURCE, request("PING")) if params["index"] == MAIN_DELTA else None


def _keeper(params: Parameters) -> Companion:
    """Who keeps what changed, and runs indexer."""
    argv = (
        *("{python}", "-m", "searchbench.sphinx_source"),
        *("--address", _at(SOURCE), "--port", _port(SOURCE)),
        *("--data", "{part:0}", "--run", "{run}"),
        *("--config", f"{{run}}/{_REMAKING}", "--without-rows", f"{{run}}/{_EMPTYING}"),
        *("--merge-every", str(params["merge_every"])),
        *("--refresh-ms", str(params["refresh_ms"])),
    )
    return Companion(SOURCE, argv)


def companions(params: Parameters) -> tuple[Companion, ...]:
    """The searchd of each agent, and the one between two levels; the source of a delta."""
    if params["index"] == MAIN_DELTA:
        return (_keeper(params),)
    agents = [each for each in _members(params) if _is_agent(each[0], params)]
    asked = bool(params["parts_by_agent"])
    found = [
        Companion(
            _agent(each), _command(_agent(each)), agent=True, holds=len(each),
            asked=_alone(each) if asked else "", files=tuple(f"{part(n)}.*" for n in each),
        )
        for each in agents
    ]  # fmt: skip
    if int(params["levels"]) == 2:
        found.append(Companion(MIDDLE, _command(MIDDLE)))
    return tuple(found)


def wrong(params: Parameters) -> str:
    """Why these levers do not go together; "" if they do."""
    kind = params.get("index")
    if kind != MAIN_DELTA:
        for name, what in (("refresh_ms", "is made anew"), ("merge_every", "is merged into main")):
            if params.get(name):
                return (
                    f'`{name}` says how often a delta {what}, and with index = "{kind}" there is '
                    f'none: say index = "{MAIN_DELTA}", or leave `{name}` out'
                )
    if not params.get("parts_by_agent"):
        return ""
    if params["part_kind"] == "local":
        return "`parts_by_agent` says what agents have, and with part_kind = local there are none"
    has, local = sum(_sizes(params)), int(params["part_kind"] == "mixed")
    if has + local == int(params["parts"]):
        return ""
    own = " and the server one" if local else ""
    return f"the agents have {has} parts{own}, and `parts` is {params['parts']}"


def halves(parts: int) -> list[range]:
    """The parts in as many groups as there are parts in a group, about."""
    size = math.isqrt(max(0, parts - 1)) + 1
    return [range(at, min(at + size, parts)) for at in range(0, parts, size)]


def _offline_of_delta(schema: Schema) -> Offline:
    """Main, of all documents, and a delta of nothing."""
    every = ["tsvpipe_command = cat '{batches}'", *_columns("tsvpipe", schema)]
    made = [
        _piped(MAIN, every, _made(MAIN)),
        *_delta(schema, rows=False),
        _section("indexer", ["mem_limit = 256M"]),
    ]
    # One after the other, for with --all it is enough that one of them was made.
    return Offline(
        commands=tuple(
            ("indexer", "--config", f"{{run}}/{_INDEXING}", name) for name in (MAIN, DELTA)
        ),
        files={
            _INDEXING: "".join(made),
            "delta.xml": '<?xml version="1.0" encoding="utf-8"?>\n<sphinx:docset>\n'
            "</sphinx:docset>\n",
        },
    )


def offline(schema: Schema, params: Parameters) -> Offline:
    """indexer and its configuration: a source and an index of each part."""
    if params["index"] == MAIN_DELTA:
        return _offline_of_delta(schema)
    parts = int(params["parts"])
    made = []
    for n in range(parts):
        every = "cat" if parts == 1 else f"sed -n '{n + 1}~{parts}p'"
        source = [f"tsvpipe_command = {every} '{{batches}}'", *_columns("tsvpipe", schema)]
        index = [f"path = {_path(n)}", *_analysis()]
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


def _sizes(params: Parameters) -> list[int]:
    return [int(size) for size in str(params["parts_by_agent"]).split(",")]


def _members(params: Parameters) -> list[list[int]]:
    """What is searched together: parts that are local each alone, those of each agent."""
    parts = list(range(int(params["parts"])))
    if not params["parts_by_agent"]:
        return [[n] for n in parts]
    found = [[n] for n in parts if not _is_agent(n, params)]
    rest = iter(parts[len(found) :])
    return found + [[next(rest) for _ in range(size)] for size in _sizes(params)]


def _command(name: str) -> tuple[str, ...]:
    return ("searchd", "--config", f"{{run}}/{name}.conf", "--nodetach")


def _agent(member: Sequence[int]) -> str:
    """The name of an agent: that of its first part."""
    return part(member[0])


def _alone(member: Sequence[int]) -> str:
    """The name of the port at which an agent is asked as the whole is."""
    return f"{_agent(member)}-alone"


def _port(name: str) -> str:
    return f"{{port:{name}}}"


def _at(name: str) -> str:
    return f"{{address:{name}}}"


def _between(group: Sequence[Sequence[int]]) -> str:
    """The name of an index between two levels: the first and the last of its parts."""
    return f"{MIDDLE}{group[0][0]}_{group[-1][-1]}"


def _asked(member: Sequence[int], params: Parameters) -> str:
    name = _agent(member)
    if not _is_agent(member[0], params):
        return f"local = {name}"
    return f"agent = {_at(name)}:{_port(name)}:{','.join(map(part, member))}"


def _of_agent(member: Sequence[int], schema: Schema, params: Parameters, listen: str) -> str:
    """Its parts and its searchd; what it has together, where it may be asked for that."""
    name = _agent(member)
    made, listens = [_part(n, schema, params) for n in member], [f"{_at(name)}:{_port(name)}"]
    if params["parts_by_agent"]:
        made.append(_distributed(ASKED, [f"local = {part(n)}" for n in member], params))
        listens.append(f"{_at(name)}:{_port(_alone(member))}{listen}")
    return "".join([*made, _searchd(name, listens, params)])


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
    lines = [f"path = {_path(number)}"]
    if params["index"] == "realtime":
        limit = f"rt_mem_limit = {params['rt_mem_limit_mb']}M"
        lines = ["type = rt", *lines, limit, *_columns("rt", schema), *_analysis()]
    return _section(f"index {part(number)}", lines)


def _path(number: int) -> str:
    """Where the files of a part lie."""
    return f"{{part:{number}}}/{part(number)}"


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


def _searchd(name: str, listens: Iterable[str], params: Parameters) -> str:
    # It lies with the first part, wherever that is.
    binlog = "{part:0}" if params["index"] == "realtime" else ""
    children = int(params["max_children"])
    if params["workers"] == "prefork" and not children:
        children = 16  # with none of them it would accept and never answer
    return _section(
        "searchd",
        [
            *(f"listen = {listen}" for listen in listens),
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
