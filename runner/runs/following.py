"""Reading a run's log as it grows: progress, what was measured, the engine's two tables, and the last lines."""

from __future__ import annotations

import errno
import json
import os
import re
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Final

from runner.errors import NotHere, Refused
from runner.intake.reading import opened
from runner.runs.progress import ProgressReader
from runner.runs.reading import Segments
from runner.runs.tables import TableReader, Tables
from schemas.runs import Progress

_PIECE_BYTES: Final = 1 << 20
_LAST_LINES: Final = 200
_LARGEST_COUNT: Final = 2**53  # as far as every reader of JSON can count
# Where the middle of a long log was cut out it reads as NUL bytes. Lines end there: the two halves are not one.
_CUT_OUT: Final = re.compile(rb"\0+")


class LogFollower:
    """Reads a log once from its beginning, however often it is asked to go on. Memory does not grow with the log."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._segments = Segments()
        self._progress = ProgressReader()
        self._tables = TableReader()
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self.evaluation_dataset = ""
        self.evaluated_tokens: int | None = None
        self.gpu_memory_bytes: int | None = None

    @property
    def progress(self) -> Progress:
        """How far the run is, as far as the log was read."""
        return self._progress.current

    @property
    def tables(self) -> Tables:
        """What the engine said of exclusions and replacements."""
        return self._tables.tables

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The end of the log, where errors stand; oldest first."""
        return tuple(self._last)

    def read_on(self) -> Progress | None:
        """Read what is there now; the progress, or None where there is no log yet.

        Whatever lies there, it never raises. What is no regular file is no log; where the disk fails, the log ends.
        """
        try:
            with opened(self._path, follow_links=False) as (descriptor, _), suppress(OSError):
                self._read_pieces(descriptor)  # what was read before an error counts; the next call tries again
        except (NotHere, Refused):
            return None
        return self._progress.current

    def _read_pieces(self, descriptor: int) -> None:
        while piece := os.pread(descriptor, _PIECE_BYTES, self._offset):
            self._offset += len(piece)
            self._take(self._segments.feed(_CUT_OUT.sub(b"\n", piece)))
            if len(piece) == _PIECE_BYTES and not piece.strip(b"\0"):
                self._offset = _end_of_hole(descriptor, self._offset)

    def read_to_end(self, succeeded: bool) -> Progress:
        """Read everything of a log that will not grow any more."""
        self.read_on()
        self._take(self._segments.finish())
        self._progress.finish(succeeded)
        return self._progress.current

    def _take(self, segments: list[str]) -> None:
        self._progress.follow(segments)
        for segment in segments:
            self._tables.read(segment)
            if segment.startswith('{"ptq"'):
                self._note_measurement(segment)
            if segment.strip():
                self._keep(segment)

    def _keep(self, segment: str) -> None:
        """Note a line of the end. A bar that is drawn again takes its own place: it must not push out what was said."""
        bar = _bar_name(segment)
        if bar and self._last and _bar_name(self._last[-1]) == bar:
            self._last[-1] = segment
        else:
            self._last.append(segment)

    def _note_measurement(self, segment: str) -> None:
        try:
            event = json.loads(segment)
        except (ValueError, RecursionError):
            return
        if isinstance(event, dict) and event.get("ptq") == "perplexity":
            dataset = event.get("dataset")
            self.evaluation_dataset = dataset if isinstance(dataset, str) else ""
            self.evaluated_tokens = _count(event.get("tokens"))
        elif isinstance(event, dict) and event.get("ptq") == "memory":
            self.gpu_memory_bytes = _count(event.get("gpu_peak_bytes"))


def _bar_name(segment: str) -> str:
    """What stands before the percentage of a progress bar; empty for any other line, and for a bar without a name."""
    end = segment.find("%|", 0, 200)
    return segment[: max(0, end - 3)].rstrip() if end >= 0 else ""


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST_COUNT else None


def _end_of_hole(descriptor: int, offset: int) -> int:
    """Where the next data is, or the end; the offset itself where the file system does not know."""
    size = os.fstat(descriptor).st_size  # before the search: what is appended meanwhile must not be skipped
    try:
        return max(offset, os.lseek(descriptor, offset, os.SEEK_DATA))
    except OSError as error:
        return max(offset, size) if error.errno == errno.ENXIO else offset
