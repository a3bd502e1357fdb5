"""What is done after Slack has its answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from bot.errors import BotError

log = logging.getLogger(__name__)


class Background:
    """Tasks that nobody waits for. Losing one loses nothing that was promised."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it soon."""
        task = asyncio.create_task(self._done(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Leave everything."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _done(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except BotError as error:
            log.warning("%s", error.sentence())
        except Exception:  # nobody waits for this task, so nobody else would tell
            log.exception("something after an answer to Slack failed")
