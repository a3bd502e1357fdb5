"""The tables.

What lists and filters need lies in `conversations`, a narrow table; the states, which are wide and read one at a time,
lie beside it. Artifacts, verdicts and audit are only ever added to: triggers refuse everything else, whoever asks.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import DDL, Dialect, ForeignKey, Index, Integer, MetaData, Text, UniqueConstraint, event, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

from bot.store.documents import clean

LARGEST_ID = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Moment(TypeDecorator[datetime]):
    """A time of day: microseconds since 1970 in UTC, as an integer. Naive times are refused."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        """To microseconds."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        return (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """From microseconds, aware, in UTC."""
        return None if value is None else _EPOCH + value * _MICROSECOND


class Words(TypeDecorator[str]):
    """Text from outside, with what UTF-8 cannot hold replaced."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """To text that the database can hold."""
        return None if value is None else clean(value)


class Count(TypeDecorator[int]):
    """A whole number. Those that 64 bits cannot hold become the nearest that they can: no row has such an id."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        """To 64 bits."""
        return None if value is None else max(-LARGEST_ID, min(value, LARGEST_ID))


class Base(DeclarativeBase):
    """All tables of the store."""

    metadata = MetaData(
        naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s", "uq": "uq_%(table_name)s_%(column_0_N_name)s"}
    )
    type_annotation_map = {datetime: Moment, str: Words, int: Count}


class Setting(Base):
    """What the database knows of itself: `name` tells it from all others."""

    __tablename__ = "settings"

    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str]


class ConversationRow(Base):
    """One thread, as lists show it. `kind` is the state's kind, or the ending's name once it ended. Sizes in bytes."""

    __tablename__ = "conversations"
    __table_args__ = (
        Index(
            "uq_conversations_place",
            "platform",
            "channel",
            "thread",
            unique=True,
            sqlite_where=text("thread != ''"),
        ),
        Index("ix_conversations_kind", "kind"),
        Index("ix_conversations_kind_changed", "kind", "changed_at"),
        Index("ix_conversations_open", "id", sqlite_where=text("ended = 0")),
        Index("ix_conversations_output", "runner", "output_dir", "kind"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    platform: Mapped[str]
    channel: Mapped[str]
    thread: Mapped[str]
    requester_id: Mapped[str]
    requester_name: Mapped[str]
    requester_is_bot: Mapped[bool]
    kind: Mapped[str]
    ended: Mapped[bool]
    version: Mapped[int]
    asked: Mapped[str]
    model: Mapped[str]
    scheme: Mapped[str]
    runner: Mapped[str]
    output_dir: Mapped[str | None]
    run: Mapped[str | None]
    size_bytes: Mapped[int | None]
    original_size_bytes: Mapped[int | None]
    perplexity: Mapped[float | None]
    original_perplexity: Mapped[float | None]
    created_at: Mapped[datetime]
    changed_at: Mapped[datetime]


class StateRow(Base):
    """The whole state of a conversation, as JSON."""

    __tablename__ = "states"

    conversation_id: Mapped[int] = mapped_column(ForeignKey("conversations.id"), primary_key=True)
    document: Mapped[str]


class ArtifactRow(Base):
    """One numbered document of a conversation, as JSON. Never changes."""

    __tablename__ = "artifacts"

    conversation_id: Mapped[int] = mapped_column(ForeignKey("conversations.id"), primary_key=True)
    kind: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str]
    at: Mapped[datetime]
    document: Mapped[str]


class InboxRow(Base):
    """One thing that a person did. `outcome` is null until it was acted upon."""

    __tablename__ = "inbox"
    __table_args__ = (
        UniqueConstraint("key"),
        Index("ix_inbox_waiting", "id", sqlite_where=text("outcome IS NULL")),
        Index("ix_inbox_conversation", "conversation_id", sqlite_where=text("conversation_id IS NOT NULL")),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str]
    received_at: Mapped[datetime]
    seen: Mapped[str]
    conversation_id: Mapped[int | None] = mapped_column(ForeignKey("conversations.id"))
    settled_at: Mapped[datetime | None]
    outcome: Mapped[str | None]
    event: Mapped[str]


class VerdictRow(Base):
    """One decision of a person. Never changes; one event makes one at most."""

    __tablename__ = "verdicts"
    __table_args__ = (
        UniqueConstraint("inbox_id"),
        Index("ix_verdicts_conversation", "conversation_id"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    conversation_id: Mapped[int] = mapped_column(ForeignKey("conversations.id"))
    inbox_id: Mapped[int | None] = mapped_column(ForeignKey("inbox.id"))
    verb: Mapped[str]
    checkpoint: Mapped[str | None]
    digest: Mapped[str]
    by: Mapped[str]
    changes: Mapped[str]
    place: Mapped[str]
    at: Mapped[datetime]


class AuditRow(Base):
    """One thing that happened. Never changes."""

    __tablename__ = "audit"
    __table_args__ = (
        Index("ix_audit_conversation", "conversation_id", sqlite_where=text("conversation_id IS NOT NULL")),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    conversation_id: Mapped[int | None] = mapped_column(ForeignKey("conversations.id"))
    at: Mapped[datetime]
    actor: Mapped[str]
    action: Mapped[str]
    detail: Mapped[str]


class OutboxRow(Base):
    """One message of a thread. Ids give the order in which messages are posted.

    `asks` is the digest that the wanted card asks about, since version `asks_from`; `shown_asks` that of the card which
    the platform shows. `after_event` is the newest event when the message was first wanted: its place in the thread.
    """

    __tablename__ = "outbox"
    __table_args__ = (
        UniqueConstraint("conversation_id", "slot"),
        Index(
            "ix_outbox_waiting",
            "platform",
            "conversation_id",
            "id",
            sqlite_where=text("wanted > delivered AND given_up = 0"),
        ),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    conversation_id: Mapped[int] = mapped_column(ForeignKey("conversations.id"))
    slot: Mapped[str]
    platform: Mapped[str]
    after_event: Mapped[int]
    wanted: Mapped[int]
    delivered: Mapped[int]
    message: Mapped[str | None]
    asks: Mapped[str]
    asks_from: Mapped[int]
    shown_asks: Mapped[str]
    tried_at: Mapped[datetime | None]
    failures: Mapped[int]
    postponed_at: Mapped[datetime | None]
    next_try_at: Mapped[datetime | None]
    last_error: Mapped[str]
    given_up: Mapped[bool]
    changed_at: Mapped[datetime]
    form: Mapped[str]
    what: Mapped[str]


# Every piece of three letters is indexed, so that a text is found anywhere within a word, without regard to case.
SEARCH = "conversation_search"
SEARCH_DDL = (
    f"CREATE VIRTUAL TABLE {SEARCH} USING fts5(words, model, scheme, person, output_dir, "
    "tokenize = 'trigram', columnsize = 0)"
)

APPEND_ONLY = ("artifacts", "verdicts", "audit")


def append_only_ddl(table: str) -> list[str]:
    """The triggers that keep a table's rows as they were written."""
    return [
        f"CREATE TRIGGER {table}_{name} BEFORE {operation} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, 'rows of {table} are never changed'); END"
        for name, operation in (("no_update", "UPDATE"), ("no_delete", "DELETE"))
    ]


for _statement in (SEARCH_DDL, *(ddl for _table in APPEND_ONLY for ddl in append_only_ddl(_table))):
    event.listen(Base.metadata, "after_create", DDL(_statement))  # type: ignore[no-untyped-call]
