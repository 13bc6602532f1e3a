"""``make bench``: measures every figure here and now, and prints it beside its target.

    python benches/figures.py [NAME ...]      only those whose name begins so

Each figure is a ratio or a difference within one run, so a slow machine does not fail it; what is
missed is printed as missed. Nothing else should run at the same time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benches import capacity, client_cpu, engines, ingest, judging, sql_client, start, truth
from benches.figure import Figure

BENCHES: dict[str, Callable[[], Iterable[Figure]]] = {
    "client": client_cpu.figures,
    "sql": sql_client.figures,
    "truth": truth.figures,
    "capacity": capacity.figures,
    "engines": engines.figures,
    "ingest": ingest.figures,
    "judging": judging.figures,
    "start": start.figures,
}


def main() -> int:
    """Run the benches; the exit code is 0 even where a figure is missed: it is for reading."""
    wanted = sys.argv[1:]
    from searchbench.lab.host import fingerprint

    machine = fingerprint()
    print(f"{machine.get('cpu')}, {machine['cores']} cores, Linux {machine['kernel']}")
    print(f"searchbench {machine['searchbench']}, clock {machine.get('clocksource')}\n")
    for name, bench in BENCHES.items():
        if wanted and not any(name.startswith(w) for w in wanted):
            continue
        began = time.monotonic()
        for figure in bench():
            print(figure.line(), flush=True)
        print(f"  ({name}: {time.monotonic() - began:.0f} s)\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
