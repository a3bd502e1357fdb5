"""Orders to a runner that move no conversation: its queue is paused, drained or opened, a run gets another place.

They are idempotent: an event whose order was carried out and not noted down is carried out again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from bot.conversation.commands import GiveOrder
from bot.conversation.policy import Facts, Policy, Right
from bot.conversation.reached import reached
from bot.conversation.runner_choice import KnownRunner
from bot.conversation.state import State
from bot.errors import BotError
from bot.service.runner_client import Runners
from schemas.api import Queue, QueueMode
from schemas.runs import RunState

log = logging.getLogger(__name__)

_MODES: dict[str, QueueMode] = {"pause": "paused", "drain": "draining", "open": "open"}
_NOW = {
    "open": "is open",
    "paused": "is paused: runs are taken and none starts",
    "draining": "drains: no run is taken, and those that wait still run",
}
_NO_RUN = "This conversation has no run that waits, so there is nothing to give another place."
_BROKEN = "This order could not be carried out because of a fault of the bot; it was logged."


@dataclass(frozen=True)
class Errand:
    """An order that may be given, with the runner and the run that it means."""

    order: GiveOrder
    runner: str
    run: str = ""


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
    right = Right.URGE if order.priority == "high" else Right.YIELD
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
    """Carries orders out."""

    def __init__(self, runners: Runners) -> None:
        self._runners = runners

    async def carry_out(self, errand: Errand) -> tuple[bool, str]:
        """Whether it was done, and what a person is told of it. Raises nothing."""
        by = errand.order.by.name or errand.order.by.id
        order = errand.order.order
        try:
            client = self._runners.get(errand.runner)
            if order.kind == "queue" and order.queue is not None:
                queue = await client.set_queue(_MODES[order.queue], by, order.reason)
                return True, _told_of_queue(errand.runner, queue)
            if order.priority is not None:
                run = await client.set_priority(errand.run, order.priority, by)
                return True, f"The run has {run.priority} priority now and is number {run.position} in the queue."
        except BotError as error:
            return False, f"Nothing was changed. {error.sentence()}"
        except Exception:
            log.exception("the order of %s could not be carried out", errand.order.by.id)
        return False, _BROKEN


def _told_of_queue(runner: str, queue: Queue) -> str:
    waits = {0: "No run waits", 1: "1 run waits"}.get(len(queue.waiting), f"{len(queue.waiting)} runs wait")
    computes = {0: "none is", 1: "1 is"}.get(len(queue.active), f"{len(queue.active)} are")
    return f"The queue of {runner} {_NOW[queue.mode]}. {waits}, and {computes} at work."
