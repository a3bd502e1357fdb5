"""A team in a local Slack that speaks to a real bot beside a real runner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from bot.cards.card import ActionKind, decode_action
from bot.conversation.state import Checkpoint
from tests.e2e.bot_host import BotHost, running_bot
from tests.e2e.host import Host, running_host
from tests.peers.slack import Ack, SlackPeer, running_slack
from tests.peers.slack_people import buttons_of, thread_of, words_of
from tests.peers.slack_state import APP_TOKEN, BOT_TOKEN, BOT_USER, CHANNEL, SIGNING_SECRET, Message
from tests.waiting import wait_until

Mode = Literal["socket", "http"]
ASKED = "quantize tiny to fp8, no kv cache, dataset text.txt, calibration 4, seq len 32"


class Team:
    """People in one channel of one workspace."""

    def __init__(self, peer: SlackPeer, bot: BotHost) -> None:
        self.peer = peer
        self.bot = bot

    def ask(self, text: str = ASKED, user: str = "U0ADA") -> str:
        """Mention the bot in the channel; the thread that it opens."""
        before = len(self._roots())
        self._say(user, f"<@{BOT_USER}> {text}")
        wait_until(lambda: len(self._roots()) > before, 20, f"no thread was opened: {self.bot.log()[-3000:]}")
        return self._roots()[-1].ts

    def say(self, thread: str, text: str, user: str = "U0ADA") -> None:
        """Words in a thread."""
        self._say(user, text, thread)

    def _say(self, user: str, text: str, thread: str = "") -> None:
        _, deliveries = self.peer.people.says(user, text, thread=thread)
        assert deliveries
        for delivery in deliveries:
            assert self.peer.deliver(delivery).result(10) is not None, "words were not acknowledged"

    def click(self, message: Message, label: str, user: str = "U0ADA") -> Ack:
        """A button of a message."""
        ack = self.peer.deliver(self.peer.people.clicks(user, message, label)).result(10)
        assert ack is not None, "a click was not acknowledged"
        return ack

    def asking(self, thread: str, checkpoint: Checkpoint, seconds: float = 60) -> Message:
        """The newest message of a thread that asks for a yes at a checkpoint, once it is there."""

        def found() -> Message | None:
            newest = [message for message in self.thread(thread) if yes_of(message, checkpoint)]
            return newest[-1] if newest else None

        return wait_until(found, seconds, f"nothing is asked: {self.bot.log()[-3000:]}")

    def approve(self, thread: str, checkpoint: Checkpoint, user: str = "U0ADA") -> Message:
        """Click yes on what is asked, and wait until that is decided."""
        asking = self.asking(thread, checkpoint)
        self.click(asking, yes_of(asking), user)
        wait_until(lambda: not yes_of(asking), 20, f"nothing came of the click: {words_of(asking.blocks)}")
        return asking

    def thread(self, root: str) -> list[Message]:
        """What the bot has posted beneath a root."""
        return [message for message in thread_of(self.peer.workspace.channels[CHANNEL], root) if message.by_bot]

    def _roots(self) -> list[Message]:
        return [one for one in self.peer.workspace.channels[CHANNEL].messages if one.by_bot and not one.thread]


def yes_of(message: Message, checkpoint: Checkpoint | None = None) -> str:
    """The label of the button that says yes, at a checkpoint or at any; empty where none does."""
    for button in buttons_of(message):
        action = decode_action(button["value"])
        if action is not None and action.kind is ActionKind.APPROVE and checkpoint in (None, action.checkpoint):
            return str(button["text"]["text"])
    return ""


@contextmanager
def running_team(folder: Path, mode: Mode, port: int, **slack: Any) -> Iterator[Team]:
    """A Slack, a bot and a runner."""
    (folder / "bot-host").mkdir(parents=True)
    with running_slack() as peer, running_host(folder / "runner-host") as host:
        peer.app_url = f"http://127.0.0.1:{port}/slack/events" if mode == "http" else ""
        with running_bot(folder / "bot-host", host, slack=slack_values(peer, mode, port) | slack) as bot:
            wait_until(lambda: hears(peer, bot), 20, f"the bot does not hear: {bot.log()[-3000:]}")
            yield Team(peer, bot)


def slack_values(peer: SlackPeer, mode: Mode, port: int) -> dict[str, Any]:
    """The section of the settings."""
    return {
        "bot_token": BOT_TOKEN,
        "app_token": APP_TOKEN,
        "signing_secret": SIGNING_SECRET,
        "mode": mode,
        "api_base_url": peer.api_base_url.rstrip("/"),
        "port": port,
    }


def hears(peer: SlackPeer, bot: BotHost) -> bool:
    """Whether the bot listens to Slack."""
    return "Slack's requests on" in bot.log() if peer.app_url else peer.connected > 0


__all__ = ["ASKED", "Host", "Mode", "Team", "running_team", "slack_values", "yes_of"]
