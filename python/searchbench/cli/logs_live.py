"""``searchbench logs --live``: logs while they grow."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from searchbench.logs.counts import Options
    from searchbench.logs.sources import Source

_EVERY_S = 1.0
_NAP_S = 0.1  # after which Ctrl-C is heeded at the latest


def live(
    sources: Sequence[Source],
    options: Options,
    page: Path | None,
    sizes: Mapping[str, int],
    *,
    as_json: bool,
    again: Callable[[], Sequence[Source]] | None = None,
) -> int:
    """Follow sources until Ctrl-C or their end; then say what was found. The exit code.

    ``again``: the sources that there are by now.
    """
    from searchbench.analysis.logs.as_json import as_json as plain
    from searchbench.analysis.logs.judge import judge_log
    from searchbench.analysis.logs.live import Live
    from searchbench.logs.watch import Watch
    from searchbench.terminal import logs as shown
    from searchbench.terminal import out
    from searchbench.terminal.logs_live import Screen

    began = time.monotonic()
    with _until_told() as told, Watch(sources, options, began, again) as watch:
        seen = Live(began)
        screen = Screen(sys.stderr, watch.names, live=sys.stderr.isatty())
        try:
            now = began
            while not told and not watch.ended:
                until = now + _EVERY_S
                while not (told or watch.ended or watch.behind) and now < until:
                    watch.wait(min(_NAP_S, until - now))
                    now = time.monotonic()
                seen.add(now, watch.poll(now))
                if not as_json:
                    screen.show(seen.view(now, watch.formats), watch.formats, watch.rotations, now)
            _, counts = watch.end(time.monotonic())
        finally:
            screen.clear()
    # From here on Ctrl-C ends the program, as ever.
    judged = judge_log(counts, zone=options.zone, zones=options.zones, sizes=sizes)
    if page is not None:
        from searchbench.report.write import write_log_page

        write_log_page(judged, page)
    if as_json:
        out.as_json(plain(judged))
    elif judged.all is None and not judged.others:
        names = ", ".join(watch.names) or "the folder"
        out.say(f"Nothing was added to {names} in {now - began:.0f} s.")
    else:
        shown.show(judged, now - began, page)
    return 0 if judged.all is not None else 1


@contextmanager
def _until_told() -> Iterator[list[int]]:
    """A list that Ctrl-C and SIGTERM fill, in place of ending the program within a count."""
    told: list[int] = []

    def heard(which: int, _frame: FrameType | None) -> None:
        told.append(which)

    usual = {each: signal.signal(each, heard) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield told
    finally:
        for each, handler in usual.items():
            signal.signal(each, handler)
