"""Time, behind a protocol that tests can hold."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time of day. Durations never come from it: it may be set back."""

    def now(self) -> datetime:
        """The time of day in UTC."""
        ...


class SystemClock:
    """The host's clock."""

    def now(self) -> datetime:
        """The time of day in UTC."""
        return datetime.now(UTC)
