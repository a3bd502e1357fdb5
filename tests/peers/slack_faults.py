"""What goes wrong on the way to Slack and back, by script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["error", "ratelimited", "lost", "broken", "hangs"]


@dataclass
class Fault:
    """`error` answers so, `ratelimited` with 429, `broken` with 503; `lost` does it and says nothing; `hangs` waits."""

    method: str
    kind: Kind
    error: str = ""
    seconds: float = 1.0
    times: int = 1
    when: Callable[[dict[str, Any]], bool] = bool
    """Which bodies it befalls; every body has something in it."""


class Faults:
    """Those that are still to come. Used from the server's thread, set from the test's."""

    def __init__(self) -> None:
        self._coming: list[Fault] = []
        self.released = asyncio.Event()

    def add(self, method: str, kind: Kind = "error", error: str = "", **more: Any) -> None:
        """One more."""
        self._coming.append(Fault(method, kind, error, **more))

    def clear(self) -> None:
        """All is well again."""
        self._coming.clear()

    def next(self, method: str, body: dict[str, Any]) -> Fault | None:
        """What befalls this call."""
        for fault in self._coming:
            if fault.method in (method, "*") and fault.times > 0 and fault.when({"method": method, **body}):
                fault.times -= 1
                return fault
        return None
