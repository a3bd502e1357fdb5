"""Hints that something changed, thinned out: a hundred of them in a second are acted upon once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from bot.errors import BotError
from bot.service.pause import pause

log = logging.getLogger(__name__)

MOST_AT_ONCE = 500


class Hints:
    """Calls `act` for a key at most once in `gap` seconds, and always once more after the latest hint.

    Keys do not wait for each other. Hints are lost when there are too many keys at once; `tell` says so.
    """

    def __init__(self, act: Callable[[str], Awaitable[None]], gap: float) -> None:
        self._act = act
        self._gap = gap
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()

    def tell(self, key: str) -> bool:
        """Something about this changed. False where too much else is being looked at already."""
        if key in self._tasks:
            self._again.add(key)
            return True
        if len(self._tasks) >= MOST_AT_ONCE:
            return False
        self._tasks[key] = asyncio.create_task(self._look(key))
        return True

    async def close(self) -> None:
        """Act on nothing any more."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self, key: str) -> None:
        try:
            while True:
                self._again.discard(key)
                await guarded(self._act(key), f"looking at {key}")
                await pause(self._gap)
                if key not in self._again:
                    return
        finally:
            self._again.discard(key)
            del self._tasks[key]


async def guarded(work: Awaitable[None], what: str) -> None:
    """Do something whose failure must end nothing else: it is asked for again soon."""
    try:
        await work
    except BotError as error:
        log.warning("%s failed: %s", what, error.sentence())
    except Exception:
        log.exception("%s failed", what)
