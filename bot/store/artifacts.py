"""The documents of a conversation: numbered by kind, and never changed."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from pydantic import BaseModel
from sqlalchemy import select

from bot.store.documents import written
from bot.store.entries import KeptArtifact
from bot.store.tables import ArtifactRow
from bot.store.transaction import Changing, Transaction


class Artifacts(Transaction):
    """Reads documents."""

    def artifact(self, conversation: int, kind: str, number: int) -> dict[str, Any] | None:
        """The document, as plain values."""
        where = (
            ArtifactRow.conversation_id == conversation,
            ArtifactRow.kind == kind,
            ArtifactRow.number == number,
        )
        document = self._session.scalar(select(ArtifactRow.document).where(*where))
        return json.loads(document) if document is not None else None

    def artifacts(self, conversation: int) -> list[KeptArtifact]:
        """Which documents a conversation has, in the order in which they were made."""
        row = ArtifactRow
        statement = (
            select(row.kind, row.number, row.digest, row.at)
            .where(row.conversation_id == conversation)
            .order_by(row.at, row.kind, row.number)
        )
        return [KeptArtifact(*found) for found in self._session.execute(statement)]


class ChangingArtifacts(Artifacts, Changing):
    """Adds documents."""

    def add_artifact(
        self, conversation: int, kind: str, number: int, digest: str, document: BaseModel, at: datetime
    ) -> None:
        """Keep a document for good. Raises BotError when the conversation has one of this kind and number."""
        self._session.add(
            ArtifactRow(
                conversation_id=conversation,
                kind=kind,
                number=number,
                digest=digest,
                at=at,
                document=written(document),
            )
        )
        self._session.flush()
        self.touched.add(conversation)
