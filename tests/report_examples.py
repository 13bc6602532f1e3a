"""Judgements made by hand, and records that fit them, for the tests of the report.

The numbers are computed from simple formulas, so that what a page must show is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from searchbench.analysis.judgement import (
    Agreement,
    Comparison,
    Curve,
    Difference,
    Estimate,
    Finding,
    GroupAgreement,
    Interval,
    Judgement,
    TreatmentResult,
    TrialResult,
    Verdict,
)

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


@dataclass
class Kept:
    """What a report reads of a record, held in memory."""

    plan: Mapping[str, Any]
    host: Mapping[str, Any]
    study_text: str
    trials: list[dict[str, Any]]
    about: Mapping[str, Any] = field(
        default_factory=lambda: {"searchbench": "0.1.0", "created": "2026-01-31T12:00:00Z"}
    )


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
            "peak_rss_bytes": 120_000_000 + 9_000_000 * i,
            "read_bytes": 4096 * i,
            "index_bytes": 21_000_000,
            "ingest_documents_per_s": 31_200.0 / (1 + i),
        }
        for i, t in enumerate(found)
    }
    excluded = (({"system": "sqlite", "search_threads": 4}, "sqlite has no such parameter"),)
    if hostile:
        excluded += tuple(({x: x}, x) for x in HOSTILE)
    return Judgement(
        HOSTILE[0] + HOSTILE[7] if hostile else "Which system serves package search best?",
        " ".join(HOSTILE) if hostile else "A first look at two embedded engines on real text.",
        Verdict(decision + (" ".join(HOSTILE) if hostile else ""), resolved, "t00"),
        found,
        compared(found),
        Estimate(1.03, "ratio", 5),
        (agreement(texts),),
        findings,
        excluded,
        scaling,
        resources,
    )


def record(judged: Judgement, *, load: str = "closed", hostile: bool = False) -> Kept:
    """A record that fits a judgement."""
    words = " ".join(HOSTILE) if hostile else ""
    loads = {"kind": load, "clients": 4, "think_s": 0.0, "timeout_s": 10.0, "idle": "hybrid"}
    if load == "open":
        loads |= {"rate_per_s": 1000.0, "arrivals": "poisson", "connections": 256}
    trials: list[dict[str, Any]] = []
    for t in judged.treatments:
        for position, run in enumerate(t.trials):
            trials.append(
                {
                    "trial": run.trial, "treatment": t.treatment, "block": run.block,
                    "position": position, "control": run.control,
                    "status": "failed" if run.status == "failed" else "ok",
                    "label": t.label, "levels": dict(t.levels), "system": t.system,
                    "engine": t.system, "version": "0.27.0" + words,
                    "parameters": {"parts": 1, "search_threads": 1, "odd": words},
                    "service": {
                        "argv": ["searchbench-host", t.system, "--port", "0", f"--x={words}"],
                        "files": {f"conf/{words}engine.toml": f"threads = 4\n# {words}\n" * 6},
                        "env": {"RUST_LOG": "warn" + words},
                    },
                    "corpus": {
                        "name": "debian" + words, "digest": "5f3a9c" * 8,
                        "documents": 63905, "text_bytes": 26_500_000,
                    },
                    "queries": {"name": "sampled", "digest": "beef", "distinct": 6770},
                    "load": loads,
                    "window": {"start": 2_000_000_000, "end": 10_000_000_000},
                    "ingest": {"documents": 63905, "seconds": 2.05, "index_bytes": 21_000_000},
                    "drive": {"threads": [{"cpu": 1, "user_ns": 8e8}], "clock": "tsc"},
                    "unsupported": [{"query": 3, "reason": "fuzzy: upstream must " + words}],
                    "stages": {"deploy": 0.3, "ingest": 2.05},
                }
            )  # fmt: skip
    planned = [
        {"id": t.treatment, "label": t.label, "system": t.system, "load": loads}
        for t in judged.treatments
    ]
    plan = {"seed": 7, "question": judged.question, "treatments": planned, "judging": {}}
    host = {
        "cpu": "AMD EPYC 7B13" + words, "cores": 2, "memory_bytes": 8 << 30, "kernel": "6.12.1",
        "clocksource": "tsc", "governor": None, "fit": {"steal": False, "swap": "none"},
    }  # fmt: skip
    study = 'question = "Which system serves package search best?"\n' + words + "\n[load]\n"
    return Kept(plan, host, study, trials)
