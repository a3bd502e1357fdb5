"""Server-sent events, out of bytes that may be cut anywhere."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

from schemas.documents import InvalidDocument, MissingDocument, read_document
from schemas.runs import RunEvent

LARGEST_EVENT = 1 << 20
_PLACE = re.compile(r"[!-~]{1,200}")
_END = re.compile(rb"[\r\n]")
_LINE = re.compile(rb"\r\n|\n|\r(?!\Z)")  # a carriage return at the end may be the first half of a line's end


class StrangeEvent(ValueError):
    """What came is no event of a runner; the text says what is wrong with it."""


@dataclass(frozen=True)
class News:
    """Something that the stream says.

    `place` is what is given back to go on from there. `event` is None where the runner tells to ask for all runs again:
    at the beginning of a connection, and where events were lost.
    """

    place: str | None
    event: RunEvent | None


class EventReader:
    """Takes pieces and gives whole events. Comments and events of unknown kinds are passed over."""

    def __init__(self, place: str | None = None) -> None:
        self._rest = bytearray()
        self._place = place
        self._kind = ""
        self._data: list[bytes] = []
        self._size = 0

    def read(self, piece: bytes) -> list[News]:
        """The events that this piece completes. Raises StrangeEvent."""
        held = self._rest.endswith(b"\r")
        self._rest += piece
        lines: list[bytes] = []
        if held or _END.search(piece):  # a long line in small pieces is not searched again and again
            *lines, rest = _LINE.split(bytes(self._rest))
            self._rest = bytearray(rest)
        if self._size + len(self._rest) > LARGEST_EVENT:
            raise StrangeEvent(f"an event is larger than {LARGEST_EVENT} bytes")
        return [news for line in lines if (news := self._line(line)) is not None]

    def _line(self, line: bytes) -> News | None:
        if not line:
            return self._finished()
        self._size += len(line)
        if self._size > LARGEST_EVENT:
            raise StrangeEvent(f"an event is larger than {LARGEST_EVENT} bytes")
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"id":
                self._place = _place(value)
            case b"event":
                self._kind = value.decode("utf-8", "replace")
            case b"data":
                self._data.append(value)
            case _:
                pass  # a comment, or a field that this program does not need
        return None

    def _finished(self) -> News | None:
        kind, data = self._kind, b"\n".join(self._data)
        self._kind, self._data, self._size = "", [], 0
        match kind:
            case "run":
                return News(self._place, _event(data))
            case "reset":
                return News(self._place, None)
            case _:
                return None


def _place(value: bytes) -> str:
    text = value.decode("ascii", "replace")
    if not _PLACE.fullmatch(text):
        raise StrangeEvent("an event has a name that cannot be given back")
    return text


def _event(data: bytes) -> RunEvent:
    try:
        return read_document(RunEvent, json.loads(data))
    except (InvalidDocument, MissingDocument) as error:
        raise StrangeEvent(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise StrangeEvent(f"an event is not JSON: {error}") from None


async def patiently(pieces: AsyncIterator[bytes], seconds: float) -> AsyncGenerator[bytes | None, None]:
    """The pieces as they come, and None each time that none came for so long. The reading itself goes on meanwhile."""
    reading: asyncio.Task[bytes | None] | None = None
    try:
        while True:
            reading = asyncio.create_task(_next(pieces))
            while not (await asyncio.wait({reading}, timeout=seconds))[0]:
                yield None
            piece = reading.result()
            if piece is None:
                return
            yield piece
    finally:
        if reading is not None and not reading.done():
            reading.cancel()
            await asyncio.wait({reading})


async def _next(pieces: AsyncIterator[bytes]) -> bytes | None:
    return await anext(pieces, None)
