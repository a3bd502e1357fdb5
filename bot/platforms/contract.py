"""What a platform is to the rest: events in, cards out. Nothing else knows a platform.

`tests/platforms/scenarios.py` lists what every adapter must do.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Protocol

from pydantic import Field

from bot.cards.card import Action, Card
from bot.conversation.person import Person, Place
from bot.conversation.request import Changes
from schemas.base import Document


class Said(Document):
    """Words. Outside a thread they are a request; in a thread they speak to its conversation.

    `asked` is the digest that the platform showed as asked when they were written, where it can tell.
    """

    kind: Literal["said"] = "said"
    text: Annotated[str, Field(max_length=100_000)]
    asked: Annotated[str, Field(max_length=64)] = ""


class Clicked(Document):
    """A button."""

    kind: Literal["clicked"] = "clicked"
    action: Action


class Edited(Document):
    """A sent edit form. `digest` is that of the card from which the form was opened."""

    kind: Literal["edited"] = "edited"
    conversation: int
    digest: str = ""
    changes: Changes


class Event(Document):
    """One thing that a person did on a platform.

    `key` is the platform's own name of it, the same however often it is delivered. `reply_to` is whatever the adapter
    needs to whisper back.
    """

    key: Annotated[str, Field(min_length=1, max_length=300)]
    person: Person
    place: Place
    at: datetime
    what: Annotated[Said | Clicked | Edited, Field(discriminator="kind")]
    reply_to: str = ""


class Receipt(Document):
    """An event is kept: whatever is killed now, it will be acted upon. `new` is False for one that was known."""

    id: int
    new: bool


class Inlet(Protocol):
    """Where adapters hand over what people do."""

    async def receive(self, event: Event) -> Receipt:
        """Keep the event, then act on it soon. Returns once it is committed. Raises StoreError when it is not kept."""
        ...


class Platform(Protocol):
    """Where cards go. Messages are named by strings of the platform's own.

    Every delivery has a `key`: it may be asked for twice, when a process died after the platform had accepted it and
    before that was written down. `find` tells. All raise PlatformAway (later may help), SurfaceGone (the message or
    thread is not there) or PlatformDenied (it never will).
    """

    name: str
    pace_seconds: float
    """The least time between two updates of one message. The newest card wins, and the last one always arrives."""

    async def thread(self, place: Place, key: str, title: str) -> str:
        """Open the thread of a new conversation, or give back the one that `key` opened already."""
        ...

    async def post(self, place: Place, card: Card, key: str) -> str:
        """Post a card into the place's thread; the message's name."""
        ...

    async def update(self, place: Place, message: str, card: Card) -> str:
        """Draw a card again in its message; the name of the message that now shows it (another one if it had to be)."""
        ...

    async def file(self, place: Place, name: str, content: bytes, key: str) -> str:
        """Post a file into the place's thread; its name on the platform."""
        ...

    async def find(self, place: Place, key: str) -> str | None:
        """The message or file that an earlier delivery with this key made, or None."""
        ...

    async def whisper(self, event: Event, text: str) -> None:
        """Tell only the person who did this. Best effort: losing it loses nothing that was promised."""
        ...
