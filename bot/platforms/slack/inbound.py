"""What Slack delivers, as events of the core. Pure: names of people come from outside.

Every event is named so that each delivery of it has the same name: words by their message, which may come as a message
and as a mention; everything else by its trigger, which belongs to one click.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.cards.card import Action
from bot.conversation.person import Person, Place
from bot.platforms.contract import Clicked, Event, Said
from bot.platforms.slack.adapter import NAME
from bot.platforms.slack.calls import Identity
from bot.platforms.slack.whispering import HOME

Body = dict[str, Any]

_LONGEST = 100_000
_SPOKEN = frozenset({"", "file_share", "thread_broadcast"})
_LINK = re.compile(r"<([^<>|]*)(?:\|([^<>]*))?>")
_QUOTES = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "`": None, "\N{NO-BREAK SPACE}": " "})


@dataclass(frozen=True)
class Words:
    """A message of a person. `mentions` says that it speaks to the bot by name; `parent` who opened its thread."""

    user: str
    team: str
    place: Place
    text: str
    mentions: bool
    direct: bool
    parent: str | None
    key: str

    def event(self, name: str, at: datetime) -> Event:
        """As the core takes it."""
        person = Person(id=f"{NAME}:{self.user}", name=name[:200])
        return Event(key=self.key, person=person, place=self.place, at=at, what=Said(text=self.text))


@dataclass(frozen=True)
class Origin:
    """Who did something, and where. `team` is the person's own."""

    user: str
    name: str
    team: str
    place: Place
    key: str
    reply_to: str = ""

    def event(self, what: Any, at: datetime) -> Event:
        """As the core takes it."""
        person = Person(id=f"{NAME}:{self.user}", name=self.name[:200])
        return Event(key=self.key, person=person, place=self.place, at=at, what=what, reply_to=self.reply_to)

    def clicked(self, action: Action, at: datetime) -> Event:
        """A button."""
        return self.event(Clicked(action=action), at)


def words_of(event: Body, me: Identity) -> Words | None:
    """A message as words of a person; None for what is none: edits, joins, and what programs say."""
    if (event.get("subtype") or "") not in _SPOKEN or event.get("bot_id") or not event.get("user"):
        return None
    if event["user"] == me.user or not event.get("ts") or not event.get("channel"):
        return None
    raw = str(event.get("text") or "")
    thread = str(event.get("thread_ts") or "")
    text = spoken(raw, me.user)
    return Words(
        user=str(event["user"]),
        team=str(event.get("user_team") or event.get("team") or ""),
        place=Place(platform=NAME, channel=str(event["channel"]), thread=thread),
        text=text[:_LONGEST],
        mentions=f"<@{me.user}" in raw,
        direct=event.get("channel_type") == "im",
        parent=event.get("parent_user_id"),
        key=f"{NAME}:message:{event['channel']}:{event['ts']}"[:300],
    )


def origin_of(body: Body) -> Origin:
    """Who clicked or sent a form, and where."""
    user, container = body.get("user") or {}, body.get("container") or {}
    channel = str((body.get("channel") or {}).get("id") or container.get("channel_id") or HOME)
    message = body.get("message") or {}
    thread = str(container.get("thread_ts") or message.get("thread_ts") or "")
    action = (body.get("actions") or [{}])[0]
    named = body.get("trigger_id") or f"{channel}:{container.get('message_ts', '')}:{action.get('action_ts', '')}"
    return Origin(
        user=str(user.get("id", "")),
        name=str(user.get("name") or user.get("username") or user.get("id", "")),
        team=str(user.get("team_id") or (body.get("team") or {}).get("id") or ""),
        place=Place(platform=NAME, channel=channel, thread=thread if channel != HOME else ""),
        key=f"{NAME}:trigger:{named}"[:300],
    )


def command_origin(body: Body) -> Origin:
    """Who gave a slash command, and where."""
    return Origin(
        user=str(body.get("user_id", "")),
        name=str(body.get("user_name") or body.get("user_id", "")),
        team=str(body.get("team_id", "")),
        place=Place(platform=NAME, channel=str(body.get("channel_id", ""))),
        key=f"{NAME}:trigger:{body.get('trigger_id', '')}"[:300],
        reply_to=str(body.get("response_url", "")),
    )


def workspace_of(body: Body) -> tuple[str, str]:
    """The workspace and the organisation that a delivery is for."""
    team, enterprise = body.get("team") or {}, body.get("enterprise") or {}
    return (
        str(body.get("team_id") or (team.get("id") if isinstance(team, dict) else team) or ""),
        str(body.get("enterprise_id") or (enterprise.get("id") if isinstance(enterprise, dict) else "") or ""),
    )


def spoken(text: str, bot: str) -> str:
    """A message's text as the person typed it: without the bot's name, and without Slack's marks around links."""

    def typed(found: re.Match[str]) -> str:
        target, label = found[1], found[2]
        if target.startswith("@"):
            return "" if target[1:] == bot else f"@{label or target[1:]}"
        if target.startswith("#"):
            return f"#{label or target[1:]}"
        if target.startswith("!"):
            return f"@{label or target[1:]}"
        return label if label is not None else target

    return html.unescape(_LINK.sub(typed, text)).translate(_QUOTES).strip()
