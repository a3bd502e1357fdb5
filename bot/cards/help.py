"""What can be said."""

from __future__ import annotations

from collections.abc import Sequence

from bot.cards.blocks import fields, make_card, paragraph
from bot.cards.card import Block, Card, Tone
from bot.cards.texts import some


def help_card(schemes: Sequence[str] = (), runners: Sequence[str] = ()) -> Card:
    """How to ask for a model, and what counts as a yes, a change and a no. What is offered is listed where known."""
    body: list[Block] = [
        paragraph(
            "Ask for a quantized model, and every step is shown here first: what the model is, the plan, the exact "
            "command, the result. Nothing goes on without a yes, by a button or in words."
        ),
        fields(
            ("Ask", "quantize Qwen/Qwen3-8B to fp8; quantize /models/my-model to int4_wo_32 with awq"),
            ("Yes to the analysis or plan", "ok; confirm; looks good; continue"),
            ("Yes to the command", "run it; yes; go; execute"),
            ("Yes or no to the result", "accept; reject"),
            ("Change", "use int4_wo_32; increase calibration to 256; or the Edit button"),
            ("Stop", "cancel"),
            ("After a failure or an end", "try again; back to the plan"),
            ("Schemes", some(schemes, 40)),
            ("Runners", some(runners, 20)),
        ),
        paragraph("A yes counts for the card that you saw. After a change, a new card asks again."),
    ]
    return make_card(
        "What you can say", Tone.CLOSED, body, "What you can say: quantize MODEL to SCHEME; then answer here."
    )
