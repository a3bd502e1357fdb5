"""Waiting for the end of a supervisor on this host."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

from runner.engines.engine import SupervisedFolder

_SOON_SECONDS = 0.005


async def pause(folder: SupervisedFolder, seconds: float) -> None:
    """Wait so long, or until the supervisor of this run has ended where that can be heard."""
    pid = folder.supervisor_pid()
    try:
        handle = os.pidfd_open(pid) if pid is not None else -1
    except OSError:
        handle = -1  # it has ended by now, or the kernel is older than 5.3
        seconds = min(seconds, _SOON_SECONDS)
    if handle < 0:
        await asyncio.sleep(seconds)
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    try:
        loop.add_reader(handle, ended.set)
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), seconds)
    finally:
        loop.remove_reader(handle)
        os.close(handle)
