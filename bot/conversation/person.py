"""Who speaks, and where."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from schemas.base import Document


class Person(Document):
    """Somebody as their platform knows them. `id` carries the platform: "slack:U123", "web:ada"."""

    id: Annotated[str, Field(min_length=1, max_length=200)]
    name: Annotated[str, Field(max_length=200)]
    is_bot: bool = False


class Place(Document):
    """Where something was said. `thread` is the platform's own name of the thread; empty outside any."""

    platform: str
    channel: str
    thread: str = ""
