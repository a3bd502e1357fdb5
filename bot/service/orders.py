"""What is asked of a runner that moves no conversation: orders to its queue and its runs, and how its queue stands.

Orders are idempotent: an event whose order was carried out and not noted down is carried out again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from bot.cards.queue import queue_in_words, queue_listed
from bot.cards.texts import cut
from bot.conversation.commands import GiveOrder
from bot.conversation.policy import Facts, Policy, Right
from bot.conversation.reached import reached
from bot.conversation.runner_choice import KnownRunner
from bot.conversation.state import State
from bot.errors import BotError, RunnerAway, RunnerForeign
from bot.service.runner_client import Runners
from schemas.api import Queue, QueueMode
from schemas.runs import QueuePriority, RunState

log = logging.getLogger(__name__)

_MODES: dict[str, QueueMode] = {"pause": "paused", "drain": "draining", "open": "open"}
_RANK: tuple[QueuePriority, ...] = ("low", "normal", "high")
_NO_RUN = "This conversation has no run that waits, so there is nothing to give another place."
_NOT_SENT = frozenset({"runner_down", "bad_certificate", "api_version"})
"""Codes of failures before the order was heard; with all others of a runner that is away, it may have been."""
_LONGEST = 3000
_BROKEN = "This could not be asked of the runner because of a fault of the bot; it was logged."


@dataclass(frozen=True)
class Errand:
    """An order that may be given, with the runner and the run that it means."""

    order: GiveOrder
    runner: str
    run: str = ""


@dataclass(frozen=True)
class Question:
    """How the queues of these runners stand."""

    runners: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """Whether it was done, and what a person is told of it; `queue` as it stands now, where one runner told it."""

    done: bool
    told: str
    queue: Queue | None = None


def joined(answers: Sequence[Answer]) -> Answer:
    """The answers of several runners as one, of a length that every platform can whisper."""
    only = answers[0].queue if len(answers) == 1 else None
    return Answer(any(one.done for one in answers), cut(" ".join(one.told for one in answers), _LONGEST), only)


def errand_of(command: GiveOrder, state: State | None, policy: Policy, runners: Sequence[KnownRunner]) -> Errand | str:
    """What has to be done for an order; a sentence where it is not done."""
    order = command.order
    if order.kind == "queue":
        if reason := policy.against(command.by, Right.QUEUE, Facts(command.by)):
            return reason
        return _errand_on_a_queue(command, state, runners)
    run = reached(state).run if state is not None else None
    if state is None or run is None or run.state is not RunState.QUEUED:
        return _NO_RUN
    # Back to normal is before others too, where somebody has put it behind them.
    right = Right.URGE if _RANK.index(order.priority or "normal") > _RANK.index(run.priority) else Right.YIELD
    if reason := policy.against(command.by, right, Facts(state.requester)):
        return reason
    return Errand(command, state.request.runner, run.id)


def _errand_on_a_queue(command: GiveOrder, state: State | None, runners: Sequence[KnownRunner]) -> Errand | str:
    named = command.order.runner
    if named:
        meant = [one for one in runners if one.is_called(named)] or [one for one in runners if one.has(named)]
    elif state is not None:
        return Errand(command, state.request.runner)
    else:
        meant = list(runners)
    if len(meant) == 1:
        return Errand(command, meant[0].name)
    known = ", ".join(one.name for one in meant or runners)
    return f"Which runner is meant? {'There is' if not meant else 'These fit'}: {known}. Name one of them."


class Orders:
    """Carries orders out, and asks how queues stand."""

    def __init__(self, runners: Runners) -> None:
        self._runners = runners

    async def carry_out(self, errand: Errand) -> Answer:
        """What became of an order. Raises nothing."""
        by = errand.order.by.name or errand.order.by.id
        order = errand.order.order
        try:
            client = self._runners.get(errand.runner)
            if order.kind == "queue" and order.queue is not None:
                queue = await client.set_queue(_MODES[order.queue], by, order.reason)
                return Answer(True, queue_in_words(errand.runner, queue), queue)
            if order.priority is not None:
                run = await client.set_priority(errand.run, order.priority, by)
                place = f" and is number {run.position} in the queue" if run.position is not None else ""
                return Answer(True, f"The run has {run.priority} priority now{place}.")
        except BotError as error:
            return Answer(False, f"{_what_is_known(error)} {error.sentence()}")
        except Exception:
            log.exception("the order of %s could not be carried out", errand.order.by.id)
        return Answer(False, _BROKEN)

    async def ask(self, runner: str) -> Answer:
        """How a queue stands. Raises nothing."""
        try:
            queue = await self._runners.get(runner).queue()
        except BotError as error:
            return Answer(False, error.sentence())
        except Exception:
            log.exception("the queue of %s could not be asked for", runner)
            return Answer(False, _BROKEN)
        return Answer(True, queue_listed(runner, queue), queue)


def _what_is_known(error: BotError) -> str:
    """Whether an order counts. A runner that hangs or broke off may have heard it; giving it again does no harm."""
    if isinstance(error, RunnerAway | RunnerForeign) and error.code not in _NOT_SENT:
        return "Whether this was done is not known; give the order again."
    return "Nothing was changed."
