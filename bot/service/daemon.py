"""The bot's daemon: store, core, worker, platforms and page in one event loop. Runs do not need it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Coroutine, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from bot.clock import Clock, SystemClock
from bot.conversation.runner_choice import KnownRunner
from bot.conversation.words.vocabulary import Vocabulary, vocabulary_of
from bot.errors import BotError
from bot.platforms.contract import Platform
from bot.service.core import Core
from bot.service.expiry import expire
from bot.service.known_runners import known_runners, labels_of
from bot.service.orders import Orders
from bot.service.outbox import Outbox
from bot.service.policy import policy_of
from bot.service.runner_client import RunnerClient, Runners
from bot.service.runner_watch import RunnerWatch
from bot.service.worker import Worker
from bot.settings import BotSettings
from bot.store.store import Store
from schemas.api import Capabilities

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Bot:
    """The wired parts."""

    settings: BotSettings
    store: Store
    core: Core
    worker: Worker
    runners: Runners
    clock: Clock


@contextlib.asynccontextmanager
async def wired(settings: BotSettings, clock: Clock | None = None) -> AsyncIterator[Bot]:
    """All parts, not yet running. Raises BotError where one cannot be made."""
    clock = clock or SystemClock()
    settings.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    async with contextlib.AsyncExitStack() as stack:
        store = await Store.open(settings.database_url, clock)
        stack.push_async_callback(store.close)
        clients = [
            RunnerClient(runner.name, runner.url, _secret(runner.token), ca=runner.ca) for runner in settings.runners
        ]
        for client in clients:
            stack.push_async_callback(client.close)
        runners = Runners(clients)

        def vocabulary() -> Vocabulary:
            known = {client.name: client.known_capabilities for client in runners}
            words = vocabulary_of({name: offer for name, offer in known.items() if offer is not None})
            names = {"runners": frozenset(settings.runner_names), "labels": labels_of(settings, runners)}
            return words.model_copy(update=names)

        patience = timedelta(days=settings.approvals.expire_after_days)

        def offers(runner: str) -> Capabilities | None:
            return next((client.known_capabilities for client in runners if client.name == runner), None)

        def known() -> Sequence[KnownRunner]:
            return known_runners(settings, runners)

        core = Core(store, policy_of(settings), clock, vocabulary, patience, offers, known, Orders(runners))
        worker = Worker(store, runners, clock, core.answer)
        core.on_move(worker.consider)
        yield Bot(settings, store, core, worker, runners, clock)


async def run(bot: Bot, platforms: Sequence[Platform], others: Sequence[Coroutine[Any, Any, None]] = ()) -> None:
    """Work until cancelled. Raises what a part fell with: a bot with a part missing would look alive."""
    for platform in platforms:
        bot.core.serve(platform)
    await bot.worker.resume()
    watches = [_watch(bot, client) for client in bot.runners]
    parts: list[Coroutine[Any, Any, None]] = [
        bot.core.run(),
        expire(bot.store, bot.core, bot.clock, timedelta(days=bot.settings.approvals.expire_after_days)),
        *(watch.run() for watch in watches),
        *(Outbox(bot.store, platform, bot.clock).run() for platform in platforms),
        *others,
    ]
    try:
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(part)
    finally:
        await bot.worker.stop()


def _watch(bot: Bot, client: RunnerClient) -> RunnerWatch:
    name = client.name

    followers = bot.worker.followers

    async def look(run: str) -> None:
        await followers.look(name, run)

    async def look_at_all() -> None:
        bot.worker.wake(name)
        await followers.look_at_all(name)
        with contextlib.suppress(BotError):  # how busy it is, for whoever chooses a runner; that it is away is kept too
            await client.health()

    async def away(error: BotError) -> None:
        await followers.silent(name, error)

    return RunnerWatch(client, on_run=look, on_connect=look_at_all, on_away=away)


def _secret(token: Any) -> str | None:
    return token.get_secret_value() if token is not None else None


async def until_told(work: Coroutine[Any, Any, None]) -> None:
    """Run until TERM or INT, or until the work falls."""
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    working = asyncio.create_task(work)
    waiting = asyncio.create_task(told.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
    finally:
        for task in (working, waiting):
            task.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
