"""Who has which GPU: one locked file (flock) for each in a folder that all daemons of this host share.

The lock belongs to the open file, and the processes of a run inherit it: it lasts as long as anything of the run still
computes, also when daemon and supervisor were killed, and the kernel frees it with the last of them.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runner.errors import Broken

_FOLDER_MODE = 0o1777  # everybody may make a file, nobody may remove another's
_FILE_MODE = 0o666


@dataclass
class Leases:
    """The leases of this host."""

    folder: Path

    def take(self, identity: str) -> int | None:
        """The locked descriptor, or None where somebody has this GPU. Raises Broken where the folder cannot be used."""
        descriptor = self._open(identity)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError as error:
            os.close(descriptor)
            raise self._unusable(error) from None
        return descriptor

    def is_taken(self, identity: str) -> bool:
        """Whether somebody has this GPU. The lock is tried shared for an instant. Raises Broken."""
        descriptor = self._open(identity)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError as error:
            raise self._unusable(error) from None
        finally:
            os.close(descriptor)
        return False

    def check(self) -> None:
        """Make the folder. Raises Broken where leases cannot be had here."""
        try:
            if not self.folder.exists():
                self.folder.mkdir(parents=True, exist_ok=True)
                with suppress(PermissionError):  # another daemon of another user was quicker
                    self.folder.chmod(_FOLDER_MODE)
            if self.folder.is_symlink() or not self.folder.is_dir():
                raise NotADirectoryError(20, "it is not a folder")
        except OSError as error:
            raise self._unusable(error) from None

    def _open(self, identity: str) -> int:
        self.check()
        path = self.folder / f"{re.sub(r'[^A-Za-z0-9.-]', '_', identity)}.lock"
        # Whoever may write here could plant a link or a pipe in a lock's place: neither is followed nor waited for.
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            try:
                descriptor = os.open(path, flags)
            except FileNotFoundError:
                descriptor = os.open(path, flags | os.O_CREAT, _FILE_MODE)
                with suppress(PermissionError):  # whoever made it in the same instant sets it
                    os.fchmod(descriptor, _FILE_MODE)  # the umask must not keep daemons of other users out
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise OSError(22, f"{path.name} is no plain file")
        except OSError as error:
            raise self._unusable(error) from None
        return descriptor

    def _unusable(self, error: OSError) -> Broken:
        return Broken(
            "no_leases",
            f"Who has which GPU cannot be told: {self.folder} cannot be used ({error.strerror}).",
            "Let every runner's user write there, or name another folder in gpus.lease_dir, the same for all of them.",
        )
