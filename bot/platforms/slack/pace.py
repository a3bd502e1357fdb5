"""How fast may be posted into one channel: about one message a second, with a few at once now and then."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict

from bot.errors import PlatformAway

_SECONDS = 1.0
_AT_ONCE = 5
_LONGEST_WAIT = 20.0  # what has to wait longer is given back, so that it holds up nothing of others
_MOST_CHANNELS = 10_000


class Pace:
    """Waits until a channel may take another message."""

    def __init__(self, seconds: float = _SECONDS, at_once: int = _AT_ONCE) -> None:
        self._seconds = seconds
        self._ahead = seconds * (at_once - 1)
        self._next: OrderedDict[str, float] = OrderedDict()

    async def turn(self, channel: str) -> None:
        """Returns when it is this message's turn. Raises PlatformAway with the seconds when that is far off."""
        now = time.monotonic()
        due = max(self._next.get(channel, 0.0), now - self._ahead)
        wait = due - now
        if wait > _LONGEST_WAIT:
            raise PlatformAway("slack_pace", f"Many messages wait for channel {channel}.", "", wait)
        self._next[channel] = due + self._seconds
        self._next.move_to_end(channel)
        if len(self._next) > _MOST_CHANNELS:
            self._next.popitem(last=False)
        if wait > 0:
            await asyncio.sleep(wait)
