"""Orders that change no plan: a runner's queue is paused, drained or opened, a run gets another place, an offer is
taken.

An order is a whole sentence: nothing else may stand in it but courtesy, and behind a mark or "because" a reason that
takes nothing back. Whether somebody may give it, and whether it means anything now, is decided elsewhere.
"""

from __future__ import annotations

from bot.conversation.words.cursor import Cursor
from bot.conversation.words.orders import offering, priorities, queues
from bot.conversation.words.orders.order import Order, QueueOrder
from bot.conversation.words.orders.reasons import ends, reason, skip
from bot.conversation.words.phrases import PhraseBook
from bot.conversation.words.text import Token
from bot.conversation.words.vocabulary import Vocabulary

__all__ = ["NO_PAUSE", "Order", "QueueOrder", "pauses_a_run", "read_order"]

NO_PAUSE = "A run cannot be paused: say cancel, to end it; or pause the queue, so that no other starts."
_PAUSES = PhraseBook("pause", "suspend", "freeze", "unpause")


def read_order(tokens: tuple[Token, ...], vocabulary: Vocabulary) -> Order | None:
    """The order that a sentence is; None for any other sentence. A negation is no order: "don't pause the queue"."""
    cursor = Cursor(tokens, vocabulary)
    skip(cursor)
    start = cursor.at
    for reading in (priorities.read, offering.read, queues.read):
        cursor.at = start
        if (order := reading(cursor)) is not None:
            return _with_reason(order, cursor)
    return None


def pauses_a_run(tokens: tuple[Token, ...]) -> bool:
    """Whether it asks for what cannot be: that a run waits in its middle."""
    cursor = Cursor(tokens, Vocabulary())
    skip(cursor)
    if not cursor.takes(_PAUSES):
        return False
    cursor.takes(priorities.IT)
    cursor.takes(queues.AGAIN)
    return ends(cursor)


def _with_reason(order: Order, cursor: Cursor) -> Order | None:
    if order.kind == "offer":
        return order if ends(cursor) else None
    told = reason(cursor)
    return order.model_copy(update={"reason": told}) if told is not None else None
