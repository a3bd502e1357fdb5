"""A document of the conversation is missing: nothing can be decided about what cannot be shown."""

from __future__ import annotations

from bot.cards.blocks import make_card, note, notes
from bot.cards.buttons import Buttons
from bot.cards.card import Card, Tone
from bot.conversation.state import ReviewingAnalysis, ReviewingCommand, ReviewingPlan
from schemas.artifacts.plan import Severity

_MADE_BY = {
    "reviewing_analysis": ("model_analysis.json", "the intake", "Edit the model"),
    "reviewing_plan": ("quant_plan.json", "the plan", "Edit a decision"),
    "reviewing_command": ("run_manifest.yaml", "the preparation of the command", "Edit the output folder"),
}


def absent_card(conversation: int, state: ReviewingAnalysis | ReviewingPlan | ReviewingCommand) -> Card:
    """Names the missing document and the step that makes it. There is no Approve button."""
    document, step, edit = _MADE_BY[state.kind]
    buttons = Buttons.of(conversation, state)
    message = f"{document} is missing in the bot's database, so it cannot be shown and cannot be approved."
    found = note(Severity.BLOCKS, message, f"It is made by {step}. {edit} to have it made again, or cancel.")
    return make_card(
        f"Missing: {document}", Tone.BAD, notes("", [found]), message, buttons=(buttons.edit(), buttons.cancel())
    )
