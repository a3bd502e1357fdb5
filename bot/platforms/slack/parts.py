"""The smallest parts of a message. Text from people and models goes where Slack parses nothing: it can neither ping nor
link nor look like something else."""

from __future__ import annotations

from typing import Any

Block = dict[str, Any]
"""One block of Block Kit, or a part of one."""

_ELLIPSIS = "…"
_PING = "<!"
_JOINER = "\N{WORD JOINER}"


def cut(text: str, most: int) -> str:
    """The text, cut with a mark where it is longer."""
    return text if len(text) <= most else f"{text[: most - 1]}{_ELLIPSIS}"


def escaped(text: str) -> str:
    """Text for the one place where Slack parses it, a message's own: nothing of it can ping or link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def whole(text: str) -> str:
    """Text for a place that takes a single string. A ping is broken by a mark that nobody sees."""
    return text.replace(_PING, f"<{_JOINER}!")


def plain(text: str, most: int) -> Block:
    """A plain text object. It is never empty: Slack refuses that."""
    return {"type": "plain_text", "text": cut(whole(text), most) or "-", "emoji": False}


def words(text: str, *, bold: bool = False, italic: bool = False, code: bool = False) -> list[Block]:
    """Words in rich text, which is shown letter by letter. What looks like a ping comes in two parts that read as one."""
    style = {name: True for name, on in (("bold", bold), ("italic", italic), ("code", code)) if on}
    first, *others = text.split(_PING)
    parts = [first, *(f"!{other}" for other in others)]
    joined = [f"{part}<" if number < len(others) else part for number, part in enumerate(parts)]
    return [{"type": "text", "text": part, **({"style": style} if style else {})} for part in joined if part]


def line(*parts: list[Block]) -> Block:
    """One paragraph of rich text."""
    elements = [element for part in parts for element in part]
    return {"type": "rich_text_section", "elements": elements or words(" ")}


def rich(*elements: Block) -> Block:
    """A block of rich text."""
    return {"type": "rich_text", "elements": list(elements)}


def preformatted(text: str) -> Block:
    """Text in a fixed width, letter by letter."""
    return {"type": "rich_text_preformatted", "elements": words(text) or words(" ")}


def user(slack_id: str) -> list[Block]:
    """Pings one person, by an id that Slack gave."""
    return [{"type": "user", "user_id": slack_id}]
