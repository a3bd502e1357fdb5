"""Bytes of a run's log -> segments of text, the same however the bytes arrive.

A log mixes lines with progress bars that redraw themselves, so a segment ends at ``\\n``, at ``\\r`` or at ``\\r\\n``.
Colours and other terminal control sequences are taken out, bytes that are not UTF-8 become U+FFFD.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

LONGEST_SEGMENT: Final = 64 * 1024
"""A longer segment (in characters) is cut: its head and its tail stay, with a mark between them."""


class Segments:
    """Splits a growing log into segments.

    The result depends on the bytes alone, not on how they were cut into feeds. Memory stays bounded by a few times
    `longest` (characters, at least 2), also when a program never ends its line.
    """

    def __init__(self, longest: int = LONGEST_SEGMENT) -> None:
        if longest < 2:
            raise ValueError(f"a segment of at most {longest} characters has no head and tail")
        self._longest = longest
        self._pending = bytearray()
        self._long: _LongSegment | None = None
        self._after_return = False

    def feed(self, data: bytes) -> list[str]:
        """The segments that end within these bytes. A segment may be empty: a blank line is one."""
        if not data:
            return []
        if self._after_return and data.startswith(b"\n"):
            data = data[1:]  # the second half of a \r\n whose first half has already ended the segment
        self._after_return = data.endswith(b"\r")
        *ended, rest = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        segments = []
        for part in ended:
            # Most segments lie whole within one feed; they need no copy of their own.
            untouched = not self._pending and self._long is None and len(part) <= self._longest
            segments.append(_text(part) if untouched else self._end(part))
        self._keep(rest)
        return segments

    def finish(self) -> list[str]:
        """The unfinished segment, when there is one. The log has ended."""
        if not self._pending and self._long is None:
            return []
        return [self._end(b"")]

    def _end(self, part: bytes) -> str:
        self._keep(part)
        text = self._long.text() if self._long else _text(bytes(self._pending))
        self._pending.clear()
        self._long = None
        return text

    def _keep(self, part: bytes) -> None:
        if self._long is None and len(self._pending) + len(part) <= self._longest:
            self._pending += part
            return
        if self._long is None:
            self._long = _LongSegment(self._longest)
            self._long.add(bytes(self._pending))
            self._pending.clear()
        self._long.add(part)


def segments_of(data: bytes) -> list[str]:
    """All segments of a log that is there as a whole."""
    segments = Segments()
    return segments.feed(data) + segments.finish()


class _LongSegment:
    """A segment with more bytes than a segment may have characters: keeps its head and its tail only."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._half = longest // 2
        self._plain = _PlainBytes()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head = ""
        self._tail: list[str] = []
        self._tail_length = 0
        self._length = 0

    def add(self, data: bytes) -> None:
        # In bites, so that one huge feed costs no second copy of itself.
        for start in range(0, len(data), self._longest):
            self._add_text(self._decoder.decode(self._plain.of(data[start : start + self._longest])))

    def _add_text(self, text: str) -> None:
        self._length += len(text)
        room = self._longest - len(self._head)
        self._head += text[:room]
        if rest := text[room:]:
            self._tail.append(rest)
            self._tail_length += len(rest)
        if self._tail_length > 4 * self._longest:
            self._shorten_tail()

    def _shorten_tail(self) -> None:
        tail = "".join(self._tail)[-self._half :]
        self._tail, self._tail_length = [tail], len(tail)

    def text(self) -> str:
        self._add_text(self._decoder.decode(b"", final=True))
        if self._length <= self._longest:
            return self._head
        self._shorten_tail()
        # The head holds `longest` characters until here: what the tail lacks is at its end.
        tail = (self._head + self._tail[0])[-self._half :]
        head = self._head[: self._longest - self._half]
        left_out = self._length - len(head) - len(tail)
        return f"{head} [... {left_out} characters left out ...] {tail}"


def _text(segment: bytes) -> str:
    return _SEQUENCE.sub(b"", segment).decode("utf-8", "replace")


# The control sequences of ECMA-48: colours and cursor moves (ESC [), character sets (ESC and a character such as "("),
# strings such as titles and links (ESC ] and its like, until BEL or the next ESC), and the two-character ones. Where a
# sequence is malformed, what comes after it is text. None holds an ESC inside, so every ESC begins one.
_SEQUENCE = re.compile(rb"\x1b(?:\[[ -?]*[@-~]?|[ -/]+[0-~]?|[\]PX^_][^\x07\x1b]*\x07?|[0-~])?")
_UNFINISHED = re.compile(rb"\x1b(?:\[[ -?]*|[ -/]+|[\]PX^_][^\x07\x1b]*)?\Z")


class _PlainBytes:
    """Takes the control sequences out of one segment that arrives in pieces.

    A sequence never reaches over the end of its segment, so an unfinished one cannot swallow the log.
    """

    def __init__(self) -> None:
        self._begun = b""

    def of(self, data: bytes) -> bytes:
        data = self._begun + data
        self._begun = b""
        last = data.rfind(b"\x1b")
        if last >= 0 and _UNFINISHED.match(data, last):
            # What an unfinished sequence is depends on its first two bytes; the others need not be kept.
            self._begun = data[last : last + 2]
            data = data[:last]
        return _SEQUENCE.sub(b"", data)
