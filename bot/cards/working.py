"""While a runner reads, plans or prepares. Nobody has to do anything."""

from __future__ import annotations

from bot.cards.blocks import because_notes, fields, make_card, paragraph, trouble_notes
from bot.cards.buttons import Buttons
from bot.cards.card import Card, Tone
from bot.cards.changes import request_in_words
from bot.cards.texts import last_part, line
from bot.conversation.state import Analysing, Planning, Preparing

_DELAYED = "It takes longer than it should. The runner is asked again until it answers, or until you cancel."


def working_card(conversation: int, state: Analysing | Planning | Preparing) -> Card:
    """What the runner is asked, and why it takes longer when it does."""
    request = state.request
    doing = _doing(state)
    delayed = f" Delayed: {line(state.delayed.message, 120)}" if state.delayed else ""
    return make_card(
        doing,
        Tone.WORKING,
        [
            *because_notes(state.because),
            fields(
                ("Model", request.model),
                ("Revision", request.revision),
                ("Asked for", request_in_words(request)),
                ("Output folder", request.output_dir),
                ("Runner", request.runner),
            ),
            *trouble_notes(state.delayed, _DELAYED),
            paragraph(_next(state)),
        ],
        f"{doing}: {last_part(request.model)}.{delayed}",
        buttons=(Buttons.of(conversation, state).cancel(),),
    )


def _doing(state: Analysing | Planning | Preparing) -> str:
    match state:
        case Analysing():
            return "Reading the model"
        case Planning():
            return "Making a plan"
        case Preparing():
            return "Preparing the exact command"


def _next(state: Analysing | Planning | Preparing) -> str:
    match state:
        case Analysing():
            return (
                "Only its configuration and the headers of its weights are read. Then you are asked if that is right."
            )
        case Planning():
            return "Then you are asked to confirm or change the plan."
        case Preparing():
            return "Then you are asked whether to run it. Nothing runs before that."
