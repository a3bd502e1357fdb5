"""Rich text, which is shown letter by letter: nothing in it is parsed."""

from __future__ import annotations

from itertools import pairwise

from bot.cards.texts import plain as visible
from bot.platforms.slack.escape import PING, Part


def words(text: str, *, bold: bool = False, italic: bool = False, code: bool = False) -> list[Part]:
    """Words. What looks like a ping comes in two parts, which read as one."""
    style = {name: True for name, on in (("bold", bold), ("italic", italic), ("code", code)) if on}
    return [{"type": "text", "text": part, **({"style": style} if style else {})} for part in apart(visible(text))]


def apart(text: str) -> list[str]:
    """The text in parts none of which pings; together they are the text."""
    ends = [0]
    while (found := text.find(PING, ends[-1])) >= 0:
        ends.append(found + 1)
    ends.append(len(text))
    return [text[start:end] for start, end in pairwise(ends) if start < end]


def line(*parts: list[Part]) -> Part:
    """One paragraph."""
    elements = [element for part in parts for element in part]
    return {"type": "rich_text_section", "elements": elements or words(" ")}


def preformatted(text: str) -> Part:
    """Text in a fixed width."""
    return {"type": "rich_text_preformatted", "elements": words(text) or words(" ")}


def rich(*elements: Part) -> Part:
    """A block of paragraphs."""
    return {"type": "rich_text", "elements": list(elements)}


def user(slack_id: str) -> list[Part]:
    """Pings one person, by an id that Slack gave."""
    return [{"type": "user", "user_id": slack_id}]


def link(text: str, url: str) -> list[Part]:
    """Words that lead somewhere. Only addresses of our own making may be given."""
    return [{"type": "link", "url": url, "text": text}]
