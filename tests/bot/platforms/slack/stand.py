"""The whole Slack part in a test's own loop: the real app, beside a local Slack, over a real database."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from bot.platforms.slack.http import EVENTS
from bot.service.daemon import Bot, run, wired
from bot.service.slack_part import SlackPart, slack_part
from bot.settings import BotSettings, RunnerAddress, WebSettings
from bot.settings.model import SlackSettings
from tests.peers.slack import Ack, SlackPeer
from tests.peers.slack_people import Delivery
from tests.peers.slack_state import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET
from tests.waiting import LOOK_SECONDS, until

Mode = Literal["socket", "http"]
MODES: list[Mode] = ["socket", "http"]


def slack_settings(peer: SlackPeer, mode: Mode, **more: Any) -> SlackSettings:
    """Settings for a peer; in mode http on a free port, which the peer is told."""
    values: dict[str, Any] = {
        "bot_token": BOT_TOKEN,
        "app_token": APP_TOKEN,
        "signing_secret": SIGNING_SECRET,
        "mode": mode,
        "api_base_url": peer.api_base_url.rstrip("/"),
        "port": free_port(),
    } | more
    settings = SlackSettings.model_validate(values)
    peer.app_url = f"http://127.0.0.1:{settings.port}{EVENTS}" if mode == "http" else ""
    return settings


@asynccontextmanager
async def bot_of(folder: Path, slack: SlackSettings) -> AsyncIterator[Bot]:
    """All parts, whose only runner is away."""
    settings = BotSettings(
        state_dir=folder / "bot",
        slack=slack,
        web=WebSettings(enabled=False),
        runners=[RunnerAddress(name="box", url=f"unix://{folder / 'nobody.sock'}")],
    )
    async with wired(settings) as bot:
        yield bot


@asynccontextmanager
async def listening_part(
    bot: Bot, peer: SlackPeer, *, working: bool = True, **times: Any
) -> AsyncIterator[tuple[SlackPart, asyncio.Task[None]]]:
    """The part, once it hears; `working` with everything that acts on what it hears."""
    assert bot.settings.slack is not None
    async with slack_part(bot, bot.settings.slack) as made:
        part = replace(made, **times)
        work = run(bot, [part.platform], [part.serve()]) if working else part.serve()
        task = asyncio.create_task(work)
        try:
            await until(lambda: task.done() or hears(peer), 15, "the bot does not hear")
            yield part, task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def hears(peer: SlackPeer) -> bool:
    """Whether a bot listens."""
    if not peer.app_url:
        return peer.connected > 0
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(peer.app_url.split(":")[2].split("/")[0]))) == 0


async def deliver(peer: SlackPeer, delivery: Delivery, attempt: int = 0) -> Ack | None:
    """Hand something over, while this loop goes on."""
    return await asyncio.wrap_future(peer.deliver(delivery, attempt))


async def until_so(look: Callable[[], Awaitable[bool]], seconds: float = 10.0) -> None:
    """Look until it is so."""
    last = time.monotonic() + seconds
    while not await look():
        assert time.monotonic() < last, look
        await asyncio.sleep(LOOK_SECONDS)


def free_port() -> int:
    """A port that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
