"""Files that survive a power cut, and the lock that tells that a supervisor lives."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

RECORDS = ("begun.json", "child.json", "exit.json")  # each alone tells that the run has begun


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last: else a new file can be gone after a power cut although its bytes are there."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def write_durably(path: Path, data: bytes) -> None:
    """Put a whole file in place at once, to survive a power cut. Raises OSError; then the old file stays."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}.tmp")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def in_json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=1).encode("ascii") + b"\n"


def take_lock(path: Path) -> int | None:
    """The locked file, or None when another supervisor holds it.

    A reader takes it *shared* for an instant, which must not make a start fail: while it can be had shared, no
    supervisor has it, and trying again soon succeeds.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    last = time.monotonic() + 5.0
    while time.monotonic() < last:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            break
        fcntl.flock(lock, fcntl.LOCK_UN)
        time.sleep(0.002)
    os.close(lock)
    return None
