"""A card is data: a platform only draws it.

Every text in it is plain: names, paths and words of people and models are never markup, and each platform escapes them.
Length budgets live with the platforms.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from bot.conversation.person import Person
from bot.conversation.state import Checkpoint
from schemas.artifacts.plan import Severity
from schemas.base import Document


class Tone(StrEnum):
    """How a card feels."""

    WAITING = "waiting"  # for a person
    WORKING = "working"  # for a runner
    GOOD = "good"
    BAD = "bad"
    CLOSED = "closed"  # decided or outdated


class Text(Document):
    """A paragraph."""

    kind: Literal["text"] = "text"
    text: str


class Fields(Document):
    """Names and values, in order."""

    kind: Literal["fields"] = "fields"
    fields: tuple[tuple[str, str], ...]


class Table(Document):
    """Rows under a head; every row has as many cells as the head. `numeric` columns are set to the right."""

    kind: Literal["table"] = "table"
    caption: str = ""
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...] = ()


class Note(Document):
    """One finding or risk: what, and what to do about it."""

    severity: Severity
    message: str
    hint: str = ""


class Notes(Document):
    """Findings or risks, the worst first."""

    kind: Literal["notes"] = "notes"
    title: str = ""
    notes: tuple[Note, ...]


class CommandLine(Document):
    """An exact command, shown letter by letter. `digest` is that of the manifest that holds it."""

    kind: Literal["command"] = "command"
    command: str
    digest: str


class Meter(Document):
    """How far a run is. `percent` is from 0 to 100 over the whole run; `detail` carries rate and time left in words.

    `stale` says since when there is no news and why; empty while there is.
    """

    kind: Literal["meter"] = "meter"
    phase: str
    percent: Annotated[float, Field(ge=0, le=100)]
    detail: str = ""
    stale: str = ""


class LogPart(Document):
    """Head and tail of an output; `left_out` lines between them were left out."""

    kind: Literal["log"] = "log"
    head: tuple[str, ...] = ()
    left_out: int = 0
    tail: tuple[str, ...] = ()


Block = Annotated[Text | Fields | Table | Notes | CommandLine | Meter | LogPart, Field(discriminator="kind")]


class ActionKind(StrEnum):
    """What a button does. `edit` opens the edit form, which is the platform's own; all others come in as clicks."""

    APPROVE = "approve"
    EDIT = "edit"
    REJECT = "reject"
    CANCEL = "cancel"
    RETRY = "retry"
    REVISE = "revise"
    OFFER = "offer"
    PAUSE_QUEUE = "pause_queue"
    OPEN_QUEUE = "open_queue"


class Action(Document):
    """What a click carries: an id, a checkpoint, the digest's beginning and the step that its card showed, 0 for none.
    The digest is that of the document that was asked about, or of the offer. The stored state decides what it means."""

    kind: ActionKind
    conversation: int
    checkpoint: Checkpoint | None = None
    digest: Annotated[str, Field(max_length=64)] = ""
    step: Annotated[int, Field(ge=0)] = 0

    def encoded(self) -> str:
        """The action as one short string (under 100 characters), for a button's value."""
        return f"ptq:{self.kind}:{self.conversation}:{self.checkpoint or ''}:{self.digest[:12]}:{self.step}"


ButtonStyle = Literal["primary", "danger", "plain"]


class Button(Document):
    """A button. `confirm` is a sentence that platforms with confirm dialogs ask first."""

    label: str
    action: Action
    style: ButtonStyle = "plain"
    confirm: str = ""


class Card(Document):
    """One message of a thread. `outcome` stands there once it is decided: who, what and when. Beside it, a card that
    ended a request may have one button, which takes the request up again.

    `alternative` says the whole in one line, for notifications and screen readers. `mention` is pinged when the card is
    posted, and nobody else ever is.
    """

    title: str
    tone: Tone
    body: tuple[Block, ...] = ()
    buttons: tuple[Button, ...] = ()
    outcome: str = ""
    alternative: str
    mention: Person | None = None


class Attachment(Document):
    """A document of the conversation as a file: an artifact by kind and number, in the format that its name ends in."""

    name: str
    artifact: str
    number: int
    alternative: str = ""


def decode_action(value: str) -> Action | None:
    """The action of a button's value, or None when this program did not make it."""
    parts = value.split(":")
    if len(parts) != 6 or parts[0] != "ptq" or not (_is_number(parts[2]) and _is_number(parts[5])):
        return None
    try:
        return Action(
            kind=ActionKind(parts[1]),
            conversation=int(parts[2]),
            checkpoint=Checkpoint(parts[3]) if parts[3] else None,
            digest=parts[4],
            step=int(parts[5]),
        )
    except ValueError:
        return None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 15
