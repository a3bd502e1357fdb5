"""A whole bot in one process, with its requester, that kills itself at a step that it is told.

Steps are counted at the borders of the process: before and after each transaction, and before and after each call of
the platform. Run as a program: `python -m tests.e2e.dying_bot CONFIG JOURNAL REQUEST STEP`; STEP 0 never dies, and
prints how many steps there were.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from bot.conversation.state import Ended, State
from bot.platforms.script.adapter import ScriptPlatform
from bot.service.daemon import Bot, run, wired
from bot.service.player import Player
from bot.settings import load_settings
from bot.store.store import Store

_T = TypeVar("_T")


class Fate:
    """Counts steps, and kills at the one that is meant."""

    def __init__(self, dies_at: int) -> None:
        self.count = 0
        self._dies_at = dies_at

    def step(self) -> None:
        """One more."""
        self.count += 1
        if self.count == self._dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    async def around(self, work: Callable[..., Awaitable[_T]], *arguments: Any) -> _T:
        """A step before, and one after."""
        self.step()
        done = await work(*arguments)
        self.step()
        return done


class DyingPlatform(ScriptPlatform):
    """The transcript, whose every call is two steps."""

    def __init__(self, journal: Path, fate: Fate) -> None:
        self._fate = fate
        super().__init__(journal, lambda _: None)

    async def thread(self, *arguments: Any) -> str:
        return await self._fate.around(super().thread, *arguments)

    async def post(self, *arguments: Any) -> str:
        return await self._fate.around(super().post, *arguments)

    async def update(self, *arguments: Any) -> str:
        return await self._fate.around(super().update, *arguments)

    async def file(self, *arguments: Any) -> str:
        return await self._fate.around(super().file, *arguments)


def _watch_over(store: Store, fate: Fate) -> None:
    write = store.write
    store.write = lambda work: fate.around(write, work)  # type: ignore[method-assign]


async def main(config: Path, journal: Path, request: str, dies_at: int) -> State:
    """Live, ask or go on with what was asked, and see it through."""
    fate = Fate(dies_at)
    async with wired(load_settings(config)) as bot:
        _watch_over(bot.store, fate)
        working = asyncio.create_task(run(bot, [DyingPlatform(journal, fate)]))
        try:
            state = await _play(bot, request)
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
    print(fate.count)
    return state


async def _play(bot: Bot, request: str) -> State:
    player = Player(bot.core, bot.store, bot.clock, lambda _: None, secrets.token_hex(4))
    asked = await bot.store.read(lambda reader: reader.event(1))
    return await player.see_through(asked.id if asked is not None else await player.ask(request))


if __name__ == "__main__":
    ended = asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
    sys.exit(0 if isinstance(ended, Ended) else 1)
