"""Orders to a runner and questions about its queue: once, in their order, and with an honest answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from bot.cards.card import Action, ActionKind, Card
from bot.conversation.person import Person, Place
from bot.conversation.policy import Policy
from bot.conversation.runner_choice import KnownRunner
from bot.conversation.state import State
from bot.conversation.words.vocabulary import PUBLISHED, Vocabulary
from bot.platforms.contract import Clicked, Event, Platform, Said
from bot.service.core import Core
from bot.service.orders import Orders
from bot.service.runner_client import RunnerClient, Runners, Timeouts
from bot.store.store import Store
from schemas.api import Problem, Queue
from schemas.runs import RunState
from tests.bot.conversation import samples
from tests.bot.conversation.samples import ADA, GRACE, ROOT
from tests.bot.service.test_faults import CLOCK
from tests.bot.service.test_questions import Ears
from tests.peers.raw_http import Asked, answer, listening
from tests.waiting import until

PLACE = Place(platform="web", channel="c", thread="t1")
CHANNEL = Place(platform="web", channel="c")
QUEUED = samples.run(state=RunState.QUEUED, started_at=None, position=2)
QUICK = Timeouts(connect=0.5, health=0.5, document=0.5)
PATIENT = Timeouts(document=20)
WORDS = Vocabulary(**{**PUBLISHED.model_dump(), "runners": frozenset({"local", "gone"})})


@dataclass
class PretendQueue:
    """A runner that has a queue, and nothing else. While `gate` is closed it hears orders and answers none."""

    mode: str = "open"
    priority: str = "normal"
    waits: bool = True
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    heard: list[str] = field(default_factory=list)

    async def reply(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        """As the runner would."""
        if asked.method == "POST":
            said = json.loads(asked.body)
            self.heard.append(said.get("mode") or said["priority"])
            await self.gate.wait()
            if "mode" in said:
                self.mode = said["mode"]
            elif self.waits:
                self.priority = said["priority"]
            else:
                await self._refuse(writer)
                return
        there = QUEUED.model_copy(update={"priority": self.priority})
        queue = Queue.model_validate({"mode": self.mode, "by": "Root", "at": datetime(2026, 3, 2, tzinfo=UTC)})
        document = there if asked.path.endswith("/priority") else queue.model_copy(update={"waiting": [there]})
        writer.write(answer(document.model_dump_json().encode()))
        await writer.drain()

    async def _refuse(self, writer: asyncio.StreamWriter) -> None:
        problem = Problem(
            title="Conflict", status=409, detail="The run has started.", code="not_waiting", hint="Cancel it."
        )
        writer.write(answer(problem.model_dump_json().encode(), 409, "application/problem+json"))
        await writer.drain()


@dataclass
class Thread:
    """One conversation, its store, and the runner that it is about."""

    store: Store
    core: Core
    ears: Ears
    queue: PretendQueue
    conversation: int
    events: int = 0

    async def send(self, what: Said | Clicked, by: Person = ROOT, place: Place = PLACE) -> int:
        """Take an event in; its number."""
        self.events += 1
        key = f"web:{self.conversation}:{self.events}"
        await self.core.receive(Event(key=key, person=by, place=place, at=CLOCK.now(), what=what))
        return self.events

    async def told(self, what: str | Clicked, by: Person = ROOT, place: Place = PLACE) -> str:
        """What the person is told to it."""
        before = len(self.ears.told)
        await self.send(Said(text=what) if isinstance(what, str) else what, by, place)
        await until(lambda: len(self.ears.told) > before)
        return self.ears.told[before]

    async def audit(self) -> list[tuple[str, str]]:
        """Who did what."""
        kept = await self.store.read(lambda reader: reader.audit(self.conversation))
        return [(entry.actor, entry.action) for entry in kept]

    async def card(self, step: int = 4) -> Card | None:
        """The queue as the thread shows it."""
        there = await self.store.read(lambda reader: reader.shown(self.conversation, f"queue:{step}"))
        return there.what if there is not None and isinstance(there.what, Card) else None

    async def click(self) -> Clicked:
        """The only button of that card."""
        card = await self.card()
        assert card is not None
        return Clicked(action=card.buttons[0].action)


Scene = Callable[[Thread], Awaitable[None]]


@asynccontextmanager
async def working(core: Core) -> AsyncIterator[None]:
    task = asyncio.create_task(core.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def core_of(store: Store, runners: Runners, ears: Ears, **policy: Any) -> Core:
    """A bot with two runners, of which one is not there."""
    known = (KnownRunner("local", queued=0), KnownRunner("gone", queued=0))
    rules = Policy(**{"admins": (ROOT.id,), "runners": ("local", "gone"), **policy})
    core = Core(store, rules, CLOCK, lambda: WORDS, runners=lambda: known, orders=Orders(runners))
    core.serve(cast(Platform, ears))
    return core


def play(
    folder: Path, scene: Scene, state: State | None = None, seconds: Timeouts = PATIENT, *, opened: bool = True
) -> None:
    """Let a scene happen in a thread whose run waits."""

    async def whole() -> None:
        queue, ears = PretendQueue(), Ears()
        if opened:
            queue.gate.set()
        store = await Store.open(f"sqlite:///{folder / 'bot.sqlite3'}", CLOCK)
        try:
            async with listening(queue.reply) as peer:
                clients = [
                    RunnerClient("local", peer.url, timeouts=seconds),
                    RunnerClient("gone", f"unix://{folder / 'nobody.sock'}", timeouts=seconds),
                ]
                core = core_of(store, Runners(clients), ears)
                stands = state or samples.running(run=QUEUED)
                there = await store.write(lambda unit: unit.begin(PLACE, ADA, stands, CLOCK.now()))
                async with working(core):
                    await scene(Thread(store, core, ears, queue, there.id))
                for client in clients:
                    await client.close()
        finally:
            await store.close()

    asyncio.run(whole())


def test_an_admin_pauses_a_queue_and_is_told_how_it_stands(tmp_path: Path) -> None:
    async def scene(thread: Thread) -> None:
        said = await thread.told("pause the queue because of the driver update")
        assert said == "The queue of local is paused: runs are taken and none starts. 1 run waits, and none is at work."
        assert thread.queue.heard == ["paused"]
        assert (ROOT.id, "ordered") in await thread.audit()

    play(tmp_path, scene)


def test_the_buttons_of_a_queue_change_it_and_follow_it(tmp_path: Path) -> None:
    async def scene(thread: Thread) -> None:
        assert "1 run waits" in await thread.told("queue?")
        pause = await thread.click()
        assert pause.action.kind is ActionKind.PAUSE_QUEUE
        assert "is paused" in await thread.told(pause)
        opens = await thread.click()
        assert opens.action.kind is ActionKind.OPEN_QUEUE
        assert "is paused" in await thread.told(pause), "a double click does the same once more"
        assert "may pause, drain or open a runner's queue" in await thread.told(opens, GRACE)
        assert "is open" in await thread.told(opens)
        assert thread.queue.heard == ["paused", "paused", "open"]

    play(tmp_path, scene)


def test_a_button_of_an_older_card_orders_nothing(tmp_path: Path) -> None:
    async def scene(thread: Thread) -> None:
        action = Action(kind=ActionKind.PAUSE_QUEUE, conversation=thread.conversation, step=3)
        assert "older card" in await thread.told(Clicked(action=action))
        assert thread.queue.heard == []

    play(tmp_path, scene)


def test_who_may_not_change_a_queue_is_told_who_may_and_has_no_buttons(tmp_path: Path) -> None:
    async def scene(thread: Thread) -> None:
        assert (await thread.told("queue?", ADA)).startswith("The queue of local is open. 1 run waits")
        assert await thread.card() is None
        assert "may pause, drain or open a runner's queue" in await thread.told("drain the queue", ADA)
        assert thread.queue.heard == []
        assert (ADA.id, "order_refused") in await thread.audit()

    play(tmp_path, scene)


def test_orders_to_a_runner_keep_their_order_and_wait_for_each_other(tmp_path: Path) -> None:
    async def scene(thread: Thread) -> None:
        for text in ("pause the queue", "open the queue", "drain the queue"):
            await thread.send(Said(text=text))
        await until(lambda: thread.queue.heard == ["paused"])
        waiting = await thread.store.read(lambda reader: reader.waiting_events(9))
        assert len(waiting) == 3, "none is answered yet"
        assert "Nothing" not in await thread.told("what now?", ADA), "nobody else waits for it"
        assert thread.queue.heard == ["paused"]
        thread.queue.gate.set()
        await until(lambda: len(thread.ears.told) == 4)
        assert thread.queue.heard == ["paused", "open", "draining"]
        assert thread.queue.mode == "draining"

    play(tmp_path, scene, opened=False)


def test_an_order_that_a_crash_left_open_is_given_again_before_those_behind_it(tmp_path: Path) -> None:
    async def whole() -> None:
        queue, ears = PretendQueue(), Ears()
        store = await Store.open(f"sqlite:///{tmp_path / 'bot.sqlite3'}", CLOCK)
        async with listening(queue.reply) as peer:
            runners = Runners([RunnerClient("local", peer.url, timeouts=PATIENT)])
            state = samples.running(run=QUEUED)
            there = await store.write(lambda unit: unit.begin(PLACE, ADA, state, CLOCK.now()))
            async with working(first := core_of(store, runners, ears)):
                thread = Thread(store, first, ears, queue, there.id)
                for text in ("pause the queue", "open the queue"):
                    await thread.send(Said(text=text))
                await until(lambda: queue.heard == ["paused"])
            assert ears.told == []
            queue.gate.set()
            async with working(core_of(store, runners, ears)):
                await until(lambda: len(ears.told) == 2)
            assert queue.heard == ["paused", "paused", "open"]
            assert queue.mode == "open"
            assert await store.read(lambda reader: reader.waiting_events(9)) == []
            assert (await thread.audit()).count((ROOT.id, "ordered")) == 2
            for client in runners:
                await client.close()
        await store.close()

    asyncio.run(whole())


def test_an_order_to_a_runner_that_hangs_may_count_and_says_so(tmp_path: Path) -> None:
    async def scene(thread: Thread) -> None:
        said = await thread.told("pause the queue")
        assert said.startswith("Whether this was done is not known; give the order again. The runner local did not")
        gone = await thread.told("pause the queue of gone")
        assert gone.startswith("Nothing was changed. The runner gone cannot be reached: nothing listens there.")

    play(tmp_path, scene, seconds=QUICK, opened=False)


def test_several_queues_are_asked_at_once_and_one_that_is_away_is_said(tmp_path: Path) -> None:
    async def scene(thread: Thread) -> None:
        said = await thread.told("what is running?", ADA, CHANNEL)
        assert "The queue of local is open." in said
        assert "The runner gone cannot be reached" in said
        assert await thread.told("pause the queue", ROOT, CHANNEL) == (
            "Which runner is meant? These fit: local, gone. Name one of them."
        )

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("by", "text", "said", "heard"),
    [
        (ADA, "no hurry", "The run has low priority now and is number 2 in the queue.", ["low"]),
        (ROOT, "high priority", "The run has high priority now and is number 2 in the queue.", ["high"]),
        (ADA, "high priority", "may let this run go before others", []),
        (GRACE, "no hurry", "may change the place of this run", []),
    ],
)
def test_who_may_give_a_run_another_place(tmp_path: Path, by: Person, text: str, said: str, heard: list[str]) -> None:
    async def scene(thread: Thread) -> None:
        assert said in await thread.told(text, by)
        assert thread.queue.heard == heard

    play(tmp_path, scene)


def test_back_to_normal_is_before_others_for_a_run_behind_them(tmp_path: Path) -> None:
    async def scene(thread: Thread) -> None:
        assert "may let this run go before others" in await thread.told("normal priority", ADA)
        assert "normal priority now" in await thread.told("normal priority", ROOT)
        assert thread.queue.heard == ["normal"]

    play(tmp_path, scene, samples.running(run=QUEUED.model_copy(update={"priority": "low"})))


def test_a_run_that_has_started_meanwhile_keeps_its_place(tmp_path: Path) -> None:
    async def scene(thread: Thread) -> None:
        thread.queue.waits = False
        assert await thread.told("no hurry", ADA) == "Nothing was changed. The run has started. Cancel it."

    play(tmp_path, scene)


def test_what_does_not_wait_has_no_place(tmp_path: Path) -> None:
    async def scene(thread: Thread) -> None:
        assert "no run that waits" in await thread.told("no hurry", ADA)
        assert thread.queue.heard == []

    play(tmp_path, scene, samples.running())
