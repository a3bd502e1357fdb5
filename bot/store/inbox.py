"""What people did, from when it came in until it was acted upon."""

from __future__ import annotations

from datetime import datetime

from pydantic import TypeAdapter
from sqlalchemy import select
from sqlalchemy.dialects.sqlite import insert

from bot.conversation.state import asked_at
from bot.errors import BotError, NotFound
from bot.platforms.contract import Event, Receipt, Said
from bot.store import search
from bot.store.conversations import Conversations
from bot.store.documents import clean, read, unreadable, written
from bot.store.records import Outcome, StoredEvent
from bot.store.tables import InboxRow, OutboxRow
from bot.store.transaction import Changing, Transaction

_EVENTS = TypeAdapter(Event)
_OUTCOMES = TypeAdapter(Outcome)


class Inbox(Transaction):
    """Reads events."""

    def event(self, inbox_id: int) -> StoredEvent | None:
        """The event of this inbox row. Raises RowUnreadable."""
        row = self._session.get(InboxRow, inbox_id)
        return _as_read(row) if row is not None else None

    def waiting_events(self, limit: int) -> list[StoredEvent]:
        """Events that were not acted upon yet, in the order in which they came in.

        One that this release cannot read waits for a release that can, and keeps no other waiting.
        """
        unread = unreadable(self._session, InboxRow.__tablename__)

        def fetch() -> list[InboxRow]:
            statement = select(InboxRow).where(InboxRow.outcome.is_(None)).order_by(InboxRow.id).limit(limit)
            if unread.known:
                statement = statement.where(InboxRow.id.not_in([row for row, _ in unread.known]))
            return list(self._session.scalars(statement))

        # What came in never changes: all are of one version.
        return unread.others(fetch, lambda row: (row.id, 0), _as_read)

    def events_of(self, conversation: int) -> list[StoredEvent]:
        """All events of a conversation, in the order in which they came in, but for those that this release cannot
        read."""
        statement = select(InboxRow).where(InboxRow.conversation_id == conversation).order_by(InboxRow.id)
        unread = unreadable(self._session, InboxRow.__tablename__)
        return unread.others(lambda: self._session.scalars(statement), lambda row: (row.id, 0), _as_read)


class ChangingInbox(Inbox, Conversations, Changing):
    """Takes events in, and settles them."""

    def receive(self, event: Event, at: datetime) -> Receipt:
        """Keep an event. One whose key is known is kept once, however often it comes."""
        conversation, seen = self._spoken_to(event)
        statement = (
            insert(InboxRow)
            .values(
                key=event.key,
                received_at=at,
                seen=seen,
                conversation_id=conversation,
                event=written(event),
            )
            .on_conflict_do_nothing(index_elements=[InboxRow.key])
            .returning(InboxRow.id)
        )
        new = self._session.scalar(statement)
        if new is None:
            known = self._session.scalars(select(InboxRow.id).where(InboxRow.key == clean(event.key))).one()
            return Receipt(id=known, new=False)
        if conversation is not None:
            self.touched.add(conversation)
        return Receipt(id=new, new=True)

    def settle(self, inbox_id: int, outcome: Outcome, conversation: int | None, at: datetime) -> None:
        """Say what came of an event, and to which conversation it belongs. Raises BotError when it was said already."""
        row = self._session.get(InboxRow, inbox_id)
        if row is None:
            raise NotFound("no_event", f"Event {inbox_id} is not known.")
        if row.outcome is not None:
            raise BotError("settled_before", f"Event {inbox_id} was acted upon already.")
        row.outcome, row.settled_at = written(outcome), at
        row.conversation_id = conversation
        if conversation is not None:
            event = _as_read(row).event
            if isinstance(event.what, Said):
                search.add_words(self._session, conversation, event.what.text)
            self.touched.add(conversation)
        self._session.flush()

    def _spoken_to(self, event: Event) -> tuple[int | None, str]:
        """The conversation in whose thread something was said, and the digest of what it asked just then.

        The digest is empty unless the card that asks had been delivered, and where the words were written while
        something else was asked: nobody says yes to what was not there. Buttons and forms say themselves what they
        mean.
        """
        said = event.what
        if not isinstance(said, Said):
            return None, ""
        conversation = self.conversation_at(event.place)
        asked = asked_at(conversation.state) if conversation is not None else None
        if conversation is None or asked is None:
            return conversation.id if conversation is not None else None, ""
        checkpoint, digest = asked
        if said.asked not in {"", digest}:
            return conversation.id, ""
        # Command and result ask about the same digest, each in a message of its own.
        shown = select(OutboxRow.id).where(
            OutboxRow.conversation_id == conversation.id,
            OutboxRow.slot == f"{checkpoint}:{conversation.state.step}",
            OutboxRow.shown_asks == digest,
        )
        seen = self._session.scalars(shown.limit(1)).first() is not None
        return conversation.id, digest if seen else ""


def _as_read(row: InboxRow) -> StoredEvent:
    where = f"Event {row.id}"
    return StoredEvent(
        id=row.id,
        event=read(_EVENTS, row.event, where),
        received_at=row.received_at,
        seen=row.seen,
        conversation=row.conversation_id,
        outcome=read(_OUTCOMES, row.outcome, where) if row.outcome is not None else None,
    )
