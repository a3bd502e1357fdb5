"""What the templates draw, worked out from what the store keeps. Pure."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from urllib.parse import quote

from bot.cards.card import ActionKind, Attachment, Button, Card, Tone
from bot.cards.changes import changes_in_words
from bot.cards.form_data import Option
from bot.conversation.person import Person
from bot.conversation.state import State, asked_at
from bot.platforms.contract import Clicked, Edited, Said
from bot.store.records import Conversation, HistoryRow, Shown, StoredEvent

# Where a conversation stands, in a few words, and how that feels. The keys are the kinds of states and of endings.
STANDING: dict[str, tuple[str, Tone]] = {
    "analysing": ("Reading the model", Tone.WORKING),
    "reviewing_analysis": ("Is the analysis right?", Tone.WAITING),
    "planning": ("Making the plan", Tone.WORKING),
    "reviewing_plan": ("Confirm or change the plan", Tone.WAITING),
    "preparing": ("Preparing the command", Tone.WORKING),
    "reviewing_command": ("Run this exact command?", Tone.WAITING),
    "submitting": ("Handing the command over", Tone.WORKING),
    "running": ("Running", Tone.WORKING),
    "reviewing_result": ("Accept the result?", Tone.WAITING),
    "failed": ("Failed: what next?", Tone.BAD),
    "ended": ("Ended", Tone.CLOSED),
    "accepted": ("Accepted", Tone.GOOD),
    "rejected": ("Rejected", Tone.CLOSED),
    "cancelled": ("Cancelled", Tone.CLOSED),
    "expired": ("Expired", Tone.CLOSED),
}
WAITING = frozenset({"reviewing_analysis", "reviewing_plan", "reviewing_command", "reviewing_result", "failed"})
BUSY = frozenset({"analysing", "planning", "preparing", "submitting", "running"})

_STEPS = (
    ("Analysis", {"analysing", "reviewing_analysis"}),
    ("Plan", {"planning", "reviewing_plan"}),
    ("Command", {"preparing", "reviewing_command"}),
    ("Run", {"submitting", "running"}),
    ("Result", {"reviewing_result"}),
)
_STEP_OF_STAGE = {"intake": 0, "plan": 1, "manifest": 2, "submission": 3, "run": 3}
_DONE_BY_CLICK = {
    ActionKind.APPROVE: "pressed Approve",
    ActionKind.EDIT: "opened the form",
    ActionKind.REJECT: "pressed Reject",
    ActionKind.CANCEL: "pressed Cancel",
    ActionKind.RETRY: "pressed Try again",
    ActionKind.REVISE: "pressed Back to the plan",
}
_PLATFORMS = {"web": "this page", "slack": "Slack", "discord": "Discord", "script": "script"}
_PICTURES = (".png",)


def new_key() -> str:
    """A name for one thing that a person is about to do, so that doing it twice is doing it once."""
    return secrets.token_urlsafe(18)


@dataclass(frozen=True)
class Standing:
    """A state in words. `step` counts from 0 over `steps`; None when the conversation is not in any."""

    kind: str
    label: str
    tone: Tone


@dataclass(frozen=True)
class Step:
    """One of the five steps of a conversation: done, current, failed or ahead."""

    name: str
    state: str


@dataclass(frozen=True)
class ButtonView:
    """A button as a form, or as a link where `href` is set. `key` makes a double click one event."""

    label: str
    style: str
    confirm: str
    action: str
    key: str
    href: str


@dataclass(frozen=True)
class Entry:
    """One item of a thread. `version` changes whenever it has to be drawn again."""

    kind: str
    id: str
    version: str
    at: datetime


@dataclass(frozen=True)
class WordsEntry(Entry):
    """What a person said or did. `told` is what only the reader was answered; `settled` is False until it was."""

    person: Person
    mine: bool
    text: str
    did: str
    told: str
    settled: bool


@dataclass(frozen=True)
class CardEntry(Entry):
    """A card and its buttons."""

    card: Card
    buttons: tuple[ButtonView, ...]
    undelivered: str


@dataclass(frozen=True)
class FileEntry(Entry):
    """A document to take away; a picture is shown."""

    file: Attachment
    about: str
    href: str
    picture: bool


@dataclass(frozen=True)
class Listed:
    """A conversation in a list."""

    row: HistoryRow
    standing: Standing
    platform: str
    mine: bool


def standing_of(kind: str) -> Standing:
    """A kind of state, or an ending, in words. One that this page does not know is shown as it is called."""
    label, tone = STANDING.get(kind, (kind.replace("_", " ").capitalize(), Tone.CLOSED))
    return Standing(kind, label, tone)


def standing(state: State) -> Standing:
    """Where a conversation stands, in words."""
    return standing_of(state.ending if state.kind == "ended" else state.kind)


def steps(state: State) -> tuple[Step, ...]:
    """The five steps, and how far the conversation is."""
    if state.kind == "failed":
        reached, mark = _STEP_OF_STAGE[state.stage], "failed"
    elif state.kind == "ended":
        reached, mark = (len(_STEPS), "") if state.ending == "accepted" else (_furthest(state), "stopped")
    else:
        reached, mark = next(place for place, (_, kinds) in enumerate(_STEPS) if state.kind in kinds), "current"
    return tuple(
        Step(name, "done" if place < reached else mark if place == reached else "ahead")
        for place, (name, _) in enumerate(_STEPS)
    )


def platform_name(platform: str) -> str:
    """A platform as people call it."""
    return _PLATFORMS.get(platform, platform)


def listed(rows: Iterable[HistoryRow], reader: Person) -> list[Listed]:
    """Rows of a list."""
    return [
        Listed(row, standing_of(row.state), platform_name(row.place.platform), row.requester.id == reader.id)
        for row in rows
    ]


def entries(conversation: Conversation, thread: Sequence[StoredEvent | Shown], reader: Person) -> list[Entry]:
    """A thread as one reader sees it."""
    drawn = (
        _shown(conversation, item)
        if isinstance(item, Shown)
        else _done(item, reader.id == item.event.person.id, item.id)
        for item in thread
    )
    return [entry for entry in drawn if entry is not None]


def asked_digest(conversation: Conversation) -> str:
    """The beginning of the digest that the conversation asks about; empty when it asks nothing."""
    asked = asked_at(conversation.state)
    return asked[1][:12] if asked else ""


def file_href(conversation: int, file: Attachment) -> str:
    """Where a document can be taken."""
    parts = (quote(part, safe="") for part in (file.artifact, str(file.number), file.name))
    return f"/threads/{conversation}/files/{'/'.join(parts)}"


def button_view(button: Button) -> ButtonView:
    """A button with a key of its own."""
    action = button.action
    href = f"/threads/{action.conversation}/edit" if action.kind is ActionKind.EDIT else ""
    return ButtonView(button.label, button.style, button.confirm, action.encoded(), new_key(), href)


def find_button(thread: Sequence[StoredEvent | Shown], action: str) -> tuple[Card, Button] | None:
    """The button that carries an action, on the card that shows it now."""
    for item in thread:
        if isinstance(item, Shown) and isinstance(item.what, Card):
            for button in item.what.buttons:
                if button.action.encoded() == action:
                    return item.what, button
    return None


def grouped(options: Iterable[Option]) -> list[tuple[str, list[Option]]]:
    """Options by their group, in their order."""
    return [(group, list(members)) for group, members in groupby(options, key=lambda option: option.group)]


def _furthest(state: State) -> int:
    reached = 0
    for place, name in enumerate(("analysis", "plan", "manifest", "run")):
        if getattr(state, name, None) is not None:
            reached = place
    return reached


def _shown(conversation: Conversation, shown: Shown) -> Entry:
    version = f"{shown.wanted}-{len(shown.error)}"
    # The page itself shows everything; a chat may have refused.
    undelivered = (
        f"{platform_name(conversation.place.platform)} does not show this: {shown.error}" if shown.error else ""
    )
    match shown.what:
        case Card() as card:
            buttons = tuple(button_view(button) for button in card.buttons)
            return CardEntry("card", f"m{shown.id}", version, shown.changed_at, card, buttons, undelivered)
        case Attachment() as file:
            href = file_href(conversation.id, file)
            picture = file.name.lower().endswith(_PICTURES)
            about = file.alternative.removeprefix(file.name).lstrip(":, ")
            return FileEntry("file", f"m{shown.id}", version, shown.changed_at, file, about, href, picture)


def _done(stored: StoredEvent, mine: bool, number: int) -> Entry | None:
    """What a person did. Clicks stand on the cards that they decided; one that came to nothing is told its person."""
    outcome, event = stored.outcome, stored.event
    settled = outcome is not None
    told = outcome.text if outcome is not None and mine else ""
    text = did = ""
    match event.what:
        case Said():
            text = event.what.text
        case Edited():
            if outcome is not None and outcome.verdict != "proceeded" and not mine:
                return None
            did = f"changed {changes_in_words(event.what.changes)}"
        case Clicked():
            if not mine or (settled and not told):
                return None
            did = _DONE_BY_CLICK[event.what.action.kind]
    version = f"{int(settled)}"
    return WordsEntry("words", f"e{number}", version, event.at, event.person, mine, text, did, told, settled)
