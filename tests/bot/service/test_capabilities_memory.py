"""What a runner offers: asked once, given at once, and never lost because the runner is away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from bot.errors import RunnerAway
from bot.service.capabilities_memory import RETRY_SECONDS, CapabilitiesMemory
from schemas.api import Capabilities
from schemas.catalog import Catalogue
from tests import samples
from tests.waiting import until

AWAY = RunnerAway("runner_down", "The runner gpu1 cannot be reached.", "Start it.")


def offer(dataset: str) -> Capabilities:
    catalogue = Catalogue(versions=samples.VERSIONS, schemes={}, kv_cache_schemes=[], algorithms=[], templates={})
    return Capabilities(
        catalogue=catalogue, entry_points={}, model_roots=[], output_roots=[], datasets=[dataset], hub=False,
        remote_code=False, engine="local",
    )  # fmt: skip


class Runner:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.answers: asyncio.Queue[Capabilities | Exception] = asyncio.Queue()
        self.now = 1000.0
        self.memory = CapabilitiesMemory("gpu1", self._ask, lambda: self.now)

    async def _ask(self) -> Capabilities:
        self.asked += 1
        answer = await self.answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def idle(self) -> None:
        await until(lambda: not self.memory.asking)


def with_runner(work: Callable[[Runner], Awaitable[None]]) -> None:
    async def whole() -> None:
        runner = Runner()
        await work(runner)
        await runner.memory.close()

    asyncio.run(whole())


def test_the_first_ones_wait_and_share_one_question() -> None:
    async def work(runner: Runner) -> None:
        waiting = [asyncio.create_task(runner.memory.get()) for _ in range(5)]
        await until(lambda: runner.asked == 1)
        waiting[0].cancel()
        runner.answers.put_nowait(offer("a"))
        assert await waiting[1] is await waiting[4]
        assert runner.asked == 1
        assert runner.memory.known == offer("a")

    with_runner(work)


def test_the_known_is_given_while_a_newer_one_is_on_its_way() -> None:
    async def work(runner: Runner) -> None:
        runner.answers.put_nowait(offer("a"))
        await runner.memory.get()
        runner.memory.outdate()
        assert await runner.memory.get() == offer("a")
        runner.answers.put_nowait(offer("b"))
        await runner.idle()
        assert await runner.memory.get() == offer("b")
        assert runner.asked == 2

    with_runner(work)


def test_fresh_waits_for_an_answer_to_a_question_of_its_own() -> None:
    async def work(runner: Runner) -> None:
        runner.answers.put_nowait(offer("a"))
        await runner.memory.get()
        runner.memory.outdate()
        fresh = asyncio.create_task(runner.memory.get(fresh=True))
        runner.answers.put_nowait(offer("asked before"))
        runner.answers.put_nowait(offer("b"))
        assert await fresh == offer("b")

    with_runner(work)


def test_what_became_outdated_while_it_was_asked_for_is_asked_again() -> None:
    async def work(runner: Runner) -> None:
        first = asyncio.create_task(runner.memory.get())
        await until(lambda: runner.asked == 1)
        runner.memory.outdate()
        runner.answers.put_nowait(offer("a"))
        assert await first == offer("a")
        await until(lambda: runner.asked == 2)
        runner.answers.put_nowait(offer("b"))
        await runner.idle()
        assert runner.memory.known == offer("b")

    with_runner(work)


def test_a_failure_is_told_to_who_waits_and_the_known_stays() -> None:
    async def work(runner: Runner) -> None:
        runner.answers.put_nowait(AWAY)
        with pytest.raises(RunnerAway):
            await runner.memory.get()
        runner.answers.put_nowait(offer("a"))
        assert await runner.memory.get() == offer("a")
        runner.memory.outdate()
        runner.answers.put_nowait(AWAY)
        await runner.idle()
        assert await runner.memory.get() == offer("a")
        runner.answers.put_nowait(offer("b"))
        await runner.idle()
        assert runner.memory.known == offer("b")

    with_runner(work)


def test_after_a_failure_it_is_renewed_only_now_and_then() -> None:
    async def work(runner: Runner) -> None:
        runner.memory.outdate()
        runner.answers.put_nowait(AWAY)
        await runner.idle()
        runner.memory.renew()
        runner.now += RETRY_SECONDS - 1
        runner.memory.renew()
        assert runner.asked == 1
        runner.now += 1
        runner.memory.renew()
        runner.answers.put_nowait(offer("a"))
        await runner.idle()
        runner.now += RETRY_SECONDS
        runner.memory.renew()
        await runner.idle()
        assert runner.asked == 2
        assert runner.memory.known == offer("a")

    with_runner(work)


def test_a_fault_is_logged_and_the_next_one_asks_again(caplog: pytest.LogCaptureFixture) -> None:
    async def work(runner: Runner) -> None:
        runner.answers.put_nowait(KeyError("fault"))
        runner.memory.outdate()
        await runner.idle()
        runner.answers.put_nowait(offer("a"))
        assert await runner.memory.get() == offer("a")

    with caplog.at_level(logging.ERROR):
        with_runner(work)
    assert "gpu1" in caplog.text
    assert "KeyError" in caplog.text
