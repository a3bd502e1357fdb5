"""What all listeners share: keep an event before Slack is answered, and tell people why something was not taken."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from bot.clock import Clock
from bot.errors import StoreError
from bot.platforms.contract import Event, Inlet
from bot.platforms.slack.background import Background
from bot.platforms.slack.calls import Calls, Identity
from bot.platforms.slack.gate import Gate
from bot.platforms.slack.inbound import Body, Origin, workspace_of
from bot.platforms.slack.library import Library
from bot.platforms.slack.metrics import Metrics
from bot.platforms.slack.names import Names
from bot.platforms.slack.whispering import tell

log = logging.getLogger(__name__)

COMMIT_SECONDS: Final = 1.0
NOT_RECORDED: Final = "This was not recorded, because the bot's database did not take it in time. Click again."

Ack = Callable[..., Awaitable[Any]]


class NotRecorded(Exception):
    """An event could not be kept. Slack gets no answer to it, and delivers it again."""


@dataclass(frozen=True)
class Desk:
    """The means of a listener."""

    inlet: Inlet
    library: Library
    calls: Calls
    me: Identity
    gate: Gate
    names: Names
    clock: Clock
    metrics: Metrics
    background: Background = field(default_factory=Background)

    async def commit(self, event: Event) -> bool:
        """Whether the event is kept. Bounded: whoever clicked has three seconds until Slack tells of a failure."""
        try:
            async with asyncio.timeout(COMMIT_SECONDS):
                await self.inlet.receive(event)
        except (TimeoutError, StoreError) as error:
            self.metrics.not_recorded += 1
            why = error.sentence() if isinstance(error, StoreError) else f"it took over {COMMIT_SECONDS:g} s"
            log.error("event %s was not recorded: %s", event.key, why)
            return False
        return True

    def refused(self, body: Body, origin: Origin) -> bool:
        """Whether somebody may not act here at all; they are told so."""
        if not self.gate.ours(*workspace_of(body)):
            self.metrics.refused += 1
            log.warning("a delivery of workspace %s was refused", workspace_of(body)[0])
            return True
        why = self.gate.against(origin.place.channel, origin.team)
        if why:
            self.metrics.refused += 1
            self.tell(origin, why)
        return bool(why)

    def named(self, origin: Origin) -> Origin:
        """With the name that people see, where it is known; else it will be the next time: Slack is not asked now."""
        name = self.names.known(origin.user)
        if name is None:
            self.background.start(self._learn(origin.user))
            return origin
        return replace(origin, name=name)

    async def _learn(self, user: str) -> None:
        await self.names.of(user)

    def tell(self, origin: Origin, text: str) -> None:
        """Tell the person soon."""
        place = origin.place
        self.background.start(
            tell(self.calls, origin.user, text, place.channel, place.thread, reply_to=origin.reply_to)
        )

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        """Measures how long Slack waits."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.metrics.acknowledged(time.monotonic() - began)
            self.metrics.in_work = len(self.background)
