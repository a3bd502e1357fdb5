"""Tables: one of a message as Slack's own, others in a fixed width, and in lines where Slack refuses its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bot.cards.card import Table
from bot.cards.texts import plain as visible
from bot.platforms.slack import limits
from bot.platforms.slack.escape import EMPTY, Part, cut, enough, length, single
from bot.platforms.slack.rich import line, preformatted, rich, words
from bot.platforms.slack.room import Room

_Row = tuple[str, ...]
_CAPTION = 300
_WIDTHS = (limits.CELL, 200, 120, 80, 50, 30)  # characters of a cell, as many as let all rows in
_GAP = "  "


def table_native(table: Table, room: Room) -> list[Part]:
    """Slack's own, under its caption. Where rows have no room, a last one says how many."""
    if room.tables < 1 or room.blocks < 2:
        return table_aligned(table, room)
    room.tables -= 1
    blocks = [rich(line(words(caption, bold=True)))] if (caption := _caption(table, room)) else []
    rows = _fitted(table, room, lambda row: sum(length(cell) or 1 for cell in row), limits.ROWS)
    settings = [
        {"align": "right" if column in table.numeric else "left", "is_wrapped": column not in table.numeric}
        for column in range(len(rows[0]))
    ]
    drawn = {"type": "table", "rows": [[_cell(cell) for cell in row] for row in rows], "column_settings": settings}
    return [*blocks, drawn]


def table_aligned(table: Table, room: Room) -> list[Part]:
    """In a fixed width."""
    caption = _caption(table, room)
    rows = _fitted(table, room, lambda row: sum(length(cell) + len(_GAP) for cell in row), limits.ROWS, padded=True)
    told = [line(words(caption, bold=True))] if caption else []
    return [rich(*told, preformatted("\n".join(_GAP.join(row).rstrip() for row in rows)))]


def table_lines(table: Table, room: Room) -> list[str]:
    """Row by row, without the widths that plain text does not keep."""
    caption = _caption(table, room)
    rows = _fitted(table, room, lambda row: sum(length(single(cell)) + 3 for cell in row), limits.ROWS)
    return [*([caption] if caption else []), *(single(" | ".join(row)) for row in rows)]


def _caption(table: Table, room: Room) -> str:
    return room.take_single(f"{table.caption}\n", _CAPTION).strip() if table.caption.strip() else ""


def _fitted(
    table: Table, room: Room, size: Callable[[Sequence[str]], int], most: int, *, padded: bool = False
) -> list[_Row]:
    """Head and rows with cells so wide that all rows fit; else as many rows as fit, and one that counts the others."""
    every = [
        tuple(" ".join(visible(enough(cell, limits.CELL)).split()) for cell in row[: limits.COLUMNS])
        for row in _rows(table)
    ]
    room.cut = room.cut or len(table.head) > limits.COLUMNS
    rows, width = every, _WIDTHS[-1]
    for width in _WIDTHS:
        rows = _shaped(every, width, table.numeric, padded)
        if len(rows) <= most and sum(map(size, rows)) <= room.left:
            break
    else:
        rows = _first(rows, room.left, size, most)
    room.cut = room.cut or len(rows) < len(every) or any(length(cell) > width for row in every for cell in row)
    room.left -= sum(map(size, rows))
    return rows


def _rows(table: Table) -> list[_Row]:
    """The head and every row, all as wide as the head."""
    width = max(len(table.head), 1)
    return [(*row, *("" for _ in range(width)))[:width] for row in (table.head, *table.rows)]


def _shaped(rows: Sequence[_Row], width: int, numeric: Sequence[int], padded: bool) -> list[_Row]:
    shaped = [tuple(cut(cell, width) for cell in row) for row in rows]
    return _padded(shaped, numeric) if padded else shaped


def _first(rows: list[_Row], left: int, size: Callable[[Sequence[str]], int], most: int) -> list[_Row]:
    """The first rows that have room. The head is always there, cut as far as it has to be."""
    columns = len(rows[0])
    head = rows[0] if size(rows[0]) <= left else tuple(cut(cell, max(left // columns - 3, 1)) for cell in rows[0])
    kept, room = [head], left - size(head) - 30 - 2 * columns
    for row in rows[1 : most - 1]:
        room -= size(row)
        if room < 0:
            break
        kept.append(row)
    missing = len(rows) - len(kept)
    more = (cut(f"and {missing:,} more", 25), *("" for _ in head[1:]))
    return [*kept, more] if missing and size(more) <= left - sum(map(size, kept)) else kept


def _padded(rows: Sequence[_Row], numeric: Sequence[int]) -> list[_Row]:
    """Cells as wide as their column. The last column needs no blanks behind it."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    last = len(widths) - 1
    return [
        tuple(
            cell.rjust(width) if column in numeric else cell if column == last else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _cell(text: str) -> Part:
    if single(text) != text:
        return rich(line(words(text)))  # a single string could ping
    return {"type": "raw_text", "text": text if text.strip() else EMPTY}
