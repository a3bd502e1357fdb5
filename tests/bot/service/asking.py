"""Asking peers that answer as a test wants, and the errors that come of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.errors import BotError, RunnerAway, RunnerError, RunnerForeign
from bot.service.runner_client import RunnerClient, Timeouts
from schemas.api import Health
from tests.peers.raw_http import Reply, listening

TOKEN = "very-secret-0123456789"
AT = datetime(2026, 1, 2, tzinfo=UTC)
HEALTH = Health(status="ok", version="0.1.0", started_at=AT)
QUICK = Timeouts(connect=0.3, health=0.3, question=0.3, submit=0.3, document=0.3, silence=0.1)
PATIENT = Timeouts(health=20)

Work = Callable[[RunnerClient], Awaitable[Any]]


@asynccontextmanager
async def client_of(url: str, timeouts: Timeouts = QUICK) -> AsyncIterator[RunnerClient]:
    client = RunnerClient("gpu1", url, TOKEN, timeouts)
    try:
        yield client
    finally:
        await client.close()


async def health(client: RunnerClient) -> Any:
    return await client.health()


def failing(url: str, work: Work = health, timeouts: Timeouts = QUICK) -> BotError:
    """The error of asking what listens at `url`."""

    async def whole() -> BotError:
        async with client_of(url, timeouts) as client:
            with pytest.raises(BotError) as caught:
                await work(client)
            return caught.value

    return checked(asyncio.run(whole()))


def failing_with(reply: Reply, work: Work = health, timeouts: Timeouts = QUICK) -> BotError:
    """The error of asking a peer that replies so."""
    return checked(raised_with(reply, work, timeouts))


def raised_with(reply: Reply, work: Work = health, timeouts: Timeouts = QUICK) -> BotError:
    """The same, whatever its sentences look like."""

    async def whole() -> BotError:
        async with listening(reply) as peer, client_of(peer.url, timeouts) as client:
            with pytest.raises(BotError) as caught:
                await work(client)
            return caught.value

    return asyncio.run(whole())


def checked(error: BotError) -> BotError:
    assert type(error) in {RunnerAway, RunnerForeign, RunnerError}
    assert error.message.endswith(".")
    assert len(error.sentence()) < 5000
    assert "\n" not in error.message
    assert TOKEN not in error.sentence()
    assert error.hint
    return error
