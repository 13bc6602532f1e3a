"""An answer in short: a headline, at most five points, and no doubt left out for less."""

from __future__ import annotations

from searchbench.analysis.answer import MOST, Rank, Said, in_short, said, sentences


def test_the_headline_is_the_answer_and_the_points_keep_their_order() -> None:
    found = [Said("b", Rank.MORE), Said("a", Rank.ANSWER), Said("c", Rank.ASIDE)]
    assert in_short(found) == ("a", ("b", "c"))
    assert in_short([]) == ("", ())


def test_doubts_go_before_what_is_merely_more() -> None:
    more = [Said(f"more {i}", Rank.MORE) for i in range(4)]
    doubts = [Said(f"doubt {i}", Rank.DOUBT) for i in range(MOST - 1)]
    _, points = in_short([Said("it is", Rank.ANSWER), *more, *doubts])
    assert points == ("more 0", *(s.text for s in doubts))


def test_an_aside_is_shown_only_where_little_else_is() -> None:
    answer, aside = Said("it is", Rank.ANSWER), Said("by the way", Rank.ASIDE)
    doubts = [Said(f"doubt {i}", Rank.DOUBT) for i in range(3)]
    assert in_short([answer, *doubts[:2], aside])[1] == ("doubt 0", "doubt 1", "by the way")
    assert in_short([answer, *doubts, aside])[1] == ("doubt 0", "doubt 1", "doubt 2")


def test_what_is_empty_is_not_said() -> None:
    assert list(said(["", "a.", "", "b."], Rank.ANSWER, Rank.DOUBT)) == [
        Said("a.", Rank.ANSWER), Said("b.", Rank.DOUBT)
    ]  # fmt: skip


def test_sentences_are_told_apart_and_brackets_kept_whole() -> None:
    text = "a is 1.5 times as fast (e.g. at 2. Or so). It was 0.5 ms. Is it? no. 3 more."
    assert sentences([text]) == [
        "a is 1.5 times as fast (e.g. at 2. Or so).", "It was 0.5 ms.", "Is it? no. 3 more."
    ]  # fmt: skip
