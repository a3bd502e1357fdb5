"""What a person may have meant: told, and never done."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.words import PUBLISHED, Intent, Vocabulary, understand
from bot.conversation.words.hints import nearest
from tests.bot.conversation.words.sentences import CHECKPOINTS, PLAN

NAMES = sorted({*PUBLISHED.algorithms, *(name for name in PUBLISHED.schemes if len(name) > 5)})


@given(st.sampled_from(sorted(PUBLISHED.algorithms)), st.integers(0, 30), st.sampled_from(["drop", "double", "swap"]))
def test_a_mistyped_algorithm_is_asked_back_with_its_name(name: str, place: int, how: str) -> None:
    at = place % (len(name) - 1)
    typed = {
        "drop": name[:at] + name[at + 1 :],
        "double": name[:at] + name[at] + name[at:],
        "swap": name[:at] + name[at + 1] + name[at] + name[at + 2 :],
    }[how]
    if typed in PUBLISHED.algorithms or len(typed) < 3:
        return
    for checkpoint in (None, *CHECKPOINTS):
        understood = understand(f"use {typed}", checkpoint)
        assert (understood.intent, understood.unread) == (Intent.UNCLEAR, typed)
        assert understood.changes.nothing
        assert name in understood.hint


def test_all_that_are_equally_near_are_named() -> None:
    assert understand("use gptqq", PLAN).hint == "Did you mean gptaq or gptq?"
    names = Vocabulary(algorithms=frozenset({"abcd", "abce", "abcf"}))
    assert understand("use abcx", PLAN, names).hint == "Did you mean abcd, abce or abcf?"


def test_names_of_runners_and_datasets_are_near_as_well() -> None:
    names = Vocabulary(runners=frozenset({"mi300-box"}), datasets=frozenset({"own.jsonl"}))
    assert understand("on mi30-box", PLAN, names).hint == "Did you mean mi300-box?"
    assert understand("calibrate on own.jsonll", PLAN, names).hint == "Did you mean own.jsonl?"


@pytest.mark.parametrize(
    "sentence", ["use foo", "make it blue", "keep it", "use bar", "run away", "hello there", "keep the plan"]
)
def test_nothing_is_made_up_where_nothing_is_near(sentence: str) -> None:
    assert understand(sentence, PLAN).hint == ""


@given(st.text(max_size=60))
def test_whatever_is_near_is_a_name(text: str) -> None:
    for name in nearest(text, PUBLISHED):
        assert name
        assert name != text
