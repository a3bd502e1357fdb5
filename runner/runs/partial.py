"""What a run that did not succeed leaves: set apart, so that nothing takes it for a model and a retry has its place."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from runner.errors import Broken
from runner.host.output_location import SET_APART, is_set_apart
from runner.runs.supervisor import sync_folder

_LONGEST_NAME = 255  # bytes, on every file system that Linux writes to
_NOT_HERE = {errno.EBUSY, errno.EACCES, errno.EPERM, errno.EROFS, errno.EXDEV, errno.ENOSPC, errno.EDQUOT}


def set_apart(output: Path, run_id: str) -> str:
    """Take what a failed run wrote out of its output folder; where it lies then. Blocks: call it in a thread.

    The folder is renamed to `NAME.partial-RUNID` beside it. Where that is refused, because it is a mount point or the
    folder above may not be written, its content goes into `.partial-RUNID` within it, which every check of an output
    folder takes for nothing. Links are never followed. Empty when the run left nothing; an empty folder is removed
    where that is allowed. Asked again, also after a crash in between, it goes on and says the same.
    Raises Broken [output_not_set_apart] with what is left and why.
    """
    beside = output.with_name(_fitting(output.name, f"{SET_APART}{run_id}"))
    try:
        if os.path.lexists(beside):
            _settle(
                output.parent
            )  # also when the crash came right after the rename; what is at `output` is a later run's
            return str(beside)
        if not _is_folder(output):
            if not os.path.lexists(output):
                return ""
            return _beside(output, beside)  # a file or a link, which is renamed itself
        with os.scandir(output) as found:
            earlier = [is_set_apart(entry) for entry in found]
        if not earlier:
            _remove_empty(output)
            return ""
        if any(earlier):  # for this run, or for one before, whose files stay where they are
            return _within(output, f"{SET_APART}{run_id}")
        try:
            return _beside(output, beside)
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
        return _within(output, f"{SET_APART}{run_id}")
    except OSError as error:
        message = f"What the run left in {output} cannot be set apart: {error.strerror}."
        hint = "It is no model. Move or remove it before the run is tried again with this output folder."
        raise Broken("output_not_set_apart", message, hint) from error


def _beside(output: Path, beside: Path) -> str:
    output.rename(beside)
    _settle(output.parent)
    return str(beside)


def _settle(folder: Path) -> None:
    """Make a rename last where that is possible: a folder that may only be entered cannot be opened for it."""
    try:
        sync_folder(folder)
    except PermissionError:
        return


def _within(output: Path, name: str) -> str:
    """Move what is not set apart yet into a folder within. Every path begins at an open folder: no link leads away."""
    above = os.open(output, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with os.scandir(above) as found:
            entries = [entry.name for entry in found if not is_set_apart(entry)]
        if entries:
            _make_folder(name, above)
        elif not _is_folder(output / name):
            return ""  # all that is here was set apart for runs before
        inside = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        try:
            with os.scandir(inside) as found:
                taken = {entry.name for entry in found}
            for entry in entries:
                free = entry
                while free in taken:  # something still wrote when this was asked before
                    free = _fitting(free, "~")
                os.rename(entry, free, src_dir_fd=above, dst_dir_fd=inside)
                taken.add(free)
            os.fsync(inside)
            os.fsync(above)
        finally:
            os.close(inside)
    finally:
        os.close(above)
    return str(output / name)


def _make_folder(name: str, above: int) -> None:
    try:
        os.mkdir(name, 0o750, dir_fd=above)
    except FileExistsError:
        return  # made when this was asked before; anything but a folder is refused when it is opened


def _remove_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return  # a mount point, or the folder above may not be written: as an empty folder it is free all the same
    _settle(folder.parent)


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _fitting(name: str, ending: str) -> str:
    """The name with the ending, cut where both together would be longer than a name may be; never within a letter."""
    room = _LONGEST_NAME - len(os.fsencode(ending))
    encoded = os.fsencode(name)
    return (name if len(encoded) <= room else encoded[:room].decode(errors="ignore")) + ending
