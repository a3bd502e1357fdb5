"""Threads that cannot go on where they are go on in a direct message to whoever asked."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Final

from bot.platforms.slack.calls import Calls
from bot.platforms.slack.escape import escaped
from bot.platforms.slack.looking import Looking, metadata
from bot.platforms.slack.rich import line, rich, words

_WHY: Final = {
    "is_archived": "its channel was archived",
    "channel_not_found": "its channel cannot be seen by the bot",
    "not_in_channel": "the bot is not in its channel",
    "root_gone": "its first message was deleted",
}
_MOST_REMEMBERED = 10_000

_MOVED = re.compile(r"ptq-([0-9]{1,15}):moved")

Root = tuple[str, str]
"""The channel and the ts of a root."""


class Moving:
    """Where threads have moved to. What is forgotten is found again by its key. All raise PlatformError."""

    def __init__(self, calls: Calls, looking: Looking) -> None:
        self._calls = calls
        self._looking = looking
        self._moved: OrderedDict[Root, Root] = OrderedDict()

    def known(self, channel: str, thread: str) -> Root | None:
        """Where this process has moved a thread to."""
        return self._moved.get((channel, thread))

    async def found(self, person: str, key: str) -> Root | None:
        """The root in the direct message, where an earlier attempt has made it."""
        direct = await self._direct(person)
        ts = await self._looking.in_channel(direct, f"{key}:moved")
        return (direct, ts) if ts is not None else None

    async def conversation(self, channel: str, thread: str) -> int | None:
        """The conversation that goes on beneath a root in a direct message."""
        found = _MOVED.fullmatch(await self._looking.moved_here(channel, thread) or "")
        return int(found[1]) if found else None

    async def move(self, channel: str, thread: str, person: str, key: str, why: str) -> Root:
        """Open the thread in the direct message, and say there why."""
        there = await self.found(person, key)
        if there is None:
            direct = await self._direct(person)
            told = f"A thread goes on here because {_WHY.get(why, 'Slack takes nothing in its channel')}."
            answer = await self._calls.call(
                "chat.postMessage",
                channel=direct,
                text=escaped(told, 1_000),
                blocks=[rich(line(words(told)))],
                metadata=metadata(f"{key}:moved"),
                unfurl_links=False,
                unfurl_media=False,
            )
            there = (direct, str(answer["ts"]))
        self._moved[(channel, thread)] = there
        if len(self._moved) > _MOST_REMEMBERED:
            self._moved.popitem(last=False)
        return there

    async def _direct(self, person: str) -> str:
        answer = await self._calls.call("conversations.open", users=person)
        return str(answer["channel"]["id"])
