"""Words, facts, findings and output of a card: as rich text, and as the lines of a plain section."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.cards.card import Fields, LogPart, Note, Notes, Text
from bot.platforms.slack import limits
from bot.platforms.slack.escape import Part, length
from bot.platforms.slack.rich import line, preformatted, rich, words
from bot.platforms.slack.room import Room
from schemas.artifacts.plan import Severity

MARKS = {Severity.BLOCKS: "Stops it: ", Severity.WARNS: "Warning: ", Severity.INFORMS: "Note: "}

_LINES = 100  # of each side of an output
_NAME, _VALUE, _NOTE, _TITLE = 150, 1_000, 700, 200  # characters


def text_rich(block: Text, room: Room) -> list[Part]:
    """A paragraph."""
    shown = room.take(block.text)
    return [rich(line(words(shown)))] if shown.strip() else []


def text_lines(block: Text, room: Room) -> list[str]:
    """A paragraph."""
    return [room.take_single(block.text)]


def fields_rich(block: Fields, room: Room) -> list[Part]:
    """Names and values, one a line."""
    parts: list[list[Part]] = []
    for name, value in block.fields:
        if room.left < 1:
            room.cut = True
            break
        lead = "\n" if parts else ""
        parts += [words(room.take(f"{lead}{name}: ", _NAME), bold=True), words(room.take(value, _VALUE))]
    return [rich(line(*parts))] if parts else []


def fields_lines(block: Fields, room: Room) -> list[str]:
    """Names and values, one a line."""
    return [room.take_single(f"{name}: {value}\n", _VALUE).rstrip("\n") for name, value in block.fields]


def notes_rich(block: Notes, room: Room) -> list[Part]:
    """Findings under their title, the worst first."""
    lines = [line(words(room.take(block.title, _TITLE), bold=True))] if block.title.strip() else []
    for note in block.notes:
        if room.left < 1:
            room.cut = True
            break
        mark, message = room.take(MARKS[note.severity]), room.take(note.message, _NOTE)
        hint = words(room.take(f" {note.hint}", _NOTE), italic=True) if note.hint else []
        lines.append(line(words(mark, bold=True), words(message), hint))
    return [rich(*lines)] if lines else []


def notes_lines(block: Notes, room: Room) -> list[str]:
    """Findings under their title, the worst first."""
    titles = [room.take_single(f"{block.title}\n", _TITLE).rstrip("\n")] if block.title.strip() else []
    return [*titles, *(room.take_single(f"{_note(note)}\n", 2 * _NOTE).rstrip("\n") for note in block.notes)]


def _note(note: Note) -> str:
    return f"{MARKS[note.severity]}{note.message} {note.hint}".rstrip()


def log_rich(block: LogPart, room: Room) -> list[Part]:
    """Head and tail of an output in a fixed width."""
    shown = _log(block, room)
    return [rich(preformatted(room.take(shown)))] if shown.strip() else []


def log_lines(block: LogPart, room: Room) -> list[str]:
    """Head and tail of an output."""
    return [room.take_single(_log(block, room))]


def _log(block: LogPart, room: Room) -> str:
    """As many lines as have room: of the middle first lines go, and of all the last ones stay longest."""
    head, tail = list(block.head[:_LINES]), list(block.tail[-_LINES:])
    out = block.left_out + len(block.head) + len(block.tail) - len(head) - len(tail)
    most = min(room.left, limits.SECTION)
    while len(head) + len(tail) > 1 and _size(head, tail, out) > most:
        side = head if len(head) * 2 > len(tail) else tail
        side.pop(-1 if side is head else 0)
        out += 1
    room.cut = room.cut or out > block.left_out
    return "\n".join(_lines(head, out, tail))


def _lines(head: Sequence[str], out: int, tail: Sequence[str]) -> Iterator[str]:
    yield from head
    if out:
        yield f"[… {out:,} {'line' if out == 1 else 'lines'} left out …]"
    yield from tail


def _size(head: Sequence[str], tail: Sequence[str], out: int) -> int:
    return sum(length(one) + 1 for one in _lines(head, out, tail))
