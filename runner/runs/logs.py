"""Pieces of a run's log, as they may leave this host."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from runner.runs.redaction import Redactor


@dataclass(frozen=True)
class LogPiece:
    """A redacted piece of the log. Offsets count bytes of the log on disk; redaction keeps every length."""

    content: bytes
    next_offset: int
    size: int
    complete: bool


def read_log(path: Path, redactor: Redactor, offset: int, length: int, ended: bool) -> LogPiece:
    """At most `length` bytes from `offset`. While the run goes on, a beginning of a secret at the end is held back."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return LogPiece(b"", 0, 0, complete=ended)
    with file:
        size = file.seek(0, 2)

        def read(start: int, count: int) -> bytes:
            file.seek(start)
            return file.read(count)

        start = min(offset, size)
        content, following = redactor.redact_window(read, start, length, size, ended)
    return LogPiece(content, following, size, complete=ended and following >= size)
