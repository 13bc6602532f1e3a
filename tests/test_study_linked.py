"""Factors whose levels set several keys at once, and factors of systems with any name."""

import pytest

from searchbench.study import Factor
from searchbench.study.model import key_of, system_of
from searchbench.study.placing import crossed
from study_texts import SHORT, right, with_lines, wrong


@pytest.fixture
def base(tmp_path):
    (tmp_path / "products.csv").write_text("id,title\n1,red shoe\n")
    (tmp_path / "queries.txt").write_text("red shoe\nblue\n")
    return tmp_path


def test_factors_name_systems_with_dots_in_their_names(base):
    text = SHORT.replace("[systems.tantivy]", '[systems."a.b"]\nengine = "tantivy"')
    text += '[systems."a.b.c"]\nengine = "tantivy"\n[factors]\n"systems.a.b.c.parts" = [1, 2]\n'
    factor = right(text, base).factors[0]
    assert (system_of(factor.path), key_of(factor.path)) == ("a.b.c", "parts")
    nested = text.replace('"systems.a.b.c.parts"', 'systems."a.b".parts')
    assert system_of(right(nested, base).factors[0].path) == "a.b"


LINKED = """
[factors]
spread = [
 { name = "one part", set = { "systems.tantivy.parts" = 1, "systems.tantivy.search_threads" = 0 } },
 { name = "four parts", set = { "systems.tantivy.parts" = 4, systems.tantivy.search_threads = 2 } },
]
"""


def test_a_linked_level_sets_several_keys_and_has_a_name(base):
    [factor] = right(SHORT + LINKED, base).factors
    assert factor == Factor(
        "spread",
        ("one part", "four parts"),
        (
            {"systems.tantivy.parts": 1, "systems.tantivy.search_threads": 0},
            {"systems.tantivy.parts": 4, "systems.tantivy.search_threads": 2},
        ),
    )
    tantivy, sqlite = (study := right(SHORT + LINKED, base)).systems
    assert (crossed(study, tantivy), crossed(study, sqlite)) == ([factor], [])
    mixed = LINKED.replace('"systems.tantivy.parts"', '"corpus.decimate"')
    assert crossed(study := right(SHORT + mixed, base), sqlite) == list(study.factors)
    tables = '[[factors.how]]\nname = "a"\n[factors.how.set]\nload.cpus = [0]\nqueries.limit = 5\n'
    assert right(SHORT + tables, base).factors[0].settings(0) == {
        "load.cpus": [0],
        "queries.limit": 5,
    }


def linked(*sets: str, name: str = "spread") -> str:
    levels = [f'  {{ name = "{chr(97 + i)}", set = {{ {s} }} }},' for i, s in enumerate(sets)]
    return "\n".join(["[factors]", f"{name} = [", *levels, "]", ""])


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (linked('"systems.tantivy.parts" = 1, "systems.tantivy.parts" = 2'),
         "14:54: this is not TOML: duplicate key; it was set before at 14:25"),
        (linked('"systems.*.parts" = 1, systems.tantivy.parts = 2'),
         '14:64: the level "a" sets `systems.tantivy.parts` here and `systems.*.parts` at 14:25'),
        (linked('"load.order" = "drawn", load.order = "logged"'),
         '14:54: the level "a" sets `load.order` here and `load.order` at 14:25'),
        (linked('"load.clients" = 1'), "10:1: `clients` is set here and varied by the levels of "
         "`spread`, at 14:25; keep one of them"),
        (linked('"load.order" = "drawn"') + '"load.order" = ["logged"]\n',
         "16:1: `load.order` is varied here and at 14:25"),
        (linked('"load.order" = "drawn"') + linked('load.order = "logged"', name="more")[10:],
         "17:30: `load.order` is varied here and at 14:25"),
        (linked('"load.order" = "drawn"', '"queries.limit" = 5'),
         'all levels of a factor set the same keys: "b" lacks `load.order` and also sets '
         '`queries.limit`, unlike "a"'),
        (linked('"load.order" = "drwn"'), "14:40: level \"a\" of `spread`: `order` must be one "
         "of \"stretches\", \"logged\", \"shuffled\", \"drawn\", "
         "not \"drwn\" (did you mean `drawn`?)"),
        (linked('"load.ordr" = "drawn"'), "did you mean `order`?"),
        (linked('"systems.tantiv.parts" = 1'), "(did you mean `tantivy`?)"),
        (linked('"load.effort" = 1'), "`load.effort` cannot be a factor"),
        (linked('"corpus.decimate" = 1', '"corpus.decimate" = 0'), "15:45: `decimate` must be"),
        (linked('"queries.file" = "no.txt"'), 'there is no file "no.txt"'),
        (linked("systems = 1"), "names nothing that can be a factor"),
        (linked(""), "a level of `spread` needs what it sets"),
        (linked('"load.order" = "drawn"').replace('"a"', '""'), "needs a name"),
        (linked('"load.order" = "drawn"', '"load.order" = "drawn"').replace('"b"', '"a"'),
         'has the level "a" twice'),
        (linked('"load.order" = "drawn"').replace("name", "nam"), "did you mean `name`?"),
        (linked('"load.order" = "drawn"').replace("\n]", "\n4]"), "levels of `spread` are tables"),
        (linked('"load.order" = "drawn"', name="system"), "choose another name"),
        (linked('"load.order" = "drawn"', name='"load.order"'), "levels that are tables belong to"),
        ("[factors]\nspread = [1, 2]\n", "a name without a dot is for levels that are tables"),
        (linked('"load.order" = "drawn"') + '[[exclude]]\nwhen = { spread = "c" }\nreason = "r"',
         '`spread` has no level "c" (its levels: "a")'),
    ],
)  # fmt: skip
def test_mistakes_in_linked_levels_have_their_positions(lines, said, base):
    complaints = with_lines(lines, base)
    assert any(said in c for c in complaints), complaints


def test_a_linked_level_and_a_systems_own_table_do_not_set_the_same(base):
    text = SHORT.replace("[systems.tantivy]", "[systems.tantivy]\nparts = 2")
    [complaint] = wrong(text + linked('"systems.tantivy.parts" = 1'), base)
    assert complaint.startswith(
        "s.toml:8:1: `parts` is set here and varied by the levels of `spread`, at 15:25"
    )
