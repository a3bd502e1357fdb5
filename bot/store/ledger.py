"""Who decided what, and what happened: only ever added to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import select

from bot.conversation.decision import Verb, Verdict
from bot.conversation.person import Person
from bot.conversation.request import Changes
from bot.conversation.state import Checkpoint
from bot.store.documents import as_json, read, written
from bot.store.entries import AuditEntry, KeptVerdict
from bot.store.tables import AuditRow, VerdictRow
from bot.store.transaction import Changing, Transaction

_PERSONS = TypeAdapter(Person)
_CHANGES = TypeAdapter(Changes)


class Verdicts(Transaction):
    """Reads decisions."""

    def verdicts(self, conversation: int) -> list[KeptVerdict]:
        """All decisions of people in a conversation, in the order in which they fell."""
        statement = select(VerdictRow).where(VerdictRow.conversation_id == conversation).order_by(VerdictRow.id)
        return [_as_read(row) for row in self._session.scalars(statement)]


class Ledger(Verdicts):
    """Reads decisions and the audit."""

    def audit(self, conversation: int) -> list[AuditEntry]:
        """All that happened to a conversation, in its order."""
        statement = select(AuditRow).where(AuditRow.conversation_id == conversation).order_by(AuditRow.id)
        return [
            AuditEntry(row.id, row.conversation_id, row.actor, row.action, json.loads(row.detail), row.at)
            for row in self._session.scalars(statement)
        ]


class ChangingLedger(Verdicts, Changing):
    """Adds decisions, and to the audit."""

    def record(self, conversation: int, verdict: Verdict, inbox_id: int | None, where: str, at: datetime) -> None:
        """Keep a decision for good. Raises BotError when the event made one already."""
        self._session.add(
            VerdictRow(
                conversation_id=conversation,
                inbox_id=inbox_id,
                verb=verdict.verb.value,
                checkpoint=verdict.checkpoint.value if verdict.checkpoint is not None else None,
                digest=verdict.digest,
                by=written(verdict.by),
                changes=written(verdict.changes),
                place=where,
                at=at,
            )
        )
        self._session.flush()
        self.touched.add(conversation)

    def audit(self, actor: str, action: str, conversation: int | None, detail: Mapping[str, Any], at: datetime) -> None:
        """Keep for good that somebody did something. `detail` holds what JSON can."""
        self._session.add(
            AuditRow(conversation_id=conversation, at=at, actor=actor, action=action, detail=as_json(dict(detail)))
        )
        self._session.flush()


def _as_read(row: VerdictRow) -> KeptVerdict:
    where = f"Decision {row.id}"
    verdict = Verdict(
        verb=Verb(row.verb),
        by=read(_PERSONS, row.by, where),
        checkpoint=Checkpoint(row.checkpoint) if row.checkpoint is not None else None,
        digest=row.digest,
        changes=read(_CHANGES, row.changes, where),
    )
    return KeptVerdict(row.id, row.conversation_id, verdict, row.inbox_id, row.place, row.at)
