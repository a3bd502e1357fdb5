"""Slack does what every platform must do, in both modes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.conversation.person import Place
from bot.platforms.contract import Platform
from bot.platforms.slack.adapter import SlackPlatform
from bot.platforms.slack.calls import Calls
from bot.platforms.slack.pace import Pace
from bot.service.daemon import Bot
from bot.service.library import BotLibrary
from tests.bot.platforms.scenarios import SCENARIOS, Play, Scenario, Seen
from tests.bot.platforms.slack.stand import MODES, Mode, bot_of, listening_part, slack_settings
from tests.peers.slack import SlackPeer, running_slack
from tests.peers.slack_people import buttons_of, thread_of, words_of
from tests.peers.slack_state import CHANNEL

pytestmark = pytest.mark.slack


class Channel:
    """A channel of the peer, and the adapter that writes into it."""

    place = Place(platform="slack", channel=CHANNEL)

    def __init__(self, peer: SlackPeer, bot: Bot) -> None:
        self._peer = peer
        self._bot = bot
        assert bot.settings.slack is not None
        self._settings = bot.settings.slack
        self._calls: list[Calls] = []
        self.platform: Platform = self._made()

    def _made(self) -> SlackPlatform:
        calls = Calls(self._settings)
        self._calls.append(calls)
        return SlackPlatform(calls, BotLibrary(self._bot).conversation, Pace(0.0), pace_seconds=0.0)

    async def seen(self, conversation: int) -> list[Seen]:
        """What hangs beneath the roots of the channel: one conversation is there."""
        del conversation
        channel = self._peer.workspace.channels[CHANNEL]
        roots = [message for message in channel.messages if not message.thread]
        assert len(roots) <= 1, "a root was posted twice"
        return [
            Seen(
                "\n".join([words_of(message.blocks), *(file["name"] for file in message.files)]),
                tuple(button["text"]["text"] for button in buttons_of(message)),
            )
            for root in roots
            for message in thread_of(channel, root.ts)
        ]

    async def restart(self) -> None:
        """The adapter remembers nothing."""
        self.platform = self._made()

    def whispers(self) -> list[str]:
        """What single people were shown."""
        direct = [message.text for message in self._peer.workspace.posted() if message.channel.startswith("D")]
        return [*(whispered.text for whispered in self._peer.workspace.whispers), *direct]

    async def close(self) -> None:
        """Give connections back."""
        for calls in self._calls:
            await calls.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_slack_keeps_the_contract(scenario: Scenario, mode: Mode, tmp_path: Path) -> None:
    async def play(peer: SlackPeer) -> None:
        async with bot_of(tmp_path, slack_settings(peer, mode)) as bot, listening_part(bot, peer, working=False):
            stage = Channel(peer, bot)
            try:
                await scenario(Play(stage, bot.store, bot.clock))  # type: ignore[arg-type]
            finally:
                await stage.close()

    with running_slack() as peer:
        asyncio.run(play(peer))
