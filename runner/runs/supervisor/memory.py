"""The main memory of a run: what its processes hold together, looked at every few seconds, and its limit.

A quick burst between two looks is not seen. Where the kernel can keep the limit, `memory_group` lets it.
"""

from __future__ import annotations

import contextlib
import time

from .processes import descendants, living_processes, proportional_bytes, resident_bytes
from .words import size

LOOK_SECONDS = 10.0
_FIRST_SECONDS = 0.5  # a short run is looked at more often: else it would end before its memory was seen
_NEAR = 0.7  # of the limit: from there on it is looked at as often as anything
_COST = 100  # a look may take one part in so many of the time


class MemoryWatch:
    """What all processes below this one hold."""

    def __init__(self, pid: int, limit_bytes: float) -> None:
        self._pid, self._limit = pid, limit_bytes
        self._began = self._next = time.monotonic()
        self.peak_bytes = 0

    def excess(self) -> str:
        """Look, when it is time. That the limit is passed, in a sentence with both numbers; empty while it is not."""
        began = time.monotonic()
        if began < self._next:
            return ""
        held = 0
        with contextlib.suppress(OSError):  # the host is short of descriptors for the moment
            below = descendants(living_processes(), [self._pid])
            held = resident_bytes(below)
            if held > self._limit:  # pages that forks share were counted for each of them: no run may end for that
                held = proportional_bytes(below)
        self.peak_bytes = max(self.peak_bytes, held)
        rest = min(LOOK_SECONDS, max(_FIRST_SECONDS, began - self._began)) if held <= _NEAR * self._limit else 0.0
        self._next = began + max(rest, _COST * (time.monotonic() - began))
        if held <= self._limit:
            return ""
        return f"It held {size(held)} of main memory, and a run may hold {size(self._limit)}."
