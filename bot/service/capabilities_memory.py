"""What a runner offers, remembered: nobody waits for it twice."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from bot.errors import BotError
from schemas.api import Capabilities

log = logging.getLogger(__name__)

RETRY_SECONDS = 300.0


class CapabilitiesMemory:
    """Asks at most once at a time. What is known is given at once, also while it is asked for again."""

    def __init__(
        self,
        runner: str,
        ask: Callable[[], Awaitable[Capabilities]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._runner = runner
        self._ask = ask
        self._asking: asyncio.Task[Capabilities] | None = None
        self._age = 0
        self._closed = False
        self._monotonic = monotonic
        self._failed_at = -RETRY_SECONDS
        self._known_age = -1
        self.known: Capabilities | None = None

    @property
    def asking(self) -> bool:
        """Whether an answer is on its way."""
        return self._asking is not None and not self._asking.done()

    def outdate(self) -> None:
        """What is known may be wrong from now on: ask again, in the background."""
        self._age += 1
        self._begin()

    def renew(self) -> None:
        """Ask again, in the background, where the last answer was an error, and is long ago: it may cost a minute."""
        if self._known_age != self._age and self._monotonic() - self._failed_at >= RETRY_SECONDS:
            self._begin()

    async def get(self, *, fresh: bool = False) -> Capabilities:
        """What is known. Waits for the runner only where nothing is known yet, or for an answer that is fresh."""
        if self.known is not None and not fresh:
            if self._known_age != self._age:
                self._begin()
            return self.known
        if fresh and self._asking is not None:
            await asyncio.wait({self._asking})  # it was asked before this call, so its answer is not fresh enough
        return await asyncio.shield(self._begin())  # whoever leaves does not stop it for the others

    async def close(self) -> None:
        """Stop asking."""
        self._closed = True
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking})

    def _begin(self) -> asyncio.Task[Capabilities]:
        """The question that is on its way, or a new one."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._renew())
            self._asking.add_done_callback(self._ended)
        return self._asking

    async def _renew(self) -> Capabilities:
        age = self._age
        self.known = await self._ask()
        self._known_age = age
        return self.known

    def _ended(self, asking: asyncio.Task[Capabilities]) -> None:
        if asking.cancelled() or self._closed:
            return
        error = asking.exception()
        if error is not None:
            self._failed_at = self._monotonic()
            self._age += 1  # whoever wants it next asks again
        match error:
            case None:
                if self._known_age != self._age:  # it became outdated while it was asked for
                    self._begin()
            case BotError():
                log.info("what the runner %s offers is not known: %s", self._runner, error.message)
            case _:
                log.error("asking the runner %s what it offers failed", self._runner, exc_info=error)
