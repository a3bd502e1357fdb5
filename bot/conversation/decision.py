"""What a command means in a state."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from bot.conversation.person import Person
from bot.conversation.request import Changes
from bot.conversation.state import Checkpoint, State, Trouble


class Verb(StrEnum):
    """What a person did, for the record and for the card that it closed."""

    APPROVED = "approved"
    CHANGED = "changed"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    RETRIED = "retried"
    REVISED = "revised"


@dataclass(frozen=True)
class Verdict:
    """One decision of a person: appended to the record, never changed. `digest` is whole."""

    verb: Verb
    by: Person
    checkpoint: Checkpoint | None = None
    digest: str = ""
    changes: Changes = field(default_factory=Changes)


@dataclass(frozen=True)
class Proceed:
    """The conversation goes on in `state`. `told` is for the person who acted, when there is something to say."""

    state: State
    verdict: Verdict | None = None
    told: str = ""


@dataclass(frozen=True)
class Refuse:
    """Nothing changes, and the person is told why. Codes: not_allowed, outdated, not_now, not_understood, ..."""

    trouble: Trouble


@dataclass(frozen=True)
class Ignore:
    """Nothing changes and nobody is told: a late answer, or news that are none. `why` is for the log."""

    why: str


Decision = Proceed | Refuse | Ignore
