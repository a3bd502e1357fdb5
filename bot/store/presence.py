"""Whether the files of a working database still lie where they were opened.

An open file outlives its name. Moved away, deleted or replaced, it would take every transaction as before, and all of
it would be lost at the next start.
"""

from __future__ import annotations

import logging
from pathlib import Path

from bot.errors import StoreForeign
from bot.store.failures import moved, of_system

log = logging.getLogger(__name__)

Identity = tuple[int, int]
"""The device and inode of a file: they stay with it, whatever it is called."""


class Presence:
    """The files of one database, as they were when it was opened. Used by all threads of a store."""

    def __init__(self, path: Path) -> None:
        """The file that lies there now is the one. Raises StoreForeign when there is none, and StoreError."""
        self.path = path
        self._log_path = log_of(path)
        database = identity(path)
        if database is None:
            raise moved(path, "is gone", "nothing")
        self._database = database
        self._log: Identity | None = None
        self._watches_log = False
        self._told = False

    def watch_log(self) -> None:
        """Look after the log of changes too, now that connections that keep it are open. Raises as `check`."""
        self._watches_log = True
        self.check()

    def check(self) -> None:
        """Raises StoreForeign (store_moved) when a file is not the one that is worked with. Costs two looks.

        It is well again as soon as the file is back.
        """
        trouble = self._trouble()
        if trouble is None:
            if self._told:
                self._told = False
                log.warning("the database %s is back", self.path)
            return
        if not self._told:
            self._told = True
            log.error("%s", trouble.sentence())
        raise trouble

    def forget_log(self) -> None:
        """A connection was closed. The last one takes the log of changes with it, and the next makes another."""
        self._log = None

    def inodes(self) -> tuple[int, int]:
        """Those of the database and its log, 0 for no log. Devices may be numbered anew when a machine starts."""
        return self._database[1], self._log[1] if self._log else 0

    def _trouble(self) -> StoreForeign | None:
        database = identity(self.path)
        if database is None:
            return moved(self.path, "was moved away or deleted", "nothing")
        if database != self._database:
            return moved(self.path, "was replaced by another file", "another")
        if not self._watches_log:
            return None
        known, now = self._log, identity(self._log_path)
        if known is None:
            self._log = now
        elif now != known:
            return moved(self._log_path, "was moved away, deleted or replaced", "log")
        return None


def identity(path: Path) -> Identity | None:
    """Which file lies there; None for none. Raises StoreError when that cannot be found out."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise of_system(error, path) from None
    return status.st_dev, status.st_ino


def log_of(path: Path) -> Path:
    """Where SQLite keeps what is committed and not yet in the database itself."""
    return path.with_name(f"{path.name}-wal")
