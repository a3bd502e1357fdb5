"""The transcript as a platform: cards are printed, and a journal on disk remembers what was posted."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from bot.cards.card import Card
from bot.conversation.person import Place
from bot.errors import PlatformAway, SurfaceGone
from bot.platforms.contract import Event
from bot.platforms.script.rendering import lines_of, meter_line, meter_of

_STEP_PERCENT = 5.0


class ScriptPlatform:
    """Prints what changes. The journal is this platform's own memory, as a chat's server has one."""

    name = "script"
    pace_seconds = 0.0

    def __init__(self, journal: Path, tell: Callable[[str], None]) -> None:
        self._journal = journal
        self._tell = tell
        self._posted: dict[str, str] = {}
        self._shown: dict[str, Card] = {}
        self._told_percent: dict[str, float] = {}
        self._glue = ""
        if journal.exists():
            text = journal.read_text(encoding="utf-8", errors="replace")
            self._glue = "" if text.endswith("\n") or not text else "\n"  # a crash cut the last line
            for line in text.splitlines():
                self._remember(line)

    async def thread(self, place: Place, key: str, title: str) -> str:
        """One thread for each conversation, named by its key."""
        if key not in self._posted:
            self._write(key, title)
            self._tell(f"── {title} ──")
        return key

    async def post(self, place: Place, card: Card, key: str) -> str:
        """Print the card."""
        self._write(key, card.alternative)
        self._shown[key] = card
        self._say(lines_of(card))
        return key

    async def update(self, place: Place, message: str, card: Card) -> str:
        """Print what is new in the card: a line of progress, its outcome, or all of it."""
        if message not in self._posted:
            raise SurfaceGone("message_gone", f"There is no message {message} in the transcript.")
        before, self._shown[message] = self._shown.get(message), card
        meter = meter_of(card)
        if before is not None and meter is not None and meter_of(before) is not None:
            if self._is_news(message, card, before):
                self._tell(meter_line(meter))
        elif before is not None and card.outcome and before.body == card.body:
            self._tell(f"  → {card.title}: {card.outcome}")
        elif before != card:
            self._say(lines_of(card))
        return message

    async def file(self, place: Place, name: str, content: bytes, key: str) -> str:
        """Name the file and its size."""
        self._write(key, name)
        self._tell(f"  file {name} ({len(content):,} bytes)")
        return key

    async def find(self, place: Place, key: str) -> str | None:
        """What the journal knows."""
        return key if key in self._posted else None

    async def whisper(self, event: Event, text: str) -> None:
        """Print it with the person's name."""
        self._tell(f"  (to {event.person.name} only) {text}")

    def _is_news(self, message: str, card: Card, before: Card) -> bool:
        meter, old = meter_of(card), meter_of(before)
        assert meter is not None
        assert old is not None
        told = self._told_percent.get(message, -_STEP_PERCENT)
        if meter.phase == old.phase and meter.stale == old.stale and meter.percent < told + _STEP_PERCENT:
            return False
        self._told_percent[message] = meter.percent
        return True

    def _say(self, lines: list[str]) -> None:
        self._tell("\n".join(lines))

    def _write(self, key: str, what: str) -> None:
        """Keep it before it counts as posted, so that a crash cannot post it again."""
        line = json.dumps({"key": key, "what": what})
        try:
            with self._journal.open("a", encoding="utf-8") as file:
                file.write(self._glue + line + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise PlatformAway("journal", f"The transcript {self._journal} cannot be kept: {error.strerror}.") from None
        self._glue = ""
        self._remember(line)

    def _remember(self, line: str) -> None:
        try:
            key = json.loads(line)["key"]
        except (ValueError, KeyError, TypeError):
            return  # a crash cut the line: what it told of was not posted
        self._posted[key] = key
