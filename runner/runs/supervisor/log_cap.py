"""Keeps a run's log under its limit: head and tail stay."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from .words import call_libc, say


class LogCap:
    """The limit of one log, in bytes of disk space."""

    def __init__(self, log: Path, limit_bytes: float) -> None:
        self._log, self._limit = log, limit_bytes

    def cut(self) -> None:
        """Give the blocks of the middle back to the disk when the log is too large: they read as NUL bytes then."""
        try:
            facts, limit = os.stat(self._log), self._limit  # noqa: PTH116 - at each poll, so it has to be cheap
            if facts.st_blocks * 512 <= limit:
                return
            block = max(facts.st_blksize, 4096)
            start = int(limit // 4 // block + 1) * block
            length = int(facts.st_size - limit // 2 - start) // block * block
            if length > 0:
                with self._log.open("r+b") as log:  # 1: the length stays, 2: punch a hole
                    call_libc("fallocate", log.fileno(), 1 | 2, ctypes.c_int64(start), ctypes.c_int64(length))
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                self._limit = float("inf")
                say(f"The log cannot be kept under its limit on this file system: {error.strerror}.")
