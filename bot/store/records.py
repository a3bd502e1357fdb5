"""What the store keeps, as its readers see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from bot.cards.card import Attachment, Card
from bot.conversation.person import Person, Place
from bot.conversation.state import State
from bot.platforms.contract import Event
from schemas.base import Document


@dataclass(frozen=True)
class Conversation:
    """One thread. `place.thread` is empty until the platform has opened it. `version` grows with every saved state."""

    id: int
    place: Place
    requester: Person
    state: State
    version: int
    created_at: datetime
    changed_at: datetime


class Outcome(Document):
    """What came of an event. `text` is what the person was told; empty when the cards say it."""

    verdict: Literal["proceeded", "refused", "ignored"]
    text: str = ""


@dataclass(frozen=True)
class StoredEvent:
    """One inbox row.

    `seen` is the digest of the card that asked for a decision and had been delivered when the event came in: what the
    person can have seen. `outcome` is None until the event was acted upon.
    """

    id: int
    event: Event
    received_at: datetime
    seen: str
    conversation: int | None
    outcome: Outcome | None


@dataclass(frozen=True)
class Shown:
    """One message of a thread: what it has to show, and what the platform shows already.

    `slot` names it within its conversation ("plan:3"); `wanted` grows with every change of `what`, `delivered` follows.
    `error` says why the platform does not show it as it should; `given_up` that it never will.
    """

    id: int
    conversation: int
    slot: str
    what: Card | Attachment
    wanted: int
    delivered: int
    message: str | None
    changed_at: datetime
    error: str = ""
    given_up: bool = False


@dataclass(frozen=True)
class Delivery:
    """A message that a platform does not show yet as it should.

    `tried` is True when an earlier attempt to post may have reached the platform.
    """

    shown: Shown
    place: Place
    tried: bool
    failures: int

    @property
    def key(self) -> str:
        """The delivery's name, the same in every attempt."""
        return f"ptq-{self.shown.conversation}-{self.shown.slot}"


@dataclass(frozen=True)
class HistoryQuery:
    """Which conversations. Empty fields do not restrict; texts match anywhere, without regard to case.

    `state` is a kind of state ("running"), an ending ("accepted"), or "open" for all that have not ended. Newest first,
    `limit` at a time; `before` is the id after which a page goes on.
    """

    text: str = ""
    model: str = ""
    scheme: str = ""
    person: str = ""
    state: str = ""
    since: datetime | None = None
    until: datetime | None = None
    before: int | None = None
    limit: int = 50


@dataclass(frozen=True)
class HistoryRow:
    """A conversation in a list. Sizes in bytes."""

    id: int
    place: Place
    requester: Person
    model: str
    scheme: str
    runner: str
    state: str
    created_at: datetime
    changed_at: datetime
    run: str | None
    output_dir: str | None
    size_bytes: int | None
    original_size_bytes: int | None
    perplexity: float | None
    original_perplexity: float | None
