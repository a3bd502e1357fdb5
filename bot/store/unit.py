"""All that one transaction can do. Both run in a thread of the store, and are of no use after their transaction."""

from __future__ import annotations

from sqlalchemy import select

from bot.store.artifacts import Artifacts, ChangingArtifacts
from bot.store.conversations import ChangingConversations, Conversations
from bot.store.history import History
from bot.store.inbox import ChangingInbox
from bot.store.ledger import ChangingLedger, Ledger
from bot.store.outbox import ChangingOutbox
from bot.store.tables import Setting


class Reader(Conversations, Artifacts, Ledger, History):
    """Reads one snapshot of the database: what others write meanwhile is not seen."""

    def name(self) -> str:
        """The name that tells this database from all others."""
        return self._session.scalars(select(Setting.value).where(Setting.key == "name")).one()


class Unit(ChangingConversations, ChangingInbox, ChangingOutbox, ChangingArtifacts, ChangingLedger):
    """Writes in one transaction: all of it is kept, or nothing.

    It reads what it has written itself. An error of the database inside it ends it; catching one and going on does not
    save what was written before.
    """
