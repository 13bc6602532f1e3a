"""A part of a log's time: ``--since`` and ``--until``, by the clock that the page shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from searchbench.errors import QueryError

_SECOND = 1_000_000_000
# Times that a log cannot have. The least i64 is that of an entry without a time.
_NEVER, _EVER = -(2**63) + 1, 2**63 - 1


@dataclass(frozen=True, slots=True)
class Within:
    """What began from ``since_s`` on and before ``until_s`` (seconds since 1970, by the clock that
    the page shows; None: no bound).
    """

    since_s: float | None
    until_s: float | None

    @property
    def span_ns(self) -> tuple[int, int]:
        """The first nanosecond, and that after the last."""
        since = _NEVER if self.since_s is None else round(self.since_s * _SECOND)
        until = _EVER if self.until_s is None else round(self.until_s * _SECOND)
        return since, until

    def __str__(self) -> str:
        since = "" if self.since_s is None else f"at {_shown(self.since_s)} or later"
        until = "" if self.until_s is None else f"before {_shown(self.until_s)}"
        return f"{since} and {until}" if since and until else since or until


def within_said(since: str, until: str) -> Within | None:
    """The part that a user names; "": no bound. None: all of the log.

    QueryError where that is no time, or an empty part.
    """
    if not since and not until:
        return None
    found = Within(_instant("--since", since), _instant("--until", until))
    if found.since_s is not None and found.until_s is not None and found.since_s >= found.until_s:
        raise QueryError(f"--since {since} is not before --until {until}: nothing is between them")
    return found


def _instant(option: str, text: str) -> float | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise QueryError(
            f"{option} {text}: write a time as 2026-11-22T10:00, or a day as 2026-11-22"
        ) from None
    if found.tzinfo is not None:
        raise QueryError(
            f"{option} {text}: write it without a zone, as the page shows times: in UTC where the "
            "zone of the log is known, else as the log writes them"
        )
    return found.replace(tzinfo=UTC).timestamp()


def _shown(at_s: float) -> str:
    text = datetime.fromtimestamp(at_s, UTC).isoformat(" ").removesuffix("+00:00")
    return text.removesuffix(":00")
