"""Questions. What else is no agreement is in the table."""

from __future__ import annotations

import pytest

from bot.conversation.state import Checkpoint
from bot.conversation.words import Intent, understand
from tests.bot.conversation.words.sentences import CHECKPOINTS, EVERY_AGREEMENT

ANYWHERE: tuple[Checkpoint | None, ...] = (None, *CHECKPOINTS)


@pytest.mark.parametrize("checkpoint", ANYWHERE)
@pytest.mark.parametrize("agreement", EVERY_AGREEMENT)
def test_an_agreement_with_a_question_mark_is_a_question(agreement: str, checkpoint: Checkpoint | None) -> None:
    assert understand(f"{agreement}?", checkpoint).intent is Intent.QUESTION
