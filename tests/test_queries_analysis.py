import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from searchbench.workload.queries.analysis import is_term, lower, terms


def test_terms_are_runs_of_letters_and_digits_in_lower_case():
    assert terms("GNU C++ Library: 2.36-9 (x86_64)") == (
        "gnu", "c", "library", "2", "36", "9", "x86", "64",
    )  # fmt: skip


def test_no_letter_and_no_digit_gives_no_term():
    assert terms(" -- ++ \t…\n") == ()


def test_other_scripts_are_letters_too():
    assert terms("検索エンジン, поиск") == ("検索エンジン", "поиск")


def test_every_character_of_unicode_is_split_by_its_general_category():
    for code in range(0x110000):
        character = chr(code)
        is_part = unicodedata.category(character)[0] in "LN"
        assert bool(terms(character)) == is_part, hex(code)


def test_lowering_changes_no_length_so_positions_stay():
    assert all(len(lower(chr(code))) == 1 for code in range(0x110000))


def test_a_sigma_at_the_end_of_a_word_is_lowered_like_any_other():
    assert terms("ΟΔΟΣ") == ("οδοσ",)


@given(st.text())
def test_splitting_first_and_lowering_first_give_the_same(text):
    split_first = tuple(
        lower(run) for run in "".join(c if c.isalnum() else " " for c in text).split()
    )
    assert terms(text) == split_first


@given(st.text())
def test_terms_of_terms_are_themselves(text):
    assert all(is_term(term) for term in terms(text))
