"""The shortest cut of a log: within its bounds, and what it keeps of what came before it."""

from __future__ import annotations

import math
import re
from collections import Counter, OrderedDict
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from replaying import about, generated, written


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generated(tmp_path_factory.mktemp("generated"))


PLAIN = re.compile(
    r"\[(?P<at>\w{3} \w{3} +\d+ [\d:.]+ \d{4})\] (?P<took>[\d.]+) sec \[(?P<how>\S+) .*?\] "
    r"\[\w+\] (?P<text>.*)"
)


def plain_log(log: Path) -> list[tuple[float, float, str]]:
    """(began, took, words) of each line, in order of the beginning, as this test reads it."""
    found = []
    for line in log.read_text().splitlines():
        m = PLAIN.match(line)
        assert m
        at = datetime.strptime(m["at"], "%a %b %d %H:%M:%S.%f %Y")
        took = float(m["took"])
        found.append(
            (round((at - datetime(2008, 7, 1)).total_seconds() - took, 3), took, m["text"])
        )
    return sorted(found, key=lambda one: one[0])


def saved(asked: list[str], size: int, measured: int) -> float:
    """What a cache saves of the last ``measured``, played from the first on."""
    held: OrderedDict[str, None] = OrderedDict()
    hits = []
    for text in asked:
        hits.append(text in held)
        held[text] = None
        held.move_to_end(text)
        if len(held) > size:
            held.popitem(last=False)
    return sum(hits[-measured:]) / measured


def dispersion(at: list[float], begin: float, seconds: float, scale: int) -> float:
    """Variance over mean of counts, within ten in a row; loops where the program has sums."""
    counts = Counter(int((t - begin) // scale) for t in at)
    groups = int(seconds // (scale * 10))
    every = [counts[n] for n in range(groups * 10)]
    within = [float(np.var(every[n : n + 10], ddof=1)) for n in range(0, len(every), 10)]
    return float(np.mean(within)) / float(np.mean(every))


def test_a_cut_is_within_its_bounds_when_it_is_measured_by_itself(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "cut.jsonl"
    file = written(log, out, "--cut", "auto")
    printed = capsys.readouterr().out
    told = about(out)["cut"]
    whole = plain_log(log)
    window = [line for line in file if line["t"] >= told["warmup_s"] - 1e-9]
    assert told["reached"]
    assert not told["whole"]
    assert len(window) == told["searches"] < len(whole) / 2
    assert len(file) - len(window) == told["run_up"]
    # A run of the log as it is, at its own times.
    begin = math.floor(whole[0][0])
    first = round(told["from_s"] + begin, 3)
    stretch = [one for one in whole if first <= one[0] < first + told["seconds"]]
    assert [line["text"] for line in window] == [" ".join(one[2].split()) for one in stretch]
    assert [line["t"] - told["warmup_s"] for line in window] == pytest.approx(
        [one[0] - first for one in stretch], abs=1e-6
    )
    # Its properties, from the file alone, beside those of the log.
    bounds = {bound["name"]: bound for bound in told["bounds"]}
    texts, every = [line["text"] for line in file], [one[2] for one in whole]
    log_s = math.floor(whole[-1][0]) + 1 - begin
    measured = {
        "searches a second": (len(whole) / log_s, len(window) / told["seconds"]),
        "repeats of earlier words, on any index": (
            1 - len(set(every)) / len(every), saved(texts, 10**9, len(window)),
        ),
    }  # fmt: skip
    for size in (100,):
        measured[f"saved by a cache of {size:,}"] = (
            saved(every, size, len(every)), saved(texts, size, len(window)),
        )  # fmt: skip
    at = [line["t"] for line in window]
    for scale in (1, 10, 60):
        measured[f"dispersion at {scale} s"] = (
            dispersion([one[0] for one in whole], begin, log_s, scale),
            dispersion(at, told["warmup_s"], told["seconds"], scale),
        )
    for name, (of_log, of_cut) in measured.items():
        bound = bounds[name]
        assert (bound["whole"], bound["cut"]) == pytest.approx((of_log, of_cut), rel=1e-6), name
        apart = abs(of_cut - of_log) / (of_log if bound["relative"] else 1)
        assert apart <= bound["allowed"], name
    # Words and times: the greatest difference, whichever it is.
    n_whole = np.array([len(text.split()) for text in every])
    n_cut = np.array([len(line["text"].split()) for line in window])
    assert max(abs((n_whole <= n).mean() - (n_cut <= n).mean()) for n in range(1, 11)) <= 0.02
    took, own = np.array([one[1] for one in whole]), np.array([one[1] for one in stretch])
    for q, allowed in ((0.5, 0.05), (0.95, 0.02)):
        limit = np.quantile(took, q, method="inverted_cdf")
        assert abs((took <= limit).mean() - (own <= limit).mean()) <= allowed
    assert "The shortest cut within all bounds has" in printed
    assert "warmup_s" in about(out)["study"]


def test_a_cut_that_may_not_be_long_enough_says_which_bounds_it_misses(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "cut.jsonl"
    file = written(log, out, "--cut", "900")
    assert len(file) <= 900
    told = about(out)["cut"]
    assert not told["reached"]
    missed = [bound["name"] for bound in told["bounds"] if not bound["reached"]]
    assert "dispersion at 60 s" in missed
    printed = " ".join(capsys.readouterr().out.split())
    assert f"does not stand for the log in {len(missed)} of" in printed
    assert "not reached" in printed
    written(log, out, "--cut", "120s")
    assert (about(out)["seconds"] or 0) <= 120


def test_a_cut_keeps_what_a_cache_would_hold(log: Path, tmp_path: Path) -> None:
    """Without its run-up the same stretch saves less: the run-up is what keeps it."""
    out = tmp_path / "cut.jsonl"
    file = written(log, out, "--cut", "auto")
    told = about(out)["cut"]
    texts = [line["text"] for line in file]
    alone = texts[told["run_up"] :]
    assert told["run_up"] > 0
    with_it = saved(texts, 10**9, len(alone))
    assert saved(alone, 10**9, len(alone)) < with_it - 0.01
