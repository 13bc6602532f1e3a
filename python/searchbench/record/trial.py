"""One trial as trial.json keeps it: here alone (and in alone.py, ends.py) are its keys spelled.

The lab fills a ``Trial`` in while it conducts; analysis and report read it. FORMATS.md describes
the same keys for readers without us. What is not known is None or empty, never guessed. Longer than
most files, because the keys of one file stand in one place.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from searchbench.record.alone import HostAlone
from searchbench.record.drive import Drive
from searchbench.record.elsewhere import Elsewhere
from searchbench.record.ends import ServerEnd
from searchbench.record.queries import Queries, Unsupported
from searchbench.record.roles import FaultDone, RoleRun
from searchbench.study.plan import Level

KERNEL = "[kernel]"  # the name of the kernel's own threads among other processes
Status = Literal["ok", "failed"]
LoadKind = Literal["closed", "open", "replay"]


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """Something the lab noticed: the number, what it means, what to do.

    ``severity``: "invalid", "warning" or "note"; empty: the audit decides.
    """

    kind: str
    number: str = ""
    meaning: str = ""
    remedy: str = ""
    severity: str = ""


class Window(msgspec.Struct, frozen=True):
    """Nanoseconds since the start of the drive; a request is measured if start ≤ due < end."""

    start: int
    end: int

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end - self.start) / 1e9


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """The load as it was driven. Which keys are set depends on ``kind``; times in seconds.

    ``warmup_limit_s``: of a warm-up until steady, which has no ``warmup_s``.
    ``stages``: of a load with several rates, as the study has them; ``rate_per_s``, ``warmup_s``
    and ``seconds`` are then those of the stage that is judged. ``capacity_per_s``: what the rates
    of the stages are shares of; None: they are requests a second.
    ``curve``: of stages that were drawn from a log, from which, and how (``logs.curve.Drawn``).
    ``promise`` and ``full``: of a trial in a search for capacity, which of the promises (from 0) it
    was driven for, and whether it was a full trial and not a short trial.
    ``from_line``: of an order "logged" or "stretches" the line of the log, from 1, that was sent
    first; None: the first one, as in a replay and in older records, or none in particular.
    """

    kind: LoadKind = "closed"
    clients: int | None = None
    think_s: float | None = None
    rate_per_s: float | None = None
    arrivals: str | None = None
    stages: list[list[float]] | None = None
    judged_stage: int | None = None
    curve: dict[str, Any] | None = None
    capacity_per_s: float | None = None
    connections: int | None = None
    times: str | None = None
    speed: float | None = None
    order: str = "logged"
    from_line: int | None = None
    warmup_s: float | None = None
    warmup_limit_s: float | None = None
    seconds: float | None = None
    warmup_requests: int | None = None
    requests: int | None = None
    timeout_s: float | None = None
    idle: str = "hybrid"
    cpus: list[int] | None = None
    spread: str | None = None
    realtime: bool | None = None
    promise: int | None = None
    full: bool | None = None


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """What was started, as it was started; empty of a system that ran already."""

    argv: list[str] = []
    files: dict[str, str] = {}
    env: dict[str, str] = {}
    cpus: list[int] = []


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine says of itself."""

    documents: int | None = None
    extra: dict[str, Any] = {}


class Corpus(msgspec.Struct, frozen=True, kw_only=True):
    """What was put in. ``fields``: name, type and stored of each; ``intake``: rows refused."""

    name: str = ""
    digest: str = ""
    documents: int | None = None
    text_bytes: int | None = None
    fields: list[dict[str, Any]] = []
    intake: dict[str, Any] | None = None


class OperationPart(msgspec.Struct, frozen=True):
    """One statement of a method's text, and how often an operation sends it.

    ``line``: where it begins in its text; ``text``: as it is written there,
    without its values; ``pipelined``: so many are sent at once.
    """

    line: int
    text: str
    statements: int = 1
    pipelined: int = 1

    @property
    def exchanges(self) -> int:
        """Those that are sent at once are one."""
        return -(-self.statements // self.pipelined)


class OperationAbout(msgspec.Struct, frozen=True, kw_only=True):
    """The method of an operation that was measured, and what it sends for its first draw.

    ``rows``: that one asks for; ``statements``, ``exchanges`` (statements that are sent at once are
    one) and ``sent_bytes``: within what is timed; ``prepared``: how many of the statements are;
    ``untimed``: statements of set-up and clean-up; ``prelude``: what each connection began with.
    ``parts``: the statements that are timed, in their order.
    """

    name: str
    method: str
    rows: int = 0
    draws: int = 0
    answer: str = "set"
    statements: int = 0
    untimed: int = 0
    exchanges: int = 0
    sent_bytes: int = 0
    prepared: int = 0
    prelude: int = 0
    parts: list[OperationPart] = []


class Ingest(msgspec.Struct, frozen=True, kw_only=True):
    """Putting the documents in. ``reused``: the trial that made the index, where not this one.

    ``requests``: how many the documents came in; ``connections``: over how many at once.
    """

    documents: int | None = None
    bytes: int | None = None
    refused: int = 0
    refusals: list[dict[str, str]] = []
    seconds: float | None = None
    settle_seconds: float | None = None
    index_bytes: int | None = None
    reused: str | None = None
    requests: int | None = None
    connections: int | None = None


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """``asked``: queries whose terms the engine was asked for; ``other``: those seen otherwise."""

    asked: int
    other: dict[str, list[str]] = {}


class Captured(msgspec.Struct, frozen=True, kw_only=True):
    """Replies kept of each distinct query asked alone; ``mean_s``: how long one took, roughly.

    ``sizes``: where no known engine reads them, by query the bytes of the reply, headers included.
    """

    distinct: int = 0
    mean_s: float = 0.0
    made_by: str = ""
    sizes: dict[str, int] = {}


class Warmup(msgspec.Struct, frozen=True, kw_only=True):
    """A warm-up until steady: how long it took, and the requests that were completed by then.

    ``at_limit``: it was ended by its limit, not because the system was warm.
    """

    seconds: float
    requests: int
    at_limit: bool


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A query of a trial that is cold for each: what was done for it, in the order of the samples.

    ``requests``: how many of the samples are its asks, the first of which found nothing in memory.
    ``start``, ``end``: of its drive, ns on the clock of the samples. ``pages`` of the system's
    files; of these in memory ``before`` the eviction, and ``after`` it.
    """

    query: int
    requests: int
    start: int
    end: int
    pages: int = 0
    before: int = 0
    after: int = 0
    restarted: bool = True


class ServerTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The server over the measured window; None where it was not seen.

    ``peak_rss_bytes``: its resident memory, added up over its processes, so that what they share
    counts several times. ``peak_pss_bytes``: their proportional set sizes, in which it counts once;
    twice a second at most, and None where the server is one process or the kernel does not tell.
    ``jvm_compilers_s``, ``jvm_collectors_s``: CPU time of a JVM's threads that compile and that
    collect garbage, within ``cpu_s``; None where no process is a JVM. ``busiest_thread_share``: of
    the time, how much that one thread ran whose name is ``busiest_thread``.
    """

    cpu_s: float | None = None
    peak_rss_bytes: int | None = None
    read_bytes: float | None = None
    write_bytes: float | None = None
    major_faults: float | None = None
    jvm_compilers_s: float | None = None
    jvm_collectors_s: float | None = None
    busiest_thread_share: float | None = None
    busiest_thread: str = ""
    peak_pss_bytes: int | None = None

    @property
    def peak_memory_bytes(self) -> int | None:
        """The peak of its memory; what its processes share counts once where that is known."""
        return self.peak_rss_bytes if self.peak_pss_bytes is None else self.peak_pss_bytes


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """One phase, once: ns on the clock of the drive, below 0 before it.

    Of a trial that was not driven, on a clock that began with the trial. What the server did in it:
    None where it did not run, or was not seen.
    """

    phase: str
    start: int
    end: int
    server: ServerTotals = ServerTotals()

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end - self.start) / 1e9


class DeviceTotals(msgspec.Struct, frozen=True, kw_only=True):
    """One block device over the measured window (the kernel's iostats).

    ``read_s``, ``write_s``: the times of all requests added up; ``busy_s``: in which it had any;
    ``waited_s``: all requests in flight added up over time, so that over seconds it is their mean.
    """

    name: str
    reads: float
    read_bytes: float
    read_s: float
    writes: float
    written_bytes: float
    write_s: float
    busy_s: float
    waited_s: float


class LinkTotals(msgspec.Struct, frozen=True, kw_only=True):
    """One network interface over the measured window: bytes and packets."""

    name: str
    received_bytes: float
    received: float
    sent_bytes: float
    sent: float
    dropped: float


class CoreTotals(msgspec.Struct, frozen=True, kw_only=True):
    """One core over the measured window, in CPU seconds. ``cpu``: its number.

    ``busy_s``: user, nice and system; ``interrupts_s``: irq and softirq; ``idle_s``: waiting for
    disks too. ``mhz_least`` and ``mhz_most``: the frequencies seen; None where it cannot be read.
    """

    cpu: int
    busy_s: float
    interrupts_s: float
    steal_s: float
    idle_s: float
    mhz_least: float | None = None
    mhz_most: float | None = None


class HostTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The machine over the measured window: CPU seconds over all cores.

    ``stalled_*``: seconds in which some task waited for it (pressure stall information).
    ``throttled``: how often a control group of ours, or of a system that ran already, or one above
    it, was stopped at its CPU limit.
    ``others``: of the processes of this machine that are neither the server's nor ours, the
    busiest by name and ``KERNEL``, with their CPU seconds on any core in the whole drive.
    ``shared``: the user said that others work on the machine too. ``running``, ``blocked``: how
    many tasks ran or were ready, and how many waited for a disk, on average. ``switches``: of
    context.
    Empty and None: not known, as in records that did not look for it yet.
    """

    idle_s: float | None = None
    iowait_s: float | None = None
    steal_s: float | None = None
    busy_s: float | None = None
    client_cpu_s: float | None = None
    cores: int | None = None
    seconds: float | None = None
    by_core: list[CoreTotals] = []
    stalled_cpu_s: float | None = None
    stalled_io_s: float | None = None
    stalled_memory_s: float | None = None
    throttled: float | None = None
    memory_bytes: int | None = None
    others: dict[str, float] = {}
    shared: bool = False
    running: float | None = None
    blocked: float | None = None
    switches: float | None = None
    devices: list[DeviceTotals] = []
    links: list[LinkTotals] = []


class UnderLoad(msgspec.Struct, frozen=True, kw_only=True):
    """Sampled replies compared with the captured ones, and how many were other answers."""

    compared: int = 0
    changed: int = 0


class CacheCount(msgspec.Struct, frozen=True, kw_only=True):
    """How often a cache was hit, from ``since`` to the end of the drive. ``source``: who counted.

    ``since``: ns since the start of the drive, just before the window; 0: the whole drive.
    ``single``: a request is one lookup, not one for each shard. ``sampled``: counted in the replies
    that were kept, not by the server over all requests. ``whole``: the cache holds whole answers.
    ``asked``: searches of shards in all, also those that were not looked up.
    """

    hits: int
    lookups: int
    source: str = ""
    single: bool = True
    sampled: bool = False
    since: int = 0
    whole: bool = True
    asked: int | None = None


class Cache(msgspec.Struct, frozen=True, kw_only=True):
    """What a cache of answers counted, and how requests were drawn if for a share of its hits.

    ``wanted_hit``: None where no share was asked for; then all but ``cache_entries``, ``counted``
    is empty.
    ``uncounted``: why there is no count, as a clause that fits after "could not be verified: ".
    """

    cache_entries: int | None = None
    wanted_hit: float | None = None
    distribution: str = ""
    exponent: float | None = None
    policy: str = ""
    distinct: int | None = None
    expected_hit: float | None = None
    fill_requests: float | None = None
    warmup_requests: int | None = None
    counted: CacheCount | None = None
    uncounted: str = ""


class JobDone(msgspec.Struct, kw_only=True):
    """One job of a trial: ns as of ``Span``, from the first request (or the start) to the answer.

    ``still``: when all that it wrote was on its device, after the server had stopped.
    ``levels``: its levers. ``documents``: how many it was given, and as many were found after it;
    None: it was not counted. ``requests``: how many were sent; ``request_p50_s`` and the others: of
    the times they took, one after another.
    ``files``: after it, with the server stopped, by kind the bytes that are allocated to files; of
    a file system that compresses what they take there. A kind is absent where that is not known.
    ``lengths``: the files' lengths. ``running``: the lengths when it had just ended, before the
    server stopped: a log may be gone after that. ``compared``: what was answered the same by what
    it made and by the original.
    ``durable``: what a kill may take of what it was told is done, by the engine's levers.
    ``progress``: (ns, documents acknowledged by then), at most 200.
    ``server``, ``host``: from start to end; ``devices``: from start until ``still``, as writing
    goes on after the answer. ``own_devices``: the names of those that are of its storages.
    """

    name: str
    levels: dict[str, Level] = {}
    start: int = 0
    end: int = 0
    still: int | None = None
    documents: int | None = None
    requests: int = 0
    request_p50_s: float | None = None
    request_p99_s: float | None = None
    request_max_s: float | None = None
    files: dict[str, int] = {}
    lengths: dict[str, int] = {}
    running: dict[str, int] = {}
    compared: list[str] = []
    durable: str = ""
    progress: list[tuple[int, int]] = []
    server: ServerTotals = ServerTotals()
    host: HostTotals = HostTotals()
    devices: list[DeviceTotals] = []
    own_devices: list[str] = []

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end - self.start) / 1e9


class Lever(msgspec.Struct, frozen=True, kw_only=True):
    """A lever of the place, such as ``places.small.memory``: was it as it was asked?

    ``read_back``: what the kernel says of it; ``effect``: what was seen once the system had loaded
    or had been driven, in words, with its ``figures`` (their names end in their units); empty
    where it was not looked at yet. ``problem``: why it did not take; "" if it did. ``device``: of a
    limit of requests or bytes, the block device that it is of.
    """

    name: str
    asked: str
    read_back: str = ""
    effect: str = ""
    problem: str = ""
    figures: dict[str, float] = {}
    device: str = ""


class Trial(msgspec.Struct, kw_only=True):
    """One treatment measured once.

    ``subject``: the configuration without the step of its load; trials of one subject in one block
    were driven one after another on the same warm system where ``measure`` of the plan says so.
    ``attached``: the addresses of a system that ran already; ``endpoints``: all that were asked.
    ``roles``: what the numbers in the samples' column of that name mean.
    ``warmup``: None of one that was not until steady.
    ``phases``: seconds spent in each phase; ``spans``: each phase once, with what the server did.
    ``reason``, ``stage``: of a failed trial. ``said``: by outcome, why it was refused once.
    ``place``: its levers as they were found; ``hosts``: agents on hosts, asked alone before.
    ``elsewhere``: hosts that are other machines, reached by ssh; ``server`` is of this one alone.
    ``asked``: of a trial that is cold for each query, each of them.
    ``beside``: the roles beside the readers, in the order of their numbers.
    ``jobs``: those that were done, in their order; a trial that was not driven has them alone.
    ``server_ends``: processes of the system that ended, and that nobody of ours had ended.
    ``traced``: its reads and writes were traced, which slowed it: it is not judged.
    """

    trial: str
    treatment: str
    format: int = 2
    block: int = 1
    position: int = 0
    control: bool = False
    traced: bool = False
    label: str = ""
    subject: str = ""
    levels: dict[str, Level] = {}
    system: str = ""
    engine: str = ""
    version: str = ""
    parameters: dict[str, Level] = {}
    attached: str | None = None
    endpoints: list[str] = []
    status: Status = "ok"
    stage: str = ""
    reason: str = ""
    started: str = ""
    ended: str = ""
    phases: dict[str, float] = {}
    spans: list[Span] = []
    roles: list[str] = []
    notes: list[Note] = []
    corpus: Corpus = Corpus()
    queries: Queries = Queries()
    load: Load = Load()
    operation: OperationAbout | None = None
    unsupported: list[Unsupported] = []
    outcomes: list[str] = []
    service: Service = Service()
    facts: Facts = Facts()
    ingest: Ingest | None = None
    terms: Terms | None = None
    captured: Captured | None = None
    drive: Drive | None = None
    warmup: Warmup | None = None
    window: Window | None = None
    asked: list[Asked] = []
    server: ServerTotals = ServerTotals()
    host_window: HostTotals = HostTotals()
    answers_under_load: UnderLoad | None = None
    cache: Cache | None = None
    said: dict[str, str] = {}
    place: list[Lever] = []
    hosts: list[HostAlone] = []
    elsewhere: list[Elsewhere] = []
    jobs: list[JobDone] = []
    beside: list[RoleRun] = []
    server_ends: list[ServerEnd] = []

    @property
    def fault(self) -> FaultDone | None:
        """The fault that came over its system; None where nothing did."""
        found = (run.fault for run in self.beside if run.fault is not None)
        return next((fault for fault in found if fault.begun is not None), None)
