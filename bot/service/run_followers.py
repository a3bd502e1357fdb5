"""The runs that conversations wait for: how they stand is asked, and told to their conversation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from bot.clock import Clock
from bot.conversation.commands import Command, RunMissing, RunNews, RunSilent
from bot.conversation.state import Trouble
from bot.conversation.work import Task, Watch
from bot.errors import BotError, RunnerError, StoreError
from bot.service.pause import Backoff, pause
from bot.service.runner_client import Runners

log = logging.getLogger(__name__)

Hear = Callable[[int, Command], Awaitable[None]]

UNKNOWN_RUN = frozenset({"no_such_run", "run_missing"})
FIRST_SECONDS, MOST_SECONDS = 0.5, 30.0


class RunFollowers:
    """Which conversation waits for which run."""

    def __init__(self, runners: Runners, clock: Clock, hear: Hear) -> None:
        self._runners = runners
        self._clock = clock
        self._hear = hear
        self._followed: dict[tuple[str, str], int] = {}
        self._first_looks: set[asyncio.Task[None]] = set()

    def follow(self, conversation: int, task: Task | None) -> None:
        """Follow the run that a conversation waits for, and no other. A new one is looked at now: it may be over."""
        before = [key for key, follower in self._followed.items() if follower == conversation]
        wanted = (task.runner, task.run) if isinstance(task, Watch) else None
        for key in before:
            if key != wanted:
                del self._followed[key]
        if wanted is not None and wanted not in before:
            self._followed[wanted] = conversation
            look = asyncio.create_task(self.look(*wanted))
            self._first_looks.add(look)
            look.add_done_callback(self._first_looks.discard)

    async def stop(self) -> None:
        """Look at nothing any more."""
        looks = list(self._first_looks)
        for look in looks:
            look.cancel()
        await asyncio.gather(*looks, return_exceptions=True)

    def runs_on(self, runner: str) -> list[str]:
        """The runs on a runner that conversations wait for."""
        return [run for name, run in self._followed if name == runner]

    async def look(self, runner: str, run: str) -> None:
        """Ask how a run stands, and tell its conversation."""
        try:
            news: Command = RunNews(await self._runners.get(runner).run(run), self._clock.now())
        except BotError as error:
            missing = isinstance(error, RunnerError) and error.code in UNKNOWN_RUN
            news = (RunMissing if missing else RunSilent)(run, trouble(error), self._clock.now())
        await self._tell(runner, run, news)

    async def look_at_all(self, runner: str) -> None:
        """Ask for each run on a runner; one that cannot be told hides no other."""
        for run in self.runs_on(runner):
            try:
                await self.look(runner, run)
            except Exception:
                log.exception("news of run %s on %s could not be told", run, runner)

    async def silent(self, runner: str, error: BotError) -> None:
        """Tell every conversation with a run there that no news come."""
        for run in self.runs_on(runner):
            await self._tell(runner, run, RunSilent(run, trouble(error), self._clock.now()))

    async def _tell(self, runner: str, run: str, news: Command) -> None:
        """Tell the conversation, however long the database cannot keep it: the end of a run is told only once."""
        backoff = Backoff(FIRST_SECONDS, MOST_SECONDS)
        while (conversation := self._followed.get((runner, run))) is not None:
            try:
                await self._hear(conversation, news)
            except StoreError as error:
                log.error("news of run %s wait: %s", run, error.sentence())
                await pause(backoff.seconds())
            else:
                return


def trouble(error: BotError) -> Trouble:
    """An error as a conversation keeps it."""
    return Trouble(code=error.code, message=error.message, hint=error.hint)
