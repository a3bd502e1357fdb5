"""Reading a run's log as it grows: progress, what was measured, the engine's two tables, and the last lines."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path

from runner.runs.progress import ProgressReader
from runner.runs.reading import Segments
from runner.runs.tables import TableReader, Tables
from schemas.runs import Progress

_PIECE_BYTES = 1 << 20
_LAST_LINES = 200


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
        """Read what is there now; the progress, or None where there is no log yet."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return None
        with file:
            file.seek(self._offset)
            while piece := file.read(_PIECE_BYTES):
                self._offset += len(piece)
                self._take(self._segments.feed(piece))
        return self._progress.current

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
                self._note_evaluation(segment)
            if segment.strip():
                self._last.append(segment)

    def _note_evaluation(self, segment: str) -> None:
        try:
            event = json.loads(segment)
        except (ValueError, RecursionError):
            return
        if isinstance(event, dict) and event.get("ptq") == "perplexity":
            dataset, tokens = event.get("dataset"), event.get("tokens")
            self.evaluation_dataset = dataset if isinstance(dataset, str) else ""
            self.evaluated_tokens = tokens if isinstance(tokens, int) else None
