"""The page does what every platform must do, through the real store and the real outbox."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.clock import SystemClock
from bot.conversation.person import Place
from bot.platforms.contract import Event, Platform, Said
from bot.platforms.web import Live, WebPlatform
from bot.store.records import Conversation, Shown, StoredEvent
from bot.store.store import Store
from tests.bot.conversation.samples import ADA, NOON
from tests.bot.platforms.scenarios import SCENARIOS, Play, Scenario, Seen, an_outage_loses_nothing, full_card
from tests.bot.platforms.web.browser import Browser, Element, Page
from tests.bot.platforms.web.desk import Desk

PLACE = Place(platform="web", channel="page")


class Shelf(Desk):
    """A desk that reads from a real database."""

    store: Store

    async def conversation(self, conversation: int) -> Conversation | None:
        """One conversation."""
        return await self.store.read(lambda reader: reader.conversation(conversation))

    async def thread(self, conversation: int) -> Sequence[StoredEvent | Shown]:
        """What was said and shown in it."""
        return await self.store.read(lambda reader: reader.thread(conversation))

    async def event(self, inbox: int) -> StoredEvent | None:
        """One event."""
        return await self.store.read(lambda reader: reader.event(inbox))


class Screen:
    """The page, and a browser that looks at it."""

    place = PLACE

    def __init__(self, store: Store) -> None:
        self._desk = Shelf()
        self._desk.store = store
        self._browser = Browser(self._desk)
        self.platform: Platform = WebPlatform(self._desk.live)

    async def seen(self, conversation: int) -> list[Seen]:
        """The messages of the thread, as the page has them."""
        answer = await self._browser.ask("GET", f"/threads/{conversation}")
        page = answer.page
        entries = page.one("ol", id="entries")
        return [_seen(page, one) for one in page.all("li", class_="entry") if one.parent is entries]

    async def restart(self) -> None:
        """The adapter remembers nothing of what it did."""
        self.platform = WebPlatform(self._desk.live)

    def whispers(self) -> list[str]:
        """The store keeps what people were told."""
        return []


def _seen(page: Page, entry: Element) -> Seen:
    inside = [one for one in page.all("button") if one.within("li") is entry and "data-copy" not in one.attributes]
    return Seen("".join(entry.pieces), tuple(one.text for one in inside))


# The page shows what the database holds: where it cannot be reached, nobody sees anything of it.
FITTING = [scenario for scenario in SCENARIOS if scenario is not an_outage_loses_nothing]


@pytest.mark.parametrize("scenario", FITTING, ids=lambda scenario: scenario.__name__)
def test_the_page_keeps_the_contract(scenario: Scenario, tmp_path: Path) -> None:
    async def play() -> None:
        clock = SystemClock()
        store = await Store.open(f"sqlite:///{tmp_path / 'bot.sqlite3'}", clock)
        try:
            await scenario(Play(Screen(store), store, clock))
        finally:
            await store.close()

    asyncio.run(play())


def test_every_delivery_wakes_the_pages_of_its_thread_alone() -> None:
    async def go() -> None:
        live = Live()
        platform = WebPlatform(live)
        with live.follow(7) as seven, live.follow(70) as seventy:
            assert await platform.thread(PLACE, "ptq-7", "A thread") == "ptq-7"
            assert await seven.changed(0)
            message = await platform.post(PLACE, full_card(), "ptq-7-plan:3")
            assert await seven.changed(0)
            assert await platform.update(PLACE, message, full_card()) == message
            assert await seven.changed(0)
            assert await platform.file(PLACE, "a.json", b"{}", "ptq-7-plan:3:file") == "ptq-7-plan:3:file"
            assert await seven.changed(0)
            assert not await seventy.changed(0)
            await platform.post(PLACE, full_card(), "a key of another making")
            assert await seventy.changed(0)  # whose it is cannot be told, so all look

    asyncio.run(go())


def test_it_finds_what_it_delivered_and_forgets_in_the_end() -> None:
    async def go() -> None:
        platform = WebPlatform(Live())
        assert await platform.find(PLACE, "ptq-1-plan:1") is None
        name = await platform.post(PLACE, full_card(), "ptq-1-plan:1")
        assert await platform.find(PLACE, "ptq-1-plan:1") == name
        for number in range(10_000):
            await platform.post(PLACE, full_card(), f"ptq-2-plan:{number}")
        assert await platform.find(PLACE, "ptq-1-plan:1") is None
        assert await platform.post(PLACE, full_card(), "ptq-1-plan:1") == name

    asyncio.run(go())


def test_a_whisper_wakes_the_form_that_waits_for_it() -> None:
    async def go() -> None:
        live = Live()
        event = Event(key="web:1", person=ADA, place=PLACE, at=NOON, what=Said(text="hello"))
        with live.follow() as waiting:
            await WebPlatform(live).whisper(event, "No model was found in this.")
            assert await waiting.changed(0)

    asyncio.run(go())
