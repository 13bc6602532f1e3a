"""The ``[load]`` table: its keys, what goes together, and its tables with the defaults put in.

A table may describe several loads: a list of steps (a sweep), or ``find_capacity``, a search that
chooses its rates itself. Whoever plans resolves those into the tables of single loads, which
``loads.open_load`` takes.

Longer than most files, because what goes together is said beside the keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from searchbench.errors import SearchbenchError
from searchbench.spec import SpecKey, defaults, show
from searchbench.workload.shape import shape_of

WARMUP_LIMIT_S = 60.0
_MOST_CONNECTIONS = 65_535  # a sample names its connection in 16 bits
_PROMISE = "p99 < 50ms, errors < 0.1%"  # what one looks like, for sentences that ask for it

SPEC_KEYS: tuple[SpecKey, ...] = (
    SpecKey("kind", "text", None, "kind of loop; default: by the keys given",
            ("closed", "open", "replay")),
    SpecKey("clients", "integer", 1, "closed loop: how many clients, with a connection each. A "
            "list here: the steps of a sweep on one warm system. As a factor: the system is "
            "started anew for each level",
            minimum=1, maximum=_MOST_CONNECTIONS,
            also=("threads", "users", "workers", "concurrency")),
    SpecKey("think_s", "number", 0.0, "closed loop: pause after each answer", minimum=0,
            maximum=3600),
    SpecKey("rate_per_s", "number", None, "open loop: requests a second. A list here: the steps of "
            "a sweep on one warm system. As a factor: the system is started anew for each level",
            above=0, maximum=10_000_000,
            also=("rate", "rps", "qps", "tps", "per_s", "requests_per_s", "queries_per_s")),
    SpecKey("arrivals", "text", "poisson", "open loop: gaps between requests: random "
            "(exponential), or all the same", ("poisson", "constant")),
    SpecKey("stages", "list or table", None, "open loop of several rates: [SECONDS, RATE] or, for "
            "a ramp, [SECONDS, FROM, TO] for each stage, as in [[60, 100], [30, 400], [60, 100]]. "
            "One stage is judged, the others are shown. As a table, the curve of a day of a log: "
            '{ log = "access.log", seconds = 600, peak_per_s = 400 }'),
    SpecKey("judged_stage", "integer", None, "which of the `stages`, counted from 1, is the "
            "measured window; default: the longest at one rate, of a log the busiest", minimum=1,
            maximum=100),
    SpecKey("capacity_per_s", "number", None, "requests a second that the system sustains, as a "
            "search or the user found it: the rates of `stages` are then shares of it, as in "
            "[[10, 0.5], [5, 1.5], [20, 0.5]]", above=0, maximum=10_000_000),
    SpecKey("connections", "integer", 64, "open loop and replay: size of the pool of connections",
            minimum=1, maximum=_MOST_CONNECTIONS),
    SpecKey("times", "path", None, "replay: a file of times in seconds, one a line, or JSONL with "
            "`t`; default: the query log's own"),
    SpecKey("speed", "number", 1.0, "replay: multiple of the log's own speed", above=0,
            maximum=1_000_000),
    SpecKey("order", "text", None, "the order in which the log is sent. stretches: 10 lines in a "
            "row, then 10 from elsewhere, so that any part of the drive is like the whole log; "
            "logged: in its own order, beginning at a line that the seed draws; shuffled: in "
            "random order; drawn: lines drawn at random, with repetitions (default: stretches; "
            "for a replay: logged)",
            ("stretches", "logged", "shuffled", "drawn")),
    SpecKey("warmup_s", "number", None, "a fixed warm-up: seconds before the measured window; "
            "default: a warm-up until steady (for a replay: 0). A capacity search takes it only "
            "with roles, and has one of at least this length before each trial", minimum=0,
            maximum=86_400),
    SpecKey("warmup_limit_s", "number", None, "a warm-up until steady ends after this "
            "many seconds in any case (default 60); the trial is then steady only if its window is "
            "shown to be", above=0,
            maximum=86_400),
    SpecKey("seconds", "number", None, "length of the measured window (default 10; a replay lasts "
            "as long as its log)", above=0, maximum=86_400,
            also=("duration", "duration_s", "window_s", "time_s")),
    SpecKey("warmup_requests", "integer", None, "requests before the measured ones", minimum=0,
            maximum=1_000_000_000),
    SpecKey("requests", "integer", None, "measured requests, instead of `seconds`", minimum=1,
            maximum=1_000_000_000),
    SpecKey("timeout_s", "number", 10.0, "an answer that takes longer than this is a timeout",
            above=0, maximum=3600),
    SpecKey("idle", "text", "hybrid", "how the measuring loop waits: block: it sleeps; spin: it "
            "keeps its core busy; hybrid: it sleeps, then spins shortly before something is due",
            ("hybrid", "block", "spin")),
    SpecKey("cpus", "numbers", None, "processors for the measuring loop, which pins a thread to "
            "each"),
    SpecKey("realtime", "boolean", False, "the measuring loop asks for real-time priority"),
    SpecKey("pause_s", "number", 0.0, "sweep: seconds of silence between steps", minimum=0,
            maximum=86_400),
    SpecKey("spread", "text", "keep", "for a system with several addresses. keep: each client "
            "keeps to one of them; round: requests go to all of them in turn", ("keep", "round")),
    SpecKey("find_capacity", "boolean", False, "search for the greatest rate that keeps the "
            "promise `slo`; the search chooses rates and windows itself"),
    SpecKey("slo", "promises", None, f'a promise ("{_PROMISE}"), or a list of them: a capacity '
            "search finds the greatest rate that keeps it; each step of a sweep is judged by it; "
            "of `stages` with an overload the first says which answers come in time. "
            'A promise may be a table by class: { autocomplete = "p99 < 50ms", "*" = "errors < 1%" '
            '}, where "*" is all requests; or a text: "autocomplete: p99 < 50ms; errors < 1%"'),
    SpecKey("abort", "boolean", False, "for a sweep with `slo`: end it as soon as a step has "
            "surely broken a promise"),
    SpecKey("effort", "number", 1.0, "for a capacity search: multiplies the length of its trials; "
            "below 0.3 the answer is rough: its intervals contain the truth in fewer than 95 % "
            "of cases, and it does not claim 95 %; below 1 too, if response times vary much",
            above=0, maximum=100),
    SpecKey("cache_hit", "number", None, "draw the requests so that the server's cache answers "
            "this share of them", minimum=0, maximum=1),
    SpecKey("cache_entries", "integer", None, "how many answers that cache holds; default: what "
            "the server reports", minimum=1, maximum=1_000_000_000),
    SpecKey("cache_law", "text", "uniform", "how popular the drawn requests are: uniform, zipf, or "
            "zipf:0.8 for an exponent other than 1"),
    SpecKey("machines", "texts", None, "machines that send the load, reached over ssh; default: "
            "this machine"),
    SpecKey("ssh", "text", "ssh", 'with `machines`: the command that reaches them, as in "ssh -p '
                                  '2222 -i key"'),
    SpecKey("client_command", "text", "searchbench-client", "with `machines`: the command that "
            "starts the load generator on them"),
)  # fmt: skip
STEP_KEYS = ("clients", "rate_per_s")
"""The keys that may hold a list: the steps of a sweep on one warm system."""
WHOLE_KEYS = ("find_capacity", "slo", "abort", "effort")
"""The keys that say what kind of measurement a study is; they have one value in all of it."""

# Which keys belong to one kind alone, and decide it where `kind` is not given.
_OF_KIND: Mapping[str, tuple[str, ...]] = {
    "closed": ("clients", "think_s"),
    "open": ("rate_per_s", "arrivals", "stages", "judged_stage", "capacity_per_s"),
    "replay": ("times", "speed"),
}
_LOOPS = {"closed": "a closed loop", "open": "an open loop", "replay": "a replay"}
# What a search chooses itself, trial by trial. (Its warm-ups too, but with roles: study/tables.py.)
_OF_SEARCH = (
    "rate_per_s", "stages", "judged_stage", "capacity_per_s", "seconds", "warmup_limit_s",
    "requests", "warmup_requests", "clients", "think_s", "times", "speed",
)  # fmt: skip
LONGEST_S = 120.0
"""The longest window of a trial of a search, times its effort."""
FEWEST = 20
"""Requests of such a trial, as they are expected, however little effort is wanted."""
LOWEST_PER_S = 1.0
"""The lowest rate that a search drives."""
WARMUP_SHARE = 0.15
"""How long its load runs before a window at least, as a share of the window."""
# Keys that say nothing without another one, each with what is then said.
_GOES_WITH: Mapping[str, Mapping[str, str]] = {
    "find_capacity": {
        "effort": "`effort` is that of a search: add find_capacity = true",
    },
    "stages": {
        "judged_stage": "`judged_stage` is one of the `stages`, and there are none",
        "capacity_per_s": "the rates of `stages` are shares of `capacity_per_s`, and there are "
        "none (a capacity search: find_capacity = true)",
    },
    "slo": {"abort": "`abort` ends a sweep that broke its promise: give one with `slo`"},
    "cache_hit": {
        "cache_entries": "`cache_entries` goes with `cache_hit`, the share that is wanted",
        "cache_law": "`cache_law` goes with `cache_hit`, the share that is wanted",
    },
    "machines": {
        "ssh": "`ssh` says how `machines` are reached, and there are none",
        "client_command": "`client_command` is what `machines` start, and there are none",
    },
}
_LAW = re.compile(r"uniform|zipf(?::([0-9]+(?:\.[0-9]+)?))?")
_GREATEST_EXPONENT = 10.0

_UNITS_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_QUANTILE = re.compile(rf"p{_NUMBER}\s*<\s*{_NUMBER}\s*(ns|us|µs|ms|s)")
_ERRORS = re.compile(rf"errors\s*<\s*{_NUMBER}\s*%")
_BETWEEN = re.compile(r"(,|\band\b)")
# A part of a promise that is for one class: its name, with quotation marks where it needs them.
_OF_CLASS = re.compile(r'\s*(?:"([^"]+)"|([^":;,<]+?))\s*:')
_PART = re.compile(r'(?:"[^"]*"|[^";])+')
_PLAIN_NAME = re.compile(r'[^":;,<]+')
EVERY = "*"
"""What stands for all classes in a promise that is a table."""


def kind_of(given: Mapping[str, Any]) -> str:
    """The kind of a ``[load]`` table, by ``kind`` or by the keys given; a search is open."""
    if given.get("kind"):
        return str(given["kind"])
    if given.get("find_capacity"):
        return "open"
    for kind in ("open", "replay"):
        if any(given.get(key) is not None for key in _OF_KIND[kind]):
            return kind
    return "closed"


def problems(
    given: Mapping[str, Any], varied: frozenset[str] = frozenset()
) -> Iterator[tuple[str, str]]:
    """(key, sentence) for everything wrong with a table whose single values fit their keys.

    ``given`` has only keys that were given; ``varied`` are those that are factors. The table may
    be that of a sweep or of a search.
    """
    kind = kind_of(given)
    if given.get("find_capacity"):
        yield from _search_problems(given)
    elif "kind" not in varied:
        for other, keys in _OF_KIND.items():
            for key in keys:
                if other != kind and given.get(key) is not None:
                    yield key, f"`{key}` is for {_LOOPS[other]}, and this load is {kind}"
        if kind == "closed" and given.get("connections") is not None:
            yield "connections", "a closed loop has a connection for each client; set `clients`"
        if kind == "open" and given.get("rate_per_s") is None and given.get("stages") is None:
            yield (
                "kind" if "kind" in given else "arrivals",
                "an open loop needs `rate_per_s` or `stages`",
            )
        if kind == "replay" and given.get("order") not in (None, "logged"):
            yield "order", 'a replay asks the log as it was: `order = "logged"`'
    if given.get("stages") is not None and not given.get("find_capacity"):
        yield from _shape_problems(given)
    for by_count, by_time in (
        ("requests", "seconds"),
        ("requests", "warmup_s"),
        ("requests", "warmup_limit_s"),
        ("warmup_requests", "seconds"),
    ):
        if given.get(by_count) is not None and given.get(by_time) is not None:
            yield by_count, f"give `{by_count}` or `{by_time}`, not both: one window, one measure"
    yield from _lonely(given)
    if given.get("warmup_requests") is not None and given.get("requests") is None:
        yield "warmup_requests", "`warmup_requests` goes with `requests`; set `warmup_s`"
    if given.get("warmup_limit_s") is not None:
        if given.get("warmup_s") is not None:
            yield (
                "warmup_limit_s",
                "`warmup_s` is a fixed warm-up and `warmup_limit_s` the limit of one until steady; "
                "leave one out",
            )
        if kind == "replay":
            yield "warmup_limit_s", "a replay is not warmed up until steady; set `warmup_s`"
    cpus = given.get("cpus") or []
    if any(c < 0 or c != int(c) for c in cpus) or len(set(cpus)) != len(cpus):
        yield "cpus", "`cpus` must be different numbers of processors, from 0"


def longest_window_s(effort: float) -> float:
    """How many seconds the window of a trial of a search may last."""
    return max(LONGEST_S * effort, FEWEST / LOWEST_PER_S)


def _search_problems(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is wrong with the table of a capacity search."""
    if given.get("kind") not in (None, "open"):
        told = show(given["kind"])
        yield "kind", f"a capacity search drives open loops; leave `kind = {told}` out"
    for key in _OF_SEARCH:
        if given.get(key) is not None:
            yield key, f"a capacity search chooses `{key}` itself; leave it out"
    if given.get("abort"):
        yield "abort", "a capacity search goes on after a broken promise; leave `abort` out"
    if not promises_of(given):
        key = "slo" if "slo" in given else "find_capacity"
        yield key, f'a capacity search needs a promise: slo = "{_PROMISE}"'


def _shape_problems(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is wrong with stages, and with what they say themselves."""
    if isinstance(given["stages"], Mapping):
        yield "stages", "`stages` from a log are for [load] itself, and not for a level of a factor"
        return
    try:
        told = _of_stages(given)
    except ValueError as error:
        yield "judged_stage" if "`judged_stage`" in str(error) else "stages", str(error)
        return
    for key, value in told.items():
        if given.get(key) not in (None, value):
            yield key, f"`stages` say how long and at what rate; leave `{key}` out"
    for key in ("warmup_limit_s", "requests", "warmup_requests"):
        if given.get(key) is not None:
            yield key, f"`stages` say how long it lasts; leave `{key}` out"


def _of_stages(given: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that follow from stages: the window is the one that is judged. ValueError."""
    shape = shape_of(given["stages"], given.get("judged_stage"), given.get("capacity_per_s"))
    return {
        "rate_per_s": shape.window.first,
        "seconds": shape.window.seconds,
        "warmup_s": shape.starts[shape.judged],
    }


def _lonely(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Keys that say nothing alone (at their default they do no harm), and the law of a cache."""
    usual = defaults(SPEC_KEYS)
    for needed, sentences in _GOES_WITH.items():
        if given.get(needed) is None or given[needed] is False:
            yield from (
                (key, said)
                for key, said in sentences.items()
                if given.get(key) is not None and given[key] != usual[key]
            )
    law = given.get("cache_law")
    if isinstance(law, str):
        found = _LAW.fullmatch(law)
        if not found or (found[1] and not 0 < float(found[1]) <= _GREATEST_EXPONENT):
            allowed = f"above 0 to {_GREATEST_EXPONENT:g}, as in zipf:0.8"
            yield (
                "cache_law",
                f"`cache_law` must be uniform, zipf, or zipf:EXPONENT ({allowed}), not {show(law)}",
            )


@dataclass(frozen=True, slots=True)
class Condition:
    """Fewer than ``allowed`` (share, 0..1) of the requests fail it.

    ``limit_ns``: a response of this or more fails it; None: only an outcome that is not ok does.
    ``of_class``: the class whose requests alone count; empty: all do. ``text`` names it.
    """

    text: str
    allowed: float
    limit_ns: float | None
    of_class: str = ""


def parse_promise(text: str) -> tuple[Condition, ...]:
    """The conditions of ``text``, which commas or "and" separate.

    Semicolons separate parts; a part may begin with the name of a class and a colon, and its
    conditions are then for that class. Whether a trace keeps them is judged elsewhere
    (analysis/capacity/promise.py). SearchbenchError for the first that is none, with the character
    at which it begins (from 1).
    """
    found: list[Condition] = []
    for at, part in _parts(text):
        named = _OF_CLASS.match(part)
        of_class = (named[1] or named[2]) if named else ""
        begins = named.end() if named else 0
        found += _conditions(part[begins:], at + begins, of_class)
    return tuple(found)


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """What semicolons separate, with where it begins; those between quotation marks do not."""
    at = 0
    while True:
        found = _PART.match(text, at)
        part = found[0] if found else ""
        yield at, part
        at += len(part)
        if at >= len(text):
            return
        at += 1


def _conditions(text: str, begins: int, of_class: str) -> list[Condition]:
    """The conditions of a part. ``begins``: where in the promise it does, for complaints."""
    found: list[Condition] = []
    before = f"{quoted(of_class)}: " if of_class else ""
    end = 0
    for number, part in enumerate(_BETWEEN.split(text)):
        start, end = end, end + len(part)
        if number % 2:  # what separates two conditions
            continue
        words = part.strip()
        quantile, errors = _QUANTILE.fullmatch(words), _ERRORS.fullmatch(words)
        if quantile and 0 < float(quantile[1]) < 100 and float(quantile[2]) > 0:
            share = 1 - float(quantile[1]) / 100
            limit = float(quantile[2]) * _UNITS_NS[quantile[3]]
            found.append(Condition(before + words, round(share, 12), limit, of_class))
        elif errors and 0 < float(errors[1]) <= 100:
            found.append(Condition(before + words, float(errors[1]) / 100, None, of_class))
        else:
            at = start + len(part) - len(part.lstrip()) if words else start
            at += begins
            where = f" (character {at + 1})" if at else ""
            raise SearchbenchError(
                f'"{words}"{where} is not a promise; give for example "{_PROMISE}" '
                "(pNN < TIME with ns, us, ms or s; errors < SHARE%)"
                + (f', for the class "{of_class}"' if of_class else "")
            )
    return found


def quoted(of_class: str) -> str:
    """The name of a class as it stands in a promise."""
    plain = _PLAIN_NAME.fullmatch(of_class) and of_class == of_class.strip()
    return of_class if plain else f'"{of_class}"'


def classes_promised(texts: Iterable[str]) -> tuple[str, ...]:
    """The classes that promises name, each once."""
    found = (c.of_class for text in texts for c in parse_promise(text))
    return tuple(dict.fromkeys(name for name in found if name))


def promises_of(given: Mapping[str, Any]) -> tuple[str, ...]:
    """The promises of a search, each as it was written; of a table as one text."""
    slo = given.get("slo")
    several = slo if isinstance(slo, list | tuple) else [] if slo is None else [slo]
    return tuple(one if isinstance(one, str) else _of_table(one) for one in several)


def _of_table(by_class: Mapping[str, str]) -> str:
    """A table with a promise for each class as one text; what is of all requests comes first."""
    whole = [text for name, text in by_class.items() if name == EVERY]
    named = [f"{quoted(name)}: {text}" for name, text in by_class.items() if name != EVERY]
    return "; ".join([*whole, *named])


def promise_problems(given: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """(index, sentence) for each promise that is none, or that was made before."""
    seen: dict[object, int] = {}
    for i, text in enumerate(promises_of(given)):
        try:
            made = tuple((c.of_class, c.allowed, c.limit_ns) for c in parse_promise(text))
        except SearchbenchError as error:
            yield i, str(error)
            continue
        if made in seen:
            yield i, f'"{text}" is the same promise as number {seen[made] + 1}'
        seen.setdefault(made, i)


def resolve(given: Mapping[str, Any]) -> dict[str, Any]:
    """The whole table: every key, ``kind`` decided, the window's defaults put in.

    A replay has no default window: it lasts as long as its log. Nor has a search, which chooses.
    """
    full = {**defaults(SPEC_KEYS), **given}
    full["kind"] = kind_of(given)
    full["order"] = full["order"] or ("logged" if full["kind"] == "replay" else "stretches")
    if full["find_capacity"]:
        return full
    if full["kind"] == "open" and full["stages"] is not None:
        return full | _of_stages(full)
    if full["kind"] == "replay":
        if full["requests"] is None and full["warmup_s"] is None:
            full["warmup_s"] = 0.0
    elif full["requests"] is None:
        full["seconds"] = 10.0 if full["seconds"] is None else full["seconds"]
        if full["warmup_s"] is None and full["warmup_limit_s"] is None:
            full["warmup_limit_s"] = WARMUP_LIMIT_S
    return full


def resolve_told(given: Mapping[str, Any]) -> dict[str, Any]:
    """The table of one load, without the keys that are not set or belong to another kind.

    Of a search it is what all of its trials share. Keys that nobody knows here are kept.
    """
    full = resolve(given)
    foreign = {k for kind, keys in _OF_KIND.items() if kind != full["kind"] for k in keys}
    if full["kind"] == "closed":
        foreign.add("connections")
    foreign.update(WHOLE_KEYS)
    for needed, lonely in _GOES_WITH.items():
        if full[needed] is None:
            foreign.update(lonely)
    return {k: v for k, v in full.items() if v is not None and k not in foreign}
