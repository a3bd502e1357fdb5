"""What people do in Slack, in both modes: kept before it is acknowledged, once, and only from who may."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.cards.card import Action, ActionKind
from bot.conversation.state import Checkpoint
from bot.errors import StoreFull
from bot.platforms.slack.app import OUTDATED
from bot.platforms.slack.desk import NOT_RECORDED
from bot.platforms.slack.gate import ELSEWHERE, STRANGER
from bot.service.daemon import Bot
from bot.store.records import HistoryQuery, StoredEvent
from tests.bot.platforms.slack.stand import MODES, Mode, bot_of, deliver, listening_part, slack_settings, until_so
from tests.peers.slack import Ack, SlackPeer, running_slack, signature
from tests.peers.slack_state import BOT_USER, CHANNEL, OTHER_TEAM, Channel, Message
from tests.waiting import until

pytestmark = [pytest.mark.slack, pytest.mark.parametrize("mode", MODES)]

ASK = f"<@{BOT_USER}> quantize a/model to fp8"


@dataclass
class Room:
    """A bot that hears, and the peer that it hears."""

    peer: SlackPeer
    bot: Bot
    task: asyncio.Task[None]

    async def events(self) -> list[StoredEvent]:
        """Everything that was kept, in order."""
        with closing(sqlite3.connect(self.bot.settings.state_dir / "bot.sqlite3")) as database:
            ids = [row[0] for row in database.execute("SELECT id FROM inbox ORDER BY id")]
        return [await self._event(one) for one in ids]

    async def _event(self, inbox: int) -> StoredEvent:
        event = await self.bot.store.read(lambda reader: reader.event(inbox))
        assert event is not None
        return event

    async def say(self, text: str, **where: Any) -> list[Ack | None]:
        """Words; what came of each event of theirs."""
        _, deliveries = self.peer.people.says("U0ADA", text, **where)
        return [await deliver(self.peer, one) for one in deliveries]

    async def thread(self) -> Message:
        """A request's root, once it is there and known."""
        await self.say(ASK)
        channel = self.peer.workspace.channels[CHANNEL]
        root = await until(lambda: next((one for one in channel.messages if one.by_bot), None), 10)

        async def known() -> bool:
            rows = await self.bot.store.read(lambda reader: reader.history(HistoryQuery()))
            return bool(rows and rows[0].place.thread)

        await until_so(known)
        return root

    async def told(self) -> str:
        """The newest whisper, once there is one."""
        whispers = self.peer.workspace.whispers
        await until(lambda: whispers, 10, "nobody was told anything")
        return whispers[-1].text


@asynccontextmanager
async def room_of(folder: Path, peer: SlackPeer, mode: Mode, **settings: Any) -> AsyncIterator[Room]:
    """A bot that hears."""
    async with (
        bot_of(folder, slack_settings(peer, mode, **settings)) as bot,
        listening_part(bot, peer) as (_, task),
    ):
        yield Room(peer, bot, task)


def play(folder: Path, mode: Mode, act: Callable[[Room], Coroutine[Any, Any, None]], **settings: Any) -> None:
    """Let people act."""

    async def go(peer: SlackPeer) -> None:
        async with room_of(folder, peer, mode, **settings) as room:
            await act(room)

    with running_slack() as peer:
        asyncio.run(go(peer))


def approve(conversation: int) -> dict[str, Any]:
    """A button of a card that stands nowhere any more."""
    action = Action(
        kind=ActionKind.APPROVE, conversation=conversation, checkpoint=Checkpoint.ANALYSIS, digest="a" * 12, step=1
    )
    return {"action_id": "ptq-approve-0", "value": action.encoded()}


def test_a_mention_that_comes_as_two_events_and_again_is_one_request(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        _, deliveries = room.peer.people.says("U0ADA", ASK)
        assert len(deliveries) == 2
        for attempt in (0, 1, 2):
            for one in deliveries:
                assert await deliver(room.peer, one, attempt) is not None
        assert [event.event.person.name for event in await room.events()] == ["Ada"]
        assert len(await room.bot.store.read(lambda reader: reader.history(HistoryQuery()))) <= 1

    play(tmp_path, mode, act)


def test_a_retry_may_be_the_only_delivery(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        _, deliveries = room.peer.people.says("U0ADA", ASK)
        assert await deliver(room.peer, deliveries[0], 1) is not None
        assert len(await room.events()) == 1

    play(tmp_path, mode, act)


def test_words_that_were_not_kept_are_not_acknowledged_and_come_again(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        receive = room.bot.core.receive

        async def full(event: Any) -> Any:
            raise StoreFull("full", f"The disk is full: {event.key}.")

        room.bot.core.receive = full  # type: ignore[method-assign]
        _, deliveries = room.peer.people.says("U0ADA", ASK)
        assert await deliver(room.peer, deliveries[0]) is None
        assert await room.events() == []
        room.bot.core.receive = receive  # type: ignore[method-assign]
        assert await deliver(room.peer, deliveries[0], 1) is not None
        assert len(await room.events()) == 1

    play(tmp_path, mode, act)


def test_a_click_that_the_database_does_not_take_in_time_is_answered_so(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        root = await room.thread()
        before = len(await room.events())

        async def slow(event: Any) -> Any:
            del event
            await asyncio.Event().wait()

        room.bot.core.receive = slow  # type: ignore[method-assign]
        ack = await deliver(room.peer, room.peer.people.presses("U0ADA", root, approve(1)))
        assert ack is not None
        assert ack.seconds < 1.5
        assert await room.told() == NOT_RECORDED
        assert len(await room.events()) == before

    play(tmp_path, mode, act)


def test_a_click_is_kept_before_it_is_acknowledged_and_once(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        root = await room.thread()
        before = len(await room.events())
        click = room.peer.people.presses("U0ADA", root, approve(1))
        for attempt in (0, 1):
            assert await deliver(room.peer, click, attempt) is not None
            assert len(await room.events()) == before + 1
        # It asked about a card that is not the newest: the stored state decides.
        assert await room.told()

    play(tmp_path, mode, act)


def test_a_button_that_nobody_knows_is_answered_with_the_current_card(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        root = await room.thread()
        child = await until(
            lambda: next((m for m in room.peer.workspace.channels[CHANNEL].messages if m.thread == root.ts), None)
        )

        async def shown() -> bool:
            entries = await room.bot.store.read(lambda reader: reader.thread(1))
            return any(getattr(entry, "message", None) for entry in entries)

        await until_so(shown)
        unknown = {"action_id": "of-an-older-release", "value": "?"}
        assert await deliver(room.peer, room.peer.people.presses("U0ADA", child, unknown)) is not None
        told = await room.told()
        assert told.startswith(OUTDATED)
        assert f"/archives/{CHANNEL}/p" in told

    play(tmp_path, mode, act)


def test_other_workspaces_and_strangers_are_refused(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        _, (event, *_) = room.peer.people.says("U0ADA", ASK)
        event.payload["team_id"] = OTHER_TEAM
        assert await deliver(room.peer, event) is not None
        assert await room.events() == []
        await room.say(ASK, team=OTHER_TEAM)  # in a channel that both workspaces share
        assert await room.told() == STRANGER
        assert await room.events() == []

    play(tmp_path, mode, act)


def test_strangers_may_act_where_the_settings_let_them(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        await room.say(ASK, team=OTHER_TEAM)
        assert len(await room.events()) == 1

    play(tmp_path, mode, act, strangers=True)


def test_only_the_channels_of_the_settings_are_listened_to(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        room.peer.workspace.channels["C0OTHER"] = Channel("C0OTHER", {"U0ADA", BOT_USER})
        await room.say(ASK, channel="C0OTHER")
        assert await room.told() == ELSEWHERE
        assert await room.events() == []
        assert len(room.peer.workspace.whispers) == 1
        room.peer.workspace.direct("U0ADA")
        await room.say("quantize a/model to fp8", channel="D0U0ADA")
        assert [event.event.place.channel for event in await room.events()] == ["D0U0ADA"]

    play(tmp_path, mode, act, channels=[CHANNEL])


def test_talk_that_is_not_for_the_bot_is_left_alone(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        await room.say("quantize a/model, said to a colleague")
        others, _ = room.peer.people.says("U0BOB", "a thread of somebody else")
        await room.say("ok", thread=others.ts)
        assert await room.events() == []
        root = await room.thread()
        before = len(await room.events())
        await room.say("looks good", thread=root.ts)
        assert [event.event.place.thread for event in (await room.events())[before:]] == [root.ts]

    play(tmp_path, mode, act)


def test_an_answer_in_a_direct_message_that_a_thread_moved_to_reaches_the_thread(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        room.peer.workspace.channels[CHANNEL].archived = True
        await room.say(ASK)
        direct = room.peer.workspace.direct("U0ADA")
        await until(lambda: len(direct.messages) > 1, 10, "nothing moved")

        async def known() -> bool:
            there = await room.bot.store.read(lambda reader: reader.conversation(1))
            return there is not None and bool(there.place.thread)

        await until_so(known)
        before = len(await room.events())
        await room.say("cancel", channel=direct.id, thread=direct.messages[0].ts)

        async def over() -> bool:
            there = await room.bot.store.read(lambda reader: reader.conversation(1))
            return there is not None and there.state.kind == "ended"

        await until_so(over)
        assert [event.event.place.channel for event in (await room.events())[before:]] == [CHANNEL]

    play(tmp_path, mode, act)


def test_commands_are_kept_or_answered(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        people = room.peer.people
        ack = await deliver(room.peer, people.commands("U0ADA", "help"))
        assert ack is not None
        assert "/quantize history" in ack.payload["text"]
        assert await deliver(room.peer, people.commands("U0ADA", "a/model to fp8")) is not None
        (asked,) = await room.events()
        assert asked.event.what.kind == "said"
        assert asked.event.what.text == "quantize a/model to fp8"
        assert await deliver(room.peer, people.commands("U0ADA", "cancel 1")) is not None
        assert len(await room.events()) == 2
        assert await deliver(room.peer, people.commands("U0ADA", "history")) is not None
        await until(lambda: any("1. a/model" in one.text for one in room.peer.workspace.whispers), 10)
        assert await deliver(room.peer, people.commands("U0ADA", "")) is not None
        await until(lambda: room.peer.record.of("views.open"), 10)
        assert room.peer.record.of("views.open")[0]["view"]["callback_id"] == "ptq-request"

    play(tmp_path, mode, act)


def test_the_queue_is_told(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        assert await deliver(room.peer, room.peer.people.commands("U0ADA", "queue")) is not None
        assert "box" in await room.told()

    play(tmp_path, mode, act)


def test_the_home_is_drawn(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        await room.thread()
        assert await deliver(room.peer, room.peer.people.opens_home("U0ADA")) is not None
        await until(lambda: room.peer.workspace.homes, 10)
        assert room.peer.workspace.homes["U0ADA"]["type"] == "home"

    play(tmp_path, mode, act)


def test_only_slack_itself_is_believed(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        if mode == "socket":
            assert room.peer.app_url == ""  # nothing listens that others could speak to
            return
        async with aiohttp.ClientSession() as session:
            for headers in ({}, signature("{}", "another secret"), signature("{}", at=1.0)):
                kind = {"Content-Type": "application/json"}
                async with session.post(room.peer.app_url, data=b"{}", headers=headers | kind) as answer:
                    assert answer.status == 401
        assert await room.events() == []

    play(tmp_path, mode, act)
