"""The files of the database: who may use them, and which process does.

One process writes: it holds a lock on a file beside the database for as long as it lives.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from bot.errors import StoreBusy, StoreError
from bot.store.failures import of_system, read_only


class Claim:
    """This process is the one that writes the database. Ends with the process, however that ends."""

    def __init__(self, path: Path) -> None:
        """Raises StoreBusy when another process is."""
        lock = path.with_name(f"{path.name}.lock")
        try:
            self._file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise of_system(error, path) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            holder = os.pread(self._file, 20, 0).decode("ascii", "replace").strip()
            os.close(self._file)
            message = f"Another bot{f' (process {holder})' if holder else ''} works with the database {path} already."
            raise StoreBusy(
                "store_claimed", message, "Stop it first, or give this one a `database` of its own."
            ) from None
        except OSError as error:
            os.close(self._file)
            raise of_system(error, path) from None

    def release(self) -> None:
        """Let another process have it."""
        os.close(self._file)


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
