"""A limit of a device is judged by what was let through in all, not by how it was caught up on."""

import numpy as np
import pytest

from searchbench.lab.place import reads, throttle

LIMIT = 36_000


def let_through(seconds: float, *, limit: float, idle: tuple[float, float]) -> list[float]:
    """When requests are done under a limit that makes up for all that it held back.

    ``idle``: from when to when nothing is sent, as shares of the look.
    """
    step, held, done = 1e-3, limit * 0.1, []
    idle_s = [seconds * share for share in idle]
    for t in np.arange(0, seconds + reads.SETTLES_S, step):
        held += limit * step
        if not idle_s[0] <= t < idle_s[1]:
            n = min(int(held), int(2 * limit * step))  # what can send is twice as fast
            held -= n
            done += np.linspace(t, t + step, n, endpoint=False).tolist()
    return done


def looks(limit: float, idle: tuple[float, float]) -> list[tuple[float, float]]:
    """Each look's seconds and its rate, and in the end what was found."""
    found = []

    def measure(seconds: float) -> dict[str, throttle.Requests]:
        done = let_through(seconds, limit=limit, idle=idle)
        counted = [t for t in done if t >= reads.SETTLES_S]
        per_s = reads.slope(counted)
        found.append((seconds, per_s))
        return {"write_iops": throttle.Requests(per_s, len(done), max(done))}

    found.append((0.0, throttle.settled(measure, {"write_iops": LIMIT})["write_iops"]))
    return found


def test_senders_that_catch_up_have_not_had_more_than_the_limit() -> None:
    *seen, (_, found) = looks(LIMIT, idle=(0.1, 0.3))
    assert all(per_s > LIMIT * (1 + throttle.TOLERANCE) for _, per_s in seen[:2])
    assert found < LIMIT * (1 + throttle.TOLERANCE)
    assert found > LIMIT * throttle._SHORT


@pytest.mark.parametrize("idle", [(9.0, 9.0), (0.1, 0.3)])
def test_a_limit_that_lets_more_through_is_found(idle: tuple[float, float]) -> None:
    *_, (_, found) = looks(LIMIT * 1.1, idle=idle)
    assert found > LIMIT * (1 + throttle.TOLERANCE)
