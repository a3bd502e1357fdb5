"""Keeps listening to one runner. Events are hints: what counts is asked for, after each connection and every minute."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from bot.errors import BotError, RunnerAway, RunnerError, RunnerForeign
from bot.service.event_reader import News
from bot.service.hints import Hints, guarded
from bot.service.pause import Backoff, pause

log = logging.getLogger(__name__)


class WatchedRunner(Protocol):
    """What the watch needs of a runner's client."""

    @property
    def name(self) -> str:
        """Its name in the settings."""
        ...

    def events(self, after: str | None = None) -> AsyncGenerator[News, None]:
        """What happens, over one connection; raises when that is lost, and never ends by itself."""
        ...

    def refresh(self) -> None:
        """It is back: what it offers may have changed."""
        ...

    def renew(self) -> None:
        """Time went by: what it offers is asked for again where that failed."""
        ...


@dataclass(frozen=True)
class Pace:
    """Seconds. Between tries to connect from `first` to `longest`, doubling until a connection lasted for `settled`.

    All runs are asked for every `again`, one run at most every `gap`.
    """

    first: float = 0.5
    longest: float = 15.0
    settled: float = 10.0
    again: float = 60.0
    gap: float = 1.0


class RunnerWatch:
    """Calls `on_run(run)` when something happened to a run, `on_connect()` when all runs have to be asked for, and
    `on_away(error)` when the runner is lost, or answers otherwise wrong than before.

    What these raise is logged and ends nothing. `on_connect` never runs twice at once, and one run's `on_run` neither.
    """

    def __init__(
        self,
        client: WatchedRunner,
        *,
        on_run: Callable[[str], Awaitable[None]],
        on_connect: Callable[[], Awaitable[None]],
        on_away: Callable[[BotError], Awaitable[None]],
        pace: Pace | None = None,
    ) -> None:
        self._client = client
        self._pace = pace or Pace()
        self._hints = Hints(on_run, self._pace.gap)
        self._on_connect = on_connect
        self._on_away = on_away
        self._ask_all = asyncio.Event()
        self._place: str | None = None
        self._connected = False
        self._trouble: BotError | None = None

    @property
    def connected(self) -> bool:
        """Whether the runner's events arrive just now."""
        return self._connected

    @property
    def trouble(self) -> BotError | None:
        """Why they do not; None while they do, and before the first try."""
        return self._trouble

    async def run(self) -> None:
        """Listen, for ever."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._ask_again())
                group.create_task(self._listen())
        finally:
            self._connected = False
            await self._hints.close()

    async def _listen(self) -> None:
        backoff = Backoff(self._pace.first, self._pace.longest)
        while True:
            began = time.monotonic()
            try:
                await self._follow()
            except (RunnerAway, RunnerForeign, RunnerError) as error:
                await self._lost(error)
            # One that accepts and hangs up at once must not be called without a pause.
            if time.monotonic() - began >= self._pace.settled:
                backoff.reset()
            await pause(backoff.seconds())

    async def _follow(self) -> None:
        """Listen over one connection."""
        async with aclosing(self._client.events(self._place)) as news:
            async for one in news:
                if not self._connected:
                    self._stands()
                self._place = one.place
                if one.event is None or not self._hints.tell(one.event.run):
                    self._ask_all.set()

    def _stands(self) -> None:
        self._connected = True
        if self._trouble is not None:
            log.info("the runner %s is back", self._client.name)
        self._trouble = None
        self._client.refresh()

    async def _lost(self, error: BotError) -> None:
        before, self._trouble = self._trouble, error
        self._connected = False
        if isinstance(error, RunnerForeign):
            self._place = None  # going on from there would only bring the same nonsense again
        if before is None or before.code != error.code:
            log.warning("the runner %s is not heard: %s", self._client.name, error.message)
            await guarded(self._on_away(error), f"telling that the runner {self._client.name} is away")

    async def _ask_again(self) -> None:
        """Ask for all runs when that is due, one time after the other."""
        while True:
            await pause(self._pace.again, self._ask_all)
            self._ask_all.clear()
            if self._connected:
                self._client.renew()
            if self._connected or (self._trouble is not None and self._trouble.code != "runner_down"):
                # Its stream may be all that is broken, as behind a proxy that holds it back.
                await guarded(self._on_connect(), f"asking the runner {self._client.name} for its runs")
                await pause(self._pace.gap)  # a runner that says again and again to ask for all must not keep us busy
