"""What a log was once wrongly said to be: attacks of a hostile reader, each beside what must stay."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from searchbench.analysis.logs.judge import judge_log
from searchbench.analysis.logs.model import LogJudgement
from searchbench.logs.counts import Options, count
from searchbench.logs.sources import find

START = datetime(2026, 11, 20, 9)


def judged(*paths: Path, **options: object) -> LogJudgement:
    return judge_log(count(find(paths), Options(**options)))  # type: ignore[arg-type]


def said(of: LogJudgement, title: str) -> str:
    return " ".join(r.text for r in of.remarks if r.title == title)


def plain(second: float, ms: float = 3, text: str = "red") -> str:
    """A line of Sphinx's plain log, so many seconds after the start."""
    at = START + timedelta(seconds=second)
    return (
        f"[{at:%a %b %d %H:%M:%S}.{at.microsecond // 1000:03d} {at.year}] {ms / 1000:.3f} sec "
        f"[all/0/rel 9 (0,20)] [docs] {text}\n"
    )


def test_a_link_beside_its_file_is_not_read_again(tmp_path: Path) -> None:
    """The collector has BASE_current beside the file that it writes."""
    lines = "".join(plain(i, text=f"w{i}") for i in range(300))
    (tmp_path / "searchd_00000").write_text(lines)
    (tmp_path / "searchd_current").symlink_to("searchd_00000")
    (tmp_path / "same").hardlink_to(tmp_path / "searchd_00000")
    found = judged(tmp_path)
    assert found.all is not None
    assert found.all.n == 300
    assert not said(found, "Repetition")
    assert len(find([tmp_path / "searchd_current", tmp_path / "searchd_00000"])) == 1
    # A link alone is read, and another file with the same lines is another file.
    assert [s.path for s in find([tmp_path / "searchd_current"])]
    (tmp_path / "copy").write_text(lines)
    assert len(find([tmp_path])) == 2
