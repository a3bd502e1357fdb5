"""The state folder belongs to the runner alone: whoever can write into it decides what runs."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from runner.errors import Refused


def keep_others_out(state_dir: Path) -> None:
    """Close a new folder of our own. Raises Refused where others may have changed what is in it, or still could."""
    if danger := danger_in(state_dir):
        raise danger
    if _is_open(state_dir.stat()):
        state_dir.chmod(0o700)


def danger_in(state_dir: Path) -> Refused | None:
    """Why the folder cannot be trusted, with what to do.

    None where only this user and root can write into it, and for an empty folder of our own: that can still be closed.
    """
    status = state_dir.stat()
    if status.st_uid not in {os.geteuid(), 0}:
        message = f"state_dir {state_dir} belongs to user {status.st_uid}, who could change what runs."
        return Refused("unsafe_state_dir", message, "Give it to the runner's user, or name another state_dir.")
    ours = status.st_uid == os.geteuid()
    if not _is_open(status) or (ours and not any(state_dir.iterdir())):
        return None
    if ours:
        hint = f"Look at what is in it, then run: chmod 700 {shlex.quote(str(state_dir))}"
    else:
        hint = f"Name a folder inside it, which the runner makes for itself: {state_dir / 'runner'}"
    message = f"Other users can write into state_dir {state_dir}, and so could change what runs."
    return Refused("unsafe_state_dir", message, hint)


def _is_open(status: os.stat_result) -> bool:
    return bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
