"""``searchbench logs demo``: the whole of ``logs`` without a log of one's own."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path

from searchbench.cli.flags import flowing

_ABOUT = "about.txt"  # by which a folder of ours is known again


@flowing
def demo(folder: Path = Path("demo-logs"), *, lines: int = 120_000) -> int:
    """Write a day of query logs of three servers, read them, and write the page about them.

    Two servers have Sphinx's plain log; one of the two is packed with gzip, and has an hour in
    which searches took ten times as long. The third has the access log of a web server. All of it
    is in one folder.

    Parameters
    ----------
    folder
        Where logs and page are written.
    lines
        How many lines each log has.
    """
    from searchbench.analysis.logs.judge import judge_log
    from searchbench.errors import QueryError
    from searchbench.logs.counts import Options, count
    from searchbench.logs.example import BAD_SERVER, TIMES, write_example
    from searchbench.logs.sources import find
    from searchbench.report.write import write_log_page
    from searchbench.terminal import logs as shown
    from searchbench.terminal import out

    if lines < 1000:
        raise QueryError(f"--lines {lines}: an example needs 1000 lines or more")
    about = folder / _ABOUT
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not about.exists())):
        raise QueryError(f"{folder} is there and was not made by this command; name a new folder")
    example = write_example(folder / "logs", lines)
    page = folder / "report" / "logs.html"
    begin, end = (f"{at:%H:%M}" for at in (example.begin, example.end))
    command = shlex.join(
        ["searchbench", "logs", str(folder / "logs"), "--zone", "UTC", "--page", str(page)]
    )
    about.write_text(
        f"Made by searchbench logs demo. The logs are generated; in that of {BAD_SERVER}, searches "
        f"of {begin} to {end} took {TIMES} times as long. The page was written by\n\n{command}\n"
    )
    names = ", ".join(str(file.relative_to(folder)) for file in example.files)
    out.say(f"A day of three servers is in {folder}: {names}")
    sys.stdout.write(f"\n$ {command}\n\n")  # in one line, however long, so that it can be copied
    began = time.monotonic()
    judged = judge_log(count(find([folder / "logs"]), Options(zone="UTC")), zone="UTC")
    shown.findings(judged, time.monotonic() - began)
    shown.groups("server", judged.by["server"], judged)
    write_log_page(judged, page)
    out.say(
        f'\nOpen {page} and look at the figure "Rate and times over the log", where {BAD_SERVER} '
        f"took {TIMES} times as long from {begin} to {end} because we made it so; for a log of "
        "your own: searchbench logs /path/to/query.log --page mine.html"
    )
    return 0
