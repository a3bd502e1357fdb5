"""Who has which GPU: one locked file (flock) for each in a folder that all daemons of this host share.

The lock belongs to the open file, and the processes of a run inherit it: it lasts as long as anything of the run still
computes, also when daemon and supervisor were killed, and the kernel frees it with the last of them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from runner.errors import Broken

_FOLDER_MODE = 0o1777  # everybody may make a file, nobody may remove another's
_FILE_MODE = 0o666
_TRIES = 50


@dataclass(frozen=True)
class Leases:
    """The leases of this host."""

    folder: Path

    def take(self, identity: str) -> int | None:
        """The locked descriptor, or None where somebody has this GPU. Raises Broken where the folder cannot be used."""
        with self._told(), self._opened() as folder:
            for _ in range(_TRIES):
                descriptor = _file(folder, _file_name(identity))
                try:
                    if not _locked(descriptor):
                        os.close(descriptor)
                        return None
                    if _is_in_place(folder, _file_name(identity), descriptor):
                        with suppress(PermissionError):
                            os.utime(descriptor)  # who cleans /var/tmp removes what is old, locked or not
                        return descriptor
                except OSError:
                    os.close(descriptor)
                    raise
                os.close(descriptor)  # somebody removed the file in the instant before: a lock on it binds nobody
            raise OSError(errno.EBUSY, f"{_file_name(identity)} is removed again and again")

    def is_taken(self, identity: str) -> bool:
        """Whether somebody has this GPU. The lock is tried shared for an instant. Raises Broken."""
        with self._told(), self._opened() as folder:
            descriptor = _file(folder, _file_name(identity))
            try:
                return not _tried(descriptor, fcntl.LOCK_SH)
            finally:
                os.close(descriptor)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """The folder, made where it is not there. A link in its place is not followed: anybody could have put it."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(self.folder, flags)
        except FileNotFoundError:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.folder, flags)
            with suppress(PermissionError):  # another daemon of another user was quicker
                os.fchmod(descriptor, _FOLDER_MODE)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Broken(
                "no_leases",
                f"Who has which GPU cannot be told: {self.folder} cannot be used ({error.strerror}).",
                "Let every runner's user write there, or name another folder in gpus.lease_dir, the same for them all.",
            ) from None


def _file_name(identity: str) -> str:
    return f"{re.sub(r'[^A-Za-z0-9.-]', '_', identity)}.lock"


def _file(folder: int, name: str) -> int:
    """Open the file of a GPU, made where it is not there.

    Whoever may write here could plant a link or a pipe in its place: neither is followed nor waited for. It is made
    only where it is not there, since the kernel refuses O_CREAT for others' files in such a folder
    (fs.protected_regular).
    """
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        try:
            descriptor = os.open(name, flags | os.O_CREAT | os.O_EXCL, _FILE_MODE, dir_fd=folder)
            os.fchmod(descriptor, _FILE_MODE)  # the umask must not keep daemons of other users out
        except FileExistsError:  # another daemon made it in this instant
            descriptor = os.open(name, flags, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"{name} is no plain file")
    return descriptor


def _locked(descriptor: int) -> bool:
    """Lock it. Who only looks holds it shared for an instant; that is not taken for a lease."""
    for _ in range(_TRIES):
        if _tried(descriptor, fcntl.LOCK_EX):
            return True
        if not _tried(descriptor, fcntl.LOCK_SH):
            return False
        os.sched_yield()
    return False


def _tried(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_in_place(folder: int, name: str, descriptor: int) -> bool:
    try:
        there = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))
