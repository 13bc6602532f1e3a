"""``searchbench logs --queries`` and ``--against``: a log as load, and a log beside a record.

Both can write a page of what was found (``--page``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchbench.errors import QueryError, SearchbenchError

if TYPE_CHECKING:
    from searchbench.analysis.logs.cut import Cut
    from searchbench.logs.counts import Options
    from searchbench.logs.entries import Entries
    from searchbench.logs.searches import Searches
    from searchbench.logs.sources import Source

_UNITS_S = {"s": 1.0, "min": 60.0, "h": 3600.0}
_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of one call. ``cut`` empty: the whole log."""

    queries: Path | None = None
    cut: str = ""
    anonymise: bool = False
    key: Path | None = None
    documents: Path | None = None
    against: Path | None = None
    field: tuple[str, ...] = ()
    page: Path | None = None

    def fields(self) -> dict[str, str]:
        """The names of fields: those of the log, those of the study."""
        found = {}
        for text in self.field:
            name, equals, other = text.partition("=")
            if not name or not equals:
                raise SearchbenchError(f"--field {text}: write NAME=OTHER, or NAME= for all fields")
            found[name] = other
        return found

    def check(self) -> None:
        """SearchbenchError with the remedy where options do not go together."""
        if self.queries is None:
            for name, given in (("--cut", self.cut), ("--anonymise", self.anonymise)):
                if given:
                    raise SearchbenchError(f"{name} is for a file of searches: name it with "
                                           "--queries OUT.jsonl")  # fmt: skip
        elif self.queries.suffix != ".jsonl":
            raise SearchbenchError(f"--queries {self.queries}: name it {self.queries.stem}.jsonl, "
                                   "for it has JSON lines")  # fmt: skip
        if self.queries is not None and self.against is not None:
            raise SearchbenchError("--queries and --against are two questions: ask one at a time")
        for name, path in (("--key", self.key), ("--documents", self.documents)):
            if path is not None and not self.anonymise:
                raise SearchbenchError(f"{name} is for --anonymise, which is not given")


def longest(cut: str) -> tuple[int | None, float | None]:
    """The limit that ``--cut`` says: searches, seconds, or (None, None) for ``auto``."""
    found = re.fullmatch(r"([0-9][0-9,_]*)(?:(\.[0-9]+)?\s*(s|min|h))?", cut)
    if cut == "auto":
        return None, None
    if not found:
        raise SearchbenchError(f"--cut {cut}: write auto, a number of searches (20000), or a time "
                               "(600s, 30min, 2h)")  # fmt: skip
    number = found[1].replace(",", "").replace("_", "")
    if found[3]:
        return None, float(number + (found[2] or "")) * _UNITS_S[found[3]]
    return int(number), None


def again(sources: Sequence[Source], options: Options, wanted: Wanted, *, as_json: bool) -> int:
    """Do what ``--queries`` or ``--against`` asks for; the exit code."""
    import sys

    from searchbench.logs.entries import read_entries
    from searchbench.logs.searches import searches_of
    from searchbench.terminal import logs as shown

    limit = longest(wanted.cut) if wanted.cut else (None, None)
    tick = None if as_json or not sys.stderr.isatty() else shown.Ticking()
    entries = read_entries(sources, options, tick)
    if tick:
        tick.end()
    found = searches_of(entries, _zone(entries, options), wanted.fields(), options.within)
    del entries
    if wanted.against is not None:
        return _against(found, wanted.against, wanted.page, as_json=as_json)
    return _queries(found, wanted, limit, as_json=as_json)


def _zone(entries: Entries, options: Options) -> str:
    """The zones by which all stamps are in UTC; "" where one of them is not known."""
    named = dict(options.zones)
    if options.zone or any(s["entries"] and s["server"] not in named for s in entries.sources):
        return options.zone
    return ", ".join(f"{server}={zone}" for server, zone in options.zones)


def _queries(
    log: Searches, wanted: Wanted, limit: tuple[int | None, float | None], *, as_json: bool
) -> int:
    from searchbench.analysis.logs.cut import cut_of
    from searchbench.logs.written import about, write_searches
    from searchbench.terminal import logs_again, out

    assert wanted.queries is not None
    if wanted.anonymise:
        from searchbench.logs.anonymous.searches import without_places, without_unsafe

        log = without_places(without_unsafe(log))
    cut = cut_of(log, *limit) if wanted.cut else None
    part = log if cut is None else cut_out(log, cut)
    hidden = None
    if wanted.anonymise:
        log, part, hidden = _anonymised(log, part, wanted)
    told = about(
        wanted.queries, part, log,
        cut=None if cut is None else _cut_as_json(cut), anonymised=hidden,
        warmup_s=0.0 if cut is None else cut.warmup_s,
    )  # fmt: skip
    place = write_searches(wanted.queries, part, told)
    if wanted.page is not None:
        from searchbench.report.document.logs_again import of_searches
        from searchbench.report.write import write_page

        write_page(of_searches(told, cut), wanted.page)
    if as_json:
        out.as_json(told)
    else:
        logs_again.show_queries(told, cut, wanted.queries, place, wanted.page)
    return 0


def cut_out(log: Searches, cut: Cut) -> Searches:
    """The searches of a cut, the run-up first, at times that count from its beginning."""
    import numpy as np

    assert log.at_ns is not None
    part = log.only(np.concatenate([cut.run_up, cut.window]))
    n, warmup_ns = len(cut.run_up), round(cut.warmup_s * _SECOND)
    begin = log.at_ns[0] // _SECOND * _SECOND + round(cut.from_s * _SECOND)
    before = np.arange(n, dtype=np.int64) * warmup_ns // max(1, n)
    at = np.concatenate([before, log.at_ns[cut.window] - begin + warmup_ns])
    return replace(part, at_ns=at)


def _cut_as_json(cut: Cut) -> dict[str, Any]:
    return {
        "from_s": cut.from_s,
        "seconds": cut.seconds,
        "searches": len(cut.window),
        "run_up": len(cut.run_up),
        "warmup_s": cut.warmup_s,
        "whole": cut.whole,
        "reached": cut.reached,
        "bounds": [{**asdict(bound), "reached": bound.reached} for bound in cut.bounds],
        "skipped": list(cut.skipped),
    }


def _anonymised(
    log: Searches, part: Searches, wanted: Wanted
) -> tuple[Searches, Searches, dict[str, Any]]:
    from searchbench.logs.anonymous.pseudonyms import (
        pseudonyms,
        vocabulary_of_documents,
        vocabulary_of_log,
    )
    from searchbench.logs.anonymous.searches import (
        anonymised,
        with_signs,
        without_classes,
        words_asked,
    )

    documents = None if wanted.documents is None else vocabulary_of_documents(wanted.documents)
    of_log = vocabulary_of_log({} if documents else words_asked(log))
    names = pseudonyms(wanted.key, of_log, documents)
    found = anonymised(part, names)
    hidden = {
        "vocabulary": names.vocabulary.origin,
        "exchanged": len(names.used),
        "made_up": len(names.made_up) - names.kept,
        "kept": names.kept,
        "with_signs": with_signs(found),
        "key": wanted.key is not None,
    }
    return without_classes(log, names), found, hidden


def _against(log: Searches, path: Path, page: Path | None, *, as_json: bool) -> int:
    from searchbench.analysis.logs.against import against
    from searchbench.logs.record import is_one
    from searchbench.record import open_record
    from searchbench.terminal import logs_again, out

    if is_one(path):
        raise QueryError(f"{path} is the record of a log; --against takes that of a study")
    found = against(log, open_record(path))
    if page is not None:
        from searchbench.report.document.logs_again import of_against
        from searchbench.report.write import write_page

        write_page(of_against(found, log, path), page)
    if as_json:
        out.as_json([asdict(one) for one in found])
    else:
        logs_again.show_against(found, page)
    return 0
