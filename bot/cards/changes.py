"""What was asked for or changed, in words that can be shown: "scheme int4_wo_32, calibration: 256 samples"."""

from __future__ import annotations

from pydantic import JsonValue

from bot.cards.texts import line
from bot.conversation import wording
from bot.conversation.request import Changes, Request

_LONGEST = 1000


def changes_in_words(changes: Changes) -> str:
    """All changes in one line; empty when nothing is changed."""
    return line(wording.changes_in_words(changes), _LONGEST)


def request_in_words(request: Request) -> str:
    """What was asked for so far beside the model, in one line; empty when only the model was named."""
    return line(wording.request_in_words(request), _LONGEST)


def value_in_words(value: JsonValue) -> str:
    """A value of a decision: lists and pairs in one line, null as "none"."""
    return line(wording.value_in_words(value), _LONGEST)
