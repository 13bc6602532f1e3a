"""The keys of a study that no other part declares: beside the tables, and of the small tables."""

from __future__ import annotations

from searchbench.spec import SpecKey
from searchbench.study.access import ACCESS_KEYS
from searchbench.workload.verbatim.files import FORMS

TOP_KEYS: tuple[SpecKey, ...] = (
    SpecKey("question", "text", None, "what you want to know; the report answers it"),
    SpecKey("analysis", "text", "", "what to look for, and what the study cannot show; "
            "the report has it"),
    SpecKey("seed", "integer", 1, "seed of everything that is drawn or shuffled", minimum=0,
            maximum=2**53),
    SpecKey("replicates", "integer", None, "blocks, each with every treatment once (default 3; for "
            "a sweep or a search for capacity 1)", minimum=1, maximum=1000),
    SpecKey("first_look", "boolean", False, "the report decides nothing; `run --quick` sets it "
            "and cuts blocks, windows, documents and queries"),
    SpecKey("exclude", "list", (), "crossings that are not to be run, with the reason"),
    SpecKey("command", "texts", None, "the command line that wrote this study; `searchbench load` "
            "writes it"),
)  # fmt: skip
CONTROL_KEYS: tuple[SpecKey, ...] = (
    SpecKey("aa", "boolean", None, "measure one treatment twice in each block, to know the noise "
            "(default true; sweeps and searches for capacity have no control)"),
    SpecKey("treatment", "text", None, "which one, by its id in the plan; default: each in turn"),
)  # fmt: skip
INGEST_KEYS: tuple[SpecKey, ...] = (
    SpecKey("index", "text", None, "how long an index is used before it is built anew (default "
            "per-block); as-found: attached systems are taken as they are, their documents are "
            "neither counted nor put in (default with [requests])",
            ("per-block", "per-trial", "once", "as-found")),
)  # fmt: skip
AGREEMENT_KEYS: tuple[SpecKey, ...] = (
    SpecKey("require", "text", "totals", "what must be the same before speeds are compared",
            ("totals", "set", "order", "none")),
    SpecKey("k", "integer", 10, "how many hits are compared", minimum=1, maximum=10_000),
    SpecKey("captures", "integer", 200, "with [requests]: how many distinct ones are asked once, "
            "outside the measurement, to compare their replies; 0: none", minimum=0,
            maximum=10_000_000),
    SpecKey("capture", "text", "before", "when each distinct query is asked once: before the "
            "drive, or after it, so that the drive is the first to ask it",
            ("before", "after")),
)  # fmt: skip
SYSTEM_KEYS: tuple[SpecKey, ...] = (
    SpecKey("engine", "text", None, "the engine's name; default: NAME. With [requests] it may be "
            'absent (it is recognised when the system answers) or "none" (replies are taken as '
            "they are)"),
    SpecKey("attach", "texts", None, "HOST:PORT or a URL (http://, https://, mysql://, "
            "postgres://, sphinxql://, sphinx://, frames://; over TLS mysql+tls://, "
            "postgres+tls://, sphinxql+tls://) of one that already runs, or a list of them; it is "
            "then neither started nor stopped"),
    SpecKey("remote", "boolean", False, "its addresses may be another machine's (else only "
            "loopback is allowed): a load test is an attack on whoever did not ask for it"),
    *ACCESS_KEYS,
)  # fmt: skip
REQUEST_KEYS: tuple[SpecKey, ...] = (
    SpecKey("file", "path", None, "a file of requests: paths, JSON, SQL statements, or a log that "
            "a server wrote; also .gz, .zst"),
    SpecKey("form", "text", "auto", "what the file is, where its name and content do not tell",
            ("auto", *FORMS)),
    SpecKey("path", "text", None, "one path that HTTP systems are asked for, in place of a "
            "file"),
    SpecKey("method", "text", None, "method of HTTP requests that name none; default: POST "
            "where there is a body, else GET"),
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
TABLES = (
    "corpus", "queries", "requests", "systems", "load", "factors", "held", "control", "ingest",
    "agreement", "verdict",
)  # fmt: skip
