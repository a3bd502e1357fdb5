"""The buttons of a card. Each carries only what the card showed; what it means is decided by the stored state."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.cards.card import Button
from bot.platforms.slack import limits
from bot.platforms.slack.escape import Part, plain

BUTTON_ID = re.compile(r"ptq-(?P<kind>[a-z_]+)-(?P<place>\d+)")
"""The action_id of every button of a card."""

_DENY, _SURE = "Not now", "Are you sure?"


def buttons_row(buttons: Sequence[Button]) -> Part:
    """A row of buttons. The more there are, the less each of them may say."""
    shown = buttons[: limits.BUTTONS]
    share = limits.ACTIONS // len(shown)
    return {"type": "actions", "elements": [_button(button, number, share) for number, button in enumerate(shown)]}


def _button(button: Button, number: int, share: int) -> Part:
    label = min(limits.BUTTON, share // 4)
    drawn: Part = {
        "type": "button",
        "text": plain(button.label, label),
        # Its place makes it unique in the message: two offers are two buttons of one kind.
        "action_id": f"ptq-{button.action.kind}-{number}",
        "value": button.action.encoded(),
    }
    if button.style != "plain":
        drawn["style"] = button.style
    if button.confirm:
        again = min(limits.CONFIRM_BUTTON, share // 4)
        left = share - label - again - len(_DENY) - len(_SURE)
        drawn["confirm"] = {
            "title": plain(_SURE, limits.CONFIRM_TITLE),
            "text": plain(button.confirm, min(limits.CONFIRM_TEXT, left)),
            "confirm": plain(button.label, again),
            "deny": plain(_DENY, limits.CONFIRM_BUTTON),
            **({"style": button.style} if button.style != "plain" else {}),
        }
    return drawn
