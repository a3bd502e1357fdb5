"""What the store keeps beside `records`: artifacts, decisions, the audit, and what a thread is made of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.conversation.decision import Verdict
from bot.store.records import Shown, StoredEvent


@dataclass(frozen=True)
class KeptArtifact:
    """One numbered document of a conversation, without the document."""

    kind: str
    number: int
    digest: str
    at: datetime


@dataclass(frozen=True)
class KeptVerdict:
    """One decision of a person. `event` is the inbox row that brought it; None when nothing came in."""

    id: int
    conversation: int
    verdict: Verdict
    event: int | None
    where: str
    at: datetime


@dataclass(frozen=True)
class AuditEntry:
    """One thing that happened: who did what, to which conversation."""

    id: int
    conversation: int | None
    actor: str
    action: str
    detail: dict[str, Any]
    at: datetime


# One item of a thread, in the order in which people see them.
ThreadEntry = StoredEvent | Shown
