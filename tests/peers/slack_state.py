"""A Slack workspace as data: people, channels, messages, files and views. Refusals are named as Slack names them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

TEAM = "T0HOME"
OTHER_TEAM = "T0OTHER"
BOT_USER = "U0BOT"
BOT_ID = "B0BOT"
APP_ID = "A0PTQ"
BOT_TOKEN = "xoxb-peer-token"
APP_TOKEN = "xapp-peer-token"
SIGNING_SECRET = "peer-signing-secret"
CHANNEL = "C0QUANT"
TRIGGER_SECONDS = 3.0

SCOPES = (
    "app_mentions:read",
    "channels:history",
    "channels:join",
    "chat:write",
    "commands",
    "files:write",
    "groups:history",
    "im:history",
    "im:write",
    "users:read",
)


class Refused(Exception):
    """`error` of an answer that is not ok, with what stands beside it."""

    def __init__(self, error: str, **beside: str) -> None:
        super().__init__(error)
        self.error = error
        self.beside = beside


@dataclass
class Message:
    """One message, also the tombstone of one."""

    channel: str
    ts: str
    user: str
    text: str = ""
    blocks: list[dict[str, Any]] = field(default_factory=list)
    thread: str = ""
    metadata: dict[str, Any] | None = None
    files: list[dict[str, Any]] = field(default_factory=list)

    @property
    def by_bot(self) -> bool:
        """Whether the app posted it."""
        return self.user == BOT_USER

    def as_json(self, metadata: bool = False) -> dict[str, Any]:
        """As Slack answers it."""
        shown: dict[str, Any] = {"type": "message", "user": self.user, "ts": self.ts, "text": self.text}
        if self.blocks:
            shown["blocks"] = self.blocks
        if self.thread:
            shown["thread_ts"] = self.thread
        if self.files:
            shown |= {"files": self.files, "subtype": "file_share"}
        if self.by_bot:
            shown |= {"bot_id": BOT_ID, "app_id": APP_ID}
        if metadata and self.metadata is not None:
            shown["metadata"] = self.metadata
        return shown


@dataclass
class Channel:
    """A channel or a direct message (`person` is whom it is with)."""

    id: str
    members: set[str]
    archived: bool = False
    private: bool = False
    person: str = ""
    messages: list[Message] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """As conversations.info answers it."""
        return {
            "id": self.id,
            "is_archived": self.archived,
            "is_im": bool(self.person),
            "is_private": self.private or bool(self.person),
            "is_member": BOT_USER in self.members,
            "user": self.person or None,
        }


@dataclass
class View:
    """A modal or a home tab."""

    id: str
    user: str
    view: dict[str, Any]
    version: int = 0

    def as_json(self) -> dict[str, Any]:
        """As Slack answers it, and puts it into interactions."""
        return self.view | {
            "id": self.id,
            "hash": f"{self.id}.{self.version}",
            "team_id": TEAM,
            "state": {"values": {}},
            "app_id": APP_ID,
        }


@dataclass(frozen=True)
class Whispered:
    """What one person alone was shown."""

    channel: str
    user: str
    text: str
    thread: str = ""


class Workspace:
    """All of it."""

    def __init__(self) -> None:
        self.people = {"U0ADA": "ada", "U0BOB": "bob", BOT_USER: "ptq"}
        self.channels = {CHANNEL: Channel(CHANNEL, {"U0ADA", "U0BOB", BOT_USER})}
        self.views: dict[str, View] = {}
        self.homes: dict[str, dict[str, Any]] = {}
        self.files: dict[str, dict[str, Any]] = {}
        self.contents: dict[str, bytes] = {}
        self.whispers: list[Whispered] = []
        self._numbers = itertools.count(1)
        self._triggers: dict[str, tuple[float, str]] = {}

    def number(self) -> int:
        """The next one, for names."""
        return next(self._numbers)

    def channel(self, name: str) -> Channel:
        """A channel that is there."""
        if name in self.people:  # posting to a person opens the direct message with them
            return self.direct(name)
        if name not in self.channels:
            raise Refused("channel_not_found")
        return self.channels[name]

    def direct(self, user: str) -> Channel:
        """The app's direct message with a person."""
        if user not in self.people:
            raise Refused("user_not_found")
        name = f"D0{user}"
        return self.channels.setdefault(name, Channel(name, {user, BOT_USER}, person=user))

    def writable(self, name: str, user: str = BOT_USER) -> Channel:
        """A channel that somebody may post into."""
        channel = self.channel(name)
        if channel.archived:
            raise Refused("is_archived")
        if user not in channel.members:
            raise Refused("not_in_channel")
        return channel

    def add(self, channel: Channel, user: str, text: str, thread: str = "", **parts: Any) -> Message:
        """A new message. Where the thread's root is gone it falls into the channel, as Slack does it."""
        number = self.number()
        root = self.at(channel, thread) if thread else None
        message = Message(channel.id, f"{1_700_000_000 + number}.{number:06d}", user, text, **parts)
        message.thread = (root.thread or root.ts) if root is not None else ""
        channel.messages.append(message)
        return message

    def at(self, channel: Channel, ts: str) -> Message | None:
        """A message by its name."""
        return next((message for message in channel.messages if message.ts == ts), None)

    def thread(self, channel: str, root: str) -> list[Message]:
        """A root and what hangs beneath it."""
        there = self.channel(channel)
        if self.at(there, root) is None:
            raise Refused("thread_not_found")
        return [message for message in there.messages if root in (message.ts, message.thread)]

    def remove(self, channel: str, ts: str) -> None:
        """Delete a message."""
        there = self.channel(channel)
        message = self.at(there, ts)
        if message is None:
            raise Refused("message_not_found")
        there.messages.remove(message)

    def trigger(self, user: str) -> str:
        """A trigger: of one use, and for three seconds."""
        name = f"{self.number()}.{TEAM}.trigger"
        self._triggers[name] = (time.monotonic(), user)
        return name

    def expire_triggers(self) -> None:
        """As if three seconds had gone by."""
        self._triggers = {name: (began - TRIGGER_SECONDS, user) for name, (began, user) in self._triggers.items()}

    def used(self, trigger: str) -> str:
        """Who made it; it counts no more."""
        began, user = self._triggers.pop(trigger, (None, ""))
        if began is None:
            raise Refused("invalid_trigger_id")
        if time.monotonic() - began >= TRIGGER_SECONDS:
            raise Refused("expired_trigger_id")
        return user

    def posted(self) -> Iterator[Message]:
        """What the app has posted, everywhere, in order."""
        for channel in self.channels.values():
            yield from (message for message in channel.messages if message.by_bot)
