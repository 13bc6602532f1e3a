"""What a plan has: its trials, their order, and about how long they take.

Longer than most files: the small studies at its top serve every test.
"""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from searchbench.engines import ENGINES, defaults
from searchbench.errors import RecordError, StudyError
from searchbench.record.io import read_plan
from searchbench.study import parse_study
from searchbench.study.estimate import count, index_key, request_s
from searchbench.study.plan import Plan
from searchbench.study.planner import make_plan, one_pass
from searchbench.workload.loads import open_load

HEAD = """\
question = "?"
seed = 7
[corpus]
files = "products.csv"
[queries]
distinct = 5
[load]
seconds = 2
"""
TWO = "[systems.tantivy]\n[systems.sqlite]\n"
CROSSED = (
    HEAD
    + TWO
    + """
[factors]
"load.clients" = [1, 2]
"queries.match" = ["any", "fuzzy"]
"systems.tantivy.parts" = [1, 2]
[[exclude]]
when = { "load.clients" = 2, "systems.tantivy.parts" = 2 }
reason = "there are two cores"
"""
)


@pytest.fixture
def base(tmp_path):
    (tmp_path / "products.csv").write_text("id,title\n1,red shoe\n")
    return tmp_path


def planned(text, base, documents=None) -> Plan:
    return make_plan(parse_study(text, "s.toml", base), documents)


def test_factors_are_crossed_within_the_systems_that_they_concern(base):
    plan = planned(
        HEAD + TWO + '[factors]\n"load.clients" = [1, 2]\n"systems.tantivy.parts" = [1, 4]\n', base
    )
    assert [dict(t.levels) for t in plan.treatments] == [
        {"system": "tantivy", "load.clients": 1, "systems.tantivy.parts": 1},
        {"system": "tantivy", "load.clients": 1, "systems.tantivy.parts": 4},
        {"system": "tantivy", "load.clients": 2, "systems.tantivy.parts": 1},
        {"system": "tantivy", "load.clients": 2, "systems.tantivy.parts": 4},
        {"system": "sqlite", "load.clients": 1},
        {"system": "sqlite", "load.clients": 2},
    ]
    assert [t.label for t in plan.treatments][1::3] == [
        "tantivy clients=1 parts=4",
        "sqlite clients=1",
    ]


def test_levels_reach_the_tables_of_the_treatment(base):
    plan = planned(CROSSED, base)
    for t in plan.treatments:
        assert t.load["clients"] == t.levels["load.clients"]
        assert t.queries["match"] == t.levels["queries.match"]
        assert open_load(t.load, base).window.seconds == 2
        expected = defaults(ENGINES[t.engine])
        if "systems.tantivy.parts" in t.levels:
            expected["parts"] = t.levels["systems.tantivy.parts"]
        assert t.parameters == expected


def test_what_cannot_be_run_is_left_out_with_its_reason(base):
    plan = planned(CROSSED, base)
    reasons = Counter(e.reason for e in plan.excluded)
    assert reasons["there are two cores"] == 2
    [fuzzy] = [r for r in reasons if "fuzzy" in r]
    assert fuzzy.startswith("sqlite cannot do fuzzy: upstream must")
    assert len(plan.treatments) + len(plan.excluded) == 12
    shown = [t.levels for t in plan.treatments]
    assert {"system": "sqlite", "load.clients": 1, "queries.match": "fuzzy"} not in shown


def test_an_exclusion_may_name_several_levels_and_a_lone_system(base):
    text = HEAD + '[systems.tantivy]\n[factors]\n"load.clients" = [1, 2, 4]\n'
    text += '[[exclude]]\nwhen = { system = "tantivy", "load.clients" = [2, 4] }\nreason = "r"\n'
    plan = planned(text, base)
    assert [t.levels["load.clients"] for t in plan.treatments] == [1]
    assert len(plan.excluded) == 2


def test_a_load_that_a_crossing_makes_impossible_is_left_out(base):
    text = HEAD.replace("seconds = 2", "rate_per_s = 5") + "[systems.tantivy]\n"
    plan = planned(text + '[factors]\n"load.kind" = ["open", "closed"]\n', base)
    assert [t.load["kind"] for t in plan.treatments] == ["open"]
    assert "is for an open loop" in plan.excluded[0].reason


def test_nothing_left_to_run_is_a_mistake(base):
    text = HEAD.replace("distinct = 5", 'distinct = 5\nmatch = "fuzzy"') + "[systems.sqlite]\n"
    with pytest.raises(StudyError, match="nothing is left to be run: sqlite cannot do fuzzy"):
        planned(text, base)


def test_every_block_has_every_treatment_once_and_one_twin(base):
    plan = planned(CROSSED, base)
    for block in (1, 2, 3):
        trials = [t for t in plan.trials if t.block == block]
        assert sorted(t.treatment for t in trials if not t.control) == [
            t.id for t in plan.treatments
        ]
        assert len([t for t in trials if t.control]) == 1
    assert [t.block for t in plan.trials] == sorted(t.block for t in plan.trials)
    assert len({t.id for t in plan.trials}) == len(plan.trials)


def test_blocks_are_shuffled_each_in_its_own_way(base):
    plan = planned(HEAD.replace("seed", "replicates = 20\nseed") + TWO, base)
    orders = {
        tuple(t.id.split("-", 1)[1] for t in plan.trials if t.block == block)
        for block in range(1, 21)
    }
    # Three trials a block, twin among them, have six orders; 20 blocks show most of them.
    assert len(orders) >= 4
    assert {order[0] for order in orders} == {"t01", "t01-aa", "t02", "t02-aa"}


def test_every_second_block_has_the_order_of_the_one_before_backwards(base):
    """So no treatment comes first in both, and none is favoured by a machine that changes."""
    plan = planned(CROSSED.replace("seed = 7", "replicates = 6\nseed = 7"), base)
    orders = [
        ["twin" if t.control else t.treatment for t in plan.trials if t.block == block]
        for block in range(1, 7)
    ]
    assert orders[1::2] == [order[::-1] for order in orders[::2]]
    assert orders[0] != orders[2], "each pair has an order of its own"


def test_of_two_treatments_alone_none_is_met_by_what_comes_back_in_all_of_three_blocks(base):
    text = HEAD.replace("seed = 7", "replicates = 30\nseed = 7") + TWO + "[control]\naa = false\n"
    plan = planned(text, base)
    orders = [
        [t.treatment for t in plan.trials if t.block == block] for block in range(1, 31)
    ]  # fmt: skip
    assert orders[1] == orders[2] == orders[0][::-1]
    assert 5 < orders[3:].count(orders[0]) < 22, "by lot"
    slots = [name for order in orders[:3] for name in order]
    for every in range(2, 9):
        for lasts in range(1, every):
            for begins in range(every):
                slow = [(at - begins) % every < lasts for at in range(6)]
                met = [
                    {name for name, at in zip(order, slow[2 * i : 2 * i + 2], strict=True) if at}
                    for i, order in enumerate(orders[:3])
                ]
                assert not (met[0] == met[1] == met[2] and len(met[0]) == 1), (slots, slow)


def test_twins_rotate_over_all_treatments_in_an_order_of_the_seed(base):
    plan = planned(HEAD.replace("seed = 7", "replicates = 6\nseed = 7") + TWO, base)
    twins = [t.treatment for t in plan.trials if t.control]
    assert sorted(twins[:2]) == ["t01", "t02"]
    assert twins == twins[:2] * 3
    assert plan.judging.control == "in turn"
    begun = {
        next(
            t.treatment
            for t in planned(HEAD.replace("seed = 7", f"seed = {seed}") + TWO, base).trials
            if t.control
        )
        for seed in range(20)
    }
    assert begun == {"t01", "t02"}


def test_a_seed_gives_the_same_plan_for_ever(base):
    # Golden: an interrupted study is continued by planning it again.
    plan = planned(HEAD + TWO, base)
    assert [t.id for t in plan.trials] == [
        "b01-t02-aa",
        "b01-t02",
        "b01-t01",
        "b02-t01",
        "b02-t02",
        "b02-t01-aa",
        "b03-t02-aa",
        "b03-t01",
        "b03-t02",
    ]
    other = planned(HEAD.replace("seed = 7", "seed = 8") + TWO, base)
    assert [t.id for t in other.trials] != [t.id for t in plan.trials]


def test_the_control_can_be_moved_or_left_out(base):
    moved = planned(HEAD + TWO + '[control]\ntreatment = "t02"\n', base)
    assert {t.treatment for t in moved.trials if t.control} == {"t02"}
    assert moved.judging.control == "t02"
    none = planned(HEAD + TWO + "[control]\naa = false\n", base)
    assert not any(t.control for t in none.trials)
    assert none.judging.control is None
    with pytest.raises(StudyError, match="no treatment `t3`"):
        planned(HEAD + TWO + '[control]\ntreatment = "t3"\n', base)


def test_a_lone_treatment_is_called_by_its_system(base):
    plan = planned(HEAD + "[systems.tantivy]\n", base)
    assert [(t.id, t.label, dict(t.levels)) for t in plan.treatments] == [("t01", "tantivy", {})]


def test_more_than_99_treatments_still_sort_by_their_ids(base):
    levels = list(range(1, 121))
    plan = planned(HEAD + f'[systems.tantivy]\n[factors]\n"load.clients" = {levels}\n', base)
    ids = [t.id for t in plan.treatments]
    assert ids == sorted(ids)
    assert ids[0] == "t001"


def test_labels_tell_like_named_keys_of_different_tables_apart(base):
    text = HEAD.replace("distinct = 5", "").replace(
        'files = "products.csv"', 'family = "generated"'
    )
    text += '[systems.tantivy]\n[factors]\n"queries.seed" = [1, 2]\n"corpus.seed" = [1, 2]\n'
    labels = [t.label for t in planned(text, base).treatments]
    assert labels[0] == "queries.seed=1 corpus.seed=1"
    assert len(set(labels)) == 4


@pytest.mark.parametrize(
    ("more", "metric"),
    [
        ("", "throughput"),
        ('[verdict]\nmetric = "service_p50"\n', "service_p50"),
        ('[factors]\n"load.rate_per_s" = [10, 20]\n', "response_p99"),
    ],
)
def test_judging_says_by_what_the_verdict_goes(more, metric, base):
    judging = planned(HEAD + TWO + more, base).judging
    assert judging.metric == metric
    assert (judging.agreement.require, judging.agreement.k) == ("totals", 10)
    assert judging.factors["system"] == ["tantivy", "sqlite"]


def test_time_is_estimated_from_windows_ingest_and_overhead(base):
    text = HEAD + TWO
    # Six trials and three twins of 1 s + 2 s, at least.
    assert planned(text, base).estimated_s > 9 * 3
    many = planned(text, base, documents=1_000_000).estimated_s
    once = planned(text + '[ingest]\nindex = "once"\n', base, documents=1_000_000).estimated_s
    each = planned(text + '[ingest]\nindex = "per-trial"\n', base, documents=1_000_000).estimated_s
    assert planned(text, base, documents=1000).estimated_s < once < many < each


@pytest.mark.parametrize(
    ("name", "old", "new", "took_s"),
    [
        ("interference", "warmup_s = 45", "warmup_s = 8", 2068),
        ("cars-inserting", "", "", 2002),
    ],
)
def test_time_is_about_what_the_shipped_studies_took_on_two_cores(name, old, new, took_s):
    """From the first trial to the last, as their records say."""
    shipped = Path(__file__).parents[1] / "studies" / f"{name}.toml"
    plan = planned(shipped.read_text(encoding="utf-8").replace(old, new), shipped.parent)
    assert plan.estimated_s == pytest.approx(took_s, rel=0.08)


def test_the_time_of_operations_counts_their_statements_and_rows():
    """One statement for each row takes several times as long as all rows in one."""
    shipped = Path(__file__).parents[1] / "studies" / "many-rows.toml"
    made = planned(shipped.read_text(encoding="utf-8"), shipped.parent)
    of = {
        (t.operation["method"], t.operation["rows"]): request_s(t)
        for t in made.treatments
        if t.levels["systems.mariadb.storage"] == "innodb"
    }
    assert of["C-in", 1] == pytest.approx(0.0011, rel=0.05)
    assert of["A-prepared", 1_000_000] == pytest.approx(5 * of["C-in", 1_000_000], rel=0.3)
    assert of["C-in", 1_000_000] < of["C-in-blocks", 1_000_000] < 1.1 * of["C-in", 1_000_000]
    assert made.estimated_s > 2 * 3600


def test_starting_a_system_for_each_trial_is_in_the_time_and_one_that_runs_is_not_started(base):
    slow = HEAD + "[systems.opensearch]\n"
    fast = HEAD + "[systems.groonga]\n"
    starts = len(planned(slow, base).trials)
    assert planned(slow, base).estimated_s > planned(fast, base).estimated_s + 5 * starts
    there = 'attach = "http://127.0.0.1:9"\n[ingest]\nindex = "as-found"\n'
    running = [planned(text + there, base).estimated_s for text in (slow, fast)]
    assert running[0] == running[1]


def test_treatments_share_an_index_only_if_it_would_be_the_same(base):
    text = HEAD + '[systems.tantivy]\n[factors]\n"load.clients" = [1, 2]\n'
    text += '"systems.tantivy.parts" = [1, 2]\n"systems.tantivy.search_threads" = [0, 2]\n'
    plan = planned(text, base)
    assert len({index_key(t) for t in plan.treatments}) == 2
    assert len(plan.treatments) == 8


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
@given(
    st.lists(st.integers(1, 64), min_size=1, max_size=4, unique=True),
    st.lists(st.sampled_from(["any", "all", "phrase", "prefix", "fuzzy"]), min_size=1, unique=True),
    st.integers(0, 2**53), st.integers(1, 5), st.booleans(),
)  # fmt: skip
def test_a_plan_survives_its_json_form(base, clients, modes, seed, replicates, aa):
    text = HEAD.replace("seed = 7", f"seed = {seed}\nreplicates = {replicates}") + TWO
    text += f'[factors]\n"load.clients" = {clients}\n"queries.match" = {json.dumps(modes)}\n'
    plan = planned(text + f"[control]\naa = {json.dumps(aa)}\n", base)
    assert read_plan(json.loads(json.dumps(msgspec.to_builtins(plan)))) == plan
    assert planned(text + f"[control]\naa = {json.dumps(aa)}\n", base) == plan


def test_a_plan_of_another_format_is_refused_and_not_misread(base):
    payload = msgspec.to_builtins(planned(HEAD + TWO, base))
    with pytest.raises(RecordError, match="format 3, and this searchbench reads formats 1 and 2"):
        read_plan({**payload, "format": 3})
    with pytest.raises(RecordError, match="format None"):
        read_plan({})
    with pytest.raises(RecordError, match="not whole"):
        read_plan({"format": 2, "seed": 1})


SWEPT = HEAD.replace("seconds = 2", "clients = [4, 1, 2]\nseconds = 2")
PARTS = '[factors]\n"systems.tantivy.parts" = [1, 4]\n'


def test_a_sweep_has_a_treatment_for_each_step_and_one_subject_for_them_all(base):
    plan = planned(SWEPT + TWO + PARTS, base)
    assert plan.judging.measure == "sweep"
    assert [(t.subject, t.label) for t in plan.treatments][:4] == [
        ("tantivy parts=1", "tantivy parts=1 clients=4"),
        ("tantivy parts=1", "tantivy parts=1 clients=1"),
        ("tantivy parts=1", "tantivy parts=1 clients=2"),
        ("tantivy parts=4", "tantivy parts=4 clients=4"),
    ]
    assert {t.subject for t in plan.treatments} == {"tantivy parts=1", "tantivy parts=4", "sqlite"}
    for t in plan.treatments:
        assert t.load["clients"] == t.levels["load.clients"]
        assert open_load(t.load, base).connections == t.load["clients"]
    assert plan.judging.factors["load.clients"] == [4, 1, 2]
    assert plan.judging.metric == "throughput"
    assert plan.judging.control is None


def test_a_lone_system_of_a_sweep_is_the_subject_and_its_steps_the_labels(base):
    text = SWEPT.replace("clients = [4, 1, 2]", "rate_per_s = [100.0, 0.5]")
    plan = planned(text + "[systems.tantivy]\n", base)
    assert [(t.subject, t.label) for t in plan.treatments] == [
        ("tantivy", "rate_per_s=100"),
        ("tantivy", "rate_per_s=0.5"),
    ]
    one = planned(SWEPT.replace("[4, 1, 2]", "[4]") + "[systems.tantivy]\n", base)
    assert [(t.subject, t.label) for t in one.treatments] == [("tantivy", "clients=4")]


def test_trials_of_a_study_have_their_label_as_subject(base):
    plan = planned(HEAD + TWO + PARTS, base)
    assert all(t.subject == t.label for t in plan.treatments)
    assert plan.judging.measure == "trials"


def test_steps_of_a_started_system_stay_together_and_subjects_are_shuffled(base):
    plan = planned("replicates = 20\n" + SWEPT + TWO + PARTS, base)
    by_id = {t.id: t for t in plan.treatments}
    firsts = set()
    for block in range(1, 21):
        trials = [by_id[t.treatment] for t in plan.trials if t.block == block]
        assert len(trials) == 9
        for at in (0, 3, 6):
            assert len({t.subject for t in trials[at : at + 3]}) == 1
            order = [4, 1, 2] if block % 2 else [2, 1, 4]
            assert [t.load["clients"] for t in trials[at : at + 3]] == order
        firsts.add(trials[0].subject)
    assert len(firsts) == 3
    assert not any(t.control for t in plan.trials)


def test_running_systems_are_driven_step_by_step_and_who_is_first_is_drawn_by_lot(base):
    text = "replicates = 12\n" + SWEPT
    text += '[systems.a]\nengine = "tantivy"\nattach = "127.0.0.1:1"\n'
    text += '[systems.b]\nengine = "sqlite"\nattach = "127.0.0.1:2"\n'
    plan = planned(text, base)
    assert all(t.attach for t in plan.treatments)
    by_id = {t.id: t for t in plan.treatments}
    orders, in_turn = [], []
    for block in range(1, 13):
        own = [by_id[t.treatment] for t in plan.trials if t.block == block]
        pairs = list(zip(own[::2], own[1::2], strict=True))
        assert all(x.load["clients"] == y.load["clients"] for x, y in pairs)
        in_turn.append([x.load["clients"] for x, _ in pairs])
        orders.append({x.load["clients"]: x.system for x, _ in pairs})
    assert {*orders[0].values()} == {"a", "b"}
    assert all(orders[0][n] != orders[1][n] for n in orders[0]), "at each load both are first once"
    # What would meet one system in the first two passes meets the other in the third.
    at = [{n: i for i, n in enumerate(one)} for one in in_turn]
    for n in orders[0]:
        assert (orders[2][n] == orders[1][n]) is ((at[2][n] - at[0][n]) % 2 == 0)
    assert len({tuple(sorted(o.items())) for o in orders[3:]}) > 2
    assert in_turn[:2] == [[4, 1, 2], [1, 2, 4]]
    assert len({tuple(one) for one in in_turn[2:]}) > 2


def test_running_systems_go_forwards_then_backwards_then_by_lot() -> None:
    for n in range(2, 13):
        one, other, *rest = (
            one_pass(range(n), block, random.Random(block)) for block in range(1, 7)
        )
        assert one == [*range(n)]
        assert all(sorted(found) == one for found in (other, *rest))
        assert all(a != b for a, b in zip(one, other, strict=True)), n
        assert len({tuple(found) for found in rest}) > 1, n
    assert one_pass([7], 4, random.Random(1)) == [7]


def test_steps_can_be_left_out_of_a_sweep(base):
    text = SWEPT + TWO
    text += '[[exclude]]\nwhen = { "load.clients" = 4, system = "sqlite" }\nreason = "one writer"\n'
    plan = planned(text, base)
    assert [t.label for t in plan.treatments if t.system == "sqlite"] == [
        "sqlite clients=1",
        "sqlite clients=2",
    ]


def test_a_search_has_a_template_for_each_subject_and_no_trials(base):
    text = HEAD.replace("seconds = 2", 'find_capacity = true\nslo = ["p99 < 50ms", "p50 < 5ms"]')
    plan = planned(text + "effort = 0.5\n" + TWO + PARTS, base)
    assert [t.subject for t in plan.treatments] == ["tantivy parts=1", "tantivy parts=4", "sqlite"]
    assert plan.trials == ()
    judging = plan.judging
    assert (judging.measure, judging.promises, judging.effort) == (
        "capacity",
        ("p99 < 50ms", "p50 < 5ms"),
        0.5,
    )
    for t in plan.treatments:
        assert t.load["kind"] == "open"
        assert not {"rate_per_s", "seconds", "slo", "effort", "find_capacity"} & set(t.load)
    # Three subjects at half of the usual effort, two and a half minutes for the first promise; for
    # the second six more trials, which are short.
    assert 3 * 150 < plan.estimated_s < 3 * 200
    assert read_plan(json.loads(json.dumps(msgspec.to_builtins(plan)))) == plan


LINKED = """
[factors]
spread = [
  { name = "one part", set = { "systems.tantivy.parts" = 1, "corpus.decimate" = 2 } },
  { name = "four parts", set = { "systems.tantivy.parts" = 4, "corpus.decimate" = 1 } },
]
"""


def test_a_linked_level_is_one_level_and_sets_all_of_its_keys(base):
    plan = planned(HEAD + TWO + LINKED, base)
    assert [(t.label, t.levels) for t in plan.treatments] == [
        ("tantivy spread=one part", {"system": "tantivy", "spread": "one part"}),
        ("tantivy spread=four parts", {"system": "tantivy", "spread": "four parts"}),
        ("sqlite spread=one part", {"system": "sqlite", "spread": "one part"}),
        ("sqlite spread=four parts", {"system": "sqlite", "spread": "four parts"}),
    ]
    assert [t.corpus["decimate"] for t in plan.treatments] == [2, 1, 2, 1]
    assert [t.parameters["parts"] for t in plan.treatments[:2]] == [1, 4]
    assert "parts" not in plan.treatments[2].parameters
    assert plan.judging.factors["spread"] == ["one part", "four parts"]


def test_a_linked_level_of_one_system_does_not_cross_the_others_and_can_be_left_out(base):
    text = HEAD + TWO + LINKED.replace('"corpus.decimate"', '"systems.tantivy.search_threads"')
    plan = planned(text, base)
    assert [t.label for t in plan.treatments] == [
        "tantivy spread=one part",
        "tantivy spread=four parts",
        "sqlite",
    ]
    text += '[[exclude]]\nwhen = { spread = "one part" }\nreason = "known"\n'
    assert [e.levels for e in planned(text, base).excluded] == [
        {"system": "tantivy", "spread": "one part"}
    ]


REQUESTS = """\
question = "?"
command = ["load", "--clients", "1"]
[requests]
file = "log.jsonl"
[systems."127.0.0.1:80"]
attach = ["http://127.0.0.1:80", "http://127.0.0.1:81"]
[agreement]
captures = 50
capture = "before"
[load]
"""


@pytest.fixture
def logged(base):
    lines = [json.dumps({"path": f"/{i}", "t": 100 + i / 10}) for i in range(301)]
    (base / "log.jsonl").write_text("\n".join(lines))  # 30 s
    return base


def test_verbatim_requests_are_a_table_of_their_own_and_their_systems_have_no_levers(logged):
    plan = planned(REQUESTS + "clients = [1, 2]\n", logged)
    first = plan.treatments[0]
    assert set(first.settings) == {"requests", "load", "system"}
    assert first.requests == {"form": "auto", "file": "log.jsonl"}
    assert (first.engine, first.parameters, first.corpus, first.queries) == ("", {}, {}, {})
    assert first.attach == ("http://127.0.0.1:80", "http://127.0.0.1:81")
    assert (first.subject, first.label) == ("127.0.0.1:80", "clients=1")
    judging = plan.judging
    assert (judging.ingest, judging.command) == ("as-found", ("load", "--clients", "1"))
    assert (judging.agreement.captures, judging.agreement.capture) == (50, "before")


def test_a_replay_over_systems_as_found_is_a_sweep_of_one_step_as_long_as_its_log(logged):
    plan = planned(REQUESTS + "speed = 2.0\n", logged)
    [treatment] = plan.treatments
    assert plan.judging.measure == "sweep"
    assert plan.judging.factors == {"load.speed": [2.0]}
    assert (treatment.subject, treatment.label) == ("127.0.0.1:80", "speed=2")
    assert "seconds" not in treatment.load
    assert len(plan.trials) == 1
    assert 15 < plan.estimated_s < 20
    named = planned(REQUESTS + 'kind = "replay"\n', logged)
    assert 30 < named.estimated_s < 35
    assert named.treatments[0].load["speed"] == 1.0


def test_a_replay_of_a_started_system_is_trials(base):
    (base / "queries.jsonl").write_text('{"text": "red", "t": 5}\n{"text": "shoe", "t": 25}\n')
    text = HEAD.replace("distinct = 5", 'file = "queries.jsonl"').replace(
        "seconds = 2", "speed = 1.0"
    )
    plan = planned(text + TWO, base)
    assert plan.judging.measure == "trials"
    assert 9 * 20 < plan.estimated_s < 9 * 20 + 60


def test_remote_addresses_are_marked_in_the_plan(base):
    text = HEAD + '[systems.x]\nengine = "sphinx"\nattach = "10.1.2.3:9306"\nremote = true\n'
    assert planned(text, base).treatments[0].remote


def test_a_plan_of_three_million_rows_takes_tens_of_minutes(base):
    row = '{"id": "%08d", "title": "red shoe of a size", "body": "' + "words " * 10 + '"}\n'
    with (base / "big.jsonl").open("w") as file:
        file.writelines(row % i for i in range(20_000))
    text = HEAD.replace("products.csv", "big.jsonl") + TWO
    assert count({"files": "big.jsonl"}, base) == pytest.approx(20_000, rel=0.02)
    assert planned(text, base).estimated_s < 120
    # As if it were as large as 3 million of its rows are.
    big = planned(text.replace('"big.jsonl"', '"big.jsonl"\nduplicate = 150'), base).estimated_s
    assert 10 * 60 < big < 90 * 60
    assert planned(text, base, documents=3_000_000).estimated_s == pytest.approx(big, rel=0.05)


def test_documents_are_counted_from_sizes_where_that_is_cheap(base):
    lines = "".join(f"{i},red shoe number {i}\n" for i in range(30_000))
    (base / "a.csv").write_text("id,title\n" + lines)
    with gzip.open(base / "b.csv.gz", "wt") as packed:
        packed.write("id,title\n" + lines)
    (base / "folder").mkdir()
    for name in ("one.txt", "two.txt"):
        (base / "folder" / name).write_text("some words\nin lines\n")
    assert count({"files": "a.csv"}, base) == pytest.approx(30_000, rel=0.1)
    assert 10_000 < count({"files": "b.csv.gz"}, base) < 60_000
    assert count({"files": ["a.csv", "*.csv"]}, base) == pytest.approx(60_000, rel=0.1)
    assert count({"files": "folder"}, base) == 2
    assert count({"files": "a.csv", "scale": 0.1}, base) == pytest.approx(3_000, rel=0.1)
    assert count({"family": "generated", "documents": 500, "scale": 4}, base) == 2000
    assert count({"family": "debian", "decimate": 2}, base) == 32_000


def test_files_of_requests_may_be_a_factor(logged):
    (logged / "other.jsonl").write_text('{"path": "/a"}\n')
    text = REQUESTS.replace('file = "log.jsonl"\n', "") + "clients = 1\n"
    plan = planned(text + '[factors]\n"requests.file" = ["log.jsonl", "other.jsonl"]\n', logged)
    assert [t.requests["file"] for t in plan.treatments] == ["log.jsonl", "other.jsonl"]
    assert plan.judging.measure == "trials"
