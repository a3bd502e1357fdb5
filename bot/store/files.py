"""The files of the database: who may use them, and which process does.

One process writes: it holds a lock on a file beside the database for as long as it lives. That file stays, and says
which process it was and which files it worked with.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from bot.errors import StoreBusy, StoreError
from bot.store.failures import of_system, read_only
from bot.store.presence import identity, log_of

log = logging.getLogger(__name__)


class Claim:
    """This process is the one that writes the database. Ends with the process, however that ends.

    `worked_before` tells that a database was there once, for an earlier process.
    """

    def __init__(self, path: Path) -> None:
        """Raises StoreBusy when another process is."""
        lock = path.with_name(f"{path.name}.lock")
        self._path = path
        was_there = lock.exists()
        try:
            self._file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise of_system(error, path) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._noted = _noted(self._lines())
            self.worked_before = self._noted is not None or (was_there and identity(path) is None)
            self._say(self._noted)
        except BlockingIOError:
            holder = self._lines()[0].strip()
            os.close(self._file)
            message = f"Another bot{f' (process {holder})' if holder else ''} works with the database {path} already."
            raise StoreBusy(
                "store_claimed", message, "Stop it first, or give this one a `database` of its own."
            ) from None
        except OSError as error:
            os.close(self._file)
            raise of_system(error, path) from None
        except StoreError:
            os.close(self._file)
            raise

    def note(self, database: int, changes: int) -> None:
        """Keep the inodes of the database that is worked with and of its log of changes, for the next start."""
        self._noted = database, changes
        try:
            self._say(self._noted)
        except OSError as error:
            raise of_system(error, self._path) from None

    def keep_log_of_another(self) -> None:
        """Set a log of changes aside that belongs to a database that lay here before. Raises StoreError.

        SQLite would write it over the database that lies here now, or delete it where there is none. It is another's
        where the database is missing or empty, or is another file than before beside the very same log; where both are
        other files, they were copied here together.
        """
        changes = log_of(self._path)
        try:
            left = changes.stat()
            if not left.st_size or not self._is_anothers(left.st_ino):
                return
            aside = next(name for name in _names(changes) if not name.exists())
            changes.rename(aside)
        except FileNotFoundError:
            return
        except OSError as error:
            raise of_system(error, self._path) from None
        log.warning("%s belongs to a database that is gone: it is kept as %s", changes, aside)

    def _is_anothers(self, changes: int) -> bool:
        try:
            now = self._path.stat()
        except FileNotFoundError:
            return True
        return not now.st_size or (
            self._noted is not None and now.st_ino != self._noted[0] and changes == self._noted[1]
        )

    def _lines(self) -> list[str]:
        return os.pread(self._file, 200, 0).decode("ascii", "replace").split("\n")

    def _say(self, noted: tuple[int, int] | None) -> None:
        said = f"{os.getpid()}\n" + (f"{noted[0]} {noted[1]}\n" if noted else "")
        # Written before it is cut: on a full disk the old words stay.
        os.ftruncate(self._file, os.pwrite(self._file, said.encode(), 0))

    def release(self) -> None:
        """Let another process have it."""
        with contextlib.suppress(OSError):  # only a note that another file may get the inode of the log that is gone
            if self._noted is not None and not log_of(self._path).exists():
                self._say((self._noted[0], 0))
        os.close(self._file)


def _noted(lines: list[str]) -> tuple[int, int] | None:
    """The inodes that the second line of a lock names; None where an earlier release, or nobody yet, wrote them."""
    numbers = lines[1].split() if len(lines) > 1 else []
    if len(numbers) != 2 or not all(number.isdecimal() for number in numbers):
        return None
    return int(numbers[0]), int(numbers[1])


def _names(changes: Path) -> Iterator[Path]:
    return (changes.with_name(f"{changes.name}.earlier{number}") for number in itertools.count(1))


def make_file(path: Path) -> None:
    """Make an empty file that only this user may read, or see that the one that is there may be written."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        return
    except FileExistsError:
        pass
    except OSError as error:
        raise of_system(error, path) from None
    # Not opened to find out: closing a second descriptor would drop every lock that this process has on the file.
    check_file(path)
    if not all(os.access(place, os.W_OK, effective_ids=True) for place in (path, path.parent)):
        raise read_only(path)
    status = path.stat()
    if status.st_mode & 0o077 and status.st_uid == os.geteuid():
        path.chmod(0o600)  # requests and results are for those who may use the bot


def check_file(path: Path) -> None:
    """Raises StoreError when no file is there that this user may read."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.parent.is_dir() and not path.exists():
            message = f"There is no database {path} yet."
            raise StoreError(
                "store_missing", message, "The bot makes it when it starts, and so does: ptq-bot db upgrade"
            )
        path.stat()
    except OSError as error:
        raise of_system(error, path) from None
    if not os.access(path, os.R_OK, effective_ids=True):
        raise read_only(path)
