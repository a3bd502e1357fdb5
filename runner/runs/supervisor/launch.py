"""launch.json: what is started, and under which limits. Where a limit is 0 or missing there is none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple


class Launch(NamedTuple):
    """One launch.json. Bytes and seconds."""

    argv: list[bytes]
    cwd: bytes
    mark: bytes
    log: Path
    grace_seconds: float
    time_limit_seconds: float
    log_limit_bytes: float
    watched: tuple[str, ...]
    """Folders on whose file systems `disk_reserve_bytes` must stay free, also where they do not exist yet."""
    disk_reserve_bytes: int
    memory_limit_bytes: float
    mask_variable: str
    variables: frozenset[bytes]  # the only ones that the command gets, where a scheduler adds its own; empty: all
    """The one variable that shows the command its GPUs, where a scheduler set several; empty: none is touched."""

    @classmethod
    def read(cls, folder: Path) -> Launch:
        """That of a run's folder. Raises OSError, ValueError, LookupError, TypeError or AttributeError."""
        launch = json.loads((folder / "launch.json").read_bytes())
        if not isinstance(launch["argv"], list) or not launch["argv"]:
            raise ValueError("argv must be a list of words that begins with the program")
        return cls(
            argv=[os.fsencode(word) for word in launch["argv"]],
            cwd=os.fsencode(launch["cwd"]),
            mark=os.fsencode(launch["mark"]),
            log=folder / launch["log"],
            grace_seconds=float(launch.get("grace_seconds", 10.0)),
            time_limit_seconds=float(launch.get("time_limit_seconds") or "inf"),
            log_limit_bytes=float(launch.get("log_limit_bytes") or "inf"),
            watched=tuple(map(str, launch.get("watched") or ())),
            disk_reserve_bytes=int(launch.get("disk_reserve_bytes") or 0),
            memory_limit_bytes=float(launch.get("memory_limit_bytes") or "inf"),
            mask_variable=str(launch.get("mask_variable") or ""),
            variables=frozenset(os.fsencode(name) for name in launch.get("variables") or ()),
        )
