"""``make bench``: measures every figure here and now, and prints it beside its target.

    python benches/figures.py [NAME ...] [--markdown FILE]

Only those benches whose name begins so; what they find also goes into the places that FILE has for
them (BENCHMARKS.md). Benches that take hours, or much disk, run only where their whole name is
given.

Each figure is a ratio or a difference within one run, so a slow machine does not fail it; what is
missed is printed as missed. Nothing else should run at the same time.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benches import (
    away,
    capacity,
    cars,
    client_cpu,
    collect,
    direct,
    engines,
    gate,
    http_clients,
    ingest,
    judge,
    judge_capacity,
    judge_verdicts,
    judging,
    logs,
    memory,
    million,
    places,
    planted,
    roles,
    schedule,
    sql_client,
    start,
    truth,
    warming,
)
from benches.figure import Figure, Missing
from benches.table import Table, place, section

BENCHES: dict[str, Callable[[], Iterable[Figure | Table | Missing]]] = {
    "clients": http_clients.figures,
    "tls": http_clients.tls,
    "core": client_cpu.figures,
    "sql": sql_client.figures,
    "million": million.figures,
    "schedule": schedule.figures,
    "truth": truth.figures,
    "capacity": capacity.figures,
    "memory": memory.figures,
    "places": places.figures,
    "roles": roles.figures,
    "engines": engines.figures,
    "direct": direct.figures,
    "ingest": ingest.figures,
    "ingest-cars": cars.figures,
    "collect": collect.figures,
    "away": away.figures,
    "judge": judge.figures,
    "judge-verdicts": judge_verdicts.figures,
    "judge-capacity": judge_capacity.figures,
    "judging": judging.figures,
    "logs": logs.figures,
    "gate": gate.figures,
    "start": start.figures,
    "warming": warming.figures,
    "ingest-3m": cars.whole,
    "logs-planted": planted.figures,
}
LONG = {"ingest-3m", "logs-planted"}
"""Of these, those that take hours, or more than ten gigabytes of disk."""


def main() -> int:
    """Run the benches; 1 where one broke off, and 0 even where a figure is missed."""
    parser = argparse.ArgumentParser(description="Measure what searchbench is held to.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHES))
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there too")
    asked = parser.parse_args()
    unknown = [name for name in asked.names if not any(chosen(b, [name]) for b in BENCHES)]
    if unknown:
        parser.error(f"no bench begins with {unknown[0]!r}; there are {', '.join(BENCHES)}")
    machine = _machine()
    print(machine + "\n")
    broken = False
    for name, bench in BENCHES.items():
        if not chosen(name, asked.names):
            continue
        began = time.monotonic()
        told: list[Figure | Table] = []
        missing: list[str] = []
        try:
            for one in bench():
                if isinstance(one, Missing):
                    missing.append(one.text)
                else:
                    told.append(one)
                print(one.text() if isinstance(one, Table) else one.line(), flush=True)
        except Exception:
            # The other benches take long, and know nothing of this one.
            traceback.print_exc()
            broken = True
        print(f"  ({name}: {time.monotonic() - began:.0f} s)\n", flush=True)
        if asked.markdown:
            text = section(f"{machine}; {datetime.now(UTC):%Y-%m-%d}", told, missing)
            if not place(asked.markdown, name, text):
                print(f"  {asked.markdown} has no place for {name}\n")
    return 1 if broken else 0


def chosen(name: str, asked: Sequence[str]) -> bool:
    """Does this bench run where these names were asked for? None: all but the long ones."""
    if name in LONG:
        return name in asked
    return not asked or any(name.startswith(wanted) for wanted in asked)


def _machine() -> str:
    """The machine by name, and what runs on it, in one line."""
    from searchbench.lab.place.host import fingerprint

    machine = fingerprint()
    virtual = "virtual, " if machine.get("virtual") else ""
    return (
        f"{machine.get('cpu')}, {machine['cores']} cores, {virtual}"
        f"{machine['memory_bytes'] / 2**30:.0f} GiB, {machine.get('distribution', '')}, "
        f"Linux {machine['kernel']}, clock {machine.get('clocksource')}, "
        f"TCP {machine.get('tcp_congestion_control')}, searchbench {machine['searchbench']}"
    )


if __name__ == "__main__":
    sys.exit(main())
