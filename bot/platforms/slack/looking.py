"""Finding again what the bot has posted: every message carries its delivery's key as metadata."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from bot.errors import SurfaceGone
from bot.platforms.slack.calls import Body, Calls

EVENT_TYPE: Final = "ptq_delivery"
_PER_PAGE, _MOST_PAGES = 200, 10
_BETWEEN = " · "


def metadata(key: str) -> Body:
    """What a message carries. Nobody sees it."""
    return {"event_type": EVENT_TYPE, "event_payload": {"key": key}}


def file_title(name: str, key: str) -> str:
    """A file carries no metadata, so its title ends in the key."""
    return f"{name}{_BETWEEN}{key}"


class Looking:
    """Looks through threads and channels. All raise PlatformError."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def in_thread(self, channel: str, thread: str, key: str) -> str | None:
        """The message or file with this key: its ts, or the file's id. None when there is none."""
        try:
            async for message in self._all("conversations.replies", channel=channel, ts=thread):
                if (found := await self._named(message, key)) is not None:
                    return found
        except SurfaceGone:
            return None
        return None

    async def in_channel(self, channel: str, key: str) -> str | None:
        """The same among what stands in the channel itself, as roots of threads do."""
        try:
            async for message in self._all("conversations.history", channel=channel):
                if (found := await self._named(message, key)) is not None:
                    return found
        except SurfaceGone:
            return None
        return None

    async def moved_here(self, channel: str, thread: str) -> str | None:
        """The key of the thread that goes on beneath this root, where it is one that the bot has moved."""
        try:
            async for message in self._all("conversations.replies", channel=channel, ts=thread):
                return await self._key(message) if str(message.get("ts")) == thread else None
        except SurfaceGone:
            return None
        return None

    async def _named(self, message: Body, key: str) -> str | None:
        """The message's name, or its file's, where it carries the key."""
        if not await self._is_mine(message):
            return None
        if await self._key(message) == key:
            return str(message["ts"])
        for file in message.get("files") or []:
            if str(file.get("title", "")).endswith(f"{_BETWEEN}{key}"):
                return str(file["id"])
        return None

    async def _is_mine(self, message: Body) -> bool:
        """Others can post metadata of this type too: only the bot's own counts."""
        me = await self._calls.identity()
        return me.user == message.get("user") or bool(me.bot and me.bot == message.get("bot_id"))

    async def _key(self, message: Body) -> str | None:
        told = message.get("metadata") or {}
        if told.get("event_type") != EVENT_TYPE or not await self._is_mine(message):
            return None
        key = (told.get("event_payload") or {}).get("key")
        return key if isinstance(key, str) else None

    async def _all(self, method: str, **where: Any) -> AsyncIterator[Body]:
        cursor = ""
        for _ in range(_MOST_PAGES):
            more = {"cursor": cursor} if cursor else {}
            answer = await self._calls.call(method, **where, **more, limit=_PER_PAGE, include_all_metadata="true")
            for message in answer.get("messages") or []:
                yield message
            cursor = (answer.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                return
