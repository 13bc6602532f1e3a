"""``searchbench load --find-capacity``: the search decides, the lab drives, the audit judges.

Every probe is a trial on record, judged from the record alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchbench.analysis.capacity import promise
from searchbench.analysis.capacity import search as seek
from searchbench.analysis.trial.measured import read_trace
from searchbench.errors import SearchbenchError
from searchbench.lab.conduct.load import LoadRun, Step
from searchbench.workload.loads import open_load

if TYPE_CHECKING:
    from searchbench.analysis.capacity.promise import Condition, Judged

_GLANCE_CLIENTS = 16
_GLANCE_S = 2.0


def find_capacity(
    run: LoadRun, slo: str, table: Mapping[str, Any], *, effort: float = 1.0
) -> dict[str, seek.Found]:
    """Search the capacity of each system of the run, one after another; also put on record.

    ``table``: a ``[load]`` table of an open loop, without its rate and its window.
    SearchbenchError where the promise is none.
    """
    conditions = promise.parse(slo)
    found = {}
    for number, system in enumerate(run.systems):
        first = max(1.0, 0.9 * run.glance(number, _GLANCE_CLIENTS, _GLANCE_S))
        found[system.name] = seek.seek(
            _Prober(run, number, conditions, table), first, effort=effort
        )
        run.conclude({"capacity": {name: _plain(slo, f) for name, f in found.items()}})
    return found


class _Prober:
    def __init__(
        self, run: LoadRun, system: int, conditions: tuple[Condition, ...], table: Mapping[str, Any]
    ) -> None:
        self._run = run
        self._system = system
        self._conditions = conditions
        self._table = table
        self._times: dict[float, int] = {}

    def __call__(self, rate_per_s: float, seconds: float) -> Judged:
        rate = float(f"{rate_per_s:.6g}")
        spec = {
            **self._table,
            "rate_per_s": rate,
            "seconds": round(seconds, 3),
            "warmup_s": round(seek.warmup_s(seconds), 3),
        }
        again = self._times[rate] = self._times.get(rate, 0) + 1
        levels: dict[str, Any] = {"rate_per_s": rate} | ({"probe": again} if again > 1 else {})
        trial = self._run.add(Step(self._system, open_load(spec, Path()), spec, levels))
        if trial.get("status") != "ok":
            raise SearchbenchError(
                f"the probe at {rate:g}/s failed: {trial.get('reason')}; what was measured is on "
                "record"
            )
        return promise.judge(self._conditions, read_trace(self._run.record, trial))


def _plain(slo: str, found: seek.Found) -> dict[str, Any]:
    """What the record keeps of a search."""
    return {
        "slo": slo,
        "holds_per_s": found.holds,
        "fails_per_s": found.fails,
        "width": found.width,
        "chance_inside": found.chance_inside,
        "sentence": found.sentence,
        "probes": [
            {"rate_per_s": p.rate_per_s, "seconds": p.seconds, "judged": asdict(p.judged)}
            for p in found.probes
        ],
    }
