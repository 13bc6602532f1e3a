"""A share of CPU: what a busy loop gets of it, and what a system that was driven took."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence

from msgspec.structs import replace

from searchbench.lab.place.group import Cpu, Group
from searchbench.lab.system.seat import in_child
from searchbench.places import Host, Place
from searchbench.record.trial import Lever

# The kernel looks at each tick, so what one period gave too much the next ones lack: of a small
# share, whose periods are long, that takes seconds to even out.
_SPINS_S, _LONGEST_S, _OF_SHARE_S = 0.4, 6.0, 0.06
_OFF = 0.1  # what it may be off, of itself, in so short a time
_MORE = 1.05  # what a system may have had of it in a drive


def shared(place: Place | Host, group: Group, cpus: Sequence[int]) -> Lever:
    """What processes in the group get that ask for all the time of each core.

    The kernel counts the time on all cores together. So with several cores one thread may have more
    than its share of the core on which it is; how much is measured too.
    """
    asked, count = place.cpu_share, len(cpus)
    spins_s = min(_LONGEST_S, max(_SPINS_S, _OF_SHARE_S / asked))
    got, has = _busy(group, cpus, spins_s) / count, group.shared_cpu() / count
    effect = f"a busy loop had {got:.0%} of each core"
    problem = "" if abs(has - asked) < 1e-3 + 1e-3 * asked else f"the kernel has set {has:.3f}"
    if got > asked * (1 + _OFF) + 0.01:
        problem = problem or f"{effect}: more than its share"
    figures = {"measured_share": got}
    if count > 1:
        figures["alone_share"] = alone = _busy(group, cpus[:1], spins_s)
        effect += f", and one loop alone {alone:.0%} of its core"
    return Lever(
        name=f"{place.section}.cpu_share",
        asked=f"{asked:g}",
        read_back=f"{has:.3f}",
        effect=effect,
        problem=problem,
        figures=figures,
    )


def _busy(group: Group, cpus: Sequence[int], seconds: float) -> float:
    """How many cores' worth of time busy loops get in the group, one on each of these cores."""
    joins = (*group.joins_of("cpu"), *group.joins_of("cpuacct"))
    before, began = group.cpu().used_s, time.monotonic()
    children = [
        subprocess.Popen(
            ["sh", "-c", "while :; do :; done"], stdin=subprocess.DEVNULL,
            preexec_fn=in_child((cpu,), joins),
        )
        for cpu in cpus
    ]  # fmt: skip
    try:
        time.sleep(seconds)
        return (group.cpu().used_s - before) / (time.monotonic() - began)
    finally:
        for child in children:
            child.kill()
            child.wait()


def taken(lever: Lever, share: float, before: Cpu, now: Cpu, core_s: float) -> Lever:
    """The lever with what the system took, of so many seconds of its cores."""
    used, stopped = (now.used_s - before.used_s) / core_s, now.throttled - before.throttled
    loop = lever.effect.partition(";")[0]
    effect = f"{loop}; the system had {used:.0%}, and was held back {stopped:,} times"
    more = used > share * _MORE + 0.01
    figures = {
        "used_share": used,
        "throttled": float(stopped),
        "throttled_s": now.throttled_s - before.throttled_s,
    }
    problem = lever.problem or (f"{effect}: more than its share" if more else "")
    return replace(lever, effect=effect, problem=problem, figures={**lever.figures, **figures})
