"""The answer to a question."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bot.conversation.explaining.asked import Asked
from bot.conversation.explaining.costs import cost
from bot.conversation.explaining.known import Known
from bot.conversation.explaining.offers import listed, meaning, usable
from bot.conversation.explaining.reasons import about_layers, decided, model, risks, why
from bot.conversation.explaining.runners import queues, runners
from bot.conversation.explaining.runs import failure, leftover, place, waiting
from bot.conversation.reached import reached
from bot.conversation.runner_choice import KnownRunner
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


def explain_runners(question: str, known: Sequence[KnownRunner]) -> str | None:
    """What is known of the runners, for a question that is asked outside of any conversation; None for any other."""
    sentence = read(question)
    if sentence is None or not sentence.tokens:
        return None
    told = runners(Asked(sentence), known)
    return shortened(told, _LONGEST) if told else None


def queues_asked(question: str, known: Known | Sequence[KnownRunner]) -> tuple[str, ...]:
    """The runners whose queues answer it, where nothing that is known here answers it better; none for all others."""
    sentence = read(question)
    if sentence is None or not sentence.tokens:
        return ()
    if not isinstance(known, Known):
        return queues(Asked(sentence), known)
    asked = Asked(sentence, known.catalogue)
    if any(answer(asked, known) for answer in _ANSWERS[: _ANSWERS.index(_runners)]):
        return ()
    return queues(asked, known.runners, known.state.request.runner)


def _approvals(asked: Asked, known: Known) -> str | None:
    """ "Who approved the plan?"."""
    if not asked.says(_WHO):
        return None
    found = [f"{one.by} approved the {one.checkpoint}" for one in reached(known.state).approvals]
    return f"{', '.join(found)}." if found else "Nobody has approved anything yet."


def _runners(asked: Asked, known: Known) -> str | None:
    return runners(asked, known.runners)


# What needs more words to be meant comes before what needs fewer: "why is it blocked" before "why".
_ANSWERS: tuple[Callable[[Asked, Known], str | None], ...] = (
    _approvals,
    failure,
    leftover,
    waiting,
    place,
    _runners,
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
