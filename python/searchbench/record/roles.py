"""What the record keeps of the roles beside the readers: typed, and their tables.

Each role has files of its own below ``roles/`` in the folder of a trial, so that samples.parquet
is that of the readers alone, as it is where a trial has no other roles.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa

from searchbench.record.drive import Drive
from searchbench.record.queries import Queries, Unsupported

WRITES = pa.schema(
    [
        ("request", pa.uint32()),
        ("kind", pa.string()),
        ("documents", pa.uint32()),
        ("marker", pa.string()),
        ("refused", pa.uint32()),
        ("error", pa.string()),
    ]
)
"""A row for each request of a writer that was planned; samples name it in ``query``."""

ASKS = pa.schema(
    [
        ("sent", pa.int64()),
        ("done", pa.int64()),
        ("total", pa.int64()),
        ("ids", pa.list_(pa.string())),
        ("error", pa.string()),
    ]
)
"""A row for each time that it was asked which markers can be found, in order."""


class Publishing(msgspec.Struct, frozen=True, kw_only=True):
    """What makes written documents visible, as the engine declares it; as of ``engines.write``."""

    how: str = ""
    unasked: str = ""


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """A written document that was asked for once all was over, by a word that is in no other.

    ``request``: that wrote it. ``found``: the ids of all that have the word; ``error``: why that is
    not known.
    """

    word: str
    id: str
    kind: str
    request: int
    found: list[str] = []
    error: str = ""


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine had once its writer had ended and all was published.

    ``before``: documents before the drive, by its own count; ``after``: after it (None: it does not
    say). ``publish_s``: how long the last publish took. ``drawn``: documents that were asked for.
    ``gone``: ids of documents whose deletion was acknowledged, and which an answer showed
    afterwards; ``looked``: of how many deleted ones an answer before had shown them. ``updated``:
    how many documents have the word that every update writes, by the engine's exact total; None
    where there is none, with the reason in ``uncounted``, or nothing was updated.
    """

    before: int | None = None
    after: int | None = None
    publish_s: float = 0.0
    drawn: list[Drawn] = []
    gone: list[str] = []
    looked: int = 0
    updated: int | None = None
    uncounted: str = ""


class FaultDone(msgspec.Struct, kw_only=True):
    """A fault as it happened; instants in ns on the clock of the drive, None: did not happen.

    ``fault``, ``of``: as in the study. ``processes``: how many it was of. ``begun``: when it was
    signalled. ``ended``: when all of its processes had ended (of a freeze: None). ``again``: when
    it was started again, or went on. ``ready``: when the whole service was first seen to answer as
    after a start. ``trouble``: why it did not come back; empty if it did.
    """

    fault: str
    of: str
    processes: int = 0
    begun: int | None = None
    ended: int | None = None
    again: int | None = None
    ready: int | None = None
    trouble: str = ""


class RoleRun(msgspec.Struct, kw_only=True):
    """One role of a trial beside the readers, as it went.

    ``number``: in the samples' column ``role``; ``idle``: it did nothing in this trial. ``keys``:
    its table in the study, complete. ``planned``: how many requests it would have sent by its clock
    or had to send; ``failed``: why it ended before the others, in words. ``start``, ``end``: of a
    job's command, ns on the clock of the drive; of one that was run several times the first start
    and the last end, and each in ``spans``. ``fault``: what became of one, as far as it went.
    ``queries``: what one that reads asks; ``unsupported``: what of that the engine cannot express.
    """

    name: str
    number: int
    does: str
    idle: bool = False
    keys: dict[str, Any] = {}
    planned: int = 0
    kept_back: int = 0
    marker_field: str = ""
    failed: str = ""
    start: int | None = None
    end: int | None = None
    spans: list[tuple[int, int]] = []
    drive: Drive | None = None
    publishing: Publishing | None = None
    applied: Applied | None = None
    fault: FaultDone | None = None
    queries: Queries | None = None
    unsupported: list[Unsupported] = []
