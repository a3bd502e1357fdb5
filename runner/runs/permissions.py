"""Who may read a finished model. The engine writes weights with mode 0600; runner.yaml says what they get instead."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path

from runner.errors import BadRequest
from runner.runs.output import entries, list_files
from schemas.artifacts.report import OutputFile

_PASSAGE = stat.S_IRUSR | stat.S_IXUSR  # this process has to go through a folder, whatever the mode says


def set_modes(folder: Path, mode: str) -> list[OutputFile]:
    """Give every file below the folder the mode, and every folder (itself too) the same with the matching x bits.

    `mode` is octal, as in "0640". Links are left alone and not followed, so nothing outside the folder changes; neither
    do files that have a second name elsewhere (a hard link), pipes and sockets. Owner and group stay.
    Returns all files as they are then. Raises OSError when a mode cannot be changed, BadRequest for a bad
    mode, and Refused [output_too_large] for a folder that holds more than any model.
    """
    file_mode = parse_mode(mode)
    folder_mode = file_mode | _searchable(file_mode) | _PASSAGE
    if folder.is_symlink() or not folder.is_dir():
        return []
    folder.chmod(folder_mode)
    for entry in entries(folder):
        # A folder comes before what is in it, so it can be entered by the time it has to be.
        if stat.S_ISDIR(entry.facts.st_mode):
            os.chmod(entry.path, folder_mode)  # noqa: PTH101 - the path may hold bytes that are no text
        elif stat.S_ISREG(entry.facts.st_mode) and entry.facts.st_nlink == 1:
            os.chmod(entry.path, file_mode)  # noqa: PTH101
    return list_files(folder)


def parse_mode(mode: str) -> int:
    """ "0640" -> 0o640. Raises BadRequest for anything but three octal digits, with or without a leading 0."""
    digits = mode.removeprefix("0") if len(mode) == 4 else mode
    if len(digits) != 3 or any(digit not in "01234567" for digit in digits):
        raise BadRequest("bad_mode", f"{mode[:20]!r} is not a file mode.", "Write three octal digits, such as 0640.")
    return int(digits, 8)


def _searchable(mode: int) -> int:
    """The x bit for everybody who has the r bit: a folder that may be listed but not entered is of no use."""
    return (mode & 0o444) >> 2


def who_may_read(path: Path) -> str:
    """Who may read a file or folder, by name: "User runner and group models may read it; nobody else may." """
    facts = path.stat(follow_symlinks=False)
    return readers(facts.st_mode, _user(facts.st_uid), _group(facts.st_gid))


def readers(mode: int, user: str, group: str) -> str:
    """The same sentence from mode bits and names."""
    if mode & 0o444 == 0o444:
        return "Everybody on this host may read it."
    named = [name for bit, name in ((stat.S_IRUSR, f"user {user}"), (stat.S_IRGRP, f"group {group}")) if mode & bit]
    if mode & stat.S_IROTH:
        named.append("everybody else")
    if not named:
        return "Nobody but the administrator may read it."
    sentence = f"{' and '.join(named)} may read it"
    return sentence[0].upper() + sentence[1:] + ("." if mode & stat.S_IROTH else "; nobody else may.")


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)  # containers often run as users that they have no name for


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
