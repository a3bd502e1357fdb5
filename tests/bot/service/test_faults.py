"""One part meets a fault: it is told, tried again where that helps, and holds up nothing else."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from bot.cards.card import Action, ActionKind, Card
from bot.clock import SystemClock
from bot.conversation.commands import Command, Expire
from bot.conversation.decide import decide
from bot.conversation.decision import Ignore
from bot.conversation.person import Place
from bot.conversation.policy import Policy
from bot.conversation.state import State, Trouble
from bot.conversation.words.vocabulary import PUBLISHED
from bot.conversation.work import work
from bot.errors import BotError, PlatformAway, RunnerError
from bot.platforms.contract import Clicked, Event, Said
from bot.service import expiry
from bot.service.core import Core
from bot.service.outbox import Outbox
from bot.service.run_followers import RunFollowers
from bot.service.runner_client import RunnerClient, Runners
from bot.service.worker import Worker
from bot.store.records import Conversation
from bot.store.store import Store
from bot.store.unit import Unit
from schemas.runs import Run, RunState
from tests.bot.conversation import samples
from tests.bot.platforms.scenarios import card
from tests.bot.service.test_outbox import Chat
from tests.waiting import until

CLOCK = SystemClock()
Scene = Callable[[Store], Awaitable[None]]


def _play(folder: Path, scene: Scene) -> None:
    async def play() -> None:
        store = await Store.open(f"sqlite:///{folder / 'bot.sqlite3'}", CLOCK)
        try:
            await scene(store)
        finally:
            await store.close()

    asyncio.run(play())


async def _put(store: Store, state: State, thread: str = "t1", platform: str = "chat") -> Conversation:
    place = Place(platform=platform, channel="c", thread=thread)
    return await store.write(lambda unit: unit.begin(place, samples.ADA, state, CLOCK.now()))


async def _state(store: Store, conversation: int) -> Any:
    there = await store.read(lambda reader: reader.conversation(conversation))
    assert there is not None
    return there.state


def _core(store: Store) -> Core:
    return Core(store, Policy(runners=("local",)), CLOCK, lambda: PUBLISHED, timedelta(days=14))


async def _end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class _Runner:
    """A runner whose every answer is one error."""

    known_capabilities = None

    def __init__(self, error: BotError) -> None:
        self.error = error
        self.cancels = 0

    def get(self, name: str) -> _Runner:
        """It is the only one."""
        del name
        return self

    async def intake(self, request: object) -> None:
        """Refused."""
        del request
        raise self.error

    async def run(self, run: str) -> Run:
        """As it stands, where only a cancel fails."""
        del run
        if self.error.code == "cancel_not_written":
            return samples.run(state=RunState.QUEUED, started_at=None)
        raise self.error

    async def cancel(self, run: str, by: str, reason: str) -> Run:
        """Refused."""
        del run, by, reason
        self.cancels += 1
        raise self.error


def test_a_delivery_that_has_failed_for_days_is_still_tried(tmp_path: Path) -> None:
    class Away(Chat):
        tries = 0

        async def post(self, place: Place, card: Card, key: str) -> str:
            self.tries += 1
            raise PlatformAway("down", f"{place.channel} is away: {card.title} {key}")

    async def scene(store: Store) -> None:
        conversation = await _put(store, samples.analysing())
        await store.write(lambda unit: unit.show(conversation.id, "analysis:1", card(), CLOCK.now()))
        shown = await store.read(lambda reader: reader.shown(conversation.id, "analysis:1"))
        assert shown is not None
        past = CLOCK.now() - timedelta(seconds=1)

        def fail(unit: Unit) -> None:
            for _ in range(2000):
                unit.postponed(shown.id, "away", past)

        await store.write(fail)
        chat = Away()
        await Outbox(store, chat, CLOCK).round()
        assert chat.tries == 1

    _play(tmp_path, scene)


def test_a_post_that_hangs_holds_up_no_other_conversation(tmp_path: Path) -> None:
    class Hanging(Chat):
        async def post(self, place: Place, card: Card, key: str) -> str:
            if place.thread == "t1":
                await asyncio.Event().wait()
            return await super().post(place, card, key)

    async def scene(store: Store) -> None:
        first = await _put(store, samples.analysing(), "t1")
        second = await _put(store, samples.analysing(), "t2")
        chat = Hanging()
        working = asyncio.create_task(Outbox(store, chat, CLOCK).run())
        await store.write(lambda unit: unit.show(first.id, "analysis:1", card("one"), CLOCK.now()))
        await until(lambda: len(asyncio.all_tasks()) > 2)
        await store.write(lambda unit: unit.show(second.id, "analysis:1", card("two"), CLOCK.now()))
        await until(lambda: [title for _, _, title in chat.drawn] == ["two"])
        await _end(working)

    _play(tmp_path, scene)


def test_a_whisper_that_hangs_holds_up_no_decision(tmp_path: Path) -> None:
    class Hanging(Chat):
        name = "slack"

        async def whisper(self, event: Event, text: str) -> None:
            del event, text
            await asyncio.Event().wait()

    async def scene(store: Store) -> None:
        core = _core(store)
        core.serve(Hanging())
        working = asyncio.create_task(core.run())

        def event(key: str, text: str) -> Event:
            place = Place(platform="slack", channel="c")
            return Event(key=key, person=samples.ADA, place=place, at=CLOCK.now(), what=Said(text=text))

        await core.receive(event("k1", "hello there"))
        await core.receive(event("k2", "quantize Qwen/Qwen3-8B to fp8"))
        with store.subscribe() as changed:
            while await store.read(lambda reader: reader.conversation(1)) is None:
                await asyncio.wait_for(changed.next(), 10)
        await _end(working)

    _play(tmp_path, scene)


def test_a_conversation_that_cannot_be_expired_ends_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(expiry, "_LOOK_SECONDS", 0.01)
    tried: list[int] = []

    class Broken:
        async def answer(self, conversation: int, command: Command) -> None:
            tried.append(conversation)
            raise BotError("store_conflict", f"{command} contradicts something.")

    async def scene(store: Store) -> None:
        await _put(store, samples.reviewing_plan())
        core: Any = Broken()
        working = asyncio.create_task(expiry.expire(store, core, CLOCK, timedelta(seconds=-10)))
        await until(lambda: len(tried) > 2)
        assert not working.done()
        await _end(working)

    _play(tmp_path, scene)


def test_a_run_that_may_still_compute_does_not_expire() -> None:
    failed = samples.failed(run=samples.run(), trouble=Trouble(code="run_missing", message="not known"))
    assert failed.unresolved
    assert isinstance(decide(failed, Expire(failed.step, failed.kind, samples.NOON), samples.POLICY), Ignore)


def test_a_runner_that_was_taken_out_of_the_settings_is_named(tmp_path: Path) -> None:
    async def scene(store: Store) -> None:
        core = _core(store)
        asked = samples.REQUEST.model_copy(update={"runner": "old"})
        runs = await _put(store, samples.running(request=asked), "t1")
        plans = await _put(store, samples.planning(request=asked), "t2")
        runners = Runners([RunnerClient("local", "unix:///nowhere")])
        worker = Worker(store, runners, CLOCK, core.answer)
        core.on_move(worker.consider)
        await worker.resume()
        with store.subscribe() as changed:
            while (await _state(store, runs.id)).silent is None or (await _state(store, plans.id)).delayed is None:
                await asyncio.wait_for(changed.next(), 10)
        assert (await _state(store, runs.id)).silent.message == "There is no runner 'old'."
        assert (await _state(store, plans.id)).delayed.message == "There is no runner 'old'."
        await worker.stop()
        await runners.close()

    _play(tmp_path, scene)


def test_a_cancel_that_is_refused_is_asked_again(tmp_path: Path) -> None:
    async def scene(store: Store) -> None:
        core = _core(store)
        runner: Any = _Runner(RunnerError("cancel_not_written", "The request could not be written: disk full."))
        worker = Worker(store, runner, CLOCK, core.answer)
        core.on_move(worker.consider)
        queued = samples.run(state=RunState.QUEUED, started_at=None)
        worker.consider(await _put(store, samples.running(run=queued, cancelled_by=samples.ADA)))
        await until(lambda: runner.cancels >= 3, 20)
        await worker.stop()

    _play(tmp_path, scene)


def test_a_run_that_cannot_be_told_is_marked_as_stale(tmp_path: Path) -> None:
    async def scene(store: Store) -> None:
        core = _core(store)
        runner: Any = _Runner(RunnerError("document_damaged", "outcome.json of the run is damaged."))
        followers = RunFollowers(runner, CLOCK, core.answer)
        conversation = await _put(store, samples.running())
        followers.follow(conversation.id, work(conversation.state))
        await followers.look_at_all("local")
        assert (await _state(store, conversation.id)).silent.code == "document_damaged"
        await followers.stop()

    _play(tmp_path, scene)


def test_an_answer_that_cannot_be_taken_is_tried_again(tmp_path: Path) -> None:
    heard: list[Command] = []

    async def refuse(conversation: int, command: Command) -> None:
        del conversation
        heard.append(command)
        raise BotError("store_conflict", "The database refuses what contradicts it.")

    async def scene(store: Store) -> None:
        runner: Any = _Runner(RunnerError("model_missing", "There is no such model."))
        worker = Worker(store, runner, CLOCK, refuse)
        worker.consider(await _put(store, samples.analysing()))
        await until(lambda: len(heard) >= 4, 20)
        await worker.stop()

    _play(tmp_path, scene)


def test_an_event_for_a_thread_that_cannot_be_read_holds_up_no_other(tmp_path: Path) -> None:
    async def scene(store: Store) -> None:
        damaged = await _put(store, samples.reviewing_plan(), platform="slack")
        with closing(sqlite3.connect(store.path)) as database:
            database.execute("UPDATE states SET document = '{}' WHERE conversation_id = ?", (damaged.id,))
            database.commit()
        core = _core(store)
        working = asyncio.create_task(core.run())
        action = Action(kind=ActionKind.CANCEL, conversation=damaged.id)
        place = Place(platform="slack", channel="c")

        def event(key: str, what: Clicked | Said) -> Event:
            return Event(key=key, person=samples.ADA, place=place, at=CLOCK.now(), what=what)

        first = await core.receive(event("k1", Clicked(action=action)))
        await core.receive(event("k2", Said(text="quantize Qwen/Qwen3-8B to fp8")))
        with store.subscribe() as changed:
            while await store.read(lambda reader: reader.conversation(damaged.id + 1)) is None:
                await asyncio.wait_for(changed.next(), 10)
        told = await store.read(lambda reader: reader.event(first.id))
        assert told is not None
        assert told.outcome is not None
        assert "cannot be read by this release" in told.outcome.text
        await _end(working)

    _play(tmp_path, scene)
