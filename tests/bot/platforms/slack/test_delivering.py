"""What can go wrong on the way to Slack: nothing is lost, nothing is shown twice, and each refusal has its meaning."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.clock import SystemClock
from bot.conversation.person import Person, Place
from bot.conversation.request import Request
from bot.conversation.state import Analysing
from bot.errors import PlatformAway, PlatformDenied, SurfaceGone
from bot.platforms.contract import Event, Said
from bot.platforms.slack.adapter import SlackPlatform
from bot.platforms.slack.calls import Calls
from bot.platforms.slack.pace import Pace
from bot.service.outbox import Outbox
from bot.store.records import Conversation
from bot.store.store import Store
from tests.bot.platforms.scenarios import card, full_card
from tests.bot.platforms.slack.stand import slack_settings
from tests.peers.slack import SlackPeer, running_slack
from tests.peers.slack_faults import Kind
from tests.peers.slack_people import thread_of, words_of
from tests.peers.slack_state import BOT_USER, CHANNEL, Channel, Message

pytestmark = pytest.mark.slack

ADA = Person(id="slack:U0ADA", name="Ada")
PLACE = Place(platform="slack", channel=CHANNEL)
AT = datetime(2026, 1, 2, tzinfo=UTC)
KEY = "ptq-1-plan:1"


class Way:
    """An adapter and the peer at its end. `again` is another process."""

    def __init__(self, peer: SlackPeer) -> None:
        self.peer = peer
        self._settings = slack_settings(peer, "socket")
        self._all: list[Calls] = []
        self.platform = self.again()

    def again(self) -> SlackPlatform:
        """A new adapter, which remembers nothing."""
        calls = Calls(self._settings)
        self._all.append(calls)
        self.platform = SlackPlatform(calls, known, Pace(0.0), pace_seconds=0.0)
        return self.platform

    async def open(self) -> Place:
        """A place with its thread."""
        return PLACE.model_copy(update={"thread": await self.platform.thread(PLACE, "ptq-1", "Quantize a/model")})

    def channel(self, name: str = CHANNEL) -> list[Message]:
        """What the app has in a channel."""
        return [one for one in self.peer.workspace.channels[name].messages if one.by_bot]

    def direct(self) -> list[str]:
        """What Ada reads in her direct message."""
        return [words_of(one.blocks) for one in self.peer.workspace.direct("U0ADA").messages]

    async def close(self) -> None:
        """Give connections back."""
        for calls in self._all:
            await calls.close()


async def known(conversation: int) -> Conversation | None:
    """The only conversation there is."""
    state = Analysing(request=Request(model="a/model"), requester=ADA, step=1)
    return Conversation(1, PLACE, ADA, state, 1, AT, AT) if conversation == 1 else None


def go(act: Callable[[Way], Coroutine[Any, Any, None]]) -> None:
    """Let an adapter deliver."""

    async def work(peer: SlackPeer) -> None:
        way = Way(peer)
        try:
            await act(way)
        finally:
            await way.close()

    with running_slack() as peer:
        asyncio.run(work(peer))


def test_a_full_channel_says_when_to_come_again() -> None:
    async def act(way: Way) -> None:
        place = await way.open()
        way.peer.faults.add("chat.postMessage", "ratelimited", seconds=7)
        with pytest.raises(PlatformAway) as caught:
            await way.platform.post(place, card(), KEY)
        assert caught.value.seconds == 7
        assert len(way.channel()) == 1

    go(act)


@pytest.mark.parametrize(
    ("kind", "error"), [("broken", ""), ("error", "internal_error"), ("error", "token_revoked"), ("lost", "")]
)
def test_what_later_may_help_waits(kind: Kind, error: str) -> None:
    async def act(way: Way) -> None:
        place = await way.open()
        way.peer.faults.add("chat.postMessage", kind, error)
        with pytest.raises(PlatformAway):
            await way.platform.post(place, card(), KEY)

    go(act)


def test_a_card_whose_answer_was_lost_is_found_and_posted_once() -> None:
    async def act(way: Way) -> None:
        place = await way.open()
        way.peer.faults.add("chat.postMessage", "lost")
        with pytest.raises(PlatformAway):
            await way.platform.post(place, card(), KEY)
        assert len(way.peer.record.of("chat.postMessage")) == 2  # the client did not send it again by itself
        found = await way.again().find(place, KEY)
        assert found == f"{CHANNEL}/{way.channel()[-1].ts}"
        assert await way.platform.find(place, "ptq-1-plan:2") is None

    go(act)


def test_a_root_whose_answer_was_lost_is_found() -> None:
    async def act(way: Way) -> None:
        way.peer.faults.add("chat.postMessage", "lost")
        with pytest.raises(PlatformAway):
            await way.platform.thread(PLACE, "ptq-1", "Quantize a/model")
        place = await way.open()
        assert [one.ts for one in way.channel()] == [place.thread]

    go(act)


def test_a_file_whose_answer_was_lost_is_found() -> None:
    async def act(way: Way) -> None:
        place = await way.open()
        way.peer.faults.add("files.completeUploadExternal", "lost")
        with pytest.raises(PlatformAway):
            await way.platform.file(place, "quant_plan.json", b"{}", "ptq-1-plan:1:file")
        found = await way.again().find(place, "ptq-1-plan:1:file")
        assert found in way.peer.workspace.files
        assert way.peer.workspace.contents[str(found)] == b"{}"
        assert await way.platform.find(place, "ptq-1-plan:2:file") is None

    go(act)


def test_what_others_post_with_our_keys_is_not_taken_for_ours() -> None:
    async def act(way: Way) -> None:
        place = await way.open()
        told = {"event_type": "ptq_delivery", "event_payload": {"key": KEY}}
        way.peer.workspace.add(way.peer.workspace.channel(CHANNEL), "U0BOB", "mine", place.thread, metadata=told)
        assert await way.platform.find(place, KEY) is None

    go(act)


def test_blocks_that_slack_refuses_go_out_simpler_and_never_not_at_all() -> None:
    async def act(way: Way) -> None:
        place = await way.open()
        way.peer.faults.add("chat.postMessage", "error", "invalid_blocks")
        await way.platform.post(place, full_card(), KEY)
        first = way.channel()[-1]
        assert not {"table", "plan"} & {block["type"] for block in first.blocks}
        assert "1.5 GB" in words_of(first.blocks)
        way.peer.faults.add("chat.update", "error", "invalid_blocks", times=2)
        await way.platform.update(place, f"{CHANNEL}/{first.ts}", full_card())
        assert "Everything there is" in words_of(first.blocks)

    go(act)


def test_a_deleted_root_leaves_no_stray_and_the_thread_goes_on_directly() -> None:
    async def act(way: Way) -> None:
        place = await way.open()
        way.peer.workspace.remove(CHANNEL, place.thread)
        message = await way.platform.post(place, card("The plan"), KEY)
        assert way.channel() == []
        assert message.startswith("D0U0ADA/")
        told, plan = way.direct()
        assert "first message was deleted" in told
        assert "The plan" in plan
        assert await way.again().find(place, KEY) == message
        await way.platform.post(place, card("The command"), "ptq-1-command:1")
        assert len(way.direct()) == 3
        assert (
            len(thread_of(way.peer.workspace.direct("U0ADA"), way.peer.workspace.direct("U0ADA").messages[0].ts)) == 2
        )
        await way.platform.update(place, message, card("The plan, decided"))
        assert "decided" in way.direct()[1]

    go(act)


def test_a_stray_that_a_crash_left_is_removed() -> None:
    async def act(way: Way) -> None:
        place = await way.open()
        way.peer.workspace.remove(CHANNEL, place.thread)
        way.peer.faults.add("chat.delete", "error", "internal_error")
        with pytest.raises(PlatformAway):
            await way.platform.post(place, card(), KEY)
        assert len(way.channel()) == 1
        assert await way.again().find(place, KEY) is None
        assert way.channel() == []

    go(act)


def test_an_archived_channel_is_left_for_a_direct_message() -> None:
    async def act(way: Way) -> None:
        place = await way.open()
        message = await way.platform.post(place, card("The plan"), KEY)
        way.peer.workspace.channels[CHANNEL].archived = True
        with pytest.raises(SurfaceGone):
            await way.platform.update(place, message, card("The plan, decided"))
        await way.platform.post(place, card("The command"), "ptq-1-command:1")
        await way.platform.file(place, "run_manifest.yaml", b"a: 1", "ptq-1-command:1:file")
        assert "archived" in way.direct()[0]
        assert "The command" in way.direct()[1]
        assert way.peer.workspace.direct("U0ADA").messages[2].files[0]["name"] == "run_manifest.yaml"

    go(act)


def test_a_thread_whose_channel_was_archived_before_it_opened() -> None:
    async def act(way: Way) -> None:
        way.peer.workspace.channels[CHANNEL].archived = True
        place = await way.open()
        await way.platform.post(place, card("The plan"), KEY)
        assert "archived" in way.direct()[0]
        assert "The plan" in way.direct()[1]
        assert (await way.again().find(place, KEY) or "").startswith("D0U0ADA/")

    go(act)


@pytest.mark.parametrize("private", [False, True])
def test_a_channel_that_the_bot_is_not_in(private: bool) -> None:
    async def act(way: Way) -> None:
        channel = way.peer.workspace.channels[CHANNEL]
        channel.members.discard(BOT_USER)
        channel.private = private
        place = await way.open()
        await way.platform.post(place, card("The plan"), KEY)
        if private:
            assert "not in its channel" in way.direct()[0]
        else:
            assert [one.thread for one in way.channel()] == ["", place.thread]

    go(act)


def test_a_missing_scope_is_named() -> None:
    async def act(way: Way) -> None:
        place = await way.open()
        way.peer.api.scopes.discard("files:write")
        with pytest.raises(PlatformDenied) as caught:
            await way.platform.file(place, "a.json", b"{}", "ptq-1-plan:1:file")
        assert "files:write" in caught.value.sentence()

    go(act)


@pytest.mark.parametrize("error", ["message_not_found", "cant_update_message", "edit_window_closed", "is_inactive"])
def test_a_message_that_is_gone_is_posted_once_more(error: str, tmp_path: Path) -> None:
    async def act(way: Way) -> None:
        store = await Store.open(f"sqlite:///{tmp_path / 'bot.sqlite3'}", SystemClock())
        try:
            state = Analysing(request=Request(model="a/model"), requester=ADA, step=1)
            there = await store.write(lambda unit: unit.begin(PLACE, ADA, state, AT))
            await store.write(lambda unit: unit.show(there.id, "plan:1", card("first"), AT))
            outbox = Outbox(store, way.platform, SystemClock())
            while await outbox.round():
                pass
            way.peer.faults.add("chat.update", "error", error)
            await store.write(lambda unit: unit.show(there.id, "plan:1", card("second"), AT))
            while await outbox.round():
                pass
            assert ["second" in words_of(one.blocks) for one in way.channel()[1:]] == [False, True]
            await store.write(lambda unit: unit.show(there.id, "plan:1", card("third"), AT))
            while await outbox.round():
                pass
            assert ["third" in words_of(one.blocks) for one in way.channel()[1:]] == [False, True]
        finally:
            await store.close()

    go(act)


def test_nothing_unfolds_and_everything_has_its_line() -> None:
    async def act(way: Way) -> None:
        place = await way.open()
        await way.platform.post(place, full_card(), KEY)
        for body in way.peer.record.of("chat.postMessage"):
            assert (body["unfurl_links"], body["unfurl_media"]) == (False, False)
            assert body["text"]
            assert body["metadata"]["event_payload"]["key"]

    go(act)


def test_who_is_not_in_the_channel_is_told_directly() -> None:
    async def act(way: Way) -> None:
        way.peer.workspace.channels["C0OTHER"] = Channel("C0OTHER", {BOT_USER})
        place = Place(platform="slack", channel="C0OTHER")
        event = Event(key="slack:1", person=ADA, place=place, at=AT, what=Said(text="hello"))
        await way.platform.whisper(event, "only for you <!channel>")
        assert way.direct() == ["only for you <!channel>"]
        assert "<!channel>" not in way.peer.record.of("chat.postMessage")[0]["text"]
        answer = event.model_copy(update={"reply_to": f"{way.peer.origin}/response/1"})
        await way.platform.whisper(answer, "by the command's own way")
        assert way.peer.workspace.whispers[-1].text == "by the command's own way"

    go(act)


def test_posts_into_a_channel_keep_their_pace() -> None:
    async def act() -> None:
        pace = Pace(30.0, at_once=2)
        await pace.turn("C1")
        await pace.turn("C1")
        with pytest.raises(PlatformAway) as caught:
            await pace.turn("C1")
        assert caught.value.seconds is not None
        assert 25 < caught.value.seconds <= 30
        await pace.turn("C2")

    asyncio.run(act())
