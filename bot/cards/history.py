"""Past and present requests in a list."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from bot.cards import amounts
from bot.cards.blocks import make_card, paragraph, table
from bot.cards.card import Block, Card, Tone
from bot.cards.texts import last_part, line, plain, who
from bot.conversation.person import Person


class Row(Protocol):
    """What the list shows of a conversation; the store's rows are of this kind. Sizes in bytes."""

    @property
    def id(self) -> int:
        """The conversation."""
        ...

    @property
    def requester(self) -> Person:
        """Who asked."""
        ...

    @property
    def model(self) -> str:
        """What was asked for."""
        ...

    @property
    def scheme(self) -> str:
        """What it is quantized to; empty before there is a plan."""
        ...

    @property
    def state(self) -> str:
        """The kind of state, or how it ended."""
        ...

    @property
    def changed_at(self) -> datetime:
        """When it last moved."""
        ...

    @property
    def size_bytes(self) -> int | None:
        """The output."""
        ...

    @property
    def original_size_bytes(self) -> int | None:
        """The original."""
        ...

    @property
    def perplexity(self) -> float | None:
        """Of the quantized model."""
        ...

    @property
    def original_perplexity(self) -> float | None:
        """Of the original."""
        ...


def history_card(rows: Sequence[Row], *, more: bool = False, at_most: int = 20) -> Card:
    """A list of requests, as they come. `more` says that older ones were left out."""
    if not rows:
        return make_card("History", Tone.CLOSED, [paragraph("No request matches.")], "History: no request matches.")
    shown = [_cells(row) for row in rows]
    left = more or len(rows) > at_most
    body: list[Block] = [
        table(
            ("No.", "Model", "Scheme", "State", "Size", "Perplexity", "Asked by", "Last change"), shown, at_most=at_most
        )
    ]
    if left:
        body.append(paragraph("There are older ones: `ptq-bot history` lists and filters all of them."))
    newest = rows[0]
    told = f"{amounts.count(len(rows), 'request')}{' and more' if more else ''}"
    latest = f"{last_part(newest.model)} ({line(state_in_words(newest.state), 60)})"
    return make_card("History", Tone.CLOSED, body, f"History: {told}. First: {latest}.")


def state_in_words(state: str) -> str:
    """A kind of state or an ending, as people say it."""
    return _STATES.get(state, plain(state).replace("_", " "))


_STATES = {
    "analysing": "reading the model",
    "reviewing_analysis": "asks about the analysis",
    "planning": "making a plan",
    "reviewing_plan": "asks about the plan",
    "preparing": "preparing the command",
    "reviewing_command": "asks about the command",
    "submitting": "handing over",
    "reviewing_result": "asks about the result",
}


def _cells(row: Row) -> tuple[str, ...]:
    return (
        str(row.id),
        last_part(row.model),
        row.scheme,
        state_in_words(row.state),
        _beside(amounts.size(row.size_bytes), amounts.size(row.original_size_bytes), row.size_bytes is not None),
        _beside(amounts.number(row.perplexity), amounts.number(row.original_perplexity), row.perplexity is not None),
        who(row.requester),
        amounts.moment(row.changed_at),
    )


def _beside(now: str, before: str, known: bool) -> str:
    return f"{before} → {now}" if known else ""
