"""An order that changes no plan."""

from __future__ import annotations

from typing import Literal

from schemas.base import Document
from schemas.runs import QueuePriority

QueueOrder = Literal["pause", "drain", "open"]


class Order(Document):
    """One order; only the fields of its kind say something.

    `runner` is a name or a label as people say it; empty: that of the conversation, or the only one. `offer` counts
    from 1, and `about` are the words that name one of several offers instead.
    """

    kind: Literal["queue", "priority", "offer"]
    queue: QueueOrder | None = None
    runner: str = ""
    reason: str = ""
    priority: QueuePriority | None = None
    offer: int = 1
    about: str = ""
