"""Endpoints that run already: options → a study's tables → its TOML → a study, run like any other.

What stands in the record is that study; ``searchbench run`` on it does the same again.
"""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from searchbench.errors import SearchbenchError, StudyError
from searchbench.lab.system.address import is_secured, named, target_of
from searchbench.lab.system.credentials import remember
from searchbench.measure.run import run
from searchbench.spec import nearest
from searchbench.study import Study, parse_study, read_study
from searchbench.study.inputs import look
from searchbench.study.model import key_of
from searchbench.study.planner import make_plan
from searchbench.study.read import base_of
from searchbench.workload.load_table import promises_of
from searchbench.workload.verbatim.headers import REFERENCE, is_open, parse

if TYPE_CHECKING:
    from searchbench.lab.conduct.watch import Watch
    from searchbench.record import Record

Numbers = str | int | float | Sequence[float]

_SLO_NEEDED = "--find-capacity needs a promise: --slo 'p99 < 50ms, errors < 0.1%'"
_CONNECTIONS = 256
_WINDOW_S, _WARMUP_S = 10.0, 1.0


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What was asked for; the fields are the options of ``searchbench load``.

    ``method``: of requests that name none. ``command``: the words of the command line.
    """

    targets: Sequence[str]
    requests: Path | str | None = None
    form: str = "auto"
    classes: str | None = None
    clients: Numbers | None = None
    rate: Numbers | None = None
    replay: float | None = None
    find_capacity: bool = False
    slo: str | Mapping[str, str] | Sequence[str | Mapping[str, str]] | None = None
    abort: bool = False
    effort: float = 1.0
    seconds: float | None = None
    warmup: float | None = None
    pause: float = 0.0
    repeat: int = 1
    think: float = 0.0
    arrivals: str = "poisson"
    connections: int | None = None
    order: str | None = None
    spread: str = "keep"
    timeout: float = 10.0
    cache_hit: float | None = None
    cache_entries: int | None = None
    cache_law: str = "uniform"
    engine: str | None = None
    study: Path | str | None = None
    system: str | None = None
    captures: int = 200
    machines: str | Sequence[str] | None = None
    ssh: str = "ssh"
    client_command: str = "searchbench-client"
    idle: str = "hybrid"
    realtime: bool = False
    cpus: str | Sequence[int] | None = None
    seed: int | None = None
    remote: bool = False
    ca: Path | str | None = None
    insecure: bool = False
    cert: Path | str | None = None
    key: Path | str | None = None
    server_name: str | None = None
    header: Sequence[str] | None = None
    compressed: bool = False
    method: str | None = None
    command: tuple[str, ...] = ()


def load(
    *targets: str, record: Path | str | None = None, watch: Watch | None = None, **options: Any
) -> Record:
    """Measure what load running systems sustain; the record.

    ``options``: the fields of ``Asked``, for example ``requests="paths.txt", clients=[1, 2, 4]``.
    ``record``: the folder, ``records/load-TIME`` if None. TypeError for an unknown option,
    SearchbenchError for one that does not fit.
    """
    study = study_of(Asked(targets=targets, **options))
    return run(study, record or usual_record(), watch=watch)


def usual_record() -> Path:
    """Where a record goes that nobody named."""
    return Path("records") / time.strftime("load-%Y%m%d-%H%M%S")


def study_of(asked: Asked) -> Study:
    """The study that these options mean; SearchbenchError where they do not fit together."""
    _check(asked)
    base = Path.cwd() if asked.study is None else base_of(Path(asked.study))
    text = tomli_w.dumps(_tables(asked))
    try:
        return parse_study(text, "the options", base)
    except StudyError as error:
        # The lines of a file that nobody wrote would help nobody.
        told = [c.message + (f" ({c.hint})" if c.hint else "") for c in error.complaints]
        raise SearchbenchError("; ".join(dict.fromkeys(told))) from None


def _check(asked: Asked) -> None:
    """What can be wrong with the options by themselves, before anything is asked of anybody."""
    if not asked.targets:
        raise SearchbenchError(
            "name what to load, as in: searchbench load http://127.0.0.1:10041 --requests paths.txt"
        )
    if asked.spread not in ("keep", "round"):
        raise SearchbenchError(f"--spread {asked.spread!r}: use keep or round")
    if asked.find_capacity and asked.slo is None:
        raise SearchbenchError(_SLO_NEEDED)
    if asked.abort and asked.slo is None:
        raise SearchbenchError("--abort ends a run that broke its promise: give one with --slo")
    if asked.pause < 0:
        raise SearchbenchError(f"--pause {asked.pause:g}: a pause lasts 0 seconds or more")
    if asked.repeat < 1:
        raise SearchbenchError(f"--repeat {asked.repeat}: every step is driven at least once")
    if asked.find_capacity and asked.repeat != 1:
        raise SearchbenchError(
            "--repeat is for steps; a search repeats what it needs (--effort makes it longer)"
        )
    chosen = {"--seconds": asked.seconds, "--warmup": asked.warmup, "--think": asked.think or None}
    for option, value in chosen.items():
        if asked.find_capacity and value is not None:
            raise SearchbenchError(
                f"{option} is for steps; a search chooses its windows and warm-ups itself: leave "
                "it out (--effort makes them longer)"
            )
    if asked.requests is not None and asked.study is not None:
        raise SearchbenchError("--requests and --study: a run has one source of requests")


def _tables(asked: Asked) -> dict[str, Any]:
    """The study as plain tables, as they stand in its TOML."""
    systems, path = _systems(asked)
    found: dict[str, Any] = {"question": _question(asked, list(systems))}
    if asked.command:
        shown = {text: _recorded(text) for text in asked.header or ()}
        found["command"] = [_replaced(word, shown) for word in asked.command]
    found |= _given(seed=asked.seed, draw_seed=asked.seed) | {"replicates": asked.repeat}
    found |= {"agreement": {"captures": asked.captures}, "load": _load(asked)}
    if asked.study is None:
        return {**found, "requests": _requests(asked, path), "systems": systems}
    corpus, queries, engine = _studied(Path(asked.study), asked.system)
    systems = {name: {**engine, **table} for name, table in systems.items()}
    queries |= _given(classes=asked.classes)
    found |= {"ingest": {"index": "as-found"}, "corpus": corpus, "queries": queries}
    return {**found, "systems": systems}


def _numbers(text: Numbers, option: str) -> list[float]:
    """``4``, ``1,2,4``, ``1:20:2`` (from, to, by; the last is always there). With the remedy."""
    if not isinstance(text, str):
        return [float(v) for v in ([text] if isinstance(text, int | float) else text)]
    wrong = SearchbenchError(
        f"{option} {text!r} is neither a number nor a list (1,2,4) nor a range (1:20:2: from, "
        "to, by)"
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
        if len(values) <= 3 and last < first:
            raise SearchbenchError(
                f"{option} {text!r}: the range goes backwards; give the smaller end first, as in "
                f"{last:g}:{first:g}"
            )
        if len(values) > 3 or by <= 0:
            raise wrong
        count = int((last - first) / by + 1e-9) + 1
        found += [first + i * by for i in range(count)]
        if found[-1] < last:
            found.append(last)
    if any(not value > 0 for value in found):
        raise SearchbenchError(f"{option} {text!r}: every number must be above 0")
    return list(dict.fromkeys(found))


def _load(asked: Asked) -> dict[str, Any]:
    """The [load] table."""
    ways = [w for w in ("clients", "rate", "replay") if getattr(asked, w) is not None]
    if asked.find_capacity:
        ways.append("find-capacity")
    if len(ways) > 1:
        raise SearchbenchError(
            f"--{' and --'.join(ways)}: a run has one kind of load; give one of them"
        )
    shared = _shared(asked)
    pool = {"connections": asked.connections or _CONNECTIONS}
    opened = {**shared, **pool, "kind": "open", "arrivals": asked.arrivals}
    if asked.find_capacity:
        return {**opened, "find_capacity": True, "effort": asked.effort}
    window = {
        "seconds": _WINDOW_S if asked.seconds is None else asked.seconds,
        "warmup_s": _WARMUP_S if asked.warmup is None else asked.warmup,
    }
    if asked.rate is not None:
        return {**opened, **window, "rate_per_s": _numbers(asked.rate, "--rate")}
    if asked.replay is not None:
        own = _given(seconds=asked.seconds, warmup_s=asked.warmup)
        return {**shared, **pool, **own, "kind": "replay", "speed": asked.replay}
    if asked.connections is not None:
        raise SearchbenchError(
            "--connections is the pool of an open loop; a closed loop has a connection for each "
            "client: give --clients"
        )
    counts = _numbers(1 if asked.clients is None else asked.clients, "--clients")
    broken = [n for n in counts if n != int(n)]
    if broken:
        raise SearchbenchError(f"--clients {broken[0]:g}: --clients must be whole numbers")
    closed = {"kind": "closed", "think_s": asked.think, "clients": [int(n) for n in counts]}
    return {**shared, **window, **closed}


def _shared(asked: Asked) -> dict[str, Any]:
    """What every kind of load has."""
    table: dict[str, Any] = {
        **_given(order=asked.order), "timeout_s": asked.timeout, "idle": asked.idle,
        "spread": asked.spread, "pause_s": asked.pause, "realtime": asked.realtime,
    }  # fmt: skip
    if asked.slo is not None:
        one = isinstance(asked.slo, str | Mapping)
        table["slo"] = [asked.slo] if one else list(asked.slo)
    if asked.abort:
        table["abort"] = True
    if asked.cpus:
        table["cpus"] = _whole(asked.cpus)
    if asked.cache_hit is not None:
        table |= {"cache_hit": asked.cache_hit, "cache_law": asked.cache_law}
        table |= _given(cache_entries=asked.cache_entries)
    if asked.machines:
        several = asked.machines
        if isinstance(several, str):
            several = [name.strip() for name in several.split(",") if name.strip()]
        table |= {"machines": list(several), "ssh": asked.ssh}
        table["client_command"] = asked.client_command
    return table


def _given(**values: Any) -> dict[str, Any]:
    """Those that were given."""
    return {key: value for key, value in values.items() if value is not None}


def _whole(cpus: str | Sequence[int]) -> list[int]:
    try:
        return [int(n) for n in (cpus.split(",") if isinstance(cpus, str) else cpus)]
    except ValueError:
        raise SearchbenchError(
            f"--cpus {cpus!r}: say the numbers of processors, as in 2,3"
        ) from None


def _systems(asked: Asked) -> tuple[dict[str, dict[str, Any]], str]:
    """The [systems] tables by name, and the path in the targets, which is one for all."""
    found: dict[str, dict[str, Any]] = {}
    path = whose = ""
    for text in asked.targets:
        name, addresses = named(text)
        for address in addresses:
            if "://" not in address:
                raise SearchbenchError(
                    f"{address!r} is not a target: give the protocol and the address, as in "
                    "http://127.0.0.1:10041 or mysql://127.0.0.1:3306/DATABASE"
                )
        target = target_of(name, addresses, remote=asked.remote)
        own = target.path if target.path != "/" or asked.requests is None else ""
        if path and own and own != path:
            raise SearchbenchError(
                f"{whose} names the path {path}, and {target.name} names {own}: all targets are "
                "asked the same, so measure each path by itself, or give all paths in --requests "
                "FILE and leave them out of the targets"
            )
        if own and not path:
            path, whose = own, target.name
        if target.name in found:
            raise SearchbenchError(
                f"two systems are called {target.name}; name them, as in "
                f"before={found[target.name]['attach'][0]} after={target.url}"
            )
        table: dict[str, Any] = {"attach": addresses}
        if asked.remote:
            table["remote"] = True
        if asked.engine is not None and asked.study is None:
            table["engine"] = asked.engine
        table |= _access(asked, addresses[0])
        found[target.name] = table
    return found, path


def _access(asked: Asked, address: str) -> dict[str, Any]:
    """How one of several systems is reached: what of it concerns its address.

    Of a single system all is said: what does not fit it is a mistake.
    """
    alone = len(asked.targets) == 1
    found: dict[str, Any] = {}
    if alone or is_secured(address):
        files = {"ca": asked.ca, "cert": asked.cert, "key": asked.key}
        found = {k: str(Path(v).resolve()) for k, v in files.items() if v is not None}
        found |= {"insecure": True} if asked.insecure else {}
        found |= _given(server_name=asked.server_name)
    if alone or address.startswith("http"):
        if asked.header:
            found["headers"] = [_recorded(text) for text in asked.header]
        found |= {"compressed": True} if asked.compressed else {}
    return found


def _recorded(text: str) -> str:
    """A header as the record has it: a value that may be secret is kept by this process alone."""
    try:
        name, value = parse(text)
    except ValueError as wrong:
        raise SearchbenchError(f"--header: {wrong}") from None
    if is_open(name) or REFERENCE.search(value) or not value:
        return f"{name}: {value}"
    variable = "SEARCHBENCH_HEADER_" + re.sub(r"\W", "_", name.upper(), flags=re.ASCII)
    remember(variable, value)
    return f"{name}: ${{{variable}}}"


def _replaced(word: str, shown: Mapping[str, str]) -> str:
    for text, recorded in shown.items():
        word = word.replace(text, recorded)
    return word


def _requests(asked: Asked, path: str) -> dict[str, Any]:
    """The [requests] table: a file, or the path that the targets name."""
    method = _given(method=asked.method)
    if asked.requests is not None:
        if path not in ("", "/"):
            raise SearchbenchError(
                f"{path} in the target and a file of requests: the file says what is sent; leave "
                "the path out"
            )
        file = {"file": str(Path(asked.requests).resolve()), "form": asked.form}
        return {**file, **_given(classes=asked.classes), **method}
    if not path:
        raise SearchbenchError(
            "nothing to send: give --requests FILE, or a path in the target "
            "(http://127.0.0.1:10041/d/status)"
        )
    if asked.classes is not None:
        raise SearchbenchError("--classes is for a file of requests, and one path is asked")
    return {"path": path, **method}


def _studied(
    path: Path, system: str | None
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """[corpus], [queries] and one system's table of a study file.

    A factor of these tables is taken at its first level. StudyError where the file is wrong.
    """
    study = read_study(path)
    names = [s.name for s in study.systems]
    if system is None and len(names) > 1:
        raise SearchbenchError(f"{path} has several systems: give --system {' or '.join(names)}")
    system = system or names[0]
    if system not in names:
        raise SearchbenchError(f"{path} has no system `{system}` ({nearest(system, names)})")
    plan = make_plan(study)
    look(study, plan)
    chosen = next(t for t in plan.treatments if t.system == system)
    given = set(tomllib.loads(study.text).get("systems", {}).get(system, {}))
    given |= {key_of(path) for factor in study.factors for path in factor.paths}
    levers = {k: v for k, v in chosen.parameters.items() if k in given}
    table = {"engine": chosen.engine, **levers}
    return _given(**chosen.corpus), _given(**chosen.queries), table


def _question(asked: Asked, names: Sequence[str]) -> str:
    """What the run answers, in a sentence."""
    who = ", ".join(names)
    if asked.find_capacity:
        slo = "; also ".join(promises_of({"slo": asked.slo}))
        return f"What rate does {who} sustain with {slo}?"
    if asked.replay is not None:
        return f"How does {who} answer the log at {asked.replay:g} times its own speed?"
    what = "requests a second" if asked.rate is not None else "clients"
    return f"What load does {who} sustain, by {what}?"
