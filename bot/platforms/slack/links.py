"""Addresses of threads and messages. They are made here: asking Slack for each would be a call per line of a list."""

from __future__ import annotations

from collections.abc import Sequence

from bot.conversation.person import Place
from bot.platforms.slack.calls import Identity
from bot.store.records import Shown, StoredEvent


def thread_link(me: Identity, place: Place) -> str:
    """Where a thread is; empty for one that is not of Slack, or not open yet."""
    if place.platform != "slack" or not place.thread:
        return ""
    channel, _, moved = place.thread.partition("/")
    return _link(me, channel, moved) if moved else _link(me, place.channel, place.thread)


def newest_link(me: Identity, entries: Sequence[StoredEvent | Shown]) -> str:
    """Where the newest message of a thread is; empty while there is none."""
    for entry in reversed(entries):
        if isinstance(entry, Shown) and entry.message is not None:
            channel, _, ts = entry.message.partition("/")
            if ts:
                return _link(me, channel, ts)
    return ""


def _link(me: Identity, channel: str, ts: str) -> str:
    return f"{me.url.rstrip('/')}/archives/{channel}/p{ts.replace('.', '')}" if me.url else ""
