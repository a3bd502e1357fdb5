"""Text from people and models on its way to Slack: it can neither ping nor link nor look like something else.

Nothing of it ever goes through mrkdwn. Where a single string is taken, it is plain text; everything else is rich text,
in which nothing is parsed.
"""

from __future__ import annotations

import re
from typing import Any

from bot.cards.texts import plain as visible

Part = dict[str, Any]
"""A block of Block Kit, or a part of one."""

ELLIPSIS = "…"
EMPTY = "–"
"""Stands where Slack wants a letter and there is none."""

PING = "<!"
"""How every mention of a whole channel begins."""

_NO_PING = "< !"
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_PERSON = re.compile(r"slack:(?P<id>[UW][A-Z0-9]{1,30})")


def length(text: str) -> int:
    """Characters as Slack may count them: those beyond the basic plane are two."""
    return len(text) if text.isascii() else len(text) + sum(letter > "\uffff" for letter in text)


def cut(text: str, most: int) -> str:
    """The text, or its beginning and a mark: `most` characters at most."""
    if length(text) <= most:
        return text
    return f"{begun(text, most - 1)}{ELLIPSIS}" if most > 0 else ""


def begun(text: str, most: int) -> str:
    """As much of the text's beginning as `most` characters hold, without a mark."""
    most = max(most, 0)
    kept = text[:most]
    while length(kept) > most:
        kept = kept[: -max((length(kept) - most + 1) // 2, 1)]
    return kept


def enough(text: str, most: int) -> str:
    """As much of a text as is looked at where `most` characters have room: made visible, two of them may become one."""
    return text[: 2 * max(most, 0) + 2]


def escaped(text: str, most: int) -> str:
    """Text for the one place that Slack parses, a message's own: control characters escaped, none of them cut."""
    left = most
    kept: list[str] = []
    for letter in visible(enough(text, most)):
        shown = _ESCAPES.get(letter, letter)
        left -= length(shown)
        if left < 1:
            return f"{''.join(kept)}{ELLIPSIS}"
        kept.append(shown)
    return "".join(kept)


def single(text: str) -> str:
    """Text for a place that takes one string: a ping is broken by a blank, and all else stays as it was."""
    return visible(text).replace(PING, _NO_PING)


def plain(text: str, most: int) -> Part:
    """A plain text object. It is never blank: Slack refuses that."""
    shown = cut(single(enough(text, most)), most)
    return {"type": "plain_text", "text": shown if shown.strip() else EMPTY, "emoji": False}


def slack_id(person: str) -> str | None:
    """Slack's own id of a person, or None for one who is not of Slack."""
    found = _PERSON.fullmatch(person)
    return found["id"] if found else None
