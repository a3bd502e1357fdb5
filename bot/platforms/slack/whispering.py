"""What one person alone is told."""

from __future__ import annotations

import aiohttp

from bot.errors import PlatformAway, PlatformError
from bot.platforms.contract import Event
from bot.platforms.slack.calls import Body, Calls
from bot.platforms.slack.escape import escaped, slack_id
from bot.platforms.slack.rich import line, rich, words

_TEXT = 3_000
_SECONDS = 10.0
HOME = "home"
"""Stands for a channel where somebody acted outside any."""


async def whisper(calls: Calls, event: Event, text: str) -> None:
    """Tell the person of an event. Raises PlatformError."""
    person = slack_id(event.person.id)
    if person is not None:
        await tell(calls, person, text, event.place.channel, event.place.thread, event.reply_to)


async def tell(calls: Calls, person: str, text: str, channel: str = HOME, thread: str = "", reply_to: str = "") -> None:
    """Tell a person something where they are: by the address that came with their command, in the thread, or directly.

    Raises PlatformError.
    """
    shown: Body = {"text": escaped(text, _TEXT), "blocks": [rich(line(words(text[:_TEXT])))]}
    if reply_to and await _responded(reply_to, shown):
        return
    if channel not in (HOME, "") and not channel.startswith("D"):
        try:
            hangs = {"thread_ts": thread} if thread and "/" not in thread else {}
            await calls.call("chat.postEphemeral", channel=channel, user=person, **shown, **hangs)
        except PlatformAway:
            raise
        except PlatformError:
            pass  # the person, or the bot, is not in the channel: directly, then
        else:
            return
    hangs = {"thread_ts": thread} if channel.startswith("D") and thread and "/" not in thread else {}
    direct = await calls.call("conversations.open", users=person)
    await calls.call(
        "chat.postMessage", channel=direct["channel"]["id"], unfurl_links=False, unfurl_media=False, **shown, **hangs
    )


async def _responded(url: str, shown: Body) -> bool:
    """Whether the address of a command took it; it does five times in half an hour."""
    body = {"response_type": "ephemeral", "replace_original": False, **shown}
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.post(url, json=body) as answer:
            return answer.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False
