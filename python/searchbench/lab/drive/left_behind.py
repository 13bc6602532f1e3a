"""What operations that broke off left behind is removed, once their drive is over.

Within a drive the core sends the clean-up of an operation that lost its connection before the next
one on the same connection. The last of each has no next.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np

from searchbench import _core
from searchbench.engines.engine import Request
from searchbench.lab.wire.exchange import Endpoint, Refused, Trace, ask, samples_of

# Outcomes by which an operation ends without its clean-up.
_BROKEN = ("timed_out", "reset", "truncated", "malformed", "unfinished")
_CODES = [_core.OUTCOMES.index(name) for name in _BROKEN]
_LEAST_S = 60.0


def clean_up(
    endpoint: Endpoint, requests: Sequence[Request], trace: Trace, timeout_s: float
) -> None:
    """Send the clean-up of those that broke off, each text once; what it comes to is not minded.

    A server may still be at what broke off, and keep what is to be removed until it has done that.
    """
    if not any(r.after for r in requests):
        return
    samples = samples_of(trace)
    broken = samples["request"][np.isin(samples["outcome"], _CODES) & (samples["sent"] >= 0)]
    remove(endpoint, (requests[n] for n in np.unique(broken).tolist()), timeout_s)


def remove(endpoint: Endpoint, requests: Iterable[Request], timeout_s: float) -> None:
    """The clean-up of these, each text once, on connections of its own."""
    cleaning = dict.fromkeys(
        tuple(itertools.islice(r.exchanges, len(r.exchanges) - r.after, None))
        for r in requests
        if r.after
    )
    for exchanges in cleaning:
        with suppress(Refused):
            ask(endpoint, [Request(exchanges)], timeout_s=max(timeout_s, _LEAST_S))
