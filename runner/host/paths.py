"""Names of files and folders that people type, and the folders they may lead to."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from runner.errors import BadRequest

_LONGEST = 4096  # PATH_MAX on Linux
_LONGEST_PART = 255  # NAME_MAX


def checked_name(asked: str, what: str, code: str) -> str:
    """The name without surrounding blanks, or BadRequest with `code`.

    Refused are names that could become an option, and characters that do not show: a name is repeated on cards and in
    logs, where a line break or a right-to-left mark would say something else than what is meant. The system's calls
    raise ValueError for some of them, so that every path from outside comes through here before any file is looked at.
    """
    name = asked.strip(" \t")
    if not name:
        raise BadRequest(code, f"The {what} has no name.", f"Write the {what} as a path.")
    if len(name.encode("utf-8", "surrogatepass")) > _LONGEST:
        raise BadRequest(code, f"The {what} has a name of more than {_LONGEST} bytes.", "Write a shorter path.")
    if any(len(part.encode("utf-8", "surrogatepass")) > _LONGEST_PART for part in name.split("/")):
        raise BadRequest(code, f"A part of the {what}'s path is longer than {_LONGEST_PART} bytes.", "Shorten it.")
    if not name.isprintable():
        shown = ascii(name)[:120]
        raise BadRequest(code, f"The {what} {shown} has characters that do not show.", "Write the path without them.")
    if name.startswith("-"):
        raise BadRequest(
            code,
            f"The {what} {name} begins with a dash and could be taken for an option.",
            "Write the whole path, which begins with a slash.",
        )
    return name


def resolved(path: Path | str) -> Path:
    """The path with every link followed as far as it exists; a loop of links stays as it is and then does not exist."""
    return Path(os.path.realpath(path))


def within(path: Path, folder: Path) -> bool:
    """Whether a path is a folder or lies in it. Both have to be resolved already."""
    return path == folder or folder in path.parents


def root_of(path: Path, roots: Iterable[Path]) -> Path | None:
    """The first root, resolved, that holds a resolved path; None when it lies outside of all."""
    return next((real for real in map(resolved, roots) if within(path, real)), None)


def listed(paths: Iterable[Path | str]) -> str:
    """Several paths in a sentence."""
    return ", ".join(str(path) for path in paths)


def why_unreachable(path: Path) -> str | None:
    """Why the system cannot even tell whether a resolved path exists, such as a loop of links; None when it can.

    What is missing or closed to the runner's user is no such case: those have sentences of their own.
    """
    try:
        os.stat(path)  # noqa: PTH116 - the errors of the system itself are wanted
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except OSError as error:
        return error.strerror or type(error).__name__
    return None


def nearest_existing(path: Path) -> Path:
    """The path itself or the closest folder above it that exists."""
    return next((place for place in (path, *path.parents) if os.path.exists(place)), Path("/"))  # noqa: PTH110 - never raises
