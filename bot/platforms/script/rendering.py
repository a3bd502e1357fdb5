"""A card as lines of text. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from bot.cards.card import Block, Card, CommandLine, Fields, LogPart, Meter, Notes, Table, Text

WIDTH = 110
_BAR = 30


def lines_of(card: Card) -> list[str]:
    """The whole card."""
    lines = [f"┌ {card.title}"]
    for block in card.body:
        lines.extend(f"│ {line}".rstrip() for line in _block(block))
    if card.outcome:
        lines.append(f"│ → {card.outcome}")
    if card.buttons:
        lines.append("│ " + "  ".join(f"[{button.label}]" for button in card.buttons))
    if card.mention is not None:
        lines.append(f"│ @{card.mention.name}")
    return [*lines, "└"]


def meter_of(card: Card) -> Meter | None:
    """How far, when the card tells of a run under way."""
    return next((block for block in card.body if isinstance(block, Meter)), None)


def meter_line(meter: Meter) -> str:
    """A progress in one line."""
    full = round(meter.percent / 100 * _BAR)
    bar = "█" * full + "░" * (_BAR - full)
    rest = "  ".join(text for text in (meter.detail, meter.stale) if text)
    return f"  {bar} {meter.percent:5.1f} %  {meter.phase}  {rest}".rstrip()


def _block(block: Block) -> Iterator[str]:
    match block:
        case Text(text=text):
            for paragraph in text.splitlines():
                yield from _wrapped(paragraph)
        case Fields(fields=fields):
            width = max((len(name) for name, _ in fields), default=0)
            for name, value in fields:
                yield from _hanging(f"{name}:".ljust(width + 2), value)
        case Table():
            yield from _table(block)
        case Notes(title=title, notes=notes):
            if title:
                yield f"{title}:"
            for note in notes:
                yield from _hanging(f"  {note.severity}: ", f"{note.message} {note.hint}".strip())
        case CommandLine(command=command, digest=digest):
            yield f"$ {command}"  # never wrapped: it is what runs
            yield f"digest {digest[:12]}"
        case Meter():
            yield meter_line(block)
        case LogPart(head=head, left_out=left_out, tail=tail):
            yield from (f"| {line}" for line in head)
            if left_out:
                yield f"| … {left_out} lines left out …"
            yield from (f"| {line}" for line in tail)


def _table(table: Table) -> Iterator[str]:
    rows = [table.head, *table.rows]
    columns = range(len(table.head))
    widths = [max(len(row[column]) for row in rows) for column in columns]
    if table.caption:
        yield f"{table.caption}:"
    # The last column may be long: it is folded under itself.
    before = sum(widths[:-1]) + 2 * len(widths[:-1])
    for number, row in enumerate(rows):
        cells = [
            row[column].rjust(widths[column]) if column in table.numeric else row[column].ljust(widths[column])
            for column in columns
        ]
        yield from _hanging("  ".join(cells[:-1]).ljust(before), cells[-1].rstrip())
        if number == 0:
            yield "  ".join("─" * width for width in [*widths[:-1], min(widths[-1], max(WIDTH - before, 10))])


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False) or [""]


def _hanging(first: str, text: str) -> list[str]:
    """Text behind a beginning, its further lines set under the first."""
    room = max(WIDTH - len(first), 30)
    folded = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    return [first + folded[0], *(" " * len(first) + line for line in folded[1:])]
