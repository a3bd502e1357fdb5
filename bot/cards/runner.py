"""On which runner it is done, and why on that one."""

from __future__ import annotations

from bot.cards.texts import line
from bot.conversation.request import Request

_LONGEST = 400


def runner_in_words(request: Request) -> str:
    """The runner, with the reason where the bot chose it."""
    because = f", since {request.runner_reason}" if request.runner_reason else ""
    return line(f"{request.runner}{because}", _LONGEST)
