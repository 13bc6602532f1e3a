"""The HTTP clients: wrk, wrk2, ab, h2load, hey, oha, k6; one thread each.

Each is asked in the way that serves it best: no terminal interface, bodies thrown away once read
where it can be told so, as many connections as ours. Over TLS none checks the certificate: wrk, ab,
h2load and hey never do, the others are told not to.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from benches.peers.peer import Asked, Peer, Said

_CLOSE = ["-H", "Connection: close"]
_UNITS_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 60e3}


def _ms(text: str) -> float:
    """Milliseconds of a duration with a unit: 31.39ms, 440us, 1.2s."""
    found = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text)
    if not found:
        raise ValueError(f"{text!r} is no duration")
    return float(found[1]) * _UNITS_MS[found[2]]


def _one(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if not found:
        raise ValueError(f"nothing like {pattern!r}")
    return found[1]


def _count(pattern: str, text: str) -> int:
    """The number that the pattern finds, 0 where it finds none."""
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


# wrk knows whole seconds only, and no count.
def _wrk(asked: Asked, place: Path) -> list[str] | None:
    if asked.per_s is not None or asked.requests is not None:
        return None
    close = [] if asked.keep_alive else _CLOSE
    return ["-t1", f"-c{asked.pool}", f"-d{round(asked.seconds)}s", "--latency", *close, asked.url]


def _wrk2(asked: Asked, place: Path) -> list[str] | None:
    if asked.per_s is None:
        return None
    how = ["-t1", f"-c{asked.pool}", f"-d{round(asked.seconds)}s", f"-R{asked.per_s:g}"]
    return [*how, "--latency", asked.url]


def wrk_said(out: str, asked: Asked) -> Said:
    """Of wrk and of wrk2, whose percentiles have three decimals and go to 100."""
    latency = {f"p{q}": _ms(_one(rf"\n\s*{q}(?:\.000)?%\s+(\S+)", out)) for q in (50, 90, 99)}
    whole = re.search(r"\n\s*100\.000%\s+(\S+)", out)
    most = whole[1] if whole else _one(r"\n\s*Latency\s+\S+\s+\S+\s+(\S+)", out)
    errors = re.search(r"connect (\d+), read (\d+), write (\d+), timeout (\d+)", out)
    failed = sum(map(int, errors.groups())) if errors else 0
    failed += _count(r"Non-2xx or 3xx responses: (\d+)", out)
    return Said(int(_one(r"(\d+) requests in", out)), failed, latency | {"max": _ms(most)})


# -t sets -n to 50,000, so -n follows it; without -l a reply of another length is a failure.
def _ab(asked: Asked, place: Path) -> list[str] | None:
    if asked.per_s is not None:
        return None
    many = str(asked.requests or 5_000_000)
    until = [] if asked.requests else ["-t", f"{round(asked.seconds)}"]
    keep = ["-k"] if asked.keep_alive else []
    return ["-q", "-l", *keep, "-c", str(asked.pool), *until, "-n", many, asked.url]


def ab_said(out: str, asked: Asked) -> Said:
    """ab's percentiles are whole milliseconds."""
    names = {"p50": "50%", "p90": "90%", "p99": "99%", "max": "100%"}
    latency = {n: float(_one(rf"\n\s*{mark}\s+(\d+)", out)) for n, mark in names.items()}
    answered = int(_one(r"Complete requests:\s+(\d+)", out))
    failed = int(_one(r"Failed requests:\s+(\d+)", out))
    return Said(answered - failed, failed + _count(r"Non-2xx responses:\s+(\d+)", out), latency)


# No way to close a connection after a reply, nor a rate for all together.
def _h2load(asked: Asked, place: Path) -> list[str] | None:
    if asked.per_s is not None or not asked.keep_alive:
        return None
    until = ["-n", str(asked.requests)] if asked.requests else ["-D", f"{asked.seconds:g}"]
    return ["--h1", "-t1", f"-c{asked.pool}", *until, asked.url]


def h2load_said(out: str, asked: Asked) -> Said:
    """h2load prints least, greatest and mean, no percentile."""
    failed = int(_one(r"(\d+) failed", out))
    latency = {"max": _ms(_one(r"time for request:\s+\S+\s+(\S+)", out))}
    return Said(int(_one(r"(\d+) succeeded", out)), failed, latency)


# Its rate is that of each worker.
def _hey(asked: Asked, place: Path) -> list[str] | None:
    until = ["-n", str(asked.requests)] if asked.requests else ["-z", f"{asked.seconds:g}s"]
    rate = ["-q", f"{asked.per_s / asked.pool:g}"] if asked.per_s else []
    close = [] if asked.keep_alive else ["-disable-keepalive"]
    return [*until, "-c", str(asked.pool), "-cpus", "1", *rate, *close, asked.url]


def hey_said(out: str, asked: Asked) -> Said:
    """hey's latencies are tenths of a millisecond, and of few requests there is no p99."""
    told = {int(q): float(s) for q, s in re.findall(r"(\d+)%+ in ([\d.]+) secs", out)}
    latency = {f"p{q}": told[q] * 1e3 for q in (50, 90, 99) if q in told}
    latency["max"] = float(_one(r"Slowest:\s+([\d.]+)", out)) * 1e3
    codes = {int(c): int(n) for c, n in re.findall(r"\[(\d{3})\]\s+(\d+) responses", out)}
    errors = out.partition("Error distribution:")[2]
    failed = sum(n for c, n in codes.items() if c != 200)
    failed += sum(int(n) for n in re.findall(r"\[(\d+)\]\t", errors))
    return Said(codes.get(200, 0), failed, latency)


def _oha(asked: Asked, place: Path) -> list[str] | None:
    until = ["-n", str(asked.requests)] if asked.requests else ["-z", f"{asked.seconds:g}s"]
    rate = ["-q", f"{asked.per_s:g}"] if asked.per_s else []
    close = [] if asked.keep_alive else ["--disable-keepalive"]
    quiet = ["--no-tui", "--output-format", "json", "--worker-threads", "1", "--insecure"]
    return [*quiet, *until, "-c", str(asked.pool), *rate, *close, asked.url]


def _oha_corrected(asked: Asked, place: Path) -> list[str] | None:
    return None if asked.per_s is None else ["--latency-correction", *(_oha(asked, place) or [])]


def oha_said(out: str, asked: Asked) -> Said:
    """What was in flight at the deadline is an error to oha, and none here."""
    all_of_it = json.loads(out)
    percentiles, codes = all_of_it["latencyPercentiles"], all_of_it["statusCodeDistribution"]
    latency = {p: percentiles[p] * 1e3 for p in ("p50", "p90", "p99")}
    latency["max"] = all_of_it["summary"]["slowest"] * 1e3
    errors = all_of_it.get("errorDistribution", {})
    failed = sum(n for code, n in codes.items() if code != "200")
    failed += sum(n for why, n in errors.items() if "deadline" not in why)
    return Said(codes.get("200", 0), failed, latency)


_K6 = """\
import http from 'k6/http';
export const options = {
  scenarios: { all: SCENARIO },
  discardResponseBodies: true,
  insecureSkipTLSVerify: true,
  noConnectionReuse: CLOSE,
  summaryTrendStats: ['p(50)', 'p(90)', 'p(99)', 'max'],
};
export default function () { http.get('URL'); }
export function handleSummary(data) { return { stdout: JSON.stringify(data.metrics) }; }
"""


def _k6(asked: Asked, place: Path) -> list[str] | None:
    lasts = {"duration": f"{round(asked.seconds * 1e3)}ms", "gracefulStop": "10s"}
    scenario: dict[str, object]
    if asked.requests is not None:
        each = asked.requests // asked.pool
        scenario = {"executor": "per-vu-iterations", "vus": asked.pool, "iterations": each}
    elif asked.per_s is None:
        scenario = {"executor": "constant-vus", "vus": asked.pool, **lasts}
    else:
        scenario = {
            "executor": "constant-arrival-rate", "rate": round(asked.per_s), "timeUnit": "1s",
            "preAllocatedVUs": asked.pool, "maxVUs": asked.pool, **lasts,
        }  # fmt: skip
    script = _K6.replace("SCENARIO", json.dumps(scenario)).replace("URL", asked.url)
    close = "false" if asked.keep_alive else "true"
    (place / "script.js").write_text(script.replace("CLOSE", close))
    return ["run", "--quiet", "--no-usage-report", "--address", "", "script.js"]


def k6_said(out: str, asked: Asked) -> Said:
    """What k6 never sent for want of a user (``dropped_iterations``) counts as failed."""
    metrics = json.loads(out)
    duration = metrics["http_req_duration"]["values"]
    latency = {f"p{q}": duration[f"p({q})"] for q in (50, 90, 99)} | {"max": duration["max"]}
    # Of a rate of failures the passes are what failed.
    failed = metrics["http_req_failed"]["values"]["passes"]
    dropped = metrics.get("dropped_iterations", {"values": {"count": 0}})["values"]["count"]
    return Said(metrics["http_reqs"]["values"]["count"] - failed, failed + dropped, latency)


PEERS = (
    Peer("wrk", "Debian: apt-get install wrk", _wrk, wrk_said, ("-v",),
         "closed loop only; keeps no request (a count for each microsecond), and rewrites its "
         "latencies for what it guesses that it left out"),
    Peer("ab", "Debian: apt-get install apache2-utils", _ab, ab_said, ("-V",),
         "closed loop only, HTTP/1.0; whole milliseconds; keeps each request in memory"),
    Peer("h2load", "Debian: apt-get install nghttp2-client", _h2load, h2load_said, ("--version",),
         "closed loop only; no percentiles"),
    Peer("oha", "make bench-peers builds it with cargo", _oha, oha_said, ("--version",),
         "keeps each latency, not when it was; its rate waits for a free connection, and only "
         "--latency-correction counts that wait"),
    Peer("hey", "Debian: apt-get install hey", _hey, hey_said, (),
         "a rate only for each worker, which waits for its replies; tenths of a millisecond; the "
         "first million latencies"),
    Peer("k6", "make bench-peers builds it with Go 1.25 or later", _k6, k6_said, ("version",),
         "drops what finds no free user; adds each request to trends and says percentiles; "
         "runs JavaScript for every request, which is what it is for"),
    Peer("wrk2", "its own sources (giltene/wrk2 on GitHub): make, and put wrk on the path as wrk2",
         _wrk2, wrk_said, ("-v",), "constant rate only; a histogram, no request by itself"),
)  # fmt: skip

CORRECTED = Peer(
    "oha", "make bench-peers builds it with cargo", _oha_corrected, oha_said, ("--version",),
    "as oha",
)  # fmt: skip
