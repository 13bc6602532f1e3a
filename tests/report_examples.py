"""Judgements made by hand, and records that fit them, for the tests of the report.

The numbers are computed from simple formulas, so that what a page must show is known.
Longer than most files: the examples of studies, sweeps and searches share these formulas.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import pyarrow as pa

from searchbench.analysis.judgement import (
    Agreement,
    Capacity,
    CapacityTrial,
    Comparison,
    Curve,
    Difference,
    Estimate,
    Finding,
    GroupAgreement,
    Interval,
    Judgement,
    Scale,
    Step,
    TreatmentResult,
    TrialResult,
    Verdict,
)
from searchbench.record import PROBE
from searchbench.record.drive import Drive, Thread
from searchbench.record.trial import (
    Corpus,
    Ingest,
    Lever,
    Load,
    Queries,
    Service,
    Trial,
    Unsupported,
    Window,
)
from searchbench.study.plan import Judging, Plan, Treatment

HOSTILE = (
    "<script>document.title='owned'</script>",
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "\"><svg onload=document.title='owned'>",
    "' onmouseover='document.title=1",
    "<!-- <script> --> ]]> {{ 7*7 }} {% raw %} #set text(red) $x$ `raw` \\ %",
    "bell\x07 escape\x1b[31m null\x00 del\x7f c1\x9b",
    "right\u202eto left\u2066 isolate\u2069 \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628",
    "long" * 150,
    "lone surrogate \ud800 and \uffff",
    "日本語の検索 全文検索エンジン 🔎 e\u0301",
    '{"a": "</script>", "b": "\\u2028 \u2028"}',
    '=HYPERLINK("http://example.invalid")',
)


_DEVICE_KEYS = [field.name for field in PROBE.field("devices").type.value_type]


@dataclass
class Kept:
    """What a report reads of a record, held in memory."""

    plan: Plan
    host: Mapping[str, Any]
    study_text: str
    trials: list[Trial]
    traced: Sequence[Trial] = ()
    about: Mapping[str, Any] = field(
        default_factory=lambda: {"searchbench": "0.1.0", "created": "2026-01-31T12:00:00Z"}
    )

    def probe(self, trial: str) -> pa.Table:
        """Of every trial 10 s, sampled ten times a second: a server that uses more and more."""
        times = [n / 10 for n in range(101)]
        rows = [
            {
                "t": round(s * 1e9), "server_cpu_s": s * s / 11, "stalled_io_s": s / 9,
                "devices": [dict.fromkeys(_DEVICE_KEYS, 0) | {"name": "vda", "busy_s": s / 4}],
            }
            for s in times
        ]  # fmt: skip
        return pa.Table.from_pylist(rows, schema=PROBE)


def estimate(value: float, unit: str = "s", spread: float = 0.04, n: int = 5) -> Estimate:
    """An estimate with an interval of ``spread`` to both sides."""
    interval = Interval(value * (1 - spread), value * (1 + spread), 0.95, "BCa bootstrap")
    return Estimate(value, unit, n, interval)


def quantile_curve(label: str, median_s: float, sigma: float, last: float = 0.9999) -> Curve:
    """The quantiles of a log-normal, on the grid that the analysis uses."""
    from statistics import NormalDist

    normal = NormalDist()
    grid = {round(1 - 10 ** (-step / 12), 8) for step in range(49)}
    grid |= {0.5, 0.9, 0.95, 0.99, 0.999, 0.9999}
    x = tuple(q for q in sorted(grid) if 0 < q <= last)
    y = tuple(median_s * math.exp(sigma * normal.inv_cdf(q)) for q in x)
    width = [0.01 / math.sqrt(1 - q) + 0.005 for q in x]
    low = tuple(v * (1 - min(w, 0.5)) for v, w in zip(y, width, strict=True))
    high = tuple(v * (1 + w) for v, w in zip(y, width, strict=True))
    return Curve(label, x, y, low, high)


def trial(
    treatment: str, block: int, rate: float, *, status: str = "valid", control: bool = False
) -> TrialResult:
    """One trial that warms up over its first two seconds."""
    name = f"{block:02d}-{treatment}{'-aa' if control else ''}"
    findings: tuple[Finding, ...] = ()
    reason = ""
    if status == "invalid":
        reason = "the generator was late: 18 % of response p99"
        findings = (
            Finding(
                "generator_lag", "invalid", name, "18 % of response p99",
                "Part of the reported time is ours, not the server's.",
                "Give the client a core of its own, or lower the rate.",
            ),
        )  # fmt: skip
    if status == "failed":
        reason = "deploy: the server did not answer within 30 s"
    xs = tuple(0.05 + 0.1 * i for i in range(100))
    ys = tuple(rate * (1 - 0.6 * math.exp(-x / 0.6) + 0.03 * math.sin(7 * x + block)) for x in xs)
    done = status != "failed"
    figures = {
        "throughput": estimate(rate * (1 + 0.01 * block), "queries/s", n=9000),
        "service_p50": estimate(0.004, "s", n=9000),
        "service_p99": estimate(0.0191, "s", n=9000),
    }
    return TrialResult(
        name, treatment, block, control, status,  # type: ignore[arg-type]
        reason, figures if done else {},
        {"ok": 9000, "timed_out": 3 if block else 0} if done else {},
        findings, Curve("throughput", xs, ys) if done else None, 1.4 if done else None,
    )  # fmt: skip


def treatments(n: int, labels: tuple[str, ...] = ()) -> tuple[TreatmentResult, ...]:
    """``n`` treatments, each a sixth slower than the one before; with trouble in some."""
    made = []
    for i in range(n):
        system = ("tantivy", "sqlite")[i % 2]
        clients = 2 ** (i // 2)
        ident = f"t{i:02d}"
        label = labels[i] if i < len(labels) else f"{system} · {clients} clients"
        rate = 4210.0 / (1 + i / 6)
        runs = [trial(ident, b, rate) for b in range(5)]
        if i == 1:
            runs[3] = trial(ident, 3, rate, status="invalid")
        if i == 2 and n > 2:
            runs[4] = trial(ident, 4, rate, status="failed")
        if i == 0:
            runs += [trial(ident, b, rate, control=True) for b in range(5)]
        median = 0.0021 * (1 + i / 6)
        made.append(
            TreatmentResult(
                ident, label, system, {"system": system, "load.clients": clients},
                {
                    "throughput": estimate(rate, "queries/s", 0.02 + 0.01 * (i % 3)),
                    "service_p50": estimate(median, "s"),
                    "service_p99": estimate(median * 6.2, "s", 0.08),
                    "response_p99": estimate(median * 9.1, "s", 0.1),
                    "error_share": Estimate(0.0 if i else 0.0004, "share", 45000),
                },
                quantile_curve(label, median, 0.7, 0.9999 if i != 1 else 0.99),
                quantile_curve(label, median * 1.2, 0.95),
                tuple(runs),
            )
        )  # fmt: skip
    return tuple(made)


def compared(found: tuple[TreatmentResult, ...]) -> tuple[Comparison, ...]:
    """Every treatment against the first."""
    made = []
    for i, t in enumerate(found[1:], start=1):
        ratio = 1 / (1 + i / 6) if i > 1 else 0.985
        resolved = i > 1
        made.append(
            Comparison(
                found[0].treatment, t.treatment, "throughput",
                "slower" if resolved else "not resolved",
                estimate(ratio, "", 0.03), 0.0004 if resolved else 0.21, 1.03, 6770, 12,
            )
        )  # fmt: skip
    return tuple(made)


# As published in 2011: one index against four parts, MATCH_ANY; tau and scores are made up.
PUBLISHED = GroupAgreement(
    (6770, 6770), (6586, 6770), (6374, 6770), (5563, 6770), (5389, 5993), (4532, 673_551), 90, 1.5,
    {str(i + 1): n for i, n in enumerate((288, 97, 37, 20, 12, 7, 9, 10, 7, 3))}, 86,
    0.9712, 6601, 0.00125, 2.5, 669_019,
)  # fmt: skip


def agreement(texts: tuple[str, ...]) -> Agreement:
    """Two systems that differ on as many queries as there are texts."""
    examples = tuple(
        Difference(
            i, text, ("tie", "analysis", "scoring")[i % 3], 1243, 1243 + i,
            tuple((f"doc-{j} {text[:40]}", 12.5 - j) for j in range(4)),
            tuple((f"doc-{j + (j > 1)} {text[:40]}", 11.5 - j) for j in range(4)),
        )
        for i, text in enumerate(texts)
    )  # fmt: skip
    causes = {"tie": 2, "analysis": 1, "scoring": 1}
    return Agreement(
        "t00", "t01", 6770, 0.9994, 0.981, 0.96, 0.9931, 10, 0, 12, 0, 1, causes, examples,
        groups=PUBLISHED,
    )  # fmt: skip


def judgement(n: int = 4, *, resolved: bool = True, hostile: bool = False) -> Judgement:
    """A judgement of ``n`` treatments; ``hostile``: every text in it tries to break out."""
    labels = HOSTILE if hostile else ()
    found = treatments(n, labels)
    texts = HOSTILE if hostile else ("debian package", "full text search", '"exact phrase"')
    decision = (
        f"{found[0].label} answers 4,210 queries a second (95 % interval 4,130 to 4,290), "
        "33 % more than sqlite at the same number of clients; the noise floor is 3 %. "
        "All results agree on totals for 99.9 % of 6,770 queries."
    )
    findings = (
        Finding(
            "governor", "warning", "", "powersave",
            "The processor changes its frequency with the load, so short bursts look slow.",
            "Set the governor to performance and run again.",
        ),
        Finding("tsc", "note", "", "0.4 ppm", "The clock drifted by this much.", ""),
    )  # fmt: skip
    if hostile:
        findings += tuple(Finding(x, "note", x, x, x, x) for x in HOSTILE)
    xs = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
    scaling = {
        "load.clients": tuple(
            Curve(
                label, xs,
                tuple(s * x / (1 + 0.12 * (x - 1)) for x in xs),
                tuple(s * 0.95 * x / (1 + 0.12 * (x - 1)) for x in xs),
                tuple(s * 1.05 * x / (1 + 0.12 * (x - 1)) for x in xs),
            )
            for label, s in (("tantivy", 900.0), ("sqlite", 870.0), ("tantivy, 4 parts", 560.0))
        )
    }  # fmt: skip
    resources = {
        t.treatment: {
            "cpu_per_query": Estimate(0.00041 * (1 + i / 5), "s", 45000),
            "peak_memory_bytes": Estimate(120_000_000.0 + 9_000_000 * i, "bytes", 5),
            "read_bytes": Estimate(4096.0 * i, "bytes", 5),
            "index_bytes": Estimate(21_000_000.0, "bytes", 5),
            "ingest_documents_per_s": Estimate(31_200.0 / (1 + i), "documents/s", 5),
        }
        for i, t in enumerate(found)
    }
    excluded = (({"system": "sqlite", "search_threads": 4}, "sqlite has no such parameter"),)
    if hostile:
        excluded += tuple(({x: x}, x) for x in HOSTILE)
    return Judgement(
        HOSTILE[0] + HOSTILE[7] if hostile else "Which system serves package search best?",
        " ".join(HOSTILE) if hostile else "A first look at two embedded engines on real text.",
        _worded(decision + (" ".join(HOSTILE) if hostile else ""), resolved, "t00"),
        found,
        compared(found),
        Estimate(1.03, "ratio", 5),
        (agreement(texts),),
        findings,
        excluded,
        scaling,
        resources,
        tuple(
            Scale(factor, "throughput", "queries/s", {}, curve, curve.x[-1])
            for factor, curves in scaling.items()
            for curve in curves
        ),
    )


def big() -> Judgement:
    """Thirty treatments, each compared with each by three metrics; ninety pairs of answers.

    By throughput t00 is better than all, the more so the later the other comes; by p50 the ratios
    are greater yet.
    """
    judged = judgement(30)
    one, alike = judged.comparisons[0], judged.agreement[0]
    pairs = list(combinations((t.treatment for t in judged.treatments), 2))
    comparisons = [
        replace(
            one, a=a, b=b, metric=metric, verdict="slower",
            ratio=estimate(1 / (most + int(b[1:]) / 10 - int(a[1:]) / 50), "ratio"),
        )
        for metric, most in (("service_p99", 1.1), ("throughput", 1.1), ("service_p50", 9.0))
        for a, b in pairs
    ]  # fmt: skip
    agreement = [
        replace(alike, a=a, b=b, totals_match=1 - i / 100) for i, (a, b) in enumerate(pairs[:90])
    ]
    return replace(judged, comparisons=tuple(comparisons), agreement=tuple(agreement))


def record(judged: Judgement, *, load: str = "closed", hostile: bool = False) -> Kept:
    """A record that fits a judgement of treatments."""
    words = " ".join(HOSTILE) if hostile else ""
    driven: dict[str, Any] = {"kind": load, "clients": 4, "think_s": 0.0, "timeout_s": 10.0}
    if load == "open":
        driven |= {"rate_per_s": 1000.0, "arrivals": "poisson", "connections": 256}
    trials = [
        Trial(
            trial=run.trial, treatment=t.treatment, block=run.block, position=position,
            control=run.control, status="failed" if run.status == "failed" else "ok",
            label=t.label, subject=t.label, levels=dict(t.levels), system=t.system,
            engine=t.system, version="0.27.0" + words,
            parameters={"parts": 1, "search_threads": 1, "odd": words},
            service=Service(
                argv=["searchbench-host", t.system, "--port", "0", f"--x={words}"],
                files={f"conf/{words}engine.toml": f"threads = 4\n# {words}\n" * 6},
                env={"RUST_LOG": "warn" + words},
            ),
            corpus=Corpus(name="debian" + words, digest="5f3a9c" * 8, documents=63905,
                          text_bytes=26_500_000),
            queries=Queries(name="sampled", digest="beef", distinct=6770),
            load=Load(**driven),
            window=Window(2_000_000_000, 10_000_000_000),
            ingest=Ingest(documents=63905, seconds=2.05, index_bytes=21_000_000),
            drive=Drive(threads=[Thread(cpu=1, user_ns=800_000_000)], clock="tsc",
                        elapsed_ns=10_000_000_000),
            place=[
                Lever(name="places.small.memory", asked="256MB" + words,
                      read_back="255,999,992 bytes",
                      effect="the system used 256.0 MB at most" + words),
                Lever(name="storages.disk.compression", asked="zstd:3",
                      problem="no file became smaller" if run.status == "failed" else ""),
            ],
            unsupported=[Unsupported(3, "fuzzy: upstream must " + words)],
            phases={"deploy": 0.3, "ingest": 2.05},
        )
        for t in judged.treatments
        for position, run in enumerate(t.trials)
    ]  # fmt: skip
    planned = tuple(
        Treatment(
            id=t.treatment, label=t.label, system=t.system, engine=t.system, levels=dict(t.levels),
            settings={"load": driven}, subject=t.label,
        )
        for t in judged.treatments
    )  # fmt: skip
    plan = Plan(question=judged.question, seed=7, treatments=planned)
    study = 'question = "Which system serves package search best?"\n' + words + "\n[load]\n"
    return Kept(plan, _host(words), study, trials)


def _host(words: str) -> dict[str, Any]:
    return {
        "cpu": "AMD EPYC 7B13" + words, "cores": 2, "memory_bytes": 8 << 30, "kernel": "6.12.1",
        "clocksource": "tsc", "governor": None, "fit": {"steal": False, "swap": "none"},
    }  # fmt: skip


@dataclass(frozen=True)
class Queue:
    """A system of one queue, whose response times are known: exponential, mean 1/(most − rate).

    So the share of requests slower than t is exp(−(most − rate)·t), and the greatest rate that
    keeps "p99 < t" is most − ln(100)/t.
    """

    subject: str
    system: str
    levels: Mapping[str, str | int]
    most_per_s: float

    def slower(self, rate: float, than_s: float) -> float:
        """The share of requests that take longer."""
        return math.exp(-max(0.0, self.most_per_s - rate) * than_s)

    def capacity(self, limit_s: float) -> float:
        """The greatest rate at which 99 % take no longer."""
        return self.most_per_s - math.log(100) / limit_s


# With 50 ms and 200 ms, 4 parts keep the second promise at every rate that was driven.
PARTS = tuple(
    Queue(f"sphinx parts={n}", "sphinx", {"systems.sphinx.parts": n}, most)
    for n, most in ((1, 412.0), (2, 790.0), (4, 1440.0))
)
PROMISES = ("p99 < 50ms", "p99 < 200ms, errors < 0.1%")


def step(queue: Queue, index: int, load: float, *, kind: str = "open", block: int = 1) -> Step:
    """One step of a queue: ``load`` requests a second, or clients."""
    from statistics import NormalDist

    rate = load if kind == "open" else queue.most_per_s * load / (load + 1.5)
    left = max(queue.most_per_s - rate, queue.most_per_s * 0.01)
    at = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
    response = {name: estimate(-math.log(1 - q) / left, n=4000) for name, q in at.items()}
    response |= {"max": estimate(9 / left, n=4000), "mean": estimate(1 / left, n=4000)}
    service = {name: estimate(e.value * 0.6, n=4000) for name, e in response.items()}
    wait = {name: estimate(2e-6 * (1 + NormalDist().cdf(i)), n=4000) for i, name in enumerate(at)}
    wait["max"] = estimate(4e-5, n=4000)
    key = "load.rate_per_s" if kind == "open" else "load.clients"
    name = f"t{index:02d}"
    answered = min(rate, queue.most_per_s)
    opened = kind == "open"
    return Step(
        system=queue.system, subject=queue.subject, trial=f"b{block:02d}-{name}", treatment=name,
        block=block, label=f"{queue.subject} {'rate' if opened else 'clients'}={load:g}",
        kind=kind,  # type: ignore[arg-type]
        levels={**queue.levels, key: load}, status="valid", window_s=10.0,
        clients_asked=None if opened else int(load), clients=None if opened else int(load),
        littles_law_share=None if opened else 0.999, rate_asked_per_s=load if opened else None,
        requests=int(rate * 10), outcomes={"ok": int(rate * 10)},
        error_share=Estimate(0.0, "share", int(rate * 10)),
        offered=estimate(rate, "queries/s"), answered=estimate(answered, "queries/s"),
        achieved=estimate(answered / rate, "share", 0.002) if opened else None,
        keeps_up=answered >= rate * 0.99 if opened else None,
        service=service, response=response, lag=wait, backlog=wait if opened else {},
        backlog_growth=0.0, response_growth=0.0, client_cpu_s_per_request=2.1e-6,
        client_cpu_share=0.02, run_wait_share=0.001, steal_share=0.0, server_cores=0.8,
    )  # fmt: skip


def _of_steps(queues: Sequence[Queue], steps: Sequence[Step]) -> tuple[TreatmentResult, ...]:
    made = []
    for one in steps:
        figures = {"throughput": one.answered, "service_p99": one.service["p99"],
                   "response_p99": one.response["p99"]}  # fmt: skip
        known = {name: e for name, e in figures.items() if e is not None}
        run = TrialResult(one.trial, one.treatment, one.block, False, "valid", "", known,
                          one.outcomes, ())  # fmt: skip
        median = one.response["p50"].value
        made.append(TreatmentResult(
            one.treatment, one.label, one.system, one.levels, known,
            quantile_curve(one.label, median * 0.6, 0.8), quantile_curve(one.label, median, 0.8),
            (run,),
        ))  # fmt: skip
    return tuple(made)


def _worded(decision: str, resolved: bool, best: str | None = None) -> Verdict:
    """A verdict whose paragraphs are its headline and its points."""
    headline, *points = decision.split("\n")
    return Verdict(decision, resolved, best, headline=headline, points=tuple(points[:5]))


def sweep(queues: Sequence[Queue] = PARTS, clients: Sequence[int] = (1, 2, 4, 8, 16)) -> Judgement:
    """A sweep by clients of each queue."""
    steps = [
        step(queue, i * len(clients) + j, n, kind="closed")
        for i, queue in enumerate(queues)
        for j, n in enumerate(clients)
    ]
    decision = "\n".join(
        f"{q.subject} answered up to {q.most_per_s * 0.9:.0f} queries per second, at 16 clients."
        for q in queues
    )
    return Judgement(
        "How does throughput grow with the clients?", "", _worded(decision, True),
        _of_steps(queues, steps), (), None, (), (), (), measure="sweep", steps=tuple(steps),
    )  # fmt: skip


def searched(
    queues: Sequence[Queue] = PARTS, promises: Sequence[str] = PROMISES, *, hostile: bool = False
) -> Judgement:
    """A search for the capacity of each queue with each promise.

    The last queue keeps the last promise at every rate that was driven, so that side is open, if
    there are two promises or more.
    """
    limits = [0.05 * 4**i for i in range(len(promises))]
    steps: list[Step] = []
    found = []
    for queue in queues:
        rates = sorted({
            round(max(8.0, queue.capacity(limit)) * by)
            for limit in limits for by in (0.6, 0.9, 0.98, 1.02, 1.1)
        })  # fmt: skip
        last = len(promises) > 1 and queue is queues[-1]
        if last:
            rates = [rate for rate in rates if rate < queue.capacity(limits[-1])]
        own = [step(queue, len(steps) + i, float(rate)) for i, rate in enumerate(rates)]
        steps += own
        for promise, limit in zip(promises, limits, strict=True):
            truth = queue.capacity(limit)
            trials = tuple(_judged(queue, one, promise, limit) for one in own)
            holds = max((float(r) for r in rates if r < truth), default=None)
            fails = min((float(r) for r in rates if r > truth), default=None)
            found.append(Capacity(
                queue.subject, queue.system, dict(queue.levels), promise, holds, fails,
                f"{queue.subject} keeps {promise} at {holds or 0:g} requests per second"
                + (" and at each rate driven." if fails is None else f", not at {fails:g}."),
                trials, None if holds is None or fails is None else 0.957,
            ))  # fmt: skip
    memory = Estimate(120_000_000.0, "bytes", 1)
    costs = {"server_cores": Estimate(0.8, "cores", 1), "peak_memory_bytes": memory}
    words = " ".join(HOSTILE) if hostile else ""
    compared = ["4 parts sustain more than 1."] if len(queues) > 1 else []
    decision = "\n".join([*(c.sentence for c in found), *compared])
    return Judgement(
        "What rate do 1, 2 and 4 parts sustain?" + words, words,
        _worded(decision + words, True),
        _of_steps(queues, steps), (), None, (), (), (),
        {}, {s.treatment: costs for s in steps},
        metric="response_p99", measure="capacity", steps=tuple(steps), capacity=tuple(found),
    )  # fmt: skip


def _judged(queue: Queue, one: Step, promise: str, limit_s: float) -> CapacityTrial:
    rate = float(one.rate_asked_per_s or 0)
    excess = queue.slower(rate, limit_s) / 0.01
    low, high = excess * 0.7, excess * 1.4
    verdict = "holds" if high < 1 else "fails" if low > 1 else "unclear"
    condition = promise.split(",")[0]
    return CapacityTrial(one.trial, rate, 10.0, verdict, condition, excess, low, high, 0.9991)


def driven(judged: Judgement, *, command: Sequence[str] = (), hostile: bool = False) -> Kept:
    """A record that fits a judgement of steps; ``command``: of systems that ran already."""
    words = " ".join(HOSTILE) if hostile else ""
    subjects = {s.treatment: s.subject for s in judged.steps}
    loads = {
        s.treatment: Load(kind=s.kind, clients=s.clients_asked, rate_per_s=s.rate_asked_per_s,
                          seconds=10.0, warmup_s=1.0)
        for s in judged.steps
    }  # fmt: skip
    started = Service() if command else Service(argv=["searchd", "--nodetach", f"--x={words}"])
    trials = [
        Trial(
            trial=run.trial, treatment=t.treatment, block=run.block, position=position,
            label=t.label, subject=subjects[t.treatment], levels=dict(t.levels), system=t.system,
            engine=t.system, version="2.2.11" + words, service=started,
            attached="http://127.0.0.1:9306" if command else None,
            endpoints=["127.0.0.1:9306"],
            queries=Queries(name="paths.txt", digest="beef", distinct=1000),
            load=loads[t.treatment], window=Window(1_000_000_000, 11_000_000_000),
        )
        for position, (t, run) in enumerate((t, run) for t in judged.treatments for run in t.trials)
    ]  # fmt: skip
    planned = tuple(
        Treatment(
            id=t.treatment, label=t.label, system=t.system, engine=t.system, levels=dict(t.levels),
            settings={"load": {"kind": loads[t.treatment].kind}}, subject=subjects[t.treatment],
        )
        for t in judged.treatments
    )  # fmt: skip
    promises = tuple(dict.fromkeys(c.promise for c in judged.capacity))
    judging = Judging(measure=judged.measure, promises=promises, command=tuple(command))
    plan = Plan(question=judged.question, seed=7, treatments=planned, judging=judging)
    return Kept(plan, _host(words), f"question = 'How?'\n{words}\n[load]\n", trials)
