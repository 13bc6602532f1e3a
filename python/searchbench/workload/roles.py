"""The ``[roles.NAME]`` tables: what goes on beside the readers, their keys, what goes together.

A role is one kind of client of a trial. ``[queries]`` and ``[load]`` are the role ``readers``; the
others are described here: one that writes documents, one that publishes, one that has a job done,
and further readers, which ask queries of their own.
A fault is a role too: it is something that happens to the system at a time of the drive.
A role can be idle in some treatments; those are what the others are compared with.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from searchbench.spec import SpecKey, defaults
from searchbench.workload.shape import stages_of

Does = Literal["read", "write", "publish", "job", "fault"]
READERS = "readers"
"""What the role of [queries] and [load] is called."""
WATCHER = "-watcher"
"""What is added to the name of a writer for the connection that asks for its markers."""
KEPT_BACK_SHARE = 0.1
SERVER = "server"
"""What a fault is of, unless it names a companion: the process that is asked."""
NOTHING = "nothing to do"
"""What publishes where a write can be found at once."""

_RATES = ("rate", "rps", "qps", "tps", "per_s", "requests_per_s", "queries_per_s", "reads_per_s",
          "operations_per_s", "ops_per_s", "throughput")  # fmt: skip
ROLE_KEYS: tuple[SpecKey, ...] = (
    SpecKey("does", "text", None, "what it does: read (ask queries of its own), write documents, "
            "publish what was written, have a job of the engine done, or be a fault of the system",
            ("read", "write", "publish", "job", "fault")),
    SpecKey("idle", "boolean", False, "it does nothing; as a factor, [false, true] is the "
            "comparison with and without it"),
    SpecKey("queries", "table", None, "read: what it asks, with the keys of [queries]: "
            "[roles.NAME.queries]"),
    SpecKey("documents", "integer", None, "write: how many documents of the corpus are kept back, "
            "drawn with the seed; they are inserted later", minimum=1, maximum=100_000_000),
    SpecKey("share", "number", None, "write: the same as a share of the corpus (default 0.1 where "
            "it inserts)", above=0, maximum=0.99),
    SpecKey("insert", "number", None, "write: how many of all changes are inserts, as a weight "
            "(default 1, or 0 if another weight is given)", minimum=0, maximum=1_000_000),
    SpecKey("update", "number", None, "write: the same for updates: a document of the corpus is "
            "put in again with one word more", minimum=0, maximum=1_000_000),
    SpecKey("delete", "number", None, "write: the same for deletes of documents of the corpus",
            minimum=0, maximum=1_000_000),
    SpecKey("batch", "integer", 1, "write: documents in each request, all inserted, all updated or "
            "all deleted", minimum=1, maximum=100_000),
    SpecKey("documents_per_s", "number", None, "write: documents a second, sent by the clock "
            "whether or not the system keeps up; 0: idle. `insert`, `update` and `delete` say how "
            "many are of which kind", minimum=0, maximum=10_000_000, also=(
                *_RATES, "documents_per_second", "docs_per_s", "rows_per_s", "writes_per_s",
                "changes_per_s", "inserts_per_s", "updates_per_s", "deletes_per_s")),
    SpecKey("rate_per_s", "number", None, "read: requests a second, sent by the clock whether or "
            "not the system keeps up; 0: idle", minimum=0, maximum=10_000_000, also=_RATES),
    SpecKey("stages", "list", None, "write: documents a second that change over the drive (read: "
            "requests a second), as [SECONDS, RATE] or, for a ramp, [SECONDS, FROM, TO] for each "
            "stage, as in [[60, 100], [30, 400], [60, 100]]; together as long as the drive "
            "with its warm-up"),
    SpecKey("arrivals", "text", "constant", "write, with `documents_per_s` or `stages`: gaps "
            "between requests: all the same, or random (exponential). read, with `rate_per_s` or "
            "`stages`: the same, but the default is random", ("constant", "poisson")),
    SpecKey("times", "path", None, "write, read: a file of times in seconds, one a line, or JSONL "
            "with `t`: at each a request is sent, the first when the drive begins"),
    SpecKey("speed", "number", 1.0, "write, read, with `times`: multiple of the speed of the file. "
            "read, without `times`: of the query log's own times", above=0, maximum=1_000_000),
    SpecKey("every_s", "number", None, "write, read, publish: seconds from one request to the "
            "next; "
            "job: from one beginning of it to the next (default: it is done once)", above=0,
            maximum=86_400),
    SpecKey("clients", "integer", None, "write, read: how many clients write or ask, each of which "
            "sends its next request when the last was answered: as fast as the system accepts; 0: "
            "idle",
            minimum=0, maximum=256, also=("threads", "users", "workers", "concurrency")),
    SpecKey("think_s", "number", 0.0, "read, with `clients`: pause after each answer", minimum=0,
            maximum=3600),
    SpecKey("connections", "integer", 1, "write, read: connections of a role that goes by the "
            "clock (default of one that reads: 16, and with `every_s` 1)",
            minimum=1, maximum=256),
    SpecKey("timeout_s", "number", 10.0, "read: an answer that takes longer than this is a timeout",
            above=0, maximum=3600),
    SpecKey("marker_every_s", "number", 1.0, "write: seconds between markers (a marker is a "
            "written document that shows when new writes can be found); 0: no markers", minimum=0,
            maximum=3600),
    SpecKey("ask_every_ms", "number", 20.0, "write: milliseconds between two questions for which "
            "markers can be found; no time to visible is known more exactly", minimum=1,
            maximum=60_000),
    SpecKey("job", "text", None, "job: the name of a job that the engine has, such as merge"),
    SpecKey("fault", "text", None, "fault: what happens. kill: a process is ended at once "
            "(SIGKILL), with all that it has started; stop: it is asked to end (by the signal that "
            "the engine is stopped with); freeze: it stands still (SIGSTOP)",
            ("kill", "stop", "freeze")),
    SpecKey("of", "text", SERVER, "fault: of which process. server: the one that is asked; or the "
            "name of another process of the service, such as an agent or a node"),
    SpecKey("for_s", "number", None, "fault: after how many seconds the process is started again, "
            "or goes on after a freeze; default: not before the drive has ended", above=0,
            maximum=86_400),
    SpecKey("after_s", "number", None, "seconds after the beginning of the measured window at "
            "which a job or a fault begins, or a role with `every_s` first does what it does "
            "(default of the latter: `every_s` after the beginning of the drive). A fault in a "
            "capacity search has none: it lasts for all of each trial", minimum=0,
            maximum=86_400),
)  # fmt: skip
_OF: Mapping[str, tuple[str, ...]] = {
    "read": (
        "queries", "rate_per_s", "stages", "arrivals", "times", "speed", "every_s", "after_s",
        "clients", "think_s", "connections", "timeout_s",
    ),
    "write": (
        "documents", "share", "insert", "update", "delete", "batch", "documents_per_s", "stages",
        "arrivals", "times", "speed", "every_s", "after_s", "clients", "connections",
        "marker_every_s", "ask_every_ms",
    ),
    "publish": ("every_s", "after_s"),
    "job": ("job", "every_s", "after_s"),
    "fault": ("fault", "of", "for_s", "after_s"),
}  # fmt: skip
_OWN_RATES = ("documents_per_s", "rate_per_s")
_ONLY_GIVEN = ("stages", "arrivals", "times", "speed")
"""Left out where the study does not have them: a treatment is known by its keys."""
AFTER_A_WHILE = "a fault needs `after_s`, above 0: what is normal is seen in the window before it"
"""But in a capacity search, where it lasts for all of each trial."""
PACES = ("documents_per_s", "every_s", "stages", "times", "clients")
"""The keys of which a writer has one: how fast it writes."""
READING_PACES = ("clients", "rate_per_s", "every_s", "stages", "times")
"""The keys of which a role that reads has one; without any, `speed` is of its log's own times."""
_POOL = 16  # connections of readers that go by the clock


def own_first(keys: Iterable[SpecKey], does: object) -> list[SpecKey]:
    """Keys of roles, those first that a role has which does that."""
    return sorted(keys, key=lambda key: key.name not in _OF.get(str(does), ()))


def problems(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(key, sentence) of what does not go together in one role's table."""
    does = table.get("does")
    if does is None:
        yield "does", 'a role needs `does`: "read", "write", "publish", "job" or "fault"'
        return
    for key in table:
        if key not in ("does", "idle", *_OF.get(str(does), ())):
            rate = {"read": "rate_per_s", "write": "documents_per_s"}.get(str(does))
            other = f"; its rate is `{rate}`" if rate and key in _OWN_RATES else ""
            yield key, f'`{key}` is not for a role with does = "{does}"{other}'
    if does == "read":
        yield from _of_a_reader(table)
    elif does == "write":
        yield from _of_a_writer(table)
    elif does == "publish" and "every_s" not in table:
        yield "every_s", "a role that publishes needs `every_s`: how often it does so"
    elif does == "job":
        if not table.get("job"):
            yield "job", "a role that has a job done needs `job`: the name of the job"
        if "after_s" not in table and "every_s" not in table:
            yield "after_s", ("a job needs `after_s`: how long after the beginning of the "
                              "window it starts; or `every_s`: how often it does")  # fmt: skip
    elif does == "fault":
        yield from _of_a_fault(table)


def _of_a_reader(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "queries" not in table:
        yield "queries", ("a role that reads needs `queries`: what it asks, with the keys of "
                          "[queries], in [roles.NAME.queries]")  # fmt: skip
    paces = [key for key in READING_PACES if key in table]
    if not paces and "speed" not in table:
        yield "clients", ("a role that reads needs a pace: `clients`, which ask as fast as they "
                          "are answered, `rate_per_s`, `every_s`, `stages`, `times`, or `speed`, "
                          "at which its log is replayed")  # fmt: skip
    elif len(paces) > 1:
        yield paces[1], f"`{paces[0]}` and `{paces[1]}` are two paces of one role; keep one"
    elif paces and paces[0] != "times" and "speed" in table:
        yield "speed", f"`speed` is for a replay, and this role has `{paces[0]}`; keep one"
    if "arrivals" in table and not {"rate_per_s", "stages"} & table.keys():
        yield "arrivals", "`arrivals` is for a role with `rate_per_s` or `stages`"
    if "think_s" in table and "clients" not in table:
        yield "think_s", "`think_s` is the pause of `clients`, and there are none"
    if "after_s" in table and "every_s" not in table:
        yield "after_s", "`after_s` is only for a role with `every_s`: when it first asks"
    if "clients" in table and "connections" in table:
        yield "connections", "each of the `clients` has a connection; leave `connections` out"
    if "stages" in table:
        yield from _of_stages(table["stages"], "reader")


def _of_a_fault(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not table.get("fault"):
        yield "fault", 'a fault needs `fault`: "kill", "stop" or "freeze"'
    if table.get("after_s") == 0:
        yield "after_s", AFTER_A_WHILE


def _of_a_writer(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    paces = [key for key in PACES if key in table]
    if not paces:
        wrong = "a writer needs a pace: `documents_per_s`, `every_s`, `stages`, `times`, or"
        yield "documents_per_s", f"{wrong} `clients`, which send as fast as the system accepts"
    elif len(paces) > 1:
        yield paces[1], f"`{paces[0]}` and `{paces[1]}` are two paces of one writer; keep one"
    if "arrivals" in table and not {"documents_per_s", "stages"} & table.keys():
        yield "arrivals", "`arrivals` is for a writer with `documents_per_s` or `stages`"
    if "speed" in table and "times" not in table:
        yield "speed", "`speed` is that of a file of `times`, and there is none"
    if "stages" in table:
        yield from _of_stages(table["stages"])
    if "documents" in table and "share" in table:
        yield "share", "`documents` and `share` both say how many are kept back; keep one"
    given = [table[key] for key in ("insert", "update", "delete") if key in table]
    if given and not any(given):
        yield "insert", "`insert`, `update` and `delete` are all 0: nothing is written"
    if "after_s" in table and "every_s" not in table:
        yield "after_s", "`after_s` is only for a writer with `every_s`: when it first writes"
    if "clients" in table and "connections" in table:
        yield "connections", "each of the `clients` has a connection; leave `connections` out"


def _of_stages(given: Any, who: str = "writer") -> Iterator[tuple[str, str]]:
    try:
        made = stages_of(given)
    except ValueError as error:
        yield "stages", str(error)
        return
    if not any(stage.requests for stage in made):
        yield "stages", f"all rates of `stages` are 0; for a {who} that does nothing: idle = true"


def resolve(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table of a role with the defaults of what it does put in."""
    own = ("does", "idle", *_OF[str(table["does"])])
    usual = defaults(ROLE_KEYS).items()
    full = {k: v for k, v in usual if k in own and k not in _ONLY_GIVEN} | dict(table)
    if full["does"] == "read":
        full |= _read_resolved(table)
    if full["does"] == "write":
        weights = ("insert", "update", "delete")
        some = any(full[key] for key in weights)
        full |= {key: float(full[key] or 0.0) for key in weights}
        if not some:
            full["insert"] = 1.0
        if full["insert"] and full["documents"] is None and full["share"] is None:
            full["share"] = KEPT_BACK_SHARE
    return full


def _read_resolved(table: Mapping[str, Any]) -> dict[str, Any]:
    """What a role that reads has by default, and others have not."""
    found: dict[str, Any] = {"queries": dict(table["queries"])}
    if "rate_per_s" in table or "stages" in table:
        found["arrivals"] = table.get("arrivals", "poisson")
    if "connections" not in table and table.get("clients") is None:
        found["connections"] = 1 if "every_s" in table else _POOL
    return found


def cycle_s(tables: Mapping[str, Mapping[str, Any]]) -> float:
    """The most seconds from one time to the next of what roles do again and again, idle or not; 0:
    none of them has such a clock.
    """
    return max((float(t["every_s"]) for t in tables.values() if t.get("every_s")), default=0.0)


def whole_cycles_s(tables: Mapping[str, Mapping[str, Any]], seconds: float) -> float:
    """A window of at least ``seconds`` in which what roles do again and again is begun as often
    in proportion as in any other. Also where they are idle: both are then searched alike.
    """
    cycle = cycle_s(tables)
    return cycle * max(1, math.ceil(seconds / cycle - 1e-9)) if cycle else seconds


def is_random(table: Mapping[str, Any]) -> bool:
    """Does a role send at random instants?"""
    return table.get("arrivals") == "poisson"


def only_reads(tables: Mapping[str, Mapping[str, Any]]) -> bool:
    """Do all of these roles read? Then nothing changes, and trials can share an index."""
    return all(table["does"] == "read" for table in tables.values())


def is_idle(table: Mapping[str, Any]) -> bool:
    """Does a role, its defaults put in, do nothing?"""
    rates = (table.get(key) for key in ("documents_per_s", "rate_per_s", "clients"))
    return bool(table.get("idle")) or 0 in rates
