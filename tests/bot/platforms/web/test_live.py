"""News for open pages."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bot.platforms.web.live import Live, TooManyFollowers
from tests.bot.conversation import samples as talk
from tests.bot.platforms.web.browser import Browser
from tests.bot.platforms.web.desk import Desk
from tests.waiting import until


def test_a_follower_hears_of_its_conversation_alone() -> None:
    async def go() -> None:
        live = Live()
        with live.follow(1) as one, live.follow(2) as two, live.follow() as every:
            live.changed(1)
            assert await one.changed(1)
            assert await every.changed(1)
            assert not await two.changed(0)
            live.changed()
            assert all([await one.changed(1), await two.changed(1), await every.changed(1)])

    asyncio.run(go())


def test_many_changes_are_one_hint() -> None:
    async def go() -> None:
        live = Live()
        with live.follow(1) as follower:
            for _ in range(100_000):
                live.changed(1)
            assert await follower.changed(1)
            assert not await follower.changed(0)

    asyncio.run(go())


def test_followers_leave_nothing_behind() -> None:
    async def go() -> None:
        live = Live()
        streams = [live.stream(1) for _ in range(100)]
        for stream in streams:
            assert await anext(stream)
        assert live.followers == 100
        for stream in streams:
            await stream.aclose()  # type: ignore[attr-defined]
        assert live.followers == 0

    asyncio.run(go())


def test_a_stream_speaks_at_once_at_every_change_and_in_silence() -> None:
    async def go() -> None:
        live = Live(keep_alive_seconds=0.01)
        stream = live.stream(1)
        first = await anext(stream)
        assert first.startswith("retry: ")
        assert "event: changed\n" in first
        assert await anext(stream) == ": still here\n\n"
        live.changed(1)
        assert await anext(stream) == "event: changed\ndata: \n\n"
        live.close()
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        assert live.followers == 0
        late = live.stream(1)
        assert await anext(late)
        with pytest.raises(StopAsyncIteration):
            await anext(late)

    asyncio.run(go())


def test_waiting_looks_first_and_then_at_every_change() -> None:
    async def go() -> None:
        live = Live()
        answers: list[int | None] = [None, None, 7]
        looked = 0

        async def look() -> int | None:
            nonlocal looked
            looked += 1
            return answers[looked - 1]

        waiting = asyncio.create_task(live.until(look, 30.0))
        for count in (1, 2):
            await until(lambda count=count: looked == count)  # type: ignore[misc]
            live.changed()
        assert await waiting == 7
        assert await live.until(look_at(None), 0.0) is None
        assert live.followers == 0

    asyncio.run(go())


def look_at(value: int | None) -> Any:
    """Something that looks and always sees the same."""

    async def look() -> int | None:
        return value

    return look


def test_a_full_house_says_so_and_forms_still_work() -> None:
    async def go() -> None:
        live = Live(most=1)
        with live.follow(), pytest.raises(TooManyFollowers), live.follow():
            pass
        with live.follow():
            assert live.full()
            assert await live.until(look_at(3), 30.0) == 3
            assert await live.until(look_at(None), 30.0) is None

    asyncio.run(go())


def test_one_page_too_many_is_told_in_a_sentence() -> None:
    desk = Desk(Live(most=0))
    number = desk.begin(talk.analysing())
    browser = Browser(desk)
    answer = browser.get(f"/threads/{number}/live")
    assert answer.status == 503
    assert answer.page.one("div", role="alert").text.startswith("Too many pages are open.")
    assert browser.get(f"/threads/{number}").status == 200


def test_stopping_ends_a_wait() -> None:
    async def go() -> None:
        live = Live()
        waiting = asyncio.create_task(live.until(look_at(None), 30.0))
        await until(lambda: live.followers)
        live.close()
        assert await waiting is None

    asyncio.run(go())
