"""Waiting for a condition. Tests never pause for a fixed time: this is the only place that pauses at all."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TypeVar

LOOK_SECONDS = 0.01

_T = TypeVar("_T")


def wait_until(condition: Callable[[], _T | None], seconds: float = 10.0, message: str = "") -> _T:
    """Look until the condition is true, and give back what it said. Fails the test with the message after `seconds`."""
    last = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() > last:
            raise AssertionError(_late(condition, seconds, message))
        threading.Event().wait(LOOK_SECONDS)
    return answer


async def until(condition: Callable[[], _T | None], seconds: float = 10.0, message: str = "") -> _T:
    """The same for asynchronous tests: the event loop goes on meanwhile."""
    last = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() > last:
            raise AssertionError(_late(condition, seconds, message))
        await asyncio.sleep(LOOK_SECONDS)
    return answer


def _late(condition: Callable[[], object], seconds: float, message: str) -> str:
    return f"{message or condition} - not within {seconds:g} s"
