"""What a person wants once more: the step that failed, or the plan."""

from __future__ import annotations

from enum import StrEnum

from bot.conversation.words import answers, questions
from bot.conversation.words.text import Sentence, read


class Again(StrEnum):
    """What shall be done once more."""

    STEP = "step"
    PLAN = "plan"


def wanted_again(text: str) -> Again | None:
    """What a sentence that says nothing else asks for once more; "can you try again?" asks for it politely."""
    said = read(text)
    if said is None or not said.tokens:
        return None
    if said.asks or questions.is_question(said):
        deed = questions.politely_asked(said) if questions.asks_for_a_deed(said) else ()
        if not deed:
            return None
        said = Sentence(tokens=deed, asks=False)
    if answers.retries(said):
        return Again.STEP
    return Again.PLAN if answers.revises(said) else None
