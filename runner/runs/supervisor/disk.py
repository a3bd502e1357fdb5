"""Watches that a run leaves the disks enough room: a full one harms everybody on the host."""

from __future__ import annotations

import os
from collections.abc import Sequence

from .words import size


class DiskWatch:
    """The file systems of some folders, and how many bytes must stay free on each."""

    def __init__(self, folders: Sequence[str], reserve_bytes: int) -> None:
        self._folders, self._reserve = folders if reserve_bytes > 0 else (), reserve_bytes

    def shortage(self) -> str:
        """Which file system has too little left, in a sentence; empty while all have enough. Cheap: one call each."""
        for folder in self._folders:
            facts = _facts(folder)
            if facts is not None and (free := facts.f_bavail * facts.f_frsize) < self._reserve:
                told = f"Only {size(free)} are free on the disk of {folder}"
                return f"{told}, and {size(self._reserve)} must stay free there."
        return ""


def _facts(folder: str) -> os.statvfs_result | None:
    """Those of the folder, or of the nearest one above it that exists.

    None where they cannot be had: a network file system that hiccups is no reason to end the run.
    """
    while True:
        try:
            return os.statvfs(folder)
        except (FileNotFoundError, NotADirectoryError):
            above = os.path.dirname(folder)  # noqa: PTH120 - a Path for each look would cost more than the look
            if above == folder:
                return None
            folder = above
        except (OSError, ValueError):  # a name with a NUL byte is no OSError
            return None
