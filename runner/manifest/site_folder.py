"""The folder of a site's script, read whole. What runs is a copy of it: a later edit changes no approved run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from runner.errors import NotHere, Refused
from runner.intake.reading import opened, read_fully

MOST_FILES = 200
MOST_BYTES = 16 << 20

_OWN_FOLDER = "Give the script a folder of its own that holds only what it needs."


def read_site_folder(script: Path) -> dict[str, bytes]:
    """Every file of the script's folder by its path within it, the script among them.

    Hidden files and `__pycache__` are left out, and do not run either. Raises NotHere [file_missing] without the
    script, Refused [site_script_unfit] for links and other things that are no files, for what cannot be read, and for a
    folder of more than MOST_FILES files or MOST_BYTES bytes.
    """
    found: dict[str, bytes] = {}
    size = 0
    for name, path in _files(script.parent):
        if len(found) >= MOST_FILES:
            raise _unfit(f"The folder {script.parent} of the site's script holds more than {MOST_FILES} files.")
        content = _content(path, MOST_BYTES - size)
        if content is None:
            raise _unfit(f"The folder {script.parent} of the site's script holds more than {MOST_BYTES >> 20} MiB.")
        size += len(content)
        found[name] = content
    if script.name not in found:
        raise NotHere("file_missing", f"The site's script {script} is gone.", "Correct quark.script in runner.yaml.")
    return found


def _files(folder: Path, prefix: str = "") -> Iterator[tuple[str, Path]]:
    """Regular files below a folder, in the order of their names. A link could show what lies elsewhere, later."""
    try:
        with os.scandir(folder) as inside:
            below = sorted(inside, key=lambda entry: entry.name)
    except OSError as error:
        raise _unfit(f"The folder {folder} of the site's script cannot be read: {error.strerror}.") from None
    for entry in below:
        if entry.name.startswith(".") or entry.name == "__pycache__":
            continue
        if not entry.name.isprintable():
            raise _unfit(f"{entry.path!a} beside the site's script has a name with characters that do not show.")
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path), f"{prefix}{entry.name}/")
        elif entry.is_file(follow_symlinks=False):
            yield prefix + entry.name, Path(entry.path)
        else:
            raise _unfit(f"{entry.path} beside the site's script is a link, or no file.")


def _content(path: Path, room: int) -> bytes | None:
    """The bytes of a file; None where they are more than there is room for."""
    try:
        with opened(path, follow_links=False) as (descriptor, size):
            return read_fully(descriptor, size, 0) if size <= room else None
    except (NotHere, Refused) as problem:
        raise _unfit(f"A file of the site's script cannot be taken: {problem.message}") from None


def _unfit(message: str) -> Refused:
    return Refused("site_script_unfit", message, _OWN_FOLDER)
