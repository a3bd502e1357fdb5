"""It is over: accepted, rejected, cancelled or expired."""

from __future__ import annotations

from datetime import timedelta

from bot.cards import amounts
from bot.cards.blocks import fields, make_card, paragraph
from bot.cards.buttons import Buttons
from bot.cards.card import Button, Card, Tone
from bot.cards.outcome import within
from bot.cards.run import set_apart, took
from bot.cards.texts import last_part, plain, who
from bot.conversation.person import Person
from bot.conversation.state import Ended, Ending

_AGAIN = 'To take it up again, say "back to the plan" here; every later approval is asked for again.'
_BY_BUTTON = "It can be taken up again; every later approval is asked for again."


def ending_card(
    conversation: int, state: Ended, patience: timedelta | None = None, mention: Person | None = None
) -> Card:
    """How a request ended, who ended it, and what is left of it."""
    name = last_part(state.request.model)
    told = _told(state, patience)
    run, output = state.run, state.manifest.output_dir if state.manifest else None
    buttons = ending_buttons(conversation, state)
    tone = Tone.GOOD if state.ending is Ending.ACCEPTED else Tone.CLOSED
    return make_card(
        f"{state.ending.capitalize()}: {name}",
        tone,
        [
            paragraph(told),
            fields(
                ("Scheme", state.plan.scheme if state.plan else None),
                ("Output folder", output if run else None),
                ("Run", run.id if run else None),
                ("Took", took(run) if run else None),
                ("Set apart", set_apart(run) if run else None),
            ),
            paragraph(_BY_BUTTON if buttons else _AGAIN),
        ],
        f"{name}: {told}",
        buttons=buttons,
        mention=mention,
    )


def ending_buttons(conversation: int, state: Ended) -> tuple[Button, ...]:
    """The way back from an end. None where the result was accepted: that is what was wanted."""
    if state.ending is Ending.ACCEPTED:
        return ()
    # Without an analysis there is no plan to go back to: the model is read again.
    label = "Back to the plan" if state.analysis is not None else "Take it up again"
    return (Buttons.of(conversation, state).revise(label),)


def _told(state: Ended, patience: timedelta | None) -> str:
    by, when = f" by {who(state.by)}" if state.by else "", amounts.moment(state.at)
    match state.ending:
        case Ending.ACCEPTED:
            return f"Accepted{by}, {when}. The quantized model is in the output folder."
        case Ending.REJECTED:
            return f"Rejected{by}, {when}. Its files stay in the output folder until somebody removes them."
        case Ending.CANCELLED:
            reason = f" {plain(state.run.reason)}" if state.run and state.run.reason else ""
            return f"Cancelled{by}, {when}.{reason or ' Nothing was run.' if state.run is None else reason}"
        case Ending.EXPIRED:
            return f"Expired {when}: nobody decided {within(patience)}. {_left(state)}"


def _left(state: Ended) -> str:
    if state.run is None:
        return "Nothing was run."
    if state.run.partial_output:
        return "What its run left was set apart, and stays there until somebody removes it."
    return "Files of its run stay in the output folder until somebody removes them."
