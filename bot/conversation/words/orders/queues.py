"""Orders to the queue of a runner: pause it, drain it, open it."""

from __future__ import annotations

from bot.conversation.words import names
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.orders.order import Order, QueueOrder
from bot.conversation.words.phrases import PhraseBook

_THE_QUEUE = (
    *(
        "the queue",
        "queue",
        "the runners queue",
        "this queue",
        "our queue",
        "the run queue",
        "all queues",
        "the queues",
    ),
    "the whole queue",
)
_NEW_RUNS = tuple(
    f"{which} {what}"
    for which in ("new", "any new", "any more", "more", "further", "any further", "any", "other", "any other")
    for what in ("runs", "jobs")
)
_VERBS: dict[QueueOrder, tuple[str, ...]] = {
    "pause": ("pause", "hold", "freeze", "suspend", "halt", "stop"),
    "drain": ("drain",),
    "open": ("open", "reopen", "re_open", "resume", "unpause", "un_pause", "unfreeze", "undrain", "restart", "start"),
}
# What needs no name of a queue: "stop starting runs".
_SAYINGS: dict[QueueOrder, tuple[str, ...]] = {
    "pause": (
        *(f"stop {start} {runs}" for start in ("starting", "launching") for runs in ("runs", "jobs", *_NEW_RUNS)),
        *(f"{no} start {runs}" for no in ("dont", "do not", "start no") for runs in _NEW_RUNS),
        *(f"start no {runs}" for runs in ("runs", "new runs", "more runs", "further runs")),
    ),
    "drain": (
        *(
            f"{no} {take} {runs}"
            for no in ("dont", "do not")
            for take in ("take", "accept", "queue")
            for runs in _NEW_RUNS
        ),
        *(
            f"stop {take} {runs}"
            for take in ("taking", "accepting", "queueing")
            for runs in ("runs", "jobs", *_NEW_RUNS)
        ),
        *(f"{take} no {more} runs" for take in ("take", "accept") for more in ("more", "new", "further")),
    ),
    "open": (
        *(f"{start} {runs} again" for start in ("start", "take", "accept") for runs in ("runs", "new runs", "jobs")),
        *(
            "start starting runs again",
            "resume starting runs",
            "resume runs",
            "start the queue again",
            "let runs start",
        ),
        *("let runs start again", "go on with the queue", "continue the queue", "continue with the queue"),
    ),
}
_ORDER_OF = {saying: order for order, sayings in _SAYINGS.items() for saying in sayings}
_ORDER_OF |= {f"{verb} {queue}": order for order, verbs in _VERBS.items() for verb in verbs for queue in _THE_QUEUE}
_SAID = PhraseBook(*_ORDER_OF)
# Of a runner as such only these are said: "stop h100" may mean its runs, and "start h100" its machine.
_OF_A_RUNNER: dict[str, QueueOrder] = {
    verb: order
    for order, verbs in _VERBS.items()
    for verb in verbs
    if verb not in ("hold", "halt", "stop", "start", "restart", "open")
} | {"reopen": "open", "open": "open"}
_VERB = PhraseBook(*_OF_A_RUNNER, *(f"{verb} the" for verb in _OF_A_RUNNER))
_ON = PhraseBook("on", "of", "on the", "of the", "at", "for", "on runner", "of runner", "for runner", "on the runner")
_RUNNER = PhraseBook("runner", "the runner")
ON_RUNNER = PhraseBook("on runner", "on the runner")
_QUEUE = PhraseBook("queue", "s queue", "queues")
AGAIN = PhraseBook("again", "now", "for now", "right now", "for a while", "for the moment", "for today", "back up")
"""Said behind an order, and nothing that it needs."""


def read(cursor: Cursor) -> Order | None:
    """ "Pause the queue of h100", "drain mi300x because of the driver update", "stop starting runs on h100"."""
    runner = ""
    if said := cursor.reads(_SAID):
        order = _ORDER_OF[said]
        cursor.takes(AGAIN)
        runner = _place(cursor)
    else:
        verb = cursor.reads(_VERB)
        if not verb:
            return None
        order = _OF_A_RUNNER[verb.removesuffix(" the")]
        named = cursor.takes(_RUNNER)
        found = names.runner(cursor, named=named)
        if found is None:
            return None
        runner = found
        cursor.takes(_QUEUE)
    cursor.takes(AGAIN)
    runner = runner or _place(cursor)
    return Order(kind="queue", queue=order, runner=runner)


def _place(cursor: Cursor) -> str:
    """The runner whose queue it is; empty where none is named."""
    start = cursor.at
    found = None
    if cursor.takes(_ON):
        found = names.runner(cursor, named=cursor.before == "runner" or cursor.takes(_RUNNER))
    if found is None:
        cursor.at = start
        return ""
    return found
