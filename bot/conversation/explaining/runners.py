"""Which runners there are, and how busy they are, as each of them said last."""

from __future__ import annotations

from collections.abc import Sequence

from bot.conversation.explaining.asked import Asked
from bot.conversation.runner_choice import KnownRunner
from bot.conversation.words.phrases import PhraseBook

_MOST = 8
_WHICH = PhraseBook(
    *("which runners", "what runners", "list runners", "list the runners", "show runners", "show me the runners"),
    *("are there runners", "how many runners", "which labels", "what labels", "where can it run", "where can i run"),
    *("where could it run", "which machines", "what machines", "which hosts", "the runners", "all runners"),
)
_QUEUE = PhraseBook(
    *("in the queue", "in queue", "the queue", "queue look like", "how busy", "whats running", "what is running"),
    *("what runs", "whats queued", "what is queued", "who is running", "who runs", "is anything running", "queues"),
    *("are you busy", "is it busy", "are we busy", "is the runner busy", "runs are waiting", "runs are running"),
)
_FREE = PhraseBook(
    *(f"{gpu} free" for gpu in ("gpu", "gpus", "gpu is", "gpus are", "runner", "runners", "runner is", "runners are")),
    *("free gpu", "free gpus", "a gpu available", "gpus available", "gpu available", "free runner", "idle gpu"),
    *("gpu idle", "gpus idle", "free cards", "idle gpus"),
)


def runners(asked: Asked, known: Sequence[KnownRunner]) -> str | None:
    """ "Which runners are there?", "what is in the queue?", "is a GPU free?"."""
    if not known or not (asked.says(_WHICH) or asked.says(_QUEUE) or asked.says(_FREE)):
        return None
    named = [one for one in known if _is_named(one, asked)] or list(known)
    told = [_one(one) for one in named[:_MOST]]
    more = f" And {len(named) - _MOST} more." if len(named) > _MOST else ""
    return " ".join(told) + more


def queues(asked: Asked, known: Sequence[KnownRunner], here: str = "") -> tuple[str, ...]:
    """The runners whose queues are asked about: those that are named, else the one `here`, else all. Whether a GPU is
    free is asked of all. None for other questions."""
    free = asked.says(_FREE)
    if not (free or asked.says(_QUEUE) or asked.keys[:1] == ["queue"]):
        return ()
    named = [one.name for one in known if _is_named(one, asked)]
    if not named and here and not free:
        return (here,)
    return tuple((named or [one.name for one in known])[:_MOST])


def _is_named(runner: KnownRunner, asked: Asked) -> bool:
    """Whether the question names it. A name of one letter is one only where a name stands: "is a GPU free?"."""
    return any(
        (len(key) > 1 or before in ("runner", "on")) and (runner.is_called(key) or runner.has(key))
        for before, key in zip(["", *asked.keys], asked.keys, strict=False)
    )


def _one(runner: KnownRunner) -> str:
    """One runner in a sentence. What it said may be a minute old, which is said with it."""
    labels = f" ({', '.join(runner.labels[:_MOST])})" if runner.labels else ""
    if runner.away:
        return f"{runner.name}{labels} does not answer."
    if runner.queued is None:
        return f"{runner.name}{labels} has not been asked yet."
    offer = runner.offer
    gpus = (
        f" on {offer.gpu_count} GPU{'s' if offer.gpu_count > 1 else ''}"
        if offer is not None and offer.gpu_count
        else ""
    )
    waiting = "1 run waits" if runner.queued == 1 else f"{runner.queued or 'no'} runs wait"
    computing = f"{runner.active or 'none'} {'compute' if runner.active > 1 else 'computes'}"
    return f"{runner.name}{labels}: {waiting} and {computing}{gpus}, as it said last."
