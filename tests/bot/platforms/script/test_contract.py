"""The transcript does what every platform must do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.cards.card import Card
from bot.clock import SystemClock
from bot.conversation.person import Place
from bot.platforms.script.adapter import ScriptPlatform
from bot.platforms.script.rendering import lines_of
from bot.store.store import Store
from tests.bot.platforms.scenarios import SCENARIOS, Play, Scenario, Seen, full_card


class Screen:
    """A terminal and the journal beside it. What a person sees of a message is what was printed of it last."""

    place = Place(platform="script", channel="terminal")

    def __init__(self, folder: Path) -> None:
        self._journal = folder / "journal.jsonl"
        self._printed: list[str] = []
        self.platform = _Watched(self._journal, self._printed.append)

    async def seen(self, conversation: int) -> list[Seen]:
        """The messages of the only thread."""
        del conversation
        return self.platform.messages()

    async def restart(self) -> None:
        """The terminal keeps what was printed, and the journal what was posted."""
        before = self.platform
        self.platform = _Watched(self._journal, self._printed.append)
        self.platform.adopt(before)

    def whispers(self) -> list[str]:
        """What was printed for one person."""
        return [line for line in self._printed if " only) " in line]


class _Watched(ScriptPlatform):
    """Notes which lines belong to which message; the adapter itself only prints."""

    def __init__(self, journal: Path, tell: Callable[[str], None]) -> None:
        self._messages: dict[str, Seen] = {}
        super().__init__(journal, tell)

    def adopt(self, before: _Watched) -> None:
        """What was printed before is still there."""
        self._messages = before._messages

    def messages(self) -> list[Seen]:
        """In order."""
        return list(self._messages.values())

    async def post(self, place: Place, card: Card, key: str) -> str:
        """Print it, and note it."""
        message = await super().post(place, card, key)
        self._messages[message] = _as_seen(card)
        return message

    async def update(self, place: Place, message: str, card: Card) -> str:
        """Print it, and note it."""
        message = await super().update(place, message, card)
        self._messages[message] = _as_seen(card)
        return message

    async def file(self, place: Place, name: str, content: bytes, key: str) -> str:
        """Print it, and note it."""
        message = await super().file(place, name, content, key)
        self._messages[message] = Seen(name)
        return message


def _as_seen(card: Card) -> Seen:
    return Seen("\n".join(lines_of(card)), tuple(button.label for button in card.buttons))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_the_transcript_keeps_the_contract(scenario: Scenario, tmp_path: Path) -> None:
    async def play() -> None:
        clock = SystemClock()
        store = await Store.open(f"sqlite:///{tmp_path / 'bot.sqlite3'}", clock)
        try:
            await scenario(Play(Screen(tmp_path), store, clock))
        finally:
            await store.close()

    asyncio.run(play())


def test_a_journal_that_a_crash_cut_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    first = ScriptPlatform(journal, lambda _: None)
    place = Place(platform="script", channel="terminal")
    asyncio.run(first.post(place, full_card(), "one"))
    whole = journal.read_bytes()
    for cut in range(len(whole) - 1):  # a whole line that lacks only its end says all
        journal.write_bytes(whole[:cut])
        second = ScriptPlatform(journal, lambda _: None)
        assert asyncio.run(second.find(place, "one")) is None
        asyncio.run(second.post(place, full_card(), "two"))
        assert asyncio.run(ScriptPlatform(journal, lambda _: None).find(place, "two")) == "two"
