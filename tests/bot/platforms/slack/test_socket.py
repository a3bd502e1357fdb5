"""The socket: refreshed, dropped and deaf."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from bot.errors import BadSetting, BotError
from tests.bot.platforms.slack.stand import bot_of, deliver, listening_part, slack_settings
from tests.peers.slack import SlackPeer, running_slack
from tests.waiting import until

pytestmark = pytest.mark.slack


def test_a_socket_that_slack_refreshes_or_a_network_drops_comes_back(tmp_path: Path) -> None:
    async def go(peer: SlackPeer) -> None:
        async with (
            bot_of(tmp_path, slack_settings(peer, "socket")) as bot,
            listening_part(bot, peer, ping_seconds=0.2, deaf_seconds=20.0),
        ):
            for number, break_it in enumerate((peer.disconnect, peer.drop_sockets), 2):
                await asyncio.to_thread(break_it)
                await until(partial(_again, peer, number), 15)
                assert await deliver(peer, peer.people.commands("U0ADA", "help")) is not None

    with running_slack() as peer:
        asyncio.run(go(peer))


def _again(peer: SlackPeer, connections: int) -> bool:
    return peer.hellos >= connections and peer.connected == 1


def test_a_deaf_socket_ends_the_process(tmp_path: Path) -> None:
    async def go(peer: SlackPeer) -> None:
        async with (
            bot_of(tmp_path, slack_settings(peer, "socket")) as bot,
            listening_part(bot, peer, ping_seconds=0.1, deaf_seconds=1.5) as (_, task),
        ):
            alive, _ = await asyncio.wait({task}, timeout=2.5)
            assert not alive, "a socket that answers is not deaf"
            peer.deaf = True
            await until(task.done, 15, "a deaf socket goes unnoticed")
            with pytest.raises(BaseExceptionGroup) as caught:
                await task
            (error,) = caught.value.exceptions
            assert isinstance(error, BotError)
            assert error.code == "slack_deaf"

    with running_slack() as peer:
        asyncio.run(go(peer))


def test_a_token_that_slack_refuses_is_said_at_once(tmp_path: Path) -> None:
    async def go(peer: SlackPeer) -> None:
        settings = slack_settings(peer, "socket", bot_token="xoxb-another")
        async with bot_of(tmp_path, settings) as bot, listening_part(bot, peer) as (_, task):
            with pytest.raises(BaseExceptionGroup) as caught:
                await task
            (error,) = caught.value.exceptions
            assert isinstance(error, BadSetting)
            assert "slack.bot_token" in error.sentence()

    with running_slack() as peer:
        asyncio.run(go(peer))


def test_slack_that_is_away_at_the_start_is_waited_for(tmp_path: Path) -> None:
    async def go(peer: SlackPeer) -> None:
        peer.faults.add("auth.test", "broken")
        async with bot_of(tmp_path, slack_settings(peer, "socket")) as bot, listening_part(bot, peer):
            assert await deliver(peer, peer.people.commands("U0ADA", "help")) is not None

    with running_slack() as peer:
        asyncio.run(go(peer))
