"""What the page reads. The service gives it; nothing here writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from bot.cards.card import Attachment
from bot.cards.form import Form
from bot.conversation.person import Person
from bot.store.records import Conversation, HistoryQuery, HistoryRow, Shown, StoredEvent


class Library(Protocol):
    """The database and the runner as the page sees them.

    All raise StoreError when the database cannot answer; what asks the runner raises NotFound, RunnerError, RunnerAway
    or RunnerForeign before it gives a first byte.
    """

    async def check(self) -> None:
        """Whether the database answers at all; for supervisors."""
        ...

    async def conversation(self, conversation: int) -> Conversation | None:
        """One conversation of any platform."""
        ...

    async def thread(self, conversation: int) -> Sequence[StoredEvent | Shown]:
        """What was said and shown in it, in order."""
        ...

    async def history(self, query: HistoryQuery) -> Sequence[HistoryRow]:
        """Conversations, newest first."""
        ...

    async def event(self, inbox: int) -> StoredEvent | None:
        """One thing that a person did, with what came of it."""
        ...

    async def file(self, conversation: int, attachment: Attachment) -> bytes:
        """A document in the format that its name ends in. Raises NotFound."""
        ...

    async def form(self, conversation: int) -> Form | None:
        """What may be changed now; None when nothing may."""
        ...

    async def run_log(self, conversation: int) -> AsyncIterator[bytes]:
        """The output of the conversation's run so far, in pieces."""
        ...

    async def run_file(self, conversation: int, name: str) -> bytes:
        """A document of the conversation's run, by the name that the runner gives it."""
        ...

    def may_decide(self, person: Person, row: HistoryRow) -> bool:
        """Whether a thread that waits for a decision may wait for this person."""
        ...
