"""The blocks of a card as blocks of Slack: in its own newest ones, and in sections alone."""

from __future__ import annotations

from collections.abc import Sequence

from bot.cards.card import Block, CommandLine, Fields, LogPart, Meter, Notes, Table, Text
from bot.platforms.slack import limits
from bot.platforms.slack.command import command_plain, command_rich
from bot.platforms.slack.escape import Part, cut, length
from bot.platforms.slack.progress import progress_lines, progress_plan
from bot.platforms.slack.room import Room
from bot.platforms.slack.tables import table_aligned, table_lines, table_native
from bot.platforms.slack.texts import (
    fields_lines,
    fields_rich,
    log_lines,
    log_rich,
    notes_lines,
    notes_rich,
    text_lines,
    text_rich,
)

_COMMAND, _WEIGHTY, _OTHER = 4_200, 600, 220


def in_rich_blocks(block: Block, room: Room) -> list[Part]:
    """Rich text, tables and plans."""
    match block:
        case Text():
            return text_rich(block, room)
        case Fields():
            return fields_rich(block, room)
        case Table():
            return table_native(block, room) if room.tables else table_aligned(block, room)
        case Notes():
            return notes_rich(block, room)
        case CommandLine():
            return command_rich(block, room)
        case Meter():
            return progress_plan(block, room)
        case LogPart():
            return log_rich(block, room)


def in_sections(block: Block, room: Room) -> list[Part]:
    """Sections of plain text, which Slack has always had."""
    before = room.left
    match block:
        case CommandLine():
            return command_plain(block, room)
        case Text():
            lines = text_lines(block, room)
        case Fields():
            lines = fields_lines(block, room)
        case Table():
            lines = table_lines(block, room)
        case Notes():
            lines = notes_lines(block, room)
        case Meter():
            lines = progress_lines(block, room)
        case LogPart():
            lines = log_lines(block, room)
    whole = "\n".join(line for line in lines if line)
    text = cut(whole, min(before, limits.SECTION))  # lines that were cut have lost the end that joins them
    room.cut = room.cut or text != whole
    room.left = before - length(text)
    return [{"type": "section", "text": {"type": "plain_text", "text": text, "emoji": False}}] if text.strip() else []


def reserve(block: Block) -> int:
    """The characters that a block surely gets, whatever stands before it: a command all that it may need."""
    needed = _needed(block)
    match block:
        case CommandLine():
            return min(needed + 300, _COMMAND)
        case Meter() | Notes():
            return min(needed, _WEIGHTY)
        case _:
            return min(needed, _OTHER)


def _needed(block: Block) -> int:
    match block:
        case Text(text=text):
            return length(text)
        case Fields(fields=pairs):
            return _sum([part for pair in pairs for part in pair], 3)
        case Table(caption=caption, head=head, rows=rows):
            return _sum([caption, *head, *(cell for row in rows for cell in row)], 3)
        case Notes(title=title, notes=notes):
            return _sum([title, *(text for note in notes for text in (note.message, note.hint))], 10)
        case CommandLine(command=command):
            return length(command)
        case Meter(phase=phase, detail=detail, stale=stale):
            return _sum([phase, detail, stale], 30)
        case LogPart(head=head, tail=tail):
            return _sum([*head, *tail], 1) + 40


def _sum(texts: Sequence[str], around: int) -> int:
    return sum(length(text) + around for text in texts)
