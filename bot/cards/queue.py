"""The queue of a runner: what waits, what computes, and on what. As a card, and in words."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from types import MappingProxyType

from bot.cards import amounts
from bot.cards.blocks import fields, make_card, paragraph, table
from bot.cards.buttons import Buttons
from bot.cards.card import Card, Table, Tone
from bot.cards.run import PHASES
from bot.cards.texts import last_part, line
from bot.conversation.state import State
from schemas.api import Queue, QueueMode
from schemas.runs import Run, RunState

_MOST = 5  # runs that are named in words
_MOST_ROWS = 15
_NOW = MappingProxyType[QueueMode, str](
    {
        "open": "is open",
        "paused": "is paused: runs are taken and none starts",
        "draining": "drains: no run is taken, and those that wait still run",
    }
)


def queue_in_words(runner: str, queue: Queue) -> str:
    """How a queue stands, in a sentence or two."""
    waits = {0: "No run waits", 1: "1 run waits"}.get(len(queue.waiting), f"{len(queue.waiting)} runs wait")
    computes = {0: "none is", 1: "1 is"}.get(len(queue.active), f"{len(queue.active)} are")
    return f"The queue of {line(runner, 80)} {_NOW[queue.mode]}. {waits}, and {computes} at work."


def queue_listed(runner: str, queue: Queue) -> str:
    """The same, with the first runs of it by name, what they wait for, and how many GPUs are free."""
    gpus = _free(queue)
    said = (
        queue_in_words(runner, queue),
        _who(queue),
        _listed("At work", map(_computing, queue.active)),
        _listed("In line", (_waiting(number, run) for number, run in enumerate(queue.waiting, 1))),
        f"GPUs: {gpus}." if gpus else "",
    )
    return " ".join(filter(None, said))


def queue_card(conversation: int, state: State, runner: str, queue: Queue, at: datetime) -> Card:
    """The same for who may change it, as it was at that moment. Its buttons say what they do, so they do it once."""
    buttons = Buttons.of(conversation, state)
    return make_card(
        f"Queue of {line(runner, 80)}",
        Tone.WORKING if queue.mode == "open" else Tone.WAITING,
        [
            paragraph(" ".join(filter(None, (queue_in_words(runner, queue), _who(queue))))),
            fields(("GPUs", _free(queue)), ("As of", amounts.moment(at))),
            *_rows(
                "At work", ("Run", "Reached", "On"), ((_name(run), _reached(run), _where(run)) for run in queue.active)
            ),
            *_rows("In line", ("Run", "Priority", "May start", "Waits for"), map(_waiting_row, queue.waiting)),
        ],
        queue_in_words(runner, queue),
        buttons=(buttons.pause_queue() if queue.mode == "open" else buttons.open_queue(),),
    )


def _rows(caption: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> tuple[Table, ...]:
    kept = list(rows)
    return (table(head, kept, caption=caption, at_most=_MOST_ROWS),) if kept else ()


def _listed(caption: str, told: Iterable[str]) -> str:
    every = list(told)
    more = f"; and {len(every) - _MOST} more" if len(every) > _MOST else ""
    return f"{caption}: {'; '.join(every[:_MOST])}{more}." if every else ""


def _who(queue: Queue) -> str:
    if queue.mode == "open" or not queue.by:
        return ""
    since = f" since {amounts.moment(queue.at)}" if queue.at else ""
    because = f": {line(queue.reason, 200).rstrip('.')}" if queue.reason else ""
    return f"So{since} by {line(queue.by, 80)}{because}."


def _free(queue: Queue) -> str:
    free = sum(not gpu.run and not gpu.busy for gpu in queue.gpus)
    return f"{free} of {len(queue.gpus)} free" if queue.gpus else ""


def _name(run: Run) -> str:
    return f"{last_part(run.model)} to {line(run.scheme, 60)}"


def _reached(run: Run) -> str:
    if run.state is RunState.RUNNING:
        return f"{run.progress.percent:.0f} %, {PHASES[run.progress.phase]}"
    return run.state.value


def _where(run: Run) -> str:
    return line(", ".join(run.gpus) or run.job, 120)


def _computing(run: Run) -> str:
    where = _where(run)
    return f"{_name(run)}, {_reached(run)}{f', on {where}' if where else ''}"


def _waiting(number: int, run: Run) -> str:
    priority = f", {run.priority} priority" if run.priority != "normal" else ""
    when = f", may start {amounts.moment(run.expected_start)}" if run.expected_start else ""
    why = f" ({line(run.reason, 120)})" if run.reason else ""
    return f"{number}. {_name(run)}{priority}{when}{why}"


def _waiting_row(run: Run) -> tuple[str, ...]:
    when = amounts.moment(run.expected_start) if run.expected_start else "not known"
    return _name(run), run.priority, when, run.reason
