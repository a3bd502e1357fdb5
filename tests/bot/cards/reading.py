"""Cards as plain lines, so that a test can say what a person reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bot.cards.card import (
    ActionKind,
    Block,
    Card,
    CommandLine,
    Fields,
    LogPart,
    Meter,
    Notes,
    Table,
    Text,
)


def read(card: Card) -> str:
    """The whole card, from title to buttons."""
    lines = [f"# {card.title}", *(line for block in card.body for line in _lines(block))]
    lines += [f"[{button.label}]" for button in card.buttons]
    if card.outcome:
        lines.append(f"= {card.outcome}")
    return "\n".join(lines)


def fields_of(card: Card) -> dict[str, str]:
    """All names and values of the card."""
    return {name: value for block in card.body if isinstance(block, Fields) for name, value in block.fields}


def table_of(card: Card, number: int = 0) -> Table:
    """One of its tables."""
    return [block for block in card.body if isinstance(block, Table)][number]


def command_of(card: Card) -> CommandLine:
    """The command that it shows."""
    (command,) = [block for block in card.body if isinstance(block, CommandLine)]
    return command


def meter_of(card: Card) -> Meter:
    """How far it says that a run is."""
    (meter,) = [block for block in card.body if isinstance(block, Meter)]
    return meter


def kinds_of(card: Card) -> list[ActionKind]:
    """What its buttons do, from left to right."""
    return [button.action.kind for button in card.buttons]


def texts_in(value: Any) -> Iterator[str]:
    """Every text in dumped data, names of fields left out."""
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from texts_in(item)
        case list() | tuple():
            for item in value:
                yield from texts_in(item)
        case _:
            return


def _lines(block: Block) -> list[str]:
    match block:
        case Text():
            return [block.text]
        case Fields():
            return [f"{name}: {value}" for name, value in block.fields]
        case Table():
            return [block.caption, *(" | ".join(row) for row in (block.head, *block.rows))]
        case Notes():
            return [block.title, *(f"{one.severity}: {one.message} {one.hint}".strip() for one in block.notes)]
        case CommandLine():
            return [f"$ {block.command}", block.digest]
        case Meter():
            return [f"{block.percent:g} % {block.phase}", block.detail, block.stale]
        case LogPart():
            return [*block.head, f"({block.left_out} lines left out)", *block.tail]
