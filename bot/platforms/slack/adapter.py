"""Cards to Slack. A message is named "C0CHANNEL/1700000000.000100"; a thread is named by its root's ts, or as a
message where it had to move into a direct message."""

from __future__ import annotations

import json
import logging
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from bot.cards.card import Card
from bot.conversation.person import Place
from bot.errors import PlatformDenied, PlatformError, SurfaceGone
from bot.platforms.contract import Event
from bot.platforms.slack.calls import BlocksRefused, Body, Calls, ChannelClosed
from bot.platforms.slack.escape import escaped, slack_id
from bot.platforms.slack.looking import Looking, file_title, metadata
from bot.platforms.slack.moving import Moving
from bot.platforms.slack.pace import Pace
from bot.platforms.slack.render import fallback, render
from bot.platforms.slack.rich import line, rich, words
from bot.platforms.slack.whispering import whisper
from bot.store.records import Conversation

log = logging.getLogger(__name__)

NAME: Final = "slack"
_KEY = re.compile(r"ptq-([0-9]{1,15})(?:-.*)?", re.DOTALL)
_CLOCKS_DIFFER = timedelta(minutes=1)
_TEXT = 3_000
_MOST_REMEMBERED = 10_000

Known = Callable[[int], Awaitable[Conversation | None]]


class SlackPlatform:
    """The `Platform`. `known` gives a conversation by its number: whom to write to when its channel is closed."""

    name = NAME

    def __init__(self, calls: Calls, known: Known, pace: Pace | None = None, pace_seconds: float = 3.0) -> None:
        self.pace_seconds = pace_seconds
        self._calls = calls
        self._known = known
        self._pace = pace or Pace()
        self._looking = Looking(calls)
        self._moving = Moving(calls, self._looking)
        self._since = datetime.now(UTC)
        self._roots: OrderedDict[str, str] = OrderedDict()
        self._tried: set[str] = set()

    async def thread(self, place: Place, key: str, title: str) -> str:
        """The root's ts. It is looked for where an attempt before this one may have posted it."""
        if key in self._roots:
            return self._roots[key]
        there = await self._looking.in_channel(place.channel, key) if await self._may_be_there(key) else None
        if there is None:
            self._tried.add(key)
            there = await self._open(place, key, title)
        self._tried.discard(key)
        self._roots[key] = there
        if len(self._roots) > _MOST_REMEMBERED:
            self._roots.popitem(last=False)
        return there

    async def post(self, place: Place, card: Card, key: str) -> str:
        """The card beneath the thread's root. Where that is gone or the channel closed, in a direct message."""
        return await self._into(place, key, lambda channel, thread: self._card(channel, thread, card, key))

    async def update(self, place: Place, message: str, card: Card) -> str:
        """The card in its message. Raises SurfaceGone where that cannot be written any more."""
        channel, ts = _parts(message)
        try:
            await self._drawn("chat.update", card, channel=channel, ts=ts)
        except ChannelClosed as error:
            raise SurfaceGone(error.code, error.message) from None
        return message

    async def file(self, place: Place, name: str, content: bytes, key: str) -> str:
        """The file beneath the thread's root; its id."""
        there = await self._calls.call("files.getUploadURLExternal", filename=name, length=len(content))
        await self._calls.upload(there["upload_url"], content)
        told = [{"id": there["file_id"], "title": file_title(name, key)}]

        async def shared(channel: str, thread: str) -> str:
            await self._pace.turn(channel)
            await self._calls.call(
                "files.completeUploadExternal", files=json.dumps(told), channel_id=channel, thread_ts=thread
            )
            return str(there["file_id"])

        return await self._into(place, key, shared)

    async def find(self, place: Place, key: str) -> str | None:
        """What carries this key in the thread, or in the direct message that the thread has moved to."""
        channel, thread = _thread(place)
        found = await self._looking.in_thread(channel, thread, key)
        if found is not None:
            return found if found.startswith("F") else f"{channel}/{found}"
        stray = await self._looking.in_channel(channel, key)
        if stray is not None:  # the thread's root is gone, and this fell beside it
            await self._remove(channel, stray)
        person = await self._person(key)
        if person is None or "/" in place.thread:
            return None
        moved = await self._moving.found(person, _root_key(key))
        if moved is None:
            return None
        found = await self._looking.in_thread(*moved, key)
        return None if found is None else found if found.startswith("F") else f"{moved[0]}/{found}"

    async def whisper(self, event: Event, text: str) -> None:
        """Seen by the person alone, where they acted; else in their direct message."""
        await whisper(self._calls, event, text)

    async def _may_be_there(self, key: str) -> bool:
        """Whether the root may have been posted already: by an attempt that failed, or by an earlier process."""
        if key in self._tried:
            return True
        conversation = await self._conversation(key)
        return conversation is None or conversation.created_at < self._since + _CLOCKS_DIFFER

    async def _open(self, place: Place, key: str, title: str) -> str:
        try:
            return await self._root(place.channel, title, key)
        except ChannelClosed as error:
            if await self._joined(place.channel, error):
                return await self._root(place.channel, title, key)
            channel, ts = await self._moved(place.channel, "", key, error)
            return f"{channel}/{ts}"

    async def _root(self, channel: str, title: str, key: str) -> str:
        await self._pace.turn(channel)
        answer = await self._calls.call(
            "chat.postMessage",
            channel=channel,
            text=escaped(title, _TEXT),
            blocks=[rich(line(words(title, bold=True)))],
            metadata=metadata(key),
            unfurl_links=False,
            unfurl_media=False,
        )
        return str(answer["ts"])

    async def _into(self, place: Place, key: str, deliver: Callable[[str, str], Awaitable[str]]) -> str:
        """Deliver into a place's thread, or where that has moved to."""
        channel, thread = _thread(place)
        if (moved := self._moving.known(channel, thread)) is not None:
            return await deliver(*moved)
        try:
            return await deliver(channel, thread)
        except ChannelClosed as error:
            if await self._joined(channel, error):
                return await deliver(channel, thread)
            return await deliver(*await self._moved(channel, thread, key, error))
        except _RootGone as error:
            return await deliver(*await self._moved(channel, thread, key, error))

    async def _card(self, channel: str, thread: str, card: Card, key: str) -> str:
        await self._pace.turn(channel)
        answer = await self._drawn(
            "chat.postMessage",
            card,
            channel=channel,
            thread_ts=thread,
            metadata=metadata(key),
            unfurl_links=False,
            unfurl_media=False,
        )
        ts = str(answer["ts"])
        if (answer.get("message") or {}).get("thread_ts") != thread:
            # Slack posts into the channel when the root was deleted, and does not say so.
            await self._remove(channel, ts)
            raise _RootGone("root_gone", "The first message of the thread was deleted.")
        return f"{channel}/{ts}"

    async def _drawn(self, method: str, card: Card, **where: object) -> Body:
        """Send a card: as it should be, else with the oldest blocks, else its one line."""
        message = render(card)
        try:
            return await self._calls.call(method, text=message.text, blocks=message.blocks, **where)
        except BlocksRefused as error:
            log.warning("a card goes out in simpler blocks: %s", error.sentence())
        simple = fallback(card)
        try:
            return await self._calls.call(method, text=simple.text, blocks=simple.blocks, **where)
        except BlocksRefused as error:
            log.error("a card goes out as its one line: %s", error.sentence())
        return await self._calls.call(method, text=simple.text, blocks=[rich(line(words(card.alternative)))], **where)

    async def _joined(self, channel: str, error: ChannelClosed) -> bool:
        """Whether the bot could help itself by entering the channel."""
        if error.code != "not_in_channel":
            return False
        try:
            await self._calls.call("conversations.join", channel=channel)
        except PlatformError as refusal:
            log.info("channel %s cannot be entered: %s", channel, refusal.sentence())
            return False
        return True

    async def _moved(self, channel: str, thread: str, key: str, why: PlatformError) -> tuple[str, str]:
        person = await self._person(key)
        if person is None:
            raise PlatformDenied(why.code, why.message, "Nobody of Slack can be written to instead.") from None
        return await self._moving.move(channel, thread, person, _root_key(key), why.code)

    async def _remove(self, channel: str, ts: str) -> None:
        try:
            await self._calls.call("chat.delete", channel=channel, ts=ts)
        except SurfaceGone:
            return  # somebody was faster

    async def _person(self, key: str) -> str | None:
        """Slack's id of whoever asked."""
        conversation = await self._conversation(key)
        return slack_id(conversation.requester.id) if conversation is not None else None

    async def _conversation(self, key: str) -> Conversation | None:
        found = _KEY.fullmatch(key)
        return await self._known(int(found[1])) if found else None


class _RootGone(SurfaceGone):
    """A thread has lost its root."""


def _root_key(key: str) -> str:
    """The key of the thread that a delivery belongs to."""
    found = _KEY.fullmatch(key)
    return f"ptq-{found[1]}" if found else key


def _parts(message: str) -> tuple[str, str]:
    channel, _, ts = message.partition("/")
    return channel, ts


def _thread(place: Place) -> tuple[str, str]:
    return _parts(place.thread) if "/" in place.thread else (place.channel, place.thread)
