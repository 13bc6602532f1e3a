"""The keys of a study that no other part declares: beside the tables, and of the small tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from searchbench.places.keys import HOST_KEYS, PLACE_KEYS, STORAGE_KEYS
from searchbench.spec import SpecKey
from searchbench.study.access import ACCESS_KEYS
from searchbench.workload.verbatim.files import FORMS

TOP_KEYS: tuple[SpecKey, ...] = (
    SpecKey("question", "text", None, "what you want to know; the report answers it"),
    SpecKey("analysis", "text", "", "what to look for, and what the study cannot show; the "
            "report shows it"),
    SpecKey("seed", "integer", 1, "seed of what is generated, and of the order of the trials",
            minimum=0, maximum=2**53),
    SpecKey("draw_seed", "integer", None, "seed of the order in which requests are sent, and of "
            "when they are due. By default each run draws its own, so that the differences between "
            "runs include those between draws; the record keeps it", minimum=0, maximum=2**53),
    SpecKey("replicates", "integer", None, "how many blocks, each with every treatment once "
            "(default 3; for a sweep or a capacity search 1)", minimum=1, maximum=1000),
    SpecKey("first_look", "boolean", False, "the report decides nothing; `run --quick` sets this "
            "and cuts blocks, windows, documents and queries"),
    SpecKey("io_sizes", "boolean", False, "after all blocks, run one more trial of each treatment "
            "and trace the sizes of its reads and writes; no comparison uses that trial"),
    SpecKey("exclude", "list", (), "crossings to leave out, each with the reason"),
    SpecKey("command", "texts", None, "the command line that wrote this study; `searchbench load` "
            "writes it"),
)  # fmt: skip
CONTROL_KEYS: tuple[SpecKey, ...] = (
    SpecKey("aa", "boolean", None, "measure one treatment twice in each block, to know the noise "
            "(default true; sweeps and capacity searches have no control)"),
    SpecKey("treatment", "text", None, "which treatment is measured twice, by its id in the "
            "plan; default: each in turn"),
)  # fmt: skip
INGEST_KEYS: tuple[SpecKey, ...] = (
    SpecKey("index", "text", None, "how long an index is used before a new one is built (default "
            "per-block; with jobs always per-trial). as-found: attached systems are used as they "
            "are, and documents are neither counted nor put in (always so with [requests])",
            ("per-block", "per-trial", "once", "as-found")),
)  # fmt: skip
PUT_IN_KEYS: tuple[SpecKey, ...] = (
    SpecKey("batch", "integer", None, "most documents in one request (default 1000, and about 4 MB "
            "of text); 1: one by one. It does not apply if an engine's own program reads and "
            "indexes the documents",
            minimum=1, maximum=1_000_000),
    SpecKey("connections", "integer", None, "connections that put documents in at the same time "
            "(default 1). With several, the order of ingest is lost. Most engines break ties by "
            'it, and then need `require` = "totals" or "none" in [agreement]',
            minimum=1, maximum=256),
)  # fmt: skip
"""Of [ingest]; they may be factors."""
AGREEMENT_KEYS: tuple[SpecKey, ...] = (
    SpecKey("require", "text", "totals", "what must be the same in two systems' answers to a "
            "query, so that their speeds on it are compared", ("totals", "set", "order", "none")),
    SpecKey("k", "integer", 10, "how many of the first hits are compared", minimum=1,
            maximum=10_000),
    SpecKey("captures", "integer", 200, "with [requests]: how many distinct requests are sent "
            "once, outside the measurement, to compare the replies; 0: none", minimum=0,
            maximum=10_000_000),
    SpecKey("capture", "text", "before", "when each distinct query is sent once to keep its "
            "reply: before the drive, or after it, so that the drive is the first to send it",
            ("before", "after")),
)  # fmt: skip
SYSTEM_KEYS: tuple[SpecKey, ...] = (
    SpecKey("engine", "text", None, "the engine's name; default: NAME. With [requests] it can be "
            'left out (the engine is then recognised by its answers) or "none" (replies are not '
            "decoded)"),
    SpecKey("place", "text", None, "name of the place where the system is started; if there is "
            "only one [places.NAME], all systems are started there"),
    SpecKey("agents", "texts", None, "for each agent, in order, the name of its host; a host that "
            "is named twice has two agents"),
    SpecKey("attach", "texts", None, "HOST:PORT or a URL (http://, https://, mysql://, "
            "postgres://, sphinxql://, sphinx://, frames://; over TLS mysql+tls://, "
            "postgres+tls://, sphinxql+tls://) of a system that already runs, or a list of its "
            "addresses; it is then neither started nor stopped"),
    SpecKey("remote", "boolean", False, "allow addresses of other machines; otherwise only "
            "loopback is allowed, because a load test of a machine whose owner did not agree to "
            "it is an attack"),
    *ACCESS_KEYS,
)  # fmt: skip
REQUEST_KEYS: tuple[SpecKey, ...] = (
    SpecKey("file", "path", None, "a file of requests: paths, JSON, SQL statements, or a log that "
            "a server wrote; also .gz, .zst"),
    SpecKey("form", "text", "auto", "the form of the file, if its name and content do not show it",
            ("auto", *FORMS)),
    SpecKey("classes", "text", None, "class the requests, in place of any class that the file "
            "says: path, shape (as `searchbench logs` classes them), words, or parameter:NAME"),
    SpecKey("path", "text", None, "one path to send to HTTP systems, in place of a file"),
    SpecKey("method", "text", None, "method of HTTP requests that do not name one; default: POST "
            "if there is a body, else GET"),
)  # fmt: skip
METRICS = (
    "throughput",
    *(f"{time}_{q}" for time in ("service", "response")
      for q in ("p50", "p90", "p95", "p99", "p999", "mean", "max")),
)  # fmt: skip
VERDICT_KEYS: tuple[SpecKey, ...] = (
    SpecKey("metric", "text", None, "the metric that decides; default: throughput for closed "
            "loops, else response_p99", METRICS),
)  # fmt: skip


def verdict_keys(jobs: Iterable[str], *, driven: bool) -> tuple[SpecKey, ...]:
    """The same for a study with these jobs, whose times are metrics too."""
    times = tuple(f"{job}_s" for job in jobs)
    if not times:
        return VERDICT_KEYS
    doc = "the metric that decides; default: the time of the first job"
    return (SpecKey("metric", "text", None, doc, (*times, *(METRICS if driven else ()))),)


PLACED_KEYS: Mapping[str, tuple[SpecKey, ...]] = {
    "places": PLACE_KEYS, "hosts": HOST_KEYS, "storages": STORAGE_KEYS,
}  # fmt: skip
"""Tables of tables, each with a name."""
TABLES = (
    "corpus", "queries", "requests", "operations", "systems", *PLACED_KEYS, "jobs", "load",
    "roles", "factors", "held", "control", "ingest", "agreement", "verdict",
)  # fmt: skip
