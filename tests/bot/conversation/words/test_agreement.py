"""Who agrees. Who does not is in the table."""

from __future__ import annotations

import pytest

from bot.conversation.state import Checkpoint
from bot.conversation.words import Intent, understand
from tests.bot.conversation.words.sentences import CHECKPOINTS, TYPED


def intent(sentence: str, checkpoint: Checkpoint | None) -> Intent:
    return understand(sentence, checkpoint).intent


@pytest.mark.parametrize(
    ("checkpoint", "sentence"), [(checkpoint, sentence) for checkpoint in CHECKPOINTS for sentence in TYPED[checkpoint]]
)
def test_agreement_approves(checkpoint: Checkpoint, sentence: str) -> None:
    understood = understand(sentence, checkpoint)
    assert understood.intent is Intent.APPROVE
    assert understood.changes.nothing


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
@pytest.mark.parametrize("filling", [" ", "\n", "!", "yes ", "please ", "\u200b", "👍"])
def test_long_texts_approve_nothing(filling: str, checkpoint: Checkpoint) -> None:
    assert intent("yes" + filling * 2_000, checkpoint) is not Intent.APPROVE
    assert intent(filling * 100_000 + " yes", checkpoint) is not Intent.APPROVE
