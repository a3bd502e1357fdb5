"""Listening to a runner: hints are thinned out, losses are told once, and it comes back by itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.errors import BotError, RunnerAway, RunnerError, RunnerForeign
from bot.service import hints
from bot.service.event_reader import News
from bot.service.runner_client import RunnerClient
from bot.service.runner_watch import Pace, RunnerWatch, WatchedRunner
from schemas.runs import RunEvent, RunState, StateChanged
from tests.e2e.host import running_host
from tests.waiting import until

AT = datetime(2026, 1, 2, tzinfo=UTC)
DOWN = RunnerAway("runner_down", "The runner gpu1 cannot be reached.", "Start it.")
FOREIGN = RunnerForeign("strange_answer", "It is no runner.", "Look at it.")
DENIED = RunnerError("wrong_token", "It refuses this bot.", "Set the token.")

QUICK = Pace(first=0.001, longest=0.004, settled=10, again=60, gap=0.001)


def happened(run: str, place: str = "e.1") -> News:
    return News(place, RunEvent(run=run, number=1, at=AT, what=StateChanged(state=RunState.QUEUED)))


@dataclass
class FakeRunner:
    """Each connection tells what was put into `news`; an error ends it."""

    name: str = "gpu1"
    news: asyncio.Queue[News | BotError] = field(default_factory=asyncio.Queue)
    refuses: BotError | None = None
    places: list[str | None] = field(default_factory=list)
    refreshed: int = 0
    renewed: int = 0
    open: int = 0

    async def events(self, after: str | None = None) -> AsyncGenerator[News, None]:
        self.places.append(after)
        if self.refuses is not None:
            raise self.refuses
        self.open += 1
        try:
            yield News(after, None)
            while True:
                one = await self.news.get()
                if isinstance(one, BotError):
                    raise one
                yield one
        finally:
            self.open -= 1

    def refresh(self) -> None:
        self.refreshed += 1

    def renew(self) -> None:
        self.renewed += 1


@dataclass
class Heard:
    """What the watch called."""

    runs: list[str] = field(default_factory=list)
    connects: int = 0
    away: list[str] = field(default_factory=list)

    async def on_run(self, run: str) -> None:
        self.runs.append(run)

    async def on_connect(self) -> None:
        self.connects += 1

    async def on_away(self, error: BotError) -> None:
        self.away.append(error.code)


@asynccontextmanager
async def watching(
    client: WatchedRunner, heard: Heard, pace: Pace | None = QUICK, **hooks: Any
) -> AsyncIterator[RunnerWatch]:
    named = {"on_run": heard.on_run, "on_connect": heard.on_connect, "on_away": heard.on_away, **hooks}
    watch = RunnerWatch(client, pace=pace, **named)
    running = asyncio.create_task(watch.run())
    try:
        yield watch
        assert not running.done(), running
    finally:
        running.cancel()
        await asyncio.wait({running})


def watched(
    work: Callable[[FakeRunner, Heard, RunnerWatch], Awaitable[None]], pace: Pace = QUICK, **hooks: Any
) -> tuple[FakeRunner, Heard]:
    async def whole() -> tuple[FakeRunner, Heard]:
        runner, heard = FakeRunner(), Heard()
        async with watching(runner, heard, pace, **hooks) as watch:
            await work(runner, heard, watch)
        assert runner.open == 0
        assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        return runner, heard

    return asyncio.run(whole())


def test_it_tells_of_the_connection_and_of_runs() -> None:
    async def work(runner: FakeRunner, heard: Heard, watch: RunnerWatch) -> None:
        await until(lambda: heard.connects == 1)
        assert watch.connected
        runner.news.put_nowait(happened("run-1"))
        runner.news.put_nowait(happened("run-2"))
        await until(lambda: sorted(heard.runs) == ["run-1", "run-2"])
        assert heard.away == []
        assert runner.refreshed == 1

    watched(work)


def test_a_hundred_hints_are_one_or_two_questions() -> None:
    async def work(runner: FakeRunner, heard: Heard, _: RunnerWatch) -> None:
        for _number in range(100):
            runner.news.put_nowait(happened("run-1"))
        runner.news.put_nowait(happened("run-2"))
        await until(lambda: "run-2" in heard.runs and runner.news.empty())
        assert heard.runs == ["run-1", "run-2"]

    watched(work, Pace(first=0.001, gap=30))


def test_a_hint_during_a_question_is_asked_about_once_more() -> None:
    asked: list[str] = []
    goes_on = asyncio.Event()

    async def on_run(run: str) -> None:
        asked.append(run)
        await goes_on.wait()

    async def work(runner: FakeRunner, _: Heard, __: RunnerWatch) -> None:
        runner.news.put_nowait(happened("slow"))
        await until(lambda: asked == ["slow"])
        for _number in range(10):
            runner.news.put_nowait(happened("slow"))
        runner.news.put_nowait(happened("other"))
        await until(lambda: asked == ["slow", "other"])  # others do not wait for it
        goes_on.set()
        await until(lambda: asked == ["slow", "other", "slow"])

    watched(work, on_run=on_run)


def test_lost_events_and_too_many_runs_are_a_question_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "MOST_AT_ONCE", 2)
    asked: list[str] = []

    async def on_run(run: str) -> None:
        asked.append(run)
        await asyncio.Event().wait()

    async def work(runner: FakeRunner, heard: Heard, _: RunnerWatch) -> None:
        await until(lambda: heard.connects == 1)
        runner.news.put_nowait(News("e.1", None))
        await until(lambda: heard.connects == 2)
        for number in range(3):
            runner.news.put_nowait(happened(f"run-{number}"))
        await until(lambda: heard.connects == 3)
        assert asked == ["run-0", "run-1"]

    watched(work, on_run=on_run)


def test_all_are_asked_again_after_a_while_but_not_while_it_is_away() -> None:
    pace = Pace(first=0.001, longest=0.002, again=0.005, gap=0.001)

    async def work(runner: FakeRunner, heard: Heard, watch: RunnerWatch) -> None:
        await until(lambda: heard.connects >= 3)
        assert runner.renewed >= 3
        assert len(runner.places) == 1
        runner.refuses = DOWN
        runner.news.put_nowait(DOWN)
        await until(lambda: not watch.connected and len(runner.places) > 3)
        before = heard.connects
        await until(lambda: len(runner.places) > 10)
        assert heard.connects <= before + 1  # one may have been on its way

    watched(work, pace)


def test_a_loss_is_told_once_and_again_when_it_is_another() -> None:
    async def work(runner: FakeRunner, heard: Heard, watch: RunnerWatch) -> None:
        await until(lambda: heard.connects == 1)
        runner.refuses = DOWN
        runner.news.put_nowait(DOWN)
        await until(lambda: len(runner.places) > 5)
        assert heard.away == ["runner_down"]
        assert watch.trouble is DOWN
        runner.refuses = DENIED
        await until(lambda: heard.away == ["runner_down", "wrong_token"])
        runner.refuses = None
        await until(lambda: heard.connects == 2)
        assert watch.connected
        assert watch.trouble is None
        runner.news.put_nowait(DOWN)
        await until(lambda: heard.connects == 3)
        assert heard.away == ["runner_down", "wrong_token", "runner_down"]
        assert runner.refreshed == 3

    watched(work)


def test_a_runner_that_is_away_at_first_is_told() -> None:
    async def whole() -> None:
        runner, heard = FakeRunner(refuses=DOWN), Heard()
        async with watching(runner, heard):
            await until(lambda: heard.away == ["runner_down"])
        assert heard.connects == 0

    asyncio.run(whole())


def test_it_goes_on_where_it_was_but_not_into_the_same_nonsense() -> None:
    async def work(runner: FakeRunner, heard: Heard, _: RunnerWatch) -> None:
        await until(lambda: heard.connects == 1)
        runner.news.put_nowait(happened("run-1", "e.7"))
        runner.news.put_nowait(DOWN)
        await until(lambda: len(runner.places) == 2)
        runner.news.put_nowait(happened("run-1", "e.8"))
        runner.news.put_nowait(FOREIGN)
        await until(lambda: len(runner.places) == 3)
        assert runner.places == [None, "e.7", None]

    watched(work)


def test_one_that_always_hangs_up_is_not_called_without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def counted(seconds: float, wake: asyncio.Event | None = None) -> bool:
        if wake is not None:
            await wake.wait()
            return True
        pauses.append(seconds)
        await asyncio.sleep(0)
        return False

    monkeypatch.setattr("bot.service.runner_watch.pause", counted)

    async def work(runner: FakeRunner, _: Heard, __: RunnerWatch) -> None:
        for _number in range(12):
            runner.news.put_nowait(DOWN)
        await until(lambda: runner.news.empty() and len(runner.places) > 12)

    async def nothing() -> None:
        pass

    watched(work, Pace(), on_connect=nothing)
    tries = [seconds for seconds in pauses if seconds != 1.0]
    assert len(tries) >= 12
    assert tries[0] <= 0.5
    assert all(0.3 <= seconds <= 15 for seconds in tries)
    assert all(seconds >= 11 for seconds in tries[6:])


def test_what_its_owner_raises_is_logged_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    raised: list[str] = []

    async def on_run(run: str) -> None:
        raised.append(run)
        raise KeyError(run)

    async def on_connect() -> None:
        raised.append("connect")
        raise DOWN

    async def on_away(_: BotError) -> None:
        raised.append("away")
        raise ValueError("away")

    async def work(runner: FakeRunner, _: Heard, watch: RunnerWatch) -> None:
        await until(lambda: "connect" in raised)
        runner.news.put_nowait(happened("run-1"))
        await until(lambda: "run-1" in raised)
        runner.news.put_nowait(DOWN)
        await until(lambda: "away" in raised)
        await until(lambda: watch.connected)

    with caplog.at_level(logging.WARNING):
        watched(work, on_run=on_run, on_connect=on_connect, on_away=on_away)
    assert "looking at run-1 failed" in caplog.text
    assert "KeyError" in caplog.text
    assert DOWN.message in caplog.text


def test_a_daemon_that_is_killed_and_comes_back(tmp_path: Path) -> None:
    async def whole() -> None:
        heard = Heard()
        client = RunnerClient("gpu1", host.settings.listen_url)
        async with watching(client, heard, Pace(again=3600)) as watch:
            await until(lambda: heard.connects == 1, 30)
            run = await asyncio.to_thread(lambda: host.submit(host.manifest()))
            await until(lambda: run.id in heard.runs, 30)
            await asyncio.to_thread(host.kill)
            await until(lambda: not watch.connected)
            assert heard.away[0] in {"runner_broken", "runner_down"}
            connects = heard.connects
            await asyncio.to_thread(host.start)
            await until(lambda: heard.connects > connects, 30)
            assert watch.trouble is None
            heard.runs.clear()
            await asyncio.to_thread(host.wait_for, run.id, RunState.SUCCEEDED)
            other = await asyncio.to_thread(lambda: host.submit(host.manifest("other"), "other"))
            await until(lambda: other.id in heard.runs, 30)
        await client.close()

    with running_host(tmp_path / "h") as host:
        asyncio.run(whole())
