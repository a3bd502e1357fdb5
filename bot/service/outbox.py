"""Brings every card to its platform: at least once, and noticed when it was there already.

Before a message is posted the attempt is written down. After a crash the platform is asked for the attempt's key first,
so that a person sees each thing once. What changes while a message is on its way is drawn by the next round: the newest
card wins, and the last one always arrives.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from datetime import timedelta
from functools import partial

from bot.cards.card import Attachment, Card
from bot.clock import Clock
from bot.conversation.person import Place
from bot.errors import BotError, NotFound, PlatformAway, PlatformDenied, StoreError, SurfaceGone
from bot.platforms.contract import Platform
from bot.service.documents import as_file
from bot.service.pause import Backoff, pause
from bot.store.records import Delivery
from bot.store.store import Store
from bot.store.unit import Unit

log = logging.getLogger(__name__)

_AT_ONCE = 50
_FIRST_SECONDS, _MOST_SECONDS = 1.0, 300.0
_MOST_DOUBLINGS = 12
_LONGEST_SECONDS = 60.0  # for one call of a platform; what hangs longer is tried again, and looked for first
_PAUSE_SECONDS = 0.05
_LOOK_SECONDS = 30.0  # rows whose time has come are seen at the latest after this


class Outbox:
    """Delivers to one platform. Conversations do not wait for each other; the messages of one keep their order.

    A round begins what is due in every conversation that has nothing under way, and does not wait for the others.
    """

    def __init__(self, store: Store, platform: Platform, clock: Clock) -> None:
        self._store = store
        self._platform = platform
        self._clock = clock
        self._drawn_at: OrderedDict[int, float] = OrderedDict()
        self._under_way: dict[int, asyncio.Task[None]] = {}
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Deliver what is there, and what comes, for ever."""
        backoff = Backoff(_FIRST_SECONDS, _LOOK_SECONDS)
        with self._store.subscribe() as changed:
            try:
                while True:
                    changed.clear()
                    self._ended.clear()
                    try:
                        begun = await self._begin()
                        seconds = await self._seconds_to_next()
                    except StoreError as error:
                        log.error("deliveries to %s wait: %s", self._platform.name, error.sentence())
                        await pause(backoff.seconds())
                        continue
                    backoff.reset()
                    if not begun:
                        await self._news(min(max(seconds, _PAUSE_SECONDS), _LOOK_SECONDS), changed.event)
            finally:
                await self._stop()

    async def round(self) -> int:
        """Deliver all that is due now, to the end; how many deliveries were tried."""
        tried = await self._begin()
        await asyncio.gather(*self._under_way.values())
        return tried

    async def _begin(self) -> int:
        """Begin what is due, but for messages that were drawn a moment ago; how many deliveries."""
        # What ends while this looks may have been delivered since: of it the next look knows better.
        busy = set(self._under_way)
        due = await self._store.read(lambda reader: reader.due(self._platform.name, self._clock.now(), _AT_ONCE))
        by_conversation: dict[int, list[Delivery]] = {}
        for delivery in due:
            if delivery.shown.conversation not in busy and self._rests(delivery) <= 0:
                by_conversation.setdefault(delivery.shown.conversation, []).append(delivery)
        for conversation, deliveries in by_conversation.items():
            task = asyncio.create_task(self._in_order(deliveries))
            self._under_way[conversation] = task
            task.add_done_callback(partial(self._end, conversation))
        return sum(len(deliveries) for deliveries in by_conversation.values())

    def _end(self, conversation: int, done: asyncio.Task[None]) -> None:
        self._under_way.pop(conversation, None)
        self._ended.set()
        if not done.cancelled() and (error := done.exception()) is not None:
            log.critical("the deliveries of thread %s fell", conversation, exc_info=error)

    async def _news(self, seconds: float, changed: asyncio.Event) -> None:
        """Wait so long, or until something changed or came to its end."""
        waits = [asyncio.create_task(event.wait()) for event in (changed, self._ended)]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _stop(self) -> None:
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _seconds_to_next(self) -> float:
        """When something has to be delivered, as far as that is known."""
        waiting = await self._store.read(lambda reader: reader.next_due(self._platform.name))
        if waiting is None:
            return _LOOK_SECONDS
        self._forget_rested()
        resting = min((self._rest_of(drawn_at) for drawn_at in self._drawn_at.values()), default=0.0)
        # What is under way tells by its end; what rests, by the clock.
        until_due = _LOOK_SECONDS if self._under_way and not resting else (waiting - self._clock.now()).total_seconds()
        return max(until_due, resting)

    def _rests(self, delivery: Delivery) -> float:
        """Seconds until a message may be drawn again: the newest card wins, so nothing is lost by waiting."""
        drawn_at = self._drawn_at.get(delivery.shown.id)
        return 0.0 if drawn_at is None else self._rest_of(drawn_at)

    def _rest_of(self, drawn_at: float) -> float:
        return drawn_at + self._platform.pace_seconds - time.monotonic()

    def _drawn(self, shown: int) -> None:
        self._drawn_at[shown] = time.monotonic()
        self._drawn_at.move_to_end(shown)
        self._forget_rested()

    def _forget_rested(self) -> None:
        while self._drawn_at and self._rest_of(next(iter(self._drawn_at.values()))) <= 0:
            self._drawn_at.popitem(last=False)

    async def _in_order(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            try:
                if not await self._attempt(delivery):
                    return
            except StoreError as error:
                log.error("a delivery to %s waits: %s", self._platform.name, error.sentence())
                await pause(_FIRST_SECONDS)
                return

    async def _attempt(self, delivery: Delivery) -> bool:
        """Deliver one message. Whether the next one of its conversation may follow."""
        shown = delivery.shown
        try:
            async with asyncio.timeout(_LONGEST_SECONDS):
                message = await self._deliver(delivery)
        except TimeoutError:
            late = f"{self._platform.name} did not answer within {_LONGEST_SECONDS:.0f} s."
            await self._postpone(delivery, PlatformAway("platform_hangs", late))
            return False
        except SurfaceGone as error:
            if shown.message is None:
                return await self._give_up(delivery, error)
            log.info("message %s of thread %s is gone; posting it again", shown.slot, shown.conversation)
            await self._store.write(lambda unit: unit.forget_message(shown.id))
            return False  # the next round posts it
        except PlatformDenied as error:
            return await self._give_up(delivery, error)
        except (PlatformAway, NotFound) as error:
            await self._postpone(delivery, error)
            return False
        except StoreError:
            raise
        except Exception as error:  # a fault of an adapter must not stop all other deliveries
            log.exception("delivering %s of thread %s failed", shown.slot, shown.conversation)
            await self._postpone(delivery, PlatformAway("adapter_fault", str(error)))
            return False
        now = self._clock.now()
        await self._store.write(lambda unit: unit.delivered(shown.id, shown.wanted, message, now))
        self._drawn(shown.id)
        return True

    async def _deliver(self, delivery: Delivery) -> str:
        shown, place = delivery.shown, await self._thread(delivery)
        match shown.what:
            case Card() as card if shown.message is not None:
                return await self._platform.update(place, shown.message, card)
            case Card() as card:
                if (there := await self._found(delivery, place)) is not None:
                    # What was posted may be an older card than the one that is wanted now.
                    return await self._platform.update(place, there, card)
                return await self._platform.post(place, card, delivery.key)
            case Attachment() as attachment:
                if (there := await self._found(delivery, place)) is not None:
                    return there
                content = await self._content(shown.conversation, attachment)
                return await self._platform.file(place, attachment.name, content, delivery.key)

    async def _found(self, delivery: Delivery, place: Place) -> str | None:
        """What an earlier attempt has made; an attempt that is the first is written down."""
        if delivery.tried:
            return await self._platform.find(place, delivery.key)
        now = self._clock.now()
        await self._store.write(lambda unit: unit.trying(delivery.shown.id, now))
        return None

    async def _thread(self, delivery: Delivery) -> Place:
        """The place with its thread, which is opened by the first delivery."""
        place, conversation = delivery.place, delivery.shown.conversation
        if place.thread:
            return place
        there = await self._store.read(lambda reader: reader.conversation(conversation))
        if there is None:
            raise NotFound("no_conversation", f"Thread {conversation} is not known.")
        if there.place.thread:
            return there.place
        title = f"Quantize {there.state.request.model}"
        thread = await self._platform.thread(place, f"ptq-{conversation}", title)
        await self._store.write(lambda unit: unit.set_thread(conversation, thread))
        return place.model_copy(update={"thread": thread})

    async def _content(self, conversation: int, attachment: Attachment) -> bytes:
        document = await self._store.read(
            lambda reader: reader.artifact(conversation, attachment.artifact, attachment.number)
        )
        if document is None:
            raise NotFound("artifact_missing", f"{attachment.name} of thread {conversation} is missing.")
        return as_file(attachment.name, document)

    async def _give_up(self, delivery: Delivery, error: BotError) -> bool:
        shown, now = delivery.shown, self._clock.now()
        log.error("%s of thread %s cannot be shown: %s", shown.slot, shown.conversation, error.sentence())

        def write(unit: Unit) -> None:
            unit.undeliverable(shown.id, error.sentence())
            unit.audit(self._platform.name, "undeliverable", shown.conversation, {"why": error.sentence()}, now)

        await self._store.write(write)
        return True

    async def _postpone(self, delivery: Delivery, error: BotError) -> None:
        asked = error.seconds if isinstance(error, PlatformAway) else None
        doublings = min(delivery.failures, _MOST_DOUBLINGS)
        seconds = asked if asked is not None else min(_FIRST_SECONDS * 2**doublings, _MOST_SECONDS)
        again = self._clock.now() + timedelta(seconds=seconds)
        log.warning("%s of thread %s waits: %s", delivery.shown.slot, delivery.shown.conversation, error.sentence())
        await self._store.write(lambda unit: unit.postponed(delivery.shown.id, error.sentence(), again))
