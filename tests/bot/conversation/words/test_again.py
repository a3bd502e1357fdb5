"""What is asked for once more, in words of its own."""

from __future__ import annotations

import pytest

from bot.conversation.words import Intent, understand
from bot.conversation.words.again import Again, wanted_again
from tests.bot.conversation.words.sentences import CHECKPOINTS


@pytest.mark.parametrize(
    "sentence",
    [
        *("retry", "Retry!", "try again", "try again please", "please retry", "once more", "again", "one more time"),
        *("ok, try again", "yes, retry", "@ptq-bot retry", "run it again", "let's try again", "rerun", "re-run it"),
        *("redo it", "can you try again?", "could you please retry"),
    ],
)
def test_a_step_is_wanted_again(sentence: str) -> None:
    assert wanted_again(sentence) is Again.STEP


@pytest.mark.parametrize(
    "sentence",
    [
        *("back to the plan", "Back to plan.", "go back to the plan", "back", "revise", "revise the plan"),
        *("let's change the plan", "change the plan", "I want to change the plan", "take it back to the plan"),
        *("please go back to the plan", "ok, back to the plan", "no, back to the plan", "can you go back to the plan?"),
        "actually, let's go back to the plan",
    ],
)
def test_the_plan_is_wanted_again(sentence: str) -> None:
    assert wanted_again(sentence) is Again.PLAN


@pytest.mark.parametrize(
    "sentence",
    [
        *("", " ", "retry?", "should I retry", "don't retry", "retry later", "never again", "not again", "'retry'"),
        *("> retry", "@ada retry", "he said retry", "retry if it fits", "back to the plan?", "why back to the plan"),
        *(
            "don't change the plan",
            "come back to the plan tomorrow",
            "retry\u202e",
            "would you try again?",
            "yes",
            "ok",
        ),
        *("back and forth", "back up the plan", "the plan", "change", "retry or cancel", "retry" * 1_000),
    ],
)
def test_anything_else_wants_nothing_again(sentence: str) -> None:
    assert wanted_again(sentence) is None


@pytest.mark.parametrize(
    "sentence", ["retry", "try again", "run it again", "rerun", "redo it", "back to the plan", "revise"]
)
def test_nothing_is_approved_by_wanting_it_again(sentence: str) -> None:
    for checkpoint in CHECKPOINTS:
        understood = understand(sentence, checkpoint)
        assert (understood.intent, understood.unread) != (Intent.APPROVE, "")
        assert understood.intent in (Intent.UNCLEAR,)
