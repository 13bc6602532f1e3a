"""What is worth saying about a log, as sentences: the most telling first.

How its files were read has a file of its own (``reading``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime

from searchbench.analysis.logs.bands import Band, Bands
from searchbench.analysis.logs.model import Finer, LogJudgement, Remark, Row
from searchbench.analysis.logs.reading import (
    NO_ZONE,
    crowded,
    lettered,
    part_of_time,
    reading,
)
from searchbench.analysis.logs.spread import Threshold
from searchbench.logs.record import NEW_NAMES


def remarks(of: LogJudgement) -> Iterator[Remark]:
    """Every remark of a judgement."""
    yield from part_of_time(of)
    yield from crowded(of)
    if of.all is None and of.others + of.parts:
        yield Remark(
            "warning", "No search",
            f"None of the {of.others:,} entries that were read is a search.",
            "Say where the words are: --parameter NAME for a parameter of a path, or --column "
            "NAME=text for a field.",
        )  # fmt: skip
    elif of.all is not None:
        yield from _times(of, of.all)
        yield from _work(of, of.all)
        yield from _answers(of, of.all)
        yield from _again(of)
    yield from _new(of)
    yield from reading(of)


_ALL = 0.99  # of the searches, which are then called all
MANY = 0.01  # of the searches or lines: a share that is worth a word
_HALF = 100  # searches that half of a log's time needs to be told from the other half
_HOLES = 3  # that are named
_NAME = 60  # letters of a class within a sentence

# Logs whose fields have names.
_FIELDS = frozenset(("json", "ltsv", "csv"))


def clock_of(of: LogJudgement) -> str:
    """By which clock the times are that are shown, in words."""
    rest = [s for s in of.sources if s["entries"] and s["server"] not in of.zones]
    if of.zone or (of.zones and not rest):
        return "UTC"
    if of.zones:
        return "UTC where the zone is known, else as the log writes it"
    if all(s["format"] in NO_ZONE or lettered(s) == s["entries"] for s in rest):
        return "as the log writes it"
    return "UTC where the log names its zone, else as it writes it"


def seconds(value: float | None, resolution_s: float | None = None) -> str:
    """A time for people; one that the log gives as nought is below its resolution."""
    if value is None:
        return "unknown"
    if value == 0:
        return f"below {seconds(resolution_s)}" if resolution_s else "0 s"
    if value >= 999.5:
        return f"{value:,.0f} s"
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= unit * 0.9995:
            return f"{value / unit:.3g} {name}"
    return f"{value * 1e9:.3g} ns"


def percent(share: float) -> str:
    """A share to two digits; nearly all of it is never written as 100 %."""
    if 0.995 <= share < 1:
        return "more than 99 %"
    return f"{100 * share:.3g} %" if share == 1 else f"{100 * share:.2g} %"


def bound(value: float | None, resolution_s: float | None) -> str:
    """What a time was no longer than. A log that cuts times off writes 1 ms of all below 2 ms."""
    if value is not None and resolution_s and resolution_s > 1e-9 and value < 200 * resolution_s:
        return f"less than {seconds(value + resolution_s)}"
    return f"at most {seconds(value, resolution_s)}"


def _times(of: LogJudgement, all_: Row) -> Iterator[Remark]:
    if not all_.quantiles_s:
        yield Remark(
            "note", "No times",
            "The log has no field that is known to say how long its searches took."
            if has_fields(of)
            else "The log does not say how long its searches took.",
            _without_times(of),
        )  # fmt: skip
        return
    q = {name: bound(value, of.resolution_s) for name, value in all_.quantiles_s.items()}
    cut = threshold(of)
    if cut is not None:
        least = seconds(cut.seconds)
        text = (
            f"Hardly any time is below {least}, and many are just above it, so the log seems to "
            "have only what took longer than a threshold of its server."
            if cut.sure
            else f"Hardly any time is below {least}, and by default a log of this format has only "
            "what took longer than a threshold of its server, so this one may have no others."
        )
        yield Remark(
            "warning", "Slow searches only",
            f"{text} How long all searches took is not known: none of these figures includes those "
            "that the log leaves out.",
            "Log all searches for a while: set long_query_time = 0 (MySQL, MariaDB), "
            "log_min_duration_statement = 0 (PostgreSQL), or thresholds of 0ms (OpenSearch, "
            "Elasticsearch).",
        )  # fmt: skip
    whose = "the searches" if cut is None else "the searches in the log"
    if (share := timed_share(of, all_)) is not None:
        whose = f"the searches whose time the log has ({percent(share)} of all)"
    text = f"Half of {whose} took {q['p50']}, 95 % {q['p95']}, 99 % {q['p99']}; the longest "
    text += f"took {bound(all_.max_s, of.resolution_s)}."
    yield Remark("note", "Times", text)
    if of.clocks:
        yield Remark("note", "Clock", _clocks(of))
    if of.finer is not None:
        yield Remark("note", "Clocks that differ", _finer(of, of.finer))
    if of.below_resolution >= 0.01:
        finest = "one step of the clock" if of.clocks else "the finest that the log writes"
        yield Remark(
            "note", "Resolution",
            f"{100 * of.below_resolution:.0f} % of the times are below {seconds(of.resolution_s)}, "
            f"{finest}; nothing is known about how they differ.",
        )  # fmt: skip
    if of.bands.bands:
        yield Remark("note", "Bands", _bands(of.bands, of.resolution_s))


def has_fields(of: LogJudgement) -> bool:
    """Whether a log has fields with names, of which one may have what is not known."""
    return bool({str(s["format"]) for s in of.sources if s["entries"]} & _FIELDS)


def _without_times(of: LogJudgement) -> str:
    """What to do where no time was read: another field may have it, or the server must write it."""
    if has_fields(of):
        return (
            "If a field has the times, name the field and its unit: --column NAME=duration:ms "
            "(or s, us, ns)."
        )
    return (
        "Have the server log how long each request took: $request_time in nginx, %D in Apache, or "
        "the slow log with long_query_time = 0 in MySQL and MariaDB."
    )


def timed_share(of: LogJudgement, all_: Row) -> float | None:
    """The share of searches whose time the log has; None: of about all."""
    return of.spread.count / all_.n if of.spread.count < _ALL * all_.n else None


def threshold(of: LogJudgement) -> Threshold | None:
    """From where on a log has times, if it is one of slow searches."""
    return of.spread.threshold({str(s["format"]) for s in of.sources if s["entries"]})


def _clocks(of: LogJudgement) -> str:
    """How far the clock steps, and what that hides."""
    first, *others = of.clocks
    step = seconds(first.step_s)
    said = f"The clock of {first.server or 'this log'} steps by {step}"
    said += "".join(f", that of {one.server} by {seconds(one.step_s)}" for one in others[:2])
    if len(others) > 2:
        said += f", and {len(others) - 2} more step"
    said += ": times are multiples of that, though they are written with more digits."
    if not first.sure:
        said = f"Nearly all times are one of two neighbouring multiples of {step} (0 is one too): "
        said += "either the clock of this log steps by that, or searches really take that long."
    return f"{said} Only bands that are further apart than {seconds(of.resolution_s)} are found."


def _finer(of: LogJudgement, finer: Finer) -> str:
    """How finely each server's times are known, and what the finer ones say alone."""
    by_step: dict[float, list[str]] = {}
    for name, step_s in finer.steps_s.items():
        by_step.setdefault(step_s, []).append(name)
    named = [f"those of {_named(names)} to {seconds(step)}"
             for step, names in sorted(by_step.items(), reverse=True)]  # fmt: skip
    q = {name: bound(value, finer.resolution_s) for name, value in finer.quantiles_s.items()}
    alone = _named(list(finer.servers))
    said = f"Times are not known equally finely: {', '.join(named)}. Figures for all of them go "
    said += f"by the coarsest, {seconds(of.resolution_s)}: differences and bands below that are "
    said += f"not shown. On {alone} alone ({percent(finer.share)} of the times), half took "
    said += f"{q['p50']}, 95 % {q['p95']}, 99 % {q['p99']}."
    return said + (f" {_bands(finer.bands, finer.resolution_s)}" if finer.bands.bands else "")


def _named(names: list[str]) -> str:
    """Up to three names."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _bands(of: Bands, resolution_s: float | None) -> str:
    named = [_band(band, resolution_s) for band in of.bands]
    many = len(named)
    text = f"Times lie in {many} bands: " if many > 1 else "Times lie in one band: "
    text += ", ".join(named) + "."
    for at, why in of.doubted[:3]:
        text += f" Another near {seconds(at)} is not told apart: {why}."
    return text


def _band(band: Band, resolution_s: float | None) -> str:
    return f"{where(band, resolution_s)} ({100 * band.share:.0f} %)"


def _holes(of: LogJudgement) -> Remark:
    """Times without a search, the longest first."""
    longest = sorted(of.holes, key=lambda hole: hole[0] - hole[1])
    named = []
    for start, end in longest[:_HOLES]:
        at, until = (datetime.fromtimestamp(s, UTC) for s in (start, end))
        named.append(f"from {at:%F %R} to {until:%F %R}")
    more = f" and {len(longest) - _HOLES} more times" if len(longest) > _HOLES else ""
    there = "it is" if len(longest) == 1 else "they are"
    return Remark(
        "note", "No searches",
        f"There is no search {', '.join(named)}{more} ({clock_of(of)}), though there are many just "
        f"before and after. Either nobody searched then, or a part of the log is missing. In the "
        f"mean rate {there} left out.",
        "If the log was rotated, read all of its files.",
    )  # fmt: skip


def where(band: Band, resolution_s: float | None) -> str:
    """Where a band lies, in words."""
    return f"below {seconds(resolution_s)}" if band.at_s is None else f"around {seconds(band.at_s)}"


def _work(of: LogJudgement, all_: Row) -> Iterator[Remark]:
    if of.rate_mean and of.rate_peak and of.first_s is not None and of.last_s is not None:
        yield Remark(
            "note", "Rate",
            f"{all_.n:,} searches: {of.rate_mean:.3g} a second on average, and {of.rate_peak:.3g} "
            f"a second in the busiest minute, {of.rate_peak / of.rate_mean:.3g} times as many.",
        )  # fmt: skip
    if of.holes:
        yield _holes(of)
    if hour := of.worst_hour:
        at, until = (datetime.fromtimestamp(hour.at_s + s, UTC) for s in (0, 3600))
        whose = "" if timed_share(of, all_) is None else "whose time the log has "
        yield Remark(
            "note", "Worst hour",
            f"In the hour from {at:%F %R} on ({clock_of(of)}), {hour.n:,} searches {whose}took "
            f"{seconds(hour.mean_s)} on average, {hour.mean_s / hour.usual_s:.2g} times as long as "
            f"in the median of {hour.hours:,} hours ({seconds(hour.usual_s)}). "
            f"This hour has {percent(hour.share_of_time)} of all the time that "
            + ("searches took." if threshold(of) is None else "the log has."),
            "To see which server and which class it was, read that hour alone, without --record: "
            f"--since {at:%FT%R} --until {until:%FT%R}.",
        )  # fmt: skip
    if (first := heaviest(of)) is not None:
        yield Remark(
            "note", "Where the time goes",
            f"`{first.name}` takes {100 * (first.share_of_time or 0.0):.0f} % of all time"
            + (
                f" with {percent(first.share)} of the searches."
                if timed_share(of, all_) is None and threshold(of) is None
                else f" that the log has, with {percent(first.share)} of the searches in it."
                if timed_share(of, all_) is None
                else f" that the log has, with {percent(first.share_of_timed or 0.0)} of the "
                "searches whose time it has."
            ),
        )  # fmt: skip
    words = [row for row in of.words if row.n >= 100 and row.quantiles_s.get("p95")]
    if len(words) > 1:
        slow = max(words, key=lambda row: row.quantiles_s["p95"] or 0)
        fast = min(words, key=lambda row: row.quantiles_s["p95"] or 0)
        ratio = (slow.quantiles_s["p95"] or 0) / (fast.quantiles_s["p95"] or 1)
        apart = (slow.p95_between_s or (0.0, 0.0))[0] > (fast.p95_between_s or (0.0, 0.0))[1]
        if ratio >= 1.5 and apart:
            yield Remark(
                "note", "Words",
                f"The p95 of searches of {_words(slow)} is {_p95(slow, of.resolution_s)}, "
                f"{ratio:.2g} times that of searches of {_words(fast)}, "
                f"{_p95(fast, of.resolution_s)}. (Intervals of 95 % for all of them together, as "
                "if searches did not depend on each other.)",
            )  # fmt: skip


def heaviest(of: LogJudgement) -> Row | None:
    """The class that takes much of the time, and more than its share of the searches."""
    classes = of.by.get("class", ())
    if len(classes) < 2:
        return None
    share, of_timed = classes[0].share_of_time, classes[0].share_of_timed
    if share is None or of_timed is None:
        return None
    return classes[0] if share >= 0.25 and share > 1.5 * of_timed else None


def hits_of_all(row: Row) -> bool:
    """Whether the log says of all searches how much they found, or nearly."""
    return row.hits_known >= _ALL * row.n


def named_class(row: Row) -> str:
    """The name of a class within a sentence: in one line, and cut if it would fill it."""
    name = " ".join(row.name.split()).replace("`", "'")
    return name if len(name) <= _NAME else name[: _NAME - 1].rstrip() + "…"


def _p95(row: Row, resolution_s: float | None) -> str:
    low, high = (seconds(end, resolution_s) for end in row.p95_between_s or (0.0, 0.0))
    return f"{seconds(row.quantiles_s['p95'])} ({low} to {high})"


def _words(row: Row) -> str:
    return (
        "1 word" if row.name == "1" else "no words" if row.name == "none" else f"{row.name} words"
    )


def _answers(of: LogJudgement, all_: Row) -> Iterator[Remark]:
    if all_.zero is None:
        yield Remark("note", "Hits", "The log does not say how much was found, so what found "
                      "nothing cannot be counted.")  # fmt: skip
    elif all_.zero >= MANY:
        text = f"{percent(all_.zero)} of the searches found nothing"
        if not hits_of_all(all_):
            text = (
                f"The log says of {all_.hits_known:,} of the {all_.n:,} searches how much they "
                f"found: {percent(all_.zero)} of these found nothing"
            )
        yield Remark("note", "No hits", f"{text}{_nothing_over_time(of, all_)}.")
    told = [row for row in of.by.get("server", ()) if row.errors is not None]
    if all_.errors is None and told:
        n = sum(row.n for row in told)
        share = sum((row.errors or 0.0) * row.n for row in told) / n
        text = f"The logs say of {n:,} of the {all_.n:,} searches whether they failed: "
        text += f"{percent(share)} of these did."
        yield Remark("warning" if share >= MANY else "note", "Errors", text)
    elif all_.errors is None:
        yield Remark("note", "Errors", "The log does not say which searches failed.")
    elif all_.errors > 0:
        severity = "warning" if all_.errors >= MANY else "note"
        text = f"{percent(all_.errors)} of the searches failed."
        yield Remark(severity, "Errors", text)
    if all_.partial > 0:
        yield Remark(
            "warning", "Partial answers",
            f"{percent(all_.partial)} of the searches were answered in part only: an agent or a "
            "shard did not answer, or the time was up. Users saw fewer hits and no error.",
        )  # fmt: skip
    if of.parts:
        yield Remark("note", "As asked, as served", _served(of, all_))


def _nothing_over_time(of: LogJudgement, all_: Row) -> str:
    """The same share in the first half of the log's time and in the second, where both have many
    searches. It is told, not judged: days differ, and searches of one time are alike. Nothing where
    the log does not say of all searches what they found: minutes have no count of those.
    """
    known = sum(m.zero for m in of.over) / (all_.zero or math.inf)
    if of.first_s is None or of.last_s is None or known < _ALL * all_.n:
        return ""
    middle = (of.first_s + of.last_s) / 2
    halves = ([m for m in of.over if m.at_s + of.step_s <= middle],
              [m for m in of.over if m.at_s >= middle])  # fmt: skip
    n = [sum(m.n for m in half) for half in halves]
    if min(n) < _HALF:
        return ""
    first, second = (percent(sum(m.zero for m in half) / of_it)
                     for half, of_it in zip(halves, n, strict=True))  # fmt: skip
    return f": {first} in the first half of the log's time, {second} in the second"


def _served(of: LogJudgement, all_: Row) -> str:
    """What agents and shards did, beside what was asked."""
    said = f"{of.parts:,} entries are parts of searches, which a distributed index asked of its "
    said += "agents or shards; no other figure includes them."
    if of.served is None or not of.served.quantiles_s or not all_.quantiles_s:
        return said
    for what, row in (("As asked, half of the searches", all_),
                      ("As served, half of the parts", of.served)):  # fmt: skip
        half, most = (bound(row.quantiles_s.get(q), of.resolution_s) for q in ("p50", "p99"))
        said += f" {what} took {half}, and 99 % {most}."
    return f"{said} The searches as asked include those that were not divided."


def _same(of: LogJudgement) -> str:
    """What makes two searches the same, in words."""
    paths = {str(s["format"]) == "access" for s in of.sources if s["entries"]}
    if paths == {True}:
        return "the same path with the same parameters"
    words = "the same words on the same index"
    return words if True not in paths else f"{words}; in access logs the same whole path"


def _again(of: LogJudgement) -> Iterator[Remark]:
    if of.repeats is None or of.repeats.repeated < 0.01:
        return
    told = f"{100 * of.repeats.repeated:.0f} % of the searches repeat an earlier one ({_same(of)})"
    if of.all and of.repeats.requests < _ALL * of.all.n:
        part = of.repeats.requests / of.all.n
        told = f"Of the searches whose words the log has ({100 * part:.2g} % of all), {told}"
        told = told.replace("of the searches repeat", "repeat")
    fit = [cache for cache in of.repeats.caches if cache.lru >= 0.01]
    if fit:
        best = next((c for c in fit if c.lru >= 0.8 * fit[-1].lru), fit[-1])
        told += (
            f"; a cache of {best.entries:,} answers would have saved about {100 * best.lru:.0f} % "
            f"{'of them ' if told.startswith('Of ') else ''}if they came in random order. It may "
            "be much more where repetitions follow each other "
            "closely, and less where pages, filters or changes of the index make answers differ"
        )
    yield Remark("note", "Repetition", told + ".")


def _new(of: LogJudgement) -> Iterator[Remark]:
    for kind, names in of.new.items():
        several = {"class": "classes", "index": "indexes"}.get(kind, kind)
        word = kind if len(names) == 1 else several
        shown = ", ".join(f"`{name}`" for name in names[:5]) + (", .." if len(names) > 5 else "")
        more = " or more" if len(names) >= NEW_NAMES else ""
        yield Remark("note", "New", f"{len(names)}{more} {word} not seen before: {shown}.")
