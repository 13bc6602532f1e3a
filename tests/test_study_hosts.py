"""[hosts] of a study: who is on which, which agents have which parts, and every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchbench.places import Host, place_of
from searchbench.study.plan import Plan
from searchbench.study.planner import make_plan
from study_texts import right, wrong

STUDY = """\
question = "Which host governs?"
[corpus]
files = "products.csv"
[queries]
file = "queries.txt"
[load]
clients = 2
seconds = 1
"""
AGENTS = """\
[hosts.north]
[hosts.south]
cpu_share = 0.5
[systems.sphinx]
agents = ["north", "south"]
"""


SSH = """\
[hosts.north]
ssh = "me@north"
[systems.sphinx]
agents = ["north"]
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "products.csv").write_text("id,title\n1,red shoe\n")
    (tmp_path / "queries.txt").write_text("red shoe\nblue\n")
    return tmp_path


def planned(text: str, base: Path) -> Plan:
    return make_plan(right(STUDY + text, base))


def parts(plan: Plan) -> list[tuple[object, ...]]:
    names = ("parts", "parts_by_agent", "part_kind")
    return [tuple(t.parameters[name] for name in names) for t in plan.treatments]


def test_agents_are_on_the_hosts_that_a_system_names(base: Path) -> None:
    plan = planned(AGENTS, base)
    assert parts(plan) == [(2, "1,1", "agent")]
    place = place_of(plan.treatments[0].settings)
    assert place is not None
    assert place.agents == (Host(name="north"), Host(name="south", cpu_share=0.5))
    assert (place.name, place.host) == ("", None)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("parts_by_agent = 4", (8, "4,4", "agent")),
        ("parts_by_agent = [1, 4]", (5, "1,4", "agent")),
        ('part_kind = "mixed"\nparts_by_agent = [1, 4]', (6, "1,4", "mixed")),
    ],
)
def test_parts_follow_from_those_of_each_agent(
    said: str, found: tuple[object, ...], base: Path
) -> None:
    assert parts(planned(f"{AGENTS}{said}\n", base)) == [found]


def test_agents_of_this_machine_may_have_several_parts_too(base: Path) -> None:
    plan = planned("[systems.sphinx]\nparts_by_agent = [1, 2]\n", base)
    assert parts(plan) == [(3, "1,2", "agent")]
    assert place_of(plan.treatments[0].settings) is None
    assert parts(planned("[systems.sphinx]\nparts = 3\n", base)) == [(3, "", "local")]


def test_a_host_that_is_named_twice_has_two_agents(base: Path) -> None:
    plan = planned(AGENTS.replace('["north", "south"]', '["north", "south", "north"]'), base)
    assert parts(plan) == [(3, "1,1,1", "agent")]


def test_whatever_is_said_of_hosts_and_agents_may_be_a_factor(base: Path) -> None:
    text = (
        AGENTS.replace("cpu_share = 0.5\n", "")
        + """\
    [factors]
    "systems.sphinx.parts_by_agent" = [1, 2]
    "hosts.south.cpu_share" = [0.5, 1.0]
    """
    )
    plan = planned(text, base)
    assert [(t.parameters["parts"], place_of(t.settings).agents[1].cpu_share)  # type: ignore[union-attr]
            for t in plan.treatments] == [(2, 0.5), (2, 1.0), (4, 0.5), (4, 1.0)]  # fmt: skip
    linked = (
        AGENTS.replace('agents = ["north", "south"]\n', "")
        + """\
    [factors]
    where = [
      { name = "one", set = { AGENTS = "north", PARTS = 2 } },
      { name = "both", set = { AGENTS = ["north", "south"], PARTS = [1, 2] } },
    ]
    """
    )
    for name, path in {"AGENTS =": "agents", "PARTS =": "parts_by_agent"}.items():
        linked = linked.replace(name, f'"systems.sphinx.{path}" =')
    plan = planned(linked, base)
    assert parts(plan) == [(2, "2", "agent"), (3, "1,2", "agent")]
    settings = [place_of(t.settings) for t in plan.treatments]
    assert [[h.name for h in p.agents] for p in settings if p] == [["north"], ["north", "south"]]


def test_a_host_that_a_system_is_not_on_changes_nothing_for_it(base: Path) -> None:
    text = (
        AGENTS.replace("cpu_share = 0.5\n", "")
        + """\
    [systems.sqlite]
    [factors]
    "hosts.south.cpu_share" = [0.5, 1.0]
    """
    )
    plan = planned(text, base)
    assert [t.system for t in plan.treatments] == ["sphinx", "sphinx", "sqlite"]


def test_hosts_with_other_names_are_the_same(base: Path) -> None:
    text = AGENTS.replace("cpu_share = 0.5\n", "").replace('agents = ["north", "south"]\n', "")
    text += """\
    [factors]
    where = [
      { name = "one", set = { "systems.sphinx.agents" = ["north"] } },
      { name = "other", set = { "systems.sphinx.agents" = ["south"] } },
    ]
    """
    plan = planned(text, base)
    assert len(plan.treatments) == 1
    assert plan.excluded[0].reason.startswith("`where` changes nothing for sphinx here")


def test_the_server_is_on_the_host_of_its_place(base: Path) -> None:
    text = '[hosts.north]\ncores = [0]\n[places.p]\nhost = "north"\ncold = "trial"\n'
    plan = planned(text + "[systems.sphinx]\n", base)
    place = place_of(plan.treatments[0].settings)
    assert place is not None
    assert place.host == Host(name="north", cores=(0,))
    assert list(place.hosts) == ["north"]


def test_a_host_that_ssh_reaches_is_that_machine_as_it_is(base: Path) -> None:
    text = SSH + 'parts_by_agent = 2\n[hosts.near]\n[systems.other]\nengine = "sphinx"\n'
    text += 'agents = ["near", "north"]\n'
    plan = planned(text.replace('"me@north"', '"me@north"\npath = "/opt/sphinx/bin"'), base)
    place, both = (place_of(t.settings) for t in plan.treatments)
    assert place is not None
    assert place.agents == (Host(name="north", ssh="me@north", path=("/opt/sphinx/bin",)),)
    assert place.agents[0].folder == "/var/tmp"
    assert both is not None, "the server is here, and reaches both kinds"
    assert [host.ssh for host in both.agents] == ["", "me@north"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (AGENTS.replace('"south"]', '"sout"]'), '13:20: there is no host "sout" (did you mean'),
        ('[systems.sphinx]\nagents = ["n"]\n', '10:11: there is no host "n" (there is no [hosts.'),
        ('[hosts.n]\n[places.p]\nhost = "m"\n[systems.sphinx]\n', '11:8: there is no host "m"'),
        (AGENTS.replace("sphinx]", "sqlite]"), "13:1: sqlite has no agents that could be on hosts"),
        ("[hosts.n]\n[systems.sphinx]\n", "9:8: nothing runs on the host `n` (as in [places.NAME]"),
        (AGENTS + "parts = 2\n", "14:1: `parts` follows from the agents and `parts_by_agent`"),
        (AGENTS + 'part_kind = "local"\n', '14:13: part_kind = "local" has no agents; use'),
        (AGENTS + 'attach = "127.0.0.1:9306"\n', "13:1: sphinx runs already, and `agents` is "),
        (AGENTS + "parts_by_agent = 0\n", "14:18: `parts_by_agent` must be an integer or a list"),
        ('[hosts.n]\nssh = "-oProxyCommand=x"\n[systems.sphinx]\nagents = "n"\n',
         '10:7: `ssh` must be the name of a machine as ssh knows it, not "-oProxyCommand=x"'),
        ('[hosts.n]\nssh = ""\n[systems.sphinx]\nagents = "n"\n', "10:7: `ssh` must be the name"),
        ('[hosts.n]\nfolder = "/tmp"\n[systems.sphinx]\nagents = "n"\n',
         "10:10: `folder` is only for a host that is reached by ssh: give `ssh` too"),
        ('[hosts.n]\nssh = "n"\ncores = 2\n[systems.sphinx]\nagents = "n"\n',
         "11:9: `cores` is only for a network namespace of this machine, and this host is anoth"),
        ('[hosts.n]\nssh = "n"\nfolder = "tmp"\n[systems.sphinx]\nagents = "n"\n',
         '11:10: `folder` must begin with /, as in "/var/tmp", not "tmp"'),
        ('[hosts.n]\nssh = "n"\npath = ["bin"]\n[systems.sphinx]\nagents = "n"\n',
         '11:8: `path` names folders that begin with /, without a colon: "bin"'),
        ("[hosts.n]\ncores = 0\n[systems.sphinx]\nagents = 'n'\n", "10:9: `cores` = 0 leaves"),
        ("[hosts.n]\ncpu_share = 2\n[systems.sphinx]\nagents = 'n'\n", "10:13: `cpu_share` must"),
        ("[hosts.n]\ncpu = 2\n[systems.sphinx]\nagents = 'n'\n", "10:1: [hosts.n] has no key"),
        ('[hosts.n]\n[places.p]\nhost = "n"\ncores = 1\n[systems.sphinx]\n',
         "12:9: a place on a host has what the host has: set `cores` in [hosts.NAME]"),
        ('[hosts.n]\n[places.p]\nhost = "n"\n[systems.sqlite]\n',
         "11:8: sqlite listens on loopback alone, so sqlite cannot be on a host (these can: groo"),
    ],
)  # fmt: skip
def test_every_mistake_is_one_sentence_at_its_position(text: str, said: str, base: Path) -> None:
    [complaint] = wrong(STUDY + text, base)
    assert complaint.startswith(f"s.toml:{said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (AGENTS + "parts_by_agent = [1, 2, 3]\n",
         "`parts_by_agent` is for 3 agents, and 2 have hosts"),
        (AGENTS + '[places.p]\nmemory = "1GB"\n',
         "[places.p]: `memory` holds for processes of one machine; with agents on hosts set it in"),
        (AGENTS + '[places.p]\nstorage = "s"\n[storages.s]\nfilesystem = "ext4"\nlike = "disk"\n',
         "[storages.s]: its limits hold for processes of one machine, and here they are on hosts"),
        (SSH + '[places.p]\ncold = "trial"\n',
         "[places.p]: `cold` evicts files of this machine, and its files lie in `folder` of host"),
        (SSH + '[places.p]\nstorage = "s"\n[storages.s]\nfilesystem = "ext4"\n',
         "[places.p]: `storage` is a storage of this machine, and its files lie in `folder` of ho"),
        (SSH + '[hosts.near]\n[places.p]\nhost = "near"\n',
         "[hosts.near] is a network namespace of this machine, which has no route to host north,"),
        ("io_sizes = true\n" + SSH, "`io_sizes` is about disks of this machine, and its files lie"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_leaves_nothing_to_be_run(
    text: str, said: str, base: Path
) -> None:
    top, text = ("", text) if text.startswith("[") else text.split("\n", 1)
    with pytest.raises(Exception, match="nothing is left to be run") as error:
        make_plan(right(f"{top}\n{STUDY}{text}", base))
    assert said in str(error.value)
