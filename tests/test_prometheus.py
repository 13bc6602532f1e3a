"""``--prometheus``: what a scrape reads while a load runs is what the record has of it."""

from __future__ import annotations

import re
import socket
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from searchbench import _core
from searchbench.cli import app
from searchbench.errors import SearchbenchError
from searchbench.lab.conduct.watch import Silence
from searchbench.lab.system.names import free_port
from searchbench.measure.prometheus import Exporter, Histogram
from searchbench.record import open_record
from searchbench.study.plan import Trial
from test_load import always, serving


def values(text: str, name: str) -> dict[str, float]:
    """By labels, the values of a metric."""
    found = re.findall(rf"^searchbench_{name}\{{(.*)\}} (\S+)$", text, re.MULTILINE)
    return {labels: float(value) for labels, value in found}


def test_a_scrape_has_the_requests_of_the_record(tmp_path: Path) -> None:
    def slow(peer: socket.socket, head: bytes, number: int) -> bool:
        time.sleep(0.02)
        return always(peer, head, number)

    port, scrapes = free_port(), [""]
    over = threading.Event()

    def scrape() -> None:
        while not over.is_set():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as reply:
                    scrapes.append(reply.read().decode())
            except OSError:
                pass
            over.wait(0.05)

    reader = threading.Thread(target=scrape)
    reader.start()
    with serving(slow) as target:
        code = app(
            ["load", f"http://127.0.0.1:{target}/", "--engine", "none", "--clients", "2",
             "--seconds", "1.5", "--warmup", "0.2", "--record", str(tmp_path / "r"), "--no-report",
             "--prometheus", str(port)]
        )  # fmt: skip
    over.set()
    reader.join()
    assert code == 0
    record = open_record(tmp_path / "r")
    samples = record.samples(record.trials[0].trial)
    last = scrapes[-1]
    (total,) = values(last, "requests_total").values()
    assert list(values(last, "requests_total")) == ['step="clients=2",outcome="ok"']
    assert 0 < total <= samples.num_rows
    due, done = (samples.column(name).to_numpy() for name in ("due", "done"))
    seen = np.sort(done)[: int(total)]
    assert seen[-1] > 0.3e9, "it was read while the load ran"
    assert values(last, "requests_unseen_total") == {'step="clients=2"': 0}
    assert values(last, "response_seconds_count")['step="clients=2"'] == total
    p50 = values(last, "response_quantile_seconds")['step="clients=2",quantile="0.5"']
    assert p50 == pytest.approx(float(np.median(done - due)) / 1e9, rel=0.5)
    assert p50 >= 0.02
    buckets = list(values(last, "response_seconds_bucket").values())
    assert buckets == sorted(buckets)
    assert buckets[-1] == total
    totals = [sum(values(text, "requests_total").values()) for text in scrapes]
    assert totals == sorted(totals), "a counter never falls"


def test_every_sample_counts_once_though_ticks_overlap() -> None:
    samples = np.zeros(3000, np.dtype(_core.SAMPLE_DTYPE))
    samples["due"] = samples["free"] = samples["sent"] = np.arange(3000) * 1_000_000
    samples["done"] = samples["due"] + 5_000_000
    samples["outcome"][::3] = 1
    with Exporter(Silence(), 0) as exporter:
        exporter.begins(Trial("t", 1, "t01"), 'a "step"', 0, 1)
        exporter.stage("drive")
        for end in range(100, 3001, 100):
            exporter.tick(end, end * 1_000_000, samples[max(0, end - 700) : end].tobytes())
        with urllib.request.urlopen(exporter.url) as reply:
            text = reply.read().decode()
    step = r'step="a \"step\""'
    assert values(text, "requests_total") == {
        f'{step},outcome="ok"': 2000, f'{step},outcome="http_error"': 1000
    }  # fmt: skip
    assert values(text, "requests_unseen_total") == {step: 0}
    assert values(text, "lateness_seconds_count") == {step: 3000}
    assert values(text, "response_quantile_seconds")[f'{step},quantile="0.99"'] == pytest.approx(
        0.005, rel=0.011
    )
    assert values(text, "rate_per_second")[step] == pytest.approx(1000, rel=0.01)


def test_what_came_too_fast_to_be_seen_is_counted() -> None:
    with Exporter(Silence(), 0) as exporter:
        exporter.begins(Trial("t", 1, "t01"), "s", 0, 1)
        exporter.tick(50, 10**8, np.zeros(20, np.dtype(_core.SAMPLE_DTYPE)).tobytes())
        assert values(exporter.text(), "requests_unseen_total") == {'step="s"': 30}


def test_quantiles_are_within_a_hundredth() -> None:
    times = np.random.default_rng(1).lognormal(15, 1, 50_000).astype(np.int64)
    histogram = Histogram()
    for part in np.array_split(times, 7):
        histogram.add(part)
    for q in (0.5, 0.9, 0.99, 0.999):
        exact = float(np.quantile(times, q, method="inverted_cdf")) / 1e9
        assert exact <= histogram.quantile_s(q) * (1 + 1e-12)
        assert histogram.quantile_s(q) <= exact * 1.0101


def test_a_port_that_is_taken_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SearchbenchError, match=f"--prometheus {port}: .* name a free port"):
            Exporter(Silence(), port)


def test_figures_are_by_class_where_requests_have_classes() -> None:
    samples = np.zeros(400, np.dtype(_core.SAMPLE_DTYPE))
    samples["request"] = np.arange(400) % 4
    samples["due"] = samples["free"] = samples["sent"] = np.arange(400) * 1_000_000
    samples["done"] = samples["due"] + np.where(samples["request"] == 0, 50_000_000, 5_000_000)
    samples["outcome"][:4] = 1
    with Exporter(Silence(), 0) as exporter:
        exporter.begins(Trial("t", 1, "t01"), "s", 0, 1)
        exporter.asks(['say "no"', "plain", "plain", "plain"])
        exporter.tick(400, 400_000_000, samples.tobytes())
        text = exporter.text()
        assert values(text, "requests_total") == {
            r'step="s",class="say \"no\"",outcome="ok"': 99,
            r'step="s",class="say \"no\"",outcome="http_error"': 1,
            'step="s",class="plain",outcome="ok"': 297,
            'step="s",class="plain",outcome="http_error"': 3,
        }
        counts = values(text, "response_seconds_count")
        assert counts == {r'step="s",class="say \"no\""': 99, 'step="s",class="plain"': 297}
        quantiles = values(text, "response_quantile_seconds")
        p50 = {labels: v for labels, v in quantiles.items() if labels.endswith('"0.5"')}
        assert list(p50.values()) == pytest.approx([0.05, 0.005, 0.005], rel=0.011)
        assert 'step="s",quantile="0.5"' in p50, "and of the whole step"
        exporter.begins(Trial("u", 1, "t02"), "without", 0, 1)
        exporter.stage("drive")
        exporter.tick(400, 400_000_000, samples.tobytes())
        assert values(exporter.text(), "lateness_seconds_count")['step="without"'] == 400
        assert values(exporter.text(), "requests_total")['step="without",outcome="ok"'] == 396
