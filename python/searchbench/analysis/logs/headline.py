"""One sentence of findings: what leads the page of a log and the answer on a terminal.

First how long searches took, then what matters most of the rest, two things at most: what went
wrong before what is slow, and that before what is only good to know. Warnings that have no room in
it stand beside it, and everything else in the remarks.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

from searchbench.analysis.logs.model import LogJudgement, Row
from searchbench.analysis.logs.remarks import (
    MANY,
    bound,
    has_fields,
    heaviest,
    hits_of_all,
    named_class,
    percent,
    seconds,
    threshold,
    timed_share,
)

_BESIDE = 2  # findings beside the times


def headline(of: LogJudgement) -> str:
    """The sentence."""
    if of.all is None:
        if of.during and not of.others + of.parts:
            return f"No entry of the log began {of.during}."
        part = f" that began {of.during}" if of.during else " that were read"
        return f"None of the {of.others + of.parts:,} entries{part} is a search."
    first = _times(of, of.all)
    chosen = list(islice(_found(of, of.all), _BESIDE))
    # Shares of all searches first: after "in the hour" they would be taken for that hour's.
    others = [text for _, text in sorted(chosen, key=lambda one: one[0])]
    return "; ".join([first, *([" and ".join(_with_commas(others))] if others else [])]) + "."


def _with_commas(texts: list[str]) -> list[str]:
    return [f"{text}," for text in texts[:-1]] + texts[-1:]


def _times(of: LogJudgement, all_: Row) -> str:
    n = f"{all_.n:,} {'search' if all_.n == 1 else 'searches'}"
    if not all_.quantiles_s:
        if has_fields(of):
            return f"The log has {n}, and no field that is known to say how long they took"
        return f"The log has {n}, and does not say how long they took"
    whose = f"the {n}"
    if (cut := threshold(of)) is not None:
        seems = "seems to" if cut.sure else "may"
        whose += f" in the log, which {seems} have only those longer than {seconds(cut.seconds)},"
    elif (share := timed_share(of, all_)) is not None:
        whose = f"the {of.spread.count:,} searches whose time the log has ({percent(share)} of all)"
    half, most = (bound(all_.quantiles_s.get(q), of.resolution_s) for q in ("p50", "p99"))
    if half == most:
        return f"99 % of {whose} took {most}"
    return f"Half of {whose} took {half}, and 99 % {most}"


def _found(of: LogJudgement, all_: Row) -> Iterator[tuple[int, str]]:
    """(place in the sentence, finding), what matters most first."""
    lines, unread = (sum(int(str(s[key])) for s in of.sources if not s["refused"])
                     for key in ("lines", "unread"))  # fmt: skip
    if unread >= MANY * max(1, lines):
        yield 0, f"{percent(unread / lines)} of the lines could not be read"
    if all_.errors is not None and all_.errors >= MANY:
        yield 1, f"{percent(all_.errors)} failed"
    if all_.partial >= MANY:
        yield 1, f"{percent(all_.partial)} were answered in part only"
    if hour := of.worst_hour:
        at = datetime.fromtimestamp(hour.at_s, UTC).strftime("%Y-%m-%d %H:%M")
        times = f"{hour.mean_s / hour.usual_s:.2g}"
        yield 3, f"searches took {times} times as long as usual in the hour from {at} on"
    if (first := heaviest(of)) is not None:
        every = timed_share(of, all_) is None and threshold(of) is None
        whole = "of all time" if every else "of the time that the log has"
        yield 2, f"`{named_class(first)}` took {percent(first.share_of_time or 0.0)} {whole}"
    if all_.zero is not None and all_.zero >= MANY and hits_of_all(all_):
        yield 1, f"{percent(all_.zero)} found nothing"
    if of.repeats is not None and of.repeats.repeated >= MANY:
        yield 1, f"{percent(of.repeats.repeated)} repeated an earlier one"
