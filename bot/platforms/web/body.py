"""Sent forms, read within bounds."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request

from bot.platforms.web.problems import PageProblem

# A text of the longest kind, every character of it written as four escaped bytes, and some fields beside it.
LONGEST_BODY_BYTES = 1_400_000
LONGEST_TEXT = 100_000
_MOST_FIELDS = 500
_KEY = re.compile("[A-Za-z0-9_-]{8,80}")


class Sent:
    """The fields of a sent form. Ends of lines are `\\n`, whatever the browser made of them."""

    def __init__(self, fields: Mapping[str, tuple[str, ...]]) -> None:
        self.fields = fields

    def one(self, name: str) -> str:
        """A field's value; empty when it was not sent."""
        return self.fields.get(name, ("",))[0]

    def key(self, *meant: str) -> str:
        """The event's key: the form's own, together with what was sent.

        A form that a browser brought back from its history has its old key; with other words it is another event.
        """
        own = self.one("key")
        if _KEY.fullmatch(own) is None:
            raise PageProblem(400, "This form is not one of this page.", "Load the page again and send it from there.")
        content = hashlib.sha256("\x00".join(meant).encode("utf-8", "replace")).hexdigest()[:16]
        return f"web:{own}:{content}"


async def read_sent(request: Request) -> Sent:
    """The form of a request. Raises PageProblem for what no form of this page can be."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise PageProblem(400, "This is not a form of this page.", "Load the page again and send it from there.")
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > LONGEST_BODY_BYTES:
            raise too_long()
    try:
        pairs = parse_qsl(
            content.decode("ascii"), keep_blank_values=True, errors="replace", max_num_fields=_MOST_FIELDS
        )
    except ValueError:
        raise PageProblem(400, "This form is damaged.", "Load the page again and send it from there.") from None
    fields: dict[str, tuple[str, ...]] = {}
    for name, value in pairs:
        fields[name] = (*fields.get(name, ()), value.replace("\r\n", "\n").replace("\r", "\n"))
    return Sent(fields)


def too_long() -> PageProblem:
    """What is said of a text that is longer than the bot reads."""
    return PageProblem(
        413,
        f"This is longer than the {LONGEST_TEXT:,} characters that the bot reads in one message.",
        "Send a shorter text; a long list of layers is better set in the edit form.",
    )
