"""The numbered events of one run, in its folder, and the stream that carries those of all runs.

The journal is for people and for the bot's convenience: what a run *is* follows from its folder, never from events.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from schemas.runs import RunEvent

JOURNAL_FILE = "events.jsonl"
_TAIL_BYTES = 64 << 10


class Journal:
    """Appends events to `events.jsonl`. One writer: the daemon."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / JOURNAL_FILE
        self.last, self._size = self._mend()

    def append(self, event: RunEvent) -> None:
        """Write the next event; its number has to be the one after the last. Raises OSError, and then wrote nothing."""
        if event.number != self.last + 1:
            raise ValueError(f"event {event.number} does not follow {self.last}")
        line = event.model_dump_json().encode() + b"\n"
        with self._path.open("ab") as file:
            try:
                file.write(line)
                file.flush()
            except OSError:
                file.truncate(self._size)  # a full disk takes half a line; the next one must not be glued to it
                raise
        self.last, self._size = event.number, self._size + len(line)

    def _mend(self) -> tuple[int, int]:
        """Cut a line that a crash left unfinished; the number of the last whole event, and the size in bytes.

        Only the end is read: a start of the daemon must not cost what all its history has told.
        """
        try:
            file = self._path.open("r+b")
        except FileNotFoundError:
            return 0, 0
        with file:
            size = file.seek(0, 2)
            start = max(0, size - _TAIL_BYTES)
            file.seek(start)
            lines = file.read().splitlines(keepends=True)
            last = None
            while lines and (last := _number(lines[-1])) is None:
                size -= len(lines.pop())
            file.truncate(size)
        return last or 0, size


def _number(line: bytes) -> int | None:
    if not line.endswith(b"\n"):
        return None
    try:
        number = json.loads(line)["number"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return number if isinstance(number, int) and number > 0 else None


@dataclass(frozen=True)
class Sent:
    """An event as the stream carries it. `id` is what a reader gives back to go on from there."""

    id: str
    event: RunEvent | None


class EventStream:
    """All runs' events, as they happen, for any number of readers; the latest ones are kept for those that come back.

    A reader whose place is no longer known (another daemon, too long away, too slow) gets one `Sent` without an event:
    it has to ask for the state of its runs again.
    """

    def __init__(self, kept: int = 2000, waiting: int = 1000) -> None:
        self._epoch = secrets.token_hex(4)
        self._count = 0
        self._kept: deque[Sent] = deque(maxlen=kept)
        self._waiting = waiting
        self._readers: set[asyncio.Queue[Sent | None]] = set()
        self._closed = False

    def publish(self, event: RunEvent) -> None:
        """Hand an event to all readers. Never waits: a reader that does not keep up is told to ask again."""
        self._count += 1
        sent = Sent(f"{self._epoch}.{self._count}", event)
        self._kept.append(sent)
        for reader in self._readers:
            if reader.full():
                while not reader.empty():
                    reader.get_nowait()
                reader.put_nowait(Sent(sent.id, None))
            else:
                reader.put_nowait(sent)

    def close(self) -> None:
        """End every reader, also one that was answered and has not begun to read, so that the daemon can stop."""
        self._closed = True
        for reader in self._readers:
            while not reader.empty():
                reader.get_nowait()
            reader.put_nowait(None)

    async def read(self, after: str | None) -> AsyncIterator[Sent]:
        """Events after the given place, then as they happen."""
        mine: asyncio.Queue[Sent | None] = asyncio.Queue(self._waiting)
        self._readers.add(mine)
        try:
            for sent in self._missed(after):
                yield sent
            while not self._closed and (sent_now := await mine.get()) is not None:
                yield sent_now
        finally:
            self._readers.discard(mine)

    def _missed(self, after: str | None) -> list[Sent]:
        if after is None:
            return []
        epoch, _, count = after.partition(".")
        oldest = self._count - len(self._kept)
        if epoch != self._epoch or not count.isdecimal() or not oldest <= int(count) <= self._count:
            return [Sent(f"{self._epoch}.{self._count}", None)]
        return list(self._kept)[int(count) - oldest :]
