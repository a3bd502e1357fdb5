"""Locks that a killed compilation left behind in the cache of the engine's compiled kernels.

torch compiles an extension under `torch_extensions/<build>/<name>` while a file `lock` lies there, and whoever wants
the extension meanwhile waits until the file is gone, without any limit. A process that is killed while it compiles
leaves the file: from then on every import of the engine hangs. Source: seen with torch 2.13 and amd-quark 0.13.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def kernel_cache() -> Path:
    """Where torch keeps compiled extensions, by its environment variables."""
    if named := os.environ.get("TORCH_EXTENSIONS_DIR"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "torch_extensions"


def remove_left_locks(cache: Path | None = None) -> list[Path]:
    """Remove the locks that no living process of this host holds open, and name them.

    torch keeps the file open for as long as it compiles. What cannot be looked at or removed is left alone.
    """
    left = {path: number for path in _locks(cache or kernel_cache()) if (number := _inode(path)) is not None}
    if not left:
        return []
    held = set(_open_files())
    removed = []
    for path, number in left.items():
        # Looked at again: another process may have removed it, and a third one compile by now.
        if number not in held and _inode(path) == number:
            with suppress(OSError):
                path.unlink()
                removed.append(path)
    return removed


def _locks(cache: Path) -> Iterator[Path]:
    for pattern in ("*/lock", "*/*/lock"):
        with suppress(OSError):
            yield from cache.glob(pattern)


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _open_files() -> Iterator[tuple[int, int]]:
    """Device and inode of all files that processes hold open, as far as this user may see them."""
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal():
            continue
        with suppress(OSError):  # it ended just now, or belongs to somebody else
            for name in os.listdir(process / "fd"):  # noqa: PTH208 - thousands of them, and only their names
                with suppress(OSError):
                    status = os.stat(process / "fd" / name)  # noqa: PTH116
                    yield status.st_dev, status.st_ino
