"""Socket Mode, and the watch over it: a socket can go deaf and look alive."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any, Final

from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.socket_mode.aiohttp import SocketModeClient

from bot.errors import BotError
from bot.platforms.slack.metrics import Metrics

log = logging.getLogger(__name__)

PING_SECONDS: Final = 5.0
DEAF_SECONDS: Final = 90.0
_LOOKS_PER_PING = 4


async def listen(
    app: AsyncApp,
    app_token: str,
    metrics: Metrics,
    deaf_seconds: float = DEAF_SECONDS,
    ping_seconds: float = PING_SECONDS,
) -> None:
    """Take what Slack delivers until cancelled. Raises BotError when the socket stays deaf for so long."""
    handler: Any = AsyncSocketModeHandler(app, app_token, ping_interval=ping_seconds)  # its methods have no types
    connecting = asyncio.create_task(handler.connect_async())
    watching = asyncio.create_task(_watch(handler.client, metrics, deaf_seconds, ping_seconds / _LOOKS_PER_PING))
    try:
        await asyncio.wait({connecting, watching}, return_when=asyncio.FIRST_COMPLETED)
        if connecting.done():
            await connecting
        await watching
    finally:
        for task in (connecting, watching):
            task.cancel()
        await asyncio.gather(connecting, watching, return_exceptions=True)
        await handler.close_async()


async def _watch(client: SocketModeClient, metrics: Metrics, deaf_seconds: float, look_seconds: float) -> None:
    """Ends the process by falling, so that its supervisor starts another one."""
    heard = time.monotonic()
    pong, session = client.last_ping_pong_time, client.current_session
    while True:
        await asyncio.sleep(look_seconds)
        if client.current_session is not session:
            session = client.current_session
            metrics.connections += 1
            log.info("connected to Slack")
        # The client sets the time itself when it first asks, and forgets it with the connection: only a later time that
        # follows an earlier one was an answer.
        last = client.last_ping_pong_time
        answered = last is not None and pong is not None and last > pong
        pong = last
        if answered and await client.is_connected():
            heard = time.monotonic()
        elif time.monotonic() - heard > deaf_seconds:
            raise BotError(
                "slack_deaf",
                f"Slack's socket has been deaf for {deaf_seconds:g} s, so the bot stops.",
                "Its supervisor starts it again; if this comes back, look at the network and at slack.app_token.",
            )
