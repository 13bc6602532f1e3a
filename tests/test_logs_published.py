"""What was published of a log, beside what a log has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from searchbench.analysis.logs.judge import judge_log
from searchbench.analysis.logs.model import Statement
from searchbench.cli import app
from searchbench.errors import SearchbenchError, StudyError
from searchbench.logs.counts import Options, count
from searchbench.logs.sizes import sizes_of
from searchbench.logs.sources import find
from searchbench.study.published import read_published
from test_logs_attacked import slow_log

ROOT = Path(__file__).parent.parent
SHIPPED = ROOT / "studies" / "published" / "sphinx-logs.toml"


def sphinx(path: Path, ms: np.ndarray, words: list[int], indexes: list[str]) -> Path:
    """A plain log: so many milliseconds, words and the index of each search."""
    path.write_text("".join(
        f"[Mon Jan  5 09:{i // 1200 % 60:02d}:{i // 20 % 60:02d}.{i % 20 * 50:03d} 2026] "
        f"{m / 1000:.3f} sec [ext2/0/rel 12 (0,20)] [{index}] {' '.join([f'w{i}'] * w)}\n"
        for i, (m, w, index) in enumerate(zip(ms.tolist(), words, indexes, strict=True))
    ))  # fmt: skip
    return path


def judged(
    tmp_path: Path, text: str, log: Path, sizes: dict[str, int] | None = None
) -> dict[str, Statement]:
    """The statements about a log, by what they are about and what was published."""
    file = tmp_path / "published.toml"
    file.write_text(text)
    counts = count(find([log]), Options())
    found = judge_log(counts, sizes=sizes, published=read_published(file)).published
    assert found is not None
    return {f"{one.what}, {one.published}": one for one in found.statements}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Three bands; searches of 6 words and of the large index take ten times as long."""
    rng = np.random.default_rng(1)
    n = 6000
    words = rng.choice([1, 2, 6], n, p=[0.5, 0.3, 0.2])
    large = rng.random(n) < 0.5
    ms = 10 ** rng.normal(1.3, 0.1, n) * np.where(words == 6, 10, 1) * np.where(large, 3, 1)
    indexes = ["large" if one else "small" for one in large]
    return sphinx(tmp_path / "a.log", ms.astype(int), words.tolist(), indexes)


def test_numbers_are_the_same_as_closely_as_they_were_given(tmp_path: Path, log: Path) -> None:
    found = judged(tmp_path, "queries = 6_000\nservers = 1\nindexes = 3\n", log)
    assert {name: one.verdict for name, one in found.items()} == {
        "queries, 6,000": "the same", "servers, 1": "the same", "indexes, 3": "differs",
    }  # fmt: skip
    assert found["indexes, 3"].here == "2"
    (other,) = judged(tmp_path, "queries = 5_900", log).values()
    assert other.verdict == "differs"


def test_a_share_that_the_resolution_leaves_open_cannot_be_told(tmp_path: Path) -> None:
    """Half is written as 10 ms, of which some took more than 10 ms, for all that is known."""
    log = sphinx(tmp_path / "a.log", np.repeat([3, 10], [500, 500]), [1] * 1000, ["i"] * 1000)
    found = judged(tmp_path, '[within]\n"0.01" = 0.5\n"0.1" = 1.0\n"0.005" = 0.2\n', log)
    assert found["within 10 ms, 50 %"].verdict == "cannot be told here"
    assert found["within 10 ms, 50 %"].here == "50 % to 100 %"
    assert "1 ms" in found["within 10 ms, 50 %"].why
    assert found["within 100 ms, 100 %"].verdict == "the same"
    assert found["within 5 ms, 20 %"].verdict == "differs"


def test_bands_are_the_same_where_they_lie(tmp_path: Path, log: Path) -> None:
    text = "[[bands]]\nbelow_s = 0.0001\n[[bands]]\nat_s = 0.02\n[[bands]]\nat_s = 5\n"
    found = judged(tmp_path, text, log)
    assert found["a band, 20 ms"].verdict == "the same"
    assert found["a band, 5 s"].verdict == "differs"
    assert found["a band, below 100 µs"].verdict == "differs"
    short = sphinx(tmp_path / "b.log", np.repeat([0, 90], [800, 800]), [1] * 1600, ["i"] * 1600)
    found = judged(tmp_path, text + "[[bands]]\nat_s = 0.001\n", short)
    assert found["a band, below 100 µs"].verdict == "cannot be told here"
    assert "does not show times below 1 ms" in found["a band, below 100 µs"].why
    assert found["a band, 1 ms"].verdict == "cannot be told here"


def test_which_number_of_words_is_fastest_and_slowest(tmp_path: Path, log: Path) -> None:
    found = judged(tmp_path, "[words]\nfastest = [1, 2]\nslowest = [6, 50]\n", log)
    assert [one.verdict for one in found.values()] == ["the same", "the same"]
    found = judged(tmp_path, "[words]\nfastest = 6\nslowest = [7, 50]\n", log)
    assert [one.verdict for one in found.values()] == ["differs", "cannot be told here"]
    (alike,) = judged(tmp_path, "[words]\nfastest = 1\n", sphinx(
        tmp_path / "c.log", np.full(2000, 20), [1, 2] * 1000, ["i"] * 2000)).values()  # fmt: skip
    assert alike.verdict == "cannot be told here"
    assert "cannot be told apart" in alike.why


def test_whether_larger_indexes_are_slower(tmp_path: Path, log: Path) -> None:
    text = '[index_sizes]\nlarger = "slower"\nfrom = ["1MB", "30MB"]\n'
    sizes = {"small": 2_000_000, "large": 90_000_000}
    (found,) = judged(tmp_path, text, log, sizes).values()
    assert found.verdict == "the same"
    (found,) = judged(tmp_path, text.replace("slower", "faster"), log, sizes).values()
    assert found.verdict == "differs"
    (found,) = judged(tmp_path, text, log).values()
    assert (found.verdict, "--sizes" in found.why) == ("cannot be told here", True)
    (found,) = judged(tmp_path, text, log, dict.fromkeys(sizes, 5_000_000)).values()
    assert found.verdict == "cannot be told here"


def test_a_log_without_times_or_with_slow_searches_only_tells_nothing_of_them(
    tmp_path: Path,
) -> None:
    text = '[within]\n"0.1" = 0.8\n[[bands]]\nat_s = 0.03\n[words]\nfastest = 1\n'
    found = judged(tmp_path, text, ROOT / "tests" / "logs" / "nginx-combined.log")
    assert {one.verdict for one in found.values()} == {"cannot be told here"}
    took = 0.004 * np.exp(1.9 * np.random.default_rng(2).standard_normal(60_000))
    slow = slow_log(tmp_path / "slow.log", took, 0.05)
    found = judged(tmp_path, text, slow)
    assert {one.verdict for one in found.values()} == {"cannot be told here"}
    assert "threshold" in found["within 100 ms, 80 %"].why


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("querys = 3", r":1:1: .* has no key `querys` \(did you mean `queries`\?\)"),
        ("queries = 0", r":1:11: `queries` must be an integer of at least 1, not 0"),
        ('[within]\n"0.01" = 60', r":2:10: .*0 to 1, not 60 \(a share: 0.6 is 60 %\)"),
        ("[within]\nsoon = 0.6", r":2:1: `soon` must be a time in seconds"),
        ('[within]\n"0.1" = 0.6\n"0.2" = 0.5', r":1:2: 0.6 are within 0.1 s, so 0.2 s cannot"),
        ("[[bands]]\nat = 0.3", r":2:1: \[\[bands\]\] has no key `at`"),
        ("[[bands]]\nat_s = 1\nbelow_s = 2", r":1:1: a band has one of"),
        ("bands = 3", r":1:9: `bands` must be tables"),
        ("[words]\nslowest = [50, 6]", r":2:11: `slowest` must be from how many"),
        ("[words]\nslow = [6, 50]", r":2:1: \[words\] has no key `slow` \(did you mean"),
        ('[index_sizes]\nlarger = "slow"', r":2:10: .*\(did you mean `slower`\?\)"),
        ('[index_sizes]\nlarger = "slower"\nfrom = ["3MB", "1MB"]', r":3:16: .*not above"),
        ('[index_sizes]\nlarger = "slower"\nfrom = ["3"]', r":3:9: \"3\" is not a size"),
        ('title = "x"', r"there is no statement in it"),
        ("queries =", r":1:\d+: this is not TOML"),
    ],
)
def test_a_mistake_in_the_file_gets_its_position_and_what_was_meant(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(StudyError, match=said) as raised:
        read_published(path)
    assert len(raised.value.complaints) == 1


def test_a_file_that_is_not_there_is_named_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "published.toml").write_text("queries = 1")
    with pytest.raises(StudyError, match=r"did you mean `.*published.toml`"):
        read_published(tmp_path / "publishd.toml")
    with pytest.raises(SearchbenchError, match="leave out --live"):
        app(["logs", str(ROOT / "tests" / "logs" / "nginx-timed.log"), "--live",
             "--published", str(SHIPPED)])  # fmt: skip


def test_terminal_page_and_json_have_the_same_statements(
    tmp_path: Path, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    call = ["logs", str(log), "--published", str(SHIPPED)]
    assert app([*call, "--json", "--page", str(page)]) == 0
    said = json.loads(capsys.readouterr().out)["published"]
    assert said["title"].startswith("Sphinx Search Engine Performance")
    assert len(said["statements"]) == 13
    html = page.read_text(encoding="utf-8")
    assert "What was published" in html
    assert app(call) == 0
    shown = capsys.readouterr().out
    for one in said["statements"]:
        assert one["published"] in html
        assert one["here"] in html
        assert one["published"] in shown
    assert app(["logs", str(log), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["published"] is None


def test_the_publication_is_repeated_by_two_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/LOGS.md has them, with fewer lines: all is the same but the number of queries."""
    text = (ROOT / "docs" / "LOGS.md").read_text(encoding="utf-8")
    commands = re.findall(r"^searchbench (logs .*sphinx-15.*)$", text, re.MULTILINE)
    assert [one.split()[1] for one in commands] == ["generate", "sphinx-15"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "studies").symlink_to(ROOT / "studies")
    assert app(commands[0].replace("453000000", "3000000").split()) == 0
    logs = sorted(Path("sphinx-15").glob("*.log"))
    assert [one.name for one in logs] == [f"server-{k:02}.log" for k in range(15)]
    assert logs[0].read_bytes()[:10_000] != logs[1].read_bytes()[:10_000]
    assert app([*commands[1].split(), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["all"]["n"] == 3_000_000
    assert not [one for one in said["remarks"] if one["title"] == "Left out"]
    found = {f"{one['what']}, {one['published']}": one for one in said["published"]["statements"]}
    queries = found.pop("queries, 453,000,000")
    assert (queries["here"], queries["verdict"]) == ("3,000,000", "differs")
    # It is 60.3 % to 60.6 %, depending on how much of the last millisecond was cut off.
    within = found.pop("within 10 ms, 60 %")
    assert within["verdict"] in ("the same", "cannot be told here")
    assert {one["verdict"] for one in found.values()} == {"the same"}


def test_lines_are_given_in_total_and_a_folder_is_not_written_over(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "logs"
    call = ["logs", "generate", str(folder), "--servers", "3", "--lines", "100", "--indexes", "7"]
    assert app(call) == 0
    lines = [len(one.read_text().splitlines()) for one in sorted(folder.glob("*.log"))]
    assert lines == [34, 33, 33]
    sizes = sizes_of(folder / "indexes.sizes")
    assert list(sizes) == [f"idx{k:03}" for k in range(7)]
    assert list(sizes.values()) == sorted(sizes.values())
    with pytest.raises(SearchbenchError, match="is there already"):
        app(call)
    with pytest.raises(SearchbenchError, match="leave out --server"):
        app(["logs", "generate", str(tmp_path / "x"), "--servers", "3", "--server", "2"])
    with pytest.raises(SearchbenchError, match="in place of -"):
        app(["logs", "generate", "-", "--servers", "3"])
