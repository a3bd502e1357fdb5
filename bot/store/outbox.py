"""What threads have to show, and what the platforms show already. Only the newest card of a slot is ever delivered."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, and_, case, exists, func, literal, literal_column, or_, select, tuple_
from sqlalchemy.orm import aliased

from bot.cards.card import Attachment, Card
from bot.errors import NotFound
from bot.store.conversations import place_of
from bot.store.documents import Unreadable, read, unreadable, written
from bot.store.records import Delivery, Shown
from bot.store.tables import ConversationRow, InboxRow, Moment, OutboxRow
from bot.store.transaction import Changing, Transaction

AT_ONCE = datetime(1970, 1, 1, tzinfo=UTC)

_CARDS = TypeAdapter(Card)
_ATTACHMENTS = TypeAdapter(Attachment)
_Row = type[OutboxRow]


class Outbox(Transaction):
    """Reads what is shown, and what has to be."""

    def shown(self, conversation: int, slot: str) -> Shown | None:
        """The message of a slot."""
        row = self._slot(conversation, slot)
        return _as_read(row) if row is not None else None

    def shown_in(self, conversation: int) -> list[tuple[int, Shown]]:
        """All messages of a conversation in their order; with each the newest event when it was first wanted. Those
        that this release cannot read are left out."""
        statement = select(OutboxRow).where(OutboxRow.conversation_id == conversation).order_by(OutboxRow.id)
        return self._unreadable().others(
            lambda: self._session.scalars(statement),
            lambda row: (row.id, row.wanted),
            lambda row: (row.after_event, _as_read(row)),
        )

    def due(self, platform: str, at: datetime, limit: int) -> list[Delivery]:
        """What a platform has to show now: by conversation, then in the order of the messages.

        A conversation's messages are posted in their order: the first that waits, and no other until it is there or was
        given up. A message that is there already is drawn again whatever waits. One that this release cannot read is
        left out, and none waits for it.
        """
        unread = self._unreadable()

        def fetch() -> Iterable[Any]:
            return self._session.execute(
                select(OutboxRow, ConversationRow)
                .join(ConversationRow, ConversationRow.id == OutboxRow.conversation_id)
                .where(OutboxRow.platform == platform, *_may_come(unread), _is_due(at))
                .order_by(OutboxRow.conversation_id, OutboxRow.id)
                .limit(limit)
            )

        return unread.others(fetch, lambda found: (found[0].id, found[0].wanted), lambda found: _delivery(*found))

    def next_due(self, platform: str) -> datetime | None:
        """When the platform has something to show again; `AT_ONCE`, which is long past, when it has now; or never."""
        when: ColumnElement[datetime | None] = case(
            (_is_due(self.now), literal(AT_ONCE, Moment())), else_=OutboxRow.next_try_at
        )
        statement = select(func.min(when)).where(OutboxRow.platform == platform, *_may_come(self._unreadable()))
        return self._session.scalars(statement).one()

    def due_count(self, platform: str) -> int:
        """How many messages of a platform are not shown as they should be, apart from those that were given up."""
        statement = select(func.count()).where(OutboxRow.platform == platform, _waits(OutboxRow))
        return self._session.scalars(statement).one()

    def _unreadable(self) -> Unreadable:
        return unreadable(self._session, OutboxRow.__tablename__)

    def _slot(self, conversation: int, slot: str) -> OutboxRow | None:
        where = OutboxRow.conversation_id == conversation, OutboxRow.slot == slot
        return self._session.scalars(select(OutboxRow).where(*where)).one_or_none()


class ChangingOutbox(Outbox, Changing):
    """Says what has to be shown, and what became of it."""

    def show(self, conversation: int, slot: str, what: Card | Attachment, at: datetime, asks: str = "") -> None:
        """Let a slot show this. `asks` is the digest that a card asks about; empty when it asks nothing.

        What is wanted already is not delivered again. A message that was given up gets another chance with new content.
        """
        content = (_form(what), written(what))
        row = self._slot(conversation, slot)
        if row is None:
            self._session.add(self._first(conversation, slot, content, at, asks))
        elif (row.form, row.what, row.asks) == (*content, asks):
            return
        else:
            row.wanted += 1
            (row.form, row.what), row.changed_at = content, at
            if row.asks != asks:
                row.asks, row.asks_from = asks, row.wanted
            if row.given_up:
                row.given_up, row.failures = False, 0
                row.next_try_at = row.postponed_at = None
        self._session.flush()
        self.touched.add(conversation)

    def trying(self, shown_id: int, at: datetime) -> None:
        """A message is about to be posted: from now on it may be there without our knowing."""
        self._known(shown_id).tried_at = at
        self._session.flush()

    def delivered(self, shown_id: int, version: int, message: str, at: datetime) -> None:
        """The platform shows this version in this message. Newer ones that came meanwhile still wait."""
        row = self._known(shown_id)
        row.delivered = max(row.delivered, min(version, row.wanted))
        row.message = message
        # An older card asked something else: what is on the screen then counts for nothing.
        row.shown_asks = row.asks if row.delivered >= row.asks_from else ""
        row.failures, row.last_error, row.given_up = 0, "", False
        row.next_try_at = row.postponed_at = None
        row.changed_at = at
        self._session.flush()
        self.touched.add(row.conversation_id)

    def postponed(self, shown_id: int, error: str, next_try_at: datetime) -> None:
        """It did not work for now."""
        row = self._known(shown_id)
        row.failures += 1
        row.last_error = error
        row.next_try_at, row.postponed_at = next_try_at, self.now
        self._session.flush()
        self.touched.add(row.conversation_id)

    def undeliverable(self, shown_id: int, error: str) -> None:
        """It never will work: given up, and shown on the page only."""
        row = self._known(shown_id)
        row.given_up, row.last_error = True, error
        self._session.flush()
        self.touched.add(row.conversation_id)

    def forget_message(self, shown_id: int) -> None:
        """The message is not there any more: what is wanted will be posted as if it never had been."""
        row = self._known(shown_id)
        row.message, row.delivered, row.shown_asks, row.tried_at = None, 0, "", None
        row.next_try_at = row.postponed_at = None
        self._session.flush()
        self.touched.add(row.conversation_id)

    def _first(self, conversation: int, slot: str, content: tuple[str, str], at: datetime, asks: str) -> OutboxRow:
        platform = self._session.scalar(select(ConversationRow.platform).where(ConversationRow.id == conversation))
        if platform is None:
            raise NotFound("no_conversation", f"Thread {conversation} is not known.")
        return OutboxRow(
            conversation_id=conversation,
            slot=slot,
            platform=platform,
            after_event=self._session.scalar(select(func.max(InboxRow.id))) or 0,
            wanted=1,
            delivered=0,
            asks=asks,
            asks_from=1,
            shown_asks="",
            failures=0,
            last_error="",
            given_up=False,
            changed_at=at,
            form=content[0],
            what=content[1],
        )

    def _known(self, shown_id: int) -> OutboxRow:
        row = self._session.get(OutboxRow, shown_id)
        if row is None:
            raise NotFound("no_message", f"Message {shown_id} is not known.")
        return row


def _waits(row: _Row) -> ColumnElement[bool]:
    """Whether a message is not shown as it should be. In the very words of the index of those messages."""
    return and_(row.wanted > row.delivered, row.given_up == literal_column("0"))


def _may_come(unread: Unreadable) -> list[ColumnElement[bool]]:
    """Whether a message is not shown as it should be, and no other has to be there first."""
    return [_waits(OutboxRow), *_known_to_read(OutboxRow, unread), _first_unposted(unread)]


def _known_to_read(row: _Row, unread: Unreadable) -> list[ColumnElement[bool]]:
    """That a message is none of those that could not be read. As content changes, it gets another chance."""
    return [tuple_(row.id, row.wanted).not_in(sorted(unread.known))] if unread.known else []


def _first_unposted(unread: Unreadable) -> ColumnElement[bool]:
    """Whether a message is posted already, or is the first of its conversation that has to be."""
    earlier = aliased(OutboxRow)
    blocked = exists().where(
        earlier.platform == OutboxRow.platform,
        earlier.conversation_id == OutboxRow.conversation_id,
        earlier.id < OutboxRow.id,
        earlier.message.is_(None),
        _waits(earlier),
        *_known_to_read(earlier, unread),
    )
    return or_(OutboxRow.message.is_not(None), ~blocked)


def _is_due(at: datetime) -> ColumnElement[bool]:
    """Whether nothing says to wait. A time that was set before the clock was set back says nothing."""
    return or_(OutboxRow.next_try_at.is_(None), OutboxRow.next_try_at <= at, OutboxRow.postponed_at > at)


def _form(what: Card | Attachment) -> str:
    return "card" if isinstance(what, Card) else "attachment"


def _delivery(row: OutboxRow, conversation: ConversationRow) -> Delivery:
    return Delivery(
        shown=_as_read(row),
        place=place_of(conversation),
        tried=row.message is None and row.tried_at is not None,
        failures=row.failures,
    )


def _as_read(row: OutboxRow) -> Shown:
    where = f"The message {row.slot} of thread {row.conversation_id}"
    what: Card | Attachment = (
        read(_CARDS, row.what, where) if row.form == "card" else read(_ATTACHMENTS, row.what, where)
    )
    return Shown(
        id=row.id,
        conversation=row.conversation_id,
        slot=row.slot,
        what=what,
        wanted=row.wanted,
        delivered=row.delivered,
        message=row.message,
        changed_at=row.changed_at,
        error=row.last_error,
        given_up=row.given_up,
    )
