"""A card as a message of Slack. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from bot.cards.card import Block as CardBlock
from bot.cards.card import Button, Card, CommandLine, Fields, LogPart, Meter, Note, Notes, Table, Text
from bot.conversation.person import Person
from bot.platforms.slack import limits
from bot.platforms.slack.parts import Block, cut, escaped, line, plain, preformatted, rich, user, whole, words
from schemas.artifacts.plan import Severity

_ID = re.compile(r"slack:(?P<id>[UW][A-Z0-9]{1,30})")
_MARKS = {Severity.BLOCKS: "stops", Severity.WARNS: "warns", Severity.INFORMS: "tells"}
_LEFT_OUT = "Not all of it has room here: the files of this thread hold the whole."
_FIXED = 60  # characters that header, outcome and buttons are sure to have


@dataclass(frozen=True)
class Message:
    """What goes to chat.postMessage: blocks, and the text for notifications and screen readers."""

    blocks: list[Block]
    text: str


class _Room:
    """How much a message may still hold."""

    def __init__(self, characters: int, blocks: int) -> None:
        self._characters, self._blocks = characters, blocks
        self._tables = 1
        self.cut = False

    def take(self, text: str, most: int = limits.TEXT) -> str:
        """The text as far as there is room."""
        fitting = min(most, self._characters)
        self.cut = self.cut or len(text) > fitting
        taken = cut(text, fitting) if fitting > 0 else ""
        self._characters -= len(taken)
        return taken

    def take_block(self) -> bool:
        """Whether another block has room."""
        if self._blocks <= 0 or self._characters <= 0:
            self.cut = True
            return False
        self._blocks -= 1
        return True

    def take_table(self) -> bool:
        """Whether a table may be one of Slack's own: a message has one."""
        self._tables -= 1
        return self._tables >= 0


def render(card: Card) -> Message:
    """The card in Slack's own blocks."""
    return _message(card, _rich_block)


def fallback(card: Card) -> Message:
    """The same with the oldest blocks alone, for a workspace that refuses newer ones."""
    return _message(card, _simple_block)


def _message(card: Card, drawn: object) -> Message:
    assert callable(drawn)
    room = _Room(limits.MESSAGE, limits.BLOCKS - 4)  # header, outcome, buttons, and what says that something is missing
    blocks: list[Block] = [{"type": "header", "text": plain(room.take(card.title, limits.HEADER), limits.HEADER)}]
    if card.mention is not None:
        blocks.append(rich(line(_person(card.mention, room))))
    end = _ending(card, room)
    for block in card.body:
        blocks.extend(drawn(block, room))
    if room.cut:
        blocks.append(rich(line(words(_LEFT_OUT, italic=True))))
    return Message([*blocks, *end], escaped(cut(card.alternative or card.title, limits.ALTERNATIVE // 5)))


def _ending(card: Card, room: _Room) -> list[Block]:
    """Outcome and buttons, which always have room."""
    blocks: list[Block] = []
    if card.outcome:
        blocks.append(rich(line(words(room.take(card.outcome, 600), bold=True))))
    if card.buttons:
        elements = [_button(button, number) for number, button in enumerate(card.buttons[: limits.BUTTONS])]
        blocks.append({"type": "actions", "elements": elements})
    return blocks


def _person(person: Person, room: _Room) -> list[Block]:
    found = _ID.fullmatch(person.id)
    return user(found["id"]) if found else words(room.take(person.name or person.id, 200))


def _button(button: Button, number: int) -> Block:
    value = button.action.encoded()
    drawn: Block = {
        "type": "button",
        "text": plain(button.label, limits.BUTTON),
        # Its place makes it unique in the message: two offers are two buttons of one kind.
        "action_id": f"ptq-{button.action.kind}-{number}",
        "value": cut(value, limits.VALUE),
    }
    if button.style != "plain":
        drawn["style"] = button.style
    if button.confirm:
        drawn["confirm"] = {
            "title": plain(button.label, limits.CONFIRM_TITLE),
            "text": plain(button.confirm, limits.CONFIRM),
            "confirm": plain(button.label, limits.CONFIRM_BUTTON),
            "deny": plain("Not now", limits.CONFIRM_BUTTON),
        }
    return drawn


def _rich_block(block: CardBlock, room: _Room) -> Iterator[Block]:
    match block:
        case Table() if room.take_table():
            yield from _table(block, room)
        case Meter():
            yield from _plan(block, room)
        case _:
            yield from _simple_block(block, room)


def _simple_block(block: CardBlock, room: _Room) -> Iterator[Block]:
    if not room.take_block():
        return
    match block:
        case Text(text=text):
            yield rich(line(words(room.take(text))))
        case Fields(fields=pairs):
            yield rich(line(*_pairs(pairs, room)))
        case Table():
            yield rich(*_aligned(block, room))
        case Notes(title=title, notes=notes):
            yield rich(*_notes(title, notes, room))
        case CommandLine(command=command, digest=digest):
            shown = room.take(command, limits.MESSAGE)
            yield rich(preformatted(shown), line(words("digest "), words(digest[:64], code=True)))
        case Meter(phase=phase, percent=percent, detail=detail, stale=stale):
            told = "  ".join(text for text in (phase, f"{percent:.0f} %", detail) if text)
            late = words(f"\n{room.take(f'No news {stale}', 400)}", italic=True) if stale else []
            yield rich(line(words(room.take(told, 400), bold=True), late))
        case LogPart(head=head, left_out=left_out, tail=tail):
            middle = [f"[... {left_out:,} lines left out ...]"] if left_out else []
            text = "\n".join([*head, *middle, *tail])
            if text.strip():
                yield rich(preformatted(room.take(text)))


def _pairs(pairs: Iterable[tuple[str, str]], room: _Room) -> Iterator[list[Block]]:
    for number, (name, value) in enumerate(pairs):
        lead = "\n" if number else ""
        shown = room.take(name, 150)
        if not shown:
            return
        yield words(f"{lead}{shown}: ", bold=True)
        yield words(room.take(value, 1_000))


def _notes(title: str, notes: Iterable[Note], room: _Room) -> Iterator[Block]:
    if title:
        yield line(words(room.take(title, 200), bold=True))
    for note in notes:
        message = room.take(note.message, 700)
        if not message:
            return
        hint = words(f" {room.take(note.hint, 700)}", italic=True) if note.hint else []
        yield line(words(f"{_MARKS[note.severity]}: ", bold=True), words(message), hint)


def _table(table: Table, room: _Room) -> Iterator[Block]:
    """Slack's own table: the head and as many rows as have room."""
    if table.caption and room.take_block():
        yield rich(line(words(room.take(table.caption, 400), bold=True)))
    if not room.take_block():
        return
    rows: list[list[Block]] = []
    left = limits.TABLE
    for row in islice([table.head, *table.rows], limits.ROWS):
        cells = [room.take(cell, min(limits.CELL, max(left, 1))) for cell in row[: limits.COLUMNS]]
        left -= sum(map(len, cells))
        if rows and (left <= 0 or not any(cells)):
            room.cut = True
            break
        rows.append([{"type": "raw_text", "text": whole(cell) or "-"} for cell in cells])
    room.cut = room.cut or len(rows) <= len(table.rows)
    settings = [
        {"align": "right" if column in table.numeric else "left", "is_wrapped": column not in table.numeric}
        for column in range(min(len(table.head), limits.COLUMNS))
    ]
    yield {"type": "table", "rows": rows, "column_settings": settings}


def _aligned(table: Table, room: _Room) -> Iterator[Block]:
    """A table in a fixed width, where another one of the message is Slack's own, or where that is refused."""
    if table.caption:
        yield line(words(room.take(table.caption, 400), bold=True))
    rows = [[" ".join(cell.split())[:40] for cell in row] for row in (table.head, *table.rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.head))]
    lines = (
        "  ".join(
            cell.rjust(width) if column in table.numeric else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
    yield preformatted(room.take("\n".join(lines)))


def _plan(meter: Meter, room: _Room) -> Iterator[Block]:
    """The progress as a plan of one task, which clients draw with its state."""
    if not room.take_block():
        return
    done = meter.percent >= 100
    title = f"{meter.percent:.0f} %, {meter.phase}"
    details = [text for text in (meter.detail, f"No news {meter.stale}" if meter.stale else "") if text]
    task: Block = {
        "type": "task_card",
        "task_id": "run",
        "title": whole(room.take(title, limits.TASK_TITLE)) or "-",
        "status": "complete" if done else "in_progress",
    }
    if details:
        task["details"] = rich(line(words(room.take("\n".join(details), 600))))
    yield {"type": "plan", "title": whole(room.take(meter.phase, limits.TASK_TITLE)) or "-", "tasks": [task]}
