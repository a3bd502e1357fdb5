"""The answer to a question."""

from __future__ import annotations

from collections.abc import Callable

from bot.conversation.explaining.asked import Asked
from bot.conversation.explaining.costs import cost
from bot.conversation.explaining.known import Known
from bot.conversation.explaining.offers import listed, meaning, usable
from bot.conversation.explaining.reasons import about_layers, decided, model, risks, why
from bot.conversation.reached import reached
from bot.conversation.wording import shortened
from bot.conversation.words.phrases import PhraseBook
from bot.conversation.words.text import read

_LONGEST = 900
_WHO = PhraseBook("who approved", "who confirmed", "who said yes", "who accepted", "who agreed")


def explain(question: str, known: Known) -> str | None:
    """What the conversation's own documents say to it; None where they say nothing, or are not there yet.

    Pure. Reasons, findings and estimates are those of the plan, meanings those of the catalogue: nothing is made up.
    """
    sentence = read(question)
    if sentence is None or not sentence.tokens:
        return None
    asked = Asked(sentence, known.catalogue)
    for answer in _ANSWERS:
        if told := answer(asked, known):
            return shortened(" ".join(told.split()), _LONGEST)
    return None


def _approvals(asked: Asked, known: Known) -> str | None:
    """ "Who approved the plan?"."""
    if not asked.says(_WHO):
        return None
    found = [f"{one.by} approved the {one.checkpoint}" for one in reached(known.state).approvals]
    return f"{', '.join(found)}." if found else "Nobody has approved anything yet."


# What needs more words to be meant comes before what needs fewer: "why is it blocked" before "why".
_ANSWERS: tuple[Callable[[Asked, Known], str | None], ...] = (
    _approvals,
    risks,
    why,
    listed,
    meaning,
    cost,
    about_layers,
    usable,
    decided,
    model,
)
