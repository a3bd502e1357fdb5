"""A question in a thread is answered from its own documents, and changes nothing."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import cast

from pydantic import BaseModel

from bot.conversation.person import Place
from bot.conversation.policy import Policy
from bot.conversation.runner_choice import KnownRunner
from bot.conversation.state import State
from bot.conversation.words.vocabulary import PUBLISHED, Vocabulary
from bot.platforms.contract import Event, Platform, Said
from bot.service.core import NO_MODEL, NO_RUNNERS, Core
from bot.store.store import Store
from schemas.artifacts.plan import Decision
from schemas.digest import digest
from tests import samples as documents
from tests.bot.conversation import samples
from tests.bot.conversation.test_explaining import OFFER
from tests.bot.service.test_faults import CLOCK
from tests.waiting import until

PLACE = Place(platform="web", channel="c", thread="t1")
PLAN = documents.plan(
    decisions=[Decision(decision="global_scheme", value="fp8", reason="Requested: fp8.", source="request")]
)


class Ears:
    """A platform that only hears what people are told."""

    name = "web"

    def __init__(self) -> None:
        self.told: list[str] = []

    def heard(self, times: int) -> bool:
        """Whether it was so often."""
        return len(self.told) == times

    async def whisper(self, event: Event, text: str) -> None:
        """Heard."""
        del event
        self.told.append(text)


class Unreadable(BaseModel):
    """A plan as no release has written it."""

    global_scheme: int = 8


def told(folder: Path, *questions: str, plan: BaseModel = PLAN) -> list[str]:
    """What Ada is told to each; the conversation stands as it did."""

    async def ask() -> list[str]:
        store = await Store.open(f"sqlite:///{folder / 'bot.sqlite3'}", CLOCK)
        policy, ears = Policy(runners=("local",)), Ears()
        core = Core(store, policy, CLOCK, lambda: PUBLISHED, offers=lambda name: OFFER if name == "local" else None)
        core.serve(cast(Platform, ears))
        working = asyncio.create_task(core.run())
        try:
            state = samples.reviewing_plan()
            there = await store.write(lambda unit: unit.begin(PLACE, samples.ADA, state, CLOCK.now()))
            await store.write(lambda unit: unit.add_artifact(there.id, "plan", 1, digest(PLAN), plan, CLOCK.now()))
            for number, question in enumerate(questions, 1):
                said = Said(text=question)
                await core.receive(
                    Event(key=f"web:{number}", person=samples.ADA, place=PLACE, at=CLOCK.now(), what=said)
                )
                await until(partial(ears.heard, number))
            after = await store.read(lambda reader: reader.conversation(there.id))
            assert after is not None
            assert (after.state, after.version) == (state, there.version)
            return ears.told
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            await store.close()

    return asyncio.run(ask())


def test_a_question_is_answered_and_decides_nothing(tmp_path: Path) -> None:
    why, offered, other, yes = told(tmp_path, "why fp8?", "what is awq?", "what now?", "yes?")
    assert why == "Scheme fp8: Requested: fp8. Plan 1 waits for a yes."
    assert offered == ("awq: Scales what matters before rounding. It suits weight-only INT4. Plan 1 waits for a yes.")
    for text in (other, yes):
        assert text.startswith("Plan 1 waits for a yes. You can say yes, ")


def test_a_mistyped_name_is_asked_back(tmp_path: Path) -> None:
    (text,) = told(tmp_path, "use smoothqant")
    assert text.startswith(
        "I did not understand 'smoothqant' in this, and nothing was decided. Did you mean smoothquant? Plan 1 waits "
    )


def test_a_plan_that_cannot_be_read_is_no_answer(tmp_path: Path) -> None:
    why, offered = told(tmp_path, "why fp8?", "what is awq?", plan=Unreadable())
    assert "has fp8 (GPUs). " in why  # what the runner offers is known all the same
    assert offered.startswith("awq: Scales what matters")


def test_in_a_channel_runners_are_told_and_a_request_gets_its_runner(tmp_path: Path) -> None:
    runners = (KnownRunner("local", ("old",), OFFER, 1), KnownRunner("box", ("mi300x",), OFFER, 0))

    async def ask() -> tuple[list[str], State]:
        store = await Store.open(f"sqlite:///{tmp_path / 'bot.sqlite3'}", CLOCK)
        ears = Ears()
        words = Vocabulary(**{**PUBLISHED.model_dump(), "runners": {"local", "box"}, "labels": {"old", "mi300x"}})
        core = Core(store, Policy(runners=("local", "box")), CLOCK, lambda: words, runners=lambda: runners)
        core.serve(cast(Platform, ears))
        working = asyncio.create_task(core.run())
        channel = Place(platform="web", channel="c")
        try:
            for number, text in enumerate(("which runners are there?", "pause the queue", "hello?"), 1):
                said = Said(text=text)
                await core.receive(
                    Event(key=f"w:{number}", person=samples.ADA, place=channel, at=CLOCK.now(), what=said)
                )
                await until(partial(ears.heard, number))
            asked = Said(text="quantize /models/x on mi300x")
            place = Place(platform="web", channel="c2")
            await core.receive(Event(key="w:4", person=samples.ADA, place=place, at=CLOCK.now(), what=asked))
            begun = asyncio.Event()
            core.on_move(lambda _: begun.set())
            await asyncio.wait_for(begun.wait(), 10)
            there = await store.read(lambda reader: reader.conversation(1))
            assert there is not None
            return ears.told, there.state
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            await store.close()

    told, state = asyncio.run(ask())
    assert told[0].startswith("local (old): 1 run waits and none computes, as it said last. box (mi300x): no runs wait")
    assert told[1] == NO_RUNNERS
    assert told[2] == NO_MODEL
    assert (state.request.runner, state.request.runner_reason) == ("box", "only box has the label mi300x")
