"""Conversations and their states."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, Select, and_, literal_column, or_, select, update

from bot.conversation.person import Person, Place
from bot.conversation.state import STATES, Ended, State
from bot.errors import BotError, NotFound
from bot.store import search
from bot.store.documents import clean, read, unreadable, written
from bot.store.records import Conversation
from bot.store.tables import ConversationRow, StateRow
from bot.store.transaction import Changing, Transaction

_ASKED_LETTERS = 300
# In these a runner was asked something, or has the run: a new process has to go on with them.
_WORKING = ("analysing", "planning", "preparing", "submitting", "running")
# In these a person is asked, and nothing was handed over yet.
_ASKING = ("reviewing_analysis", "reviewing_plan", "reviewing_command")
# In these a command that writes to the folder is offered, handed over or running.
_HOLDING = ("reviewing_command", "submitting", "running")
_ANY_STATE: TypeAdapter[Any] = STATES


class Conversations(Transaction):
    """Reads conversations."""

    def conversation(self, conversation: int) -> Conversation | None:
        """The conversation of this id."""
        return self._one(ConversationRow.id == conversation)

    def conversation_at(self, place: Place) -> Conversation | None:
        """The conversation of this thread; None outside any thread."""
        if not place.thread:
            return None
        return self._one(
            ConversationRow.platform == place.platform,
            ConversationRow.channel == place.channel,
            ConversationRow.thread == place.thread,
            ConversationRow.thread != literal_column("''"),  # says that the index of threads may be used
        )

    def working(self) -> list[Conversation]:
        """Conversations in which a runner has to be asked or watched, the oldest first.

        Those whose run failed are among them: what became of a lost one may still be found out. Those whose state this
        release cannot read are left out.
        """
        with_a_run = and_(ConversationRow.kind == "failed", ConversationRow.run.is_not(None))
        return self._all(or_(ConversationRow.kind.in_(_WORKING), with_a_run), order=ConversationRow.id)

    def asking(self) -> list[Conversation]:
        """Conversations that wait for a person before anything was handed over, the oldest first: a runner may be asked
        something beside. Those whose state this release cannot read are left out.
        """
        return self._all(ConversationRow.kind.in_(_ASKING), order=ConversationRow.id)

    def overdue(self, before: datetime, kinds: Sequence[str]) -> list[Conversation]:
        """Conversations that have been in one of these kinds of state since before, the longest first.

        Those whose state this release cannot read are left out.
        """
        where = ConversationRow.kind.in_(kinds), ConversationRow.changed_at < before
        return self._all(*where, order=ConversationRow.changed_at)

    def output_taken(self, runner: str, output_dir: str, besides: int) -> int | None:
        """Another conversation whose command writes to this folder of this runner: offered, handed over or running.

        One whose command is still being prepared holds nothing yet: two that wait for the same folder would refuse each
        other.
        """
        statement = select(ConversationRow.id).where(
            ConversationRow.runner == runner,
            ConversationRow.output_dir == output_dir,
            ConversationRow.kind.in_(_HOLDING),
            ConversationRow.id != besides,
        )
        return self._session.scalars(statement.order_by(ConversationRow.id).limit(1)).first()

    def _one(self, *where: ColumnElement[bool]) -> Conversation | None:
        found = self._session.execute(_statement(*where).limit(1)).first()
        return _as_read(*found) if found is not None else None

    def _all(self, *where: ColumnElement[bool], order: Any) -> list[Conversation]:
        return unreadable(self._session, StateRow.__tablename__).others(
            lambda: self._session.execute(_statement(*where).order_by(order)),
            lambda found: (found[0].id, found[0].version),
            lambda found: _as_read(*found),
        )


class ChangingConversations(Conversations, Changing):
    """Begins conversations, and moves them on."""

    def begin(self, place: Place, requester: Person, state: State, at: datetime) -> Conversation:
        """A new conversation. Raises BotError when the thread has one already."""
        row = ConversationRow(
            platform=clean(place.platform),
            channel=clean(place.channel),
            thread=clean(place.thread),
            requester_id=clean(requester.id),
            requester_name=clean(requester.name),
            requester_is_bot=requester.is_bot,
            version=1,
            asked=search.plain(state.request.text)[:_ASKED_LETTERS],
            created_at=at,
            changed_at=at,
            **_facts(state),
        )
        self._session.add(row)
        self._session.flush()
        document = written(state)
        self._session.add(StateRow(conversation_id=row.id, document=document))
        search.begin(self._session, row, state.request.text)
        self.touched.add(row.id)
        return _as_read(row, document)

    def save(self, conversation: int, state: State, version: int, at: datetime) -> Conversation:
        """The conversation in its next state. Raises BotError when it is not at this version any more."""
        row = self._row(conversation)
        if row.version != version:
            message = f"Thread {conversation} is at version {row.version}, and version {version} was decided upon."
            raise BotError("version_differs", message)
        before = search.facts(row)
        for name, value in _facts(state).items():
            setattr(row, name, value)
        row.version, row.changed_at = version + 1, at
        if search.facts(row) != before:
            search.renew(self._session, row)
        document = written(state)
        changed = update(StateRow).where(StateRow.conversation_id == conversation).values(document=document)
        self._session.execute(changed, execution_options={"synchronize_session": False})
        self.touched.add(conversation)
        return _as_read(row, document)

    def set_thread(self, conversation: int, thread: str) -> None:
        """The platform has opened the conversation's thread. Raises BotError when another conversation has it."""
        self._row(conversation).thread = thread
        self._session.flush()
        self.touched.add(conversation)

    def _row(self, conversation: int) -> ConversationRow:
        row = self._session.get(ConversationRow, conversation)
        if row is None:
            raise NotFound("no_conversation", f"Thread {conversation} is not known.")
        return row


def _statement(*where: ColumnElement[bool]) -> Select[ConversationRow, str]:
    return (
        select(ConversationRow, StateRow.document)
        .join(StateRow, StateRow.conversation_id == ConversationRow.id)
        .where(*where)
    )


def _kind(state: State) -> str:
    return state.ending.value if isinstance(state, Ended) else state.kind


def _facts(state: State) -> dict[str, Any]:
    """What lists and filters need of a state."""
    plan, manifest, run = (getattr(state, name, None) for name in ("plan", "manifest", "run"))
    report = run.report if run is not None else None
    perplexity = report.perplexity if report is not None else None
    asked_scheme = state.request.choices.get("global_scheme")
    return {
        "kind": _kind(state),
        "ended": isinstance(state, Ended),
        "model": state.request.model,
        "scheme": plan.scheme if plan is not None else asked_scheme if isinstance(asked_scheme, str) else "",
        "runner": state.request.runner,
        "output_dir": manifest.output_dir if manifest is not None else state.request.output_dir,
        "run": run.id if run is not None else None,
        "size_bytes": report.size_bytes if report is not None else None,
        "original_size_bytes": report.original_size_bytes if report is not None else None,
        "perplexity": perplexity.quantized if perplexity is not None else None,
        "original_perplexity": perplexity.original if perplexity is not None else None,
    }


def _as_read(row: ConversationRow, document: str) -> Conversation:
    """The conversation as every reader sees it; a state that nobody could read again is found before it is kept."""
    return Conversation(
        id=row.id,
        place=place_of(row),
        requester=requester_of(row),
        state=read(_ANY_STATE, document, f"The state of thread {row.id}"),
        version=row.version,
        created_at=row.created_at.astimezone(UTC),
        changed_at=row.changed_at.astimezone(UTC),
    )


def place_of(row: Any) -> Place:
    """Where a conversation is, from its row."""
    return Place(platform=row.platform, channel=row.channel, thread=row.thread)


def requester_of(row: Any) -> Person:
    """Who asked, from a conversation's row."""
    return Person(id=row.requester_id, name=row.requester_name, is_bot=row.requester_is_bot)
