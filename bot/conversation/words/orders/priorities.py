"""Another place of a run in its queue: before the others, or behind them."""

from __future__ import annotations

from bot.conversation.words.cursor import Cursor
from bot.conversation.words.orders.order import Order
from bot.conversation.words.phrases import PhraseBook
from schemas.runs import QueuePriority

IT = PhraseBook("it", "this", "this run", "the run", "my run", "this one", "that", "my job", "this job", "mine")
_HIGH, _NORMAL, _LOW = (
    ("high", "higher", "highest", "urgent"),
    ("normal", "usual", "default"),
    ("low", "lower", "lowest"),
)
_LEVELS: dict[str, QueuePriority] = {
    **dict.fromkeys(_HIGH, "high"),
    **dict.fromkeys(_NORMAL, "normal"),
    **dict.fromkeys(_LOW, "low"),
}
_LEADS_TO_LEVEL = PhraseBook(
    *(
        f"{lead}{a}"
        for lead in ("with", "at", "it is", "its", "this is", "its a", "make it", "give it", "a")
        for a in ("", " a")
    ),
    *(f"{verb} {it}" for verb in ("make", "give", "set") for it in ("this", "this run", "the run", "my run", "it")),
)
_PRIORITY_WORD = PhraseBook("priority")
_THE_PRIORITY = PhraseBook(
    *(
        f"{verb}{its}{queue}priority"
        for verb in ("", "set ", "change ")
        for its in ("", "the ", "its ", "my ")
        for queue in ("", "queue ")
    )
)
_TO_LEVEL = PhraseBook("to", "=", ":")
_MOVES = PhraseBook("move", "put", "bring", "push")
_TO_THE = PhraseBook("to the", "at the", "in the")
_ENDS_OF_QUEUE: dict[str, QueuePriority] = {
    **dict.fromkeys(("front", "top", "head", "beginning"), "high"),
    **dict.fromkeys(("back", "end", "bottom", "tail"), "low"),
}
_OF_THE_QUEUE = PhraseBook("of the queue", "of the line", "of queue")
_STARTS = PhraseBook("run", "start", "do", "put", "take")
_STARTS_ALONE = frozenset({"run", "start"})  # "take first" may be an offer
_WHEN: dict[str, QueuePriority] = {
    **dict.fromkeys(("first", "before the others", "before all others", "before everything else"), "high"),
    **dict.fromkeys(("last", "after the others", "after all others", "after everything else"), "low"),
}
_WHEN_BOOK = PhraseBook(*_WHEN)
_SAYINGS_OF_PRIORITY: dict[QueuePriority, tuple[str, ...]] = {
    "high": (
        *(
            "its urgent",
            "it is urgent",
            "this is urgent",
            "very urgent",
            "this cannot wait",
            "move it up",
            "bump it up",
        ),
        *("move this up", "jump the queue", "raise its priority", "raise the priority", "increase the priority"),
    ),
    "normal": ("back to normal priority", "reset the priority", "reset its priority"),
    "low": (
        *("no hurry", "no rush", "not urgent", "its not urgent", "it is not urgent", "this is not urgent"),
        *("take your time", "this can wait", "it can wait", "theres no hurry", "there is no hurry", "there is no rush"),
        *("lower its priority", "lower the priority", "let others go first", "let the others go first"),
    ),
}
_PRIORITY_OF = {said: priority for priority, sayings in _SAYINGS_OF_PRIORITY.items() for said in sayings}
_PRIORITY = PhraseBook(*_PRIORITY_OF)


def read(cursor: Cursor) -> Order | None:
    """ "High priority", "run this first", "no hurry"."""
    start = cursor.at
    for reading in (_said_priority, _level, _level_behind, _end_of_queue, _when):
        cursor.at = start
        if (priority := reading(cursor)) is not None:
            return Order(kind="priority", priority=priority)
    return None


def _said_priority(cursor: Cursor) -> QueuePriority | None:
    return _PRIORITY_OF.get(cursor.reads(_PRIORITY))


def _level(cursor: Cursor) -> QueuePriority | None:
    """ "High priority", "make it low priority"."""
    cursor.takes(_LEADS_TO_LEVEL)
    level = _LEVELS.get(cursor.key)
    cursor.at += 1
    return level if level is not None and cursor.takes(_PRIORITY_WORD) else None


def _level_behind(cursor: Cursor) -> QueuePriority | None:
    """ "Priority high", "set its priority to low"."""
    if not cursor.takes(_THE_PRIORITY):
        return None
    cursor.takes(_TO_LEVEL)
    level = _LEVELS.get(cursor.key)
    cursor.at += 1
    return level


def _end_of_queue(cursor: Cursor) -> QueuePriority | None:
    """ "Move it to the front of the queue", "to the end"."""
    moves = cursor.takes(_MOVES)
    if moves:
        cursor.takes(IT)
    how = cursor.reads(_TO_THE)
    if not how or not (moves or how == "to the"):  # "at the end" says when rather than where
        return None
    end = _ENDS_OF_QUEUE.get(cursor.key)
    cursor.at += 1
    cursor.takes(_OF_THE_QUEUE)
    return end


def _when(cursor: Cursor) -> QueuePriority | None:
    """ "Run this first", "run it last"."""
    verb = cursor.reads(_STARTS)
    if not verb or not (cursor.takes(IT) or verb in _STARTS_ALONE):
        return None
    return _WHEN.get(cursor.reads(_WHEN_BOOK))
