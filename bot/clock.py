"""Time, as tests can hold it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time of day, for showing and recording. Durations come from the monotonic clock."""

    def now(self) -> datetime:
        """The time of day in UTC."""
        ...


class SystemClock:
    """This machine's clock."""

    def now(self) -> datetime:
        """The time of day in UTC."""
        return datetime.now(UTC)
