"""How fast a platform is drawn upon, and that one failure holds up nothing else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from bot.cards.card import Card
from bot.clock import SystemClock
from bot.conversation.person import Place
from bot.conversation.request import Request
from bot.conversation.state import Analysing
from bot.errors import PlatformDenied, SurfaceGone
from bot.platforms.contract import Event
from bot.service.outbox import Outbox
from bot.store.store import Store
from tests.bot.platforms.scenarios import ADA, AT, card
from tests.waiting import until

PACE_SECONDS = 0.3


class Chat:
    """A platform that remembers what it was asked to show, and when."""

    name = "chat"
    pace_seconds = PACE_SECONDS

    def __init__(self) -> None:
        self.drawn: list[tuple[float, str, str]] = []
        self.refuses: Exception | None = None

    def _draw(self, message: str, card: Card) -> str:
        if self.refuses is not None and card.title == "refused":
            refusal = self.refuses
            if isinstance(refusal, SurfaceGone):
                self.refuses = None  # what is posted instead is there
            raise refusal
        self.drawn.append((time.monotonic(), message, card.title))
        return message

    async def thread(self, place: Place, key: str, title: str) -> str:
        """At once."""
        return f"{place.channel}/{key}/{len(title)}"

    async def post(self, place: Place, card: Card, key: str) -> str:
        """Under its key."""
        del place
        return self._draw(key, card)

    async def update(self, place: Place, message: str, card: Card) -> str:
        """In its place."""
        del place
        return self._draw(message, card)

    async def file(self, place: Place, name: str, content: bytes, key: str) -> str:
        """Not used."""
        raise AssertionError((place, name, content, key))

    async def find(self, place: Place, key: str) -> str | None:
        """Whatever was drawn under the key."""
        del place
        return key if any(message == key for _, message, _ in self.drawn) else None

    async def whisper(self, event: Event, text: str) -> None:
        """Not used."""
        raise AssertionError((event, text))


@asynccontextmanager
async def _working(store: Store, chat: Chat) -> AsyncIterator[None]:
    task = asyncio.create_task(Outbox(store, chat, SystemClock()).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _play(folder: Path, scene: Callable[[Store, Chat], Awaitable[None]]) -> None:
    async def play() -> None:
        store = await Store.open(f"sqlite:///{folder / 'bot.sqlite3'}", SystemClock())
        try:
            await scene(store, Chat())
        finally:
            await store.close()

    asyncio.run(play())


async def _begin(store: Store) -> int:
    state = Analysing(request=Request(model="m"), requester=ADA, step=1)
    place = Place(platform="chat", channel="c")
    return (await store.write(lambda unit: unit.begin(place, ADA, state, AT))).id


async def _show(store: Store, conversation: int, slot: str, title: str) -> None:
    await store.write(lambda unit: unit.show(conversation, slot, card(title), AT))


def test_a_message_is_drawn_no_faster_than_the_platform_wants_and_the_last_card_arrives(tmp_path: Path) -> None:
    async def scene(store: Store, chat: Chat) -> None:
        conversation = await _begin(store)
        async with _working(store, chat):
            for percent in range(40):
                await _show(store, conversation, "run:1", f"{percent} %")
                await asyncio.sleep(0)
            await until(lambda: chat.drawn and chat.drawn[-1][2] == "39 %", 10, "the last card did not come")
        times = [at for at, _, _ in chat.drawn]
        assert all(later - earlier >= PACE_SECONDS for earlier, later in pairwise(times))
        assert len(chat.drawn) < 40

    _play(tmp_path, scene)


def test_other_messages_do_not_wait_for_one_that_rests(tmp_path: Path) -> None:
    async def scene(store: Store, chat: Chat) -> None:
        conversation = await _begin(store)
        async with _working(store, chat):
            await _show(store, conversation, "run:1", "first")
            await until(lambda: len(chat.drawn) == 1)
            await _show(store, conversation, "run:1", "again")
            await _show(store, conversation, "result:1", "result")
            await until(lambda: len(chat.drawn) == 3)
        assert [title for _, _, title in chat.drawn] == ["first", "result", "again"]

    _play(tmp_path, scene)


def test_a_message_that_is_refused_for_good_holds_up_nothing(tmp_path: Path) -> None:
    async def scene(store: Store, chat: Chat) -> None:
        chat.refuses = PlatformDenied("no", "The bot may not write here.", "Invite it.")
        conversation = await _begin(store)
        async with _working(store, chat):
            await _show(store, conversation, "plan:1", "refused")
            await _show(store, conversation, "plan:2", "shown")
            await until(lambda: [title for _, _, title in chat.drawn] == ["shown"])
        shown = await store.read(lambda reader: reader.thread(conversation))
        assert [getattr(one, "error", "") for one in shown] == ["The bot may not write here. Invite it.", ""]

    _play(tmp_path, scene)


def test_a_message_whose_surface_is_gone_is_posted_again(tmp_path: Path) -> None:
    async def scene(store: Store, chat: Chat) -> None:
        conversation = await _begin(store)
        async with _working(store, chat):
            await _show(store, conversation, "plan:1", "shown")
            await until(lambda: len(chat.drawn) == 1)
            chat.drawn.clear()
            chat.refuses = SurfaceGone("gone", "It was deleted.")
            await _show(store, conversation, "plan:1", "refused")
            await until(lambda: [title for _, _, title in chat.drawn] == ["refused"], 20)

    _play(tmp_path, scene)


def test_what_was_delivered_while_somebody_looked_is_not_posted_again(tmp_path: Path, monkeypatch: Any) -> None:
    """The look sees the message as it was before its delivery, and comes back when that has ended."""

    async def scene(store: Store, chat: Chat) -> None:
        chat.pace_seconds = 0.0
        outbox = Outbox(store, chat, SystemClock())
        may_write, about_to_post = asyncio.Event(), asyncio.Event()
        may_look_on, looked = asyncio.Event(), asyncio.Event()
        read, write = store.read, store.write

        async def later(work: Callable[[Any], Any]) -> Any:
            about_to_post.set()
            await may_write.wait()
            return await write(work)

        async def slowly(work: Callable[[Any], Any]) -> Any:
            found = await read(work)
            looked.set()
            await may_look_on.wait()
            return found

        await _show(store, await _begin(store), "run:1", "first")
        monkeypatch.setattr(store, "write", later)
        delivery = asyncio.create_task(outbox.round())
        await about_to_post.wait()
        monkeypatch.setattr(store, "read", slowly)
        look = asyncio.create_task(outbox.round())
        await looked.wait()
        monkeypatch.setattr(store, "read", read)
        may_write.set()
        await delivery
        may_look_on.set()
        await look
        assert [title for _, _, title in chat.drawn] == ["first"]

    _play(tmp_path, scene)
