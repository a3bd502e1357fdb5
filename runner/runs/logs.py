"""Pieces of a run's log, as they may leave this host."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from runner.errors import Broken, NotHere, Refused
from runner.intake.reading import opened, read_fully
from runner.runs.redaction import Redactor


@dataclass(frozen=True)
class LogPiece:
    """A redacted piece of the log. Offsets count bytes of the log on disk; redaction keeps every length."""

    content: bytes
    next_offset: int
    size: int
    complete: bool


def read_log(path: Path, redactor: Redactor, offset: int, length: int, ended: bool) -> LogPiece:
    """At most `length` bytes from `offset`. While the run goes on, a beginning of a secret at the end is held back.

    Raises NotHere [log_not_readable] when something else than a file is in its place, Broken when the disk fails.
    """
    try:
        with opened(path, follow_links=False) as (descriptor, size):

            def read(start: int, count: int) -> bytes:
                return read_fully(descriptor, count, start)

            start = min(offset, size)
            content, following = redactor.redact_window(read, start, length, size, ended)
    except NotHere:
        return LogPiece(b"", 0, 0, complete=ended)
    except Refused as error:
        hint = "Look at the run's folder on the runner's host: the log there must be the file that the run wrote."
        raise NotHere("log_not_readable", f"The log cannot be shown: {error.message}", hint) from None
    except OSError as error:
        message = f"The log {path} cannot be read: {error.strerror}."
        raise Broken("log_unreadable", message, "Look at the disk of the runner's host.") from None
    return LogPiece(content, following, size, complete=ended and following >= size)
