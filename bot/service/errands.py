"""Errands to runners: what an event asks of one, carried out beside everything else. The event stays open until then.

What is asked of one runner is asked in the order in which it came in, and each is noted down before the next begins.
An order that is carried out once more after a crash was therefore the last one, and undoes none that was given since.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable

from bot.cards.queue import queue_card
from bot.clock import Clock
from bot.conversation.policy import Facts, Policy, Right
from bot.errors import StoreError
from bot.platforms.contract import Event
from bot.service.orders import Answer, Errand, Orders, Question, joined
from bot.service.pause import Backoff, pause
from bot.store.records import Outcome, StoredEvent
from bot.store.store import Store
from bot.store.unit import Unit

log = logging.getLogger(__name__)

_FIRST_SECONDS, _MOST_SECONDS = 1.0, 30.0


class Errands:
    """Those under way, each by the number of its event. `told` says to a person what came of it."""

    def __init__(
        self, store: Store, policy: Policy, clock: Clock, orders: Orders, told: Callable[[Event, str], None]
    ) -> None:
        self._store = store
        self._policy = policy
        self._clock = clock
        self._orders = orders
        self._told = told
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # a lock lets waiters in by their order

    def __contains__(self, event: int) -> bool:
        return event in self._tasks

    def __len__(self) -> int:
        return len(self._tasks)

    def send(self, stored: StoredEvent, errand: Errand | Question, conversation: int | None) -> None:
        """Carry it out soon: a runner may take its time to answer."""
        task = asyncio.create_task(self._carry_out(stored, errand, conversation))
        self._tasks[stored.id] = task
        task.add_done_callback(lambda done: self._end(stored.id, done))

    async def stop(self) -> None:
        """End what is under way; the next process begins it anew."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end(self, event: int, done: asyncio.Task[None]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            # It stays among those under way: tried again at once, it would fall again and again.
            log.critical("the errand of event %s fell; a restart tries it again", event, exc_info=error)
            return
        del self._tasks[event]

    async def _carry_out(self, stored: StoredEvent, errand: Errand | Question, conversation: int | None) -> None:
        if isinstance(errand, Question):
            answer = joined(await asyncio.gather(*map(self._ask, errand.runners)))
            await self._note(lambda unit: self._settle(unit, stored, errand, answer, conversation))
        else:
            async with self._turns[errand.runner]:
                answer = await self._orders.carry_out(errand)
                await self._note(lambda unit: self._settle(unit, stored, errand, answer, conversation))
        self._told(stored.event, answer.told)

    async def _ask(self, runner: str) -> Answer:
        async with self._turns[runner]:  # behind the orders that were given before
            return await self._orders.ask(runner)

    async def _note(self, settle: Callable[[Unit], None]) -> None:
        backoff = Backoff(_FIRST_SECONDS, _MOST_SECONDS)
        while True:
            try:
                return await self._store.write(settle)
            except StoreError as error:
                log.error("the outcome of an errand waits: %s", error.sentence())
                await pause(backoff.seconds())

    def _settle(
        self, unit: Unit, stored: StoredEvent, errand: Errand | Question, answer: Answer, conversation: int | None
    ) -> None:
        now = self._clock.now()
        if isinstance(errand, Errand):
            order = errand.order.order.model_dump(exclude_defaults=True)
            did = {"runner": errand.runner, "run": errand.run, "order": order}
            action = "ordered" if answer.done else "order_refused"
            unit.audit(stored.event.person.id, action, conversation, did, now)
        if answer.queue is not None and conversation is not None:
            runner = errand.runner if isinstance(errand, Errand) else errand.runners[0]
            self._show(unit, stored, conversation, runner, answer)
        outcome = Outcome(verdict="proceeded" if answer.done else "refused", text=answer.told)
        unit.settle(stored.id, outcome, conversation, now)

    def _show(self, unit: Unit, stored: StoredEvent, conversation: int, runner: str, answer: Answer) -> None:
        """The queue with its buttons, for who may press them; what stands there already follows the queue."""
        there, now = unit.conversation(conversation), self._clock.now()
        # A button means the runner of its conversation, so another runner's queue has none here.
        if there is None or there.state.request.runner != runner or answer.queue is None:
            return
        slot = f"queue:{there.state.step}"
        may = not self._policy.against(stored.event.person, Right.QUEUE, Facts(stored.event.person))
        if may or unit.shown(conversation, slot) is not None:
            card = queue_card(conversation, there.state, runner, answer.queue, now)
            unit.show(conversation, slot, card, now)
