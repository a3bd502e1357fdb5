"""What Slack's adapter reads. The service gives it; nothing here writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bot.cards.form import Form
from bot.conversation.person import Person, Place
from bot.store.records import Conversation, HistoryQuery, HistoryRow, Shown, StoredEvent


class Library(Protocol):
    """The database as Slack needs it. All raise StoreError when it cannot answer."""

    async def conversation(self, conversation: int) -> Conversation | None:
        """One conversation of any platform."""
        ...

    async def at(self, place: Place) -> Conversation | None:
        """The conversation of a thread."""
        ...

    async def thread(self, conversation: int) -> Sequence[StoredEvent | Shown]:
        """What was said and shown in it, in order."""
        ...

    async def history(self, query: HistoryQuery) -> Sequence[HistoryRow]:
        """Conversations, newest first."""
        ...

    async def form(self, conversation: int) -> Form | None:
        """What may be changed now; None when nothing may."""
        ...

    def may_decide(self, person: Person, row: HistoryRow) -> bool:
        """Whether a thread that waits for a decision may wait for this person."""
        ...

    def queues(self) -> Sequence[str]:
        """How busy each runner is, in words, as far as that is known now."""
        ...
