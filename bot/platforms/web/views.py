"""What the templates draw, worked out from what the store keeps. Pure."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from urllib.parse import quote

from bot.cards.card import ActionKind, Attachment, Button, Card
from bot.cards.changes import changes_in_words
from bot.cards.form_data import Option
from bot.conversation.person import Person
from bot.conversation.state import asked_at
from bot.platforms.contract import Clicked, Edited, Said
from bot.platforms.web.standing import Standing, standing_of
from bot.store.records import Conversation, HistoryRow, Shown, StoredEvent

# A pasted log is part of each page and of each change that is sent to it.
_SHOWN_CHARACTERS = 4000
_DONE_BY_CLICK = {
    ActionKind.APPROVE: "pressed Approve",
    ActionKind.EDIT: "opened the form",
    ActionKind.REJECT: "pressed Reject",
    ActionKind.CANCEL: "pressed Cancel",
    ActionKind.RETRY: "pressed Try again",
    ActionKind.REVISE: "pressed Back to the plan",
    ActionKind.OFFER: "took an offer",
    ActionKind.PAUSE_QUEUE: "paused the queue",
    ActionKind.OPEN_QUEUE: "opened the queue",
}
_PLATFORMS = {"web": "this page", "slack": "Slack", "discord": "Discord", "script": "script"}
_PICTURES = (".png",)


def new_key() -> str:
    """A name for one thing that a person is about to do, so that doing it twice is doing it once."""
    return secrets.token_urlsafe(18)


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
    """What a person said or did. `told` is what only the reader was answered; `settled` is False until it was.

    `times` is how often a press was answered so, one directly after the other. Of long words the beginning is shown;
    `whole` leads to all of them, and `left_out` characters more.
    """

    person: Person
    mine: bool
    text: str
    did: str
    told: str
    settled: bool
    times: int = 1
    left_out: int = 0
    whole: str = ""

    @property
    def pressed(self) -> bool:
        """Whether it was a press of a button."""
        return self.did in _DONE_BY_CLICK.values()


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
    return _once([entry for entry in drawn if entry is not None])


def asked_what(conversation: Conversation) -> str:
    """What the conversation asks just now, told from all that it ever asks; empty when it asks nothing.

    The digest alone would not do: the command and its result share one.
    """
    asked = asked_at(conversation.state)
    return f"{asked[0]}:{conversation.state.step}:{asked[1]}" if asked else ""


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


def _once(drawn: Iterable[Entry]) -> list[Entry]:
    """The entries; presses of one person that were answered alike and follow each other are one entry."""
    kept: list[Entry] = []
    for entry in drawn:
        before = kept[-1] if kept else None
        if isinstance(entry, WordsEntry) and isinstance(before, WordsEntry) and _again(before, entry):
            times = before.times + 1
            kept[-1] = replace(before, at=entry.at, times=times, version=f"{entry.version}x{times}")
        else:
            kept.append(entry)
    return kept


def _again(before: WordsEntry, entry: WordsEntry) -> bool:
    refused = entry.pressed and entry.settled and bool(entry.told)
    return refused and replace(entry, id=before.id, at=before.at, version=before.version, times=before.times) == before


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
    beginning = text[:_SHOWN_CHARACTERS]
    return WordsEntry(
        "words",
        f"e{number}",
        version,
        event.at,
        event.person,
        mine,
        beginning,
        did,
        told,
        settled,
        left_out=len(text) - len(beginning),
        whole=f"/threads/{stored.conversation}/said/{stored.id}" if len(text) > len(beginning) else "",
    )
