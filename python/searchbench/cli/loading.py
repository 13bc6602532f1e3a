"""From the options of ``searchbench load`` and ``searchbench drnbench`` to a load run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchbench.errors import SearchbenchError

_SLO_NEEDED = "--find-capacity needs a promise: --slo 'p99 < 50ms, errors < 0.1%'"
_USUAL_CONNECTIONS = 256
_USUAL_S = 10.0
_USUAL_WARMUP_S = 1.0
_OF_PROBES = ("seconds", "warmup_s")  # a search chooses these for each probe


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What was asked for; the fields are the options of ``searchbench load``.

    ``method``: of requests that name none. ``finish``: called with the record and its judgement.
    """

    targets: Sequence[str]
    requests: Path | None = None
    form: str = "auto"
    clients: str | None = None
    rate: str | None = None
    replay: float | None = None
    find_capacity: bool = False
    slo: str | None = None
    effort: float = 1.0
    seconds: float | None = None
    warmup: float | None = None
    pause: float = 0.0
    repeat: int = 1
    think: float = 0.0
    arrivals: str = "poisson"
    connections: int | None = None
    order: str = "logged"
    spread: str = "keep"
    timeout: float = 10.0
    cache_hit: float | None = None
    cache_entries: int | None = None
    cache_law: str = "uniform"
    engine: str | None = None
    study: Path | None = None
    system: str | None = None
    captures: int = 200
    machines: str | None = None
    ssh: str = "ssh"
    client_command: str = "searchbench-client"
    idle: str = "hybrid"
    realtime: bool = False
    cpus: str | None = None
    seed: int = 1
    remote: bool = False
    record: Path | None = None
    report: bool = True
    as_json: bool = False
    method: str | None = None
    finish: Callable[[Any, Any], None] | None = None

    @property
    def load(self) -> dict[str, Any]:
        """What all steps share, as a ``[load]`` table."""
        table: dict[str, Any] = {
            "seconds": _USUAL_S if self.seconds is None else self.seconds,
            "warmup_s": _USUAL_WARMUP_S if self.warmup is None else self.warmup,
            "order": self.order,
            "timeout_s": self.timeout, "idle": self.idle,
        }  # fmt: skip
        if self.cpus:
            try:
                table["cpus"] = [int(n) for n in self.cpus.split(",")]
            except ValueError:
                raise SearchbenchError(
                    f"--cpus {self.cpus!r}: say the numbers of processors, as in 2,3"
                ) from None
        return table


def numbers(text: str, option: str) -> list[float]:
    """``4``, ``1,2,4``, ``1:20:2`` (from, to, by; the last is always there). With the remedy."""
    wrong = SearchbenchError(
        f"{option} {text!r} is no number, no list (1,2,4) and no range (1:20:2: from, to, by)"
    )
    found: list[float] = []
    for part in text.split(","):
        try:
            values = [float(v) for v in part.split(":")]
        except ValueError:
            raise wrong from None
        if len(values) == 1:
            found += values
            continue
        first, last, by = (*values, 1.0)[:3]
        if len(values) > 3 or by <= 0 or last < first:
            raise wrong
        count = int((last - first) / by + 1e-9) + 1
        found += [first + i * by for i in range(count)]
        if found[-1] < last:
            found.append(last)
    if any(not value > 0 for value in found):
        raise SearchbenchError(f"{option} {text!r}: every number must be above 0")
    return list(dict.fromkeys(found))


def specs(asked: Asked, log_s: float | None = None) -> tuple[str, list[dict[str, Any]]]:
    """The load key that varies, and a ``[load]`` table for each step.

    ``log_s``: from the first to the last request of a log, which a replay lasts if not told.
    """
    ways = [w for w in ("clients", "rate", "replay") if getattr(asked, w) is not None]
    if asked.find_capacity:
        ways.append("find-capacity")
    if len(ways) > 1:
        raise SearchbenchError(
            f"--{' and --'.join(ways)}: a run has one kind of load; give one of them"
        )
    pool = {"connections": asked.connections or _USUAL_CONNECTIONS}
    if asked.find_capacity:
        shared = {**asked.load, **pool, "kind": "open", "arrivals": asked.arrivals}
        return "rate_per_s", [{k: v for k, v in shared.items() if k not in _OF_PROBES}]
    if asked.rate is not None:
        rates = numbers(asked.rate, "--rate")
        shared = {**asked.load, **pool, "kind": "open", "arrivals": asked.arrivals}
        return "rate_per_s", [{**shared, "rate_per_s": rate} for rate in rates]
    if asked.replay is not None:
        if log_s is None:
            raise SearchbenchError(
                "--replay sends requests when a log says, and these have no times; give a log "
                "that has, or JSON lines with `t` in seconds"
            )
        table = {**asked.load, **pool, "kind": "replay", "speed": asked.replay}
        if asked.warmup is None:
            table["warmup_s"] = 0.0
        if asked.seconds is None:
            # To just after the last, which is one of the log too.
            table["seconds"] = max(0.001, log_s / asked.replay + 0.001 - table["warmup_s"])
        return "speed", [table]
    if asked.connections is not None:
        raise SearchbenchError(
            "--connections is the pool of an open loop; a closed loop has a connection for each "
            "client: say --clients"
        )
    counts = numbers(asked.clients or "1", "--clients")
    broken = [n for n in counts if n != int(n)]
    if broken:
        raise SearchbenchError(f"--clients {broken[0]:g}: there are no parts of clients")
    shared = {**asked.load, "kind": "closed", "think_s": asked.think}
    return "clients", [{**shared, "clients": int(n)} for n in counts]


def check(asked: Asked) -> None:
    """What can be wrong with the options by themselves, before anything is asked of anybody."""
    from searchbench.analysis.capacity import promise

    if asked.spread not in ("keep", "round"):
        raise SearchbenchError(f"--spread {asked.spread!r}: there are keep and round")
    if asked.find_capacity and asked.slo is None:
        raise SearchbenchError(_SLO_NEEDED)
    if asked.slo is not None:
        promise.parse(asked.slo)
        if not asked.find_capacity:
            raise SearchbenchError("--slo is the promise of a search: add --find-capacity")
    if asked.pause < 0:
        raise SearchbenchError(f"--pause {asked.pause:g}: no time goes backwards")
    if asked.repeat < 1:
        raise SearchbenchError(f"--repeat {asked.repeat}: every step is driven once at least")
    if asked.find_capacity and asked.repeat != 1:
        raise SearchbenchError("--repeat is of steps; a search repeats what it needs (--effort)")


def carry_out(asked: Asked) -> int:
    """The whole run; the exit code."""
    from searchbench.cli.live import LiveLine
    from searchbench.cli.progress import duration
    from searchbench.lab.conduct.load import LoadRun, steps_of
    from searchbench.lab.system.address import parse_target
    from searchbench.lab.system.systems import make_ready, names_are_apart
    from searchbench.workload.loads import SPEC_KEYS, open_load

    if not asked.targets:
        raise SearchbenchError(
            "say what to load, as in: searchbench load http://127.0.0.1:10041 --requests paths.txt"
        )
    check(asked)
    targets = [parse_target(text, remote=asked.remote) for text in asked.targets]
    names_are_apart(targets)
    spread: Any = asked.spread
    requests, ready = requests_of(asked, targets[0].path)
    times_s = requests.times_s
    key, tables = specs(asked, None if times_s is None else float(times_s[-1] - times_s[0]))
    for table in tables:
        # A study's reader holds these for a study; here nobody has looked yet.
        wrong = (k.mismatch(table[k.name]) for k in SPEC_KEYS if k.name in table)
        for sentence in filter(None, wrong):
            raise SearchbenchError(sentence)
    loads = [] if asked.find_capacity else [(t, open_load(t, Path())) for t in tables]
    if requests.bad_count:
        first = "; ".join(str(line) for line in requests.bad[:3])
        sys.stderr.write(f"{requests.bad_count:,} lines of {requests.name} are left out: {first}\n")
    ready |= {"remote": asked.remote, "timeout_s": asked.timeout, "captures": asked.captures}
    systems = [make_ready(target, requests, **ready) for target in targets]
    cache = None
    if asked.cache_hit is not None:
        from searchbench.cli.cached import cache_plan

        cache = cache_plan(systems, requests, asked.cache_hit, asked.cache_entries, asked.cache_law)
    steps = steps_of(systems, loads, key)
    place = asked.record or Path("records") / time.strftime("load-%Y%m%d-%H%M%S")
    seconds = asked.repeat * sum(s.load.expected_s() + asked.pause for s in steps)
    with ExitStack() as stack:
        if asked.machines:
            fleet = stack.enter_context(fleet_of(asked))
            for one in systems:
                one.fleet = fleet
        watch = stack.enter_context(LiveLine())
        run = LoadRun(
            systems, requests, place, question_of(asked, systems), text_of(asked),
            judging_of(asked, key, tables, [s.name for s in systems]), watch, asked.seed,
            spread, asked.realtime, cache,
        )  # fmt: skip
        what = (
            f"{len(steps)} load steps, about {duration(seconds)}" if steps else "at most 9 probes"
        )
        sys.stderr.write(f"{what}; record: {place}\n")
        try:
            if asked.find_capacity:
                from searchbench.cli.capacity import find_capacity

                find_capacity(run, asked.slo or "", tables[0], effort=asked.effort)
            else:
                run.carry_out(steps, blocks=asked.repeat, pause_s=asked.pause)
        except KeyboardInterrupt:
            sys.stderr.write("\ninterrupted\n")
            if not any((place / "trials").glob("*/trial.json")):
                return 130
            show(asked, run.record, place)
            return 130
    return show(asked, run.record, place)


def fleet_of(asked: Asked) -> Any:
    """The client machines; a context."""
    import shlex

    from searchbench.lab.fleet.fleet import Fleet

    names = [name.strip() for name in (asked.machines or "").split(",") if name.strip()]
    return Fleet(names, shlex.split(asked.ssh), asked.client_command)


def requests_of(asked: Asked, path: str) -> tuple[Any, dict[str, Any]]:
    """The requests (of a file, of a study, or the one that the target's own path is).

    And with them what ``make_ready`` has to know of how they are sent.
    """
    import numpy as np

    from searchbench.workload.verbatim.files import read_requests
    from searchbench.workload.verbatim.model import Ask, RequestSet

    ready: dict[str, Any] = {"engine": asked.engine}
    if asked.study is not None:
        return _studied(asked)
    if asked.requests is not None:
        if path not in ("", "/"):
            raise SearchbenchError(
                f"{path} in the target and a file of requests: the file says what is sent; leave "
                "the path away"
            )
        return read_requests(asked.requests, asked.form, method=asked.method), ready
    if not path:
        raise SearchbenchError(
            "nothing to send: give --requests FILE, or a path in the target "
            "(http://127.0.0.1:10041/d/status)"
        )
    return RequestSet(path, (Ask(path, asked.method or "GET"),), np.zeros(1, np.uint32)), ready


def _studied(asked: Asked) -> tuple[Any, dict[str, Any]]:
    from searchbench.lab.conduct.studied import studied
    from searchbench.lab.conduct.studies import Silence

    if asked.requests is not None:
        raise SearchbenchError("--requests and --study: a run has one source of requests")
    assert asked.study is not None
    found = studied(asked.study, asked.system, Silence())
    if found.unsupported:
        sys.stderr.write(
            f"{found.unsupported} queries cannot be expressed by {found.engine} and are left out\n"
        )
    ready = {"engine": found.engine, "to_bytes": found.encode, "whole": found.whole}
    return found.requests, ready


def question_of(asked: Asked, systems: Sequence[Any]) -> str:
    """What the run answers, in a sentence."""
    names = ", ".join(s.name for s in systems)
    if asked.find_capacity:
        return f"What rate does {names} bear with {asked.slo}?"
    if asked.replay is not None:
        return f"How does {names} answer the log at {asked.replay:g} times its own speed?"
    what = "requests a second" if asked.rate is not None else "clients"
    return f"What does {names} bear, by {what}?"


def judging_of(
    asked: Asked, key: str, tables: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> dict[str, Any]:
    """The table ``judging`` of plan.json; ``kind`` "load" tells it from a study's."""
    factors: dict[str, list[Any]] = {"system": list(names)} if len(names) > 1 else {}
    factors[f"load.{key}"] = [table[key] for table in tables if key in table]
    return {
        "kind": "load",
        "question": "",
        "analysis": "",
        "held": {},
        "metric": "throughput" if key == "clients" else "response_p99",
        "agreement": {"require": "totals", "k": 10},
        "control": None,
        "replicates": asked.repeat,
        "ingest": "attached",
        "factors": factors,
        "slo": asked.slo,
        "command": sys.argv[1:],
    }


def text_of(asked: Asked) -> str:
    """What stands in the record for the study file: the command."""
    import shlex

    return f"searchbench {shlex.join(sys.argv[1:])}\n"


def show(asked: Asked, record: Any, place: Path) -> int:
    """Judge the record, print the answer, write the page."""
    from searchbench.analysis.judge import judge, steps_json
    from searchbench.cli import out
    from searchbench.cli.report import show as show_judgement

    judgement = judge(record)
    if asked.as_json:
        out.as_json(steps_json(judgement))
    else:
        show_judgement(judgement)
    if asked.report:
        from searchbench.report import write_report

        written = write_report(record, judgement, place / "report")
        if not asked.as_json:
            out.say(f"\nreport: {written.html}")
    if asked.finish is not None:
        asked.finish(record, judgement)
    return 1 if any(t["status"] != "ok" for t in record.trials) else 0
