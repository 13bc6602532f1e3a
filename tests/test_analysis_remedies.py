"""Every remedy can be carried out by whoever made the record."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace

import pytest

from searchbench.analysis import remedies
from searchbench.analysis.judgement import Finding
from searchbench.analysis.remedies import fitted, spelt
from searchbench.analysis.sweep.steps import OF_WARM_UP
from searchbench.analysis.sweep.verdict import ONCE
from searchbench.cli.load import load
from searchbench.study.plan import Judging
from searchbench.workload import load_table

SEARCH = Judging(measure="capacity", command=("load", "http://x/", "--find-capacity"))
STUDIED = Judging(measure="capacity")
SWEEP = Judging(measure="sweep", command=("load", "http://x/"))
OPTION = re.compile(r"--([a-z-]+)")
KEY = re.compile(r"`load\.([a-z_]+)")
# Of a trial by itself: what a search chooses, and therefore refuses.
REFUSED = re.compile(r"(?i)\bwindow\b|\bwarm up\b|measure longer|fewer clients|lower (the|rate)")


def finding(kind: str, remedy: str) -> Finding:
    return Finding(kind, "warning", "b01-t01", "", "", remedy)


def remedy(kind: str, said: str, judging: Judging) -> str:
    (one,) = fitted([finding(kind, said)], judging)
    return one.remedy


@pytest.mark.parametrize("kind", [*OF_WARM_UP, "too few samples", "behind at the end", "errors"])
def test_a_search_says_no_remedy_that_it_refuses(kind: str) -> None:
    audit = "Warm up at least 12 s longer, and measure about 30 s. A longer window."
    assert remedy(kind, audit, SWEEP) == audit
    for judging in (SEARCH, STUDIED):
        said = remedy(kind, audit, judging)
        assert not REFUSED.search(said), said
        taken = set(inspect.signature(load).parameters)
        assert {name.replace("-", "_") for name in OPTION.findall(said)} <= taken
        table = dict.fromkeys(KEY.findall(said), 2) | {"find_capacity": True, "slo": "p99 < 1s"}
        assert list(load_table.problems(table)) == []


def test_options_are_keys_in_what_a_study_made() -> None:
    pinned = "Keep the server off the load generator's core (--cpus, taskset), or use --realtime."
    assert spelt(pinned, SWEEP) == pinned
    assert spelt(pinned, Judging(measure="sweep")).endswith(
        "(`load.cpus`, taskset), or use `load.realtime = true`."
    )
    assert "(--repeat 5 shows the rest)" in spelt(ONCE, SWEEP)
    assert "(`replicates = 5` shows the rest)" in spelt(ONCE, Judging(measure="sweep"))
    wider = "longer trials (more effort) would narrow it."
    assert spelt(wider, SEARCH) == "longer trials (a greater --effort) would narrow it."
    assert spelt(wider, STUDIED) == "longer trials (a greater `load.effort`) would narrow it."


def test_a_search_of_options_is_not_told_to_repeat() -> None:
    steal = "Measure at a quieter hour; more replicates help."
    assert remedy("steal", steal, SEARCH) == "Measure at a quieter hour."
    assert remedy("steal", steal, STUDIED) == steal
    assert remedy("steal", steal, SWEEP) == steal


def test_every_key_that_stands_for_an_option_is_one_of_the_load_table() -> None:
    known = {key.name for key in load_table.SPEC_KEYS}
    for option, key in remedies._KEYS.items():
        assert option.split()[0][2:].replace("-", "_") in inspect.signature(load).parameters
        assert set(KEY.findall(key)) <= known


def test_findings_keep_all_else() -> None:
    one = finding("not steady", "Warm up 3 s.")
    (fit,) = fitted([one], SEARCH)
    assert replace(fit, remedy=one.remedy) == one
