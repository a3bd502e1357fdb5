"""Waiting a while, without a clock that somebody may set."""

from __future__ import annotations

import asyncio
import random


async def pause(seconds: float, wake: asyncio.Event | None = None) -> bool:
    """Wait so long, or until `wake` is set. Whether it was."""
    try:
        await asyncio.wait_for((wake or asyncio.Event()).wait(), seconds)
    except TimeoutError:
        return False
    return True


class Backoff:
    """How long to wait before another try: doubled each time, with some chance in it, up to `most` seconds."""

    def __init__(self, first: float, most: float) -> None:
        self._first = first
        self._most = most
        self._next = first

    def reset(self) -> None:
        """It worked."""
        self._next = self._first

    def seconds(self) -> float:
        """Before the next try."""
        now, self._next = self._next, min(self._next * 2, self._most)
        # Many conversations that lost the same runner must not all come back in the same moment.
        return now * random.uniform(0.75, 1.0)
