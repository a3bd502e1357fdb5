"""What SQLite says, as errors that a person can act upon."""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from sqlalchemy.exc import DBAPIError

from bot.errors import BotError, StoreBusy, StoreError, StoreForeign, StoreFull, StoreReadOnly

_PROBE_BYTES = 64 << 10
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn every error of the database at `path` into a StoreError, and a broken rule of its tables into a BotError."""
    try:
        yield
    except DBAPIError as error:
        raise of_sqlite(error.orig, path) from error
    except sqlite3.Error as error:
        raise of_sqlite(error, path) from error


def of_sqlite(error: BaseException | None, path: Path) -> BotError:
    """The error for what SQLite said of the database at `path`."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    match code:
        case sqlite3.SQLITE_FULL:
            return full(path)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            return busy(path)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return read_only(path)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_FORMAT:
            return damaged(path, str(error))
        case sqlite3.SQLITE_CONSTRAINT:
            # Not a StoreError: the database is well, and the same again would fail the same way.
            return BotError("store_conflict", f"The database refuses what contradicts it: {error}.")
        case sqlite3.SQLITE_IOERR | sqlite3.SQLITE_CANTOPEN if not _has_room(path.parent):
            return full(path)
        case sqlite3.SQLITE_CANTOPEN:
            number = _why_not_open(path)
            return of_system(OSError(number, os.strerror(number)), path)
        case sqlite3.SQLITE_IOERR:
            hint = "Look at the disk and its quota; nothing of what was being written was kept."
            return StoreError("store_disk", f"The disk of the database {path} fails: {error}.", hint)
        case _:
            return StoreError("store_failed", f"The database {path} cannot do this: {error}.")


def of_system(error: OSError, path: Path) -> StoreError:
    """The error for what the operating system said of a file of the database at `path`."""
    if error.errno in _NO_ROOM:
        return full(path)
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return read_only(path)
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        message = f"The folder {path.parent} of the database is not there."
        return StoreError("store_no_folder", message, "Make it, or name another place in `database`.")
    message = f"The database {path} cannot be opened: {error.strerror or error}."
    return StoreError("store_unusable", message, "Name another file in `database`.")


def full(path: Path) -> StoreFull:
    """No room for what was to be written."""
    hint = "Free some space: what was kept is safe, and the bot goes on by itself."
    return StoreFull("store_full", f"The disk of the database {path} is full.", hint)


def busy(path: Path) -> StoreBusy:
    """Somebody else holds the lock."""
    hint = "Close what holds it, such as a database shell or a copy in progress."
    return StoreBusy("store_busy", f"Another process keeps the database {path} locked.", hint)


def read_only(path: Path) -> StoreReadOnly:
    """The file, its folder or its file system may not be written."""
    message = f"The database {path} cannot be read and written by user {os.geteuid()}."
    return StoreReadOnly("store_read_only", message, "Let this user write the file and its folder.")


def damaged(path: Path, why: str) -> StoreForeign:
    """What is there is no database, or is broken."""
    message = f"The database {path} is damaged, or is no database: {why}."
    return StoreForeign("store_damaged", message, "Restore a copy, or move the file away to begin with a new one.")


def moved(file: Path, what: str, instead: Literal["nothing", "another", "log"]) -> StoreForeign:
    """A file that is worked with does not lie in its place. `instead` is what would be met there by the next start."""
    restart = {
        "nothing": "restart the bot to begin with a new, empty one",
        "another": "restart the bot to work with what lies there now",
        # The last connection that is closed writes the log that it has open into the database.
        "log": "stop the bot without killing it, which writes what it knows into the database, and start it",
    }[instead]
    message = f"The database file {file} {what} while the bot works with it."
    return StoreForeign("store_moved", message, f"Put it back (or {restart}); until then nothing is kept.")


def _has_room(folder: Path) -> bool:
    """Whether the disk takes a few more bytes. SQLite keeps to itself why a write failed."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\0" * _PROBE_BYTES)
            file.flush()
    except OSError as error:
        return error.errno not in _NO_ROOM
    return True


def _why_not_open(path: Path) -> int:
    """The reason for which a file cannot be opened, as the system gives it for the same access."""
    try:
        path.stat()
    except OSError as error:
        return error.errno or errno.EIO
    if path.is_dir():
        return errno.EISDIR
    allowed = all(os.access(place, os.R_OK | os.W_OK, effective_ids=True) for place in (path, path.parent))
    return errno.EIO if allowed else errno.EACCES
