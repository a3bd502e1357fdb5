"""What the supervisor says, on its standard error, and what it asks of the C library."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from typing import Any


def wall_time(seconds: float) -> str:
    """Seconds since 1970 as UTC in ISO 8601, with milliseconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"


def say(sentence: str) -> None:
    with contextlib.suppress(OSError):  # a full disk must not end the run
        os.write(2, f"{wall_time(time.time())} {sentence}\n".encode("utf-8", "replace"))


def call_libc(function: str, *arguments: Any) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, function)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def size(amount: float) -> str:
    """Bytes as people read them."""
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if amount >= unit:
            return f"{amount / unit:,.1f} {name}"
    return f"{amount / 1e3:,.0f} kB"


def duration(seconds: float) -> str:
    """Seconds as people read them."""
    for unit, name in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{round(seconds / unit, 1):g} {name}"
    return f"{seconds:g} s"
